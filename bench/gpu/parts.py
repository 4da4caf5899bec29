# SPDX-License-Identifier: Apache-2.0
"""What is measured, one function per part. Each yields rows: a dict with "what" and figures, or "fault"."""
import json
import pathlib
import re
import sys
import time

import host
import peers
from host import Failed, track

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from loop import loop  # noqa: E402

SMALL = ("boxes", "commands") # reasons of the ledger that must cross; weights cross once; all others are pixels or tensors


class Bench:
    """Where files go, what a second of video costs, and the ceilings found so far."""

    def __init__(self, folder, seconds, options):
        self.folder, self.seconds = pathlib.Path(folder), seconds
        self.device = ["--device", options.device]
        self.on_gpu = options.device != "cpu"
        self.clean = ["--zero-copy", "strict"] if self.on_gpu else []
        self.least = 60 if self.on_gpu else 4
        self.ceilings, self.plans = {}, {}
        self.peers = peers.Peers(self.folder, options.only, options.peer_budget, self.on_gpu)
        self.vr_seconds, self.post_budget, self.part_budget = options.vr_seconds, options.post_budget, options.part_budget

    def clip(self, name, frames):
        """A clip of at least so many frames."""
        source, out = host.CLIPS / f"{name}.mp4", self.folder / f"{name}_{frames}.mp4"
        if not source.exists():
            raise Failed(f"its clip {source.name} is not here")
        if not out.exists():
            loop(source, out, frames)
        return out

    def inputs(self, clip, streams):
        return host.inputs(clip, streams, self.folder)

    def ceiling(self, name, streams, gpus="0"):
        """Frames a second of the bare decoder, measured once a run."""
        key = (name, streams, gpus)
        if not self.on_gpu:
            return 10.0
        if key not in self.ceilings:
            text, _, _ = host.execute([host.bench("bench_nvdec"), self.clip(name, 4000), streams, self.seconds / 2, gpus], 60)
            self.ceilings[key] = json.loads(text)["fps"]
        return self.ceilings[key]

    def planned(self, name):
        """A network with random weights, exported by PyTorch and planned."""
        if name not in self.plans:
            path, begun = self.peers.exported_path(name), time.monotonic()
            track(self.inputs(self.clip("h264_1080p", 180), 8), *self.device, "--detector", path, folder=self.folder, timeout=100)
            self.plans[name] = path, round(time.monotonic() - begun, 1)
        return self.plans[name][0]

    def pipeline(self, what, name, streams, *options, gpus=None):
        """One run at full speed beside the bare decoder; a row."""
        device = ["--gpus", gpus] if gpus else self.device
        try:
            top = self.ceiling(name, streams, gpus or "0")
            clip = self.clip(name, max(self.least, int(top * self.seconds / streams)))
            stats = track(self.inputs(clip, streams) if streams > 1 else [clip], *device, *self.clean, *options,
                          folder=self.folder, timeout=60 + 4 * self.seconds)
        except Failed as failed:
            return {"what": what, "clip": name, "streams": streams, "fault": str(failed)}
        share = round(stats["fps"] / top, 3)
        return {"what": what, "clip": name, "streams": streams, "ceiling_fps": top, "of_ceiling": share} | figures(stats)


def ledger(stats):
    """Bytes by kind."""
    of = lambda wanted: sum(entry["bytes"] for reason, entry in stats["copies"].items() if wanted(reason))
    small = of(lambda reason: reason in SMALL)
    return {"pixel_bytes": of(lambda reason: reason not in SMALL and reason != "weights"), "small_bytes": small,
            "weights_bytes": of(lambda reason: reason == "weights"),
            "small_bytes_per_s": round(small / stats["elapsed_s"]) if stats["elapsed_s"] else None}


