# SPDX-License-Identifier: Apache-2.0
"""Attention whose queries are repeated for the windows of a picture, along the batch: its formula's numbers."""
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnx.helper as make
import onnx.numpy_helper as numbers
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get('SACCADE_BUILD', ROOT / 'build')) / 'src/cli/saccade'
HEADS, QUERIES, KEYS, SIZE, WINDOWS = 2, 4, 5, 8, 3


def repeats(computed):
    """The nodes that make how often the queries are repeated along the batch, 'often'."""
    if not computed:
        return []
    node = make.make_node
    return [node('Shape', ['k'], ['k_shape'], end=1), node('Shape', ['q'], ['q_shape'], end=1), node('Div', ['k_shape', 'q_shape'], ['each']),
            node('Concat', ['each', 'ones'], ['often'], axis=0)]


def network(path, repeat, computed):
    node = make.make_node
    queries = {'tile': [*repeats(computed), node('Tile', ['q', 'often'], ['q_all'])],
               'interleave': [node('Unsqueeze', ['q', 'one'], ['q_one']), node('Expand', ['q_one', 'many'], ['q_many']),
                              node('Reshape', ['q_many', 'flat'], ['q_all'])]}[repeat]
    nodes = [node('Reshape', ['x', 'keys'], ['k']), *queries, node('Transpose', ['k'], ['kt'], perm=[0, 1, 3, 2]), node('MatMul', ['q_all', 'kt'], ['s']),
             node('Softmax', ['s'], ['p'], axis=-1), node('MatMul', ['p', 'k'], ['y'])]
    ports = [make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in (
        ('q', ['batch', HEADS, QUERIES, SIZE]), ('x', ['batch', WINDOWS * HEADS, KEYS, SIZE]), ('y', [None, HEADS, QUERIES, SIZE]))]
    constants = {'ones': [1, 1, 1], 'one': [1], 'many': [1, WINDOWS, 1, 1, 1], 'keys': [-1, HEADS, KEYS, SIZE], 'flat': [-1, HEADS, QUERIES, SIZE]}
    constants |= {} if computed else {'often': [WINDOWS, 1, 1, 1]}
    graph = make.make_graph(nodes, 'net', ports[:2], ports[2:], [numbers.from_array(np.array(v), name) for name, v in constants.items()])
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid('', 17)], ir_version=8), path)


@pytest.mark.parametrize('repeat, computed', [('tile', False), ('tile', True), ('interleave', False)])
@pytest.mark.parametrize('batch', [1, 2])
def test_numbers(repeat, computed, batch, tmp_path):
    network(tmp_path / 'net.onnx', repeat, computed)
    draw = np.random.default_rng(3)
    q = draw.standard_normal((batch, HEADS, QUERIES, SIZE)).astype(np.float32)
    x = draw.standard_normal((batch, WINDOWS * HEADS, KEYS, SIZE)).astype(np.float32)
    np.save(tmp_path / 'q.npy', q)
    np.save(tmp_path / 'x.npy', x)
    subprocess.run([PROGRAM, 'infer', tmp_path / 'net.onnx', '-i', f'q={tmp_path}/q.npy', '-i', f'x={tmp_path}/x.npy', '-o', tmp_path / 'out',
                    '-d', 'cpu', '-t', '1'], check=True, capture_output=True)
    k = x.reshape(-1, HEADS, KEYS, SIZE)
    q = np.tile(q, (WINDOWS, 1, 1, 1)) if repeat == 'tile' else np.repeat(q, WINDOWS, 0)
    shares = np.exp(q @ k.swapaxes(2, 3))
    want = shares / shares.sum(-1, keepdims=True) @ k
    np.testing.assert_allclose(np.load(tmp_path / 'out/y.npy'), want, rtol=1e-4, atol=1e-5)
