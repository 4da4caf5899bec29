#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All figures of the GPU path, in one run on one GPU: a line of JSON per result, as it is made,
and a table.

    python3 bench/gpu [--only PART ...] [--budget S] [--peer-budget S] [--seconds S] [--vr-seconds S]
                      [--post-budget S] [--part-budget S] [--device NAME] [--out FILE]

--only     parts: {parts} (default: all, in this order)
--budget   leave out the parts that would begin after so many seconds (default 900)
--peer-budget  seconds that PyTorch may compile, while parts without timing run (default 170)
--seconds  length of a measurement with video (default 4)
--vr-seconds  length of a run at a headset's pace (default 10)
--post-budget  seconds for the part "post", most of which PyTorch compiles (default 120)
--part-budget  of the part "segment": what would begin after so many seconds of it is left out (default: nothing)
--device   default cuda; cpu tries this program without a GPU, its figures mean nothing
--out      file for the JSON lines, with one JSON file of all beside it; default: gpu.jsonl in
           $OUT, else in the current folder
"""
import argparse
import json
import os
import pathlib
import platform
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import host  # noqa: E402
import mattes  # noqa: E402
import parts  # noqa: E402

PARTS = parts.PARTS | mattes.PARTS


def about():
    """The machine and the versions."""
    try:
        said, _, _ = host.execute([host.SACCADE, "doctor", "--json"], 60)
        doctor = json.loads(said)
    except (host.Failed, ValueError) as failed:
        doctor = str(failed)
    return {"part": "about", "commit": host.commit(), "date": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
            "gpu": host.NVML.name(), "driver": host.NVML.driver(), "cores": os.cpu_count(),
            "system": f"{platform.system()}-{platform.machine()}, {'-'.join(platform.libc_ver())}", "python": platform.python_version(), "doctor": doctor}


def missing(device):
    if not host.SACCADE or not host.BENCH or not host.CLIPS:
        return "no program, benchmarks or clips here: scripts/gpu-pack makes a folder that has them"
    if device != "cpu" and not host.NVML.device:
        return "no NVIDIA GPU here"
    return None


class Results:
    """Rows as they come: to the file at once, and all of them at the end."""

    def __init__(self, path):
        self.path, self.rows, self.file = pathlib.Path(path), [], open(path, "w")

    def add(self, row, text):
        self.rows.append(row)
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()
        print(text, flush=True)

    def end(self):
        self.file.close()
        self.path.with_suffix(".json").write_text(json.dumps(self.rows, indent=1) + "\n")


def run_part(bench, name, results):
    bench.peers.begin() if name != "warm" else None
    bench.peers.quiet() if name not in parts.UNTIMED else None
    print(f"-- {name}: {PARTS[name].__doc__.splitlines()[0]}", flush=True)
    begun, fault = time.monotonic(), {}
    try:
        for row in PARTS[name](bench):
            results.add({"part": name} | row, parts.text(row))
    except host.Failed as failed:
        fault = {"fault": str(failed)}
    took = {"part": name, "took_s": round(time.monotonic() - begun, 1)} | fault
    results.add(took, f"-- {took['took_s']:.0f} s{', ' + fault['fault'] if fault else ''}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("{parts}", ", ".join(PARTS)))
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), metavar="PART")
    parser.add_argument("--budget", type=float, default=900)
    parser.add_argument("--peer-budget", type=float, default=170)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--vr-seconds", type=float, default=10)
    parser.add_argument("--post-budget", type=float, default=120)
    parser.add_argument("--part-budget", type=float, default=float("inf"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", default=os.path.join(os.environ.get("OUT", "."), "gpu.jsonl"))
    options = parser.parse_args()
    if missing(options.device):
        sys.exit(f"bench/gpu: {missing(options.device)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)) # as `timeout` ends it: what it began ends with it
    begun, results, here = time.monotonic(), Results(options.out), about()
    results.add(here, "{gpu}, driver {driver}, {cores} cores, saccade {commit}, {date}".format_map(here))
    with tempfile.TemporaryDirectory(prefix="saccade-bench-") as folder:
        bench = parts.Bench(folder, options.seconds, options)
        try:
            for name in options.only:
                if time.monotonic() - begun <= options.budget:
                    run_part(bench, name, results)
                else:
                    results.add({"part": name, "left_out": "the budget was used up"},
                                f"-- {name}: left out, the budget of {options.budget:.0f} s was used up")
        finally:
            bench.peers.end()
            results.end()
    print(f"{len(results.rows) - 1} results in {time.monotonic() - begun:.0f} s: {options.out}")


if __name__ == "__main__":
    main()
