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


def save(name, outputs, shape=(1, 3, SIZE, SIZE), metadata=None, half=False, ones=(), flat=False, pixels=None,
         ranks=0):
    """outputs: list of (name, array with batch 1), integers as int64. half: float16 throughout. ones: inputs beside the
    image, (name, type, shape), whose numbers must all be 1, else the outputs are far off. flat: the outputs have no
    batch. pixels: type of the image, where it is not that of the outputs. ranks: TopK nodes before the outputs."""
    number, port_type = (np.float16, TensorProto.FLOAT16) if half else (np.float32, TensorProto.FLOAT)
    nodes, inits, ports = [], [], []
    every = list(range(len(shape)))
    if pixels:
        nodes.append(helper.make_node("Cast", ["image"], ["numbers"], to=port_type))
    source = "numbers" if pixels else "image"
    nodes.append(helper.make_node("ReduceMean", [source], ["mean"], axes=every if flat else every[1:], keepdims=0))
    inits.append(numpy_helper.from_array(np.zeros(1, number), "zero"))
    nodes.append(helper.make_node("Mul", ["mean", "zero"], ["nothing"]))
    inputs = [helper.make_tensor_value_info("image", pixels or port_type, list(shape))]
    nothing = "nothing"
    for i, (side, side_type, side_shape) in enumerate(ones):
        inits += [numpy_helper.from_array(np.ones(1, number), "one%d" % i),
                  numpy_helper.from_array(np.full(1, 1000, number), "many%d" % i)]
        axes = list(range(0 if flat else 1, len(side_shape)))
        nodes += [helper.make_node("Cast", [side], ["side%d" % i], to=port_type),
                  helper.make_node("ReduceMean", ["side%d" % i], ["side_mean%d" % i], axes=axes, keepdims=0),
                  helper.make_node("Sub", ["side_mean%d" % i, "one%d" % i], ["off%d" % i]),
                  helper.make_node("Mul", ["off%d" % i, "many%d" % i], ["far%d" % i]),
                  helper.make_node("Add", [nothing, "far%d" % i], ["nothing%d" % i])]
        nothing = "nothing%d" % i
        inputs.append(helper.make_tensor_value_info(side, side_type, list(side_shape)))
    for port, array in outputs:
        whole = array.dtype == np.int64
        source = nothing
        if whole:
            source = port + "_whole"
            nodes.append(helper.make_node("Cast", [nothing], [source], to=TensorProto.INT64))
        if not flat:
            column = numpy_helper.from_array(np.array([-1] + [1] * (array.ndim - 1), np.int64), port + "_shape")
            inits.append(column)
            nodes.append(helper.make_node("Reshape", [source, port + "_shape"], [port + "_nothing"]))
            source = port + "_nothing"
        for k in range(ranks):
            inits.append(numpy_helper.from_array(np.ones(1, np.int64), "%s_best%d" % (port, k)))
            nodes.append(helper.make_node("TopK", [source, "%s_best%d" % (port, k)],
                                          ["%s_rank%d" % (port, k), "%s_place%d" % (port, k)]))
            source = "%s_rank%d" % (port, k)
        inits.append(numpy_helper.from_array(array if whole else array.astype(number), port + "_value"))
        nodes.append(helper.make_node("Add", [port + "_value", source], [port]))
        ports.append(helper.make_tensor_value_info(port, TensorProto.INT64 if whole else port_type, list(array.shape)))
    write(name, nodes, inputs, ports, inits, metadata)


