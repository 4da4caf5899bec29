# SPDX-License-Identifier: Apache-2.0
"""Small networks as files, and what the program says and makes of them on the CPU."""
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnx.helper as make
import onnx.numpy_helper as numbers

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get('SACCADE_BUILD', ROOT / 'build')) / 'src/cli/saccade'
FLOAT = onnx.TensorProto.FLOAT


def ports(dims):
    """Of {name: dims}, float32; an input of another type is given as {name: (type, dims)}."""
    return [make.make_tensor_value_info(name, *(d if isinstance(d, tuple) else (FLOAT, d))) for name, d in dims.items()]


def save(path, nodes, inputs, outputs, constants=None, opset=17):
    """constants: {name: array}"""
    held = [numbers.from_array(np.asarray(value, order='C'), name) for name, value in (constants or {}).items()]
    graph = make.make_graph(nodes, 'network', ports(inputs), ports(outputs), held)
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid('', opset)], ir_version=8 if opset < 23 else 10), path)


def infer(path, inputs, *options):
    """{output: array} of {input: array}, which lie beside the network meanwhile."""
    given, out = [], path.parent / 'out'
    for name, value in inputs.items():
        np.save(path.parent / f'{name}.npy', value)
        given += ['-i', f'{name}={path.parent}/{name}.npy']
    subprocess.run([PROGRAM, 'infer', path, *given, '-o', out, '-d', 'cpu', '-t', '1', *options], check=True, capture_output=True)
    return {file.stem: np.load(file) for file in out.iterdir()}


def inspect(path):
    return subprocess.run([PROGRAM, 'inspect', '-d', 'cpu', path], check=True, capture_output=True, text=True).stdout
