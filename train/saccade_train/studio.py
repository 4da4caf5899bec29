# SPDX-License-Identifier: Apache-2.0
"""Pictures with mattes for training, made by loader processes: a photograph under a random view, and over it people
cut out of other photographs and rendered ones (bodies.py), standing on its ground, in its light.

Picture number i of a seed is always the same, whichever process makes it and wherever a training resumes. All is
done in bytes with Pillow's antialiased scaling; what depends on no geometry (light, colour, faults of cameras)
follows on the device (`spoil`).

    python3 -m saccade_train.studio --data FOLDER SHEET.png     draws pictures beside their mattes
    python3 -m saccade_train.studio --data FOLDER --time        pictures a second on one core
"""
import argparse
import math
import time

import numpy as np
import torch
from PIL import Image, ImageFilter

from . import augment, bodies, data, faults, scenes

FILL = 114  # of the letterbox, as the models' contract says


def four(array):
    """[h,w,4] bytes as a picture whose planes Pillow scales one by one: of RGBA it would divide by alpha."""
    return Image.frombuffer("CMYK", array.shape[1::-1], np.ascontiguousarray(array), "raw", "CMYK", 0, 1)


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
    """People of the training pictures, one by one: drawings as bodies.Bank has them, and which edges of their
    picture cut them (left, top, right, bottom)."""

    def __init__(self, cache, least=56):
        self.rgba, self.cut = [], []
        for i, p in enumerate(cache.pictures):
            if p.mask is None:
                continue
            w, h = cache.size[i]
            rgb, mask = np.asarray(cache.rgb[i, :h, :w]), np.asarray(cache.mask[i, :h, :w])
            for k in np.unique(mask[(mask > 0) & (mask < 255)]):
                self.add(rgb, mask, k, least)

    def add(self, rgb, mask, k, least):
        x0, y0, x1, y1 = bodies.bounds((mask == k).astype(np.uint8), 0)
        h, w = mask.shape
        # hands and feet of somebody who is half hidden would float
        if y1 - y0 < least or (mask == k).sum() < 0.18 * (x1 - x0) * (y1 - y0):
            return
        cut = (x0 < 3, y0 < 3, x1 > w - 3, y1 > h - 3)
        x0, y0, x1, y1 = max(0, x0 - 4), max(0, y0 - 4), min(w, x1 + 4), min(h, y1 + 4)
        part = np.s_[y0:y1, x0:x1]
        self.rgba.append(soft_cut_out(rgb[part], mask[part] == k))
        self.cut.append(cut)

    def __len__(self):
        return len(self.rgba)


