#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the model fixtures: miniatures of the networks that people bring, with the operator patterns
that exporters emit and small random weights from a fixed seed, and ONNX Runtime's answer to one
random input as the reference.

    make.py            write input.npy, NAME.onnx and NAME.outN.npy beside this file
    make.py NAME ...   only these
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))


class Net:
    """A graph under construction: every method adds nodes and returns the name of the result."""

    def __init__(self, opset, seed):
        self.opset, self.rng = opset, np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    # ---- the basics ----

    def name(self, hint):
        self.count += 1
        return f"{hint}_{self.count}"

    def const(self, value, dtype=np.float32):
        """An initializer."""
        name = self.name("w")
        self.weights.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def ints(self, *values):
        return self.const(values, np.int64)

    def constant(self, value, dtype=np.int64):
        """A Constant node, as tracing exporters write shape arithmetic."""
        return self.op("Constant", value=numpy_helper.from_array(np.array(value, dtype)))

    def op(self, kind, *inputs, outputs=1, **attrs):
        names = [self.name(kind.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=names[0], **attrs))
        return names[0] if outputs == 1 else names

    def random(self, *shape, scale=1.0):
        return self.rng.standard_normal(shape) * scale

    # ---- layers ----

    def conv(self, x, cin, cout, k=1, s=1, group=1, dilation=1, bias=True, pad=None):
        fan = cin // group * k * k
        pad = dilation * (k // 2) if pad is None else pad
        inputs = [x, self.const(self.random(cout, cin // group, k, k, scale=(1.6 / fan) ** 0.5))]
        if bias:
            inputs.append(self.const(self.random(cout, scale=0.1)))
        return self.op("Conv", *inputs, kernel_shape=[k, k], strides=[s, s], group=group,
                       dilations=[dilation, dilation], pads=[pad] * 4)

    def batch_norm(self, x, c):
        return self.op("BatchNormalization", x, self.const(self.rng.uniform(0.7, 1.3, c)),
                       self.const(self.random(c, scale=0.1)), self.const(self.random(c, scale=0.1)),
                       self.const(self.rng.uniform(0.5, 1.5, c)), epsilon=1e-5)

    def conv_bn(self, x, cin, cout, k=1, s=1, group=1, dilation=1):
        return self.batch_norm(self.conv(x, cin, cout, k, s, group, dilation, bias=False), cout)

    def conv_bn_relu(self, *args, **kw):
        return self.op("Relu", self.conv_bn(*args, **kw))

    def linear(self, x, cin, cout):
        """nn.Linear on [..., cin], as the exporter writes it for more than two dimensions."""
        w = self.const(self.random(cin, cout, scale=cin ** -0.5))
        return self.op("Add", self.const(self.random(cout, scale=0.1)), self.op("MatMul", x, w))

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def conv_silu(self, *args, **kw):
        return self.silu(self.conv(*args, **kw))

    def gelu(self, x):
        """Before opset 20: x * 0.5 * (1 + erf(x / sqrt(2)))."""
        erf = self.op("Erf", self.op("Div", x, self.const(2 ** 0.5)))
        return self.op("Mul", self.op("Mul", x, self.op("Add", erf, self.const(1.0))), self.const(0.5))

    def relu6(self, x):
        return self.op("Clip", x, self.const(0.0), self.const(6.0))

    def hard_swish(self, x):
        """Decomposed, as exporters before opset 14 do."""
        gate = self.op("Clip", self.op("Add", x, self.const(3.0)), self.const(0.0), self.const(6.0))
        return self.op("Div", self.op("Mul", x, gate), self.const(6.0))

    def layer_norm(self, x, c):
        scale, bias = self.const(self.rng.uniform(0.8, 1.2, c)), self.const(self.random(c, scale=0.1))
        if self.opset >= 17:
            return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)
        off = self.op("Sub", x, self.mean(x, -1))
        variance = self.mean(self.op("Pow", off, self.const(2.0)), -1)
        deviation = self.op("Sqrt", self.op("Add", variance, self.const(1e-5)))
        return self.op("Add", self.op("Mul", self.op("Div", off, deviation), scale), bias)

    def mean(self, x, *axes, keepdims=1):
        if self.opset >= 18:
            return self.op("ReduceMean", x, self.ints(*axes), keepdims=keepdims)
        return self.op("ReduceMean", x, axes=list(axes), keepdims=keepdims)

    def max_pool(self, x, k, s, pad):
        return self.op("MaxPool", x, kernel_shape=[k, k], strides=[s, s], pads=[pad] * 4)

    # ---- shapes ----

    def cat(self, *xs, axis=1):
        return self.op("Concat", *xs, axis=axis)

    def reshape(self, x, *shape):
        return self.op("Reshape", x, self.ints(*shape))

    def transpose(self, x, *perm):
        return self.op("Transpose", x, perm=list(perm))

    def split(self, x, sizes, axis=1):
        if self.opset >= 13:
            return self.op("Split", x, self.ints(*sizes), outputs=len(sizes), axis=axis)
        return self.op("Split", x, outputs=len(sizes), axis=axis, split=sizes)

    def slice(self, x, start, end, axis, step=1):
        return self.op("Slice", x, self.ints(start), self.ints(end), self.ints(axis), self.ints(step))

    def size_of(self, x, axis):
        """Dimension as a one-element tensor: Shape, Gather, Unsqueeze."""
        dim = self.op("Gather", self.op("Shape", x), self.constant(axis), axis=0)
        if self.opset >= 13:
            return self.op("Unsqueeze", dim, self.constant([0]))
        return self.op("Unsqueeze", dim, axes=[0])

    def flatten_spatial(self, x, c):
        """[N,C,H,W] to [N,C,H*W] by shape arithmetic."""
        shape = self.op("Concat", self.size_of(x, 0), self.constant([c]), self.constant([-1]), axis=0)
        return self.op("Reshape", x, shape)

    def left_out(self):
        """An input of Resize that does not count: empty before opset 13, absent after."""
        return "" if self.opset >= 13 else self.const([])

    def upsample(self, x, factor=2.0):
        return self.op("Resize", x, self.left_out(), self.const([1, 1, factor, factor]), mode="nearest",
                       coordinate_transformation_mode="asymmetric", nearest_mode="floor")

    def resize_like(self, x, like, mode="half_pixel"):
        """Bilinear to the size of another tensor: sizes = concat(shape(x)[:2], shape(like)[2:])."""
        head = self.slice(self.op("Shape", x), 0, 2, 0)
        tail = self.slice(self.op("Shape", like), 2, 4, 0)
        return self.op("Resize", x, self.left_out(), self.left_out(), self.cat(head, tail, axis=0), mode="linear",
                       coordinate_transformation_mode=mode)

    def model(self, outputs, batch=1, size=64):
        graph = helper.make_graph(
            self.nodes, "net",
            [helper.make_tensor_value_info("images", TensorProto.FLOAT, [batch, 3, size, size])],
            [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs],
            self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                  producer_name="saccade fixtures")
        model.ir_version = 8 if self.opset < 20 else 10
        return model


# ---- YOLO ----

STRIDES = (8, 16, 32)


def grid(size, stride, offset=0.0):
    n = size // stride
    y, x = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    return np.stack((x, y), -1).astype(np.float32) + offset


def c3(net, x, c, shortcut=True):
    """YOLOv5's CSP block."""
    a, b = net.conv_silu(x, c, c // 2), net.conv_silu(x, c, c // 2)
    y = net.conv_silu(net.conv_silu(a, c // 2, c // 2), c // 2, c // 2, 3)
    a = net.op("Add", a, y) if shortcut else y
    return net.conv_silu(net.cat(a, b), c, c)


def c2f(net, x, cin, c, shortcut=True):
    """YOLOv8's: every bottleneck's output goes into the concatenation."""
    a, b = net.split(net.conv_silu(x, cin, c), [c // 2, c // 2])
    y = net.conv_silu(net.conv_silu(b, c // 2, c // 2, 3), c // 2, c // 2, 3)
    y = net.op("Add", b, y) if shortcut else y
    return net.conv_silu(net.cat(a, b, y), c // 2 * 3, c)


def sppf(net, x, c):
    x = net.conv_silu(x, c, c // 2)
    a = net.max_pool(x, 5, 1, 2)
    b = net.max_pool(a, 5, 1, 2)
    return net.conv_silu(net.cat(x, a, b, net.max_pool(b, 5, 1, 2)), 2 * c, c)


def yolov5():
    net, classes, anchors = Net(12, 5), 4, 3
    x = net.conv_silu("images", 3, 8, 6, 2, pad=2)
    x = c3(net, net.conv_silu(x, 8, 16, 3, 2), 16)
    p3 = c3(net, net.conv_silu(x, 16, 24, 3, 2), 24)
    p4 = c3(net, net.conv_silu(p3, 24, 32, 3, 2), 32)
    p5 = sppf(net, net.conv_silu(p4, 32, 32, 3, 2), 32)
    t5 = net.conv_silu(p5, 32, 32)
    t4 = c3(net, net.cat(net.upsample(t5), p4), 64, False)
    t4 = net.conv_silu(t4, 64, 24)
    n3 = c3(net, net.cat(net.upsample(t4), p3), 48, False)
    n4 = c3(net, net.cat(net.conv_silu(n3, 48, 24, 3, 2), t4), 48, False)
    n5 = c3(net, net.cat(net.conv_silu(n4, 48, 32, 3, 2), t5), 64, False)
    outs = []
    for f, c, stride in zip((n3, n4, n5), (48, 48, 64), STRIDES):
        n, width = 64 // stride, classes + 5
        y = net.reshape(net.conv(f, c, anchors * width), 1, anchors, width, n, n)
        y = net.op("Sigmoid", net.transpose(y, 0, 1, 3, 4, 2))
        xy, wh, rest = net.split(y, [2, 2, classes + 1], axis=4)
        places = net.const(grid(64, stride, -0.5).reshape(1, 1, n, n, 2))
        xy = net.op("Mul", net.op("Add", net.op("Mul", xy, net.const(2.0)), places),
                    net.const(float(stride)))
        sizes = net.const((net.rng.uniform(1, 4, (1, anchors, 1, 1, 2)) * stride))
        wh = net.op("Mul", net.op("Pow", net.op("Mul", wh, net.const(2.0)), net.const(2.0)), sizes)
        outs.append(net.reshape(net.cat(xy, wh, rest, axis=4), 1, anchors * n * n, width))
    return net, [net.cat(*outs)], {}


def yolo_neck(net, p3, p4, p5, c3_, c4, c5):
    t4 = c2f(net, net.cat(net.upsample(p5), p4), c5 + c4, c4, False)
    n3 = c2f(net, net.cat(net.upsample(t4), p3), c4 + c3_, c3_, False)
    n4 = c2f(net, net.cat(net.conv_silu(n3, c3_, c3_, 3, 2), t4), c3_ + c4, c4, False)
    n5 = c2f(net, net.cat(net.conv_silu(n4, c4, c4, 3, 2), p5), c4 + c5, c5, False)
    return n3, n4, n5


def psa_attention(net, x, c, heads, n):
    """YOLO11's attention: q, k and v of a 1x1 convolution, positions by a depthwise one."""
    dim, key = c // heads, c // heads // 2
    qkv = net.reshape(net.conv(x, c, c + 2 * key * heads), 1, heads, 2 * key + dim, n * n)
    q, k, v = net.split(qkv, [key, key, dim], axis=2)
    scores = net.op("Mul", net.op("MatMul", net.transpose(q, 0, 1, 3, 2), k), net.const(key ** -0.5))
    weights = net.transpose(net.op("Softmax", scores, axis=-1), 0, 1, 3, 2)
    y = net.reshape(net.op("MatMul", v, weights), 1, c, n, n)
    position = net.conv(net.reshape(v, 1, c, n, n), c, c, 3, group=c)
    y = net.op("Add", x, net.conv(net.op("Add", y, position), c, c))
    return net.op("Add", y, net.conv(net.conv_silu(y, c, 2 * c), 2 * c, c))


def yolov8_head(net, features, channels, classes=4, bins=16, separable=False):
    """Distribution focal loss head: softmax over bins, their mean by a fixed 1x1 convolution."""
    boxes, scores = [], []
    for f, c in zip(features, channels):
        b = net.conv(net.conv_silu(f, c, 16, 3), 16, 4 * bins)
        if separable:
            s = net.conv_silu(net.conv_silu(f, c, c, 3, group=c), c, 16)
        else:
            s = net.conv_silu(f, c, 16, 3)
        s = net.conv(s, 16, classes)
        both = net.cat(b, s)
        both = net.reshape(both, 1, 4 * bins + classes, -1)
        b, s = net.split(both, [4 * bins, classes])
        boxes.append(b)
        scores.append(s)
    total = sum((64 // s) ** 2 for s in STRIDES)
    box = net.reshape(net.cat(*boxes, axis=2), 1, 4, bins, total)
    box = net.op("Softmax", net.transpose(box, 0, 2, 1, 3), axis=1)
    mean = net.const(np.arange(bins).reshape(1, bins, 1, 1))
    box = net.reshape(net.op("Conv", box, mean, kernel_shape=[1, 1]), 1, 4, total)
    lt, rb = net.slice(box, 0, 2, 1), net.slice(box, 2, 4, 1)
    anchors = net.const(np.concatenate([grid(64, s, 0.5).reshape(-1, 2) for s in STRIDES]).T[None])
    steps = net.const(np.concatenate([np.full((64 // s) ** 2, s) for s in STRIDES])[None])
    p, q = net.op("Sub", anchors, lt), net.op("Add", anchors, rb)
    centre = net.op("Div", net.op("Add", p, q), net.const(2.0))
    box = net.op("Mul", net.cat(centre, net.op("Sub", q, p)), steps)
    return net.cat(box, net.op("Sigmoid", net.cat(*scores, axis=2)))


def yolov8():
    net = Net(17, 8)
    x = net.conv_silu(net.conv_silu("images", 3, 8, 3, 2), 8, 16, 3, 2)
    p3 = c2f(net, net.conv_silu(c2f(net, x, 16, 16), 16, 16, 3, 2), 16, 16)
    p4 = c2f(net, net.conv_silu(p3, 16, 24, 3, 2), 24, 24)
    p5 = sppf(net, net.conv_silu(p4, 24, 32, 3, 2), 32)
    return net, [yolov8_head(net, yolo_neck(net, p3, p4, p5, 16, 24, 32), (16, 24, 32))], {}


def yolo11():
    net = Net(19, 11)
    x = net.conv_silu(net.conv_silu("images", 3, 8, 3, 2), 8, 16, 3, 2)
    p3 = c2f(net, net.conv_silu(c2f(net, x, 16, 16), 16, 16, 3, 2), 16, 16)
    p4 = c2f(net, net.conv_silu(p3, 16, 24, 3, 2), 24, 24)
    p5 = sppf(net, net.conv_silu(p4, 24, 32, 3, 2), 32)
    a, b = net.split(net.conv_silu(p5, 32, 32), [16, 16])
    p5 = net.conv_silu(net.cat(a, psa_attention(net, b, 16, 2, 2)), 32, 32)
    features = yolo_neck(net, p3, p4, p5, 16, 24, 32)
    return net, [yolov8_head(net, features, (16, 24, 32), separable=True)], {}


def yolox():
    """Focus by strided slices, depthwise convolutions, decoupled head without decoding."""
    net, classes = Net(11, 10), 4

    def separable(x, cin, cout, s=1):
        return net.conv_silu(net.conv_silu(x, cin, cin, 3, s, group=cin), cin, cout)

    def csp(x, cin, c, shortcut=True):
        a, b = net.conv_silu(x, cin, c // 2), net.conv_silu(x, cin, c // 2)
        y = separable(net.conv_silu(a, c // 2, c // 2), c // 2, c // 2)
        return net.conv_silu(net.cat(net.op("Add", a, y) if shortcut else y, b), c, c)

    def quarter(row, column):
        rows = net.slice("images", row, 2 ** 31 - 1, 2, 2)
        return net.slice(rows, column, 2 ** 31 - 1, 3, 2)

    x = net.cat(quarter(0, 0), quarter(1, 0), quarter(0, 1), quarter(1, 1))
    x = net.conv_silu(x, 12, 8, 3)
    x = csp(separable(x, 8, 16, 2), 16, 16)
    p3 = csp(separable(x, 16, 16, 2), 16, 16)
    p4 = csp(separable(p3, 16, 24, 2), 24, 24)
    x = net.conv_silu(separable(p4, 24, 32, 2), 32, 16)
    spp = [x] + [net.max_pool(x, k, 1, k // 2) for k in (5, 9, 13)]
    p5 = csp(net.conv_silu(net.cat(*spp), 64, 32), 32, 32, False)
    t5 = net.conv_silu(p5, 32, 24)
    t4 = csp(net.cat(net.upsample(t5), p4), 48, 24, False)
    t4 = net.conv_silu(t4, 24, 16)
    n3 = csp(net.cat(net.upsample(t4), p3), 32, 16, False)
    n4 = csp(net.cat(separable(n3, 16, 16, 2), t4), 32, 24, False)
    n5 = csp(net.cat(separable(n4, 24, 24, 2), t5), 48, 32, False)
    outs = []
    for f, c in zip((n3, n4, n5), (16, 24, 32)):
        x = net.conv_silu(f, c, 16)
        cls, reg = separable(x, 16, 16), separable(x, 16, 16)
        y = net.cat(net.conv(reg, 16, 4), net.op("Sigmoid", net.conv(reg, 16, 1)),
                    net.op("Sigmoid", net.conv(cls, 16, classes)))
        outs.append(net.flatten_spatial(y, 5 + classes))
    return net, [net.transpose(net.cat(*outs, axis=2), 0, 2, 1)], {}


def nanodet():
    """ShuffleNetV2 backbone with channel shuffles, ghost neck, GFL head."""
    net, classes, bins = Net(11, 12), 4, 8

    def leaky(x):
        return net.op("LeakyRelu", x, alpha=0.1)

    def shuffle(x, c, n):
        x = net.transpose(net.reshape(x, -1, 2, c // 2, n, n), 0, 2, 1, 3, 4)
        return net.reshape(x, -1, c, n, n)

    def unit(x, c, n):
        a, b = net.split(x, [c // 2, c // 2])
        b = leaky(net.conv_bn(b, c // 2, c // 2))
        b = leaky(net.conv_bn(net.conv_bn(b, c // 2, c // 2, 3, group=c // 2), c // 2, c // 2))
        return shuffle(net.cat(a, b), c, n)

    def down(x, cin, c, n):
        a = leaky(net.conv_bn(net.conv_bn(x, cin, cin, 3, 2, group=cin), cin, c // 2))
        b = leaky(net.conv_bn(x, cin, c // 2))
        b = leaky(net.conv_bn(net.conv_bn(b, c // 2, c // 2, 3, 2, group=c // 2), c // 2, c // 2))
        return unit(shuffle(net.cat(a, b), c, n), c, n)

    def ghost(x, cin, c):
        a = leaky(net.conv_bn(x, cin, c // 2))
        return net.cat(a, leaky(net.conv_bn(a, c // 2, c // 2, 3, group=c // 2)))

    x = net.max_pool(leaky(net.conv_bn("images", 3, 8, 3, 2)), 3, 2, 1)
    p3 = down(x, 8, 16, 8)
    p4 = down(p3, 16, 24, 4)
    p5 = down(p4, 24, 32, 2)
    p3, p4, p5 = (leaky(net.conv_bn(p, c, 16)) for p, c in ((p3, 16), (p4, 24), (p5, 32)))
    t4 = ghost(net.cat(net.resize_like(p5, p4), p4), 32, 16)
    n3 = ghost(net.cat(net.resize_like(t4, p3), p3), 32, 16)
    n4 = ghost(net.cat(net.conv_bn(n3, 16, 16, 3, 2), t4), 32, 16)
    n5 = ghost(net.cat(net.conv_bn(n4, 16, 16, 3, 2), p5), 32, 16)
    outs = []
    for f in (n3, n4, n5):
        x = leaky(net.conv_bn(net.conv_bn(f, 16, 16, 5, group=16), 16, 16))
        y = net.conv(x, 16, classes + 4 * bins)
        cls, reg = net.split(y, [classes, 4 * bins])
        y = net.cat(net.op("Sigmoid", cls), reg)
        outs.append(net.op("Flatten", net.transpose(y, 1, 0, 2, 3), axis=1))
        outs[-1] = net.op("Unsqueeze", outs[-1], axes=[0])
    return net, [net.transpose(net.cat(*outs, axis=2), 0, 2, 1)], {}


# ---- DETR ----

def attention(net, q, k, v, c, heads, nq, nk):
    """Multi-head attention on [1,n,c] as nn.MultiheadAttention is exported."""
    dim = c // heads

    def split_heads(x, n):
        return net.transpose(net.reshape(net.linear(x, c, c), 1, n, heads, dim), 0, 2, 1, 3)
    q, k, v = split_heads(q, nq), split_heads(k, nk), split_heads(v, nk)
    q = net.op("Mul", q, net.const(dim ** -0.25))
    k = net.op("Mul", net.transpose(k, 0, 1, 3, 2), net.const(dim ** -0.25))
    y = net.op("MatMul", net.op("Softmax", net.op("MatMul", q, k), axis=-1), v)
    return net.linear(net.reshape(net.transpose(y, 0, 2, 1, 3), 1, nq, c), c, c)


def inverse_sigmoid(net, x):
    x = net.op("Clip", x, net.const(0.0), net.const(1.0))
    top = net.op("Clip", x, net.const(1e-5))
    return net.op("Log", net.op("Div", top, net.op("Clip", net.op("Sub", net.const(1.0), x),
                                                   net.const(1e-5))))


def deformable_attention(net, query, boxes, values, sizes, c, heads, points, nq):
    """Sampling offsets and weights from the query; each level sampled by GridSample."""
    levels, dim = len(sizes), c // heads
    offsets = net.reshape(net.linear(query, c, heads * levels * points * 2),
                          1, nq, heads, levels * points, 2)
    weights = net.reshape(net.linear(query, c, heads * levels * points), 1, nq, heads, levels * points)
    weights = net.op("Softmax", weights, axis=-1)
    box = net.op("Unsqueeze", net.op("Unsqueeze", boxes, net.ints(2)), net.ints(3))
    centre, extent = net.slice(box, 0, 2, 4), net.slice(box, 2, 4, 4)
    scale = net.op("Mul", net.op("Mul", offsets, net.const(0.5 / points)), extent)
    places = net.op("Add", centre, scale)
    places = net.op("Sub", net.op("Mul", places, net.const(2.0)), net.const(1.0))
    places = net.transpose(places, 0, 2, 1, 3, 4)  # heads in front
    sampled = []
    value = net.linear(values, c, c)
    parts = net.split(value, [h * w for h, w in sizes])
    for i, (part, (h, w)) in enumerate(zip(parts, sizes)):
        image = net.reshape(net.transpose(part, 0, 2, 1), heads, dim, h, w)
        at = net.reshape(net.slice(places, i * points, (i + 1) * points, 3), heads, nq, points, 2)
        sampled.append(net.op("GridSample", image, at, mode="bilinear", padding_mode="zeros",
                              align_corners=0))
    stacked = net.cat(*sampled, axis=3)  # [heads, dim, nq, levels * points]
    weights = net.reshape(net.transpose(weights, 0, 2, 1, 3), heads, 1, nq, levels * points)
    total = net.op("ReduceSum", net.op("Mul", stacked, weights), net.ints(-1), keepdims=0)
    return net.linear(net.transpose(net.reshape(total, 1, c, nq), 0, 2, 1), c, c)


def rtdetr():
    net, c, heads, queries, classes = Net(16, 20), 24, 4, 10, 4
    x = net.conv_bn_relu("images", 3, 8, 3, 2)
    x = net.max_pool(net.conv_bn_relu(x, 8, 16, 3), 3, 2, 1)
    p3 = net.conv_bn_relu(x, 16, 24, 3, 2)
    p4 = net.conv_bn_relu(p3, 24, 32, 3, 2)
    p5 = net.conv_bn_relu(p4, 32, 32, 3, 2)
    p3, p4, p5 = net.conv_bn(p3, 24, c), net.conv_bn(p4, 32, c), net.conv_bn(p5, 32, c)
    # encoder on the smallest map
    tokens = net.transpose(net.flatten_spatial(p5, c), 0, 2, 1)
    position = net.op("Add", tokens, net.const(net.random(1, 4, c)))
    tokens = net.layer_norm(net.op("Add", tokens, attention(net, position, position, tokens, c, heads,
                                                            4, 4)), c)
    y = net.linear(net.gelu(net.linear(tokens, c, 2 * c)), 2 * c, c)
    tokens = net.layer_norm(net.op("Add", tokens, y), c)
    p5 = net.reshape(net.transpose(tokens, 0, 2, 1), 1, c, 2, 2)
    # fusion
    t4 = net.silu(net.conv_bn(net.cat(net.upsample(p5), p4), 2 * c, c, 3))
    t3 = net.silu(net.conv_bn(net.cat(net.upsample(t4), p3), 2 * c, c, 3))
    n4 = net.silu(net.conv_bn(net.cat(net.silu(net.conv_bn(t3, c, c, 3, 2)), t4), 2 * c, c, 3))
    sizes = ((8, 8), (4, 4), (2, 2))
    memory = net.cat(*(net.transpose(net.flatten_spatial(f, c), 0, 2, 1) for f in (t3, n4, p5)))
    anchors = np.concatenate([np.concatenate(
        [(grid(64, s, 0.5) * s / 64).reshape(-1, 2), np.full(((64 // s) ** 2, 2), 0.05 * s / 8)], 1)
        for s in STRIDES])[None]
    # the best of the encoder's tokens become queries
    enc = net.layer_norm(net.linear(memory, c, c), c)
    scores = net.linear(enc, c, classes)
    boxes = net.op("Add", net.linear(net.op("Relu", net.linear(enc, c, c)), c, 4),
                   net.const(np.log(anchors / (1 - anchors))))
    _, top = net.op("TopK", net.op("ReduceMax", scores, axes=[-1], keepdims=0), net.ints(queries),
                    outputs=2, axis=1)
    top = net.op("Unsqueeze", top, net.ints(-1))
    reference = net.op("GatherElements", boxes, net.op("Tile", top, net.ints(1, 1, 4)), axis=1)
    target = net.op("GatherElements", enc, net.op("Tile", top, net.ints(1, 1, c)), axis=1)
    reference = net.op("Sigmoid", reference)
    for _ in range(2):
        where = net.linear(net.op("Relu", net.linear(reference, 4, c)), c, c)
        q = net.op("Add", target, where)
        y = attention(net, q, q, target, c, heads, queries, queries)
        target = net.layer_norm(net.op("Add", target, y), c)
        y = deformable_attention(net, net.op("Add", target, where), reference, memory, sizes, c, heads,
                                 4, queries)
        target = net.layer_norm(net.op("Add", target, y), c)
        y = net.linear(net.op("Relu", net.linear(target, c, 2 * c)), 2 * c, c)
        target = net.layer_norm(net.op("Add", target, y), c)
        delta = net.linear(net.op("Relu", net.linear(target, c, c)), c, 4)
        reference = net.op("Sigmoid", net.op("Add", delta, inverse_sigmoid(net, reference)))
    return net, [reference, net.op("Sigmoid", net.linear(target, c, classes))], {}


# ---- classification and embedding ----

def resnet50():
    net = Net(13, 50)

    def bottleneck(x, cin, c, s):
        y = net.conv_bn_relu(net.conv_bn_relu(x, cin, c), c, c, 3, s)
        y = net.conv_bn(y, c, 4 * c)
        if s > 1 or cin != 4 * c:
            x = net.conv_bn(x, cin, 4 * c, 1, s)
        return net.op("Relu", net.op("Add", y, x))

    x = net.max_pool(net.conv_bn_relu("images", 3, 8, 7, 2), 3, 2, 1)
    for cin, c, s in ((8, 4, 1), (16, 4, 1), (16, 8, 2), (32, 8, 1), (32, 12, 2), (48, 12, 1),
                      (48, 16, 2), (64, 16, 1)):
        x = bottleneck(x, cin, c, s)
    x = net.op("Flatten", net.op("GlobalAveragePool", x), axis=1)
    y = net.op("Gemm", x, net.const(net.random(10, 64, scale=0.2)), net.const(net.random(10)),
               transB=1)
    return net, [y], {"batch": "N"}


def osnet():
    """Omni-scale blocks: streams of light convolutions, weighed by one shared gate."""
    net = Net(12, 51)

    def light(x, cin, c):
        return net.conv_bn_relu(net.conv(x, cin, c, bias=False), c, c, 3, group=c)

    def gate(x, c, weights):
        y = net.op("GlobalAveragePool", x)
        y = net.op("Relu", net.op("Conv", y, *weights[:2], kernel_shape=[1, 1]))
        y = net.op("Sigmoid", net.op("Conv", y, *weights[2:], kernel_shape=[1, 1]))
        return net.op("Mul", x, y)

    def instance_norm(x, c):
        return net.op("InstanceNormalization", x, net.const(net.rng.uniform(0.7, 1.3, c)),
                      net.const(net.random(c, scale=0.1)), epsilon=1e-5)

    def block(x, cin, c):
        mid = c // 4
        weights = [net.const(net.random(max(1, mid // 2), mid, 1, 1)), net.const(net.random(mid // 2)),
                   net.const(net.random(mid, mid // 2, 1, 1)), net.const(net.random(mid))]
        start, total = net.conv_bn_relu(x, cin, mid), None
        for depth in range(1, 5):
            y = start
            for _ in range(depth):
                y = light(y, mid, mid)
            y = gate(y, mid, weights)
            total = y if total is None else net.op("Add", total, y)
        y = instance_norm(net.conv(total, mid, c, bias=False), c)
        if cin != c:
            x = net.conv_bn(x, cin, c)
        return net.op("Relu", net.op("Add", y, x))

    x = net.max_pool(net.conv_bn_relu("images", 3, 16, 7, 2), 3, 2, 1)
    x = block(x, 16, 32)
    x = net.op("AveragePool", net.conv_bn_relu(x, 32, 32), kernel_shape=[2, 2], strides=[2, 2])
    x = block(x, 32, 48)
    x = net.op("AveragePool", net.conv_bn_relu(x, 48, 48), kernel_shape=[2, 2], strides=[2, 2])
    x = net.conv_bn_relu(block(x, 48, 64), 64, 64)
    shape = net.op("Concat", net.size_of(x, 0), net.constant([-1]), axis=0)
    x = net.op("Reshape", net.op("GlobalAveragePool", x), shape)
    x = net.op("Gemm", x, net.const(net.random(32, 64, scale=0.2)), net.const(net.random(32)),
               transB=1)
    x = net.op("Relu", net.batch_norm(x, 32))
    norm = net.op("ReduceL2", x, axes=[1], keepdims=1)
    norm = net.op("Expand", net.op("Clip", norm, net.const(1e-12)), net.op("Shape", x))
    return net, [net.op("Div", x, norm)], {}


def mobilenetv3():
    net = Net(13, 52)

    def excite(x, c):
        y = net.op("Relu", net.conv(net.op("GlobalAveragePool", x), c, c // 4))
        return net.op("Mul", x, net.op("HardSigmoid", net.conv(y, c // 4, c), alpha=1 / 6, beta=0.5))

    def block(x, cin, mid, c, k, s, squeeze, swish):
        act = net.hard_swish if swish else lambda t: net.op("Relu", t)
        y = act(net.conv_bn(x, cin, mid))
        y = act(net.conv_bn(y, mid, mid, k, s, group=mid))
        y = net.conv_bn(excite(y, mid) if squeeze else y, mid, c)
        return net.op("Add", x, y) if s == 1 and cin == c else y

    x = net.hard_swish(net.conv_bn("images", 3, 8, 3, 2))
    for args in ((8, 8, 8, 3, 2, True, False), (8, 24, 16, 3, 2, False, False),
                 (16, 32, 16, 3, 1, False, False), (16, 32, 24, 5, 2, True, True),
                 (24, 48, 24, 5, 1, True, True), (24, 48, 32, 5, 2, True, True)):
        x = block(x, *args)
    x = net.op("HardSwish", net.conv_bn(x, 32, 64)) if net.opset >= 14 else \
        net.hard_swish(net.conv_bn(x, 32, 64))
    x = net.op("Flatten", net.op("GlobalAveragePool", x), axis=1)
    x = net.op("Gemm", x, net.const(net.random(48, 64, scale=0.2)), net.const(net.random(48)), transB=1)
    y = net.op("Gemm", net.hard_swish(x), net.const(net.random(10, 48, scale=0.2)),
               net.const(net.random(10)), transB=1)
    return net, [y], {"batch": "N"}


# ---- segmentation and mattes ----

def deeplabv3plus():
    net, classes = Net(13, 53), 3
    x = net.conv_bn_relu("images", 3, 8, 3, 2)
    low = net.conv_bn_relu(x, 8, 16, 3, 2)
    x = net.conv_bn_relu(low, 16, 24, 3, 2)
    x = net.conv_bn_relu(x, 24, 32, 3, dilation=2)
    x = net.op("Relu", net.op("Add", x, net.conv_bn(x, 32, 32, 3, dilation=4)))
    pooled = net.conv_bn_relu(net.op("GlobalAveragePool", x), 32, 16)
    branches = [net.conv_bn_relu(x, 32, 16)]
    branches += [net.conv_bn_relu(x, 32, 16, 3, dilation=d) for d in (2, 4, 6)]
    branches.append(net.resize_like(pooled, x, "pytorch_half_pixel"))
    x = net.conv_bn_relu(net.cat(*branches), 80, 16)
    x = net.cat(net.resize_like(x, low, "pytorch_half_pixel"), net.conv_bn_relu(low, 16, 8))
    x = net.conv_bn_relu(net.conv_bn_relu(x, 24, 24, 3, group=24), 24, 16)
    x = net.conv(x, 16, classes)
    return net, [net.resize_like(x, "images", "align_corners")], {}


def segformer():
    """Overlapping patches, attention over a shrunk map, mix-FFN with a depthwise convolution."""
    net, classes = Net(14, 54), 3

    def tokens(x, c):
        return net.transpose(net.flatten_spatial(x, c), 0, 2, 1)

    def image(x, c, n):
        return net.reshape(net.transpose(x, 0, 2, 1), 1, c, n, n)

    def block(x, c, heads, n, shrink):
        y = net.layer_norm(x, c)
        kv, nk = y, n * n
        if shrink > 1:
            kv = tokens(net.conv(image(y, c, n), c, c, shrink, shrink, pad=0), c)
            kv, nk = net.layer_norm(kv, c), (n // shrink) ** 2
        dim = c // heads
        q = net.transpose(net.reshape(net.linear(y, c, c), 1, n * n, heads, dim), 0, 2, 1, 3)
        kv = net.reshape(net.linear(kv, c, 2 * c), 1, nk, 2, heads, dim)
        kv = net.transpose(kv, 2, 0, 3, 1, 4)
        k = net.op("Gather", kv, net.constant(0), axis=0)
        v = net.op("Gather", kv, net.constant(1), axis=0)
        a = net.op("MatMul", q, net.transpose(k, 0, 1, 3, 2))
        a = net.op("Softmax", net.op("Div", a, net.const(dim ** 0.5)), axis=-1)
        y = net.reshape(net.transpose(net.op("MatMul", a, v), 0, 2, 1, 3), 1, n * n, c)
        x = net.op("Add", x, net.linear(y, c, c))
        y = net.linear(net.layer_norm(x, c), c, 2 * c)
        y = tokens(net.conv(image(y, 2 * c, n), 2 * c, 2 * c, 3, group=2 * c), 2 * c)
        return net.op("Add", x, net.linear(net.gelu(y), 2 * c, c))

    x, maps, cin = "images", [], 3
    for c, heads, k, s, n, shrink in ((16, 1, 7, 4, 16, 4), (24, 2, 3, 2, 8, 2), (32, 4, 3, 2, 4, 1)):
        x = net.layer_norm(tokens(net.conv(x, cin, c, k, s), c), c)
        x = net.layer_norm(block(x, c, heads, n, shrink), c)
        x = image(x, c, n)
        maps.append((x, c))
        cin = c
    fused = []
    for f, c in reversed(maps):
        n = {16: 16, 24: 8, 32: 4}[c]
        y = image(net.linear(tokens(f, c), c, 16), 16, n)
        fused.append(y if c == 16 else net.resize_like(y, maps[0][0]))
    x = net.op("Relu", net.conv_bn(net.cat(*fused), 48, 24))
    return net, [net.conv(x, 24, classes)], {}


def modnet():
    """MobileNetV2 encoder with ReLU6, IBNorm (half batch, half instance), three branches."""
    net = Net(11, 55)

    def ib_norm(x, c):
        a = net.op("Slice", x, net.ints(0), net.ints(c // 2), net.ints(1))
        b = net.op("Slice", x, net.ints(c // 2), net.ints(2 ** 63 - 1), net.ints(1))
        b = net.op("InstanceNormalization", b, net.const(np.ones(c - c // 2)),
                   net.const(np.zeros(c - c // 2)), epsilon=1e-5)
        return net.cat(net.batch_norm(a, c // 2), b)

    def conv_ib(x, cin, c, k=3, s=1):
        return net.op("Relu", ib_norm(net.conv(x, cin, c, k, s), c))

    def inverted(x, cin, c, s, expand=3):
        mid = cin * expand
        y = net.relu6(net.conv_bn(x, cin, mid))
        y = net.relu6(net.conv_bn(y, mid, mid, 3, s, group=mid))
        y = net.conv_bn(y, mid, c)
        return net.op("Add", x, y) if s == 1 and cin == c else y

    def excite(x, c):
        y = net.mean(x, 2, 3, keepdims=0)
        y = net.op("Relu", net.op("MatMul", y, net.const(net.random(c, c // 4, scale=0.4))))
        y = net.op("Sigmoid", net.op("MatMul", y, net.const(net.random(c // 4, c, scale=0.4))))
        y = net.op("Unsqueeze", y, axes=[2, 3])
        return net.op("Mul", x, net.op("Expand", y, net.op("Shape", x)))

    def scaled(x, factor):
        """F.interpolate by a factor: the size is worked out in floats and cut."""
        def length(axis):
            dim = net.op("Gather", net.op("Shape", x), net.constant(axis), axis=0)
            dim = net.op("Mul", net.op("Cast", dim, to=TensorProto.FLOAT), net.const(factor))
            dim = net.op("Cast", net.op("Floor", dim), to=TensorProto.INT64)
            return net.op("Unsqueeze", dim, axes=[0])
        sizes = net.cat(net.slice(net.op("Shape", x), 0, 2, 0), length(2), length(3), axis=0)
        return net.op("Resize", x, net.left_out(), net.left_out(), sizes, mode="linear",
                      coordinate_transformation_mode="pytorch_half_pixel")

    e2 = net.relu6(net.conv_bn("images", 3, 8, 3, 2))
    e4 = inverted(e2, 8, 12, 2)
    e8 = inverted(e4, 12, 16, 2)
    e16 = inverted(inverted(e8, 16, 24, 2), 24, 24, 1)
    low = excite(e16, 24)
    low = conv_ib(scaled(low, 2.0), 24, 16, 5)
    low4 = conv_ib(scaled(low, 2.0), 16, 12)
    semantic = net.op("Sigmoid", net.conv(low, 16, 1, 3, 2))
    small = net.op("Resize", "images", net.left_out(), net.const([1, 1, 0.25, 0.25]), mode="linear",
                   coordinate_transformation_mode="pytorch_half_pixel")
    detail = conv_ib(net.cat(conv_ib(e4, 12, 8, 1), small, low4), 23, 12)
    detail2 = conv_ib(net.cat(scaled(detail, 2.0), e2), 20, 8)
    boundary = net.op("Sigmoid", net.conv(net.cat(scaled(detail2, 2.0), "images"), 11, 1, 3))
    x = conv_ib(net.cat(scaled(low4, 2.0), detail2), 20, 8)
    matte = net.conv(net.cat(scaled(x, 2.0), "images"), 11, 1, 3)
    return net, [net.op("Sigmoid", matte), semantic, boundary], {}


MODELS = {f.__name__: f for f in (yolov5, yolov8, yolo11, yolox, nanodet, rtdetr, resnet50, osnet,
                                  mobilenetv3, deeplabv3plus, segformer, modnet)}


def reference(model, x):
    """ONNX Runtime's answer, whose shapes also become those of the model's outputs."""
    import onnxruntime
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    results = session.run(None, {"images": x})
    batch = model.graph.input[0].type.tensor_type.shape.dim[0]
    for port, y in zip(model.graph.output, results):
        dims = list(y.shape)
        if batch.dim_param:
            dims[0] = batch.dim_param
        port.CopyFrom(helper.make_tensor_value_info(port.name, TensorProto.FLOAT, dims))
    onnx.checker.check_model(model, full_check=True)
    return results


def main():
    x = np.random.default_rng(1).uniform(-1, 1, (1, 3, 64, 64)).astype(np.float32)
    np.save(os.path.join(HERE, "input.npy"), x)
    total = x.nbytes
    for name in sys.argv[1:] or MODELS:
        net, outputs, options = MODELS[name]()
        path = os.path.join(HERE, name)
        model = net.model(outputs, **options)
        results = reference(model, x)
        onnx.save(model, path + ".onnx")
        for i, y in enumerate(results):
            np.save(f"{path}.out{i}.npy", y)
        size = os.path.getsize(path + ".onnx")
        total += size + sum(y.nbytes for y in results)
        print(f"{name}: {len(net.nodes)} nodes, {size // 1024} KB, " + ", ".join(
            f"{y.shape} in [{y.min():.3g}, {y.max():.3g}]" for y in results))
    print(f"{total // 1024} KB in all")


if __name__ == "__main__":
    main()
