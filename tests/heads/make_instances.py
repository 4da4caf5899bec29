#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small instance networks, instances_NAME.onnx, for test_instances.c.

Each has the same boxes on 64x64 pixels, whose scores grow with the picture's brightness: there are
none in the dark. A mask is a box's coefficients times three prototypes on 16x16 cells (everywhere;
left against right; above against below), the others stay unused. Run with numpy and onnx (1.23.2).
"""
import os
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE, CELLS, NUMBERS, CLASSES = 64, 16, 8, 2
NAMES = {"task": "segment", "names": "{0: 'person', 1: 'dog'}"}
# x0, y0, x1, y1, score in full light, class, coefficients of the first three prototypes
PERSON = (8, 8, 40, 56, 0.95, 0, (6, 0, 0))
DOG = (24, 0, 64, 64, 0.9, 1, (0, 0, -5))  # its lower half
AGAIN = (8, 8, 40, 64, 0.7, 0, (6, 0, 0))  # the person once more, which NMS drops
UNLIKELY = (56, 0, 64, 8, 0.2, 0, (6, 0, 0))


def prototypes(cells=CELLS):
    out = np.random.default_rng(7).uniform(-9, 9, (1, NUMBERS, cells, cells))
    y, x = np.mgrid[:cells, :cells]
    out[0, 0], out[0, 1], out[0, 2] = 1, np.where(x < cells // 2, 1, -1), np.where(y < cells // 2, 1, -1)
    return out


def save(name, rows, score, outputs=(), metadata=NAMES, batch=1):
    """rows: output0 [1, ...]; score: how much of it the light adds."""
    f32 = TensorProto.FLOAT
    axes = [-1] + [1] * (rows.ndim - 1)
    nodes = [helper.make_node("ReduceMean", ["image"], ["light"], axes=[1, 2, 3], keepdims=0),
             helper.make_node("Reshape", ["light", "axes"], ["column"]),
             helper.make_node("Mul", ["column", "scores"], ["lit"]),
             helper.make_node("Add", ["rows", "lit"], ["output0"])]
    inits = [numpy_helper.from_array(np.array(axes, np.int64), "axes"),
             numpy_helper.from_array(rows.astype(np.float32), "rows"),
             numpy_helper.from_array(score.astype(np.float32), "scores"),
             numpy_helper.from_array(np.zeros(1, np.float32), "zero")]
    ports = [helper.make_tensor_value_info("output0", f32, [batch, *rows.shape[1:]])]
    for port, array in outputs:
        inits += [numpy_helper.from_array(array.astype(np.float32), port + "_value"),
                  numpy_helper.from_array(np.array([-1] + [1] * (array.ndim - 1), np.int64), port + "_axes")]
        nodes += [helper.make_node("Mul", ["light", "zero"], [port + "_zero"]),
                  helper.make_node("Reshape", [port + "_zero", port + "_axes"], [port + "_none"]),
                  helper.make_node("Add", [port + "_value", port + "_none"], [port])]
        ports.append(helper.make_tensor_value_info(port, f32, [batch, *array.shape[1:]]))
    image = helper.make_tensor_value_info("image", f32, [batch, 3, SIZE, SIZE])
    model = helper.make_model(helper.make_graph(nodes, name, [image], ports, inits),
                              opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    for key, value in metadata.items():
        model.metadata_props.add(key=key, value=value)
    onnx.checker.check_model(model)
    onnx.save(model, os.path.join(HERE, "instances_" + name + ".onnx"))


def centre(b):
    return (b[0] + b[2]) / 2, (b[1] + b[3]) / 2, b[2] - b[0], b[3] - b[1]


def weights(b):
    return [*b[6], *[0] * (NUMBERS - 3)]


def yolov8(name, outputs, metadata=NAMES):
    cells = 64 + 16 + 4
    rows, score = np.zeros((1, 4 + CLASSES + NUMBERS, cells)), np.zeros((1, 4 + CLASSES + NUMBERS, cells))
    rows[0, 2:4] = 10
    rows[0, 4 + CLASSES:] = 3  # of those that are no boxes
    for i, b in zip((70, 3, 41, 83), (PERSON, DOG, AGAIN, UNLIKELY)):
        rows[0, :4, i], rows[0, 4 + CLASSES:, i], score[0, 4 + b[5], i] = centre(b), weights(b), b[4]
    save(name, rows, score, outputs, metadata)


def yolov5(name):
    count = 3 * (64 + 16 + 4)
    rows, score = np.zeros((1, count, 5 + CLASSES + NUMBERS)), np.zeros((1, count, 5 + CLASSES + NUMBERS))
    rows[0, :, 2:4] = 10
    for i, b in zip((170, 3, 241, 83), (PERSON, DOG, AGAIN, UNLIKELY)):
        rows[0, i, :4], rows[0, i, 5 + CLASSES:], rows[0, i, 5 + b[5]] = centre(b), weights(b), 1
        score[0, i, 4] = b[4]
    save(name, rows, score, [("output1", prototypes())])


def end2end(name, numbers=NUMBERS, metadata=NAMES):
    rows, score = np.zeros((1, 10, 6 + numbers)), np.zeros((1, 10, 6 + numbers))
    for i, b in enumerate((PERSON, DOG, UNLIKELY)):
        rows[0, i, :4], rows[0, i, 5], rows[0, i, 6:6 + NUMBERS] = b[:4], b[5], weights(b)
        score[0, i, 4] = b[4]
    save(name, rows, score, [("output1", prototypes())], metadata)


yolov8("yolov8", [("output1", prototypes())])
yolov8("unnamed", [("output1", prototypes())], {})
yolov5("yolov5")
end2end("end2end")
end2end("end2end_unnamed", metadata={})
# What lacks something.
yolov8("orphans", [])
yolov8("coarse", [("output1", prototypes(3))])
end2end("unequal", NUMBERS + 2)
