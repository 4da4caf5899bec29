#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a small network per head, and golden.txt with the boxes hidden in its outputs.

Each network ignores what it sees: its output is a constant plus 0 times the mean of the image, so it
still grows with the batch. Boxes are drawn first and then written in the head's own code, so the
golden list does not come from any decoder. Run with numpy and onnx (1.23.2).
"""
import os
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE = 64  # of the square inputs
rng = np.random.default_rng(3)
golden = []


def save(name, outputs, shape=(1, 3, SIZE, SIZE), metadata=None, half=False):
    """outputs: list of (name, array with batch 1). half: float16 throughout."""
    number, port_type = (np.float16, TensorProto.FLOAT16) if half else (np.float32, TensorProto.FLOAT)
    nodes, inits, ports = [], [], []
    nodes.append(helper.make_node("ReduceMean", ["image"], ["mean"], axes=[1, 2, 3], keepdims=0))
    inits.append(numpy_helper.from_array(np.zeros(1, number), "zero"))
    nodes.append(helper.make_node("Mul", ["mean", "zero"], ["nothing"]))
    for port, array in outputs:
        column = numpy_helper.from_array(np.array([-1] + [1] * (array.ndim - 1), np.int64), port + "_shape")
        inits += [column, numpy_helper.from_array(array.astype(number), port + "_value")]
        nodes.append(helper.make_node("Reshape", ["nothing", port + "_shape"], [port + "_nothing"]))
        nodes.append(helper.make_node("Add", [port + "_value", port + "_nothing"], [port]))
        ports.append(helper.make_tensor_value_info(port, port_type, list(array.shape)))
    image = helper.make_tensor_value_info("image", port_type, list(shape))
    model = helper.make_model(helper.make_graph(nodes, name, [image], ports, inits),
                              opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    for key, value in (metadata or {}).items():
        model.metadata_props.add(key=key, value=value)
    onnx.checker.check_model(model)
    onnx.save(model, os.path.join(HERE, name + ".onnx"))


def draw_boxes(count, classes, class_first=0, least=6):
    """Boxes that lie apart, so that NMS leaves them alone."""
    boxes = []
    while len(boxes) < count:
        w, h = rng.uniform(least, 24, 2)
        x, y = rng.uniform(0, SIZE - w), rng.uniform(0, SIZE - h)
        apart = all(x > b[2] or x + w < b[0] or y > b[3] or y + h < b[1] for b in boxes)
        if apart:
            boxes.append((x, y, x + w, y + h, rng.uniform(0.3, 0.95), class_first + int(rng.integers(classes))))
    return boxes


def expect(name, boxes):
    for b in boxes:
        golden.append("%s %d %.5f %.4f %.4f %.4f %.4f" % (name, b[5], b[4], b[0], b[1], b[2], b[3]))


def cells(strides):
    """(x, y, stride) of each cell, finest first."""
    return [(x, y, s) for s in strides for y in range(-(-SIZE // s)) for x in range(-(-SIZE // s))]


def centre(b):
    return (b[0] + b[2]) / 2, (b[1] + b[3]) / 2, b[2] - b[0], b[3] - b[1]


def cell_of(grid, b, taken):
    """A free cell of the finest stride under the box's centre."""
    cx, cy, _, _ = centre(b)
    for i, (x, y, s) in enumerate(grid):
        if x == int(cx // s) and y == int(cy // s) and i not in taken:
            taken.add(i)
            return i
    raise RuntimeError("no cell")


def yolox(name, decoded, classes=3):
    grid, boxes, taken = cells([8, 16, 32]), draw_boxes(5, classes), set()
    out = np.zeros((1, len(grid), 5 + classes))
    for i, (x, y, s) in enumerate(grid):
        out[0, i, :4] = ((x + 0.5) * s, (y + 0.5) * s, s, s) if decoded else (0.5, 0.5, 0, 0)
        out[0, i, 4:] = rng.uniform(0, 0.2, 1 + classes)
    for b in boxes:
        i = cell_of(grid, b, taken)
        x, y, s = grid[i]
        cx, cy, w, h = centre(b)
        out[0, i, :4] = (cx, cy, w, h) if decoded else (cx / s - x, cy / s - y, np.log(w / s), np.log(h / s))
        out[0, i, 4:] = 0
        out[0, i, 4] = b[4] ** 0.5
        out[0, i, 5 + b[5]] = b[4] ** 0.5
    save(name, [("output", out)])
    expect(name, boxes)


def yolov5(name, classes=4):
    grid, boxes = cells([8, 16, 32]), draw_boxes(4, classes)
    out = np.zeros((1, 3 * len(grid), 5 + classes))
    out[0, :, 2:4] = 10
    for i, b in zip(rng.choice(out.shape[1], len(boxes), False), boxes):
        out[0, i, :4] = centre(b)
        out[0, i, 4] = b[4] ** 0.5
        out[0, i, 5 + b[5]] = b[4] ** 0.5
    save(name, [("output0", out)])
    expect(name, boxes)


def yolov8(name, classes, sideways=False, metadata=None, half=False):
    grid, boxes = cells([8, 16, 32]), draw_boxes(5, classes)
    out = np.zeros((1, 4 + classes, len(grid)))
    out[0, 2:4] = 10
    for i, b in zip(rng.choice(len(grid), len(boxes), False), boxes):
        out[0, :4, i] = centre(b)
        out[0, 4 + b[5], i] = b[4]
        if not metadata:  # a second class that must lose
            out[0, 4 + (b[5] + 1) % classes, i] = 0.9 * b[4]
    save(name, [("output0", out.transpose(0, 2, 1) if sideways else out)], metadata=metadata, half=half)
    expect(name, boxes)


def end2end(name):
    boxes = draw_boxes(4, 80)
    out = np.zeros((1, 10, 6))
    for i, b in enumerate(boxes):
        out[0, i] = (*b[:4], b[4], b[5])
    save(name, [("output0", out)])
    expect(name, boxes)


def logit(p):
    return np.log(p / (1 - p))


def detr(name, classes, kind):
    boxes, queries = draw_boxes(4, classes), 20
    columns = classes + (kind == "softmax")
    scores, places = np.full((1, queries, columns), logit(0.01)), np.full((1, queries, 4), 0.5)
    if kind == "softmax":
        scores[0, :, -1] = 6
    for i, b in zip(rng.choice(queries, len(boxes), False), boxes):
        places[0, i] = np.array(centre(b)) / SIZE
        if kind == "softmax":  # two live columns, the rest far below
            scores[0, i] = -40
            scores[0, i, [b[5], -1]] = np.log(b[4]), np.log(1 - b[4])
        else:
            scores[0, i, b[5]] = logit(b[4])
    if kind == "one":
        probabilities = 1 / (1 + np.exp(-scores))
        save(name, [("output0", np.concatenate([places, probabilities], 2))])
    else:
        save(name, [("logits", scores), ("pred_boxes", places)])
    expect(name, boxes)


def distribution(distance, bins):
    """Logits whose mean bin is the distance: mass on the two bins around it."""
    out = np.full(bins, -40.0)
    low = int(distance)
    out[low] = np.log(max(1 - (distance - low), 1e-12))
    out[low + 1] = np.log(max(distance - low, 1e-12))
    return out


def nanodet_levels(strides, offset, classes, bins, activate):
    """Per stride: scores and distances; boxes that each fit the reach of a cell."""
    # Distances are not negative: half a box covers the way from the cell's point to the box's centre.
    boxes = draw_boxes(3, classes, least=9 if offset else 17)
    grid, taken = cells(strides), set()
    scores = np.full((len(grid), classes), 0.01)
    edges = np.zeros((len(grid), 4 * bins))
    for b in boxes:
        i = cell_of(grid, b, taken)
        x, y, s = grid[i]
        px, py = (x + offset) * s, (y + offset) * s
        scores[i] = 0
        scores[i, b[5]] = b[4]
        reach = [(px - b[0]) / s, (py - b[1]) / s, (b[2] - px) / s, (b[3] - py) / s]
        edges[i] = np.concatenate([distribution(r, bins) for r in reach])
    if not activate:
        scores = logit(np.clip(scores, 1e-6, None))
    return grid, boxes, scores, edges


def nanodet_plus(name, classes=80, bins=8):
    _, boxes, scores, edges = nanodet_levels([8, 16, 32, 64], 0.0, classes, bins, True)
    save(name, [("output", np.concatenate([scores, edges], 1)[None])])
    expect(name, boxes)


def nanodet_split(name, classes=5, bins=8):
    grid, boxes, scores, edges = nanodet_levels([8, 16, 32], 0.5, classes, bins, False)
    outputs, at = [], 0
    for s in (8, 16, 32):
        n = sum(1 for cell in grid if cell[2] == s)
        outputs.append(("cls_pred_stride_%d" % s, scores[None, at:at + n]))
        outputs.append(("dis_pred_stride_%d" % s, edges[None, at:at + n]))
        at += n
    save(name, outputs)
    expect(name, boxes)


def ssd_rows(name):
    boxes = draw_boxes(3, 20, 1)
    out = np.zeros((1, 1, 8, 7))
    out[0, 0, :, 0] = -1
    for i, b in enumerate(boxes):
        out[0, 0, i] = (0, b[5], b[4], *(np.array(b[:4]) / SIZE))
    save(name, [("detection_out", out)])
    expect(name, boxes)


def ssd_trio(name):
    boxes = draw_boxes(4, 20, 1)
    rows = np.array(boxes)
    save(name, [("boxes", rows[None, :, :4]), ("labels", rows[None, :, 5]), ("scores", rows[None, :, 4])])
    expect(name, boxes)


def embedding(name, channels_last, dim=16):
    shape = (1, 32, 16, 3) if channels_last else (1, 3, 32, 16)
    save(name, [("row", np.arange(dim)[None] - 5.0)], shape)


yolox("yolox_raw", False)
yolox("yolox_decoded", True)
yolov5("yolov5")
yolov8("yolov8", 7)
yolov8("yolov8_sideways", 3, True, {"names": "{0: 'cup', 1: \"barista's\", 2: 'spoon'}", "imgsz": "[64, 64]"})
yolov8("yolov8_half", 2, half=True)
end2end("end2end")
detr("detr_sigmoid", 80, "sigmoid")
detr("detr_softmax", 91, "softmax")
detr("detr_one", 10, "one")
nanodet_plus("nanodet_plus")
nanodet_split("nanodet_split")
ssd_rows("ssd_rows")
ssd_trio("ssd_trio")
embedding("embedding_nchw", False)
embedding("embedding_nhwc", True)
# The contract's places: metadata and, beside it, contract.yaml (written by hand).
save("contract", [("output", np.zeros((1, 84, 8)))], metadata={
    "saccade.preprocess": "rgb,mean=1:2:3,std=2,letterbox=centre", "saccade.classes": "cat,dog,bird"})
save("none", [("a", np.zeros((1, 7))), ("b", np.zeros((1, 9)))])
# Its batch cannot be freed: outputs sum over the images of one, as an export with a wrong axis does.
fixed = helper.make_model(
    helper.make_graph(
        [helper.make_node("ReduceMean", ["image"], ["mean"], axes=[0, 1, 2, 3], keepdims=0),
         helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
         helper.make_node("Add", ["boxes", "nothing"], ["output"])],
        "fixed_batch", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, SIZE, SIZE])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 6, 84])],
        [numpy_helper.from_array(np.zeros((), np.float32), "zero"),
         numpy_helper.from_array(np.repeat([[[32], [32], [20], [20], [0.9], [0.1]]], 84, 2).astype(np.float32), "boxes")]),
    opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
