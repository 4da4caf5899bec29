#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each part of the engine is worth: networks with one thing left out at a time, in one run on one device: speed and
memory. A line of JSON per result as it is made, and one table.

    python3 bench/ablation.py [MODEL.onnx ...] [--device cuda] [--batch N] [--seconds S] [--turns N] [--only NAME ...]
                              [--passes] [--track CLIP] [--streams N] [--budget S] [--out FILE]

MODEL      files with an input whose size is known and a batch that is free; none: --track alone
--batch    frames of a run (default 8)
--turns    runs of each; their median counts (default 1)
--only     what to leave out (default: all; {names})
--passes   each pass of the graph by itself too, beside all of them ("fusion") and attention
--track    a clip, for what is left out of `saccade track`: it runs for --seconds times four, as --streams inputs (8)
--budget   what would begin after so many seconds is left out, and the output says so (default: no end)
--out      a file for the lines of JSON

The engine leaves out what SACCADE_WITHOUT names (docs/troubleshooting.md); a row where that changes which kernels
there are has plans of its own, made in it. Precisions are the next one up, and those of 8 bits in their place: the
network as `saccade build` quantises it with random input, "loss" of its numbers; then that with float's kernels in place
of those of 8 bits. "batching": as many runs of one frame as the batch has.
"buffer-pool": no buffer is kept; "page-locked": what crosses lies in ordinary host memory. Runs of a network use the same buffers again
and again, and nothing crosses: what these two are worth is seen with --track. "early-launch": a kernel is launched when the
one before it is done.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER / "gpu"), str(FOLDER)]
import host  # noqa: E402
from loop import loop  # noqa: E402

SHOWN = ("attention",)                       # passes that have a row without --passes
ON_GPU = {"cuda-graph", "kernel-trials", "page-locked", "early-launch"}     # what the CPU does not have
DEVICE = ("buffer-pool", "page-locked", "early-launch")     # what a device leaves out, behind the names of the passes
PRECISIONS = {"cuda": {"fp16": "tf32", "fp16 and tf32": "fp32"}, "cpu": {}}
IN_8_BITS = {"cuda": ("fp16", ("int8", "fp8")), "cpu": ("fp32", ("int8",))}    # what is left out, what is there instead
TRACK = {"batching": ["--max-batch", "1"], "frames that stay on the GPU": ["--zero-copy", "off"]}


def engine(path, options, folder, batches, precision, without):
    """{batch: row} of bench_engine. One process makes the plans, another is timed, as in every start but the first: on one H200 the
    process that planned was 5 % slower."""
    env = host.environment() | {"SACCADE_CACHE": str(folder), "SACCADE_WITHOUT": without}
    command = [host.bench("bench_engine"), path, "--device", options.device, "--seconds", options.seconds,
               "--batch", ",".join(map(str, batches))] + (["--precision", precision] if precision else [])
    if options.device != "cpu":
        host.execute([*command, "--seconds", 0.01], 300, env)
    text, _, _ = host.execute(command, 300, env)
    return {row["batch"]: row for row in map(json.loads, filter(lambda line: line.startswith("{"), text.splitlines()))}


def without_batching(path, options, folder):
    row = engine(path, options, folder, [1], None, "")[1]
    return row | {"ms": row["ms"] * options.batch, "batch": options.batch, "runs_of": 1}


def in_8_bits(path, options, folder, precision, without=""):
    """A row of the quantised network, which is made when it is first asked for."""
    out = folder / f"{path.stem}-{precision}.onnx"
    if out not in options.quantised:
        options.quantised[out] = host.quantised(path, precision, options.device, folder,
                                                env=host.environment() | {"SACCADE_CACHE": str(folder)})[1]
    row = engine(out, options, folder, [options.batch], None, without)[options.batch]
    return row | {"loss": options.quantised[out]}


def cases(options, names):
    """What is left out: a function from model and folder to a row of bench_engine."""
    def of(precision=None, without=""):
        return lambda path, folder: engine(path, options, folder, [options.batch], precision, without)[options.batch]
    kind = "cpu" if options.device == "cpu" else "cuda"
    passes = [name for name in names[names.index("kernel-trials") + 1:] if name not in DEVICE]
    wanted = [name for name in names if name not in passes or name in SHOWN or options.passes]
    table = {name: of(without=name) for name in wanted if kind == "cuda" or name not in ON_GPU}
    table |= {name: of(precision) for name, precision in PRECISIONS[kind].items()}
    table |= eight_bits(options, kind)
    if options.batch > 1:
        table["batching"] = lambda path, folder: without_batching(path, options, folder)
    return {"nothing": of()} | {name: run for name, run in table.items() if not options.only or name in options.only}


