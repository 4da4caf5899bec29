#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What 8 bits are worth on a GPU: whole networks in FP16 beside `saccade build`'s INT8 and FP8 of them, in turns.

    python3 bench/quantised.py [MODEL.onnx|NAME ...] [--batch 32] [--precisions int8 fp8] [--turns 3] [--seconds S]
                               [--folder DIR] [--device NAME] [--budget S] [--out FILE]

NAME     of bench/peers/networks.py, with random weights, which PyTorch exports (default {networks})
--turns  runs of bench_engine of each form, one after the other; the median counts (default 3)
--folder where networks and plans are kept from run to run (default: a new one, which is removed)
--budget what would begin after so many seconds is left out (default: nothing); networks that are not exported and
         quantised by then are left out, too
--out    a file for the lines of JSON

Ranges are those of random input, nothing is refused for what it loses, and layers that are faster in FP16 stay in it,
as users' networks are built. A line of JSON for each form: milliseconds, layers in 8 bits, the loss of numbers, and by
which ways ("tensor 3") how many of its steps are computed; then a table.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER / "gpu")]
import host  # noqa: E402

NETWORKS = ["resnet50_reid", "yolox_s", "deeplabv3_r50", "vit_b_16"]
WAYS = ("tensor", "stream", "bytes", "bytes-plain", "lt")


def environment(folder):
    return host.environment() | {"SACCADE_CACHE": str(folder)}


def exported(name, folder):
    """The network's file; by a process of its own, so that several are exported at once."""
    if name.endswith(".onnx"):
        return pathlib.Path(name)
    path = folder / f"{name}.onnx"
    if not path.exists():
        run = subprocess.run([sys.executable, FOLDER / "peers/networks.py", folder, name], capture_output=True, text=True)
        if run.returncode != 0:
            path.unlink(missing_ok=True)
            raise host.Failed(f"{name} is not exported: {(run.stderr.strip().splitlines() or ['nothing was said'])[-1][:200]}")
    return path


def quantised(path, precision, options, folder):
    """Its file, and what the build said of it."""
    out = folder / f"{path.stem}-{precision}.onnx"
    said = out.with_suffix(".txt")
    if not said.exists():
        text, _, _ = host.execute([host.SACCADE, "build", path, "--precision", precision, "--device", options.device,
                                   "--max-loss", "1", "--calibration-method", "min-max", "--batch", options.batch, "-o", out],
                                  600, environment(folder))
        said.write_text(text)
    text = said.read_text()
    layers, loss = re.search(r"(\d+) of (\d+) layers", text), re.search(r"it loses (\S+)", text)
    return out, {"layers": layers[0] if layers else None, "loss": float(loss[1]) if loss else None}


def timed(path, options, folder, steps=False):
    """A row of bench_engine, and how many steps each way of 8 bits has."""
    text, _, _ = host.execute([host.bench("bench_engine"), path, "--device", options.device, "--seconds", options.seconds,
                               "--batch", options.batch] + (["--steps"] if steps else []), 300, environment(folder))
    ways = collections.Counter(re.findall(rf"\b((?:{'|'.join(WAYS)}) \d+)\b", text)) if steps else None
    return json.loads(next(line for line in text.splitlines() if line.startswith("{"))), ways


def forms(name, options, folder):
    """[(what, file, what is known of it)]: as it is, and in each precision."""
    path = exported(name, folder)
    made = [("fp16", path, {})]
    for precision in options.precisions:
        made.append((precision, *quantised(path, precision, options, folder)))
    return path.stem, made


def measured(network, made, options, folder):
    rows, times = [], collections.defaultdict(list)
    ways = {what: timed(path, options, folder, steps=True)[1] for what, path, _ in made}
    for _ in range(options.turns):
        for what, path, _ in made:
            times[what].append(timed(path, options, folder)[0]["ms"])
    for what, _, known in made:
        ms = statistics.median(times[what])
        rows.append({"network": network, "batch": options.batch, "form": what, "ms": round(ms, 4),
                     "of_fp16": round(statistics.median(times["fp16"]) / ms, 3), "ways": dict(ways[what]) or None} | known)
        print(json.dumps(rows[-1]), flush=True)
    return rows


def table(rows):
    lines = [f"{'network':<20}{'form':<7}{'ms':>9}{'times as fast':>15}{'layers':>20}{'loss':>9}"]
    for row in rows:
        if "fault" in row:
            lines.append(f"{row['network']:<20}{row['fault']}")
            continue
        lines.append(f"{row['network'][:19]:<20}{row['form']:<7}{row['ms']:>9.3f}{row['of_fp16']:>15.2f}"
                     f"{row.get('layers') or '-':>20}{format(row['loss'], '.4f') if row.get('loss') is not None else '-':>9}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("{networks}", ", ".join(NETWORKS)))
    parser.add_argument("networks", nargs="*", default=NETWORKS, metavar="MODEL")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--precisions", nargs="+", choices=["int8", "fp8"], default=["int8", "fp8"])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--budget", type=float, default=float("inf"))
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    if not host.SACCADE or not host.BENCH:
        sys.exit("bench/quantised.py: no program or benchmarks here: build them, or make a folder with scripts/gpu-pack")
    begun, rows = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="saccade-quantised-") as new, concurrent.futures.ThreadPoolExecutor() as pool:
        folder = options.folder or pathlib.Path(new)
        folder.mkdir(parents=True, exist_ok=True)
        jobs = {name: pool.submit(exported, name, folder) for name in options.networks}
        for name in options.networks:
            try:
                jobs[name].result(timeout=max(1, options.budget - (time.monotonic() - begun)) if options.budget < 1e9 else None)
                if time.monotonic() - begun > options.budget:
                    raise host.Failed("left out: the budget was used up")
                rows += measured(*forms(name, options, folder), options, folder)
            except (host.Failed, concurrent.futures.TimeoutError) as failed:
                rows.append({"network": pathlib.Path(name).stem, "fault": str(failed) or "left out: not exported in time"})
                print(json.dumps(rows[-1]), flush=True)
    print(table(rows))
    if options.out:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
