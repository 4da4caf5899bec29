# SPDX-License-Identifier: Apache-2.0
"""Batches for the segmenter, made on the device: a picture under a random view (scale, place, rotation,
mirrored), people cut out of other pictures over it, then the faults of cameras.

Three kinds of pictures take part: with masks of people; of nobody; and with boxes alone, where all
outside of the boxes is known to be background and the inside is unknown.
"""
import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from . import augment, data
from .augment import uniform


def paint_unknown(cache, margin=0.03):
    """Masks [n,S,S] of a cache: pictures with boxes alone get 255 inside of these, a little grown."""
    masks = np.array(cache.mask)
    for i, p in enumerate(cache.pictures):
        if p.mask is not None:
            continue
        w, h = cache.size[i]
        for x0, y0, x1, y1 in np.concatenate([cache.boxes[i], cache.ignore[i]]):
            grow = 2 + margin * max(x1 - x0, y1 - y0)
            xs = np.clip(np.round([x0 - grow, x1 + grow]), 0, w).astype(int)
            ys = np.clip(np.round([y0 - grow, y1 + grow]), 0, h).astype(int)
            masks[i, ys[0]:ys[1], xs[0]:xs[1]] = 255
    return masks


@dataclass
class View:
    """Where pictures land: the source point `source` [n,2] comes to `place` [n,2], enlarged by `scale` [n]
    and turned by `angle` [n] in radians; `flip` [n] mirrors left and right about `source`."""
    source: torch.Tensor
    place: torch.Tensor
    scale: torch.Tensor
    angle: torch.Tensor
    flip: torch.Tensor


