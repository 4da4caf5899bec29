# SPDX-License-Identifier: Apache-2.0
"""Constants of one number with more dims than what they meet, and first dims that differ: results keep their shapes."""
import numpy as np
import onnx.helper as make
import pytest
from onnx_files import infer, save


def run(folder, nodes, inputs, constants, names=None):
    """{input: array}; the dims of an input are fixed, or its first one has a name."""
    names = names or {}
    dims = {k: [names[k], *v.shape[1:]] if k in names else list(v.shape) for k, v in inputs.items()}
    save(folder / 'net.onnx', nodes, dims, {'y': None}, constants)
    return infer(folder / 'net.onnx', inputs)['y']


def draw(*dims):
    return np.random.default_rng(4).standard_normal(dims).astype(np.float32)


def number(value, rank):
    return np.full([1] * rank, value, np.float32)


def test_elementwise_steps(tmp_path):
    x, z = draw(7), draw(7) + 1
    nodes = [make.make_node('Mul', ['x', 'two'], ['a']), make.make_node('Add', ['a', 'z'], ['y'])]
    y = run(tmp_path, nodes, {'x': x, 'z': z}, {'two': number(2, 3)})
    np.testing.assert_allclose(y, x * number(2, 3) + z, rtol=1e-6)


def test_a_number_behind_a_step_that_is_broadcast(tmp_path):
    x = draw(3, 1)
    nodes = [make.make_node('Mul', ['x', 'two'], ['a']), make.make_node('Add', ['a', 'one'], ['y'])]
    y = run(tmp_path, nodes, {'x': x}, {'two': number(2, 0), 'one': number(1, 3)})
    np.testing.assert_allclose(y, x * 2 + number(1, 3), rtol=1e-6)


@pytest.mark.parametrize('square, root, floor', [(1, 1, 5), (1, 3, 1), (3, 1, 1)])
def test_vectors_over_their_length(square, root, floor, tmp_path):
    x = draw(4, 8)
    node = make.make_node
    nodes = [node('Pow', ['x', 'two'], ['s']), node('ReduceSum', ['s', 'axis'], ['t'], keepdims=1), node('Pow', ['t', 'half'], ['n']),
             node('Max', ['n', 'floor'], ['m']), node('Div', ['x', 'm'], ['y'])]
    constants = {'two': number(2, square), 'half': number(0.5, root), 'floor': number(1e-6, floor), 'axis': np.array([-1])}
    want = x / np.maximum(np.sum(x ** constants['two'], -1, keepdims=True) ** constants['half'], constants['floor'])
    np.testing.assert_allclose(run(tmp_path, nodes, {'x': x}, constants), want, rtol=1e-5)


def test_first_dims_of_two_names(tmp_path):
    a, c, d = draw(1, 1), draw(3, 4), draw(1, 4)
    node = make.make_node
    nodes = [node('Shape', ['c'], ['rows'], end=1), node('Concat', ['rows', 'four'], ['dims'], axis=0), node('Expand', ['a', 'dims'], ['e']),
             node('Div', ['d', 'e'], ['y'])]
    y = run(tmp_path, nodes, {'a': a, 'c': c, 'd': d}, {'four': np.array([4])}, {'a': 'q', 'c': 'b', 'd': 'm'})
    np.testing.assert_allclose(y, np.broadcast_to(d / a, (3, 4)), rtol=1e-5)
