# SPDX-License-Identifier: Apache-2.0
"""Quantised networks and ONNX Runtime: its own quantiser's files run here with its numbers, and what saccade quantises
runs there with ours."""
import os
import subprocess

import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
ort = pytest.importorskip('onnxruntime')
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(os.environ.get('SACCADE_BUILD', os.path.join(ROOT, 'build')), 'src', 'cli', 'saccade')
SHAPE = [1, 3, 24, 20]


@pytest.fixture
def network(tmp_path):
    """Three convolutions, a sum, a pool and a join."""
    if not os.path.exists(PROGRAM):
        pytest.skip(f'no {PROGRAM}: build first')
    rng = np.random.default_rng(3)
    weights = {'w1': (16, 3, 3, 3), 'b1': (16,), 'w2': (16, 16, 1, 1), 'b2': (16,), 'w3': (8, 32, 3, 3), 'b3': (8,)}
    nodes = [helper.make_node('Conv', ['x', 'w1', 'b1'], ['c1'], name='first', pads=[1, 1, 1, 1]),
             helper.make_node('Relu', ['c1'], ['r1']),
             helper.make_node('Conv', ['r1', 'w2', 'b2'], ['c2'], name='second'),
             helper.make_node('Add', ['c2', 'r1'], ['s']),
             helper.make_node('Relu', ['s'], ['r2']),
             helper.make_node('Concat', ['r1', 'r2'], ['j'], axis=1),
             helper.make_node('MaxPool', ['j'], ['p'], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node('Conv', ['p', 'w3', 'b3'], ['y'], pads=[1, 1, 1, 1])]
    graph = helper.make_graph(nodes, 'net', [helper.make_tensor_value_info('x', TensorProto.FLOAT, SHAPE)],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, [1, 8, 12, 10])],
                              [numpy_helper.from_array((rng.standard_normal(dims) * 0.2).astype(np.float32), name)
                               for name, dims in weights.items()])
    path = str(tmp_path / 'net.onnx')
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), path)
    return path


def ours(path, x, tmp_path, *options):
    np.save(tmp_path / 'in.npy', x)
    subprocess.run([PROGRAM, 'infer', path, '--input', str(tmp_path / 'in.npy'), '--output', str(tmp_path / 'out'),
                    '--device', 'cpu', *options], check=True)
    return np.load(next((tmp_path / 'out').iterdir()))


def theirs(path, x):
    """Node by node: where a CPU has no VNNI, its fused products of uint8 saturate the sums of two."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(path, options, providers=['CPUExecutionProvider']).run(None, {'x': x})[0]


@pytest.mark.parametrize('activations', ['QUInt8', 'QInt8'])
@pytest.mark.parametrize('per_channel', [False, True])
def test_their_quantised_network_has_their_numbers(network, activations, per_channel, tmp_path):
    quantization = pytest.importorskip('onnxruntime.quantization')
    rng = np.random.default_rng(1)

    class Reader(quantization.CalibrationDataReader):
        samples = iter([{'x': rng.random(SHAPE, np.float32)} for _ in range(4)])

        def get_next(self):
            return next(self.samples, None)

    path = str(tmp_path / 'theirs.onnx')
    quantization.quantize_static(network, path, Reader(), quant_format=quantization.QuantFormat.QDQ,
                                 per_channel=per_channel,
                                 activation_type=getattr(quantization.QuantType, activations),
                                 weight_type=quantization.QuantType.QInt8)
    x = rng.random(SHAPE, np.float32)
    want = theirs(path, x)
    for options in [], ['--no-optimize']:
        have = ours(path, x, tmp_path, *options)
        assert np.abs(have - want).max() < 0.03 * np.abs(want).max()
        assert np.abs(have - want).mean() < 0.003 * np.abs(want).max()


def test_our_quantised_network_runs_there(network, tmp_path):
    path = str(tmp_path / 'ours.onnx')
    run = subprocess.run([PROGRAM, 'build', network, '-o', path, '--device', 'cpu', '--precision', 'int8'], text=True,
                         capture_output=True, check=True)
    assert 'random input' in run.stderr and '3 of 3 layers' in run.stdout
    x = np.random.default_rng(2).random(SHAPE, np.float32)
    want, plain, have = theirs(path, x), theirs(network, x), ours(path, x, tmp_path, '--precision', 'int8')
    assert np.abs(have - want).mean() < 0.003 * np.abs(want).max()
    assert 0 < np.abs(have - plain).max() < 0.1 * np.abs(plain).max()
