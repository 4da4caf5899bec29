# SPDX-License-Identifier: Apache-2.0
"""ONNX's own Attention (opset 23): the formula's numbers, by the kernel of attention where it is of the usual kind."""
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
BATCH, HEADS, QUERIES, KEYS, SIZE, WIDE = 2, 4, 9, 9, 8, 8
BOOL, FLOAT = onnx.TensorProto.BOOL, onnx.TensorProto.FLOAT


def answer(q, k, v, scale, bias):
    scores = np.einsum('bhqd,bhkd->bhqk', q, k) * scale + bias
    with np.errstate(invalid='ignore'):
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares = np.nan_to_num(shares / shares.sum(-1, keepdims=True))
    return np.einsum('bhqk,bhkd->bhqd', shares, v)


def tokens(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def check(folder, flat=False, keys=KEYS, wide=WIDE, kv_heads=HEADS, mask=None, given=False, **attributes):
    """Returns inspect's line. mask: what the file holds, or with given what its fourth input is."""
    draw = np.random.default_rng(3)
    q = draw.standard_normal((BATCH, HEADS, QUERIES, SIZE)).astype(np.float32)
    k = draw.standard_normal((BATCH, kv_heads, keys, SIZE)).astype(np.float32)
    v = draw.standard_normal((BATCH, kv_heads, keys, wide)).astype(np.float32)
    bias = np.zeros((QUERIES, keys))
    if mask is not None:
        bias = np.where(mask, 0, -np.inf) if mask.dtype == bool else mask
    if attributes.get('is_causal'):
        bias = bias + np.where(np.tril(np.ones((QUERIES, keys))) > 0, 0, -np.inf)
    group = HEADS // kv_heads
    wanted = answer(q, k.repeat(group, 1), v.repeat(group, 1), attributes.get('scale', SIZE ** -0.5), bias)
    inputs = {'q': q, 'k': k, 'v': v}
    if flat:
        inputs, wanted = {name: tokens(x) for name, x in inputs.items()}, tokens(wanted)
        attributes |= {'q_num_heads': HEADS, 'kv_num_heads': kv_heads}
    ports = [make.make_tensor_value_info(name, FLOAT, ['batch', *x.shape[1:]]) for name, x in inputs.items()]
    values = []
    if mask is not None and given:
        inputs['mask'] = mask
        ports.append(make.make_tensor_value_info('mask', BOOL if mask.dtype == bool else FLOAT, mask.shape))
    elif mask is not None:
        values = [numbers.from_array(mask, 'mask')]
    node = make.make_node('Attention', ['q', 'k', 'v'] + ['mask'] * (mask is not None), ['y'], **attributes)
    graph = make.make_graph([node], 'attention', ports, [make.make_tensor_value_info('y', FLOAT, ['batch', *wanted.shape[1:]])], values)
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid('', 23)], ir_version=10), folder / 'net.onnx')
    feed = []
    for name, x in inputs.items():
        np.save(folder / f'{name}.npy', x)
        feed += ['-i', f'{name}={folder}/{name}.npy']
    subprocess.run([PROGRAM, 'infer', folder / 'net.onnx', *feed, '-o', folder / 'out', '-d', 'cpu', '-t', '1'], check=True, capture_output=True)
    np.testing.assert_allclose(np.load(folder / 'out/y.npy'), wanted, rtol=1e-4, atol=1e-5)
    said = subprocess.run([PROGRAM, 'inspect', folder / 'net.onnx'], check=True, capture_output=True, text=True).stdout
    return next(line for line in said.splitlines() if line.startswith('  Attention'))


BIAS = np.random.default_rng(8).standard_normal((QUERIES, KEYS)).astype(np.float32)
SEEN = np.tri(QUERIES, KEYS, 1) > 0
BLIND = SEEN.copy()
BLIND[4] = False  # a query that sees nothing


@pytest.mark.parametrize('flat', [False, True])
@pytest.mark.parametrize('case', [{}, {'scale': 0.3}, {'keys': 13}, {'wide': 16}, {'keys': 5, 'wide': 24, 'scale': 1.0}, {'mask': BIAS},
                                  {'mask': BIAS[None, None]}, {'mask': SEEN}, {'mask': BLIND}, {'is_causal': 1}, {'is_causal': 1, 'mask': BIAS},
                                  {'mask': BIAS, 'given': True}, {'mask': SEEN, 'given': True}, {'mask': BLIND, 'given': True}],
                         ids=lambda case: ' '.join(case) or 'plain')
def test_usual(case, flat, tmp_path):
    assert 'plain C' not in check(tmp_path, flat, **case)


@pytest.mark.parametrize('case', [{'kv_heads': 2}, {'kv_heads': 1, 'is_causal': 1}], ids=str)
def test_unusual(case, tmp_path):
    """It keeps its own row, and its numbers."""
    assert 'plain C' in check(tmp_path, **case)
