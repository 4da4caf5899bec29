# SPDX-License-Identifier: Apache-2.0
"""ONNX's own Attention (opset 23): the formula's numbers, by the kernel of attention where it is of the usual kind."""
import re

import numpy as np
import onnx
import onnx.helper as make
import pytest
from onnx_files import infer, inspect, save

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
    """Returns inspect's line and the number of steps. mask: what the file holds, or with given what its fourth input is."""
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
    dims = {name: ['batch', *x.shape[1:]] for name, x in inputs.items()}
    if mask is not None and given:
        inputs['mask'] = mask
        dims['mask'] = BOOL if mask.dtype == bool else FLOAT, mask.shape
    values = {} if mask is None or given else {'mask': mask}
    node = make.make_node('Attention', ['q', 'k', 'v'] + ['mask'] * (mask is not None), ['y'], **attributes)
    save(folder / 'net.onnx', [node], dims, {'y': ['batch', *wanted.shape[1:]]}, values, 23)
    np.testing.assert_allclose(infer(folder / 'net.onnx', inputs)['y'], wanted, rtol=1e-4, atol=1e-5)
    return inspected(folder / 'net.onnx', 'Attention')


def inspected(path, operator):
    """The line of an operator, and the number of steps."""
    said = inspect(path)
    return next(line for line in said.splitlines() if line.startswith(f'  {operator}')), int(re.search(r'(\d+) steps? after', said)[1])


BIAS = np.random.default_rng(8).standard_normal((QUERIES, KEYS)).astype(np.float32)
SEEN = np.tri(QUERIES, KEYS, 1) > 0
BLIND = SEEN.copy()
BLIND[4] = False  # a query that sees nothing


@pytest.mark.parametrize('flat', [False, True])
@pytest.mark.parametrize('case', [{}, {'scale': 0.3}, {'keys': 13}, {'wide': 16}, {'keys': 5, 'wide': 24, 'scale': 1.0}, {'mask': BIAS},
                                  {'mask': BIAS[None, None]}, {'mask': SEEN}, {'mask': BLIND}, {'is_causal': 1}, {'is_causal': 1, 'mask': BIAS},
                                  {'kv_heads': 2}, {'kv_heads': 1, 'is_causal': 1}, {'kv_heads': 2, 'mask': BIAS, 'wide': 16},
                                  {'mask': BIAS, 'given': True}, {'mask': SEEN, 'given': True}, {'mask': BLIND, 'given': True}],
                         ids=lambda case: ' '.join(case) or 'plain')
def test_usual(case, flat, tmp_path):
    line, steps = check(tmp_path, flat, **case)
    assert 'plain C' not in line
    assert steps <= (4 if 'given' in case else 1)  # a mask that comes with each run is made one of numbers first


def test_unusual(tmp_path):
    """It keeps its own row, and its numbers."""
    assert 'plain C' in check(tmp_path, left_window_size=QUERIES, right_window_size=QUERIES)[0]


# ---- spelled out, with Where for masks ----

def spelled(folder, steps, masks, given=False, loud=1.0):
    """softmax(steps of q k^T) v, and what the spelling says itself; returns ours, that, and the number of steps."""
    draw = np.random.default_rng(6)
    q, k, v = (draw.standard_normal((BATCH, HEADS, KEYS, SIZE)).astype(np.float32) for _ in range(3))
    q = q * np.float32(loud)
    values = {'kt': k.transpose(0, 1, 3, 2), 'v': v} if not given else {}
    inputs = {'q': q} | ({'kt': k.transpose(0, 1, 3, 2), 'v': v} if given else {})
    values |= {name: x for name, x in masks.items()}
    nodes = [make.make_node('MatMul', ['q', 'kt'], ['s']), *steps, make.make_node('Softmax', ['z'], ['p'], axis=-1),
             make.make_node('MatMul', ['p', 'v'], ['y'])]
    path = folder / 'net.onnx'
    save(path, nodes, {name: ['batch', *x.shape[1:]] for name, x in inputs.items()}, {'y': ['batch', HEADS, KEYS, SIZE]}, values)
    return infer(path, inputs)['y'], infer(path, inputs, '--reference')['y'], inspected(path, 'Softmax')[1]


def low(value):
    return np.array(value, np.float32)


@pytest.mark.parametrize('hidden', [~SEEN, ~BLIND], ids=['seen', 'blind'])
@pytest.mark.parametrize('value', [-3.4028235e38, -1e30, -1e9])
@pytest.mark.parametrize('loud', [1, 40])
def test_where_masks(hidden, value, loud, tmp_path):
    """A row of which all is masked is even, however large its scores are."""
    where = make.make_node('Where', ['hidden', 'low', 's'], ['z'])
    ours, theirs, steps = spelled(tmp_path, [where], {'hidden': hidden, 'low': low(value)}, True, loud)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    assert value == -1e9 or steps == 1


def test_two_masks_do_not_add_up(tmp_path):
    first, second = np.zeros((KEYS, KEYS), bool), np.zeros((KEYS, KEYS), bool)
    first[4, :5], second[4, 3:] = True, True  # together they hide all of row 4, and two keys twice
    steps = [make.make_node('Where', ['first', 'low', 's'], ['w']), make.make_node('Where', ['second', 'low', 'w'], ['z'])]
    ours, theirs, _ = spelled(tmp_path, steps, {'first': first, 'second': second, 'low': low(-3.4028235e38)}, True)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_bias_that_masks_and_a_mask(tmp_path):
    bias = np.where(np.tri(KEYS, KEYS), 0, -3.4028235e38).astype(np.float32)
    hidden = np.zeros((KEYS, KEYS), bool)
    hidden[4, :6] = True
    steps = [make.make_node('Add', ['s', 'bias'], ['w']), make.make_node('Where', ['hidden', 'low', 'w'], ['z'])]
    ours, theirs, _ = spelled(tmp_path, steps, {'bias': bias, 'hidden': hidden, 'low': low(-3.4028235e38)}, True)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
