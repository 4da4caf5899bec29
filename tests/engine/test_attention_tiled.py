# SPDX-License-Identifier: Apache-2.0
"""Attention whose queries are repeated for the windows of a picture, along the batch: its formula's numbers."""
import numpy as np
import onnx.helper as make
import pytest
from onnx_files import infer, save

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
    constants = {'ones': [1, 1, 1], 'one': [1], 'many': [1, WINDOWS, 1, 1, 1], 'keys': [-1, HEADS, KEYS, SIZE], 'flat': [-1, HEADS, QUERIES, SIZE]}
    constants |= {} if computed else {'often': [WINDOWS, 1, 1, 1]}
    save(path, nodes, {'q': ['batch', HEADS, QUERIES, SIZE], 'x': ['batch', WINDOWS * HEADS, KEYS, SIZE]}, {'y': [None, HEADS, QUERIES, SIZE]}, constants)


@pytest.mark.parametrize('repeat, computed', [('tile', False), ('tile', True), ('interleave', False)])
@pytest.mark.parametrize('batch', [1, 2])
def test_numbers(repeat, computed, batch, tmp_path):
    network(tmp_path / 'net.onnx', repeat, computed)
    draw = np.random.default_rng(3)
    q = draw.standard_normal((batch, HEADS, QUERIES, SIZE)).astype(np.float32)
    x = draw.standard_normal((batch, WINDOWS * HEADS, KEYS, SIZE)).astype(np.float32)
    y = infer(tmp_path / 'net.onnx', {'q': q, 'x': x})['y']
    k = x.reshape(-1, HEADS, KEYS, SIZE)
    q = np.tile(q, (WINDOWS, 1, 1, 1)) if repeat == 'tile' else np.repeat(q, WINDOWS, 0)
    shares = np.exp(q @ k.swapaxes(2, 3))
    want = shares / shares.sum(-1, keepdims=True) @ k
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-5)
