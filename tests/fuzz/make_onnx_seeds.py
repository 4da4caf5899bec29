# SPDX-License-Identifier: Apache-2.0
"""Writes corpus/onnx: small models that between them use every part of the format that the reader
knows. `python3 tests/fuzz/make_onnx_seeds.py` (needs the PyPI package onnx); the files are kept in
the repository."""
import os

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'corpus', 'onnx')
rng = np.random.default_rng(1)


def const(name, values, dtype=np.int64):
    return numpy_helper.from_array(np.array(values, dtype), name)


def weights(name, *shape):
    return numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)


def save(name, nodes, inputs, outputs, init=(), opset=17, functions=(), **kw):
    info = [h.make_tensor_value_info(n, t, s) for n, t, s in inputs]
    out = [h.make_tensor_value_info(n, t, s) for n, t, s in outputs]
    graph = h.make_graph(nodes, name, info, out, list(init), **kw)
    sets = [h.make_opsetid('', opset)] + [h.make_opsetid(f.domain, 1) for f in functions]
    model = h.make_model(graph, opset_imports=sets, ir_version=8, functions=list(functions),
                         producer_name='seed')
    h.set_model_props(model, {'order': 'BGR', 'names': "{0: 'person'}"})
    with open(os.path.join(FOLDER, name + '.onnx'), 'wb') as f:
        f.write(model.SerializeToString())


def node(op, inputs, outputs, **attrs):
    return h.make_node(op, inputs.split(), outputs.split(), **attrs)


def sub(name, nodes, inputs, outputs):
    return h.make_graph(nodes, name, [h.make_tensor_value_info(*v) for v in inputs],
                        [h.make_tensor_value_info(*v) for v in outputs])


