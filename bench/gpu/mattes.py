# SPDX-License-Identifier: Apache-2.0
"""The parts about mattes: frames a second, a headset's latency, what each technique gives, and the fused post-processing
beside PyTorch's."""
import json
import os
import pathlib
import sys
import time

import host
from host import Failed
from parts import figures

FOLDER = pathlib.Path(__file__).resolve().parent
BAR, VR_BARS = 0.95, {"hevc_vr_1080p": 8, "hevc_vr_sbs_2160p": 15}
SIZES = ("hevc_1080p", "hevc_2160p", "hevc_8k", "hevc_6k")
BOTH = {"none": [], "skip-still 0.01": ["--skip-still", 0.01], "region": ["--region"], "scales 0.5,1,2": ["--scales", "0.5,1,2"]}
TECHNIQUES = {"person_seg": BOTH, "person_matte": BOTH | {"small-model person_seg": ["--small-model", "person_seg"]}}
FACETS = {"none": ["--stereo", "sbs"]} | {which: ["--stereo", "sbs", "--projection", "equirect180", "--facets", which] for which in ("front", "all")}


def run(bench, inputs, *options, model=None, timeout=90):
    """Statistics of `saccade segment`; whether strict mode let it pass."""
    model = ["--model", model or bench.peers.exported_path("deeplab")]
    if not bench.clean:
        return host.track(inputs, *bench.device, *model, *options, folder=bench.folder, timeout=timeout, verb="segment"), None
    try:
        return host.track(inputs, *bench.device, *bench.clean, *model, *options, folder=bench.folder, timeout=timeout, verb="segment"), True
    except Failed as failed:
        print(f"strict: {failed}", flush=True)
    return host.track(inputs, *bench.device, *model, *options, folder=bench.folder, timeout=timeout, verb="segment"), False


def network_rate(bench):
    """Images a second of the network alone, by batch, over as long as a pipeline's run: after the first second a card's
    power limit lowers its clock. Measured once."""
    if not hasattr(bench, "deeplab_rate"):
        wanted, seconds = ("1,8", bench.seconds) if bench.on_gpu else ("1,2", 0.6)
        text, _, _ = host.execute([host.bench("bench_engine"), bench.peers.exported_path("deeplab"), *bench.device,
                                   *(["--precision", "fp16"] if bench.on_gpu else []), "--batch", wanted, "--seconds", seconds], 150)
        rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        bench.deeplab_rate = {row["batch"]: round(1000 * row["batch"] / row["ms"], 1) for row in rows}
    return bench.deeplab_rate


def warm_up(bench):
    """The network is planned for the batches of one input and of several."""
    begun = time.monotonic()
    for streams, options in ((1, []), (8, []), (1, ["--mode", "vr"])):
        clip = bench.clip("hevc_1080p", 60 if bench.on_gpu else 2)
        run(bench, bench.inputs(clip, streams) if streams > 1 else [clip], "--as", "none", *options, timeout=200)
    return {"what": "plans made", "run_s": round(time.monotonic() - begun, 1)}


def length(bench, fps, streams):
    return max(bench.least if bench.on_gpu else 4, int(fps * bench.seconds / streams))


def one(bench, what, name, streams, *options, frames=None):
    """A row: frames a second of a run, beside the bare decoder and the network alone."""
    row = {"what": what, "clip": name, "streams": streams}
    try:
        top, rates = bench.ceiling(name, streams), network_rate(bench)
        known = min(top, max(rates.values()))
        clip = bench.clip(name, frames if frames and bench.on_gpu else length(bench, known, streams))
        stats, strict = run(bench, bench.inputs(clip, streams) if streams > 1 else [clip], *options, timeout=60 + 8 * bench.seconds)
    except Failed as failed:
        return row | {"fault": str(failed)}
    batches = stats["batches"]
    return row | {"ceiling_fps": top, "of_ceiling": round(stats["fps"] / top, 3), "network_fps": rates,
                  "of_network": round(stats["fps"] / max(rates.values()), 3), "of_smaller": round(stats["fps"] / known, 3),
                  "bar": BAR, "met": stats["fps"] >= BAR * known, "strict": strict, "batch_max": batches["max"],
                  "batch_fill": batches["fill"], "copies": {key: value for key, value in stats["copies"].items() if value["bytes"]},
                  "stages": times(stats), "encoder": stats["encoder"]} | figures(stats)


def times(stats):
    return {s["name"]: {"p50_ms": s["p50_ms"], "gpu_p50_ms": (s["gpu"] or {}).get("p50_ms")} for s in stats["stages"]}


