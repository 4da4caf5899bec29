# SPDX-License-Identifier: Apache-2.0
"""YOLOv8-S, YOLO11-S and YOLO12-S (Tian et al., 2025), written from their published architectures: [N,3,640,640] in
0..1 to [N,84,8400], boxes decoded to centre and size in pixels, classes as shares."""
import torch
import torch.nn.functional as F
from torch import nn

from layers import Conv

BINS = 16 # of a side's distance


class Bottleneck(nn.Module):
    def __init__(self, c, share=1.0, shortcut=True):
        super().__init__()
        self.body, self.shortcut = nn.Sequential(Conv(c, int(c * share), 3), Conv(int(c * share), c, 3)), shortcut

    def forward(self, x):
        return x + self.body(x) if self.shortcut else self.body(x)


class Branches(nn.Module):
    """One path through blocks, one around them (C3k)."""

    def __init__(self, c, n=2):
        super().__init__()
        half = c // 2
        self.main, self.side, self.leave = Conv(c, half), Conv(c, half), Conv(2 * half, c)
        self.body = nn.Sequential(*(Bottleneck(half) for _ in range(n)))

    def forward(self, x):
        return self.leave(torch.cat((self.body(self.main(x)), self.side(x)), 1))


class Split(nn.Module):
    """Half of the channels through a chain of blocks, every one's result kept (C2f, and C3k2 with other blocks)."""

    def __init__(self, c_in, c_out, blocks, share=0.5):
        super().__init__()
        c = int(c_out * share)
        self.blocks = nn.ModuleList(blocks(c))
        self.enter, self.leave = Conv(c_in, 2 * c), Conv((2 + len(self.blocks)) * c, c_out)

    def forward(self, x):
        kept = list(self.enter(x).chunk(2, 1))
        for block in self.blocks:
            kept.append(block(kept[-1]))
        return self.leave(torch.cat(kept, 1))


def c2f(c_in, c_out, n, shortcut):
    return Split(c_in, c_out, lambda c: [Bottleneck(c, shortcut=shortcut) for _ in range(n)])


def c3k2(c_in, c_out, deep, share=0.5):
    return Split(c_in, c_out, lambda c: [Branches(c) if deep else Bottleneck(c, 0.5)], share)


