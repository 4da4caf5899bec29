#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The engine beside torch.compile: ms of a batch, networks with random weights, float16, one GPU, one run.

    bench/peers/time_networks.py [--network NAME ...] [--mode frozen|compiled|max-autotune|none] [--seconds S]
                                 [--budget S] [--steps] [--folder DIR]

PyTorch gets float16, channels last, cuDNN's benchmark, torch.compile with CUDA graphs ("frozen": weights as
constants too, its best form in most cases). It compiles all networks at once, a process each, then each is timed
while nothing else runs; then bench_engine. Both count by CUDA events, input and output on the GPU. A line of JSON
a network and batch, as it is done; last a table. What is not compiled after --budget seconds is left out, and said.
"""
import argparse
import json
import os
import pathlib
import selectors
import statistics
import subprocess
import sys
import time

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


def child(name, mode, seconds):
    import torch
    import networks
    torch.backends.cudnn.benchmark = True
    torch.set_grad_enabled(False)
    network = networks.NETWORKS[name]
    module = networks.build(name, "cuda").half().to(memory_format=torch.channels_last)
    fast, ready = compiled(module, mode, torch), []
    for batch in network.batches:
        x = torch.rand((batch, *network.shape), device="cuda", dtype=torch.half)
        x = x.to(memory_format=torch.channels_last)
        if mode != "none":
            torch._dynamo.mark_static_address(x)
        begun = time.monotonic()
        for _ in range(4): # compile, record, replay
            fast(x)
        torch.cuda.synchronize()
        print(json.dumps({"compiled": batch, "s": round(time.monotonic() - begun, 1)}), flush=True)
        ready.append((batch, x))
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    for batch, x in ready:
        ms, best = milliseconds(lambda: fast(x), seconds, torch)
        print(json.dumps({"batch": batch, "ms": round(ms, 4), "best_ms": round(best, 4)}), flush=True)


# ---- both in turns ----

class Peer:
    def __init__(self, name, options):
        self.name, self.ready, self.lines = name, False, []
        self.log = open(pathlib.Path(options.folder) / f"peer_{name}.log", "w")
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--child", name, "--mode", options.mode, "--seconds", str(options.seconds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            return False
        self.ready = self.ready or "ready" in line
        return True

    def times(self):
        """{batch: ms}; the process ends with it."""
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        rows = [json.loads(line) for line in self.process.stdout]
        return {row["batch"]: row for row in rows if "ms" in row}

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def fault(self):
        self.log.flush()
        lines = pathlib.Path(self.log.name).read_text().strip().splitlines()
        return lines[-1][:200] if lines else "it said nothing"


def wait_for(peers, budget):
    """Until all are compiled, or have ended, or time is up."""
    end, waiting = time.monotonic() + budget, selectors.DefaultSelector()
    for peer in peers:
        waiting.register(peer.process.stdout, selectors.EVENT_READ, peer)
    while waiting.get_map() and time.monotonic() < end:
        for key, _ in waiting.select(1):
            if not key.data.read() or key.data.ready:
                waiting.unregister(key.fileobj)


def ours(name, network, options):
    """{batch: row} of bench_engine, and what it said when it failed."""
    import host
    command = [host.bench("bench_engine"), pathlib.Path(options.folder) / f"{name}.onnx", "--precision", "fp16",
               "--batch", ",".join(map(str, network.batches)), "--seconds", options.seconds]
    command += ["--steps"] if options.steps else []
    try:
        text, _, _ = host.execute(command, options.budget)
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
    names = options.network or ["yolox_s", "deeplabv3_r50", "resnet50_reid"]
    peers = [Peer(name, options) for name in names]
    for name in names:
        path = pathlib.Path(options.folder) / f"{name}.onnx"
        if not path.exists():
            networks.export(name, path)
    wait_for(peers, options.budget)
    table = []
    for peer in peers:
        theirs, why = (peer.times(), None) if peer.ready else ({}, peer.fault())
        peer.end()
        mine, my_fault = ours(peer.name, networks.NETWORKS[peer.name], options)
        for batch in networks.NETWORKS[peer.name].batches:
            a, b = mine.get(batch, {}).get("ms"), theirs.get(batch, {}).get("ms")
            row = {"part": "engine", "network": peer.name, "batch": batch, "ours_ms": a, "torch_ms": b,
                   "ours_best_ms": mine.get(batch, {}).get("best_ms"), "torch_best_ms": theirs.get(batch, {}).get("best_ms"),
                   "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "mode": options.mode,
                   "torch_over_ours": round(b / a, 3) if a and b else None,
                   "fault": my_fault or (why if b is None else None)}
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
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--folder", default="/tmp/saccade-peers")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.mode, options.seconds)
    else:
        compare(options)


if __name__ == "__main__":
    main()