def segment(bench):
    """`segment --as none` with DeepLabV3-R50 at 512, 2 classes, float16, beside the bare decoder and the network alone."""
    begun, none, budget = time.monotonic(), ["--as", "none"], ["--as", "none", "--vram-limit", "24G"]
    composed, written = ["--as", "overlay", "-o", "none"], ["--as", "overlay", "-o", bench.folder / "out.mp4"]
    rows = [("segment --as none", name, streams, none, None) for name in SIZES for streams in (8, 1)]
    rows += [("the same, --vram-limit 24G", "hevc_8k", streams, budget, None) for streams in (8, 1)]
    rows += [("composed, not encoded", *clip, composed, None) for clip in (("hevc_1080p", 1), ("hevc_2160p", 8))]
    rows += [("-o, encoded on the CPU", name, 1, written, frames) for name, frames in (("hevc_1080p", 240), ("hevc_2160p", 60))]
    yield warm_up(bench)
    yield {"what": "the network alone, images/s", "network_fps": network_rate(bench)}
    for what, name, streams, options, frames in rows:
        if time.monotonic() - begun > bench.part_budget:
            yield {"what": what, "clip": name, "streams": streams, "left_out": "the part's budget was used up"}
        else:
            yield one(bench, what, name, streams, *options, frames=frames)


def vr(bench):
    """`segment --mode vr`: from a frame's last packet to its composite, paced at 90 frames/s, no B-frames."""
    warm_up(bench) if bench.on_gpu and not hasattr(bench, "deeplab_rate") else None
    for name, bar in VR_BARS.items():
        eyes = ["--stereo", "sbs"] if "sbs" in name else []
        for what, paced in (("vr, 90 frames/s", ["--realtime"]), ("vr, as fast as it goes", [])):
            yield one_vr(bench, what, name, bar, eyes, paced)
            os.environ["SACCADE_WITHOUT"] = "one-launch"
            yield one_vr(bench, what + ", launched one by one", name, bar, eyes, paced)
            del os.environ["SACCADE_WITHOUT"]


def one_vr(bench, what, name, bar, eyes, paced):
    row = {"what": what, "clip": name, "streams": 1}
    seconds = bench.vr_seconds if paced else bench.seconds
    frames = int(90 * seconds) if bench.on_gpu else 4
    options = ["--mode", "vr", "--as", "overlay", "-o", "none", *paced]
    try:
        clip = bench.clip(name, frames)
        try:
            stats, strict = run(bench, [clip], *options, *eyes, timeout=60 + 2 * seconds)
        except Failed as failed:
            if not eyes:
                raise
            print(f"{' '.join(eyes)}: {failed}", flush=True)
            row["without"] = " ".join(eyes)
            stats, strict = run(bench, [clip], *options, timeout=60 + 2 * seconds)
    except Failed as failed:
        return row | {"fault": str(failed)}
    took, missing = stats["composite_latency"], stats["frames_total"] - stats["frames"]
    row |= {"composite_ms": {key: took[f"{key}_ms"] for key in ("p50", "p95", "p99", "max")}, "seconds": round(stats["elapsed_s"], 1),
            "strict": strict, "one_launch": stats["batches"]["whole"], "stages": times(stats)}
    if paced:
        row |= {"bar_ms": bar, "late": stats["composites_late"], "missing": missing,
                "met": took["p99_ms"] < bar and stats["composites_late"] == 0 and missing == 0}
    return row | figures(stats)


def techniques(bench):
    """Our networks for mattes, eight inputs, and what each switch changes beside the same run without; eyes in facets."""
    for model, switches in TECHNIQUES.items():
        yield from compared(bench, model, "hevc_1080p", switches)
    yield from compared(bench, "person_matte", "hevc_vr_sbs_2160p", FACETS)


def compared(bench, model, name, switches):
    """A row for each way of making mattes; the first is what the others are compared with."""
    streams, first = 8, None
    for what, switch in switches.items():
        row = {"what": f"{model}, {what}", "clip": name, "streams": streams}
        options = ["--as", "none", *switch]
        try:
            top = bench.ceiling(name, streams)
            inputs = bench.inputs(bench.clip(name, length(bench, top, streams)), streams)
            run(bench, bench.inputs(bench.clip(name, bench.least), streams), *options, model=model, timeout=120) # makes the plan
            stats, strict = run(bench, inputs, *options, model=model, timeout=60 + 16 * bench.seconds)
        except Failed as failed:
            yield row | {"fault": str(failed)}
            continue
        first = first or stats["fps"]
        yield row | {"ceiling_fps": top, "of_ceiling": round(stats["fps"] / top, 3), "times": round(stats["fps"] / first, 3),
                     "strict": strict, "savings": stats["savings"], "stages": times(stats)} | figures(stats)


def post(bench):
    """The fused post-processing beside PyTorch's sequence for it, as it is and compiled."""
    options = [] if bench.on_gpu else ["--device", "cpu"]
    try:
        text, _, _ = host.execute([sys.executable, FOLDER / "post.py", "--budget", bench.post_budget, *options], bench.post_budget + 60)
    except Failed as failed: # what was measured before counts
        yield from rows_of(failed.text)
        raise
    yield from rows_of(text)


def rows_of(text):
    for line in text.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


PARTS = {"post": post, "segment": segment, "techniques": techniques, "vr": vr}
