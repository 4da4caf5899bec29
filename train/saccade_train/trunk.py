# SPDX-License-Identifier: Apache-2.0
"""YOLOX-nano (Ge et al., 2021; Apache-2.0) up to its head's last features, as a part of a network that learns on.

The file's convolutions, whose normalisations are folded in, are taken over one by one. What sorts pixels into four
pictures of half the size before the first one is part of that one's weights here, and so are the order of the colours
and their range: the input is RGB in 0..1, as ours.
"""
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper
from torch import nn

CHANNELS = 192  # at each stride: what the head begins from, and what class and box are guessed from


def sequence(c_in, c_out, k=1, stride=1):
    """A convolution; those wider than a pixel channel by channel, and then one across."""
    if k == 1:
        return nn.ModuleList([nn.Conv2d(c_in, c_out, 1)])
    return nn.ModuleList([nn.Conv2d(c_in, c_in, k, stride, k // 2, groups=c_in), nn.Conv2d(c_in, c_out, 1)])


def pass_through(layers, x):
    for layer in layers:
        x = F.silu(layer(x))
    return x


class Block(nn.Module):
    """Half of the channels go through n small steps, the other half past them."""

    def __init__(self, c_in, c_out, n, add=False):
        super().__init__()
        half = c_out // 2
        self.enter, self.side = sequence(c_in, half), sequence(c_in, half)
        self.steps = nn.ModuleList(nn.ModuleList([*sequence(half, half), *sequence(half, half, 3)]) for _ in range(n))
        self.leave, self.add = sequence(c_out, c_out), add

    def forward(self, x):
        y = pass_through(self.enter, x)
        side = pass_through(self.side, x)
        for step in self.steps:
            z = pass_through(step, y)
            y = z + y if self.add else z
        return pass_through(self.leave, torch.cat([y, side], 1))


class Head(nn.Module):
    """What a stride's answers are made of: [n,CHANNELS,h,w]."""

    def __init__(self, c_in, c=64):
        super().__init__()
        self.stem = sequence(c_in, c)
        self.kind, self.box = (nn.ModuleList([*sequence(c, c, 3), *sequence(c, c, 3)]) for _ in range(2))

    def forward(self, x):
        x = pass_through(self.stem, x)
        return torch.cat([x, pass_through(self.kind, x), pass_through(self.box, x)], 1)


class Trunk(nn.Module):
    """Features at strides 8, 16 and 32. Its parts stand in the order of the file's convolutions."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 6, 2, 2)
        self.down2, self.dark2 = sequence(16, 32, 3, 2), Block(32, 32, 1, True)
        self.down3, self.dark3 = sequence(32, 64, 3, 2), Block(64, 64, 3, True)
        self.down4, self.dark4 = sequence(64, 128, 3, 2), Block(128, 128, 3, True)
        self.down5 = sequence(128, 256, 3, 2)
        self.pool_enter, self.pool_leave, self.dark5 = sequence(256, 128), sequence(512, 256), Block(256, 256, 1)
        self.lateral, self.p4 = sequence(256, 128), Block(256, 128, 1)
        self.reduce, self.p3 = sequence(128, 64), Block(128, 64, 1)
        self.out3, self.n3 = sequence(64, 64, 3, 2), Block(128, 128, 1)
        self.out4, self.n4 = sequence(128, 128, 3, 2), Block(256, 256, 1)
        self.heads = nn.ModuleList(Head(c) for c in (64, 128, 256))

    def forward(self, x):
        x = F.silu(self.stem(x))
        x = self.dark2(pass_through(self.down2, x))
        c3 = self.dark3(pass_through(self.down3, x))
        c4 = self.dark4(pass_through(self.down4, c3))
        parts = [pass_through(self.pool_enter, pass_through(self.down5, c4))]
        for _ in range(3):  # windows of 5, 9 and 13
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        c5 = self.dark5(pass_through(self.pool_leave, torch.cat(parts, 1)))
        p5 = pass_through(self.lateral, c5)
        p4 = pass_through(self.reduce, self.p4(torch.cat([F.interpolate(p5, scale_factor=2.0, mode="nearest"), c4], 1)))
        p3 = self.p3(torch.cat([F.interpolate(p4, scale_factor=2.0, mode="nearest"), c3], 1))
        n3 = self.n3(torch.cat([pass_through(self.out3, p3), p4], 1))
        n4 = self.n4(torch.cat([pass_through(self.out4, n3), p5], 1))
        return [head(y) for head, y in zip(self.heads, (p3, n3, n4))]


@torch.no_grad()
def read(path):
    """The Trunk of a YOLOX-nano file."""
    graph = onnx.load(path).graph
    numbers = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in graph.initializer}
    found = [n.input for n in graph.node if n.op_type == "Conv" and "preds" not in n.input[1]]
    trunk = Trunk()
    layers = [m for m in trunk.modules() if isinstance(m, nn.Conv2d)]
    weights = [numbers.get(i[1]) for i in found]
    if len(found) != len(layers) or weights[0] is None or weights[0].shape != (16, 12, 3, 3):
        raise SystemExit(f"{path}: not YOLOX-nano: it has {len(found)} convolutions before its answers, not {len(layers)}")
    weights[0] = unsorted(weights[0])
    for layer, weight, names in zip(layers, weights, found):
        layer.weight.copy_(weight)
        layer.bias.copy_(numbers[names[2]])
    return trunk


def unsorted(weight):
    """[o,12,3,3] over four pictures (upper left, lower left, upper right, lower right pixels) of BGR in 0..255, as
    [o,3,6,6] over one of RGB in 0..1."""
    out = torch.zeros(weight.shape[0], 3, 6, 6)
    for group, (down, right) in enumerate(((0, 0), (1, 0), (0, 1), (1, 1))):
        out[:, :, down::2, right::2] = 255 * weight[:, 3 * group:3 * group + 3].flip(1)
    return out