class Canvas:
    """A picture in the making: colours, matte, and what is known, at the size of the output."""

    def __init__(self, side):
        self.side = side
        self.rgb = np.full((side, side, 3), FILL, np.uint8)
        self.matte = np.zeros((side, side), np.uint8)
        self.unknown = np.zeros((side, side), np.uint8)

    def window(self, x, y, w, h):
        """The part of a w x h drawing at x, y that is inside: slices of canvas and drawing."""
        x0, y0, x1, y1 = max(0, x), max(0, y), min(self.side, x + w), min(self.side, y + h)
        if x1 <= x0 or y1 <= y0:
            return None
        return np.s_[y0:y1, x0:x1], np.s_[y0 - y:y1 - y, x0 - x:x1 - x]

    def lay(self, drawing, x, y, person=True):
        """Colour times alpha, alpha [h,w,4] bytes over the picture, top left at x, y."""
        spot = self.window(x, y, drawing.shape[1], drawing.shape[0])
        if spot is None:
            return
        here, there = spot
        rest = 255 - drawing[there][..., 3:].astype(np.uint16)
        over = lambda below, above: np.minimum((below * rest[..., :below.shape[-1]] + 127) // 255 + above, 255)
        self.rgb[here] = over(self.rgb[here], drawing[there][..., :3])
        above = drawing[there][..., 3:] if person else np.zeros_like(drawing[there][..., 3:])
        self.matte[here] = over(self.matte[here][..., None], above)[..., 0]
        self.unknown[here] = (self.unknown[here] * rest[..., 0] + 127) // 255

    def darken(self, cx, cy, rx, ry, most):
        """A soft shadow on the ground."""
        x0, y0 = int(cx - 2 * rx), int(cy - 2 * ry)
        spot = self.window(x0, y0, int(4 * rx) + 1, int(4 * ry) + 1)
        if spot is None or rx < 1 or ry < 0.5:
            return
        here, _ = spot
        ys, xs = np.mgrid[here]
        dark = most * np.exp(-((xs - cx) / rx) ** 2 - ((ys - cy) / ry) ** 2)
        self.rgb[here] = (self.rgb[here] * (1 - dark * (1 - self.matte[here] / 255.0))[..., None]).astype(np.uint8)


def between(rng, a, b):
    """Evenly between two numbers, in any order."""
    return a + (b - a) * rng.random()


def scaled(picture, box, size):
    """The box of a picture at another size, averaged where it shrinks."""
    shrinks = size[0] < box[2] - box[0]
    return picture.resize(size, Image.BOX if shrinks and size[0] * 3 < box[2] - box[0] else Image.BILINEAR, box=box)


class Studio(torch.utils.data.Dataset):
    """[side,side,5] bytes: red, green, blue, matte, known.

    cache: of training pictures with masks (data.Cache); bank: rendered people; shares as scenes.Scenes has them.
    rendered, pasted: how many pictures get rendered people, and cut-outs."""

    def __init__(self, cache, bank, side, seed, shares=(0.55, 0.25, 0.2), rendered=0.35, pasted=0.45, first=0,
                 count=1 << 40):
        if any(p.split != "train" for p in cache.pictures):
            raise ValueError("only training pictures belong here")
        cache.mask = scenes.paint_unknown(cache)
        self.cache, self.bank, self.side, self.seed = cache, bank, side, seed
        self.rendered, self.pasted, self.first, self.count = rendered, pasted, first, count
        self.cut_outs = CutOuts(cache)
        kind = np.array([2 if not len(p.boxes) and not len(p.ignore) else 0 if p.mask is not None else 1
                         for p in cache.pictures])
        self.groups = [np.flatnonzero(kind == k) for k in range(3)]
        there = np.array([s if len(g) else 0.0 for s, g in zip(shares, self.groups)])
        self.shares = there / there.sum()
        shown = (bank.box[:, 2] - bank.box[:, 0]) * (bank.box[:, 3] - bank.box[:, 1]) if bank is not None else []
        self.drawn = [i for i, a in enumerate(shown) if a > 24 * 24]

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        rng = np.random.default_rng([self.seed, self.first + index])
        canvas = Canvas(self.side)
        group = rng.choice(3, p=self.shares)
        ground = self.photograph(canvas, rng, rng.choice(self.groups[group]))
        empty = group == 2
        if len(self.cut_outs) and rng.random() < (0.75 if empty else self.pasted):
            for _ in range(1 + (rng.random() < 0.3)):
                self.paste(canvas, rng, ground)
        if self.drawn and rng.random() < (0.6 if empty else self.rendered):
            self.put_body(canvas, rng, ground)
        if rng.random() < 0.12:
            self.hide(canvas, rng)
        known = np.where(canvas.unknown > 4, 0, 255).astype(np.uint8)
        return torch.from_numpy(np.concatenate([canvas.rgb, canvas.matte[..., None], known[..., None]], 2))

    # ---- the photograph ----

    def photograph(self, canvas, rng, i):
        """A picture under a view; where feet may stand: (horizon, height of a person whose feet are at the lower
        edge), in pixels of the output."""
        side, (w, h) = self.side, self.cache.size[i]
        scale, x, y = self.view(rng, i)
        if not self.covers(w * scale, h * scale, x, y):
            self.backdrop(canvas, rng)
        x0, y0 = max(0.0, -x / scale), max(0.0, -y / scale)
        x1, y1 = min(w, (side - x) / scale), min(h, (side - y) / scale)
        if x1 - x0 < 4 or y1 - y0 < 4:
            return side * 0.35, side * 0.8
        box = (x0, y0, x1, y1)
        at = (max(0, round(x)), max(0, round(y)))
        size = tuple(min(side - a, max(1, round(v * scale))) for a, v in zip(at, (x1 - x0, y1 - y0)))
        flip = rng.random() < 0.5
        here = np.s_[at[1]:at[1] + size[1], at[0]:at[0] + size[0]]
        mask = np.asarray(self.cache.mask[i, :h, :w])
        planes = [np.asarray(scaled(Image.fromarray(self.cache.rgb[i, :h, :w]), box, size))]
        for flags in ((mask > 0) & (mask < 255), mask == 255):
            if flags.any():
                plane = np.asarray(scaled(Image.fromarray(flags.astype(np.uint8) * 255), box, size), np.float32)
                # an enlarged mask's edge is a ramp as wide as the scale
                planes.append(np.clip((plane - 127.5) * max(1.0, scale) + 127.5, 0, 255).astype(np.uint8))
            else:
                planes.append(np.zeros(size[::-1], np.uint8))
        turn = np.s_[:, ::-1] if flip else np.s_[:, :]
        canvas.rgb[here], canvas.matte[here], canvas.unknown[here] = (p[turn] for p in planes)
        if rng.random() < 0.35:
            self.tilt(canvas, math.radians(rng.uniform(-15, 15)))
        return self.ground(rng, i, scale, y)

    @staticmethod
    def tilt(canvas, angle):
        """Turned about its middle; what comes in from outside is mirrored, as the matte of it is."""
        side, edge = canvas.side, canvas.side // 6
        c, s = math.cos(angle), math.sin(angle)
        m = side / 2
        for name in ("rgb", "matte", "unknown"):
            a = getattr(canvas, name)
            a = np.pad(a, [(edge, edge), (edge, edge)] + [(0, 0)] * (a.ndim - 2), mode="symmetric")
            im = Image.fromarray(a)
            o = m + edge
            turned = im.transform((side, side), Image.AFFINE,
                                  (c, s, o - c * m - s * m, -s, c, o + s * m - c * m), resample=Image.BILINEAR)
            setattr(canvas, name, np.array(turned))

    def covers(self, w, h, x, y):
        return x <= 0 and y <= 0 and x + w >= self.side and y + h >= self.side

    def view(self, rng, i):
        """Scale and place of a picture: whole as the network will see it, at another scale, or around one person,
        from a passer-by to a head that fills the picture."""
        side, size = self.side, self.cache.size[i].astype(float)
        fit, kind = side / size.max(), rng.random()
        if kind < 0.3:
            return fit, 0.0, 0.0
        boxes = self.cache.boxes[i]
        if kind < 0.5 or not len(boxes):
            scale = fit * math.exp(rng.uniform(math.log(0.6), math.log(1.9)))
            spare = side - size * scale
            return (scale, *(spare * rng.random(2)))
        box = boxes[rng.integers(len(boxes))]
        tall = math.exp(rng.uniform(math.log(0.15 * side), math.log(1.8 * side)))
        scale = max(min(tall / max(8.0, box[3] - box[1]), 3.5), 0.4 * fit)
        aim = rng.uniform([0.1, 0.05], [0.9, 0.5 if tall > 0.9 * side else 0.9])
        spot = rng.uniform(0.15, 0.85, 2) * side
        x, y = spot - (box[:2] + (box[2:] - box[:2]) * aim) * scale
        # a picture that could fill the output does
        x, y = (min(0.0, max(v, side - s * scale)) if s * scale >= side else v for v, s in zip((x, y), size))
        return scale, x, y

    def ground(self, rng, i, scale, y):
        """From the tallest person who is there, else a camera at eye level. A person of height H with the feet at F
        and the horizon at h has H = k (F - h)."""
        side, boxes = self.side, self.cache.boxes[i]
        horizon = min(0.6 * side, y + self.cache.size[i][1] * scale * rng.uniform(0.25, 0.45))
        ratio = rng.uniform(0.85, 1.5)
        if len(boxes):
            box = boxes[np.argmax(boxes[:, 3] - boxes[:, 1])]
            feet, tall = box[3] * scale + y, (box[3] - box[1]) * scale
            if feet - horizon > 0.3 * tall:
                ratio = float(np.clip(tall / (feet - horizon), 0.7, 1.8))
        return horizon, max(0.1 * side, ratio * (side - horizon))

    def backdrop(self, canvas, rng):
        """What is around a picture that does not fill the output: another one of nobody, or grey."""
        if not len(self.groups[2]) or rng.random() < 0.55:
            return
        i = rng.choice(self.groups[2])
        w, h = self.cache.size[i]
        part = min(w, h) / rng.uniform(1.0, 1.5)
        x, y = rng.uniform(0, [w - part + 1e-6, h - part + 1e-6])
        canvas.rgb[:] = scaled(Image.fromarray(self.cache.rgb[i, :h, :w]), (x, y, x + part, y + part),
                               (self.side, self.side))

    # ---- people over it ----

    def lit(self, canvas, drawing, rng):
        """A drawing in some of the picture's light: brightness and cast of what is around, by parts."""
        part = rng.choice([0.0, 0.35, 0.6], p=[0.3, 0.4, 0.3])
        if not part:
            return drawing
        alpha = drawing[..., 3:].astype(np.float32)
        mean = drawing[..., :3].reshape(-1, 3).sum(0) / max(1.0, alpha.sum() / 255)
        around = canvas.rgb.reshape(-1, 3)[::97].mean(0)
        gain = np.clip((around + 20) / (mean + 20), 0.45, 1.8) ** part
        return np.concatenate([np.minimum(drawing[..., :3] * gain, alpha).astype(np.uint8), drawing[..., 3:]], 2)

    def paste(self, canvas, rng, ground):
        """Somebody cut out of another picture. Whom its edge cut is cut by this one's."""
        k = rng.integers(len(self.cut_outs))
        drawing, cut = self.cut_outs.rgba[k], self.cut_outs.cut[k]
        h, w = drawing.shape[:2]
        side = self.side
        flip = rng.random() < 0.5
        left, top, right, bottom = (cut[2], cut[1], cut[0], cut[3]) if flip else cut
        horizon, tallest = ground
        if top or bottom:
            tall = math.exp(rng.uniform(math.log(0.35), math.log(1.3))) * side
        else:
            feet = rng.uniform(max(horizon + 0.1 * side, 0.45 * side), 1.05 * side)
            tall = float(np.clip(tallest * (feet - horizon) / max(1.0, side - horizon), 0.12 * side, 1.4 * side))
            if rng.random() < 0.2:  # not all people stand on the ground of a picture
                tall, feet = rng.uniform(0.15, 1.2) * side, rng.uniform(0.4, 1.2) * side
        # enlarged much they are blurred, which nobody beside them is
        scale = min(tall / h, 2.2)
        size = max(2, round(w * scale)), max(2, round(h * scale))
        made = scaled(four(drawing[:, ::-1] if flip else drawing), (0, 0, w, h), size)
        if not any(cut) and rng.random() < 0.3:
            made = made.rotate(rng.uniform(-12, 12), Image.BILINEAR, expand=True)
        made = np.asarray(made)
        h, w = made.shape[:2]
        x = 0 if left else side - w if right else round(between(rng, -0.25 * w, side - 0.75 * w))
        y = 0 if top and not bottom else side - h if bottom else round(feet - h)
        if not any(cut) and rng.random() < 0.6:
            canvas.darken(x + w / 2, y + h - 3 * scale, 0.35 * w, max(1.5, 0.035 * h), rng.uniform(0.2, 0.6))
        canvas.lay(self.lit(canvas, made, rng), x, y)

    def put_body(self, canvas, rng, ground):
        """A rendered person: on the ground, or cut by the lower edge, or the wearer's own."""
        k = self.drawn[rng.integers(len(self.drawn))]
        kind = bodies.KINDS[self.bank.kind[k]]
        x0, y0, x1, y1 = (int(v) for v in self.bank.box[k])
        side, full = self.side, self.bank.rgba.shape[1]
        flip = rng.random() < 0.5
        horizon, tallest = ground
        if kind == "whole":
            feet = rng.uniform(max(horizon + 0.1 * side, 0.45 * side), 1.1 * side)
            tall = float(np.clip(tallest * (feet - horizon) / max(1.0, side - horizon), 0.12 * side, 1.3 * side))
            scale = tall / max(1, y1 - y0)
        elif kind == "own":
            # the whole frame of a headset, also where the picture is wider than the view
            x0, y0, x1, y1 = 0, 0, full, full
            scale = side / full * rng.uniform(1.0, 1.25)
        else:
            scale = side * rng.uniform(0.4, 1.15) / max(1, y1 - y0)
            y1 = full
        drawing = np.asarray(self.bank.rgba[k, y0:y1, x0:x1])
        size = max(2, round((x1 - x0) * scale)), max(2, round((y1 - y0) * scale))
        made = np.asarray(scaled(four(drawing[:, ::-1] if flip else drawing), (0, 0, x1 - x0, y1 - y0), size))
        w, h = size
        if kind == "whole":
            x, y = round(between(rng, -0.3 * w, side - 0.7 * w)), round(feet - h)
            if rng.random() < 0.7:
                away = (1 if flip else -1) * self.bank.light[k]
                canvas.darken(x + w / 2 + away * 0.25 * h, feet - 0.01 * h, 0.14 * h + 0.2 * w, 0.03 * h,
                              rng.uniform(0.25, 0.6))
        elif kind == "own":
            x, y = round((side - w) * rng.random()), side - h
        else:
            x, y = round(between(rng, -0.35 * w, side - 0.65 * w)), side - h
        # drawings are sharp, photographs are not
        if rng.random() < 0.6:
            made = np.asarray(four(made).filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 1.3))))
        canvas.lay(self.lit(canvas, made, rng), x, y)

    def hide(self, canvas, rng):
        """Something before the people: a piece of a picture of nobody, in a shape with a soft edge."""
        if not len(self.groups[2]):
            return
        i = rng.choice(self.groups[2])
        w, h = self.cache.size[i]
        side = self.side
        size = tuple(int(v) for v in rng.uniform(0.12, 0.5, 2) * side)
        piece = np.asarray(scaled(Image.fromarray(self.cache.rgb[i, :h, :w]), (0, 0, int(w), int(h)), size), np.float32)
        ys, xs = np.mgrid[-1:1:size[1] * 1j, -1:1:size[0] * 1j]
        power = rng.choice([2, 4, 12])
        wobble = 0.12 * np.sin(np.arctan2(ys, xs) * rng.integers(2, 6) + rng.uniform(0, 6))
        alpha = np.clip((0.9 + wobble - (np.abs(xs) ** power + np.abs(ys) ** power) ** (1 / power)) *
                        min(size) * rng.uniform(0.15, 0.5), 0, 1)[..., None]
        drawing = np.concatenate([piece * alpha, alpha * 255], 2).astype(np.uint8)
        canvas.lay(drawing, *(round(v) for v in rng.uniform(0, side - np.array(size))), person=False)