def figures(stats):
    """What every run of the pipeline has to tell."""
    watch, frames = stats["watch"], max(stats["frames"], 1)
    row = {"frames": stats["frames"], "fps": round(stats["fps"], 1), "elapsed_s": round(stats["elapsed_s"], 2),
           "detections_per_s": round(stats["detections"] / stats["elapsed_s"], 1) if stats["elapsed_s"] else None,
           "detections_per_frame": round(stats["detections"] / frames, 2),
           "crops_per_s": round(stats["detections"] / stats["elapsed_s"], 1) if stats["reid"] else 0,
           "precision": stats["precision"], "cpu_cores": watch.get("cpu_cores"),
           "gpu_percent": watch.get("gpu_percent"), "decoder_percent": watch.get("decoder_percent"),
           "memory_peak_mb": round(watch["memory_peak"] / 1e6) if watch.get("memory_peak") is not None else None,
           "pool_reuse": stats["pool"]["reuse_share"], "pool_reuse_warm": stats["pool"].get("reuse_share_warm"),
           "pool_allocations": stats["pool"]["allocations"],
           "leaks": stats["pool"]["leaks"], "allocations_warm": stats["pool"].get("allocations_warm"),
           "requests_warm": stats["pool"].get("requests_warm"),
           "latency_ms": {key: stats["latency"][f"{key}_ms"] for key in ("p50", "p95", "p99")} if stats["latency"] else None,
           "batch_mean": stats["batches"]["mean"] if stats["batches"] else None,
           "bottleneck": (stats["bottleneck"] or {}).get("stage")}
    if stats.get("devices"):
        row["devices"] = {shard["device"]: {"streams": shard["streams"], "fps": round(shard["fps"], 1),
                                            "gpu_percent": round(100 * shard["gpu"]["utilisation"]) if shard["gpu"] else None} for shard in stats["devices"]}
    return row | ledger(stats)


# ---- the parts ----

def warm(bench):
    """Networks are planned once, before anything is timed; says how long that took."""
    clip = bench.clip("h264_1080p", 200)
    begun = time.monotonic()
    try:
        stats = track(bench.inputs(clip, 8), *bench.device, folder=bench.folder, timeout=240)
        row = figures(stats) | {"precision": stats["precision"], "engine": stats["engine"], "device": stats["device"]}
    except Failed as failed:
        row = {"fault": str(failed)}
    yield {"what": "first run, plans made", "run_s": round(time.monotonic() - begun, 1)} | row


def speed(bench):
    """H.264 1080p, detector of nano size, ReID on every detection, BoT-SORT."""
    for streams in (1, 8, 16, 32):
        yield bench.pipeline("nano + ReID + tracker", "h264_1080p", streams)
    yield bench.pipeline("nano + ReID + tracker", "hevc_1080p", 32)


def large(bench):
    """4K, 6K and 8K HEVC, and once under a budget."""
    for name, streams in (("hevc_2160p", 1), ("hevc_2160p", 16), ("hevc_6k", 1), ("hevc_6k", 8), ("hevc_8k", 1),
                          ("hevc_8k", 8)):
        yield bench.pipeline("nano + ReID + tracker", name, streams)
    yield bench.pipeline("the same, --vram-limit 24G", "hevc_8k", 8, "--vram-limit", "24G")


def random_networks(bench):
    """Detectors with random weights that find ten persons a frame."""
    for model, streams in (("yolox_s_people", (32, 8, 1)), ("yolox_nano_people", (32, 1))):
        try:
            path = bench.planned(model)
            yield {"what": model + ", plans made", "run_s": bench.plans[model][1]}
        except Failed as failed:
            yield {"what": model, "fault": str(failed)}
            continue
        for n in streams:
            yield bench.pipeline(model + " + ReID + tracker", "h264_1080p", n, "--detector", path)
        if model == "yolox_s_people":
            yield bench.pipeline("the same, no ReID, sort", "h264_1080p", 16, "--detector", path, "--reid", "none",
                                 "--tracker", "sort")


