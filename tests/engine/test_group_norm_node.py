# SPDX-License-Identifier: Apache-2.0
"""ONNX's own GroupNormalization: the formula's numbers, and the activation behind it in the same step, unless its scale
and shift have a number for each of several groups."""
import numpy as np
import onnx.helper as make
import pytest
from onnx_files import infer, inspect, save

SHAPE, CHANNELS, EPSILON = (2, 12, 5, 7), 12, 1e-3


def answer(x, groups, scale, shift):
    parts = x.reshape(len(x), groups, -1).astype(np.float64)
    parts = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + EPSILON)
    each = lambda v: np.repeat(v, CHANNELS // len(v))[:, None, None]
    return np.maximum(parts.reshape(x.shape) * each(scale) + each(shift), 0)


@pytest.mark.parametrize('opset', [18, 21])
@pytest.mark.parametrize('groups', [1, 3, CHANNELS])
def test_numbers(groups, opset, tmp_path):
    draw = np.random.default_rng(5)
    x = draw.standard_normal(SHAPE).astype(np.float32) * 3 + 2
    scale, shift = draw.standard_normal((2, groups if opset < 21 else CHANNELS)).astype(np.float32)
    nodes = [make.make_node('GroupNormalization', ['x', 'scale', 'shift'], ['n'], num_groups=groups, epsilon=EPSILON),
             make.make_node('Relu', ['n'], ['y'])]
    dims, path = ['batch', *SHAPE[1:]], tmp_path / 'net.onnx'
    save(path, nodes, {'x': dims}, {'y': dims}, {'scale': scale, 'shift': shift}, opset)
    np.testing.assert_allclose(infer(path, {'x': x})['y'], answer(x, groups, scale, shift), rtol=1e-4, atol=1e-5)
    assert f'{2 if 1 < len(scale) < CHANNELS else 1} step' in inspect(path)
