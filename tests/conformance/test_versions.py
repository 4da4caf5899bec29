# SPDX-License-Identifier: Apache-2.0
"""What the node tests leave out: operators as older opsets define them, and odd combinations of
attributes, on random numbers against ONNX Runtime."""
import ctypes
import os
import zlib

import numpy as np
import pytest

import run

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

BUILD = os.environ.get("SACCADE_BUILD", os.path.join(os.path.dirname(__file__), "../../build"))


def ints(*values):
    return np.array(values, np.int64)


def floats(*values):
    return np.array(values, np.float32)


def one(value, dtype=np.float32):
    return np.array(value, dtype)


# (operator, opset, inputs, attributes, outputs); a tuple is the shape of a random input, an array an
# initializer, None is left out.
CASES = [
    ("Slice", 9, [(3, 8, 9)], dict(starts=[1, -5], ends=[7, 2 ** 31], axes=[1, 2]), 1),
    ("Slice", 10, [(3, 8, 9), ints(-1), ints(-100), ints(1), ints(-3)], {}, 1),
    ("Slice", 10, [(0, 40), ints(-1), ints(-2 ** 63), ints(0), ints(-1)], {}, 1),
    ("Squeeze", 11, [(1, 3, 1, 4)], dict(axes=[0, 2]), 1),
    ("Squeeze", 11, [(1, 3, 1, 4)], {}, 1),
    ("Unsqueeze", 11, [(3, 4)], dict(axes=[0, -1]), 1),
    ("Split", 11, [(2, 9, 3)], dict(axis=1, split=[2, 3, 4]), 3),
    ("Split", 11, [(2, 9, 3)], dict(axis=1), 3),
    ("Split", 18, [(2, 10, 3)], dict(axis=1, num_outputs=4), 4),
    ("Softmax", 11, [(2, 3, 4)], dict(axis=1), 1),
    ("Softmax", 11, [(2, 3, 4)], {}, 1),
    ("LogSoftmax", 12, [(2, 3, 4)], dict(axis=-1), 1),
    ("Clip", 9, [(5, 7)], dict(min=-0.5, max=0.25), 1),
    ("Clip", 12, [(5, 7), None, one(0.3)], {}, 1),
    ("Pad", 10, [(2, 3, 4)], dict(pads=[0, 1, 2, 0, 0, 1], value=1.5), 1),
    ("Pad", 10, [(2, 3, 6)], dict(pads=[0, 0, 2, 0, 0, 3], mode="reflect"), 1),
    ("Pad", 13, [(4, 5), ints(-1, 2, 0, -1)], {}, 1),
    ("Pad", 18, [(4, 5, 6), ints(2, 1), one(0.0), ints(-1)], dict(mode="edge"), 1),
    ("ReduceSum", 11, [(2, 3, 4)], dict(axes=[1], keepdims=0), 1),
    ("ReduceMean", 13, [(2, 3, 4, 5)], dict(axes=[-1, -2]), 1),
    ("ReduceMax", 12, [(2, 3, 4)], {}, 1),
    ("ReduceMean", 18, [(2, 3, 4), ints(0, 2)], dict(keepdims=0), 1),
    ("TopK", 10, [(3, 20), ints(4)], dict(axis=1), 2),
    ("TopK", 11, [(5, 300), ints(50)], dict(axis=-1, largest=0), 2),
    ("Upsample", 9, [(1, 2, 3, 4), floats(1, 1, 2, 3)], dict(mode="nearest"), 1),
    ("Upsample", 9, [(1, 2, 3, 4), floats(1, 1, 2, 2)], dict(mode="linear"), 1),
    ("Resize", 10, [(1, 2, 5, 6), floats(1, 1, 2, 0.5)], dict(mode="nearest"), 1),
    ("Resize", 10, [(1, 2, 5, 6), floats(1, 1, 1.5, 1.5)], dict(mode="linear"), 1),
    ("Resize", 11, [(1, 2, 5, 6), floats(), floats(1, 1, 2, 2)],
     dict(mode="linear", coordinate_transformation_mode="pytorch_half_pixel"), 1),
    ("Resize", 11, [(1, 2, 5, 6), floats(), floats(1, 1, 0.6, 1.7)], dict(mode="cubic"), 1),
    ("Resize", 13, [(1, 2, 7, 6), None, None, ints(1, 2, 3, 11)],
     dict(mode="nearest", coordinate_transformation_mode="half_pixel", nearest_mode="floor"), 1),
    ("Resize", 13, [(1, 2, 7, 6), None, None, ints(1, 2, 3, 11)],
     dict(mode="linear", coordinate_transformation_mode="align_corners"), 1),
    ("Resize", 13, [(1, 2, 7, 6), None, None, ints(1, 2, 14, 3)],
     dict(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="ceil"), 1),
    ("Resize", 18, [(1, 2, 12, 9), None, floats(0.5, 0.4)],
     dict(mode="linear", antialias=1, axes=[2, 3]), 1),
    ("BatchNormalization", 7, [(2, 3, 4), floats(1, 2, 3), floats(0, 1, 0), floats(0.5, 0, 1),
                               floats(1, 2, 0.5)], dict(epsilon=1e-3), 1),
    ("Gemm", 7, [(3, 4), (4, 5), (5,)], dict(alpha=0.5, beta=2.0), 1),
    ("Gemm", 9, [(4, 3), (5, 4), (3, 1)], dict(transA=1, transB=1), 1),
    ("Dropout", 7, [(3, 4)], dict(ratio=0.5), 1),
    ("Cast", 6, [(3, 4)], dict(to=TensorProto.INT32), 1),
    ("Flatten", 9, [(2, 3, 4)], dict(axis=2), 1),
    ("Scatter", 9, [(4, 5), np.array([[1, 0, 2, 3, 0]], np.int64), (1, 5)], dict(axis=0), 1),
    ("Constant", 9, [], dict(value=numpy_helper.from_array(floats(1, 2))), 1),
    ("MaxPool", 8, [(1, 3, 9, 8)], dict(kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]), 2),
    ("MaxPool", 10, [(1, 2, 9, 8)], dict(kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1), 1),
    ("MaxPool", 12, [(1, 2, 9, 8)], dict(kernel_shape=[2, 2], dilations=[2, 3]), 1),
    ("MaxPool", 12, [(1, 2, 9, 9)], dict(kernel_shape=[3, 3], auto_pad="SAME_UPPER", strides=[2, 2]), 1),
    ("AveragePool", 10, [(1, 2, 9, 8)],
     dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1), 1),
    ("AveragePool", 11, [(1, 2, 9, 8)], dict(kernel_shape=[3, 3], auto_pad="SAME_LOWER"), 1),
    ("AveragePool", 19, [(1, 2, 9, 8)],
     dict(kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, count_include_pad=1, pads=[1, 1, 1, 1]), 1),
    ("Conv", 11, [(2, 4, 9, 8), (6, 2, 3, 3), (6,)], dict(group=2, strides=[2, 1], pads=[0, 1, 2, 1]), 1),
    ("Conv", 11, [(1, 4, 9, 8), (6, 4, 3, 2)], dict(auto_pad="SAME_LOWER", strides=[2, 2]), 1),
    ("Conv", 11, [(1, 4, 12), (6, 4, 3)], dict(dilations=[3]), 1),
    ("ConvTranspose", 11, [(1, 4, 5, 6), (4, 3, 3, 3), (6,)],
     dict(group=2, strides=[2, 3], pads=[1, 0, 1, 2], output_padding=[1, 0]), 1),
    ("ConvTranspose", 11, [(1, 4, 5, 6), (4, 3, 3, 3)], dict(output_shape=[9, 11], strides=[2, 2]), 1),
    ("ConvTranspose", 11, [(1, 4, 5, 6), (4, 3, 3, 3)], dict(output_shape=[10, 12], strides=[2, 2]), 1),
    ("ConvTranspose", 11, [(1, 4, 5, 6), (4, 3, 3, 3)], dict(output_shape=[10, 12], strides=[2, 2], auto_pad="SAME_UPPER"), 1),
    ("ConvTranspose", 11, [(1, 4, 5, 6), (4, 3, 3, 3)], dict(output_shape=[10, 12], strides=[2, 2], auto_pad="SAME_LOWER"), 1),
    ("ConvTranspose", 11, [(1, 2, 5, 6), (2, 3, 4, 4)], dict(auto_pad="SAME_UPPER", strides=[2, 2]), 1),
    ("DepthToSpace", 11, [(1, 8, 3, 4)], dict(blocksize=2, mode="CRD"), 1),
    ("PRelu", 9, [(2, 3, 4), (3, 1)], {}, 1),
    ("Expand", 8, [(3, 1), ints(2, 1, 6)], {}, 1),
    ("Tile", 6, [(2, 3), ints(3, 2)], {}, 1),
    ("Gather", 11, [(3, 4, 5), np.array([[0, -1], [2, 1]], np.int64)], dict(axis=1), 1),
    ("Einsum", 12, [(3, 4, 5), (3, 5, 6)], dict(equation="bij, bjk -> bik"), 1),
    ("Einsum", 12, [(2, 3, 3)], dict(equation="...ii->...i"), 1),
    ("BatchNormalization", 15, [np.sin(np.arange(24)).astype(np.float32).reshape(2, 3, 4), floats(1, 2, 3), floats(0, 1, 2),
                                floats(0.1, 0.2, 0.3), floats(1, 2, 1)], dict(training_mode=1, momentum=0.7), 3),
    ("InstanceNormalization", 6, [(2, 3, 4, 5), floats(1, 2, 3), floats(0, 1, 2)], {}, 1),
    ("LayerNormalization", 17, [(2, 3, 4), (3, 4), (3, 4)], dict(axis=1), 1),
    ("ArgMax", 12, [(3, 4, 5)], dict(axis=1, keepdims=0, select_last_index=1), 1),
    ("LRN", 13, [(1, 7, 3, 3)], dict(size=5, alpha=0.01), 1),
    ("GridSample", 16, [(1, 2, 5, 6), (1, 3, 4, 2)], dict(padding_mode="border"), 1),
    ("GridSample", 16, [(1, 2, 5, 6), (1, 3, 4, 2)],
     dict(padding_mode="reflection", mode="bicubic", align_corners=1), 1),
    ("RoiAlign", 16, [(2, 3, 9, 9), floats(0, 0, 7, 5, 1, 2, 8, 8).reshape(2, 4), ints(0, 1)],
     dict(output_height=3, output_width=2, sampling_ratio=0, spatial_scale=0.8), 1),
    ("LSTM", 14, [(5, 2, 3), (2, 16, 3), (2, 16, 4), (2, 32), None, (2, 2, 4), (2, 2, 4), (2, 12)],
     dict(hidden_size=4, direction="bidirectional"), 3),
    ("GRU", 14, [(5, 2, 3), (1, 12, 3), (1, 12, 4), (1, 24)],
     dict(hidden_size=4, linear_before_reset=1, direction="reverse"), 2),
    ("RNN", 14, [(5, 2, 3), (1, 4, 3), (1, 4, 4), (1, 8), np.array([3, 5], np.int32)],
     dict(hidden_size=4, activations=["Relu"]), 2),
    ("QuantizeLinear", 13, [(3, 4), floats(0.1, 0.2, 0.3), np.array([3, 0, 7], np.int8)],
     dict(axis=0), 1),
    ("QLinearConv", 10, [np.arange(72).reshape(1, 2, 6, 6).astype(np.uint8), one(0.05),
                         one(3, np.uint8), (np.arange(54).reshape(3, 2, 3, 3) - 20).astype(np.int8),
                         floats(0.1, 0.2, 0.05), np.zeros(3, np.int8), one(2.0), one(100, np.uint8)],
     dict(pads=[1, 1, 1, 1]), 1),
    ("Mod", 13, [np.array([-7, 7, 5], np.int64), np.array([3, -3, 5], np.int64)], {}, 1),
    ("CumSum", 14, [(3, 4), one(1, np.int64)], dict(reverse=1, exclusive=1), 1),
    ("ScatterND", 16, [(4, 5), np.array([[0], [2]], np.int64), (2, 5)], dict(reduction="add"), 1),
    ("Where", 9, [np.array([[True], [False]]), (2, 3), (3,)], {}, 1),
    ("ConstantOfShape", 9, [ints(2, 3)], {}, 1),
    ("Upsample", 7, [(1, 2, 3, 4)], dict(mode="nearest", scales=[1.0, 1.0, 2.0, 3.0]), 1),
    ("TopK", 9, [(3, 20)], dict(axis=1, k=4), 2),
    ("Squeeze", 13, [(1, 3, 1, 4), ints(-2)], {}, 1),
    ("Unsqueeze", 13, [(3, 4), ints(0, 3)], {}, 1),
    ("ReduceSum", 13, [(2, 3, 4), ints(0, -1)], dict(keepdims=0), 1),
    ("ReduceSum", 13, [(2, 3, 4)], dict(noop_with_empty_axes=1), 1),
    ("ReduceLogSumExp", 13, [(2, 3, 4)], dict(axes=[1]), 1),
    ("Hardmax", 11, [(2, 3, 4)], dict(axis=1), 1),
    ("Dropout", 12, [(3, 4)], {}, 1),
    ("GatherND", 12, [(2, 3, 4), np.array([[[1], [0]], [[2], [-1]]], np.int64)],
     dict(batch_dims=1), 1),
    ("ScatterElements", 18, [(3, 4), np.array([[0, 1, 0, 2], [0, 0, 0, -1]], np.int64), (2, 4)],
     dict(axis=0, reduction="max"), 1),
    ("OneHot", 11, [ints(1, -2, 5), one(4, np.int64), floats(-1, 1)], dict(axis=0), 1),
    ("Range", 11, [one(5.0), one(-1.0), one(-1.5)], {}, 1),
    ("Mod", 13, [floats(-7.5, 7.5, 5), floats(3, -3, 2.5)], dict(fmod=1), 1),
    ("Resize", 13, [(1, 2, 6, 7), floats(0, 0, 0.1, 0.2, 1, 1, 0.8, 1.1), None, ints(1, 2, 4, 5)],
     dict(mode="linear", coordinate_transformation_mode="tf_crop_and_resize",
          extrapolation_value=9.0), 1),
    ("Resize", 19, [(1, 2, 6, 7), None, None, ints(1, 2, 9, 12)],
     dict(mode="linear", keep_aspect_ratio_policy="not_larger"), 1),
    ("Resize", 13, [(1, 2, 6, 7), None, None, ints(1, 2, 9, 5)],
     dict(mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5), 1),
    ("Resize", 11, [(3, 4, 5), floats(), floats(1, 2.5, 0.7)], dict(mode="nearest"), 1),
    ("MatMul", 13, [(2, 1, 3, 4), (5, 4, 6)], {}, 1),
    ("MatMul", 13, [(4,), (5, 4, 6)], {}, 1),
    ("Pow", 15, [np.array([2, 3, -2], np.int64), floats(2, 3, 1)], {}, 1),
    ("Div", 14, [np.array([-7, 7, 9], np.int32), np.array([2, -2, 4], np.int32)], {}, 1),
    ("Mul", 7, [(2, 3, 4), (3, 1)], {}, 1),
    ("Sum", 8, [(2, 3), (3,), (1, 1)], {}, 1),
    ("ConvInteger", 10, [np.arange(50).reshape(1, 2, 5, 5).astype(np.uint8),
                         (np.arange(24).reshape(3, 2, 2, 2) - 9).astype(np.int8), one(7, np.uint8)],
     {}, 1),
    ("DynamicQuantizeLinear", 11, [(4, 5)], {}, 3),
    ("LpPool", 11, [(1, 2, 8, 8)], dict(kernel_shape=[3, 3], strides=[2, 2], p=3), 1),
    ("GlobalMaxPool", 1, [(1, 2, 8, 8)], {}, 1),
    ("SpaceToDepth", 13, [(1, 3, 4, 6)], dict(blocksize=2), 1),
    ("ReverseSequence", 10, [(4, 3, 2), ints(1, 4, 2)], {}, 1),
    ("EyeLike", 9, [np.zeros((3, 5), np.float32)], dict(k=1), 1),
    ("Trilu", 14, [(3, 4, 5), one(-1, np.int64)], dict(upper=0), 1),
    ("Compress", 11, [(3, 4), np.array([True, False, True])], dict(axis=1), 1),
    ("Det", 11, [(2, 4, 4)], {}, 1),
    ("MeanVarianceNormalization", 13, [(2, 3, 4, 5)], {}, 1),
    ("NonMaxSuppression", 11, [(1, 30, 4), (1, 2, 30), ints(5), floats(0.3), floats(0.2)], {}, 1),
]