# ---- on the device ----

def split(batch, device):
    """Bytes of a loader as pictures 0..255, mattes 0..1 and known 0 or 1, [n,c,side,side]."""
    x = batch.to(device, non_blocking=True).permute(0, 3, 1, 2).float()
    return x[:, :3].contiguous(), x[:, 3:4] / 255, (x[:, 4:5] > 0).float()


def light_field(x, share=0.35):
    """Light that changes over the picture: a lamp at one side, its colour, dark corners, and deep dusk."""
    n, dev, side = len(x), x.device, x.shape[-1]
    at = torch.linspace(-1, 1, side, device=dev)
    col = lambda low, high: augment.uniform((n, 1, 1, 1), low, high, dev)
    angle, power = col(0, 2 * math.pi), col(0, 0.7)
    slope = at[None, None, None] * angle.cos() + at[None, None, :, None] * angle.sin()
    lamp = 1 + power * slope * (1 + augment.uniform((n, 3, 1, 1), -0.4, 0.4, dev))
    corners = 1 - col(0, 0.35) * (at[None, None, None] ** 2 + at[None, None, :, None] ** 2)
    dusk = torch.where(col(0, 1) < 0.2, col(0.25, 0.6), torch.ones(1, device=dev))
    lit = (x * lamp * corners * dusk).clamp(0, 255)
    noisy = (lit + torch.randn_like(x) * col(2, 14) * (dusk < 1)).clamp(0, 255)
    return torch.where(col(0, 1) < share, noisy, x)


