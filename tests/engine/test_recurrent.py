# SPDX-License-Identifier: Apache-2.0
"""A recurrent layer with computed weights runs on vectors, and gives what it gives with constant ones, to the last bit."""
import numpy as np
import onnx.helper as make
import pytest
from onnx_files import infer, inspect, save

STEPS, BATCH, INPUTS, HIDDEN = 6, 3, 9, 19
GATES = {'RNN': 1, 'GRU': 3, 'LSTM': 4}


def run(folder, operator, given, constant, attributes):
    """Returns Y, and the line of inspect."""
    path = folder / 'net.onnx'
    node = make.make_node(operator, ['x', 'w', 'r', 'b'], ['y'], hidden_size=HIDDEN, direction='bidirectional', **attributes)
    save(path, [node], {name: list(x.shape) for name, x in given.items()}, {'y': None}, constant)
    return infer(path, given)['y'], [line for line in inspect(path).splitlines() if line.split()[:1] == [operator]][0]


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
