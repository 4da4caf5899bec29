#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pack the ONNX project's node tests that must pass (pass.txt) into one file for test_nodes.c.

    pack.py OUT     numbers little-endian; a string or block is its length (u32) and its bytes

"SACNODE1", number of cases (u32), and of each: name, rtol and atol (f64), the model, number of inputs (u32),
inputs, number of outputs, outputs. A tensor: dtype (u32, enum sac_dtype; 0: left out), rank (u32), dims (i64
each), its bytes.
"""
import os
import struct
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run  # noqa: E402


def block(data):
    return struct.pack("<I", len(data)) + data


def tensor(value, port):
    array = np.ascontiguousarray(run.as_array(value, port)).reshape(np.shape(run.as_array(value, port)))
    dims = struct.pack(f"<{array.ndim}q", *array.shape)
    return struct.pack("<II", run.DTYPES.index(array.dtype.name), array.ndim) + dims + block(array.tobytes())


def tensors(values, ports):
    return struct.pack("<I", len(values)) + b"".join(tensor(v, p) for v, p in zip(values, ports))


def entries():
    wanted = set(run.must_pass())
    for case in run.collect():
        if case.name not in wanted:
            continue
        graph = case.model.graph
        for inputs, outputs in case.data_sets:
            yield (block(case.name.encode()) + struct.pack("<dd", case.rtol, case.atol) +
                   block(case.model.SerializeToString()) + tensors(inputs, graph.input) +
                   tensors(outputs, graph.output))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cases = list(entries())
    with open(sys.argv[1] + ".part", "wb") as out:
        out.write(b"SACNODE1" + struct.pack("<I", len(cases)) + b"".join(cases))
    os.replace(sys.argv[1] + ".part", sys.argv[1])


if __name__ == "__main__":
    main()
