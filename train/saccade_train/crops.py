# SPDX-License-Identifier: Apache-2.0
"""Crops of persons for ReID: where they come from, and a memory-mapped cache of them.

Every person is kept on a canvas of 384x192 pixels on which the person's box, stretched to 256x128 as the
network sees it, lies in the middle: the margin is what a shifted or too big box would show. The fourth
channel is the person's mask, where a `segment` folder has one.
"""
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from . import data

BOX_HEIGHT, BOX_WIDTH = 256, 128
HEIGHT, WIDTH = 384, 192
MARGIN = 0.25  # of the box, on each side
SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".webp"}

LAYOUT = """folders that --data takes:
  DATA/detect/annotations.json, DATA/detect/images   COCO format: every person's box of at least --height-min
                                                     pixels becomes a crop with what is around it
  DATA/segment/index.json, DATA/segment/masks        masks of these pictures, to exchange backgrounds
  DATA/reid/multi/ID_ANYTHING.jpg                    several pictures of each identity
  DATA/reid/single/NAME.jpg                          one picture of each person; s<image id>-<n>.jpg is box n
                                                     of picture <image id> of `detect`
  DATA/ID_ANYTHING.jpg or DATA/ID/ANYTHING.jpg       a folder of crops only: pictures with the same number ID
                                                     show the same person; any other name is a person seen once
Any of the first four may be absent. Held out: split `val` of `detect`; identities 5 and 6 of `reid/multi`;
of a folder of crops only, every eighth identity.
"""


@dataclass
class Crop:
    path: Path
    box: tuple          # x0,y0,x1,y1 in pixels of the file; None: the whole picture
    identity: str
    split: str
    mask: Path = None   # indexed PNG of the file's persons


def every_eighth(identity):
    return "val" if int(hashlib.sha256(identity.encode()).hexdigest(), 16) % 8 == 0 else "train"


def identity_of(path, root):
    """`7_c1_3.jpg` and `7/3.jpg` show person 7; Market-1501's -1 and any other name are seen once."""
    found = re.match(r"(\d+)_", path.name)
    if found:
        return found.group(1).lstrip("0") or "0"
    if path.parent != root and path.parent.name.isdigit():
        return path.parent.name.lstrip("0") or "0"
    return str(path.relative_to(root))


def pictures_in(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES) if folder.is_dir() else []


def read_detect(root, height_min, drop_licenses):
    """Crops of the boxes, and the names that copies of them have in `reid/single`."""
    folder, crops, names = root / "detect", [], set()
    if not (folder / "annotations.json").exists():
        return crops, names
    pictures = data.read_coco(folder, drop_licenses=drop_licenses)  # first: it says what is wrong with a file
    coco = json.loads((folder / "annotations.json").read_text())
    person = {str(im["id"]): im.get("person") for im in coco["images"]}
    if (root / "segment/index.json").exists():
        data.attach_masks(pictures, root / "segment")
    for p in pictures:
        for i, box in enumerate(p.boxes):
            w, h = box[2:] - box[:2]
            # lying and half-hidden people wider than high are not what a tracker's box of a pedestrian shows
            if h < height_min or w > 1.1 * h or w < 0.15 * h:
                continue
            one = person.get(p.name)
            crops.append(Crop(p.path, tuple(map(float, box)), str(one) if one else f"{p.name}-{i}", p.split, p.mask))
            names.add(f"s{int(p.name):012d}-{i}")
    return crops, names


def read_single(root, known, drop_licenses):
    crops, license_of, split_of = [], {}, {}
    index = root / "detect/annotations.json"
    if index.exists():
        for im in json.loads(index.read_text())["images"]:
            license_of[int(im["id"])], split_of[int(im["id"])] = im.get("license"), im.get("split")
    for path in pictures_in(root / "reid/single"):
        found = re.match(r"s(\d+)-\d+$", path.stem)
        if path.stem in known:
            continue
        if drop_licenses and (not found or int(found.group(1)) not in license_of):
            raise SystemExit(f"{path}: its licence is unknown (detect/annotations.json has no such picture): "
                             "remove it or leave --drop-licenses out")
        number = int(found.group(1)) if found else None
        if license_of.get(number) in drop_licenses:
            continue
        split = split_of.get(number) or (every_eighth(path.stem) if number is None else
                                         "val" if number % 8 == 0 else "train")
        crops.append(Crop(path, None, path.stem, split))
    return crops


def read_crops(folder, split=None, height_min=48, drop_licenses=()):
    """All crops of a folder as LAYOUT describes."""
    root = Path(folder)
    if not root.is_dir():
        raise SystemExit(f"{folder}: no such folder")
    crops, names = read_detect(root, height_min, drop_licenses)
    crops += read_single(root, names, drop_licenses)
    for path in pictures_in(root / "reid/multi"):
        identity = identity_of(path, root / "reid/multi")
        crops.append(Crop(path, None, identity, "val" if identity in ("5", "6") else "train"))
    if not crops and not (root / "detect").is_dir() and not (root / "reid").is_dir():
        for path in pictures_in(root):
            identity = identity_of(path, root)
            crops.append(Crop(path, None, identity, every_eighth(identity)))
    if not crops:
        raise SystemExit(f"{folder}: no persons in it\n{LAYOUT}")
    return [c for c in crops if not split or c.split == split]


