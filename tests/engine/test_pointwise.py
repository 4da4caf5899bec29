# SPDX-License-Identifier: Apache-2.0
"""Products of pixels on the CPU: one pixel, whose blocks of channels go together, and lines that are cut in even tiles;
behind them an activation and a sum. A stack of three gives each its own bits."""
import numpy as np
import onnx.helper as make
import pytest
from onnx_files import infer, save


@pytest.mark.parametrize('channels', [(37, 63), (37, 64), (300, 300), (1100, 130), (2400, 64)], ids='{0[0]}-{0[1]}'.format)
@pytest.mark.parametrize('size', [(1, 1), (1, 7), (7, 7), (20, 20)], ids='{0[0]}x{0[1]}'.format)
def test_numbers(size, channels, tmp_path):
    draw, (depth, width) = np.random.default_rng(5), channels
    x = draw.standard_normal((3, depth, *size)).astype(np.float32)
    r = draw.standard_normal((3, width, *size)).astype(np.float32)
    w = (draw.standard_normal((width, depth, 1, 1)) / np.sqrt(depth)).astype(np.float32)
    b = draw.standard_normal(width).astype(np.float32)
    nodes = [make.make_node('Conv', ['x', 'w', 'b'], ['c']), make.make_node('Sigmoid', ['c'], ['s']),
             make.make_node('Mul', ['c', 's'], ['a']), make.make_node('Add', ['a', 'r'], ['y'])]
    dims = {name: ['batch', *value.shape[1:]] for name, value in {'x': x, 'r': r}.items()}
    save(tmp_path / 'net.onnx', nodes, dims, {'y': dims['r']}, {'w': w, 'b': b})
    sums = np.einsum('oc,nchw->nohw', w[:, :, 0, 0].astype(np.float64), x) + b[:, None, None]
    stack = infer(tmp_path / 'net.onnx', {'x': x, 'r': r})['y']
    np.testing.assert_allclose(stack, sums / (1 + np.exp(-sums)) + r, rtol=1e-4, atol=1e-5)
    for i in range(3):
        np.testing.assert_array_equal(infer(tmp_path / 'net.onnx', {'x': x[i:i + 1], 'r': r[i:i + 1]})['y'][0], stack[i])
