# SPDX-License-Identifier: Apache-2.0
"""The three networks.

All are built from dense 3x3 and 1x1 convolutions with ReLU: on both of saccade's devices these run near
the machine's peak, while depthwise convolutions and swish wait for memory. While training, each 3x3
convolution has a 1x1 and an identity branch beside it (RepVGG, Ding et al., CVPR 2021); `fuse` adds them
into one convolution, so the exported network does not pay for them.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def fold_bn(weight, bn):
    """Weight and bias of a convolution followed by batch normalisation, as one convolution."""
    scale = bn.weight / torch.sqrt(bn.running_var + bn.eps)
    return weight * scale[:, None, None, None], bn.bias - bn.running_mean * scale


class Conv(nn.Module):
    """Convolution, batch normalisation, ReLU; 3x3 ones with extra branches while training."""

    def __init__(self, c_in, c_out, k=3, stride=1, act=True):
        super().__init__()
        self.k, self.stride, self.act = k, stride, act
        self.conv = nn.Conv2d(c_in, c_out, k, stride, k // 2, bias=False)
        self.bn = nn.BatchNorm2d(c_out)
        self.point = self.point_bn = self.skip_bn = self.fused = None
        if k == 3:
            self.point = nn.Conv2d(c_in, c_out, 1, stride, bias=False)
            self.point_bn = nn.BatchNorm2d(c_out)
            if c_in == c_out and stride == 1:
                self.skip_bn = nn.BatchNorm2d(c_out)

    def forward(self, x):
        if self.fused is not None:
            y = self.fused(x)
        else:
            y = self.bn(self.conv(x))
            if self.point is not None:
                y = y + self.point_bn(self.point(x))
            if self.skip_bn is not None:
                y = y + self.skip_bn(x)
        return F.relu(y) if self.act else y

    @torch.no_grad()
    def fuse(self):
        weight, bias = fold_bn(self.conv.weight, self.bn)
        if self.point is not None:
            w, b = fold_bn(F.pad(self.point.weight, [1, 1, 1, 1]), self.point_bn)
            weight, bias = weight + w, bias + b
        if self.skip_bn is not None:
            w, b = fold_bn(nn.init.dirac_(torch.empty_like(self.conv.weight)), self.skip_bn)
            weight, bias = weight + w, bias + b
        self.fused = nn.Conv2d(self.conv.in_channels, self.conv.out_channels, self.k, self.stride,
                               self.k // 2).to(weight)
        self.fused.weight.copy_(weight)
        self.fused.bias.copy_(bias)
        self.conv = self.bn = self.point = self.point_bn = self.skip_bn = None


def fuse(model):
    """Turn a trained network into its inference form, in place."""
    for m in model.modules():
        if isinstance(m, Conv) and m.fused is None:
            m.fuse()
    return model.eval()


class Stage(nn.Module):
    """Cross-stage block: half of the channels go through n 3x3 convolutions, all stages are joined."""

    def __init__(self, c_in, c_out, n):
        super().__init__()
        half = c_out // 2
        self.enter = Conv(c_in, half, 1)
        self.side = Conv(c_in, half, 1)
        self.steps = nn.ModuleList(Conv(half, half) for _ in range(n))
        self.leave = Conv(half * (2 + n), c_out, 1)
        self.checkpoint = False  # set by training.save_memory

    def body(self, x):
        parts = [self.side(x), self.enter(x)]
        for step in self.steps:
            parts.append(step(parts[-1]))
        return self.leave(torch.cat(parts, 1))

    def forward(self, x):
        if self.checkpoint and self.training and x.requires_grad:
            return checkpoint(self.body, x, use_reentrant=False)
        return self.body(x)


class Pyramid(nn.Module):
    """Pooling at three sizes (as SPPF): sees the whole picture at the last stage for little work."""

    def __init__(self, c):
        super().__init__()
        self.enter = Conv(c, c // 2, 1)
        self.leave = Conv(c * 2, c, 1)

    def forward(self, x):
        parts = [self.enter(x)]
        for _ in range(3):
            parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
        return self.leave(torch.cat(parts, 1))


class Backbone(nn.Module):
    """Maps at strides 4, 8, 16 and 32."""

    def __init__(self, widths, depths):
        super().__init__()
        w0, w1, w2, w3, w4 = widths
        self.stem = Conv(3, w0, 3, 2)
        self.down = nn.ModuleList(Conv(a, b, 3, 2) for a, b in
                                  [(w0, w1), (w1, w2), (w2, w3), (w3, w4)])
        self.stages = nn.ModuleList(Stage(w, w, n) for w, n in zip(widths[1:], depths))
        self.pyramid = Pyramid(w4)

    def forward(self, x):
        x = self.stem(x)
        maps = []
        for down, stage in zip(self.down, self.stages):
            x = stage(down(x))
            maps.append(x)
        maps[-1] = self.pyramid(maps[-1])
        return maps


class DetectHead(nn.Module):
    def __init__(self, c_in, c):
        super().__init__()
        self.stem = Conv(c_in, c, 1)
        self.box_branch, self.score_branch = Conv(c, c), Conv(c, c)
        self.box = nn.Conv2d(c, 4, 1)
        self.score = nn.Conv2d(c, 1, 1)
        nn.init.constant_(self.score.bias, -math.log(99.0))  # scores start near 0.01 (RetinaNet)
        nn.init.constant_(self.box.bias, 1.0)

    def forward(self, x):
        x = self.stem(x)
        return torch.cat([self.box(self.box_branch(x)), self.score(self.score_branch(x))], 1)


class PersonDet(nn.Module):
    """One class, three strides, boxes as distances from the cell's centre to its four edges.

    forward gives [B,A,5] of raw values (4 distances, score logit); `decode` gives boxes x0,y0,x1,y1
    in input pixels and the logit.
    """
    strides = (8, 16, 32)

    def __init__(self, widths=(16, 32, 64, 128, 192), depths=(1, 2, 2, 1), neck=64, head=48):
        super().__init__()
        self.config = dict(widths=list(widths), depths=list(depths), neck=neck, head=head)
        self.backbone = Backbone(widths, depths)
        w3, w4, w5 = widths[2:]
        self.lateral5 = Conv(w5, neck, 1)
        self.up4 = Stage(w4 + neck, neck, 1)
        self.up3 = Stage(w3 + neck, neck, 1)
        self.down4 = Conv(neck, neck, 3, 2)
        self.out4 = Stage(neck * 2, neck, 1)
        self.down5 = Conv(neck, neck, 3, 2)
        self.out5 = Stage(neck * 2, neck, 1)
        self.heads = nn.ModuleList(DetectHead(neck, head) for _ in self.strides)

    def features(self, x):
        _, c3, c4, c5 = self.backbone(x)
        p5 = self.lateral5(c5)
        p4 = self.up4(torch.cat([c4, F.interpolate(p5, scale_factor=2.0, mode="nearest")], 1))
        p3 = self.up3(torch.cat([c3, F.interpolate(p4, scale_factor=2.0, mode="nearest")], 1))
        p4 = self.out4(torch.cat([p4, self.down4(p3)], 1))
        p5 = self.out5(torch.cat([p5, self.down5(p4)], 1))
        return p3, p4, p5

    def answers(self, features):
        maps = [head(p) for head, p in zip(self.heads, features)]
        return torch.cat([m.flatten(2) for m in maps], 2)

    def forward(self, x):
        return self.answers(self.features(x)).transpose(1, 2)


class Siblings(nn.Module):
    """Detectors of several sizes that learn from the same batches: the teacher and the augmentation, half
    of a step's time, are paid once.

    mimic    channels of the teacher's features, 0 for none. Then forward gives beside the answers a guess
             of those features from each network's own: a rich lesson where labels are few (FitNets, Romero
             et al., ICLR 2015). The layers that guess are for training alone.
    """

    def __init__(self, configs, mimic=0):
        super().__init__()
        self.config = configs
        self.nets = nn.ModuleDict({name: PersonDet(**c) for name, c in configs.items()})
        self.mimic = nn.ModuleDict({name: nn.ModuleList(nn.Conv2d(c["neck"], mimic, 1) for _ in PersonDet.strides)
                                    for name, c in configs.items()} if mimic else {})

    def forward(self, x):
        """By name: raw values [B,A,5], and guesses (a map per stride), or None."""
        out = {}
        for name, net in self.nets.items():
            features = net.features(x)
            guesses = [layer(f) for layer, f in zip(self.mimic[name], features)] if name in self.mimic else None
            out[name] = net.answers(features).transpose(1, 2), guesses
        return out


def cell_grid(height, width, strides=PersonDet.strides, device=None):
    """Centres [A,2] (x, y) and strides [A,1] of all cells, in the order of PersonDet's output."""
    centres, sizes = [], []
    for s in strides:
        ys = (torch.arange(height // s, device=device) + 0.5) * s
        xs = (torch.arange(width // s, device=device) + 0.5) * s
        gy, gx = ys[:, None].expand(len(ys), len(xs)), xs[None].expand(len(ys), len(xs))
        centres.append(torch.stack([gx, gy], -1).reshape(-1, 2))
        sizes.append(torch.full((centres[-1].shape[0], 1), float(s), device=device))
    return torch.cat(centres), torch.cat(sizes)


def decode_boxes(raw, centres, sizes):
    """Raw distances [...,A,4] to boxes x0,y0,x1,y1. softplus keeps them positive and, unlike exp,
    grows linearly: no overflow in FP16."""
    d = F.softplus(raw) * sizes
    return torch.cat([centres - d[..., :2], centres + d[..., 2:]], -1)


class ExportDet(nn.Module):
    """PersonDet as `[B,A,5]` (cx, cy, w, h, score): the numbers of the field's YOLOv8 exports, a row for each
    cell. For an engine that keeps channels last that is how the maps lie already, and a 1x1 convolution takes
    distances to centre and size without cutting a tensor: all steps are fast ones."""

    def __init__(self, net, height, width):
        super().__init__()
        self.net = net
        # centre = cell + (right - left) / 2, size = left + right
        mix = torch.tensor([[-0.5, 0, 0.5, 0], [0, -0.5, 0, 0.5], [1.0, 0, 1, 0], [0, 1.0, 0, 1]])
        for s in net.strides:
            self.register_buffer(f"mix{s}", (mix * s)[:, :, None, None])
        self.register_buffer("cells", F.pad(cell_grid(height, width, net.strides)[0], (0, 3)))

    def level(self, stride, head, x):
        x = head.stem(x)
        distances = F.softplus(head.box(head.box_branch(x)))
        boxes = F.conv2d(distances, getattr(self, f"mix{stride}"))
        return torch.cat([boxes, torch.sigmoid(head.score(head.score_branch(x)))], 1)

    def forward(self, x):
        levels = [self.level(s, head, f) for s, head, f in zip(self.net.strides, self.net.heads, self.net.features(x))]
        return torch.cat([m.flatten(2) for m in levels], 2).transpose(1, 2) + self.cells


class PersonReid(nn.Module):
    """A crop of 256x128 becomes a direction in 256 dimensions."""

    def __init__(self, widths=(16, 32, 64, 96, 160), depths=(1, 2, 2, 1), dim=256):
        super().__init__()
        self.config = dict(widths=list(widths), depths=list(depths), dim=dim)
        self.backbone = Backbone(widths, depths)
        # Upper, middle and lower body are pooled apart: people are told apart by where a colour is.
        self.parts = 4
        self.embed = nn.Linear(widths[-1] * (self.parts + 1), dim, bias=False)
        self.norm = nn.BatchNorm1d(dim, affine=False)
        self.folded = None

    def forward(self, x):
        x = self.backbone(x)[-1]
        # int: an exported pooling must know its size
        parts = F.avg_pool2d(x, (int(x.shape[2]) // self.parts, int(x.shape[3])))
        if self.folded is not None:
            return self.folded(parts).flatten(1)
        return self.norm(self.embed(torch.cat([x.mean((2, 3)), parts.flatten(1)], 1)))

    @torch.no_grad()
    def fold(self):
        """The end as one convolution over the parts: the whole's mean is the mean of theirs, as they are
        of one size. An engine that keeps channels last then has nothing to move."""
        scale = 1 / torch.sqrt(self.norm.running_var + self.norm.eps)
        dim, channels = self.embed.out_features, self.embed.in_features // (self.parts + 1)
        whole, parts = self.embed.weight.split([channels, channels * self.parts], 1)
        weight = parts.reshape(dim, channels, self.parts) + whole[:, :, None] / self.parts
        self.folded = nn.Conv2d(channels, dim, (self.parts, 1))
        self.folded.weight.copy_((weight * scale[:, None, None])[..., None])
        self.folded.bias.copy_(-self.norm.running_mean * scale)


class PersonSeg(nn.Module):
    """Matte of people: one logit a pixel at half of the input's size, doubled by bilinear.

    The decoder narrows before it enlarges, so most of the arithmetic stays at strides 8 and 16: a 3x3
    convolution of 64 channels at stride 2 would cost as much as the whole backbone.
    """

    def __init__(self, widths=(16, 32, 64, 128, 192), depths=(1, 2, 2, 1), neck=(16, 32, 64, 128),
                 refine=(2, 2, 3, 2)):
        super().__init__()
        self.config = dict(widths=list(widths), depths=list(depths), neck=list(neck), refine=list(refine))
        self.backbone = Backbone(widths, depths)
        self.top = Conv(widths[4], neck[3], 1)
        self.narrow = nn.ModuleList(Conv(a, b, 1, act=False) for a, b in zip(neck[1:], neck[:-1]))
        self.lateral = nn.ModuleList(Conv(w, c, 1, act=False) for w, c in zip(widths[:4], neck))
        self.refine = nn.ModuleList(nn.Sequential(*(Conv(c, c) for _ in range(k)))
                                    for c, k in zip(neck, refine))
        self.out = nn.Conv2d(neck[0], 1, 1)

    def decode(self, x):
        """The decoder's maps at strides 32, 16, 8, 4 and 2."""
        maps = [self.backbone.stem(x)]
        for down, stage in zip(self.backbone.down, self.backbone.stages):
            maps.append(stage(down(maps[-1])))
        y = self.top(self.backbone.pyramid(maps.pop()))
        out = [y]
        for i in (3, 2, 1, 0):
            if i < 3:
                y = self.narrow[i](y)
            y = F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)
            y = self.refine[i](F.relu(y + self.lateral[i](maps[i])))
            out.append(y)
        return out

    def forward(self, x):
        return self.answer(self.decode(x)[-1])

    def answer(self, y):
        y = self.out(y)
        if y.dtype != torch.float32:  # a logit in bfloat16 has 8 bits, too few for the slopes of a matte
            y = y.float()
        return F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)


@torch.no_grad()
def grow(large, small):
    """Give a PersonSeg the weights of one with fewer channels: it computes the same at first, and the new channels
    learn beside the old (Net2Net, Chen et al., ICLR 2016). Old channels do not hear the new ones yet: those weights
    are 0. Depths may grow in the backbone, where a stage joins all its steps."""
    def part(layer, count):
        return torch.arange(count, device=layer.conv.weight.device)

    def convolution(big, old, ins=None, outs=None):
        ins = part(big, old.conv.in_channels) if ins is None else ins
        outs = part(big, old.conv.out_channels) if outs is None else outs
        for mine, theirs in ((big.conv, old.conv), (big.point, old.point)):
            if theirs is not None:
                mine.weight[outs] = 0
                mine.weight[outs[:, None], ins[None]] = theirs.weight.to(mine.weight)
        for mine, theirs in ((big.bn, old.bn), (big.point_bn, old.point_bn), (big.skip_bn, old.skip_bn)):
            if (mine is None) != (theirs is None):
                raise ValueError("networks of other kinds")
            for name in ("weight", "bias", "running_mean", "running_var") if mine is not None else ():
                getattr(mine, name)[outs] = getattr(theirs, name).to(getattr(mine, name))

    def blocks(layer, count, width, old_width):
        """Where the parts of a joined map lie now."""
        return torch.cat([i * width + part(layer, old_width) for i in range(count)])

    a, b = large.backbone, small.backbone
    convolution(a.stem, b.stem)
    for mine, theirs in zip([*a.down, large.top, *large.narrow, *large.lateral],
                            [*b.down, small.top, *small.narrow, *small.lateral]):
        convolution(mine, theirs)
    for mine, theirs in zip(a.stages, b.stages):
        for x, y in zip([mine.enter, mine.side, *mine.steps], [theirs.enter, theirs.side, *theirs.steps]):
            convolution(x, y)
        width, old = mine.enter.conv.out_channels, theirs.enter.conv.out_channels
        convolution(mine.leave, theirs.leave, blocks(mine.leave, 2 + len(theirs.steps), width, old))
    convolution(a.pyramid.enter, b.pyramid.enter)
    convolution(a.pyramid.leave, b.pyramid.leave, blocks(a.pyramid.leave, 4, a.pyramid.enter.conv.out_channels,
                                                         b.pyramid.enter.conv.out_channels))
    for mine, theirs in zip(large.refine, small.refine):
        if len(mine) != len(theirs):
            raise ValueError("the decoder's depths must be the same")
        for x, y in zip(mine, theirs):
            convolution(x, y)
    large.out.weight.zero_()
    large.out.weight[:, :small.out.in_channels] = small.out.weight.to(large.out.weight)
    large.out.bias.copy_(small.out.bias)


class ExportSeg(nn.Module):
    """PersonSeg as a matte of 0..1."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return torch.sigmoid(self.net(x))


def count_parameters(model):
    return sum(p.numel() for p in model.parameters())


def count_flops(model, shape):
    """Multiply-adds times two of all convolutions and linear layers for one input of `shape`."""
    total, hooks = [0], []

    def conv_hook(m, _, out):
        total[0] += 2 * m.weight.numel() * (out.shape[2] * out.shape[3] if out.dim() == 4 else 1)

    for m in model.modules():
        if isinstance(m, (nn.Conv2d, nn.Linear)):
            hooks.append(m.register_forward_hook(conv_hook))
    with torch.no_grad():
        model.eval()(torch.zeros(shape))
    for h in hooks:
        h.remove()
    return total[0]