def cut(im, mask, box):
    """A canvas [HEIGHT,WIDTH,4], whether the mask is known, and how much of each margin is real (0..1)."""
    x0, y0, x1, y1 = box or (0, 0, im.width, im.height)
    mx, my = (x1 - x0) * MARGIN, (y1 - y0) * MARGIN
    want = (x0 - mx, y0 - my, x1 + mx, y1 + my)
    have = (max(0, want[0]), max(0, want[1]), min(im.width, want[2]), min(im.height, want[3]))
    room = [1 - abs(a - b) / m for a, b, m in zip(want, have, (mx, my, mx, my))]
    scale_x, scale_y = WIDTH / (want[2] - want[0]), HEIGHT / (want[3] - want[1])
    at = [round((have[0] - want[0]) * scale_x), round((have[1] - want[1]) * scale_y),
          round((have[2] - want[0]) * scale_x), round((have[3] - want[1]) * scale_y)]
    size = (max(1, at[2] - at[0]), max(1, at[3] - at[1]))
    pad = ((at[1], HEIGHT - at[1] - size[1]), (at[0], WIDTH - at[0] - size[0]))
    rgb = np.asarray(im.resize(size, Image.BILINEAR, box=have))
    canvas = np.zeros((HEIGHT, WIDTH, 4), np.uint8)
    canvas[..., :3] = np.pad(rgb, pad + ((0, 0),), mode="edge")
    known = False
    if mask is not None:
        inner = np.asarray(mask.crop(tuple(map(round, (x0, y0, x1, y1)))))
        count = np.bincount(inner.reshape(-1), minlength=256)
        who = int(count[1:255].argmax()) + 1
        known = bool(count[who] > 0.2 * inner.size)
        if known:
            alpha = Image.fromarray((np.asarray(mask) == who).astype(np.uint8) * 255)
            canvas[..., 3] = np.pad(np.asarray(alpha.resize(size, Image.BILINEAR, box=have)), pad)
    return canvas, known, room


class CropCache:
    """Canvases [n,HEIGHT,WIDTH,4] uint8 in one memory-mapped file; pictures are decoded once."""

    def __init__(self, crops, folder):
        self.crops, folder = crops, Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        key = hashlib.sha256(repr([(str(c.path), c.path.stat().st_size, c.box, str(c.mask), HEIGHT, MARGIN)
                                   for c in crops]).encode()).hexdigest()[:16]
        path, meta = folder / f"{key}.rgba", folder / f"{key}.npz"
        shape = (len(crops), HEIGHT, WIDTH, 4)
        if not meta.exists():
            self._build(path, meta, shape)
        self.rgba = np.memmap(path, np.uint8, "r", shape=shape)
        with np.load(meta) as m:
            self.known, self.room = m["known"], m["room"]
        names = sorted({c.identity for c in crops})
        number = {name: i for i, name in enumerate(names)}
        self.identity = np.array([number[c.identity] for c in crops], np.int64)

    def __len__(self):
        return len(self.crops)

    def _build(self, path, meta, shape):
        rgba = np.memmap(path, np.uint8, "w+", shape=shape)
        known, room = np.zeros(shape[0], bool), np.zeros((shape[0], 4), np.float32)
        opened, im, mask = None, None, None
        for i, c in enumerate(self.crops):
            if opened != c.path:
                opened, im = c.path, Image.open(c.path).convert("RGB")
                mask = Image.open(c.mask) if c.mask else None
            rgba[i], known[i], room[i] = cut(im, mask, c.box)
        rgba.flush()
        data.finish_cache(meta, known=known, room=room)


class CropStore:
    """The cache where batches are made: on the device when it fits, else read through."""

    def __init__(self, cache, device, share=0.25):
        self.cache, self.device = cache, torch.device(device)
        self.resident = data.resident(cache.rgba, self.device, share)
        self.known = torch.from_numpy(cache.known).to(self.device)
        self.room = torch.from_numpy(cache.room).to(self.device)
        self.identity = torch.from_numpy(cache.identity).to(self.device)
        # crops sorted by identity: person u has the crops order[start[u]:start[u] + count[u]]
        order = np.argsort(cache.identity, kind="stable")
        _, start, count = np.unique(cache.identity[order], return_index=True, return_counts=True)
        self.order, self.start, self.count = (torch.from_numpy(v.astype(np.int64)).to(self.device)
                                              for v in (order, start, count))
        self.roomy = torch.from_numpy(np.flatnonzero(cache.room[:, [0, 2]].max(1) > 0.9)).to(self.device)

    def fetch(self, index):
        """Canvases [n,4,HEIGHT,WIDTH], colour and mask 0..255 as float, for indices [n]."""
        if self.resident is not None:
            x = self.resident[index]
        else:
            x = torch.from_numpy(self.cache.rgba[index.cpu().numpy()]).to(self.device)
        return x.permute(0, 3, 1, 2).float()

    def pairs(self, n):
        """Two crops [n] each of n persons, different ones where a person has several, and who they are."""
        many = len(self.start)
        rounds = [torch.randperm(many, device=self.device) for _ in range(-(-n // many))]
        who = torch.cat(rounds)[:n]
        count = self.count[who]
        first = (torch.rand(n, device=self.device) * count).long()
        step = 1 + (torch.rand(n, device=self.device) * (count - 1)).long()
        second = (first + step) % count
        return self.order[self.start[who] + first], self.order[self.start[who] + second], who
