#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One network as its users run it: eager PyTorch, the same as a CUDA graph, torch.compile, and saccade; milliseconds of a
batch, random weights, one GPU, one run.

    python3 bench/peers/time_columns.py [--network NAME] [--rows fp32:1,fp16:1,...] [--mode frozen] [--seconds S]
                                        [--budget S] [--folder DIR] [--device NAME]

--network  of networks.py (default deeplabv3plus_r50)
--rows     precision and batch (default {rows}); fp32 is without TF32 on both sides, tf32 with it; int8
           and fp8 are saccade's own, made of the file with random input, beside PyTorch in float16, which has no
           convolution of 8 bits on a GPU
--mode     of torch.compile: frozen (weights as constants, CUDA graphs: its best in most cases), compiled, max-autotune,
           none
--budget   what is not compiled after 0.6 of so many seconds is left out (default 120)
--device   default cuda; cpu tries this program without a GPU: its figures mean nothing, and there is no CUDA graph

Eagerly PyTorch's maps lie channels last or not, whichever is faster; compiled channels last. All rows are compiled at once, a process each; each is
timed while nothing else runs; then bench_engine. On a GPU both count by events, input and output there.
A line of JSON per row, and a table.
"""
import argparse
import copy
import json
import os
import pathlib
import subprocess
import sys
import time

from peer_process import PeerProcess, wait
from time_networks import HERE, ROUNDS, compiled, milliseconds

ROWS = "fp32:1,fp16:1,fp16:4,fp16:8,int8:8"
IN_8_BITS = ("int8", "fp8")
COLUMNS = {"eager_ms": "eager", "graph_ms": "CUDA graph", "compiled_ms": "torch.compile", "ours_ms": "saccade"}


# ---- PyTorch's side, a process a row ----

def timed(run, seconds, torch, on_gpu):
    if on_gpu:
        return round(milliseconds(run, seconds, torch)[0], 4)
    run()
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - begun))
    return round(sorted(times)[ROUNDS // 2], 4)


def captured(module, x, torch):
    """A run of it as a CUDA graph: the input stays where it is."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            module(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        module(x)
    return graph.replay


def faster(module, x, options, torch):
    """The network and an input, in the order of numbers that is faster eagerly."""
    best = None
    for name, order in (("channels last", torch.channels_last), ("plain", torch.contiguous_format)):
        turned, picture = copy.deepcopy(module).to(memory_format=order), x.to(memory_format=order)
        ms = timed(lambda: turned(picture), options.seconds / 4, torch, options.device != "cpu")
        if not best or ms < best[0]:
            best = ms, name, turned, picture
    return best[1:]


def child(options):
    import torch
    import networks
    on_gpu, (precision, batch) = options.device != "cpu", options.child.split(":")
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = precision != "fp32"
    torch.set_grad_enabled(False)
    dtype = torch.half if precision == "fp16" else torch.float
    module = networks.build(options.network, options.device).to(dtype)
    x = torch.rand((int(batch), *networks.NETWORKS[options.network].shape), device=options.device, dtype=dtype)
    row, runs = {"torch": torch.__version__, "mode": options.mode}, {}
    if options.mode != "none":
        begun, picture = time.monotonic(), x.to(memory_format=torch.channels_last)
        fast = compiled(copy.deepcopy(module).to(memory_format=torch.channels_last), options.mode, torch)
        if on_gpu and options.mode != "frozen": # freezing takes what has a fixed address for a weight
            torch._dynamo.mark_static_address(picture)
        for _ in range(4): # compile, record, replay
            fast(picture)
        row["compile_s"], runs["compiled_ms"] = round(time.monotonic() - begun, 1), lambda: fast(picture)
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    row["order"], module, x = faster(module, x, options, torch)
    runs["eager_ms"] = lambda: module(x)
    if on_gpu:
        runs["graph_ms"] = captured(module, x, torch)
    for column, run in runs.items():
        row[column] = timed(run, options.seconds, torch, on_gpu)
    print(json.dumps(row), flush=True)