def realtime(bench):
    """32 x 1080p30 as cameras give them, with and without a round trip over the host."""
    clip = bench.clip("h264_1080p", int(30 * max(10, 2 * bench.seconds)))
    for what, extra in (("on the GPU", bench.clean), ("over the host", ["--zero-copy", "off"])):
        try:
            stats = track(bench.inputs(clip, 32), *bench.device, "--realtime", *extra, folder=bench.folder, timeout=120)
        except Failed as failed:
            yield {"what": f"32 x 1080p30 in real time, {what}", "streams": 32, "fault": str(failed)}
            continue
        cores, watch = host.os.cpu_count(), stats["watch"]
        cpu = watch.get("cpu_cores")
        yield {"what": f"32 x 1080p30 in real time, {what}", "clip": "h264_1080p", "streams": 32, "cores": cores,
               "cpu_percent": round(100 * cpu / cores, 2) if cpu is not None else None,
               "machine_cpu_percent": round(100 * watch["machine_cpu_cores"] / cores, 2) if cpu is not None else None,
               "pcie_from_gpu_mb_s": watch.get("pcie_from_gpu_mb_s"), "pcie_to_gpu_mb_s": watch.get("pcie_to_gpu_mb_s"),
               "copies": stats["copies"]} | figures(stats)


def latency(bench):
    """A frame's way from being there to its tracks, of streams in real time."""
    clip = bench.clip("h264_1080p", int(30 * max(8, 1.5 * bench.seconds)))
    for streams in (1, 16):
        try:
            inputs = bench.inputs(clip, streams) if streams > 1 else [clip]
            stats = track(inputs, *bench.device, *bench.clean, "--realtime", folder=bench.folder, timeout=90)
            yield {"what": "latency in real time", "clip": "h264_1080p", "streams": streams,
                   "stages": {s["name"]: {"p50_ms": s["p50_ms"], "p99_ms": s["p99_ms"]} for s in stats["stages"]}
                   } | figures(stats)
        except Failed as failed:
            yield {"what": "latency in real time", "streams": streams, "fault": str(failed)}


def memory(bench):
    """What one more stream takes; whether a longer run allocates more."""
    rows = {}
    for streams, frames in ((8, 750), (24, 250), (24, 750)): # a second and more: the driver's count is looked at five times in one
        try:
            stats = track(bench.inputs(bench.clip("h264_1080p", frames), streams), *bench.device, "--max-batch", "8",
                          folder=bench.folder, timeout=90)
            rows[streams, frames] = stats
            yield {"what": "memory", "clip": "h264_1080p", "streams": streams} | figures(stats)
        except Failed as failed:
            yield {"what": "memory", "streams": streams, "fault": str(failed)}
            return
    few, many, longer = rows[8, 750], rows[24, 250], rows[24, 750]
    used = [row["watch"]["memory_peak"] for row in (few, many)]
    yield {"what": "one more 1080p stream",
           "memory_mb": round((used[1] - used[0]) / 16 / 1e6, 1) if None not in used else None,
           "pool_peak_mb": round((many["pool"]["bytes_peak"] - few["pool"]["bytes_peak"]) / 16 / 1e6, 1)}
    yield {"what": "three times as long", "frames": longer["frames"],
           "allocations_more": longer["pool"]["allocations"] - many["pool"]["allocations"],
           "requests_more": longer["pool"]["reuses"] + longer["pool"]["allocations"]
           - many["pool"]["reuses"] - many["pool"]["allocations"],
           "pool_reuse_warm": longer["pool"].get("reuse_share_warm"), "leaks": longer["pool"]["leaks"]}


def mixes(bench):
    """What one more stream takes, with few streams and many, and small batches and large ones."""
    for clip, batch in (("h264_1080p", "1"), ("h264_1080p", "8"), ("h264_1080p", "32"), ("h264_1080p", None), ("hevc_2160p", None)):
        most = {}
        for streams in (2, 6, 24):
            try: # long enough for some looks at the driver's count
                stats = track(bench.inputs(bench.clip(clip, 1500 if streams < 6 else 500), streams), *bench.device,
                              *(["--max-batch", batch] if batch else []), folder=bench.folder, timeout=90)
            except Failed as failed:
                yield {"what": "one more stream", "clip": clip, "streams": streams, "batch_max": batch, "fault": str(failed)}
                break
            most[streams] = stats["watch"]["memory_peak"]
        for few, many in zip(list(most), list(most)[1:]):
            yield {"what": f"one more stream, {few} to {many}", "clip": clip, "batch_max": batch or "default",
                   "memory_peak_mb": round(most[many] / 1e6) if most[many] is not None else None,
                   "memory_mb": round((most[many] - most[few]) / (many - few) / 1e6, 1) if None not in most.values() else None}


