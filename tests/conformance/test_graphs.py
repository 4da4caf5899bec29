# SPDX-License-Identifier: Apache-2.0
"""Random little networks, so that fusion, layouts and memory reuse meet combinations that nobody
thought of; against ONNX Runtime, and against themselves run a second time."""
import ctypes
import os

import numpy as np
import pytest

import run

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

BUILD = os.environ.get("SACCADE_BUILD", os.path.join(os.path.dirname(__file__), "../../build"))
GRAPHS, LAYERS_MAX = 200, 8


class Graph:
    """Values are (name, N, C, H, W); each layer takes one of them and adds its results."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights = [], []
        shape = (self.below(1, 3), self.pick(1, 3, 8, 13, 16, 24, 32), self.below(1, 20),
                 self.below(1, 20))
        self.values = [("x", *shape)]
        layers = [getattr(self, name) for name in dir(self) if name.startswith("layer_")]
        count = self.below(2, LAYERS_MAX)
        while count > 0 or len(self.values) == 1:  # a layer that does not fit adds nothing
            count -= 1
            index = -1 if self.chance(0.7) else self.below(0, len(self.values))
            layers[self.below(0, len(layers))](*self.values[index])

    def below(self, lo, hi):
        return int(self.rng.integers(lo, hi))

    def pick(self, *options):
        return options[self.below(0, len(options))]

    def chance(self, p):
        return self.rng.random() < p

    def weight(self, *shape, positive=False):
        fan = max(1, int(np.prod(shape[1:])))
        values = self.rng.random(shape) + 0.2 if positive else \
            self.rng.standard_normal(shape) / fan ** 0.5
        return self.const(values.astype(np.float32))

    def const(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *values):
        return self.const(np.array(values, np.int64))

    def op(self, kind, *inputs, outputs=1, **attrs):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attrs))
        return names[0] if outputs == 1 else names

    def add(self, *value):
        self.values.append(value)

    # ---- layers ----

    def convolve(self, x, n, c, h, w, out, group):
        k, s, d = self.pick(1, 1, 2, 3, 3, 5), self.pick(1, 1, 2, 3), self.pick(1, 1, 1, 2, 3)
        extent = (k - 1) * d + 1
        pads = [k // 2 * d] * 4 if self.chance(0.7) else [self.below(0, k) for _ in range(4)]
        rows, columns = h + pads[0] + pads[2] - extent, w + pads[1] + pads[3] - extent
        if rows < 0 or columns < 0:
            return
        inputs = [x, self.weight(out, c // group, k, k)]
        if self.chance(0.6):
            inputs.append(self.weight(out))
        y = self.op("Conv", *inputs, kernel_shape=[k, k], strides=[s, s], pads=pads,
                    dilations=[d, d], group=group)
        self.add(y, n, out, rows // s + 1, columns // s + 1)
        if self.chance(0.3):
            self.layer_batch_norm(*self.values[-1])
        if self.chance(0.6):
            self.layer_activation(*self.values[-1])

    def layer_conv(self, x, n, c, h, w):
        group = self.pick(1, 1, 2, 4)
        group = 1 if c % group else group
        self.convolve(x, n, c, h, w, group * self.pick(1, 3, 4, 8, 10), group)

    def layer_depthwise(self, x, n, c, h, w):
        self.convolve(x, n, c, h, w, c * self.pick(1, 1, 2), c)

    def layer_activation(self, x, n, c, h, w):
        kind = self.pick("Relu", "Sigmoid", "Tanh", "HardSwish", "Elu", "silu", "clip", "leaky",
                         "hard sigmoid", "gelu", "prelu")
        if kind == "silu":
            y = self.op("Mul", x, self.op("Sigmoid", x))
        elif kind == "clip":
            y = self.op("Clip", x, self.const(np.float32(-0.3)), self.const(np.float32(0.8)))
        elif kind == "leaky":
            y = self.op("LeakyRelu", x, alpha=0.1)
        elif kind == "hard sigmoid":
            y = self.op("HardSigmoid", x, alpha=1 / 6, beta=0.5)
        elif kind == "gelu":
            erf = self.op("Erf", self.op("Div", x, self.const(np.float32(2 ** 0.5))))
            y = self.op("Mul", x, self.op("Add", erf, self.const(np.float32(1))))
        elif kind == "prelu":
            y = self.op("PRelu", x, self.weight(c, 1, 1))
        else:
            y = self.op(kind, x)
        self.add(y, n, c, h, w)

    def layer_pool(self, x, n, c, h, w):
        k, s = self.below(1, 6), self.below(1, 3)
        p = k // 2
        y = self.op(self.pick("MaxPool", "AveragePool"), x, kernel_shape=[k, k], strides=[s, s],
                    pads=[p] * 4)
        self.add(y, n, c, (h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1)

    def layer_sum(self, x, *shape):
        other = self.pick(*(v[0] for v in self.values if v[1:] == shape))
        pair = (x, other) if self.chance(0.5) else (other, x)
        self.add(self.op(self.pick("Add", "Mul", "Sub"), *pair), *shape)

    def layer_gate(self, x, n, c, h, w):
        y = self.op("Conv", self.op("GlobalAveragePool", x), self.weight(c, c, 1, 1))
        self.add(self.op("Mul", x, self.op("Sigmoid", y)), n, c, h, w)

    def layer_concat(self, x, n, c, h, w):
        fitting = [v for v in self.values if (v[1], v[3], v[4]) == (n, h, w)]
        parts = [self.pick(*fitting) for _ in range(self.below(1, 4))] + [(x, n, c, h, w)]
        channels = sum(v[2] for v in parts)
        if channels <= 200:
            self.add(self.op("Concat", *(v[0] for v in parts), axis=1), n, channels, h, w)

    def layer_split(self, x, n, c, h, w):
        if c > 1:
            first = self.below(1, c)
            a, b = self.op("Split", x, self.ints(first, c - first), outputs=2, axis=1)
            self.add(a, n, first, h, w)
            self.add(b, n, c - first, h, w)

    def layer_slice(self, x, n, c, h, w):
        start = self.below(0, c)
        end = self.below(start + 1, c + 1)
        y = self.op("Slice", x, self.ints(start), self.ints(end), self.ints(1))
        self.add(y, n, end - start, h, w)

    def layer_resize(self, x, n, c, h, w):
        if h * w < 300:
            f = self.pick(2, 3)
            scales = self.const(np.array([1, 1, f, f], np.float32))
            if self.chance(0.5):
                y = self.op("Resize", x, "", scales, mode="linear")
            else:
                y = self.op("Resize", x, "", scales, mode="nearest", nearest_mode="floor",
                            coordinate_transformation_mode="asymmetric")
            self.add(y, n, c, h * f, w * f)

    def layer_batch_norm(self, x, n, c, h, w):
        parameters = [self.weight(c, positive=True) for _ in range(4)]
        self.add(self.op("BatchNormalization", x, *parameters), n, c, h, w)

    def layer_instance_norm(self, x, n, c, h, w):
        if h * w > 4:
            y = self.op("InstanceNormalization", x, self.weight(c, positive=True), self.weight(c))
            self.add(y, n, c, h, w)

    def layer_transpose(self, x, n, c, h, w):
        self.add(self.op("Transpose", x, perm=[0, 1, 3, 2]), n, c, w, h)

    def layer_shuffle(self, x, n, c, h, w):
        if c % 2 == 0:
            y = self.op("Reshape", x, self.ints(n, 2, c // 2, h, w))
            y = self.op("Transpose", y, perm=[0, 2, 1, 3, 4])
            self.add(self.op("Reshape", y, self.ints(n, c, h, w)), n, c, h, w)

    def layer_tokens(self, x, n, c, h, w):
        if c < 4:
            return
        y = self.op("Transpose", self.op("Reshape", x, self.ints(n, c, -1)), perm=[0, 2, 1])
        y = self.op("LayerNormalization", y, self.weight(c, positive=True), self.weight(c))
        y = self.op("MatMul", y, self.weight(c, c))
        if self.chance(0.5):
            y = self.op("Softmax", y, axis=-1)
        y = self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1]), self.ints(n, c, h, w))
        self.add(y, n, c, h, w)

    def model(self):
        outputs = {self.values[-1][0]}
        if self.chance(0.4):
            outputs.add(self.pick(*self.values[1:])[0])
        graph = helper.make_graph(
            self.nodes, "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.values[0][1:])],
            [helper.make_tensor_value_info(y, TensorProto.FLOAT, None) for y in sorted(outputs)],
            self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def engine():
    library = os.path.abspath(os.path.join(BUILD, "libsaccade.so"))
    if not os.path.exists(library):
        pytest.skip(f"no {library}")
    engine = run.Engine(library, reference=0, optimise=1)
    engine.params.free_batch = 1
    return engine


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_graph(engine, seed):
    graph = Graph(seed)
    blob = graph.model().SerializeToString()
    x = graph.rng.standard_normal(graph.values[0][1:]).astype(np.float32)
    want = runtime.InferenceSession(blob).run(None, {"x": x})
    handle = engine.load(blob, f"graph {seed}")
    try:
        first, second = engine.run(handle, [x]), engine.run(handle, [x])
    finally:
        engine.lib.sac_model_unref(ctypes.byref(handle))
    for got, again, expected in zip(first, second, want):
        scale = max(1, np.abs(expected).max(initial=0))
        np.testing.assert_allclose(got, expected, rtol=0, atol=3e-4 * scale)
        np.testing.assert_array_equal(got, again)
