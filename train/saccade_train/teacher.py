# SPDX-License-Identifier: Apache-2.0
"""Runs an ONNX network in PyTorch, for distillation on the GPU.

Only the operators of the two teachers are here. A batch of 1 that the exporter baked into the file
(Reshape constants, means over the batch axis) is read as "this batch".
"""
import numpy as np
import onnx
import torch
import torch.nn.functional as F
from google.protobuf.message import DecodeError
from onnx import numpy_helper
from torch import nn


class OnnxNet(nn.Module):
    def __init__(self, path):
        super().__init__()
        try:
            graph = onnx.load(path).graph
        except DecodeError:
            raise SystemExit(f"{path}: not an ONNX model") from None
        self.constants = {}
        for t in graph.initializer:
            value = torch.from_numpy(np.array(numpy_helper.to_array(t)))
            name = f"c{len(self.constants)}"
            self.constants[t.name] = name
            self.register_buffer(name, value)
        self.nodes = [(n.op_type, list(n.input), list(n.output),
                       {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute} | {"outputs": len(n.output)})
                      for n in graph.node]
        self.input = next(i.name for i in graph.input if i.name not in self.constants)
        self.output = graph.output[0].name
        missing = sorted({n[0] for n in self.nodes} - set(RULES))
        if missing:
            raise SystemExit(f"{path}: the teacher uses {', '.join(missing)}, which teacher.py has no rule for")
        self.ints = {k: getattr(self, v).tolist() for k, v in self.constants.items()
                     if getattr(self, v).dtype == torch.int64}

    def forward(self, x, also=()):
        """The network's output; with `also`, names of values inside, a list of output and those."""
        values, batch = {self.input: x}, x.shape[0]
        get = lambda n: values[n] if n in values else getattr(self, self.constants[n])
        for op, ins, outs, attrs in self.nodes:
            got = RULES[op](self, [get(i) if i and i not in self.ints else self.ints.get(i) for i in ins],
                            attrs, batch)
            for name, value in zip(outs, got if isinstance(got, (list, tuple)) else [got]):
                values[name] = value
        return [values[self.output]] + [values[n] for n in also] if also else values[self.output]

    def stems(self):
        """The values that a YOLOX head's score and box branches both start from, by stride: going back from
        each class prediction, the first value that two convolutions read."""
        made_by = {out: node for node in self.nodes for out in node[2]}
        readers = {}
        for op, ins, _, _ in self.nodes:
            if op == "Conv":
                readers[ins[0]] = readers.get(ins[0], 0) + 1
        found = []
        for op, ins, _, _ in self.nodes:
            if op == "Conv" and "cls_preds" in ins[1]:
                name = ins[0]
                while readers.get(name, 0) < 2 and name in made_by:
                    name = made_by[name][1][0]
                found.append(name)
        if len(found) != 3 or any(name not in made_by for name in found):
            raise SystemExit("the teacher has no YOLOX head with three strides: --mimic 0 goes without its features")
        return found


def conv(net, v, a, batch):
    x, w, b = v[0], v[1], v[2] if len(v) > 2 else None
    top, left, bottom, right = a.get("pads", [0, 0, 0, 0])
    if (top, left) != (bottom, right):
        x, top, left = F.pad(x, [left, right, top, bottom]), 0, 0
    return F.conv2d(x, w, b, a.get("strides", [1, 1]), (top, left), a.get("dilations", [1, 1]), a.get("group", 1))


def pool(average):
    def rule(net, v, a, batch):
        x, (top, left, bottom, right) = v[0], a.get("pads", [0, 0, 0, 0])
        if average:
            return F.avg_pool2d(x, a["kernel_shape"], a["strides"], (top, left))
        x = F.pad(x, [left, right, top, bottom], value=float("-inf"))
        return F.max_pool2d(x, a["kernel_shape"], a["strides"])
    return rule


def slice_(net, v, a, batch):
    index = [slice(None)] * v[0].dim()
    for start, end, axis, step in zip(v[1], v[2], v[3], v[4]):
        index[axis] = slice(start, min(end, v[0].shape[axis]), step)
    return v[0][tuple(index)]


def reshape(net, v, a, batch):
    shape = [v[0].shape[i] if s == 0 else s for i, s in enumerate(v[1])]
    if shape[0] == 1 and v[0].shape[0] == batch:
        shape[0] = batch
    return v[0].reshape(shape)


