# SPDX-License-Identifier: Apache-2.0
"""Augmentation of whole batches on the device: mosaics, scale jitter, copy-paste, photometric changes,
blur and compression noise as surveillance video has them.

Boxes travel as padded tensors [B,M,5]: x0,y0,x1,y1,kind with kind 1 person, -1 ignore, 0 none.
"""
import math

import torch
import torch.nn.functional as F


def pad_labels(boxes, ignore, device):
    """Lists of [n,4] arrays to one tensor [N,M,5]."""
    most = max(1, max(len(b) + len(g) for b, g in zip(boxes, ignore)))
    out = torch.zeros(len(boxes), most, 5)
    for i, (b, g) in enumerate(zip(boxes, ignore)):
        if len(b):
            out[i, :len(b), :4], out[i, :len(b), 4] = torch.from_numpy(b), 1
        if len(g):
            out[i, len(b):len(b) + len(g), :4] = torch.from_numpy(g)
            out[i, len(b):len(b) + len(g), 4] = -1
    return out.to(device)


def uniform(shape, low, high, device):
    return torch.rand(shape, device=device) * (high - low) + low


def sample(canvas, scale, shift, flip, width, height, size):
    """Place canvases [n,C,S,S] into pictures of width x height: x_out = x_in * scale + shift, mirrored
    about the source picture's middle first where flip is set. Outside of the source is fill 114."""
    n, _, side, _ = canvas.shape
    dev = canvas.device
    xs, ys = torch.arange(width, device=dev) + 0.5, torch.arange(height, device=dev) + 0.5
    gx = (xs[None] - shift[:, :1]) / scale[:, None]
    gy = (ys[None] - shift[:, 1:]) / scale[:, None]
    w, h = size[:, :1].float(), size[:, 1:].float()
    inside = ((gx >= 0) & (gx < w))[:, None, :] & ((gy >= 0) & (gy < h))[:, :, None]
    gx = torch.where(flip[:, None], w - gx, gx)
    grid = torch.stack([(gx / side * 2 - 1)[:, None, :].expand(n, height, width),
                        (gy / side * 2 - 1)[:, :, None].expand(n, height, width)], -1)
    out = F.grid_sample(canvas, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return torch.where(inside[:, None], out, torch.full_like(out[:1, :1], 114.0)), inside


def move_boxes(labels, scale, shift, flip, size):
    x0, y0, x1, y1, kind = labels.unbind(-1)
    w = size[:, :1].float()
    x0, x1 = (torch.where(flip[:, None], w - x1, x0), torch.where(flip[:, None], w - x0, x1))
    s = scale[:, None]
    return torch.stack([x0 * s + shift[:, :1], y0 * s + shift[:, 1:], x1 * s + shift[:, :1],
                        y1 * s + shift[:, 1:], kind], -1)


def clip_boxes(labels, x0, y0, x1, y1, visible_min=0.3, side_min=3.0):
    """Clip to a region [B,1]; a person of whom little is left becomes none, or `ignore` when unsure."""
    bx0, by0 = torch.maximum(labels[..., 0], x0), torch.maximum(labels[..., 1], y0)
    bx1, by1 = torch.minimum(labels[..., 2], x1), torch.minimum(labels[..., 3], y1)
    area = (labels[..., 2] - labels[..., 0]) * (labels[..., 3] - labels[..., 1])
    left = (bx1 - bx0).clamp(min=0) * (by1 - by0).clamp(min=0) / area.clamp(min=1e-3)
    kind = labels[..., 4]
    small = (torch.minimum(bx1 - bx0, by1 - by0) < side_min) | (left < 0.05)
    kind = torch.where((left < visible_min) & (kind > 0), -torch.ones_like(kind), kind)
    kind = torch.where(small, torch.zeros_like(kind), kind)
    return torch.stack([bx0, by0, bx1, by1, kind], -1)


class Mosaic:
    """Batches of pictures: singles at jittered scale, and mosaics of four."""

    def __init__(self, store, labels, width, height, mosaic_share=0.6, scale=(0.3, 1.6)):
        self.store, self.labels = store, labels
        self.width, self.height = width, height
        self.mosaic_share, self.scale = mosaic_share, scale
        self.cut_out = store.with_people  # pictures whose people have masks
        self.empty = (labels[..., 4] == 0).all(1).nonzero()[:, 0]  # pictures of nobody

    def _backdrop(self, n):
        """What shows beside pictures that do not fill their place: a picture of nobody, or grey."""
        dev = self.store.device
        grey = torch.full((n, 3, self.height, self.width), 114.0, device=dev)
        if not len(self.empty):
            return grey
        index = self.empty[torch.randint(len(self.empty), (n,), device=dev)]
        size = self.store.size[index].float()
        scale = torch.maximum(self.width / size[:, 0], self.height / size[:, 1])
        scale = scale * uniform((n,), 1.0, 1.5, dev)
        spare = torch.tensor([self.width, self.height], device=dev) - size * scale[:, None]
        flip = torch.rand(n, device=dev) < 0.5
        picture, _ = sample(self.store.fetch(index), scale, spare * torch.rand(n, 2, device=dev), flip,
                            self.width, self.height, size)
        return torch.where((torch.rand(n, device=dev) < 0.75)[:, None, None, None], picture, grey)

    def _tile(self, n, region):
        """n tiles filling region x0,y0,x1,y1 [n] each, and their labels clipped to it."""
        dev = self.store.device
        index = torch.randint(len(self.store.cache), (n,), device=dev)
        size = self.store.size[index]
        x0, y0, x1, y1 = region
        # scale 1 means that the picture just fills the network's input
        fit = torch.minimum(self.width / size[:, 0].float(), self.height / size[:, 1].float())
        low, high = (math.log(v) for v in self.scale)
        scale = fit * torch.exp(uniform((n,), low, high, dev))
        spare_x = (x1 - x0) - size[:, 0] * scale
        spare_y = (y1 - y0) - size[:, 1] * scale
        shift = torch.stack([x0 + spare_x * torch.rand(n, device=dev),
                             y0 + spare_y * torch.rand(n, device=dev)], -1)
        flip = torch.rand(n, device=dev) < 0.5
        picture, inside = sample(self.store.fetch(index), scale, shift, flip, self.width, self.height, size)
        picture = torch.where(inside[:, None], picture, self._backdrop(n))
        labels = move_boxes(self.labels[index], scale, shift, flip, size)
        return picture, clip_boxes(labels, x0[:, None], y0[:, None], x1[:, None], y1[:, None])

    def batch(self, n):
        """Pictures [n,3,height,width] in 0..255 and labels [n,4M,5]."""
        dev, w, h = self.store.device, float(self.width), float(self.height)
        whole = torch.rand(n, device=dev) >= self.mosaic_share
        cx = torch.where(whole, torch.full((n,), w, device=dev), uniform((n,), 0.25, 0.75, dev) * w).round()
        cy = torch.where(whole, torch.full((n,), h, device=dev), uniform((n,), 0.25, 0.75, dev) * h).round()
        zero, ww, hh = torch.zeros_like(cx), torch.full_like(cx, w), torch.full_like(cx, h)
        xs = torch.arange(self.width, device=dev)[None, None, None] >= cx[:, None, None, None]
        ys = torch.arange(self.height, device=dev)[None, None, :, None] >= cy[:, None, None, None]
        out, labels = self._tile(n, (zero, zero, cx, cy))
        labels = [labels]
        tiles = ~whole
        rows = tiles.nonzero()[:, 0]
        if len(rows):
            for right, below in ((True, False), (False, True), (True, True)):
                region = (cx if right else zero, cy if below else zero, ww if right else cx,
                          hh if below else cy)
                picture, more = self._tile(len(rows), tuple(r[rows] for r in region))
                here = (xs[rows] if right else ~xs[rows]) & (ys[rows] if below else ~ys[rows])
                out[rows] = torch.where(here, picture, out[rows])
                full = torch.zeros(n, more.shape[1], 5, device=dev)
                full[rows] = more
                labels.append(full)
        return out, torch.cat(labels, 1)

    def paste(self, x, labels, share=0.5, height=(24, 220)):
        """Cut people out by their masks and put them into `share` of the pictures, at sizes that street
        cameras see (copy-paste, Ghiasi et al., CVPR 2021)."""
        dev, n = x.device, x.shape[0]
        rows = (torch.rand(n, device=dev) < share).nonzero()[:, 0]
        if self.store.mask is None or not len(self.cut_out) or not len(rows):
            return x, labels
        index = self.cut_out[torch.randint(len(self.cut_out), (len(rows),), device=dev)]
        size, own = self.store.size[index], self.labels[index]
        tallest = ((own[..., 3] - own[..., 1]) * (own[..., 4] > 0)).amax(1)
        low, high = (math.log(v) for v in height)
        scale = (torch.exp(uniform((len(rows),), low, high, dev)) / tallest.clamp(min=8)).clamp(max=1.5)
        room = torch.tensor([self.width, self.height], device=dev)
        # any place where the source's middle stays inside
        shift = torch.rand(len(rows), 2, device=dev) * room - size * scale[:, None] / 2
        flip = torch.rand(len(rows), device=dev) < 0.5
        canvas = torch.cat([self.store.fetch(index), self.store.people(index)], 1)
        placed, inside = sample(canvas, scale, shift, flip, self.width, self.height, size)
        alpha = placed[:, 3:] * inside[:, None]
        x[rows] = x[rows] * (1 - alpha) + placed[:, :3] * alpha
        hidden = F.adaptive_avg_pool2d(alpha, 64)  # share covered, on a coarse grid
        labels[rows] = cover(labels[rows], hidden[:, 0], self.width, self.height)
        own = move_boxes(own, scale, shift, flip, size)
        zero, far = torch.zeros(len(rows), 1, device=dev), torch.ones(len(rows), 1, device=dev)
        own = clip_boxes(own, zero, zero, far * self.width, far * self.height)
        more = torch.zeros(n, own.shape[1], 5, device=dev)
        more[rows] = own
        return x, torch.cat([labels, more], 1)


def cover(labels, hidden, width, height, most=0.6):
    """Persons of whom more than `most` is hidden by what was pasted become `ignore`."""
    side = hidden.shape[1]
    total = F.pad(hidden.cumsum(1).cumsum(2), [1, 0, 1, 0])
    at = lambda v, length: (v / length * side).round().long().clamp(0, side)
    x0, x1 = at(labels[..., 0], width), at(labels[..., 2], width)
    y0, y1 = at(labels[..., 1], height), at(labels[..., 3], height)
    b = torch.arange(len(labels), device=labels.device)[:, None].expand_as(x0)
    covered = total[b, y1, x1] - total[b, y0, x1] - total[b, y1, x0] + total[b, y0, x0]
    share = covered / ((x1 - x0) * (y1 - y0)).clamp(min=1)
    kind = torch.where((share > most) & (labels[..., 4] > 0), -torch.ones_like(share), labels[..., 4])
    return torch.cat([labels[..., :4], kind[..., None]], -1)


def luma(x):
    return 0.299 * x[:, :1] + 0.587 * x[:, 1:2] + 0.114 * x[:, 2:]


def photometric(x):
    """Brightness, contrast, gamma, saturation, colour cast, now and then grey."""
    n, dev = x.shape[0], x.device
    col = lambda low, high: uniform((n, 1, 1, 1), low, high, dev)
    x = (x / 255).clamp(0, 1)
    x = x ** torch.exp(col(-0.5, 0.5))
    grey = luma(x)
    saturation = torch.where(col(0, 1) < 0.08, torch.zeros(1, device=dev), col(0.3, 1.5))
    x = grey + (x - grey) * saturation
    x = x * uniform((n, 3, 1, 1), 0.85, 1.15, dev)
    x = (x - 0.5) * col(0.6, 1.4) + 0.5 + col(-0.15, 0.15)
    return x.clamp(0, 1) * 255


def gaussian_blur(x, sigma):
    radius = max(1, int(2 * sigma + 0.5))
    t = torch.arange(-radius, radius + 1, device=x.device, dtype=x.dtype)
    k = torch.exp(-t * t / (2 * sigma * sigma))
    k = k / k.sum()
    c = x.shape[1]
    x = F.conv2d(F.pad(x, [radius] * 2 + [0, 0], mode="replicate"), k.view(1, 1, 1, -1).repeat(c, 1, 1, 1), groups=c)
    return F.conv2d(F.pad(x, [0, 0] + [radius] * 2, mode="replicate"), k.view(1, 1, -1, 1).repeat(c, 1, 1, 1), groups=c)


def dct_matrix(device):
    i = torch.arange(8, device=device, dtype=torch.float32)
    m = torch.cos((2 * i[None] + 1) * i[:, None] * math.pi / 16) * 0.5
    m[0] *= math.sqrt(0.5)
    return m


def compress(x, quality_step):
    """Quantise 8x8 cosine blocks with steps that grow with frequency, as JPEG and H.264 do."""
    n, c, h, w = x.shape
    d = dct_matrix(x.device)
    freq = torch.arange(8, device=x.device, dtype=torch.float32)
    q = (1 + freq[None] + freq[:, None]) * quality_step.view(n, 1, 1, 1, 1, 1)
    pad_h, pad_w = -h % 8, -w % 8
    y = F.pad(x, [0, pad_w, 0, pad_h], mode="replicate")
    y = y.reshape(n, c, (h + pad_h) // 8, 8, (w + pad_w) // 8, 8).permute(0, 1, 2, 4, 3, 5)
    y = d @ (y - 128) @ d.t()
    y = torch.round(y / q) * q
    y = d.t() @ y @ d + 128
    return y.permute(0, 1, 2, 4, 3, 5).reshape(n, c, h + pad_h, w + pad_w)[:, :, :h, :w].clamp(0, 255)


def degrade(x):
    """A fifth of the batch each gets one fault of cameras: blur, low resolution, compression, noise."""
    n = x.shape[0]
    order = torch.randperm(n, device=x.device)
    part = max(1, n // 5)
    x = x.clone()
    pick = lambda i: order[i * part:(i + 1) * part]
    if len(pick(0)):
        x[pick(0)] = gaussian_blur(x[pick(0)], float(uniform((), 0.5, 1.6, "cpu")))
    if len(pick(1)):
        y, s = x[pick(1)], float(uniform((), 0.4, 0.8, "cpu"))
        small = F.interpolate(y, scale_factor=s, mode="bilinear", align_corners=False)
        x[pick(1)] = F.interpolate(small, size=y.shape[2:], mode="bilinear", align_corners=False)
    if len(pick(2)):
        y = x[pick(2)]
        x[pick(2)] = compress(y, uniform((len(y),), 1.0, 8.0, x.device))
    if len(pick(3)):
        y = x[pick(3)]
        x[pick(3)] = (y + torch.randn_like(y) * uniform((len(y), 1, 1, 1), 1, 12, x.device)).clamp(0, 255)
    return x


def light_field(x, share=0.35):
    """Light that changes over the picture: a lamp at one side, its colour, dark corners, and deep dusk."""
    n, dev, side = len(x), x.device, x.shape[-1]
    at = torch.linspace(-1, 1, side, device=dev)
    col = lambda low, high: uniform((n, 1, 1, 1), low, high, dev)
    angle, power = col(0, 2 * math.pi), col(0, 0.7)
    slope = at[None, None, None] * angle.cos() + at[None, None, :, None] * angle.sin()
    lamp = 1 + power * slope * (1 + uniform((n, 3, 1, 1), -0.4, 0.4, dev))
    corners = 1 - col(0, 0.35) * (at[None, None, None] ** 2 + at[None, None, :, None] ** 2)
    dusk = torch.where(col(0, 1) < 0.2, col(0.25, 0.6), torch.ones(1, device=dev))
    lit = (x * lamp * corners * dusk).clamp(0, 255)
    noisy = (lit + torch.randn_like(x) * col(2, 14) * (dusk < 1)).clamp(0, 255)
    return torch.where(col(0, 1) < share, noisy, x)


def motion_blur(x, share=0.08):
    """Some pictures as a moving camera takes them: the mean along a short line, the same for all of them."""
    n = int((torch.rand(len(x)) < share).sum())
    if not n:
        return x
    rows = torch.randperm(len(x), device=x.device)[:n]
    length, angle = int(torch.randint(3, 12, ())), float(torch.rand(()) * math.pi)
    kernel = torch.zeros(15, 15)
    for t in torch.linspace(-length / 2, length / 2, 31).tolist():
        kernel[round(7 + t * math.sin(angle)), round(7 + t * math.cos(angle))] = 1
    kernel = (kernel / kernel.sum()).expand(x.shape[1], 1, 15, 15)
    kernel = kernel.contiguous().pin_memory().to(x.device, non_blocking=True) if x.is_cuda else kernel
    x = x.clone()
    x[rows] = F.conv2d(F.pad(x[rows], [7] * 4, mode="replicate"), kernel, groups=x.shape[1])
    return x