def project(canvas, size, view, side, over=2):
    """Canvases [n,C,S,S] under a view, [n,C,side,side], and what of the output they cover [n,1,side,side].

    Each output pixel is the mean of over x over samples, so that masks get antialiased edges and
    reduced pictures do not alias.
    """
    n, _, length, _ = canvas.shape
    steps = (torch.arange(side * over, device=canvas.device) + 0.5) / over
    dx = (steps[None, None, :] - view.place[:, 0, None, None]) / view.scale[:, None, None]
    dy = (steps[None, :, None] - view.place[:, 1, None, None]) / view.scale[:, None, None]
    cos, sin = view.angle.cos()[:, None, None], view.angle.sin()[:, None, None]
    mirror = (1 - 2 * view.flip.float())[:, None, None]
    x = view.source[:, 0, None, None] + mirror * (cos * dx + sin * dy)
    y = view.source[:, 1, None, None] - sin * dx + cos * dy
    inside = (x >= 0) & (x < size[:, 0, None, None]) & (y >= 0) & (y < size[:, 1, None, None])
    grid = torch.stack([x, y], -1) / length * 2 - 1
    out = F.grid_sample(canvas, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return F.avg_pool2d(out, over), F.avg_pool2d(inside[:, None].float(), over)


def sharpen(mask, scale):
    """An enlarged mask's edge is a ramp as wide as the scale: make it one pixel wide again."""
    return ((mask - 0.5) * scale.clamp(min=1)[:, None, None, None] + 0.5).clamp(0, 1)


class Scenes:
    """Makes (pictures [n,3,side,side] 0..255, mattes [n,1,side,side], known [n,1,side,side])."""

    def __init__(self, cache, device, side, shares=(0.55, 0.25, 0.2), height=(40, 1.8), turn=15.0):
        """shares: of pictures with masks, with boxes alone, of nobody; height: of people, from pixels to
        multiples of side; turn: greatest angle in degrees."""
        cache.mask = paint_unknown(cache)
        self.store, self.side = data.Store(cache, device), side
        self.device = self.store.device
        self.labels = augment.pad_labels(cache.boxes, cache.ignore, device)
        self.height = [math.log(height[0]), math.log(height[1] * side)]
        self.turn = math.radians(turn)
        kind = [2 if not len(p.boxes) and not len(p.ignore) else 0 if p.mask is not None else 1
                for p in cache.pictures]
        counts = [kind.count(k) for k in range(3)]
        weights = [shares[k] / counts[k] for k in kind]
        self.weights = torch.tensor(weights, device=self.device)
        self.nobody = torch.tensor([i for i, k in enumerate(kind) if k == 2], device=self.device)
        self.counts = dict(zip(("masks", "boxes", "nobody"), counts))
        # pictures whose people can be cut out, and around all of them one box each
        self.cut_out = self.store.with_people
        big = torch.tensor(1e6, device=self.device)
        person = (self.labels[..., 4] > 0)[..., None]
        self.people_box = torch.cat([torch.where(person, self.labels[..., :2], big).amin(1),
                                     torch.where(person, self.labels[..., 2:4], -big).amax(1)], 1)

    def fetch(self, index):
        """Canvases [n,5,S,S]: red, green, blue, person, unknown."""
        mask = self.store.mask[index]
        planes = torch.stack([((mask > 0) & (mask < 255)).float(), (mask == 255).float()], 1)
        return torch.cat([self.store.fetch(index), planes], 1)

    def random(self, n, low=0.0, high=1.0):
        return uniform((n,), low, high, self.device)

    def chance(self, n, share):
        return torch.rand(n, device=self.device) < share

    def angles(self, n, share=0.5):
        return self.random(n, -self.turn, self.turn) * self.chance(n, share)

    def random_view(self, index):
        """A third as the network will see it (whole, top left), some at other scales, the rest around one
        person at a height between that of a passer-by and that of a head filling the picture."""
        n, size = len(index), self.store.size[index].float()
        fit = self.side / size.amax(1)
        kind = torch.rand(n, device=self.device)
        letterbox = kind < 0.3
        # whole pictures
        scale = torch.where(letterbox, fit, fit * torch.exp(self.random(n, math.log(0.55), math.log(1.7))))
        source = size / 2
        spare = self.side - size * scale[:, None]
        place = source * scale[:, None] + spare * torch.where(
            letterbox[:, None], torch.zeros_like(spare), torch.rand(n, 2, device=self.device))
        angle = torch.where(letterbox, torch.zeros_like(kind), self.angles(n))
        # around one person
        boxes = self.labels[index]
        score = (boxes[..., 4] > 0) * (torch.rand(boxes.shape[:2], device=self.device) + 1)
        best = score.argmax(1)
        box = boxes[torch.arange(n, device=self.device), best, :4]
        close = (kind > 0.5) & (score.amax(1) > 0)
        tall = torch.exp(self.random(n, *self.height))
        near = (tall / (box[:, 3] - box[:, 1]).clamp(min=8)).clamp(max=3.0)
        near = torch.maximum(near, 0.3 * fit)
        # what is taller than the picture shows its upper part more often: heads and shoulders
        low = torch.where(tall > 0.9 * self.side, 0.5, 0.9)
        aim = torch.stack([self.random(n, 0.1, 0.9), self.random(n, 0.05, 1.0) * low], 1)
        at = box[:, :2] + (box[:, 2:] - box[:, :2]) * aim
        spot = torch.rand(n, 2, device=self.device) * 0.7 * self.side + 0.15 * self.side
        return View(torch.where(close[:, None], at, source), torch.where(close[:, None], spot, place),
                    torch.where(close, near, scale), angle, self.chance(n, 0.5))

    def cover_view(self, index):
        """Fills the output with a picture."""
        n, size = len(index), self.store.size[index].float()
        scale = self.side / size.amin(1) * self.random(n, 1.0, 1.5)
        spare = self.side - size * scale[:, None]
        place = size / 2 * scale[:, None] + spare * torch.rand(n, 2, device=self.device)
        return View(size / 2, place, scale, torch.zeros(n, device=self.device), self.chance(n, 0.5))

    def paste_view(self, index):
        """People at a random height and place; whom the source's border cuts stays cut by the output's."""
        n, size = len(index), self.store.size[index].float()
        box = self.people_box[index]
        tall = torch.exp(self.random(n, *self.height))
        scale = (tall / (box[:, 3] - box[:, 1]).clamp(min=8)).clamp(max=3.0)
        flip = self.chance(n, 0.5)
        low_cut, high_cut = box[:, :2] < 3, box[:, 2:] > size - 3  # left and top; right and bottom
        swap = flip & (low_cut[:, 0] != high_cut[:, 0])
        low_cut[:, 0], high_cut[:, 0] = low_cut[:, 0] ^ swap, high_cut[:, 0] ^ swap
        both = low_cut & high_cut
        needed = torch.where(both, self.side / size, torch.zeros_like(size)).amax(1)
        scale = torch.maximum(scale, needed * 1.02)[:, None]
        # the source's centre lands at `place`; its low edge at place - half, its high edge at place + half
        half = size * scale / 2
        some = torch.rand(n, 2, device=self.device)
        slack = 0.15 * self.side * some
        offset = (box[:, :2] + box[:, 2:]) / 2 - size / 2
        offset[:, 0] = torch.where(flip, -offset[:, 0], offset[:, 0])
        free = (0.1 + 0.8 * some) * self.side - offset * scale  # the people's middle anywhere inside
        place = torch.where(low_cut, half - slack, free)
        place = torch.where(high_cut & ~low_cut, self.side - half + slack, place)
        place = torch.where(both, half - (2 * half - self.side).clamp(min=0) * some, place)
        cut = (low_cut | high_cut).any(1)
        angle = self.angles(n) * ~cut
        return View(size / 2, place, scale[:, 0], angle, flip)

    def backdrop(self, n):
        """What is around a picture that does not fill the output: another one of nobody, or grey."""
        grey = torch.full((n, 3, self.side, self.side), 114.0, device=self.device)
        rows = self.chance(n, 0.4).nonzero()[:, 0]
        if len(self.nobody) and len(rows):
            index = self.nobody[torch.randint(len(self.nobody), (len(rows),), device=self.device)]
            grey[rows] = project(self.store.fetch(index), self.store.size[index], self.cover_view(index),
                                 self.side)[0]
        return grey

    def paste(self, x, matte, unknown, share):
        """People of other pictures over `share` [n] of the pictures (copy-paste, Ghiasi et al., CVPR 2021)."""
        rows = (torch.rand(len(x), device=self.device) < share).nonzero()[:, 0]
        if not len(rows) or not len(self.cut_out):
            return
        index = self.cut_out[torch.randint(len(self.cut_out), (len(rows),), device=self.device)]
        view = self.paste_view(index)
        placed, inside = project(self.fetch(index), self.store.size[index], view, self.side)
        alpha = sharpen(placed[:, 3:4], view.scale) * inside
        other_light = self.chance(len(rows), 0.5)[:, None, None, None]
        person = torch.where(other_light, augment.photometric(placed[:, :3]), placed[:, :3])
        x[rows] = x[rows] * (1 - alpha) + person * alpha
        matte[rows] = matte[rows] * (1 - alpha) + alpha
        unknown[rows] = torch.maximum(unknown[rows] * (1 - alpha), placed[:, 4:5] * (alpha > 0))

    @torch.no_grad()
    def batch(self, n):
        """Clean pictures; `spoil` adds the faults."""
        index = torch.multinomial(self.weights, n, replacement=True)
        view = self.random_view(index)
        placed, inside = project(self.fetch(index), self.store.size[index], view, self.side)
        x = placed[:, :3] * inside + self.backdrop(n) * (1 - inside)
        matte, unknown = sharpen(placed[:, 3:4], view.scale) * inside, placed[:, 4:5] * inside
        empty = (self.labels[index][..., 4] == 0).all(1)
        for most in (1.0, 0.4):  # now and then a second one over the first
            self.paste(x, matte, unknown, most * torch.where(empty, 0.7, 0.3))
        return x, matte, (unknown < 0.02).float()

    @torch.no_grad()
    def spoil(self, x):
        return augment.degrade(augment.photometric(x))
