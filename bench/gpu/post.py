#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From a network's logits to mattes of the frame's size: ours, fused, beside PyTorch's sequence of operations for it, as
it is and under torch.compile, one after the other on one GPU. A line of JSON for each case.

    python3 bench/gpu/post.py [--budget S] [--seconds S] [--device NAME]

PyTorch's: bilinear interpolation of float16 logits to full size, argmax or softmax, exponential smoothing with the former
frame's, uint8. The faster of argmax and softmax counts. Ours is bench_matte: once with what PyTorch's does, once with all
that `segment` can do (edges that follow the frame's luma, holes closed); its smoothing follows motion in both, which in a
quarter of each picture there is. PyTorch's follows none, so a third time is of pictures that stand still: then ours looks
whether something moved, and smooths in place as PyTorch's does. Cases that would begin after --budget seconds (default 150)
are left out. --device cpu tries this program; its figures mean nothing.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import host  # noqa: E402

FRAMES = {"1080p": (1920, 1080), "2160p": (3840, 2160)}
# Those of the bar first.
CASES = [(side, frame, batch) for side, frame, batch in
         [(512, "1080p", 8), (512, "2160p", 8), (512, "1080p", 1), (512, "2160p", 1), (128, "1080p", 8), (128, "2160p", 8),
          (256, "1080p", 8), (256, "2160p", 8), (128, "1080p", 1), (128, "2160p", 1), (256, "1080p", 1), (256, "2160p", 1)]]
KEEP, CLASSES = 0.6, 2
PLAIN, WHOLE = ["--smooth", KEEP], ["--smooth", KEEP, "--guide", 2, "--hole", 2]
STILL = [*PLAIN, "--moving", 0]


# ---- PyTorch's ----

def sequences(torch):
    import torch.nn.functional as F

    def smoothed(shares, former):
        """Frames of one stream, one after the other."""
        out = []
        for share in shares.unbind(0):
            former = KEEP * former + (1 - KEEP) * share
            out.append(former)
        return (torch.stack(out) * 255 + 0.5).to(torch.uint8), former

    def by_argmax(logits, former, size):
        big = F.interpolate(logits, size=size, mode="bilinear", align_corners=False)
        return smoothed((big.argmax(1) == 1).to(logits.dtype), former)

    def by_softmax(logits, former, size):
        big = F.interpolate(logits, size=size, mode="bilinear", align_corners=False)
        return smoothed(big.softmax(1)[:, 1], former)

    return {"argmax": by_argmax, "softmax": by_softmax}


def timed(torch, device, call, seconds):
    """Milliseconds of a call, by the device's own clock: the median of rounds."""
    for _ in range(3):
        call()
    if device == "cpu":
        begun = time.perf_counter()
        call()
        return (time.perf_counter() - begun) * 1e3
    torch.cuda.synchronize()
    begun = time.perf_counter()
    call()
    torch.cuda.synchronize()
    calls = max(2, min(50, int(seconds / 10 / (time.perf_counter() - begun))))
    rounds = []
    for _ in range(10):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(calls):
            call()
        last.record()
        last.synchronize()
        rounds.append(first.elapsed_time(last) / calls)
    return statistics.median(rounds)


def theirs(torch, device, case, seconds):
    """ms a frame of each form."""
    side, frame, batch = case
    width, height = FRAMES[frame]
    dtype = torch.float32 if device == "cpu" else torch.float16
    logits = torch.randn(batch, CLASSES, side, side, device=device, dtype=dtype)
    logits = torch.nn.functional.avg_pool2d(logits, 9, 1, 4) * 8 # people are not noise
    former = torch.zeros(height, width, device=device, dtype=dtype)
    took = {}
    with torch.inference_mode():
        for name, sequence in sequences(torch).items():
            took["torch " + name] = timed(torch, device, lambda: sequence(logits, former, (height, width)), seconds) / batch
            if device == "cpu":
                continue
            torch.compiler.reset()
            compiled = torch.compile(sequence, dynamic=False)
            took["compiled " + name] = timed(torch, device, lambda: compiled(logits, former, (height, width)), seconds) / batch
    del logits, former
    return took


# ---- ours ----

def ours(device, case, options, seconds):
    side, frame, batch = case
    width, height = FRAMES[frame]
    if not host.BENCH or not host.bench("bench_matte").exists():
        raise host.Failed("bench_matte is not here")
    text, _, _ = host.execute([host.bench("bench_matte"), "--device", device, "--frame", f"{width}x{height}", "--map", f"{side}x{side}",
                               "--classes", CLASSES, "--batch", batch, "--dtype", "f32" if device == "cpu" else "f16", *options,
                               "--seconds", seconds], 60)
    return json.loads(next(line for line in text.splitlines() if line.startswith("{")))["ms_per_frame"]


def compare(torch, device, case, seconds):
    side, frame, batch = case
    row = {"what": f"mattes of {frame} from {side}x{side}, batch {batch}", "map": side, "frame": frame, "batch": batch}
    try:
        mine = {"ours_ms": ours(device, case, PLAIN, seconds), "ours_whole_ms": ours(device, case, WHOLE, seconds),
                "ours_still_ms": ours(device, case, STILL, seconds)}
    except (host.Failed, StopIteration, KeyError) as failed:
        mine = {"fault": f"ours: {failed}"}
    took = theirs(torch, device, case, seconds)
    least = lambda form: min((ms for name, ms in took.items() if name.startswith(form)), default=None)
    plain, compiled = least("torch"), least("compiled")
    ratio = lambda ms, key: round(ms / mine[key], 2) if ms and mine.get(key) else None
    row |= {"torch_ms": plain, "compiled_ms": compiled, "all_ms": took} | mine
    return row | {"over_torch": ratio(plain, "ours_ms"), "over_compiled": ratio(compiled, "ours_ms"),
                  "still_over_torch": ratio(plain, "ours_still_ms"), "still_over_compiled": ratio(compiled, "ours_still_ms"),
                  "whole_over_torch": ratio(plain, "ours_whole_ms"), "whole_over_compiled": ratio(compiled, "ours_whole_ms"),
                  "bars": [3, 1.5]}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--budget", type=float, default=150)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    begun = time.monotonic()
    try:
        import torch
    except ImportError:
        sys.exit("post.py: PyTorch is not here")
    if options.device != "cpu" and not torch.cuda.is_available():
        sys.exit("post.py: no GPU that PyTorch can use")
    for case in CASES if options.device != "cpu" else [(64, "1080p", 1)]:
        if time.monotonic() - begun > options.budget:
            print(f"post.py: {case} and those behind it are left out", file=sys.stderr)
            break
        row = compare(torch, options.device, case, options.seconds) | {"torch": torch.__version__}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