def write(name, nodes, inputs, ports, inits, metadata=None):
    model = helper.make_model(helper.make_graph(nodes, name, inputs, ports, inits),
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
        names = str({i: "thing %d" % i for i in range(classes)})
        save(name, [("output0", np.concatenate([places, probabilities], 2))], metadata={"names": names})
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


def boxes_trio(name):
    boxes = draw_boxes(4, 20, 1)
    rows = np.array(boxes)
    save(name, [("boxes", rows[None, :, :4]), ("labels", rows[None, :, 5]), ("scores", rows[None, :, 4])])
    expect(name, boxes)


NAMES3 = {"task": "segment", "names": "{0: 'cup', 1: 'plate', 2: 'spoon'}"}
PROTOTYPES = ("output1", np.zeros((1, 8, 16, 16)))


def beside(boxes, count):
    """Numbers beside the classes that would win if they were taken for scores."""
    return rng.uniform(0.96, 9, (count, boxes))


def yolov8_beside(name, classes, more, metadata, prototypes=()):
    grid, boxes = cells([8, 16, 32]), draw_boxes(5, classes)
    out = np.zeros((1, 4 + classes + more, len(grid)))
    out[0, 2:4] = 10
    out[0, 4 + classes:] = beside(len(grid), more)
    for i, b in zip(rng.choice(len(grid), len(boxes), False), boxes):
        out[0, :4, i] = centre(b)
        out[0, 4 + b[5], i] = b[4]
    save(name, [("output0", out), *prototypes], metadata=metadata)
    expect(name, boxes)


def yolov5_seg(name, classes=2, more=8):
    grid, boxes = cells([8, 16, 32]), draw_boxes(4, classes)
    out = np.zeros((1, 3 * len(grid), 5 + classes + more))
    out[0, :, 2:4] = 10
    out[0, :, 5 + classes:] = beside(more, 3 * len(grid))
    for i, b in zip(rng.choice(out.shape[1], len(boxes), False), boxes):
        out[0, i, :4] = centre(b)
        out[0, i, 4] = b[4] ** 0.5
        out[0, i, 5 + b[5]] = b[4] ** 0.5
    save(name, [("output0", out), PROTOTYPES])
    expect(name, boxes)


def end2end_beside(name, more, prototypes=(), metadata=None):
    boxes = draw_boxes(4, 80)
    out = np.zeros((1, 10, 6 + more))
    out[0, :, 6:] = beside(more, 10)
    for i, b in enumerate(boxes):
        out[0, i, :6] = (*b[:4], b[4], b[5])
    save(name, [("output0", out), *prototypes], metadata=metadata)
    expect(name, boxes)


def end2end_numbered(name):
    """YOLOv7: the image's number first."""
    boxes = draw_boxes(4, 80)
    save(name, [("output", np.array([(0, *b[:4], b[5], b[4]) for b in boxes]))], flat=True)
    expect(name, boxes)


def end2end_paddle(name):
    boxes = draw_boxes(4, 80)
    rows = np.array([(b[5], b[4], *b[:4]) for b in boxes])
    save(name, [("multiclass_nms3_0.tmp_0", rows), ("multiclass_nms3_0.tmp_2", np.array([len(boxes)], np.int64))],
         ones=[("scale_factor", TensorProto.FLOAT, [1, 2])], flat=True)
    expect(name, boxes)


def end2end_queries(name):
    """Ultralytics' RT-DETR: the best queries and classes, boxes as centre and size, as shares of the image."""
    boxes = draw_boxes(4, 80)
    out = np.zeros((1, 10, 6))
    for i, b in enumerate(boxes):
        out[0, i] = (*np.array(centre(b)) / SIZE, b[4], b[5])
    save(name, [("output0", out)], ranks=2, metadata={
        "description": "Ultralytics rtdetr-l model", "task": "detect", "names": str({i: "c%d" % i for i in range(80)})})
    expect(name, boxes)


def detr_rf(name, classes=91):
    """Every class by a sigmoid, COCO's own numbers, masks beside them."""
    boxes, queries = draw_boxes(4, classes), 20
    scores, places = np.full((1, queries, classes), logit(0.01)), np.full((1, queries, 4), 0.5)
    for i, b in zip(rng.choice(queries, len(boxes), False), boxes):
        places[0, i] = np.array(centre(b)) / SIZE
        scores[0, i, b[5]] = logit(b[4])
    save(name, [("dets", places), ("labels", scores), ("masks", np.zeros((1, queries, 4, 4)))])
    expect(name, boxes)


def detr_masked(name, classes=91):
    """transformers' export with the mask of pixels, and the states of its decoder as an output."""
    boxes, queries = draw_boxes(4, classes), 20
    scores, places = np.full((1, queries, classes + 1), -40.0), np.full((1, queries, 4), 0.5)
    scores[0, :, -1] = 6
    for i, b in zip(rng.choice(queries, len(boxes), False), boxes):
        places[0, i] = np.array(centre(b)) / SIZE
        scores[0, i, [b[5], -1]] = np.log(b[4]), np.log(1 - b[4])
    save(name, [("last_hidden_state", np.ones((1, queries, 8))), ("logits", scores), ("pred_boxes", places)],
         ones=[("pixel_mask", TensorProto.INT64, [1, SIZE, SIZE])])
    expect(name, boxes)


def boxes_sized(name):
    """RT-DETR and D-FINE, deployed: boxes in pixels of orig_target_sizes, width first; here half as high as wide."""
    boxes = draw_boxes(4, 80)
    rows = np.array(boxes)
    f32, i64 = TensorProto.FLOAT, TensorProto.INT64
    values = {"shares": (rows[:, :4] / SIZE)[None].astype(np.float32), "marks": rows[:, 4][None].astype(np.float32),
              "numbers": rows[:, 5][None].astype(np.int64), "zero": np.zeros(1, np.float32),
              "row": np.array([-1, 1], np.int64), "rows": np.array([-1, 1, 4], np.int64)}
    nodes = [helper.make_node("ReduceMean", ["images"], ["mean"], axes=[1, 2, 3], keepdims=0),
             helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
             helper.make_node("Reshape", ["nothing", "row"], ["column"]),
             helper.make_node("Add", ["marks", "column"], ["scores"]),
             helper.make_node("Cast", ["column"], ["whole"], to=i64),
             helper.make_node("Add", ["numbers", "whole"], ["labels"]),
             helper.make_node("Cast", ["orig_target_sizes"], ["sizes"], to=f32),
             helper.make_node("Concat", ["sizes", "sizes"], ["four"], axis=1),
             helper.make_node("Reshape", ["four", "rows"], ["edges"]),
             helper.make_node("Mul", ["shares", "edges"], ["boxes"])]
    n = len(boxes)
    write(name, nodes,
          [helper.make_tensor_value_info("images", f32, ["N", 3, SIZE // 2, SIZE]),
           helper.make_tensor_value_info("orig_target_sizes", i64, ["N", 2])],
          [helper.make_tensor_value_info("labels", i64, ["N", n]),
           helper.make_tensor_value_info("boxes", f32, ["N", n, 4]),
           helper.make_tensor_value_info("scores", f32, ["N", n])],
          [numpy_helper.from_array(v, k) for k, v in values.items()])
    expect(name, boxes)


def boxes_torch(name, count):
    """torchvision: one picture without a batch, outputs whose names say nothing."""
    boxes = draw_boxes(count, 90, 1)
    rows = np.array(boxes)
    save(name, [("2770", rows[:, :4]), ("2771", rows[:, 5].astype(np.int64)), ("2772", rows[:, 4])], (3, SIZE, SIZE),
         flat=True)
    expect(name, boxes)


def boxes_scored(name):
    """mmdeploy: the score behind each box; masks."""
    boxes = draw_boxes(4, 80)
    rows = np.array(boxes)
    save(name, [("dets", rows[None, :, :5]), ("labels", rows[None, :, 5].astype(np.int64)),
                ("masks", np.zeros((1, len(boxes), 4, 4)))])
    expect(name, boxes)


def boxes_tensorflow(name):
    """Bytes in, channels last; y before x, as shares."""
    boxes = draw_boxes(4, 90, 1)
    rows = np.array(boxes)
    save(name, [("detection_boxes", rows[None, :, [1, 0, 3, 2]] / SIZE), ("detection_classes", rows[None, :, 5]),
                ("detection_scores", rows[None, :, 4]), ("num_detections", np.full((1,), 4.0))],
         (1, SIZE, SIZE, 3), pixels=TensorProto.UINT8)
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
boxes_trio("boxes_trio")
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
yolov8_beside("yolov8_seg", 3, 8, NAMES3, [PROTOTYPES])
yolov8_beside("yolov8_seg_bare", 3, 8, None, [PROTOTYPES])
yolov8_beside("yolov8_pose", 1, 15, {"task": "pose", "names": "{0: 'person'}", "kpt_shape": "[5, 3]"})
yolov5_seg("yolov5_seg")
end2end_beside("end2end_seg", 8, [PROTOTYPES])
end2end_beside("end2end_pose", 51)
end2end_numbered("end2end_numbered")
end2end_paddle("end2end_paddle")
detr_rf("detr_rf")
detr_masked("detr_masked")
boxes_sized("boxes_sized")
boxes_torch("boxes_torch", 3)
boxes_torch("boxes_torch_one", 1)
boxes_scored("boxes_scored")
boxes_tensorflow("boxes_tensorflow")
# What is no detector of upright boxes.
save("oriented", [("output0", np.zeros((1, 8, 84)))], metadata={"task": "obb", "names": "{0: 'a', 1: 'b', 2: 'c'}"})
save("classifier", [("output0", np.zeros((1, 10)))], metadata={"task": "classify", "names": str(list("abcdefghij"))})
save("tokens", [("last_hidden_state", np.zeros((1, 257, 16)))])
save("fifth_wheel", [("output", np.zeros((1, 7, 84)))], ones=[("prompt", TensorProto.FLOAT, [1, 7])])
save("miscounted", [("output0", np.zeros((1, 9, 84)))], metadata={"names": "{0: 'a', 1: 'b', 2: 'c'}"})
# Of open size, as an export with dynamic axes: only the size that is chosen tells that 15 rows are no plain detector's.
F32 = TensorProto.FLOAT
write("open_masks", [helper.make_node("AveragePool", ["image"], ["cells"], kernel_shape=[8, 8], strides=[8, 8]),
                     helper.make_node("Conv", ["cells", "weights"], ["numbers"]),
                     helper.make_node("Reshape", ["numbers", "flat"], ["output0"])],
      [helper.make_tensor_value_info("image", F32, ["N", 3, "H", "W"])],
      [helper.make_tensor_value_info("output0", F32, ["N", 15, "cells"])],
      [numpy_helper.from_array(np.zeros((15, 3, 1, 1), np.float32), "weights"),
       numpy_helper.from_array(np.array([0, 15, -1], np.int64), "flat")])
save("normalised", [("output0", np.zeros((1, 7, 84)))], metadata={
    "names": "{0: 'a', 1: 'b', 2: 'c'}", "mean": "[0.5, 0.25, 0.75]", "std": "[0.5, 1.0, 0.25]"})
end2end_queries("end2end_queries")
with open(os.path.join(HERE, "golden.txt"), "w") as out:
    out.write("\n".join(golden) + "\n")
