# SPDX-License-Identifier: Apache-2.0
"""ONNX's own GroupNormalization: of one group it takes the activation behind it in; the formula's numbers with any."""
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
    ports = [[make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ['batch', *SHAPE[1:]])] for name in 'xy']
    graph = make.make_graph(nodes, 'norm', *ports, [numbers.from_array(scale, 'scale'), numbers.from_array(shift, 'shift')])
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid('', opset)], ir_version=8), tmp_path / 'net.onnx')
    np.save(tmp_path / 'x.npy', x)
    subprocess.run([PROGRAM, 'infer', tmp_path / 'net.onnx', '-i', tmp_path / 'x.npy', '-o', tmp_path / 'out', '-d', 'cpu', '-t', '1'], check=True,
                   capture_output=True)
    np.testing.assert_allclose(np.load(tmp_path / 'out/y.npy'), answer(x, groups, scale, shift), rtol=1e-4, atol=1e-5)
    said = subprocess.run([PROGRAM, 'inspect', tmp_path / 'net.onnx'], check=True, capture_output=True, text=True).stdout
    assert f'{1 if groups == 1 else 2} step' in said
