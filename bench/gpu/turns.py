#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two programs in turns on one GPU, before and after a change: a line of JSON per run. Each other turn begins with the
other program. Each has plans of its own, made in a run that is not printed.

    python3 bench/gpu/turns.py OLD NEW [--turns N] [--frames N] [--only CASE ...] [--device NAME]

OLD, NEW   folders with bin/saccade, as scripts/gpu-pack makes them
--turns    runs of each program and case (default 9)
--frames   of a stream (default 720; runs in real time and with -o: a third of it)
--only     cases: {cases} (default: all)
--device   default cuda; cpu tries this program without a GPU, its figures mean nothing
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]
import host  # noqa: E402
from loop import loop  # noqa: E402

# clip, streams, share of the frames, options; {out} is an empty folder
CASES = {"h264": ("h264_1080p", 16, 1, ["--mot", "{out}/"]),
         "hevc": ("hevc_1080p", 32, 1, ["--mot", "{out}/"]),
         "realtime": ("h264_1080p", 16, 1 / 3, ["--realtime", "--mot", "{out}/"]),
         "output": ("h264_1080p", 8, 1 / 3, ["-o", "{out}/"])}


def run(program, case, options, clips):
    """One run's figures, or its fault."""
    name, streams, share, words = CASES[case]
    frames = max(1, int(options.frames * share))
    clip = pathlib.Path(clips) / f"{name}_{frames}.mp4"
    if not clip.exists():
        loop(host.CLIPS / f"{name}.mp4", clip, frames)
    host.SACCADE = program / "bin/saccade"
    os.environ["SACCADE_CACHE"] = f"{clips}/plans of {'_'.join(program.parts[1:])}"
    with tempfile.TemporaryDirectory(prefix="saccade-turns-") as folder:
        inputs = host.inputs(clip, streams, folder)
        out = pathlib.Path(folder) / "out"
        out.mkdir()
        try:
            stats = host.track(inputs, "--device", options.device, *(word.format(out=out) for word in words), folder=folder)
        except host.Failed as failed:
            return {"fault": str(failed)}
    return {"frames": stats["frames"], "fps": round(stats["fps"], 1), "elapsed_s": round(stats["elapsed_s"], 2),
            "cpu_s": stats["cpu_s"], "latency_ms": {key: stats["latency"][f"{key}_ms"] for key in ("p50", "p99")},
            "pool_bytes_peak": stats["pool"]["bytes_peak"], "detections": stats["detections"]}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("{cases}", ", ".join(CASES)))
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--frames", type=int, default=720)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES), metavar="CASE")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    programs = {"old": options.old.resolve(), "new": options.new.resolve()}
    missing = [str(program) for program in programs.values() if not (program / "bin/saccade").exists()]
    if missing or not host.CLIPS:
        sys.exit(f"bench/gpu/turns.py: no bin/saccade in {', '.join(missing)}" if missing else
                 "bench/gpu/turns.py: no clips here: scripts/gpu-pack makes a folder that has them")
    with tempfile.TemporaryDirectory(prefix="saccade-clips-") as clips:
        for turn in range(-1, options.turns):
            for case in options.only:
                for who in sorted(programs, reverse=turn % 2 == 0):
                    row = run(programs[who], case, options, clips)
                    if turn >= 0:
                        print(json.dumps({"case": case, "who": who, "turn": turn} | row), flush=True)


if __name__ == "__main__":
    main()
