# SPDX-License-Identifier: Apache-2.0
"""Pictures with mattes for training, whole batches on the device: a photograph under a random view; over it people cut
out of other photographs and rendered ones (bodies.py), standing on its ground, in its light; now and then a thing
before them. Light, colour and the faults of cameras follow (`spoil`).

Three kinds of photographs take part: with masks of people; with boxes alone, where all outside of the boxes is known
to be background and the inside is unknown; and of nobody.

What to draw is decided on the host, in NumPy, for the whole batch at once; the device only draws. So nothing waits
for it, and a batch is the same on every device but for rounding. Both follow PyTorch's seed.

    python3 -m saccade_train.scenes --data FOLDER SHEET.png     draws pictures beside their mattes
    python3 -m saccade_train.scenes --data FOLDER --time        pictures a second
"""
import argparse
import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageFilter

from . import augment, bodies, complete, data, faults

FILL = 114     # of the letterbox, as the models' contract says
CHUNK = 32     # pictures that are drawn at once: 2 GB at 512x512
BOXES = 8      # of a picture that are kept to be taught by


# ---- what to draw ----

class View(NamedTuple):
    """Where drawings land, in arrays on the host: the source point sx, sy comes to px, py, enlarged by `scale` and
    turned by `angle` in radians; `flip` (0 or 1) mirrors left and right about the source point."""
    sx: np.ndarray
    sy: np.ndarray
    px: np.ndarray
    py: np.ndarray
    scale: np.ndarray
    angle: np.ndarray
    flip: np.ndarray

    def of(self, rows):
        return View(*(v[rows] for v in self))


@dataclass
class Placed:
    """Drawings `index` [m] over pictures `rows` [m]: `light`, how much of the picture's light they take (0..1);
    `blur`, a sigma in pixels; `shadow`: centre, radii, depth [m,5]."""
    rows: np.ndarray
    index: np.ndarray
    view: View
    light: np.ndarray
    blur: np.ndarray
    shadow: np.ndarray


def between(rng, low, high):
    """Evenly between numbers or arrays, in any order."""
    return low + (high - low) * rng.random(np.broadcast(low, high).shape)


def spread(rng, low, high, n):
    """Evenly on a scale of factors."""
    return np.exp(rng.uniform(math.log(low), math.log(high), n))


def pad_boxes(lists, most):
    out = np.zeros((len(lists), most, 4), np.float32)
    for i, boxes in enumerate(lists):
        out[i, :len(boxes)] = boxes[:most]
    return out


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


