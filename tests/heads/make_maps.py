#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small segmenting networks, maps_NAME.onnx, for test_segmenter.c.

Each marks what is bright: its numbers come from the mean of a pixel's channels, so a test knows which
matte a picture must have. Run with numpy and onnx (1.23.2).
"""
import os
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE, VOC_PERSON = 64, 15
PLAIN = {"saccade.preprocess": "rgb,stretch,mean=0,scale=1/255"}


class Net:
    def __init__(self, name, batch="n", last=False, size=(SIZE, SIZE), metadata=None):
        self.name, self.nodes, self.inits, self.inputs, self.outputs = name, [], [], [], []
        self.metadata = PLAIN if metadata is None else metadata
        self.input("image", [batch, *size, 3] if last else [batch, 3, *size])

    def input(self, name, shape):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def output(self, name, shape, dtype=TensorProto.FLOAT):
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def value(self, name, array):
        self.inits.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def conv(self, source, output, rows, bias):
        """1x1, rows of weights over the channels."""
        rows = np.asarray(rows, np.float32)
        self.value(output + "_w", rows.reshape(*rows.shape, 1, 1))
        self.value(output + "_b", np.asarray(bias, np.float32))
        return self.node("Conv", [source, output + "_w", output + "_b"], output)

    def pool(self, source, output, stride=4):
        return self.node("AveragePool", [source], output, kernel_shape=[stride] * 2, strides=[stride] * 2)

    def bright(self, source, output):
        """A logit: above 0 where the pixel is brighter than half."""
        return self.conv(source, output, [[20 / 3] * 3], [-10])

    def classes(self, source, output, count, person):
        """Logits: the first class where it is dark, person where it is bright."""
        rows, bias = np.zeros((count, 3)), np.full(count, -9.0)
        rows[0], bias[0] = -20 / 3, 10
        rows[person], bias[person] = 20 / 3, -10
        return self.conv(source, output, rows, bias)

    def save(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.inits)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        for key, value in self.metadata.items():
            model.metadata_props.add(key=key, value=value)
        onnx.checker.check_model(model)
        onnx.save(model, os.path.join(HERE, "maps_" + self.name + ".onnx"))


def matte():
    net = Net("matte")
    net.node("Sigmoid", [net.bright("image", "logit")], "matte")
    net.output("matte", ["n", 1, SIZE, SIZE])
    net.save()


def logit():
    """Without a sigmoid, of a quarter of the size, the batch fixed to 1."""
    net = Net("logit", batch=1)
    net.bright(net.pool("image", "small"), "output")
    net.output("output", [1, 1, SIZE // 4, SIZE // 4])
    net.save()


def scaled(name, factor):
    """Shares in their own arithmetic, of which no operator tells; times 255 they are none."""
    net = Net(name)
    share = net.node("Sigmoid", [net.bright("image", "logit")], "share")
    net.node("Mul", [share, net.value("factor", np.float32(factor))], "mask")
    net.output("mask", ["n", 1, SIZE, SIZE])
    net.save()


def torchvision():
    """Two outputs of the classes of Pascal VOC; the first in the file is for training."""
    net = Net("torchvision")
    small = net.pool("image", "small")
    net.classes(small, "aux", 21, 3)
    net.classes(small, "out", 21, VOC_PERSON)
    for name in ("aux", "out"):
        net.output(name, ["n", 21, SIZE // 4, SIZE // 4])
    net.save()


def last():
    """Channels last, softmax inside, two classes."""
    net = Net("last", last=True)
    net.node("Transpose", ["image"], "planes", perm=[0, 3, 1, 2])
    net.node("Transpose", [net.classes("planes", "logits", 2, 1)], "cells", perm=[0, 2, 3, 1])
    net.node("Softmax", ["cells"], "shares", axis=-1)
    net.output("shares", ["n", SIZE, SIZE, 2])
    net.save()


def label(name, batch, real):
    """ArgMax inside, of 19 classes; its numbers whole, or cast to float32."""
    net = Net(name, batch=batch)
    best = net.node("ArgMax", [net.classes("image", "logits", 19, 11)], "best" if real else "labels", axis=1,
                    keepdims=0)
    if real:
        net.node("Cast", [best], "labels", to=TensorProto.FLOAT)
    net.output("labels", [batch, SIZE, SIZE], TensorProto.FLOAT if real else TensorProto.INT64)
    net.save()


def label_between(name, low, high):
    """ArgMax inside, of what is not a number where a channel is darker or brighter than that."""
    net = Net(name)
    net.value("low", np.float32(low))
    net.value("high", np.float32(high))
    above = net.node("Sqrt", [net.node("Sub", ["image", "low"], "over")], "above")
    below = net.node("Sqrt", [net.node("Sub", ["high", "image"], "under")], "below")
    net.node("Sub", [above, below], "contrast")
    net.node("ArgMax", [net.classes("contrast", "logits", 19, 11)], "labels", axis=1, keepdims=0)
    net.output("labels", ["n", SIZE, SIZE], TensorProto.INT64)
    net.save()


def bytes_():
    """Labels as bytes, which nobody reads."""
    net = Net("bytes")
    net.node("ArgMax", [net.classes("image", "logits", 19, 11)], "best", axis=1, keepdims=0)
    net.node("Cast", ["best"], "labels", to=TensorProto.UINT8)
    net.output("labels", ["n", SIZE, SIZE], TensorProto.UINT8)
    net.save()


def depth():
    net = Net("depth")
    net.node("Relu", [net.bright("image", "numbers")], "output")
    net.output("output", ["n", 1, SIZE, SIZE])
    net.save()


def larger():
    """Twice the size: three numbers a pixel, a picture."""
    net = Net("larger")
    net.value("twice", np.asarray([1, 1, 2, 2], np.float32))
    net.node("Resize", ["image", "", "twice"], "picture", mode="nearest")
    net.output("picture", ["n", 3, 2 * SIZE, 2 * SIZE])
    net.save()


def varying(name, height, width):
    """A map of as many rows and columns as the brightest of all numbers says: all of them for white."""
    net = Net(name, size=(height, width))
    net.node("Sigmoid", [net.bright("image", "logit")], "share")
    net.node("ReduceMax", ["image"], "brightest", keepdims=0)
    net.node("Mul", ["brightest", net.value("size", np.asarray([height, width], np.float32))], "cells")
    net.node("Cast", [net.node("Ceil", ["cells"], "whole")], "end", to=TensorProto.INT64)
    net.node("Slice", ["share", net.value("begin", np.asarray([0, 0], np.int64)), "end",
                       net.value("axes", np.asarray([2, 3], np.int64))], "matte")
    net.output("matte", ["n", 1, "rows", "columns"])
    net.save()


def recurrent(name, first, second, fixed, metadata=PLAIN, published=False):
    """The matte is how many frames came before, in tenths, where the picture is bright. first, second: the names of
    the two states, which must not change places: the one counts in ones, the other in hundreds."""
    net = Net(name, batch=1 if fixed else "n", metadata=metadata)
    seen = "image"
    if not fixed:  # shrunk first, as RobustVideoMatting does
        net.input("downsample_ratio", [1])
        net.value("ones", np.ones(2, np.float32))
        net.node("Concat", ["ones", "downsample_ratio", "downsample_ratio"], "scales", axis=0)
        seen = net.node("Resize", ["image", "", "scales"], "shrunk", mode="linear")
        net.node("Identity", ["image"], "foreground")
    small = net.pool(seen, "small")
    nothing = net.conv(small, "nothing", [[0] * 3], [0])
    counted = []
    for k, ((given, kept), step) in enumerate(((first, 1), (second, 100))):
        net.input(given, [1, 1, SIZE // 4, SIZE // 4] if fixed else ["n", "c%d" % k, "h%d" % k, "w%d" % k])
        spread = net.node("Add", [given, nothing], "spread%d" % k)
        net.node("Add", [spread, net.value("step%d" % k, np.float32(step))], kept)
        counted.append(spread)
    # ones / 10, unless the hundreds say another number
    net.node("Mul", [counted[1], net.value("hundredth", np.float32(0.01))], "other")
    net.node("Sub", [counted[0], "other"], "difference")
    net.node("Abs", ["difference"], "distance")
    net.node("Mul", [counted[0], net.value("tenth", np.float32(0.1))], "tenths")
    net.node("Add", ["tenths", "distance"], "sum")
    net.node("Clip", ["sum", net.value("low", np.float32(0)), net.value("high", np.float32(1))], "share")
    net.node("Sigmoid", [net.bright(small, "logit")], "seen")
    net.node("Mul", ["share", "seen"], "product")
    net.node("Clip", ["product", "low", "high"], "share_seen" if published else "pha")
    cells = [SIZE // 4, SIZE // 4]
    if published:  # as RobustVideoMatting's exporter leaves them: channels are open until the ratio is known
        net.node("Div", ["scales", "scales"], "unit")
        for source, output in (("image", "fgr"), ("share_seen", "pha")):
            net.node("Resize", [source, "", "unit"], output, mode="nearest")
            net.output(output, ["n", "Clip%s_dim_1" % output, "height", "width"])
    else:
        if not fixed:
            net.output("foreground", ["n", 3, SIZE, SIZE])
        net.output("pha", [1 if fixed else "n", 1, *cells])
    for k, kept in ((1, second[1]), (0, first[1])):
        net.output(kept, [1, 1, *cells] if fixed else ["n", "d%d" % k, *cells])
    net.save()


matte()
logit()
scaled("inside", 1)
scaled("outside", 255)
torchvision()
last()
label("label", 1, False)
label("label_real", "n", True)
label_between("label_below", 0, 0.5)
label_between("label_above", 0.125, 2)
bytes_()
depth()
larger()
varying("varying", SIZE, SIZE)
varying("varying_wide", 2, 4000)
recurrent("recurrent", ("r1i", "r1o"), ("r2i", "r2o"), False)
recurrent("recurrent_published", ("r1i", "r1o"), ("r2i", "r2o"), False, published=True)
recurrent("recurrent_fixed", ("h_in", "h_out"), ("c_in", "c_out"), True)
recurrent("recurrent_named", ("first", "a"), ("second", "b"), True,
          {**PLAIN, "saccade.preprocess": PLAIN["saccade.preprocess"] + ",state=first:a,state=second:b"})
