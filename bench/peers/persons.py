# SPDX-License-Identifier: Apache-2.0
"""Networks for persons: a matting network of the shape of MODNet (Ke et al., 2022) and OSNet x1.0 (Zhou et al., 2019)."""
import torch
import torch.nn.functional as F
from torch import nn

from layers import Conv


class HalfInstanceNorm(nn.Module):
    """Batch normalisation for half of the channels, instance normalisation for the others."""

    def __init__(self, c):
        super().__init__()
        self.half = c // 2
        self.batch, self.instance = nn.BatchNorm2d(self.half), nn.InstanceNorm2d(c - self.half)

    def forward(self, x):
        return torch.cat((self.batch(x[:, :self.half].contiguous()), self.instance(x[:, self.half:].contiguous())), 1)


def mixed(c_in, c_out, k, stride=1):
    return nn.Sequential(nn.Conv2d(c_in, c_out, k, stride, k // 2), HalfInstanceNorm(c_out), nn.ReLU(inplace=True))


def scaled(x, factor):
    return F.interpolate(x, scale_factor=factor, mode="bilinear", align_corners=False)


class Matting(nn.Module):
    """[N,3,512,512] to [N,1,512,512], the share of the person in each pixel."""

    def __init__(self, c=32):
        super().__init__()
        import torchvision
        layers = torchvision.models.mobilenet_v2(weights=None).features
        self.stages = nn.ModuleList(layers[a:b] for a, b in ((0, 2), (2, 4), (4, 7), (7, 14), (14, 19)))
        self.gate = nn.Sequential(nn.Linear(1280, 320, bias=False), nn.ReLU(), nn.Linear(320, 1280, bias=False),
                                  nn.Sigmoid())
        self.low16, self.low8 = mixed(1280, 96, 5), mixed(96, 32, 5)
        self.enter2, self.enter4 = mixed(16, c, 1), mixed(24, c, 1)
        self.join2, self.join4 = mixed(c + 3, c, 3, 2), mixed(2 * c, 2 * c, 3)
        self.high4 = nn.Sequential(mixed(3 * c + 3, 2 * c, 3), mixed(2 * c, 2 * c, 3), mixed(2 * c, c, 3))
        self.high2 = nn.Sequential(mixed(2 * c, 2 * c, 3), mixed(2 * c, c, 3), mixed(c, c, 3), mixed(c, c, 3))
        self.low4, self.fuse2 = mixed(32, c, 5), mixed(2 * c, c, 3)
        self.leave = nn.Sequential(mixed(c + 3, c // 2, 3), nn.Conv2d(c // 2, 1, 1))

    def forward(self, image):
        maps = [image]
        for stage in self.stages:
            maps.append(stage(maps[-1]))
        deep = maps[5]
        deep = deep * self.gate(deep.mean((2, 3)))[:, :, None, None]
        low4 = scaled(self.low8(scaled(self.low16(scaled(deep, 2.0)), 2.0)), 2.0)
        half = self.enter2(maps[1])
        high = self.join2(torch.cat((scaled(image, 0.5), half), 1))
        high = self.join4(torch.cat((high, self.enter4(maps[2])), 1))
        high = self.high4(torch.cat((high, low4, scaled(image, 0.25)), 1))
        high = self.high2(torch.cat((scaled(high, 2.0), half), 1))
        fused = self.fuse2(torch.cat((scaled(self.low4(low4), 2.0), high), 1))
        return self.leave(torch.cat((scaled(fused, 2.0), image), 1)).sigmoid()


class Lite(nn.Module):
    """A convolution of 1x1 and a depthwise one."""

    def __init__(self, c):
        super().__init__()
        self.point, self.depth = nn.Conv2d(c, c, 1, bias=False), Conv(c, c, 3, groups=c, act=nn.ReLU)

    def forward(self, x):
        return self.depth(self.point(x))


class OmniScale(nn.Module):
    """Streams of one to four depthwise layers, added with a gate that all share."""

    def __init__(self, c_in, c_out):
        super().__init__()
        c = c_out // 4
        self.enter, self.leave = Conv(c_in, c, act=nn.ReLU), Conv(c, c_out, act=None)
        self.streams = nn.ModuleList(nn.Sequential(*(Lite(c) for _ in range(n))) for n in (1, 2, 3, 4))
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, c // 16, 1), nn.ReLU(inplace=True),
                                  nn.Conv2d(c // 16, c, 1), nn.Sigmoid())
        self.skip = Conv(c_in, c_out, act=None) if c_in != c_out else nn.Identity()

    def forward(self, x):
        narrow = self.enter(x)
        total = 0
        for stream in self.streams:
            scale = stream(narrow)
            total = total + scale * self.gate(scale)
        return F.relu(self.leave(total) + self.skip(x))


class OsNet(nn.Module):
    """[N,3,256,128] to [N,512]."""

    def __init__(self):
        super().__init__()
        smaller = lambda c: [Conv(c, c, act=nn.ReLU), nn.AvgPool2d(2)]
        self.body = nn.Sequential(
            Conv(3, 64, 7, 2, act=nn.ReLU), nn.MaxPool2d(3, 2, 1),
            OmniScale(64, 256), OmniScale(256, 256), *smaller(256),
            OmniScale(256, 384), OmniScale(384, 384), *smaller(384),
            OmniScale(384, 512), OmniScale(512, 512), Conv(512, 512, act=nn.ReLU))
        self.leave = nn.Sequential(nn.Linear(512, 512), nn.BatchNorm1d(512), nn.ReLU(inplace=True))

    def forward(self, x):
        return self.leave(self.body(x).mean((2, 3)))
