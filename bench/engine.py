#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inference time of saccade's engine against ONNX Runtime, interleaved on one machine.

Both alternate in this process with the same number of threads, so that other load on the machine
affects both alike; the ratio of the medians is the figure. Needs numpy and onnxruntime.

    bench/engine.py [--library build/libsaccade.so] [--models DIR] [--rounds N] [--busy] [--steps]
"""
import argparse
import ctypes
import multiprocessing
import os
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


def measure(ours, theirs, array, batch, rounds):
    """Medians in ms. A batch that a file has baked in as 1 is run one by one there."""
    stack = np.concatenate([array] * batch)
    mine, other = [], []
    for _ in range(rounds):
        turn(lambda: ours.run(stack, read=False), mine)
        turn(lambda: [theirs(array) for _ in range(batch)], other)
    return statistics.median(mine), statistics.median(other)


def cpu_at_fps(run, fps=10, seconds=3):
    """Per cent of one CPU that the process uses, all threads and the time between frames included."""
    run()
    begun, cpu = time.perf_counter(), time.process_time()
    for i in range(int(fps * seconds)):
        run()
        time.sleep(max(0, begun + (i + 1) / fps - time.perf_counter()))
    return (time.process_time() - cpu) / (time.perf_counter() - begun) * 100


MODELS = [("yolox_nano_416.onnx", (1, 3, 416, 416), 1.0), ("person_reid_0288.onnx", (1, 256, 128, 3), 0.6)]


def difference(ours, theirs, array):
    return max(float(np.max(np.abs(a - b) / (1 + np.abs(b))))
               for a, b in zip(ours.run(array), theirs(array)))


def bench_model(args, name, shape, bar, threads):
    path = os.path.join(args.models, name)
    array = (np.random.default_rng(1).random(shape, np.float32) * 255).astype(np.float32)
    ours = Saccade(args.library, path, threads)
    theirs = onnx_runtime(path, threads)
    error = difference(ours, theirs, array)
    for batch in args.batches:
        if batch > 1 and bar >= 1:
            continue
        mine, other = measure(ours, theirs, array, batch, args.rounds)
        print(f"{name:24} {threads} thr batch {batch}: {mine:7.3f} ms, ONNX Runtime {other:7.3f} ms, "
              f"ratio {mine / other:.2f} (bar {bar:.1f}), difference {error:.1e}", flush=True)
    if args.cpu:
        print(f"{name:24} {threads} thr at 10 frames/s: {cpu_at_fps(lambda: ours.run(array, False)):.1f} %"
              f" CPU, ONNX Runtime {cpu_at_fps(lambda: theirs(array)):.1f} %", flush=True)
    if args.steps:
        ours.profile(True)
        for _ in range(50):
            ours.run(array, read=False)
        print("\n".join(ours.steps()))
    ours.close()


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    shared = os.environ.get("SACCADE_SHARED", os.path.join(root, "..", "shared"))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", default=os.path.join(root, "build", "libsaccade.so"))
    parser.add_argument("--models", default=os.path.join(shared, "data", "models"))
    parser.add_argument("--only", default="", help="part of a model's name")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 4, 8])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--busy", action="store_true", help="beside a process that keeps one CPU busy")
    parser.add_argument("--cpu", action="store_true", help="also CPU use at 10 frames/s")
    parser.add_argument("--steps", action="store_true", help="also print each step with its time")
    args = parser.parse_args()
    stop = multiprocessing.Event()
    neighbour = multiprocessing.Process(target=spin, args=(stop,)) if args.busy else None
    if neighbour:
        neighbour.start()
        print("beside one busy thread:")
    try:
        for threads in args.threads:
            for name, shape, bar in MODELS:
                if args.only in name:
                    bench_model(args, name, shape, bar, threads)
    finally:
        stop.set()
        if neighbour:
            neighbour.join()


if __name__ == "__main__":
    main()