class Pooling(nn.Module):
    """Three poolings in a row (SPPF)."""

    def __init__(self, c):
        super().__init__()
        self.enter, self.leave = Conv(c, c // 2), Conv(2 * c, c)

    def forward(self, x):
        kept = [self.enter(x)]
        for _ in range(3):
            kept.append(F.max_pool2d(kept[-1], 5, 1, 2))
        return self.leave(torch.cat(kept, 1))


def mlp(c, ratio):
    return nn.Sequential(Conv(c, ratio * c), Conv(ratio * c, c, act=None))


class PositionAttention(nn.Module):
    """Attention over the pixels; keys have half of the values' channels. Two residual steps (PSABlock)."""

    def __init__(self, c):
        super().__init__()
        self.heads, self.values, self.keys = c // 64, 64, 32
        self.qkv = Conv(c, c + 2 * self.keys * self.heads, act=None)
        self.place, self.leave, self.mlp = Conv(c, c, 3, groups=c, act=None), Conv(c, c, act=None), mlp(c, 2)

    def attend(self, x):
        n, c, h, w = x.shape
        q, k, v = self.qkv(x).view(n, self.heads, 2 * self.keys + self.values, h * w).split(
            [self.keys, self.keys, self.values], 2)
        weights = (q.transpose(-2, -1) @ k * self.keys ** -0.5).softmax(-1)
        out = (v @ weights.transpose(-2, -1)).view(n, c, h, w)
        return self.leave(out + self.place(v.reshape(n, c, h, w)))

    def forward(self, x):
        x = x + self.attend(x)
        return x + self.mlp(x)


class SplitAttention(nn.Module):
    """Attention on half of the channels (C2PSA)."""

    def __init__(self, c):
        super().__init__()
        self.enter, self.leave, self.body = Conv(c, c), Conv(c, c), PositionAttention(c // 2)

    def forward(self, x):
        left, right = self.enter(x).chunk(2, 1)
        return self.leave(torch.cat((left, self.body(right)), 1))


class AreaAttention(nn.Module):
    """Attention within each of `areas` strips of the map, heads of 32 channels, and its MLP."""

    def __init__(self, c, areas):
        super().__init__()
        self.heads, self.areas = c // 32, areas
        self.qkv, self.leave = Conv(c, 3 * c, act=None), Conv(c, c, act=None)
        self.place, self.mlp = Conv(c, c, 7, groups=c, act=None), mlp(c, 2)

    def attend(self, x):
        n, c, h, w = x.shape
        strips, pixels = n * self.areas, h * w // self.areas
        qkv = self.qkv(x).flatten(2).transpose(1, 2)
        if self.areas > 1:
            qkv = qkv.reshape(strips, pixels, 3 * c)
        q, k, v = qkv.view(strips, pixels, self.heads, 96).permute(0, 2, 3, 1).split(32, 2)
        weights = (q.transpose(-2, -1) @ k * 32 ** -0.5).softmax(-1)
        out, v = ((v @ weights.transpose(-2, -1)).permute(0, 3, 1, 2), v.permute(0, 3, 1, 2))
        out, v = (a.reshape(n, h, w, c).permute(0, 3, 1, 2).contiguous() for a in (out, v))
        return self.leave(out + self.place(v))

    def forward(self, x):
        x = x + self.attend(x)
        return x + self.mlp(x)


class Chain(nn.Module):
    """Blocks in a row, the results of all kept (A2C2f): pairs of area attention, or convolutions where areas is 0."""

    def __init__(self, c_in, c_out, n, areas=0):
        super().__init__()
        c = c_out // 2
        pair = lambda: nn.Sequential(*(AreaAttention(c, areas) for _ in range(2))) if areas else Branches(c)
        self.blocks = nn.ModuleList(pair() for _ in range(n))
        self.enter, self.leave = Conv(c_in, c), Conv((1 + n) * c, c_out)

    def forward(self, x):
        kept = [self.enter(x)]
        for block in self.blocks:
            kept.append(block(kept[-1]))
        return self.leave(torch.cat(kept, 1))


class Detect(nn.Module):
    """Boxes as a distribution over BINS distances for each side, classes of each cell."""

    def __init__(self, channels, size, depthwise, classes=80):
        super().__init__()
        box, kind = max(16, channels[0] // 4, 4 * BINS), max(channels[0], min(classes, 100))
        pair = lambda a, b: [Conv(a, a, 3, groups=a), Conv(a, b)] if depthwise else [Conv(a, b, 3)]
        self.boxes = nn.ModuleList(nn.Sequential(Conv(c, box, 3), Conv(box, box, 3), nn.Conv2d(box, 4 * BINS, 1))
                                   for c in channels)
        self.classes = nn.ModuleList(nn.Sequential(*pair(c, kind), *pair(kind, kind), nn.Conv2d(kind, classes, 1))
                                     for c in channels)
        self.bins = nn.Conv2d(BINS, 1, 1, bias=False)
        self.bins.weight.data[:] = torch.arange(BINS).view(1, BINS, 1, 1)
        centres, strides = [], []
        for stride in (8, 16, 32):
            at = torch.arange(size // stride) + 0.5
            y, x = torch.meshgrid(at, at, indexing="ij")
            centres.append(torch.stack((x, y)).flatten(1))
            strides.append(torch.full((1, x.numel()), float(stride)))
        self.register_buffer("centres", torch.cat(centres, 1)[None])
        self.register_buffer("strides", torch.cat(strides, 1))
        self.split = (4 * BINS, classes)

    def forward(self, maps):
        n = maps[0].shape[0]
        rows = torch.cat([torch.cat((box(a), kind(a)), 1).view(n, sum(self.split), -1)
                          for a, box, kind in zip(maps, self.boxes, self.classes)], 2)
        box, kind = rows.split(self.split, 1)
        sides = self.bins(box.view(n, 4, BINS, -1).transpose(2, 1).softmax(1)).view(n, 4, -1)
        before, after = sides.chunk(2, 1)
        first, last = self.centres - before, self.centres + after
        box = torch.cat(((first + last) / 2, last - first), 1) * self.strides
        return torch.cat((box, kind.sigmoid()), 1)


class Yolo(nn.Module):
    """A backbone of three maps, a path up and one down again, a head. `fuse` and `last` make the blocks between."""

    def __init__(self, early, middle, late, channels, fuse, last, depthwise, size=640):
        super().__init__()
        self.early, self.middle, self.late = nn.Sequential(*early), nn.Sequential(*middle), nn.Sequential(*late)
        c3, c4, c5 = channels # of the backbone's maps; those of the head have 128, 256 and 512
        self.up4, self.up3 = fuse(c5 + c4, 256), fuse(256 + c3, 128)
        self.down3, self.down4 = Conv(128, 128, 3, 2), Conv(256, 256, 3, 2)
        self.out4, self.out5 = fuse(128 + 256, 256), last(256 + c5, 512)
        self.detect = Detect((128, 256, 512), size, depthwise)

    def forward(self, x):
        c3 = self.early(x)
        c4 = self.middle(c3)
        c5 = self.late(c4)
        p4 = self.up4(torch.cat((F.interpolate(c5, scale_factor=2.0), c4), 1))
        p3 = self.up3(torch.cat((F.interpolate(p4, scale_factor=2.0), c3), 1))
        p4 = self.out4(torch.cat((self.down3(p3), p4), 1))
        return self.detect([p3, p4, self.out5(torch.cat((self.down4(p4), c5), 1))])


def yolov8_s():
    fuse = lambda a, b: c2f(a, b, 1, False)
    return Yolo([Conv(3, 32, 3, 2), Conv(32, 64, 3, 2), c2f(64, 64, 1, True), Conv(64, 128, 3, 2), c2f(128, 128, 2, True)],
                [Conv(128, 256, 3, 2), c2f(256, 256, 2, True)],
                [Conv(256, 512, 3, 2), c2f(512, 512, 1, True), Pooling(512)], (128, 256, 512), fuse, fuse, False)


def newer_start():
    """To the map of an eighth, in YOLO11-S and YOLO12-S."""
    return [Conv(3, 32, 3, 2), Conv(32, 64, 3, 2), c3k2(64, 128, False, 0.25), Conv(128, 128, 3, 2),
            c3k2(128, 256, False, 0.25)]


def yolo11_s():
    return Yolo(newer_start(), [Conv(256, 256, 3, 2), c3k2(256, 256, True)],
                [Conv(256, 512, 3, 2), c3k2(512, 512, True), Pooling(512), SplitAttention(512)], (256, 256, 512),
                lambda a, b: c3k2(a, b, False), lambda a, b: c3k2(a, b, True), True)


def yolo12_s():
    return Yolo(newer_start(), [Conv(256, 256, 3, 2), Chain(256, 256, 2, 4)],
                [Conv(256, 512, 3, 2), Chain(512, 512, 2, 1)], (256, 256, 512),
                lambda a, b: Chain(a, b, 1), lambda a, b: c3k2(a, b, True), True)
