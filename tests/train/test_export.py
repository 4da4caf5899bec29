# SPDX-License-Identifier: Apache-2.0
"""ONNX files: the contract, weights stored in half precision, a free batch; and files as teachers."""
import numpy
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from saccade_train import export, teacher


@pytest.fixture
def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 4, 1), nn.Sigmoid()).eval()


def run(model, x):
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, {'images': x})[0]


def test_an_export_computes_the_same_for_any_batch(network):
    model = export.to_onnx(network, (1, 3, 16, 24), 'out', {})
    assert model.opset_import[0].version == 17
    assert [d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim] == ['n', 3, 16, 24]
    for n in (1, 3):
        x = torch.rand(n, 3, 16, 24)
        numpy.testing.assert_allclose(run(model, x.numpy()), network(x).detach().numpy(), atol=1e-5)


def test_large_weights_are_kept_in_half_precision(network):
    model = export.to_onnx(network, (1, 3, 16, 24), 'out', {})
    x = torch.rand(2, 3, 16, 24).numpy()
    before, whole = run(model, x), model.ByteSize()
    exact = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    small = export.store_half(model)
    halves = [t for t in small.graph.initializer if t.data_type == TensorProto.FLOAT16]
    assert [t.dims for t in halves] == [[8, 3, 3, 3]]  # 216 numbers; 32 and the biases stay as they are
    assert numpy.array_equal(numpy_helper.to_array(halves[0]),
                             exact[halves[0].name.removesuffix('.fp16')].astype(numpy.float16))
    casts = [n for n in small.graph.node if n.op_type == 'Cast']
    assert len(casts) == 1 and casts[0].attribute[0].i == TensorProto.FLOAT
    assert small.ByteSize() < whole
    after = run(small, x)
    assert 0 < numpy.abs(after - before).max() < 1e-3


def test_all_weights_can_be_kept_in_half_precision(network):
    model = export.store_half(export.to_onnx(network, (1, 3, 16, 24), 'out', {}), least=1)
    assert {t.data_type for t in model.graph.initializer} == {TensorProto.FLOAT16}
    run(model, torch.rand(1, 3, 16, 24).numpy())


def test_the_contract_is_in_the_file(network):
    entries = export.contract('yolov8', 'rgb,letterbox=topleft,mean=0,scale=1/255,fill=114', ['cat', 'dog'], steps=7)
    model = export.to_onnx(network, (1, 3, 16, 24), 'out', entries)
    assert {e.key: e.value for e in model.metadata_props} == {
        'saccade.head': 'yolov8', 'saccade.preprocess': 'rgb,letterbox=topleft,mean=0,scale=1/255,fill=114',
        'saccade.classes': 'cat,dog', 'saccade.steps': '7'}


def save(path, nodes, inputs, outputs, weights):
    port = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, 'test', [port(*i) for i in inputs], [port(*o) for o in outputs],
                              [numpy_helper.from_array(v, k) for k, v in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=7), path)
    return path


def test_a_teacher_computes_what_onnx_runtime_computes(tmp_path):
    """Each operator that a teacher may have, with a batch of 1 that the file has baked in."""
    random = numpy.random.default_rng(3)
    f = lambda *shape: random.standard_normal(shape).astype(numpy.float32)
    i = lambda *v: numpy.array(v, numpy.int64)
    weights = dict(w=f(6, 3, 3, 3) / 3, b=f(6), g=f(6, 1, 3, 3), scales=numpy.array([1, 1, 2, 2], numpy.float32),
                   start=i(0, 0), end=i(8, 10), axes=i(2, 3), step=i(1, 2), shape=i(1, -1), m=f(120, 5) / 9, c=f(5),
                   two=numpy.float32(2).reshape(1))
    n = helper.make_node
    nodes = [n('Conv', ['x', 'w', 'b'], ['1'], pads=[0, 0, 1, 1], strides=[2, 2]), n('Sigmoid', ['1'], ['2']),
             n('Mul', ['1', '2'], ['3']), n('Conv', ['3', 'g'], ['4'], group=6, pads=[1] * 4), n('Relu', ['4'], ['5']),
             n('MaxPool', ['5'], ['6'], kernel_shape=[2, 2], strides=[2, 2]),
             n('Resize', ['6', '', 'scales'], ['7'], mode='nearest'),
             n('AveragePool', ['7'], ['8'], kernel_shape=[2, 2], strides=[1, 1]),
             n('Slice', ['7', 'start', 'end', 'axes', 'step'], ['9']), n('ReduceMean', ['9'], ['10'], axes=[2, 3]),
             n('Sub', ['9', '10'], ['11']), n('Neg', ['11'], ['12']), n('Concat', ['11', '12'], ['13'], axis=1),
             n('Split', ['13'], ['14', '15'], axis=1), n('Add', ['14', '5s'], ['16']),
             n('Div', ['16', 'two'], ['17']), n('Transpose', ['17'], ['18'], perm=[0, 2, 3, 1]),
             n('AveragePool', ['17'], ['19'], kernel_shape=[2, 1], strides=[2, 1]),
             n('Reshape', ['19', 'shape'], ['20']), n('Gemm', ['20', 'm', 'c'], ['21']), n('Mul', ['21', '21'], ['22']),
             n('Sqrt', ['22'], ['y'])]
    nodes.insert(14, n('Slice', ['5', 'start', 'end', 'axes', 'step'], ['5s']))
    path = save(tmp_path / 'net.onnx', nodes, [('x', [1, 3, 16, 20])], [('y', [1, 5])], weights)
    net, session = teacher.OnnxNet(path), onnxruntime.InferenceSession(path)
    x = torch.rand(3, 3, 16, 20)
    with torch.no_grad():
        ours, inside = net(x, also=['18'])
        assert torch.equal(net(x), ours) and inside.shape == (3, 8, 5, 6)
    theirs = numpy.concatenate([session.run(None, {'x': row[None].numpy()})[0] for row in x])
    numpy.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-5)


def test_a_teacher_with_other_operators_is_refused(tmp_path):
    path = save(tmp_path / 'odd.onnx', [helper.make_node('Erf', ['x'], ['y'])], [('x', [1])], [('y', [1])], {})
    with pytest.raises(SystemExit, match='odd.onnx: the teacher uses Erf'):
        teacher.OnnxNet(path)


def test_a_teacher_of_embeddings_takes_bgr_with_channels_last(tmp_path):
    path = save(tmp_path / 'last.onnx', [helper.make_node('ReduceMean', ['x'], ['y'], axes=[1, 2])],
                [('x', ['n', 4, 2, 3])], [('y', ['n', 1, 1, 3])], {})
    rgb = torch.tensor([10.0, 20.0, 30.0])[None, :, None, None].expand(2, 3, 4, 2)
    assert teacher.ReidTeacher(path)(rgb).tolist() == [[30, 20, 10]] * 2