def output(bench):
    """The same run with annotated videos written: what encoding on the CPU costs."""
    clip = bench.clip("h264_1080p", 600)
    for streams in (1, 8):
        base = None
        for what, extra in (("no video out", []), ("-o", ["-o"])):
            out = bench.folder / "out"
            if streams > 1:
                out.mkdir(exist_ok=True)
            target = [out if streams > 1 else bench.folder / "out.mp4"] if extra else []
            try:
                inputs = bench.inputs(clip, streams) if streams > 1 else [clip]
                stats = track(inputs, *bench.device, *extra, *target, folder=bench.folder, timeout=120)
            except Failed as failed:
                yield {"what": what, "streams": streams, "fault": str(failed)}
                continue
            base = base or stats["fps"]
            yield {"what": what, "clip": "h264_1080p", "streams": streams, "encoder": stats["encoder"],
                   "of_no_video": round(stats["fps"] / base, 3), "copies": stats["copies"]} | figures(stats)


def hota(bench):
    """Scores of the tracks from the GPU against those from the CPU, on video with ground truth."""
    for sequence, clip in (("TUD-Stadtmitte", "tud_h264.mp4"), ("PETS09-S2L1", "vtest_h264.mp4")):
        truth, score = host.find(f"data/mot/{sequence}", f"../shared/data/mot/{sequence}"), {}
        if not truth or not (host.CLIPS / clip).exists():
            yield {"what": f"HOTA, {sequence}", "fault": "its video or its truth is not here"}
            continue
        runs = {"cpu": ["--device", "cpu"], "gpu fp16": bench.device, "gpu fp32": bench.device + ["--precision", "fp32"],
                "gpu fp16, batch 1": bench.device + ["--max-batch", "1"]}
        try:
            for name, options in runs.items():
                out = bench.folder / "tracks.txt"
                track([host.CLIPS / clip], *options, "--mot", out, folder=bench.folder, timeout=120)
                text, _, _ = host.execute([host.SACCADE, "eval", "--json", "--gt", truth, "--tracks", out], 60)
                score[name] = round(100 * json.loads(text)["combined"]["hota"], 2)
        except Failed as failed:
            yield {"what": f"HOTA, {sequence}", "hota": score, "fault": str(failed)}
            continue
        apart = max(abs(value - score["cpu"]) for value in score.values())
        yield {"what": f"HOTA, {sequence}", "hota": score, "apart": round(apart, 2), "within_half": apart <= 0.5}


def cycles(bench):
    """A stream opened and closed a thousand times: what is left of it in the card's memory and the host's."""
    test = host.find("tests/bin/test_media_surfaces_cuda")
    if not test:
        yield {"what": "1,000 cycles", "fault": "its test is in the folder that scripts/gpu-pack makes, and not here"}
        return
    env = host.environment() | {"SACCADE_CYCLES": "1000", "SACCADE_TEST_GPU": "1", "SACCADE_TEST_WHOLE_GPU": "1"}
    fault = None
    try:
        text, _, _ = host.execute([test, "opening_and_closing_leaves_memory_flat"], 250, env, host.HERE / "tests/tree")
    except Failed as failed:
        text, fault = failed.text, failed
    figure = r"after (\d+): (-?[0-9.]+) MB of the GPU's memory less, (-?[0-9.]+) MB of the host's more; ([0-9.]+) s"
    for cycles, gpu, resident, seconds in re.findall(figure, text):
        yield {"what": f"a stream opened and closed {cycles} times", "gpu_mb_less": float(gpu), "host_mb_more": float(resident),
               "run_s": float(seconds)}
    if fault:
        raise fault


