#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The engine against torch.compile: ms of a batch, networks with random weights, float16, one GPU, one run.

    bench/peers/time_networks.py [--network NAME ...] [--mode frozen|compiled|max-autotune|none] [--seconds S]
                                 [--batch 1,32] [--budget S] [--steps] [--folder DIR] [--hold]

PyTorch gets float16, channels last, cuDNN's benchmark, torch.compile with CUDA graphs ("frozen": weights as
constants too, its best form in most cases). It compiles all networks at once, a process each, largest batch first;
each is timed while no other is; then bench_engine. Both count by CUDA events, input and output on the GPU. Prints a
line of JSON per network and batch, and a table at the end. After 0.6 of --budget seconds no compilation
is started, after 0.8 those under way are stopped; what was not compiled is left out, and the output says
so. --batch: only these of a network's sizes. --hold: when all is compiled print "# ready", and continue at a
line on standard input.
"""
import argparse
import fcntl
import json
import os
import pathlib
import select
import statistics
import sys
import time

from peer_process import PeerProcess, wait

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "gpu")]
ROUNDS = 9


# ---- PyTorch's side, a process a network ----

def compiled(module, mode, torch):
    if mode == "none":
        return module
    if mode == "frozen":
        import torch._inductor.config
        torch._inductor.config.freezing = True
    torch._dynamo.config.cache_size_limit = 64
    return torch.compile(module, mode="max-autotune" if mode == "max-autotune" else "reduce-overhead", dynamic=False)


def milliseconds(run, seconds, torch):
    def timed(n):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(n):
            run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / n
    timed(5)
    runs = max(1, min(10000, int(seconds * 1e3 / ROUNDS / timed(3))))
    times = [timed(runs) for _ in range(ROUNDS)]
    return statistics.median(times), min(times)


def enough():
    """Whether the parent wants what is there."""
    return bool(select.select([sys.stdin], [], [], 0)[0])


def child(name, mode, seconds, batches):
    import torch
    import networks
    torch.backends.cudnn.benchmark = True
    torch.set_grad_enabled(False)
    network = networks.NETWORKS[name]
    module = networks.build(name, "cuda").half().to(memory_format=torch.channels_last)
    fast, done = compiled(module, mode, torch), []
    for batch in sorted(batches, reverse=True):
        x = torch.rand((batch, *network.shape), device="cuda", dtype=torch.half)
        x = x.to(memory_format=torch.channels_last)
        if mode not in ("none", "frozen"): # freezing takes what has a fixed address for a weight, and folds the network away
            torch._dynamo.mark_static_address(x)
        begun = time.monotonic()
        for _ in range(4): # compile, record, replay
            fast(x)
        torch.cuda.synchronize()
        print(json.dumps({"compiled": batch, "s": round(time.monotonic() - begun, 1)}), flush=True)
        done.append((batch, x))
        if enough():
            break
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()  # enough
    sys.stdin.readline()  # go
    with open("/tmp/saccade-peers.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for batch, x in done:
            ms, best = milliseconds(lambda: fast(x), seconds, torch)
            print(json.dumps({"batch": batch, "ms": round(ms, 4), "best_ms": round(best, 4)}), flush=True)


# ---- both in turns ----

class Peer(PeerProcess):
    """One of a network, by the size of its batches."""

    def __init__(self, name, batches, options):
        super().__init__(__file__, [name, "--mode", options.mode, "--seconds", options.seconds, "--batches", ",".join(map(str, batches))],
                         pathlib.Path(options.folder) / f"peer_{name}.log", lambda line: print(f"# torch, {name}: {line}", flush=True))
        self.name, self.batches = name, batches

    def timed(self, batch):
        return next((row for row in self.rows if row.get("batch") == batch), {})

    def compiled(self, batch):
        return next((row["s"] for row in self.rows if row.get("compiled") == batch), None)


def ours(name, batches, options):
    """{batch: row} of bench_engine, and what it said when it failed. One process makes the plans, which are kept, and
    another is timed, as in every start but the first, in which networks were up to 7 % slower at batch 1."""
    import host
    command = [host.bench("bench_engine"), pathlib.Path(options.folder) / f"{name}.onnx", "--precision", "fp16",
               "--batch", ",".join(map(str, batches)), "--seconds"]
    try:
        host.execute([*command, 0.01], options.budget)
        text, _, _ = host.execute([*command, options.seconds, *(["--steps"] if options.steps else [])], options.budget)
    except host.Failed as failed:
        return {}, str(failed)
    for line in text.splitlines():
        if line.startswith("#"):
            print(line)
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {row["batch"]: row for row in rows}, None


def compare(options):
    import torch
    import networks
    if not torch.cuda.is_available():
        sys.exit("time_networks.py: PyTorch finds no GPU")
    os.makedirs(options.folder, exist_ok=True)
    begun, table = time.monotonic(), []
    peers = []
    for name in options.network or ["yolox_s", "resnet50_reid", "deeplabv3_r50"]:
        batches = [n for n in networks.NETWORKS[name].batches if n in (options.batch or [n])]
        if not batches:
            sys.exit(f"time_networks.py: {name} is not timed with these batches, but with {networks.NETWORKS[name].batches}")
        peers.append(Peer(name, batches, options))
    for peer in peers:
        path = pathlib.Path(options.folder) / f"{peer.name}.onnx"
        if not path.exists():
            try:
                networks.export(peer.name, path)
            except Exception as error:  # of any library; the others are timed nevertheless
                print(f"# {peer.name} is not exported: {repr(error)[:200]}", flush=True)
                path.unlink(missing_ok=True)
                continue
            print(f"# exported {path} after {time.monotonic() - begun:.0f} s", flush=True)
    wait(peers, 0.6 * options.budget - (time.monotonic() - begun), lambda peer: peer.ready)
    for peer in peers:
        peer.tell("enough")
    wait(peers, 0.8 * options.budget - (time.monotonic() - begun), lambda peer: peer.ready)
    for peer in peers:
        if not peer.ready:  # else it would compile while others are timed
            peer.end()
    if options.hold:
        print("# ready", flush=True)
        sys.stdin.readline()
    for peer in peers:
        peer.tell("go")
    wait(peers, 0.2 * options.budget, lambda peer: False)
    for peer in peers:
        peer.end()
    for peer in peers:
        mine, my_fault = ours(peer.name, peer.batches, options)
        for batch in peer.batches:
            a, b = mine.get(batch, {}).get("ms"), peer.timed(batch).get("ms")
            row = {"part": "engine", "network": peer.name, "batch": batch, "ours_ms": a, "torch_ms": b,
                   "ours_best_ms": mine.get(batch, {}).get("best_ms"), "torch_best_ms": peer.timed(batch).get("best_ms"),
                   "ours_plan_ms": mine.get(batch, {}).get("plan_ms"), "torch_compile_s": peer.compiled(batch), "torch": torch.__version__,
                   "cudnn": torch.backends.cudnn.version(), "mode": options.mode,
                   "torch_over_ours": round(b / a, 3) if a and b else None,
                   "fault": my_fault or (peer.fault() if b is None else None)}
            print(json.dumps(row), flush=True)
            table.append(row)
    print(f"{'network':<16}{'batch':>6}{'ours ms':>10}{'torch ms':>10}{'torch/ours':>12}")
    for row in table:
        cells = [f"{row[key]:.3f}" if row[key] else "-" for key in ("ours_ms", "torch_ms", "torch_over_ours")]
        print(f"{row['network']:<16}{row['batch']:>6}{cells[0]:>10}{cells[1]:>10}{cells[2]:>12}  {row['fault'] or ''}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--network", action="append")
    parser.add_argument("--mode", default="frozen", choices=["frozen", "compiled", "max-autotune", "none"])
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--budget", type=float, default=200)
    parser.add_argument("--batch", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--folder", default="/tmp/saccade-peers")
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--batches", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.mode, options.seconds, [int(n) for n in options.batches.split(",")])
    else:
        compare(options)


if __name__ == "__main__":
    main()