def eight_bits(options, kind):
    def of(precision, without=""):
        return lambda path, folder: in_8_bits(path, options, pathlib.Path(folder), precision, without)
    instead_of, precisions = IN_8_BITS[kind]
    table = {}
    for precision in precisions:
        table[f"{instead_of}: {precision}"] = of(precision)
        table[f"{instead_of}: {precision}, less its kernels"] = of(precision, "quantised")
    return table


def pipeline(options, folder):
    """The same for `saccade track`: a function from the folder to a row."""
    clip = folder / "clip.mp4"
    loop(options.track, clip, int(120 * options.seconds))
    inputs = host.inputs(clip, options.streams, folder)

    def of(words=(), without=""):
        def run(_, plans):
            os.environ |= {"SACCADE_CACHE": str(plans), "SACCADE_WITHOUT": without}
            for _ in range(2): # the first makes the plans
                stats = host.track(inputs, "--device", options.device, *words, folder=folder, timeout=300)
            return {"ms": 1e3 / stats["fps"], "fps": round(stats["fps"], 1), "buffers_mb": round(stats["pool"]["bytes_peak"] / 1e6, 1),
                    "cpu_cores": stats["watch"].get("cpu_cores")}
        return run
    table = {name: of(words) for name, words in TRACK.items() if options.device != "cpu" or name == "batching"}
    table |= {name: of(without=name) for name in ("fusion", "cuda-graph", *DEVICE) if options.device != "cpu" or name not in ON_GPU}
    return {"nothing": of()} | {name: run for name, run in table.items() if not options.only or name in options.only}


def measured(name, runs, path, options, folder, begun):
    """A dict for each thing left out."""
    whole, rows = None, []
    for without, run in runs.items():
        row = {"what": name, "batch": options.batch if path else None, "without": without}
        if time.monotonic() - begun > options.budget and whole:
            rows.append(row | {"left_out": "the budget was used up"})
            continue
        try:
            turns = [run(path, folder) for _ in range(options.turns)]
        except host.Failed as failed:
            rows.append(row | {"fault": str(failed)})
            continue
        row |= turns[0] | {"ms": statistics.median(turn["ms"] for turn in turns)}
        whole = whole or row
        row |= {"times_as_long": round(row["ms"] / whole["ms"], 3), "ms": round(row["ms"], 4)}
        if row.get("activations_mb") is not None:
            row["activations_times"] = round(row["activations_mb"] / max(whole["activations_mb"], 1e-3), 2)
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def table(rows):
    lines = [f"{'':<20}{'without':<28}{'ms':>9}{'times':>8}{'steps':>7}{'activations MB':>16}{'buffers MB':>12}{'loss':>9}"]
    for row in rows:
        number = lambda key, form: format(row[key], form) if row.get(key) is not None else "-"
        lines.append(f"{row['what'][:19]:<20}{row['without']:<28}{number('ms', '.3f'):>9}{number('times_as_long', '.2f'):>8}"
                     f"{number('steps', 'd'):>7}{number('activations_mb', '.1f'):>16}{number('buffers_mb', '.1f'):>12}"
                     f"{number('loss', '.4f'):>9}  {row.get('fault') or row.get('left_out') or ''}".rstrip())
    return "\n".join(lines)


def main():
    names = host.execute([host.bench("bench_engine"), "--optimisations"], 10)[0].split() if host.BENCH else []
    parser = argparse.ArgumentParser(usage=__doc__.replace("{names}", ", ".join(names + ["batching", *PRECISIONS["cuda"], *eight_bits(None, "cuda")])))
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--passes", action="store_true")
    parser.add_argument("--track", type=pathlib.Path)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--budget", type=float, default=float("inf"))
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    if not names:
        sys.exit("bench/ablation.py: no benchmarks here: build them, or make a folder with scripts/gpu-pack")
    if not options.models and not options.track:
        sys.exit("bench/ablation.py: neither a model nor --track")
    begun, rows, options.quantised = time.monotonic(), [], {}
    options.passes = options.passes or bool(set(options.only or ()) & set(names))
    with tempfile.TemporaryDirectory(prefix="saccade-ablation-") as folder:
        for path in options.models:
            rows += measured(path.stem, cases(options, names), path, options, folder, begun)
        if options.track:
            runs = pipeline(options, pathlib.Path(folder))
            rows += measured(f"track, {options.streams} inputs", runs, None, options, folder, begun)
    print(table(rows))
    if options.out:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
