#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Preprocessing, boxes with NMS, and batch normalisation beside PyTorch's own for the same, on one GPU.

    bench/peers/time_kernels.py

32 frames of NV12 1920x1080 to float16 [32,3,640,640], letterbox; outputs of a YOLOX at 640, float16 [32,8400,85],
ten persons a frame, to boxes; maps of float16 [32,64,160,160] in both orders, normalised by channel. A line of JSON
each: ours (bench_kernels, bench_ops), PyTorch's, the ratio.
"""
import json
import pathlib
import re
import statistics
import sys

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "gpu")]
import host  # noqa: E402

N, WIDTH, HEIGHT, SIDE, CELLS, CLASSES, PEOPLE, SEEN_BY = 32, 1920, 1080, 640, 8400, 80, 10, 8


def milliseconds(run):
    for _ in range(5):
        run()
    times = []
    for _ in range(15):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(5):
            run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 5)
    return statistics.median(times)


def rgb_of(frames):
    """NV12 [N,H*3/2,W] bytes to RGB [N,3,H,W] float16 in 0..255, BT.709, limited range."""
    luma = frames[:, :HEIGHT].unsqueeze(1).half()
    chroma = frames[:, HEIGHT:].reshape(-1, HEIGHT // 2, WIDTH // 2, 2).permute(0, 3, 1, 2).half()
    chroma = F.interpolate(chroma, scale_factor=2.0, mode="nearest")
    y, u, v = (luma - 16) * 1.164383, chroma[:, :1] - 128, chroma[:, 1:] - 128
    return torch.cat((y + 1.792741 * v, y - 0.213249 * u - 0.532909 * v, y + 2.112402 * u), 1).clamp_(0, 255)


def preprocess(frames):
    small = F.interpolate(rgb_of(frames), (SIDE * HEIGHT // WIDTH, SIDE), mode="bilinear", align_corners=False)
    return F.pad(small, (0, 0, 0, SIDE - small.shape[2]), value=114.0)


def outputs():
    """As bench_kernels makes them."""
    out = torch.rand((N, CELLS, 5 + CLASSES), device="cuda").mul_(0.02)
    cell = torch.arange(CELLS, device="cuda")
    person = cell // (CELLS // PEOPLE)
    seen = cell % (CELLS // PEOPLE) < SEEN_BY
    out[:, :, 0] = torch.where(seen, 40 + 60 * person + cell % 3, cell % SIDE).float()
    out[:, :, 1] = torch.where(seen, 180, cell % 360).float()
    out[:, :, 2], out[:, :, 3] = 46, 128
    out[:, :, 4] = torch.where(seen, 0.9, 0.01)
    out[:, :, 5] = torch.where(seen, 0.9, 0.01)
    return out.half()


def boxes(out, nms):
    """The list of a frame's boxes, for each: the usual postprocessing of YOLOX, frame by frame."""
    centre, size = out[..., :2].float(), out[..., 2:4].float()
    corners = torch.cat((centre - size / 2, centre + size / 2), 2)
    found = []
    for i in range(out.shape[0]):
        best, kind = out[i, :, 5:].float().max(1)
        score = out[i, :, 4].float() * best
        keep = score >= 0.1
        kept, score, kind = corners[i][keep], score[keep], kind[keep]
        chosen = nms(kept, score, kind, 0.65)
        found.append((kept[chosen], score[chosen], kind[chosen]))
    return found


def batch_norms():
    """A line for maps in each order: bench_ops' time, and F.batch_norm's with given statistics."""
    text, _, _ = host.execute([host.bench("bench_ops"), "cuda", "BatchNormalization"], 60)
    vectors = [torch.rand(64, device="cuda").half() for _ in range(4)]
    for order, layout in (("  plain", torch.contiguous_format), ("", torch.channels_last)):
        found = re.search(r"^BatchNormalization .* ([0-9.]+) us +[0-9]+ GB/s" + order + "$", text, re.M)
        x = torch.rand((32, 64, 160, 160), device="cuda").half().to(memory_format=layout)
        scale, shift, mean, variance = vectors
        ms = milliseconds(lambda: F.batch_norm(x, mean, variance, scale, shift))
        yield {"what": "batch norm: " + ("nchw" if order else "nhwc"), "ours_ms": round(float(found[1]) / 1e3, 4),
               "torch_ms": round(ms, 4), "torch_over_ours": round(ms * 1e3 / float(found[1]), 1),
               "torch": torch.__version__}


def main():
    if not torch.cuda.is_available():
        sys.exit("time_kernels.py: PyTorch finds no GPU")
    torch.set_grad_enabled(False)
    text, _, _ = host.execute([host.bench("bench_kernels"), "--json"], 60)
    ours = [json.loads(line) for line in text.splitlines()]
    frames = torch.randint(16, 235, (N, HEIGHT * 3 // 2, WIDTH), device="cuda", dtype=torch.uint8)
    theirs = {"preprocess": milliseconds(lambda: preprocess(frames)),
              "preprocess, compiled": milliseconds(lambda f=torch.compile(preprocess): f(frames))}
    try:
        from torchvision.ops import batched_nms
        out = outputs()
        theirs["boxes and NMS"] = milliseconds(lambda: boxes(out, batched_nms))
    except ImportError:
        print("torchvision is not here: nothing beside our NMS", file=sys.stderr)
    for row in ours:
        if row["kernel"] == "preprocess" and (row["format"], row["filter"]) != ("nv12", "bilinear"):
            continue
        for name, ms in theirs.items():
            if name.split(",")[0] == row["kernel"]:
                print(json.dumps({"what": f"{name}: {row.get('layout', '')}", "ours_ms": row["ms"], "torch_ms": round(ms, 4),
                                  "torch_over_ours": round(ms / row["ms"], 1), "bound_ms": row["bound_ms"],
                                  "torch": torch.__version__}), flush=True)
    for line in batch_norms():
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
