# SPDX-License-Identifier: Apache-2.0
"""A recurrent layer with computed weights runs on vectors, and gives what it gives with constant ones, to the last bit."""
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
FLOAT = onnx.TensorProto.FLOAT
STEPS, BATCH, INPUTS, HIDDEN = 6, 3, 9, 19
GATES = {'RNN': 1, 'GRU': 3, 'LSTM': 4}


def run(folder, operator, given, constant, attributes):
    """Returns Y, and the line of inspect."""
    ports = [make.make_tensor_value_info(name, FLOAT, x.shape) for name, x in given.items()]
    node = make.make_node(operator, ['x', 'w', 'r', 'b'], ['y'], hidden_size=HIDDEN, direction='bidirectional', **attributes)
    graph = make.make_graph([node], 'recurrent', ports, [make.make_tensor_value_info('y', FLOAT, None)],
                            [numbers.from_array(x, name) for name, x in constant.items()])
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid('', 17)], ir_version=9), folder / 'net.onnx')
    feed = []
    for name, x in given.items():
        np.save(folder / f'{name}.npy', x)
        feed += ['-i', f'{name}={folder}/{name}.npy']
    subprocess.run([PROGRAM, 'infer', folder / 'net.onnx', *feed, '-o', folder, '-d', 'cpu', '-t', '1'], check=True, capture_output=True)
    said = subprocess.run([PROGRAM, 'inspect', '-d', 'cpu', folder / 'net.onnx'], check=True, capture_output=True, text=True).stdout
    return np.load(folder / 'y.npy'), [line for line in said.splitlines() if line.split()[:1] == [operator]][0]


@pytest.mark.parametrize('computed', ['wrb', 'w', 'r', 'b'])
@pytest.mark.parametrize('operator, attributes', [('RNN', {}), ('GRU', {}), ('GRU', {'linear_before_reset': 1}), ('LSTM', {})])
def test_computed_weights_are_those_of_the_file(tmp_path, operator, attributes, computed):
    draw, rows = np.random.default_rng(5), GATES[operator] * HIDDEN
    operands = {'x': draw.standard_normal((STEPS, BATCH, INPUTS)), 'w': draw.standard_normal((2, rows, INPUTS)),
                'r': draw.standard_normal((2, rows, HIDDEN)), 'b': draw.standard_normal((2, 2 * rows))}
    operands = {name: (0.4 * x).astype(np.float32) for name, x in operands.items()}
    given = {name: x for name, x in operands.items() if name == 'x' or name in computed}
    y, line = run(tmp_path, operator, given, {name: x for name, x in operands.items() if name not in given}, attributes)
    wanted, fast = run(tmp_path, operator, {'x': operands['x']}, {name: operands[name] for name in 'wrb'}, attributes)
    np.testing.assert_array_equal(y, wanted)
    assert line == fast