def motion_blur(x, share=0.08):
    """Some pictures as a moving camera takes them: the mean along a short line."""
    rows = (torch.rand(len(x), device=x.device) < share).nonzero()[:, 0]
    if not len(rows):
        return x
    length, angle = int(torch.randint(3, 12, ()).item()), float(torch.rand(()) * math.pi)
    kernel = torch.zeros(15, 15)
    for t in np.linspace(-length / 2, length / 2, 31):
        kernel[round(7 + t * math.sin(angle)), round(7 + t * math.cos(angle))] = 1
    kernel = (kernel / kernel.sum()).to(x).expand(x.shape[1], 1, 15, 15)
    x = x.clone()
    padded = torch.nn.functional.pad(x[rows], [7] * 4, mode="replicate")
    x[rows] = torch.nn.functional.conv2d(padded, kernel, groups=x.shape[1])
    return x


@torch.no_grad()
def spoil(x):
    return augment.degrade(motion_blur(augment.photometric(light_field(x))))


def main():
    parser = argparse.ArgumentParser(prog="saccade_train.studio", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder with detect/ and segment/")
    parser.add_argument("sheet", nargs="?", help="a PNG file")
    parser.add_argument("--time", action="store_true", help="count pictures a second")
    parser.add_argument("--clean", action="store_true", help="without light and faults of cameras")
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--bodies", type=int, default=48, help="rendered people")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cache", default="cache")
    args = parser.parse_args()
    with faults.as_sentences():
        studio(args)


def studio(args):
    from . import render, segment
    torch.set_num_threads(1)
    cache = data.Cache(segment.read_pictures(args.data, "train"), 640, args.cache, with_masks=True)
    bank = bodies.Bank(args.cache, args.bodies, args.seed) if args.bodies else None
    made = Studio(cache, bank, args.side, args.seed)
    if args.time:
        start, count = time.process_time(), 200
        for i in range(count):
            made[i]
        print(f"{count / (time.process_time() - start):.1f} pictures/s on one core at {args.side}x{args.side}")
    if args.sheet:
        x, matte, known = split(torch.stack([made[i] for i in range(24)]), "cpu")
        torch.manual_seed(args.seed)
        x = x if args.clean else spoil(x)
        shown = torch.where(known > 0, matte, torch.full_like(matte, 0.5)).expand(-1, 3, -1, -1) * 255
        both = torch.stack([x, shown], 1).flatten(0, 1)
        small = torch.nn.functional.interpolate(both, size=(192, 192), mode="area")
        Image.fromarray(render.sheet(small, 8)).save(args.sheet)
        print(f"{args.sheet}: 24 pictures beside their mattes; grey is unknown")


if __name__ == "__main__":
    main()
