#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All figures of the GPU path, in one run on one GPU: a line of JSON a result, as it is done, and a table.

    python3 bench/gpu [--only PART ...] [--budget S] [--seconds S] [--device NAME] [--out FILE]

--only     parts: {parts} (default: all, in this order)
--budget   stop before a part that begins later than so many seconds (default 360)
--seconds  of video work a measurement (default 4)
--device   default cuda; with cpu this program can be tried where no GPU is, its figures mean nothing
--out      the JSON lines go there, and one JSON file of all beside it; default: gpu.jsonl in $OUT, or here
"""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import host  # noqa: E402
import parts  # noqa: E402


def commit():
    packed = host.HERE / "commit"
    if packed.exists():
        return packed.read_text().strip()
    run = subprocess.run(["git", "-C", host.HERE, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return run.stdout.strip() or None


def about():
    """The machine and the versions."""
    try:
        said, _, _ = host.execute([host.SACCADE, "doctor", "--json"], 60)
        doctor = json.loads(said)
    except (host.Failed, ValueError) as failed:
        doctor = str(failed)
    return {"part": "about", "commit": commit(), "date": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
            "gpu": host.NVML.name(), "driver": host.NVML.driver(), "cores": os.cpu_count(),
            "system": f"{platform.system()}-{platform.machine()}, {'-'.join(platform.libc_ver())}", "python": platform.python_version(), "doctor": doctor}


def missing(device):
    if not host.SACCADE or not host.BENCH or not host.CLIPS:
        return "no program, benchmarks or clips here: scripts/gpu-pack makes a folder that has them"
    if device != "cpu" and not host.NVML.device:
        return "no NVIDIA GPU here"
    return None


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("{parts}", ", ".join(parts.PARTS)))
    parser.add_argument("--only", nargs="+", choices=list(parts.PARTS), default=list(parts.PARTS), metavar="PART")
    parser.add_argument("--budget", type=float, default=360)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", default=os.path.join(os.environ.get("OUT", "."), "gpu.jsonl"))
    options = parser.parse_args()
    if missing(options.device):
        sys.exit(f"bench/gpu: {missing(options.device)}")
    begun, rows = time.monotonic(), [about()]
    with tempfile.TemporaryDirectory(prefix="saccade-bench-") as folder, open(options.out, "w") as out:
        def tell(row):
            out.write(json.dumps(row) + "\n")
            out.flush()
        tell(rows[0])
        print(f"{rows[0]['gpu']}, driver {rows[0]['driver']}, {rows[0]['cores']} cores, saccade {rows[0]['commit']}, "
              f"{rows[0]['date']}", flush=True)
        bench = parts.Bench(folder, options.seconds, options)
        for name in options.only:
            if time.monotonic() - begun > options.budget:
                tell({"part": name, "fault": "left out: the budget was used up"})
                print(f"{name}: left out, the budget of {options.budget:.0f} s was used up")
                continue
            print(f"-- {name}: {parts.PARTS[name].__doc__.splitlines()[0]}", flush=True)
            try:
                for row in parts.PARTS[name](bench):
                    rows.append({"part": name} | row)
                    tell(rows[-1])
                    print(parts.text(row), flush=True)
            except host.Failed as failed:
                tell({"part": name, "fault": str(failed)})
                print(f"{name}: {failed}")
    pathlib.Path(options.out).with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    print(f"{len(rows) - 1} results in {time.monotonic() - begun:.0f} s: {options.out}")


if __name__ == "__main__":
    main()