def soft_cut_out(rgb, person, width=1.0):
    """Colour times alpha, and alpha, [h,w,4] bytes, of a person with a polygon for a mask.

    The polygon's corners are rounded and its edge becomes soft. The colours beside the edge are those inside, carried
    outwards: what was behind the person would else be a halo on another background."""
    # half a pixel in: polygons of COCO stand out more often than they cut in
    smooth = Image.fromarray((person * 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(1.2 + width))
    alpha = np.clip((np.asarray(smooth, np.float32) / 255 - 0.55) * (1.6 + 1.4 / width) + 0.5, 0, 1)
    inner = alpha > 0.97
    if inner.sum() < 0.3 * person.sum():
        inner = person
    weight = Image.fromarray((inner * 255).astype(np.uint8)).filter(ImageFilter.BoxBlur(3))
    held = Image.fromarray((rgb * inner[..., None]).astype(np.uint8)).filter(ImageFilter.BoxBlur(3))
    w = np.asarray(weight, np.float32)[..., None] / 255
    carried = np.asarray(held, np.float32) / np.maximum(w, 1 / 255)
    colour = np.where(inner[..., None], rgb, np.where(w > 0.02, np.minimum(carried, 255), rgb))
    out = np.concatenate([colour * alpha[..., None], alpha[..., None] * 255], 2)
    return np.round(out).astype(np.uint8)


class CutOuts:
    """People of the training pictures, one by one: drawings [n,4,S,S] as bodies.Bank has them, top left, their size
    [n,2] (width, height), and which edges of their picture cut them (left, top, right, bottom)."""

    def __init__(self, cache, device, least=56, most=2000):
        wanted = [(i, k) for i in range(len(cache.pictures)) for k in np.unique(cache.mask[i])
                  if 0 < k < complete.UNCUT]
        if len(wanted) > most:
            wanted = [wanted[i] for i in np.random.default_rng(1).permutation(len(wanted))[:most]]
        with ThreadPoolExecutor(data.cores()) as pool:
            found = [f for f in pool.map(lambda one: self.cut_out(cache, *one, least), wanted) if f is not None]
        self.cut = np.array([cut for _, cut in found], bool).reshape(-1, 4)
        self.size = np.array([d.shape[1::-1] for d, _ in found], np.float64).reshape(-1, 2)
        planes = np.zeros((len(found), 4, cache.side, cache.side), np.uint8)
        for plane, (drawing, _) in zip(planes, found):
            plane[:, :drawing.shape[0], :drawing.shape[1]] = drawing.transpose(2, 0, 1)
        self.planes = torch.from_numpy(planes).to(device)

    @staticmethod
    def cut_out(cache, i, k, least):
        w, h = (int(v) for v in cache.size[i])
        mask = np.asarray(cache.mask[i, :h, :w]) == k
        x0, y0, x1, y1 = bodies.bounds(mask.astype(np.uint8), 0)
        # hands and feet of somebody who is half hidden would float
        if y1 - y0 < least or mask.sum() < 0.18 * (x1 - x0) * (y1 - y0):
            return None
        cut = (x0 < 3, y0 < 3, x1 > w - 3, y1 > h - 3)
        part = np.s_[max(0, y0 - 4):min(h, y1 + 4), max(0, x0 - 4):min(w, x1 + 4)]
        return soft_cut_out(np.asarray(cache.rgb[i, :h, :w])[part], mask[part]), cut

    def __len__(self):
        return len(self.cut)


# ---- drawing ----

def upload(device, *arrays):
    """Arrays [n] or [n,k] of the host as one float tensor [n,...] that the device copies when it comes to it."""
    columns = [np.asarray(a, np.float32).reshape(len(a), -1) for a in arrays]
    x = torch.from_numpy(np.concatenate(columns, 1))
    return x.pin_memory().to(device, non_blocking=True) if torch.device(device).type == "cuda" else x


def upload_rows(device, rows):
    return upload(device, rows)[:, 0].long()


def parcels(scale, length, most=CHUNK):
    """Rows [m] that are drawn at once, and the cells of the source that are averaged first: of what shrinks much,
    single pixels would be picked."""
    level = np.clip(np.floor(np.log2(1 / scale)), 0, 3).astype(int)
    while length % 2 ** int(level.max(initial=0)):
        level = np.minimum(level, level.max() - 1)
    for k in np.unique(level):
        rows = np.flatnonzero(level == k)
        for some in np.array_split(rows, -(-len(rows) // most)):
            yield some, 2 ** int(k)


def project(planes, size, view, side, cell=1, over=2):
    """Canvases [n,C,S,S] of pictures `size` [n,2] under a view, [n,C,side,side] float, and what of the output they
    cover [n,1,side,side].

    Each output pixel is the mean of over x over samples, so that masks get antialiased edges; all rows are first
    reduced by `cell`, as `parcels` says. What is beyond a picture's edge is as its edge."""
    length = planes.shape[-1]
    planes = F.avg_pool2d(planes.float(), cell) if cell > 1 else planes.float()
    v = upload(planes.device, *view, size)[:, :, None, None]
    sx, sy, px, py, scale, angle, flip, w, h = v.unbind(1)
    steps = (torch.arange(side * over, device=planes.device) + 0.5) / over
    dx, dy = (steps[None, None, :] - px) / scale, (steps[None, :, None] - py) / scale
    cos, sin = angle.cos(), angle.sin()
    x = sx + (1 - 2 * flip) * (cos * dx + sin * dy)
    y = sy - sin * dx + cos * dy
    inside = (x >= 0) & (x < w) & (y >= 0) & (y < h)
    last = lambda extent: (torch.floor(extent / cell) * cell - cell / 2).clamp(min=cell / 2)
    x = torch.minimum(x.clamp(min=cell / 2), last(w))
    y = torch.minimum(y.clamp(min=cell / 2), last(h))
    grid = torch.stack([x, y], -1) / length * 2 - 1
    out = F.grid_sample(planes, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return F.avg_pool2d(out, over), F.avg_pool2d(inside[:, None].float(), over)


def sharpen(mask, scale):
    """An enlarged mask's edge is a ramp as wide as the scale: make it one pixel wide again."""
    return ((mask - 0.5) * scale.clamp(min=1)[:, None, None, None] + 0.5).clamp(0, 1)


def soften(x, sigma):
    """Gaussian blur, a sigma [n] below 1.5 for each picture, by five shifted sums."""
    t = torch.arange(-2, 3, device=x.device)
    weight = torch.exp(-t * t / (2 * sigma[:, None].clamp(min=1e-2) ** 2))
    weight = (weight / weight.sum(1, keepdim=True))[:, :, None, None, None]
    h, w = x.shape[2:]
    y = F.pad(x, [2, 2, 0, 0], mode="replicate")
    y = sum(y[..., i:i + w] * weight[:, i] for i in range(5))
    y = F.pad(y, [0, 0, 2, 2], mode="replicate")
    return sum(y[..., i:i + h, :] * weight[:, i] for i in range(5))


def lit(drawing, picture, part):
    """Drawings in `part` [n] of the pictures' light: brightness and cast of what is around."""
    alpha = drawing[:, 3:]
    mean = drawing[:, :3].sum((2, 3)) / (alpha.sum((2, 3)) / 255).clamp(min=1)
    gain = ((picture.mean((2, 3)) + 20) / (mean + 20)).clamp(0.45, 1.8) ** part[:, None]
    return torch.minimum(drawing[:, :3] * gain[:, :, None, None], alpha)


def shade(side, shadow):
    """How much soft shadows [n,5] on the ground darken, [n,1,side,side]."""
    at = torch.arange(side, device=shadow.device) + 0.5
    cx, cy, rx, ry, most = shadow[:, :, None].unbind(1)
    across = torch.exp(-((at[None] - cx) / rx) ** 2)
    down = torch.exp(-((at[None] - cy) / ry) ** 2) * most
    return (down[:, :, None] * across[:, None])[:, None]


class Batch(NamedTuple):
    """picture [n,3,side,side] 0..255, matte [n,1,side,side] 0..1, known 0 or 1; weak: the rows (on the host) of
    pictures with boxes alone, and boxes [len(weak),BOXES,6] of theirs: x0,y0,x1,y1 in the output, and whether their
    columns and their rows are there in full (0: none)."""
    picture: torch.Tensor
    matte: torch.Tensor
    known: torch.Tensor
    weak: np.ndarray
    boxes: torch.Tensor


class Scenes:
    """Makes batches.

    cache: of training pictures with masks (data.Cache); shares: of pictures with masks, with boxes alone, of nobody;
    bank: rendered people (bodies.Bank), or None; pasted, rendered, hidden: how many pictures get cut-outs, rendered
    people, and a thing before them; net: the network that says what is in boxes without masks (complete.py), or None."""

    def __init__(self, cache, device, side, shares=(0.55, 0.25, 0.2), bank=None, pasted=0.45, rendered=0.35,
                 hidden=0.12, net=None):
        if any(p.split != "train" for p in cache.pictures):
            raise ValueError("only training pictures belong here")
        cache.mask = paint_unknown(cache)
        done = complete.complete(cache, net, side, device) if net else None
        self.store, self.side, self.bank = data.Store(cache, device), side, bank
        self.device = self.store.device
        self.pasted, self.rendered, self.hidden = pasted, rendered, hidden
        self.cut_outs = CutOuts(cache, self.device)
        self.size = cache.size.astype(np.float64)
        self.people = np.array([len(b) for b in cache.boxes])
        self.boxes = pad_boxes(cache.boxes, max(1, self.people.max()))
        kind = np.array([2 if not len(p.boxes) and not len(p.ignore) else 0 if p.mask is not None else 1
                         for p in cache.pictures])
        self.groups = [np.flatnonzero(kind == k) for k in range(3)]
        there = np.array([s if len(g) else 0.0 for s, g in zip(shares, self.groups)])
        self.shares = there / there.sum()
        self.counts = dict(zip(("masks", "boxes", "nobody"), (len(g) for g in self.groups)))
        if done:
            self.counts.update(boxes_filled=done[0], boxes_seen=done[1])

    # ---- decisions, on the host ----

    def photographs(self, rng, n, calm=False):
        """Numbers [n] of pictures, their kind, and their views: whole as the network will see it (of most, when
        `calm`), at another scale, or around one person, from a passer-by to a head that fills the picture."""
        side = self.side
        # as many of each kind in every batch: other numbers would be other shapes, and cuDNN tries each
        group = rng.permutation(np.repeat(np.arange(3), np.diff(np.round(np.cumsum([0, *self.shares]) * n).astype(int))))
        index, some = np.zeros(n, int), rng.random(n)
        for k, members in enumerate(self.groups):
            if len(members):
                index[group == k] = members[(some[group == k] * len(members)).astype(int)]
        size = self.size[index]
        fit, kind = side / size.max(1), rng.random(n)
        whole = kind < (0.55 if calm else 0.3)
        scale = np.where(whole, fit, fit * spread(rng, 0.6, 1.9, n))
        flip = rng.random(n) < 0.5
        source = size / 2
        corner = np.where(whole[:, None], 0.0, (side - size * scale[:, None]) * rng.random((n, 2)))
        # around one person
        near = ~whole & (kind > (0.7 if calm else 0.5)) & (self.people[index] > 0)
        box = self.boxes[index, (rng.random(n) * np.maximum(1, self.people[index])).astype(int)]
        tall = spread(rng, 0.15 * side, 2.5 * side, n)
        close = np.maximum(np.minimum(tall / np.maximum(8.0, box[:, 3] - box[:, 1]), 3.5), 0.4 * fit)
        # of what is taller than the picture mostly heads and shoulders, else a hand, a back, legs
        low = np.where((tall > 0.9 * side) & (rng.random(n) < 0.6), 0.5, 0.95)
        aim = np.stack([rng.uniform(0.1, 0.9, n), 0.05 + (low - 0.05) * rng.random(n)], 1)
        at = box[:, :2] + (box[:, 2:] - box[:, :2]) * aim
        spot = rng.uniform(0.15, 0.85, (n, 2)) * side
        scale = np.where(near, close, scale)
        source = np.where(near[:, None], at, source)
        before = np.stack([np.where(flip, size[:, 0] - source[:, 0], source[:, 0]), source[:, 1]], 1)
        corner = np.where(near[:, None], spot - before * scale[:, None], corner)
        # a picture that could fill the output does
        room = side - size * scale[:, None]
        corner = np.where(near[:, None] & (room <= 0), np.clip(corner, room, 0), corner)
        place = corner + before * scale[:, None]
        # boxes stay upright: what they teach is by rows and columns
        turned = (rng.random(n) < 0.35) & ~whole & (group != 1)
        angle = np.where(turned, np.radians(rng.uniform(-15, 15, n)), 0.0)
        return index, group, View(*source.T, *place.T, scale, angle, flip.astype(float)), corner

    def ground(self, rng, index, view, corner):
        """Where feet may stand: the horizon [n], and the height [n] of a person whose feet are at the lower edge.

        From the tallest person who is there, else a camera at eye level. A person of height H with the feet at F
        and the horizon at h has H = k (F - h)."""
        side, n = self.side, len(index)
        horizon = np.minimum(0.6 * side, corner[:, 1] + self.size[index, 1] * view.scale * rng.uniform(0.25, 0.45, n))
        ratio = rng.uniform(0.85, 1.5, n)
        heights = self.boxes[index][..., 3] - self.boxes[index][..., 1]
        box = self.boxes[index, heights.argmax(1)]
        feet, tall = box[:, 3] * view.scale + corner[:, 1], heights.max(1) * view.scale
        told = (tall > 0) & (feet - horizon > 0.3 * tall)
        ratio = np.where(told, np.clip(tall / np.where(told, feet - horizon, 1), 0.7, 1.8), ratio)
        return horizon, np.maximum(0.1 * side, ratio * (side - horizon))

    def standing(self, rng, ground, most):
        """Feet [m] somewhere on the ground, and how tall who stands there is."""
        side, (horizon, tallest) = self.side, ground
        feet = between(rng, np.maximum(horizon + 0.1 * side, 0.45 * side), most[0] * side)
        tall = tallest * (feet - horizon) / np.maximum(1.0, side - horizon)
        return feet, np.clip(tall, 0.12 * side, most[1] * side)

    def light_of(self, rng, m):
        return rng.choice([0.0, 0.35, 0.6], m, p=[0.3, 0.4, 0.3])

    def choose_cut_outs(self, rng, rows, ground):
        """Somebody cut out of another picture. Whom its edge cut is cut by this one's."""
        side, m = self.side, len(rows)
        index = rng.integers(len(self.cut_outs), size=m)
        w, h = self.cut_outs.size[index].T
        flip = rng.random(m) < 0.5
        left, top, right, bottom = self.cut_outs.cut[index].T
        left, right = np.where(flip, right, left), np.where(flip, left, right)
        cut = left | top | right | bottom
        feet, tall = self.standing(rng, ground, (1.05, 1.4))
        loose = rng.random(m) < 0.25  # not all people stand on the ground of a picture, and of some it shows a part
        tall = np.where(loose, spread(rng, 0.15, 2.2, m) * side, tall)
        feet = np.where(loose, 0.4 * side + np.maximum(0.8 * side, 0.9 * tall) * rng.random(m), feet)
        tall = np.where(top | bottom, spread(rng, 0.35, 1.3, m) * side, tall)
        # enlarged much they are blurred, which nobody beside them is; cut at both sides they reach both
        scale = np.minimum(tall / h, 2.2)
        scale = np.maximum(scale, np.maximum(np.where(left & right, side / w, 0), np.where(top & bottom, side / h, 0)))
        w, h = w * scale, h * scale
        angle = np.where(~cut & (rng.random(m) < 0.3), np.radians(rng.uniform(-12, 12, m)), 0.0)
        x = np.where(left, 0, np.where(right, side - w, between(rng, -0.25 * w, side - 0.75 * w)))
        y = np.where(bottom, side - h, np.where(top, 0, feet - h))
        dark = np.where(~cut & (rng.random(m) < 0.6), rng.uniform(0.2, 0.6, m), 0.0)
        shadow = np.stack([x + w / 2, y + h - 3 * scale, np.maximum(2, 0.35 * w), np.maximum(1.5, 0.035 * h), dark], 1)
        view = View(*(self.cut_outs.size[index].T / 2), x + w / 2, y + h / 2, scale, angle, flip.astype(float))
        return Placed(rows, index, view, self.light_of(rng, m), np.zeros(m), shadow)

    def choose_bodies(self, rng, rows, ground):
        """Rendered people: on the ground, or cut by the lower edge, or the wearer's own."""
        side, m, full = self.side, len(rows), self.bank.side
        index = rng.integers(len(self.bank), size=m)
        kind, box = self.bank.kind[index], self.bank.box[index].astype(np.float64)
        whole, own = (kind == bodies.KINDS.index(name) for name in ("whole", "own"))
        box[~whole, 3] = full
        box[own] = 0, 0, full, full
        w, h = (box[:, 2:] - box[:, :2]).clip(min=1).T
        flip = rng.random(m) < 0.5
        feet, tall = self.standing(rng, ground, (1.1, 1.3))
        # the wearer's own: the whole frame of a headset, also where the picture is wider than the view
        scale = np.where(whole, tall / h, np.where(own, side / full * rng.uniform(1.0, 1.25, m),
                                                   side * rng.uniform(0.4, 1.15, m) / h))
        scale = np.maximum(scale, 0.02)
        w, h = w * scale, h * scale
        x = np.where(whole, between(rng, -0.3 * w, side - 0.7 * w), between(rng, -0.35 * w, side - 0.65 * w))
        x = np.where(own, (side - w) * rng.random(m), x)
        y = np.where(whole, feet, side) - h
        away = np.where(flip, 1, -1) * self.bank.light[index]
        dark = np.where(whole & (rng.random(m) < 0.7), rng.uniform(0.25, 0.6, m), 0.0)
        shadow = np.stack([x + w / 2 + away * 0.25 * h, feet - 0.01 * h, np.maximum(2, 0.14 * h + 0.2 * w),
                           np.maximum(1.5, 0.03 * h), dark], 1)
        view = View(*((box[:, :2] + box[:, 2:]).T / 2), x + w / 2, y + h / 2, scale, np.zeros(m), flip.astype(float))
        # drawings are sharp, photographs are not
        blur = np.where(rng.random(m) < 0.6, rng.uniform(0.3, 1.3, m), 0.0)
        return Placed(rows, index, view, self.light_of(rng, m), blur, shadow)

    def boxes_shown(self, index, view, corner):
        """The boxes of upright pictures in the output, largest first, as Batch has them."""
        box, size, scale = self.boxes[index].astype(np.float64), self.size[index], view.scale[:, None]
        flip = view.flip[:, None] > 0
        x0 = np.where(flip, size[:, :1] - box[..., 2], box[..., 0]) * scale + corner[:, :1]
        x1 = np.where(flip, size[:, :1] - box[..., 0], box[..., 2]) * scale + corner[:, :1]
        y0, y1 = box[..., 1] * scale + corner[:, 1:], box[..., 3] * scale + corner[:, 1:]
        least = self.side / 16  # smaller ones are often hidden, or nothing but a blot
        shown = (box[..., 3] > box[..., 1]) & (np.minimum(x1 - x0, y1 - y0) > least / 2) & (y1 - y0 > least)
        within = lambda a, b: shown & (a > -2) & (b < self.side + 2)
        out = np.stack([x0, y0, x1, y1, within(y0, y1), within(x0, x1)], -1)
        order = np.argsort(-(x1 - x0) * (y1 - y0) * shown, 1, kind="stable")[:, :BOXES]
        out = np.take_along_axis(out, order[..., None], 1)
        return np.pad(out, [(0, 0), (0, BOXES - out.shape[1]), (0, 0)])

    # ---- drawing, on the device ----

    def fetch(self, index):
        """Canvases [n,5,S,S]: red, green, blue 0..255, person and unknown 0 or 1."""
        index = upload_rows(self.device, index)
        mask = self.store.mask[index]
        planes = torch.stack([((mask > 0) & (mask < 255)).float(), (mask == 255).float()], 1)
        return torch.cat([self.store.fetch(index), planes], 1)

    def covering(self, rng, rows):
        """Pictures of nobody that fill the output: (index, view), or None."""
        members, m = self.groups[2], len(rows)
        if not len(members) or not m:
            return None
        index = members[rng.integers(len(members), size=m)]
        size = self.size[index]
        scale = self.side / size.min(1) * rng.uniform(1.0, 1.5, m)
        place = size / 2 * scale[:, None] + (self.side - size * scale[:, None]) * rng.random((m, 2))
        return index, View(*(size.T / 2), *place.T, scale, np.zeros(m), (rng.random(m) < 0.5).astype(float))

    def drawn(self, index, view):
        """Pictures [n,5,side,side] under a view, and what they cover."""
        out = torch.empty(len(index), 5, self.side, self.side, device=self.device)
        inside = torch.empty(len(index), 1, self.side, self.side, device=self.device)
        for some, cell in parcels(view.scale, self.store.cache.side):
            rows = upload_rows(self.device, some)
            out[rows], inside[rows] = project(self.fetch(index[some]), self.size[index[some]], view.of(some), self.side,
                                              cell)
        return out, inside

    def photograph(self, rng, index, view, corner):
        """Canvas [n,5,side,side]: the pictures under their views; around them others of nobody, or grey."""
        canvas, inside = self.drawn(index, view)
        scale = upload(self.device, view.scale)[:, 0]
        canvas[:, 3:4] = sharpen(canvas[:, 3:4], scale)
        canvas[:, 3:] *= inside
        fills = (corner <= 0).all(1) & (corner + self.size[index] * view.scale[:, None] >= self.side).all(1)
        rows = np.flatnonzero((~fills | (view.angle != 0)) & (rng.random(len(index)) < 0.45))
        around = torch.full_like(canvas[:, :3], FILL)
        covering = self.covering(rng, rows)
        if covering:
            around[upload_rows(self.device, rows)] = self.drawn(*covering)[0][:, :3]
        canvas[:, :3] = canvas[:, :3] * inside + around * (1 - inside)
        return canvas

    def lay(self, canvas, drawings, size, placed):
        """Drawings [k,4,S,S], of `size` [k,2], over the pictures."""
        for some, cell in parcels(placed.view.scale, drawings.shape[-1]):
            rows = upload_rows(self.device, placed.rows[some])
            more = upload(self.device, placed.light[some], placed.blur[some], placed.shadow[some])
            drawing, inside = project(drawings[upload_rows(self.device, placed.index[some])], size[placed.index[some]],
                                      placed.view.of(some), self.side, cell)
            drawing = drawing * inside
            if placed.blur[some].any():
                drawing = soften(drawing, more[:, 1])
            below = canvas[rows]
            picture = below[:, :3] * (1 - shade(self.side, more[:, 2:]) * (1 - below[:, 3:4]))
            alpha = drawing[:, 3:] / 255
            colour = lit(drawing, picture, more[:, 0])
            canvas[rows] = torch.cat([picture * (1 - alpha) + colour, below[:, 3:4] * (1 - alpha) + alpha,
                                      below[:, 4:] * (1 - alpha)], 1)

    def hide(self, canvas, rng, rows):
        """Something before the people: a piece of a picture of nobody, in a shape with a soft edge."""
        covering = self.covering(rng, rows)
        if covering is None:
            return
        m, side = len(rows), self.side
        half = rng.uniform(0.06, 0.25, (m, 2)) * side
        centre = half + rng.random((m, 2)) * (side - 2 * half)
        shape = upload(self.device, half, centre, rng.choice([2, 4, 12], m), rng.integers(2, 6, m),
                       rng.uniform(0, 6, m), 2 * half.min(1) * rng.uniform(0.15, 0.5, m))[:, :, None, None]
        rx, ry, cx, cy, power, lobes, phase, slope = shape.unbind(1)
        at = torch.arange(side, device=self.device) + 0.5
        u, v = (at[None, None, :] - cx) / rx, (at[None, :, None] - cy) / ry
        wobble = 0.12 * torch.sin(torch.atan2(v, u) * lobes + phase)
        reach = (u.abs() ** power + v.abs() ** power).clamp(min=1e-9) ** (1 / power)
        alpha = ((0.9 + wobble - reach) * slope).clamp(0, 1)[:, None]
        where = upload_rows(self.device, rows)
        piece = self.drawn(*covering)[0]
        piece[:, 3:] = 0
        canvas[where] = canvas[where] * (1 - alpha) + piece * alpha

    @torch.no_grad()
    def batch(self, n, calm=False):
        """Clean pictures; `spoil` adds the faults. calm: fewer people are added, more pictures are whole."""
        rng = np.random.default_rng(int(torch.randint(1 << 62, ())))
        index, group, view, corner = self.photographs(rng, n, calm)
        ground = self.ground(rng, index, view, corner)
        canvas = self.photograph(rng, index, view, corner)
        share, empty = 0.4 if calm else 1.0, group == 2
        chosen = lambda often: np.flatnonzero(rng.random(n) < often)
        if len(self.cut_outs):
            first = chosen(share * np.where(empty, 0.75, self.pasted))
            for rows in (first, first[rng.random(len(first)) < 0.3]):
                if len(rows):
                    self.lay(canvas, self.cut_outs.planes, self.cut_outs.size,
                             self.choose_cut_outs(rng, rows, [g[rows] for g in ground]))
        if self.bank is not None:
            rows = chosen(share * np.where(empty, 0.6, self.rendered))
            if len(rows):
                size = np.full((len(self.bank), 2), float(self.bank.side))
                self.lay(canvas, self.bank.planes, size, self.choose_bodies(rng, rows, [g[rows] for g in ground]))
        # not before boxes: they say that somebody can be seen
        self.hide(canvas, rng, chosen(share * self.hidden * (group != 1)))
        weak = np.flatnonzero(group == 1)
        boxes = self.boxes_shown(index[weak], view.of(weak), corner[weak])
        boxes = upload(self.device, boxes.reshape(len(weak), -1)) if len(weak) else torch.zeros(0, device=self.device)
        return Batch(canvas[:, :3].clamp(0, 255), canvas[:, 3:4].clamp(0, 1), (canvas[:, 4:] < 0.02).float(), weak,
                     boxes.view(len(weak), BOXES, 6))


@torch.no_grad()
def spoil(x):
    return augment.degrade(augment.motion_blur(augment.photometric(augment.light_field(x))))


def main():
    parser = argparse.ArgumentParser(prog="saccade_train.scenes", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder with detect/ and segment/")
    parser.add_argument("sheet", nargs="?", help="a PNG file")
    parser.add_argument("--time", action="store_true", help="count pictures a second")
    parser.add_argument("--clean", action="store_true", help="without light and faults of cameras")
    parser.add_argument("--calm", action="store_true", help="as at the end of a training")
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--canvas", type=int, default=640, help="side of the cached pictures")
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--bodies", type=int, default=48, help="rendered people")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cache", default="cache")
    args = parser.parse_args()
    with faults.as_sentences():
        scenes(args)


def scenes(args):
    from . import render, segment
    cache = data.Cache(segment.read_pictures(args.data, "train"), args.canvas, args.cache, with_masks=True)
    bank = bodies.Bank(args.bodies, args.seed, args.device) if args.bodies else None
    made = Scenes(cache, args.device, args.side, bank=bank)
    torch.manual_seed(args.seed)
    if args.time:
        for rounds in (2, 8):  # the first ones find memory and kernels
            start = time.perf_counter()
            for _ in range(rounds):
                mean = spoil(made.batch(args.batch).picture).mean()
            mean.item()
        print(f"{rounds * args.batch / (time.perf_counter() - start):.1f} pictures/s at {args.side}x{args.side}")
    if args.sheet:
        x, matte, known, _, _ = made.batch(args.batch, args.calm)
        x = x if args.clean else spoil(x)
        shown = torch.where(known > 0, matte, torch.full_like(matte, 0.5)).expand(-1, 3, -1, -1) * 255
        both = torch.stack([x, shown], 1).flatten(0, 1)
        Image.fromarray(render.sheet(F.interpolate(both, size=(192, 192), mode="area"), 8)).save(args.sheet)
        print(f"{args.sheet}: {args.batch} pictures beside their mattes; grey is unknown")


if __name__ == "__main__":
    main()
