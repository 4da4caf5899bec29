#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inference time of saccade's engine on the CPU against its peers, interleaved on one machine.

All alternate in this process with the same number of threads, so that other load on the machine
affects all alike; the ratio of the medians is the figure, and at the end its geometric mean against
the faster peer. Needs numpy and the peers: onnxruntime, openvino.

    bench/engine.py [MODEL.onnx ...] [--peer onnxruntime] [--peer openvino] [--steps] [--json FILE]
"""
import argparse
import ctypes
import json
import multiprocessing
import os
import re
import statistics
import sys
import time

import numpy as np

os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # as the program does; before libgomp is loaded

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests"))
from structs import structure  # noqa: E402

F32 = 1
Desc, DeviceParams = structure("sac_tensor_desc"), structure("sac_device_params")
ModelParams, ContextParams = structure("sac_model_params"), structure("sac_context_params")
LINE_FN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
LOG_FN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)


class Saccade:
    """One model on a device of its own, through the C library."""

    def __init__(self, library, path, threads, reference=False, optimise=True, log_level=3):
        self.lib = ctypes.CDLL(library)
        self.lib.sac_tensor_data.restype = ctypes.c_void_p
        self.lib.sac_tensor_describe.restype = ctypes.POINTER(Desc)
        self.log = LOG_FN(lambda user, level, line: print("   ", line.decode(), file=sys.stderr))
        self.ctx, self.dev, self.model = (ctypes.c_void_p() for _ in range(3))
        self.lib.sac_model_params_default.restype = ModelParams
        params = ContextParams(log_fn=ctypes.cast(self.log, ctypes.c_void_p), log_level=log_level)
        self.lib.sac_context_create(ctypes.byref(params), ctypes.byref(self.ctx))
        self.check(self.lib.sac_device_open(self.ctx, b"cpu", ctypes.byref(DeviceParams(threads=threads)),
                                            ctypes.byref(self.dev)))
        model_params = self.lib.sac_model_params_default()
        model_params.optimise, model_params.reference = optimise, reference
        begun = time.perf_counter()
        self.check(self.lib.sac_model_load(self.dev, os.fsencode(path), ctypes.byref(model_params),
                                           ctypes.byref(self.model)))
        self.load_ms = (time.perf_counter() - begun) * 1e3

    def check(self, result):
        if result != 0:
            why = ctypes.create_string_buffer(1024)
            self.lib.sac_context_last_error(self.ctx, why, ctypes.c_size_t(len(why)))
            raise RuntimeError(why.value.decode())

    def run(self, array, read=True):
        desc = Desc(F32, array.ndim)
        desc.shape[:array.ndim] = array.shape
        tensor = ctypes.c_void_p()
        outputs = (ctypes.c_void_p * self.lib.sac_model_output_count(self.model))()
        self.check(self.lib.sac_tensor_wrap(self.dev, ctypes.byref(desc),
                                            ctypes.c_void_p(array.ctypes.data), None, None,
                                            ctypes.byref(tensor)))
        try:
            self.check(self.lib.sac_model_run(self.model, ctypes.byref(tensor), outputs))
            return [self.take(o) for o in outputs] if read else None
        finally:
            self.lib.sac_tensor_unref(ctypes.byref(tensor))
            for i in range(len(outputs)):
                one = ctypes.c_void_p(outputs[i])
                self.lib.sac_tensor_unref(ctypes.byref(one))

    def take(self, handle):
        desc = self.lib.sac_tensor_describe(ctypes.c_void_p(handle)).contents
        shape = tuple(desc.shape[:desc.rank])
        if desc.dtype != F32:
            return None
        data = self.lib.sac_tensor_data(ctypes.c_void_p(handle))
        buffer = (ctypes.c_float * int(np.prod(shape))).from_address(data)
        return np.frombuffer(buffer, np.float32).reshape(shape).copy()

    def steps(self):
        lines = []
        collect = LINE_FN(lambda user, line: lines.append(line.decode()))
        self.lib.sac_model_dump_steps(self.model, collect, None)
        return lines

    def profile(self, on):
        self.lib.sac_model_profile(self.model, int(on))

    def close(self):
        self.lib.sac_model_unref(ctypes.byref(self.model))
        self.lib.sac_device_unref(ctypes.byref(self.dev))
        self.lib.sac_context_destroy(ctypes.byref(self.ctx))


def onnx_runtime(path, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda array: session.run(None, {name: array})


def openvino(path, threads):
    import openvino
    config = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.Core().compile_model(path, "CPU", config)
    request = compiled.create_infer_request()

    def run(array):
        request.infer({0: array}, share_inputs=True)
        return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]
    return run


PEERS = {"onnxruntime": onnx_runtime, "openvino": openvino}


def first_input(path):
    """Shape of a file's first input, open dims as 1 (the batch) and 224 (pictures)."""
    import onnxruntime
    given = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).get_inputs()[0].shape
    return tuple(d if isinstance(d, int) else 1 if i == 0 else 224 for i, d in enumerate(given))


def spin(stop):
    while not stop.is_set():
        for _ in range(100000):
            pass


PAUSE_S, TURN = 0.1, 6


def turn(run, times):
    """A few runs in a row, the first of them not counted. The pause before lets the other engine's
    threads fall asleep: ONNX Runtime's spin on for about 50 ms after a run (47 % CPU at 10 frames/s),
    and would take the second CPU from this one."""
    time.sleep(PAUSE_S)
    for i in range(TURN):
        begun = time.perf_counter()
        run()
        if i > 0:
            times.append((time.perf_counter() - begun) * 1e3)


