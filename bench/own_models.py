#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of the included models against the networks that taught them, all in saccade's engine,
alternating in one process: the ratio of the medians is the figure. Needs numpy and onnxruntime (engine.py does).

    bench/own_models.py [--library build/libsaccade.so] [--teachers DIR] [--rounds N]
"""
import argparse
import os
import statistics

import numpy as np

from engine import Saccade, turn

NAMES = [("yolox_nano_416.onnx", (1, 3, 416, 416), ["person_det.onnx", "person_det_fast.onnx"]),
         ("person_reid_0288.onnx", (1, 256, 128, 3), ["person_reid.onnx"])]


def own_shape(shape):
    """Ours have channels first."""
    return shape if shape[1] == 3 else (shape[0], shape[3], shape[1], shape[2])


def compare(library, teacher, shape, own, threads, rounds):
    rng = np.random.default_rng(1)
    paths = [teacher] + own
    arrays = [rng.random(shape, np.float32) * 255] + [rng.random(own_shape(shape), np.float32) for _ in own]
    models = [Saccade(library, path, threads) for path in paths]
    times = [[] for _ in paths]
    for _ in range(rounds):
        for model, array, into in zip(models, arrays, times):
            turn(lambda: model.run(array, read=False), into)
    medians = [statistics.median(t) for t in times]
    for path, ms, least in zip(paths, medians, map(min, times)):
        print(f"{os.path.basename(path):24} {threads} thr: median {ms:7.3f} ms, least {least:7.3f} ms, "
              f"ratio to {os.path.basename(teacher)} {ms / medians[0]:.2f}", flush=True)
    for model in models:
        model.close()


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    shared = os.environ.get("SACCADE_SHARED", os.path.join(root, "..", "shared"))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", default=os.path.join(root, "build", "libsaccade.so"))
    parser.add_argument("--teachers", default=os.path.join(shared, "data", "models"))
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()
    for threads in args.threads:
        for teacher, shape, own in NAMES:
            compare(args.library, os.path.join(args.teachers, teacher), shape,
                    [os.path.join(root, "models", name) for name in own], threads, args.rounds)


if __name__ == "__main__":
    main()