def theirs_for(row, options):
    """The row of PyTorch that it is compared with."""
    precision, batch = row.split(":")
    return f"{'fp16' if options.device != 'cpu' else 'fp32'}:{batch}" if precision in IN_8_BITS else row


def open_peer(row, options):
    return PeerProcess(__file__, [row, "--network", options.network, "--mode", options.mode, "--seconds", options.seconds,
                                  "--device", options.device],
                       pathlib.Path(options.folder) / f"columns_{row.replace(':', '_')}.log")


def measure(peer, seconds):
    """Its figures, or why there are none; it has ended then."""
    if peer.ready and not peer.ended:
        peer.tell("go")
        wait([peer], seconds, lambda peer: False)
    peer.end()
    return peer.rows[-1] if peer.rows else {"fault": peer.fault()}


# ---- both ----

def ours(row, options, path):
    import host
    precision, batch = row.split(":")
    lost = {}
    try:
        if precision in IN_8_BITS:
            path, loss = host.quantised(path, precision, options.device, options.folder)
            precision, lost = "fp16", {"ours_loss": loss}
        command = [host.bench("bench_engine"), path, "--device", options.device, "--batch", batch, "--seconds",
                   options.seconds, "--precision", precision if options.device != "cpu" else "fp32"]
        text, _, _ = host.execute(command, 120)
    except host.Failed as failed:
        return {"fault": str(failed)}
    figures = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
    return {"ours_ms": figures["ms"], "ours_plan_ms": figures["plan_ms"], "ours_activations_mb": figures["activations_mb"],
            "ours_buffers_mb": figures["buffers_mb"]} | lost


def export(options):
    """In a process of its own, which gives its memory back."""
    path = pathlib.Path(options.folder) / f"{options.network}.onnx"
    if not path.exists():
        subprocess.run([sys.executable, HERE / "networks.py", options.folder, options.network], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=options.budget)
    return path


def compare(options):
    os.makedirs(options.folder, exist_ok=True)
    begun, names = time.monotonic(), options.rows.split(",")
    peers = {row: open_peer(row, options) for row in dict.fromkeys(theirs_for(name, options) for name in names)}
    try:
        path = export(options)
        wait(peers.values(), 0.6 * options.budget - (time.monotonic() - begun), lambda peer: peer.ready)
        for peer in peers.values():
            if not peer.ready: # else it would compile while others are timed
                peer.end()
        theirs = {row: measure(peer, 0.2 * options.budget) for row, peer in peers.items()}
    finally:
        for peer in peers.values():
            peer.end()
    rows = []
    for row in names:
        precision, batch = row.split(":")
        mine = ours(row, options, path)
        result = {"network": options.network, "precision": precision, "batch": int(batch)} | theirs[theirs_for(row, options)] | mine
        known = [result[column] for column in COLUMNS if column != "ours_ms" and column in result]
        if known and "ours_ms" in result:
            result["fastest_over_ours"] = round(min(known) / result["ours_ms"], 3)
        rows.append(result)
        print(json.dumps(result), flush=True)
    return rows


def table(rows):
    lines = [f"{'precision, batch':<18}" + "".join(f"{title:>15}" for title in COLUMNS.values()) + f"{'fastest/ours':>14}{'images/s':>10}"]
    for row in rows:
        cells = [f"{row[column]:.3f}" if column in row else "-" for column in COLUMNS]
        rate = f"{1e3 * row['batch'] / row['ours_ms']:.0f}" if "ours_ms" in row else "-"
        lines.append(f"{row['precision'] + ', ' + str(row['batch']):<18}" + "".join(f"{cell:>15}" for cell in cells)
                     + f"{row.get('fastest_over_ours', '-'):>14}{rate:>10}  {row.get('fault', '')}".rstrip())
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("{rows}", ROWS))
    parser.add_argument("--network", default="deeplabv3plus_r50")
    parser.add_argument("--rows", default=ROWS)
    parser.add_argument("--mode", default="frozen", choices=["frozen", "compiled", "max-autotune", "none"])
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--budget", type=float, default=120)
    parser.add_argument("--folder", default="/tmp/saccade-peers")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
    else:
        print(table(compare(options)))


if __name__ == "__main__":
    main()