def measure(ours, peers, array, batch, rounds):
    """Medians in ms: ours, then the peers'. A batch that a file has baked in as 1 is run one by one there."""
    stack = np.concatenate([array] * batch)
    runs = [lambda: ours.run(stack, read=False)]
    runs += [lambda peer=peer: [peer(array) for _ in range(batch)] for peer in peers]
    times = [[] for _ in runs]
    for _ in range(rounds):
        for run, into in zip(runs, times):
            turn(run, into)
    return [statistics.median(t) for t in times]


def cpu_at_fps(run, fps=10, seconds=3):
    """Per cent of one CPU that the process uses, all threads and the time between frames included."""
    run()
    begun, cpu = time.perf_counter(), time.process_time()
    for i in range(int(fps * seconds)):
        run()
        time.sleep(max(0, begun + (i + 1) / fps - time.perf_counter()))
    return (time.process_time() - cpu) / (time.perf_counter() - begun) * 100


INCLUDED = [("yolox_nano_416.onnx", (1, 3, 416, 416)), ("person_reid_0288.onnx", (1, 256, 128, 3))]


def difference(ours, theirs, array):
    return max((float(np.max(np.abs(a - b) / (1 + np.abs(b)), initial=0))
                for a, b in zip(ours.run(array), theirs(array)) if a is not None), default=float("nan"))


def costs(steps):
    """Time and number of each operator and implementation, the costliest first, of sac_model_dump_steps' lines."""
    total = {}
    for line in steps:
        found = re.match(r"\s*\d+\s+(\S+)\s+\S+\s+(.*?)\s+([\d.]+) (ms|us)$", line)
        if found:
            ms, count = total.get(found.group(1, 2), (0, 0))
            total[found.group(1, 2)] = ms + float(found.group(3)) * (1 if found.group(4) == "ms" else 1e-3), count + 1
    return sorted(total.items(), key=lambda item: -item[1][0])


def bench_model(args, path, shape, threads, rows):
    name = os.path.splitext(os.path.basename(path))[0]
    array = (np.random.default_rng(1).random(shape, np.float32) * args.scale).astype(np.float32)
    ours = Saccade(args.library, path, threads)
    peers = {peer: PEERS[peer](path, threads) for peer in args.peer}
    error = max(difference(ours, peer, array) for peer in peers.values())
    for batch in args.batches:
        mine, *others = measure(ours, peers.values(), array, batch, args.rounds)
        row = {"network": name, "threads": threads, "batch": batch, "saccade_ms": mine, "difference": error}
        row.update({f"{peer}_ms": ms for peer, ms in zip(peers, others)})
        row["ratio"] = mine / min(others)
        rows.append(row)
        beside = ", ".join(f"{peer} {ms:8.3f} ({mine / ms:.2f})" for peer, ms in zip(peers, others))
        print(f"{name:24} {threads} thr batch {batch}: {mine:8.3f} ms; {beside}; difference {error:.1e}",
              flush=True)
    if args.cpu:
        print(f"{name:24} {threads} thr at 10 frames/s: {cpu_at_fps(lambda: ours.run(array, False)):.1f} % CPU; "
              + ", ".join(f"{peer} {cpu_at_fps(lambda run=run: run(array)):.1f} %" for peer, run in peers.items()),
              flush=True)
    if args.steps:
        ours.profile(True)
        for _ in range(10):
            ours.run(array, read=False)
        lines = ours.steps()
        print("\n".join(lines))
        for (op, implementation), (ms, count) in costs(lines):
            print(f"  {op:22} {implementation:28} x{count:3} {ms:9.3f} ms")
    ours.close()


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    shared = os.environ.get("SACCADE_SHARED", os.path.join(root, "..", "shared"))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", nargs="*", help="ONNX files; else two of the test models")
    parser.add_argument("--library", default=os.path.join(root, "build", "libsaccade.so"))
    parser.add_argument("--models", default=os.path.join(shared, "data", "models"))
    parser.add_argument("--peer", action="append", choices=list(PEERS))
    parser.add_argument("--only", default="", help="part of a model's name")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--batches", type=int, nargs="*", default=[1])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--scale", type=float, default=1, help="inputs are random from 0 to this")
    parser.add_argument("--busy", action="store_true", help="beside a process that keeps one CPU busy")
    parser.add_argument("--cpu", action="store_true", help="also CPU use at 10 frames/s")
    parser.add_argument("--steps", action="store_true", help="also print each step with its time")
    parser.add_argument("--json", help="write the rows to this file")
    args = parser.parse_args()
    args.peer = args.peer or ["onnxruntime"]
    models = [(path, first_input(path)) for path in args.model] or [
        (os.path.join(args.models, name), shape) for name, shape in INCLUDED]
    stop = multiprocessing.Event()
    neighbour = multiprocessing.Process(target=spin, args=(stop,)) if args.busy else None
    if neighbour:
        neighbour.start()
        print("beside one busy thread:")
    rows = []
    try:
        for threads in args.threads:
            for path, shape in models:
                if args.only in os.path.basename(path):
                    bench_model(args, path, shape, threads, rows)
    finally:
        stop.set()
        if neighbour:
            neighbour.join()
        if args.json:
            with open(args.json, "w", encoding="utf-8") as file:
                json.dump(rows, file, indent=1)
    for threads in args.threads:
        ratios = [row["ratio"] for row in rows if row["threads"] == threads]
        if ratios:
            print(f"{threads} threads: geometric mean {statistics.geometric_mean(ratios):.2f} of the faster peer's time, "
                  f"worst {max(ratios):.2f}, {len(ratios)} rows")


if __name__ == "__main__":
    main()
