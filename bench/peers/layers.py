# SPDX-License-Identifier: Apache-2.0
"""What several of the networks of networks.py are made of."""
from torch import nn


class Conv(nn.Module):
    """Convolution, batch normalisation, activation."""

    def __init__(self, c_in, c_out, k=1, stride=1, dilation=1, groups=1, act=nn.SiLU):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, k, stride, dilation * (k // 2), dilation, groups, bias=False)
        self.bn = nn.BatchNorm2d(c_out)
        self.act = act(inplace=True) if act else nn.Identity()

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))