F, I, B = T.FLOAT, T.INT64, T.BOOL
save('conv', [node('Conv', 'x w b', 'c', pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
              node('Sigmoid', 'c', 's'), node('Mul', 'c s', 'm'),
              node('MaxPool', 'm', 'y', kernel_shape=[2, 2], strides=[2, 2])],
     [('x', F, [1, 2, 6, 6])], [('y', F, [1, 3, 3, 3])], [weights('w', 3, 2, 3, 3), weights('b', 3)])
save('conv_transpose', [node('ConvTranspose', 'x w', 'y', strides=[2, 2], output_padding=[1, 1])],
     [('x', F, [1, 2, 3, 3])], [('y', F, None)], [weights('w', 2, 2, 3, 3)])
save('batch', [node('Transpose', 'x', 't', perm=[0, 2, 3, 1]),
               node('ReduceMean', 't', 'm', axes=[0, 1, 2, 3]), node('Sub', 't m', 'd'),
               node('Reshape', 'd shape', 'y')],
     [('x', F, [1, 2, 2, 2])], [('y', F, [1, 8])], [const('shape', [1, 8])], opset=12)
save('shapes', [node('Shape', 'x', 's'), node('Gather', 's zero', 'n', axis=0),
                node('Concat', 'n rest', 't', axis=0), node('Reshape', 'x t', 'y')],
     [('x', F, ['n', 2, 3])], [('y', F, ['n', 6])], [const('zero', [0]), const('rest', [-1])])
save('slice', [node('Slice', 'x a b c d', 's'), node('Pad', 's p', 'q'),
               node('Split', 'q', 'y z', axis=1)],
     [('x', F, [2, 6, 5])], [('y', F, None), ('z', F, None)],
     [const('a', [0, 4]), const('b', [9223372036854775807, -9223372036854775808]),
      const('c', [1, 2]), const('d', [2, -1]), const('p', [0, 1, 0, 0, 1, 2])], opset=13)
save('resize', [node('Resize', 'x none s', 'y', mode='linear',
                     coordinate_transformation_mode='align_corners')],
     [('x', F, [1, 1, 3, 3])], [('y', F, None)],
     [numpy_helper.from_array(np.array([1, 1, 2, 1.5], np.float32), 's'),
      numpy_helper.from_array(np.array([], np.float32), 'none')])
save('matmul', [node('MatMul', 'x w', 'a'), node('Gemm', 'f v b', 'y', transB=1),
                node('Flatten', 'a', 'f'), node('Softmax', 'y', 'z', axis=-1)],
     [('x', F, ['n', 2, 3])], [('z', F, ['n', 4])],
     [weights('w', 3, 5), weights('v', 4, 10), weights('b', 4)])
save('norm', [node('BatchNormalization', 'x s b m v', 'a'),
              node('InstanceNormalization', 'a s b', 'i'),
              node('LayerNormalization', 'i l', 'y', axis=-1)],
     [('x', F, [1, 2, 3, 4])], [('y', F, None)],
     [weights('s', 2), weights('b', 2), weights('m', 2), const('v', [1, 2], np.float32),
      weights('l', 4)])
save('quantised', [node('QuantizeLinear', 'x s z', 'q'), node('DequantizeLinear', 'q s z', 'd'),
                   node('DequantizeLinear', 'w t u', 'e', axis=0), node('Mul', 'd e', 'y')],
     [('x', F, [2, 2])], [('y', F, None)],
     [const('s', .1, np.float32), const('z', 128, np.uint8), const('w', [[1, 2], [3, -4]], np.int8),
      const('t', [.5, .25], np.float32), const('u', [0, 1], np.int8)])
save('nonzero', [node('NonZero', 'x', 'i'), node('Transpose', 'i', 't', perm=[1, 0]),
                 node('GatherND', 'x t', 'y')],
     [('x', F, [3, 3])], [('y', F, None)])
save('nms', [node('NonMaxSuppression', 'b s k i c', 'y')],
     [('b', F, [1, 4, 4]), ('s', F, [1, 1, 4])], [('y', I, None)],
     [const('k', [3]), const('i', [.5], np.float32), const('c', [.1], np.float32)])
save('if', [node('If', 'c', 'y',
                 then_branch=sub('yes', [node('Neg', 'x', 'r')], [], [('r', F, [2])]),
                 else_branch=sub('no', [node('Abs', 'x', 'q')], [], [('q', F, [2])]))],
     [('c', B, []), ('x', F, [2])], [('y', F, [2])])
save('loop', [node('Loop', 'n go x', 'y all', body=sub(
        'body', [node('Add', 'a a', 's'), node('Identity', 'c', 'd')],
        [('i', I, []), ('c', B, []), ('a', F, [2])],
        [('d', B, []), ('s', F, [2]), ('s', F, [2])]))],
     [('x', F, [2])], [('y', F, [2]), ('all', F, None)], [const('n', 3), const('go', True, bool)])
save('scan', [node('Scan', 'x z', 'y all', num_scan_inputs=1, body=sub(
        'body', [node('Add', 'a b', 's'), node('Identity', 's', 't')],
        [('a', F, [2]), ('b', F, [2])], [('s', F, [2]), ('t', F, [2])]))],
     [('x', F, [2]), ('z', F, [3, 2])], [('y', F, [2]), ('all', F, [3, 2])])
save('function', [h.make_node('Twice', ['x'], ['y'], domain='mine', alpha=.5)],
     [('x', F, [2])], [('y', F, [2])], functions=[h.make_function(
         'mine', 'Twice', ['a'], ['c'],
         [node('LeakyRelu', 'a', 'b'), node('Add', 'a b', 'c')], [h.make_opsetid('', 17)],
         attributes=['alpha'])])
save('attributes', [h.make_node('Constant', [], ['a'], value_floats=[1., 2.]),
                    h.make_node('Constant', [], ['b'], value_ints=[1, 2]),
                    h.make_node('Constant', [], ['c'], value=const('t', [[3.]], np.float16)),
                    node('Einsum', 'x x', 'y', equation='ij,jk->ik')],
     [('x', F, [2, 2])], [('a', F, None), ('b', I, None), ('c', T.FLOAT16, None), ('y', F, None)])
save('typed', [node('Cast', 'a', 'y', to=F), node('Cast', 'b', 'z', to=F)], [],
     [('y', F, None), ('z', F, None)],
     [h.make_tensor('a', T.INT8, [3], [1, -2, 3]), h.make_tensor('b', T.FLOAT16, [2], [1.5, -2])])
save('topk', [node('TopK', 'x k', 'y i', axis=-1), node('GatherElements', 'x i', 'z', axis=-1),
              node('ScatterElements', 'x i y', 'w', axis=-1), node('CumSum', 'w a', 'v')],
     [('x', F, [2, 5])], [('z', F, None), ('v', F, None)], [const('k', [2]), const('a', 1)])
save('where', [node('Greater', 'x z', 'c'), node('Where', 'c x z', 'w'), node('Clip', 'w z o', 'k'),
               node('Expand', 'k s', 'e'), node('Tile', 'e r', 'y'), node('Range', 'z o z', 'g')],
     [('x', F, [2, 1])], [('y', F, None)],
     [const('z', 0, np.float32), const('o', 6, np.float32), const('s', [2, 3]), const('r', [1, 2])])
save('recurrent', [node('LSTM', 'x w r', 'y h', hidden_size=2)],
     [('x', F, [3, 1, 2])], [('y', F, None), ('h', F, None)],
     [weights('w', 1, 8, 2), weights('r', 1, 8, 2)])