def timers(bench):
    """What stage timers and traces cost."""
    text, _, _ = host.execute([host.bench("bench_timers"), 10000], 60)
    for mode, ns in re.findall(r"^  ([a-z ]+?) +([0-9.]+) ns$", text, re.M):
        yield {"what": f"one stage on one frame, {mode}", "ns": float(ns)}
    for mode, ns, more in re.findall(r"^  ([a-z ]+?) +best +([0-9.]+) ns, ([-+0-9.]+) to off", text, re.M):
        yield {"what": f"a frame's whole run, {mode}", "ns": float(ns), "more_ns": float(more)}
    for what, extra in (("timers on", []), ("timers off", ["--no-timers"])): # with the GPU's events
        row = bench.pipeline(f"nano + ReID + tracker, {what}", "h264_1080p", 32, *extra)
        cores = row.get("cpu_cores")
        yield row | {"cpu_us_per_frame": round(1e6 * cores / row["fps"], 1) if cores else None}


def gpus(bench):
    """Streams dealt to two GPUs, beside one, each beside the bare decoder on the same."""
    if host.NVML.count() < 2:
        yield {"what": "--gpus 0,1", "left_out": "one GPU here"}
        return
    track(bench.inputs(bench.clip("h264_1080p", 180), 16), "--gpus", "0,1", folder=bench.folder, timeout=120) # plans
    for streams in (32, 64):
        one = bench.pipeline("--gpus 0", "h264_1080p", streams, gpus="0")
        yield one
        both = bench.pipeline("--gpus 0,1", "h264_1080p", streams, gpus="0,1")
        known = "fps" in one and "fps" in both
        yield both | {"scaling": round(both["fps"] / one["fps"], 2) if known else None,
                      "ceiling_scaling": round(both["ceiling_fps"] / one["ceiling_fps"], 2) if known else None}


# Those that time nothing come early: meanwhile PyTorch compiles.
PARTS = {"warm": warm, "hota": hota, "speed": speed, "cycles": cycles, "realtime": realtime, "latency": latency, "memory": memory,
         "networks": random_networks, "python": peers.python, "engine": peers.engine, "kernels": peers.kernels,
         "large": large, "output": output, "gpus": gpus, "timers": timers, "mixes": mixes}
UNTIMED = ("warm", "hota")
SHOWN = [("what", 38), ("clip", 12), ("streams", 3), ("fps", 8), ("of_ceiling", 6), ("ceiling_fps", 8),
         ("detections_per_frame", 5), ("crops_per_s", 8), ("cpu_cores", 6), ("gpu_percent", 4), ("batch_mean", 5),
         ("bottleneck", 10), ("latency_ms", 20)]

ALSO_SHOWN = ("cpu_percent", "machine_cpu_percent", "pixel_bytes", "small_bytes_per_s", "pool_reuse_warm", "leaks", "memory_mb", "pool_peak_mb",
              "memory_peak_mb", "allocations_warm", "requests_warm", "allocations_more", "requests_more", "of_no_video", "ours_ms",
              "torch_ms", "torch_over_ours", "over_python", "decoder", "devices", "scaling", "ceiling_scaling", "ns", "more_ns",
              "of_network", "of_smaller", "times", "met", "strict", "batch_max", "network_fps", "composite_ms", "late", "missing", "without",
              "compiled_ms", "over_torch", "over_compiled", "whole_over_compiled",
              "cpu_us_per_frame", "gpu_mb_less", "host_mb_more", "hota", "apart", "run_s", "pcie_to_gpu_mb_s", "left_out", "fault")


def text(row):
    """A row for people."""
    cells = []
    for key, width in SHOWN:
        value = row.get(key)
        if isinstance(value, dict):
            value = "/".join(f"{v:.1f}" for v in value.values())
        elif isinstance(value, float):
            value = f"{value:.3g}" if key in ("of_ceiling", "cpu_cores", "batch_mean") else f"{value:.1f}"
        cells.append(("-" if value is None else str(value))[:width].ljust(width))
    more = {key: row[key] for key in ALSO_SHOWN if row.get(key) is not None}
    return " ".join(cells) + "  " + " ".join(f"{k}={v}" for k, v in more.items())