def build(op, opset, inputs, attrs, outputs):
    """A model of one node, and its random inputs."""
    rng = np.random.default_rng(zlib.crc32(repr((op, opset, attrs)).encode()))
    names, ports, weights, feeds = [], [], [], {}
    for i, x in enumerate(inputs):
        names.append("" if x is None else f"x{i}")
        if isinstance(x, tuple):
            feeds[f"x{i}"] = rng.uniform(-1, 1, x).astype(np.float32)
            ports.append(helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, x))
        elif x is not None:
            weights.append(numpy_helper.from_array(x, f"x{i}"))
    results = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph([helper.make_node(op, names, results, **attrs)], "g", ports,
                              [helper.make_empty_tensor_value_info(y) for y in results], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return model, feeds


@pytest.fixture(scope="module")
def engine():
    library = os.path.abspath(os.path.join(BUILD, "libsaccade.so"))
    if not os.path.exists(library):
        pytest.skip(f"no {library}")
    return run.Engine(library, reference=0, optimise=1)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{c[1]}-{zlib.crc32(repr(c).encode()):08x}")
def test_version(engine, case):
    model, feeds = build(*case)
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    want = runtime.InferenceSession(model.SerializeToString(), options).run(None, feeds)
    blob = model.SerializeToString()
    handle = engine.load(blob, case[0])
    try:
        got = engine.run(handle, list(feeds.values()))
    finally:
        engine.lib.sac_model_unref(ctypes.byref(handle))
    for a, b in zip(got, want):
        run.compare(a, np.asarray(b), 1e-4, 1e-5)