onnx.checker.check_model(fixed)
onnx.save(fixed, os.path.join(HERE, "fixed_batch.onnx"))
# It suppresses by itself: how many rows come out, only the picture's brightness tells.
I64, F32 = TensorProto.INT64, TensorProto.FLOAT
own_boxes = np.array([[[4 + 12 * i, 4, 12 + 12 * i, 20] for i in range(5)]], np.float32)
own_scores = np.array([[[1.0, 0.8, 0.6, 0.45, 0.35]]], np.float32)
counted = helper.make_model(
    helper.make_graph(
        [helper.make_node("ReduceMean", ["image"], ["mean"], axes=[0, 1, 2, 3], keepdims=0),
         helper.make_node("Mul", ["base", "mean"], ["scores"]),
         helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["chosen"]),
         helper.make_node("Gather", ["chosen", "two"], ["index"], axis=1),
         helper.make_node("Gather", ["boxes", "zero"], ["own"], axis=0),
         helper.make_node("Gather", ["own", "index"], ["places"], axis=0),
         helper.make_node("Reshape", ["scores", "row"], ["list"]),
         helper.make_node("Gather", ["list", "index"], ["flat"], axis=0),
         helper.make_node("Unsqueeze", ["flat", "last"], ["column"]),
         helper.make_node("Sub", ["column", "column"], ["class"]),
         helper.make_node("Concat", ["places", "column", "class"], ["output"], axis=1)],
        "end2end_counted", [helper.make_tensor_value_info("image", F32, [1, 3, SIZE, SIZE])],
        [helper.make_tensor_value_info("output", F32, ["n", 6])],
        [numpy_helper.from_array(own_boxes, "boxes"), numpy_helper.from_array(own_scores, "base"),
         numpy_helper.from_array(np.array([5], np.int64), "most"), numpy_helper.from_array(np.array([0.5], np.float32), "iou"),
         numpy_helper.from_array(np.array([0.3], np.float32), "least"), numpy_helper.from_array(np.array(2, np.int64), "two"),
         numpy_helper.from_array(np.array(0, np.int64), "zero"), numpy_helper.from_array(np.array([-1], np.int64), "row"),
         numpy_helper.from_array(np.array([1], np.int64), "last")]),
    opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
onnx.checker.check_model(counted)
onnx.save(counted, os.path.join(HERE, "end2end_counted.onnx"))
with open(os.path.join(HERE, "golden.txt"), "w") as out:
    out.write("\n".join(golden) + "\n")
