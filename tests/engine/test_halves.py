# SPDX-License-Identifier: Apache-2.0
"""Files that compute in 16 bits: the numbers of their float32 twin, by its kernels."""
import os
import pathlib
import re
import subprocess

import numpy as np
import onnx
import onnx.helper as make
import onnx.numpy_helper as numbers
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get('SACCADE_BUILD', ROOT / 'build')) / 'src/cli/saccade'
FLOAT, FLOAT16, BFLOAT16 = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16


def constant(name, values, kind):
    if kind == BFLOAT16:
        return make.make_tensor(name, kind, values.shape, (values.astype(np.float32).ravel().view(np.uint32) >> 16).astype('<u2').tobytes(), raw=True)
    return numbers.from_array(values.astype(np.float16 if kind == FLOAT16 else np.float32), name)


def held(values):
    """Numbers that all three types hold."""
    return (np.asarray(values, np.float32).view(np.uint32) & 0xffff0000).view(np.float32)


def network(kind, path, opset=17, extra=(), out=()):
    """A convolution, a norm that was left in float32 as converters do, a product, weights that are cast, a constant that is made."""
    draw = np.random.default_rng(1)
    weights = {'w': held(draw.standard_normal((16, 3, 3, 3)) / 5), 'b': held(draw.standard_normal(16) / 5),
               'm': held(draw.standard_normal((16, 24)) / 4), 'half': held(np.full(1, 0.5))}
    one = constant('one', np.ones(1), kind)
    nodes = [make.make_node('Conv', ['x', 'w', 'b'], ['c'], pads=[1] * 4), make.make_node('Relu', ['c'], ['r']),
             make.make_node('Cast', ['r'], ['wide'], to=FLOAT), make.make_node('ReduceMean', ['wide'], ['mean'], axes=[2, 3], keepdims=0),
             make.make_node('Cast', ['mean'], ['narrow'], to=kind), make.make_node('MatMul', ['narrow', 'm'], ['p']),
             make.make_node('Shape', ['p'], ['shape']), make.make_node('ConstantOfShape', ['shape'], ['ones'], value=one),
             make.make_node('Add', ['p', 'ones'], ['sum']), make.make_node('Mul', ['sum', 'half'], ['scaled']),
             make.make_node('Softmax', ['scaled'], ['y'], axis=1), *extra]
    values = [constant(name, value, kind) for name, value in weights.items()]
    graph = make.make_graph(nodes, 'halves', [make.make_tensor_value_info('x', kind, ['n', 3, 20, 28])],
                            [make.make_tensor_value_info('y', kind, ['n', 24]), make.make_tensor_value_info('r', kind, ['n', 16, 20, 28]), *out],
                            values)
    model = make.make_model(graph, opset_imports=[make.make_opsetid('', opset)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def run(model, x, folder, **env):
    folder.mkdir(exist_ok=True)
    np.save(folder / 'x.npy', x)
    out = folder / 'out'
    subprocess.run([PROGRAM, 'infer', model, '-i', folder / 'x.npy', '-o', out, '-d', 'cpu', '-t', '1'], check=True, capture_output=True,
                   env=os.environ | env)
    return {path.stem: np.load(path) for path in out.iterdir()}


def kernels(model, **env):
    """{operator: kernel} as inspect shows them."""
    said = subprocess.run([PROGRAM, 'inspect', model], check=True, capture_output=True, text=True, env=os.environ | env).stdout
    table = said[said.index('operator  '):].splitlines()[1:]
    return {m[1]: m[2] for m in (re.match(r'  (\w+) +\d+  (.*)', line) for line in table) if m}


@pytest.fixture(scope='module')
def twin(tmp_path_factory):
    return network(FLOAT, tmp_path_factory.mktemp('twin') / 'twin.onnx')


def test_the_twins_numbers_and_kernels(twin, tmp_path):
    x = held(np.random.default_rng(2).random((2, 3, 20, 28))).astype(np.float32)
    half = network(FLOAT16, tmp_path / 'half.onnx')
    wanted, found = run(twin, x, tmp_path), run(half, x.astype(np.float16), tmp_path)
    for name in wanted:
        assert found[name].dtype == np.float16
        np.testing.assert_array_equal(found[name], wanted[name].astype(np.float16), name)  # rounded once, at the end
    own, twins = kernels(half), kernels(twin)
    assert {k: v for k, v in own.items() if k != 'Cast'} == {k: v for k, v in twins.items() if k != 'Cast'}
    assert 'plain C' not in own.values() and kernels(half, SACCADE_WITHOUT='halves')['Conv'] == 'plain C'


def test_onnx_runtime_agrees(tmp_path):
    ort = pytest.importorskip('onnxruntime')
    half = network(FLOAT16, tmp_path / 'half.onnx')
    x = np.random.default_rng(3).random((2, 3, 20, 28)).astype(np.float16)
    wanted = dict(zip(('y', 'r'), ort.InferenceSession(half, providers=['CPUExecutionProvider']).run(None, {'x': x})))
    found = run(half, x, tmp_path)
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=4e-3, atol=2e-3)


def test_bfloat16(twin, tmp_path):
    """NumPy has no such type: input and output are cast within the file, to float32."""
    model = onnx.load(network(BFLOAT16, tmp_path / 'raw.onnx'))
    graph = model.graph
    graph.node.insert(0, make.make_node('Cast', ['given'], ['x'], to=BFLOAT16))
    graph.node.append(make.make_node('Cast', ['y'], ['shown'], to=FLOAT))
    del graph.input[:], graph.output[:]
    graph.input.append(make.make_tensor_value_info('given', FLOAT, ['n', 3, 20, 28]))
    graph.output.append(make.make_tensor_value_info('shown', FLOAT, ['n', 24]))
    onnx.save(model, tmp_path / 'b.onnx')
    x = held(np.random.default_rng(4).random((1, 3, 20, 28))).astype(np.float32)
    np.testing.assert_allclose(run(tmp_path / 'b.onnx', x, tmp_path)['shown'], run(twin, x, tmp_path)['y'], atol=1e-6)


def test_a_file_with_branches_is_left_as_it_is(twin, tmp_path):
    """A branch names the types of what it makes."""
    branches = [make.make_graph([make.make_node('Constant', [], [name], value=constant('c', np.full(1, value), FLOAT16))], name, [],
                                [make.make_tensor_value_info(name, FLOAT16, [1])]) for name, value in (('then', 1), ('else', 2))]
    more = [make.make_node('Constant', [], ['yes'], value=numbers.from_array(np.array(True))),
            make.make_node('If', ['yes'], ['one'], then_branch=branches[0], else_branch=branches[1]), make.make_node('Add', ['y', 'one'], ['z'])]
    half = network(FLOAT16, tmp_path / 'if.onnx', extra=more, out=[make.make_tensor_value_info('z', FLOAT16, ['n', 24])])
    found = run(half, np.random.default_rng(5).random((1, 3, 20, 28)).astype(np.float16), tmp_path)
    assert (found['z'] == found['y'] + np.float16(1)).all()


# ---- networks that people bring ----

def halved(path, out):
    """As converters do it: constants, what is cast, and the types of what goes in and out."""
    model = onnx.load(path)

    def narrow(tensor):
        if tensor.data_type == FLOAT:
            tensor.CopyFrom(numbers.from_array(numbers.to_array(tensor).astype(np.float16), tensor.name))
    for tensor in model.graph.initializer:
        narrow(tensor)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                narrow(attribute.t)
            elif node.op_type == 'Cast' and attribute.i == FLOAT:
                attribute.i = FLOAT16
    for port in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        if port.type.tensor_type.elem_type == FLOAT:
            port.type.tensor_type.elem_type = FLOAT16
    onnx.save(model, out)
    return out


@pytest.mark.parametrize('fixture', sorted((ROOT / 'tests/models').glob('*.onnx')), ids=lambda path: path.stem)
def test_networks_in_float16(fixture, tmp_path):
    x = np.load(ROOT / 'tests/models/input.npy')
    half = halved(fixture, tmp_path / fixture.name)
    found, wanted = run(half, x.astype(np.float16), tmp_path), run(fixture, x, tmp_path / 'whole')
    assert found and found.keys() == wanted.keys()
    for name, numbers_found in found.items():
        assert numbers_found.dtype == np.float16
        assert abs(numbers_found - wanted[name]).max() < 3e-3 * abs(wanted[name]).max(), name
    assert {kernel for kernel in kernels(half).values() if kernel == 'plain C'} == {k for k in kernels(fixture).values() if k == 'plain C'}
