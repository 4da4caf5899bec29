# SPDX-License-Identifier: Apache-2.0
"""What constants are folded through is given back, and an index for each number of all of a value becomes nothing."""
import os
import subprocess
import sys

import numpy as np
import onnx
import onnx.helper as make
import pytest
from onnx_files import FLOAT, PROGRAM, inspect, ports, save

STEPS = 20

# Runs argv[1:] and prints the most memory that it had, in KB. A child's figure begins with its parent's, so the parent is small.
MEASURE = 'import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); ' \
          'print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)'


def infer(folder, x):
    """The most memory that it took, and y."""
    np.save(folder / 'x.npy', x)
    run = [sys.executable, '-c', MEASURE, PROGRAM, 'infer', folder / 'net.onnx', '-i', folder / 'x.npy', '-o', folder, '-d', 'cpu', '-q']
    peak = int(subprocess.run(run, check=True, capture_output=True, text=True, env={**os.environ, 'GOMP_SPINCOUNT': '1000'}).stdout)
    return peak, np.load(folder / 'y.npy')


def test_steps_of_folding_are_not_kept(tmp_path):
    weights, plain = np.random.default_rng(1).random((1, 4 << 20)).astype(np.float32), []
    for steps in (1, STEPS):  # of 16 MB each
        nodes = [make.make_node('Abs', ['w' if i == 0 else f'w{i}'], [f'w{i + 1}']) for i in range(steps)]
        save(tmp_path / 'net.onnx', [*nodes, make.make_node('Add', ['x', f'w{steps}'], ['y'])], {'x': list(weights.shape)},
             {'y': list(weights.shape)}, {'w': weights})
        peak, y = infer(tmp_path, np.ones_like(weights))
        np.testing.assert_array_equal(y, 1 + weights)
        plain.append(peak)
    assert plain[1] < plain[0] + 3 * 16384


@pytest.mark.parametrize('kind', ['all', 'shuffled', 'part', 'added'])
def test_writing_to_all_places_is_no_step(tmp_path, kind):
    dims = (2, 3, 4)
    draw = np.random.default_rng(2)
    x, base = draw.standard_normal(dims).astype(np.float32), draw.standard_normal(dims).astype(np.float32)
    places = np.stack(np.meshgrid(*map(np.arange, dims), indexing='ij'), -1).astype(np.int64)
    if kind == 'shuffled':
        places = places[:, ::-1].copy()
    if kind == 'part':
        places[0, 0, 0] = places[0, 0, 1]
    nodes = [make.make_node('Abs', ['x'], ['a']), make.make_node('Mul', ['x', 'base'], ['b']),
             make.make_node('ScatterND', ['b', 'places', 'a'], ['s'], reduction='add' if kind == 'added' else 'none'),
             make.make_node('Softmax', ['s'], ['y'], axis=-1)]
    save(tmp_path / 'net.onnx', nodes, {'x': list(dims)}, {'y': list(dims)}, {'base': base, 'places': places})
    wanted = x * base
    for at, value in zip(places.reshape(-1, 3), np.abs(x).reshape(-1)):
        wanted[tuple(at)] = value + (wanted[tuple(at)] if kind == 'added' else 0)
    wanted = np.exp(wanted - wanted.max(-1, keepdims=True))
    np.testing.assert_allclose(infer(tmp_path, x)[1], wanted / wanted.sum(-1, keepdims=True), rtol=1e-5)
    gone = [line for line in inspect(tmp_path / 'net.onnx').splitlines() if 'ScatterND' in line][0].endswith('folded or fused away')
    assert gone == (kind == 'all')


def test_constants_of_one_attribute_stay_while_one_is_read(tmp_path):
    """A function's argument is two constants in its body, of which a Transpose takes one."""
    inner, node = 150, make.make_node  # more than 64 KB
    w = np.random.default_rng(2).standard_normal((200, inner)).astype(np.float32)
    body = [node('Constant', [], ['a']), node('Constant', [], ['b']), node('Transpose', ['a'], ['at'], perm=[1, 0]),
            node('MatMul', ['x', 'at'], ['h']), node('MatMul', ['h', 'b'], ['y'])]
    for constant in body[:2]:
        value = constant.attribute.add()
        value.name, value.type, value.ref_attr_name = 'value', onnx.AttributeProto.TENSOR, 'w'
    opsets = [make.make_opsetid('', 17), make.make_opsetid('own', 1)]
    function = make.make_function('own', 'F', ['x'], ['y'], body, opsets[:1], attributes=['w'])
    call = node('F', ['x'], ['y'], domain='own', w=make.make_tensor('w', FLOAT, w.shape, w.ravel()))
    graph = make.make_graph([call], 'shared', ports({'x': [3, inner]}), ports({'y': [3, inner]}))
    onnx.save(make.make_model(graph, functions=[function], opset_imports=opsets, ir_version=9), tmp_path / 'net.onnx')
    x = np.random.default_rng(3).standard_normal((3, inner)).astype(np.float32)
    want = x.astype(np.float64) @ w.T @ w
    assert np.abs(infer(tmp_path, x)[1] - want).max() < 1e-5 * np.abs(want).max()