def reduce_mean(net, v, a, batch):
    axes = [x % v[0].dim() for x in a["axes"]]
    if 0 in axes and v[0].shape[0] == batch:
        axes.remove(0)
        if not a.get("keepdims", 1):
            raise SystemExit("teacher: a mean over the batch without keepdims")
    return v[0].mean(axes, keepdim=bool(a.get("keepdims", 1)))


def split(net, v, a, batch):
    sizes = a.get("split") or (v[1] if len(v) > 1 else None)
    axis = a.get("axis", 0)
    return torch.split(v[0], sizes, axis) if sizes else torch.chunk(v[0], a["outputs"], axis)


def resize(net, v, a, batch):
    scale = v[2] if len(v) > 2 and v[2] is not None else None
    return F.interpolate(v[0], scale_factor=[float(s) for s in scale[2:]], mode="nearest")


RULES = {
    "Conv": conv, "MaxPool": pool(False), "AveragePool": pool(True), "Slice": slice_, "Reshape": reshape,
    "ReduceMean": reduce_mean, "Resize": resize,
    "Sigmoid": lambda n, v, a, b: torch.sigmoid(v[0]), "Relu": lambda n, v, a, b: F.relu(v[0]),
    "Neg": lambda n, v, a, b: -v[0], "Sqrt": lambda n, v, a, b: torch.sqrt(v[0]),
    "Mul": lambda n, v, a, b: v[0] * v[1], "Add": lambda n, v, a, b: v[0] + v[1],
    "Sub": lambda n, v, a, b: v[0] - v[1], "Div": lambda n, v, a, b: v[0] / v[1],
    "Concat": lambda n, v, a, b: torch.cat(v, a["axis"]),
    "Transpose": lambda n, v, a, b: v[0].permute(*a["perm"]),
    "Split": split,
    "Gemm": lambda n, v, a, b: F.linear(v[0], v[1] if a.get("transB") else v[1].t(), v[2]),
}


class YoloxTeacher(nn.Module):
    """Persons of a YOLOX network: scores [B,A] and boxes [B,A,4] on the grid that PersonDet has too."""

    def __init__(self, path, height, width):
        super().__init__()
        from .nets import cell_grid
        self.inside = []
        self.net = OnnxNet(path)
        centres, sizes = cell_grid(height, width)
        self.register_buffer("corner", centres - sizes / 2)
        self.register_buffer("sizes", sizes)

    def read_features(self):
        """From now on forward gives the head's input maps too; returns how many channels they have."""
        self.inside = self.net.stems()
        size = int(self.sizes.max()) * 2
        return self.net(torch.zeros(1, 3, size, size, device=self.sizes.device), self.inside)[1].shape[1]

    @torch.no_grad()
    def forward(self, rgb):
        """Scores, boxes, and the maps or None."""
        out, *maps = self.net(rgb.flip(1), self.inside) if self.inside else [self.net(rgb.flip(1))]  # BGR, 0..255
        out = out.float()
        centre = self.corner + out[..., :2] * self.sizes
        half = torch.exp(out[..., 2:4].clamp(max=8)) * self.sizes / 2
        return out[..., 4] * out[..., 5], torch.cat([centre - half, centre + half], -1), maps or None


class ReidTeacher(nn.Module):
    """An embedding network whose input is [N,height,width,3], BGR in 0..255, as person_reid_0288's.

    Its rows share a large common part (two persons of the training crops have a cosine of 0.61 on average), which
    no network that ends in a normalisation can have. `standardise` takes every dimension's mean away and divides
    by its deviation; on held-out crops that finds persons better, too (the other view of a crop first in 45.7 %
    instead of 41.0 %, 223 held-out crops, 2026-11-21)."""

    def __init__(self, path):
        super().__init__()
        self.net = OnnxNet(path)
        self.mean, self.deviation = 0.0, 1.0

    @torch.no_grad()
    def forward(self, rgb):
        return (self.net(rgb.flip(1).permute(0, 2, 3, 1)).flatten(1).float() - self.mean) / self.deviation

    def standardise(self, rows):
        """rows [n,d]: this network's answers so far to what it will be asked."""
        self.mean, self.deviation = rows.mean(0), rows.std(0).clamp(min=1e-3)
