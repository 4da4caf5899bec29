# SPDX-License-Identifier: Apache-2.0
"""Pictures and labels: folders in COCO's or MOTChallenge's format, decoded once into a memory-mapped cache.

Each picture is stored on a square canvas of `side` pixels, top left, so that a batch is one indexed
read; what is larger is reduced, what is smaller keeps its size. Labels are scaled alike.
"""
import configparser
import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image


def cores():
    """Those that this process may use, which are not all of the machine's when it is shared."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class Picture:
    path: Path
    split: str
    boxes: np.ndarray    # [n,4] x0,y0,x1,y1 in pixels of the file
    ignore: np.ndarray   # [m,4] crowd regions: neither person nor background
    license: int = 0
    mask: Path = None    # indexed PNG: 0 background, 1..N person, 255 ignore
    name: str = ""


def read_coco(folder, split=None, category="person", drop_licenses=()):
    """Pictures of a COCO-format folder: `annotations.json` with file names relative to it.

    A picture's own `split` field decides where there is one; else every eighth picture by id is `val`.
    """
    try:
        pictures = coco_pictures(folder, split, category, drop_licenses)
    except (KeyError, TypeError, ValueError) as fault:
        raise SystemExit(f"{Path(folder) / 'annotations.json'}: not in COCO format: {fault}") from None
    if split == "train" and not pictures:
        raise SystemExit(f"{folder}: no pictures to train on: all are held out, left out or not there")
    return pictures


def coco_pictures(folder, split, category, drop_licenses):
    folder = Path(folder)
    index = folder / "annotations.json"
    try:
        coco = json.loads(index.read_text())
    except FileNotFoundError:
        raise SystemExit(f"{folder}: no annotations.json in it (COCO format), and no */gt/gt.txt (MOTChallenge's)")
    except ValueError as fault:
        raise SystemExit(f"{index}: not JSON: {fault}")
    lacking = [key for key in ("images", "annotations", "categories") if key not in coco]
    if lacking:
        raise SystemExit(f"{index}: not in COCO format: it has no '{lacking[0]}'")
    classes = {c["id"] for c in coco["categories"] if c["name"] == category}
    if not classes:
        have = ", ".join(c["name"] for c in coco["categories"][:8])
        raise SystemExit(f"{folder}: no category '{category}'; it has {have}")
    by_image = {}
    for a in coco["annotations"]:
        if a["category_id"] in classes:
            by_image.setdefault(a["image_id"], []).append(a)
    pictures = []
    for im in coco["images"]:
        part = im.get("split") or ("val" if int(im["id"]) % 8 == 0 else "train")
        if (split and part != split) or im.get("license") in drop_licenses:
            continue
        boxes, ignore = [], []
        for a in by_image.get(im["id"], []):
            x, y, w, h = a["bbox"]
            if w > 1 and h > 1:
                (ignore if a.get("iscrowd") else boxes).append([x, y, x + w, y + h])
        pictures.append(Picture(folder / im["file_name"], part, np.array(boxes, np.float32).reshape(-1, 4),
                                np.array(ignore, np.float32).reshape(-1, 4),
                                int(im.get("license", 0)), name=str(im["id"])))
    return pictures


# MOT16 and later: 1 is a walking person; people that a detector may find or not are neither person nor background
MOT_PERSON, MOT_UNSURE = 1, (2, 7, 8, 12)  # on a vehicle, standing still, distractor, reflection


def read_mot_rows(path):
    """frame, id, x, y, w, h, whether it counts, and from 2016 on class and visible share."""
    try:
        rows = np.loadtxt(path.read_text().splitlines() or ["0,0,0,0,0,0,0"], delimiter=",", ndmin=2)
    except ValueError as fault:
        raise SystemExit(f"{path}: {fault}") from None
    if rows.shape[1] < 7:
        raise SystemExit(f"{path}: {rows.shape[1]} columns; MOTChallenge's files have at least 7")
    return rows


def read_mot(folder, split=None, apart_s=0.2, visible_min=0.25):
    """Pictures of MOTChallenge sequences: FOLDER/*/gt/gt.txt with FOLDER/*/img1/000001.jpg and seqinfo.ini.

    Frames are taken at least apart_s seconds apart: between neighbours hardly anything changes. For the same
    reason whole sequences are held out (every eighth by name), or of a single one its last eighth.
    """
    sequences = sorted(p.parent.parent for p in Path(folder).glob("*/gt/gt.txt"))
    pictures = []
    for number, sequence in enumerate(sequences):
        ini = configparser.ConfigParser()
        ini.read(sequence / "seqinfo.ini")
        about = ini["Sequence"] if ini.has_section("Sequence") else {}
        step = max(1, round(float(about.get("frameRate", 25)) * apart_s))
        images, suffix = sequence / about.get("imDir", "img1"), about.get("imExt", ".jpg")
        rows = read_mot_rows(sequence / "gt/gt.txt")
        length = int(about.get("seqLength", rows[:, 0].max() if len(rows) else 0))
        for frame in range(1, length + 1, step):
            held = number % 8 == 0 if len(sequences) > 1 else frame > length * 7 / 8
            if split and held != (split == "val"):
                continue
            here = rows[rows[:, 0] == frame]
            corners = np.concatenate([here[:, 2:4], here[:, 2:4] + here[:, 4:6]], 1).astype(np.float32)
            kind = here[:, 7] if here.shape[1] > 7 else np.ones(len(here))
            kind = np.where(kind < 0, MOT_PERSON, kind)  # 2D MOT 2015: no classes, -1 in their place
            seen = here[:, 8] if here.shape[1] == 9 else np.ones(len(here))
            person = (kind == MOT_PERSON) & (here[:, 6] != 0) & (seen >= visible_min)
            unsure = ~person & np.isin(kind, (MOT_PERSON, *MOT_UNSURE))
            pictures.append(Picture(images / f"{frame:06d}{suffix}", "val" if held else "train", corners[person],
                                    corners[unsure], name=f"{sequence.name}-{frame}"))
    if split == "train" and not pictures:
        raise SystemExit(f"{folder}: no pictures to train on")
    return pictures


def read_pictures(folder, split=None, category="person", drop_licenses=()):
    """Pictures of a folder in either format."""
    folder = Path(folder)
    if not (folder / "annotations.json").exists() and any(folder.glob("*/gt/gt.txt")):
        if category != "person":
            raise SystemExit(f"{folder}: --category {category}: sequences in MOTChallenge's format have persons alone")
        return read_mot(folder, split)
    return read_coco(folder, split, category, drop_licenses)


def attach_masks(pictures, folder):
    """Give the pictures their masks of a `segment` folder; returns those that have one."""
    folder = Path(folder)
    index = folder / "index.json"
    try:
        masks = {Path(item["image"]).name: folder / item["mask"] for item in json.loads(index.read_text())["items"]}
    except (KeyError, TypeError, ValueError) as fault:
        raise SystemExit(f'{index}: not {{"items": [{{"image": ..., "mask": ...}}]}}: {fault}') from None
    for p in pictures:
        p.mask = masks.get(p.path.name)
    return [p for p in pictures if p.mask is not None]


class Cache:
    """Decoded pictures [n,side,side,3] uint8 in one memory-mapped file, with their sizes and labels."""

    def __init__(self, pictures, side, folder, with_masks=False):
        self.pictures, self.side = pictures, side
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        # the masks by their paths as well: the same pictures may come with others
        key = hashlib.sha256(repr([(p.path.name, p.path.stat().st_size, side, with_masks and str(p.mask))
                                   for p in pictures]).encode()).hexdigest()[:16]
        path, shape = folder / f"{key}.rgb", (len(pictures), side, side, 3)
        meta = folder / f"{key}.npz"
        if not meta.exists():
            self._build(path, meta, shape, with_masks)
        # "c": PyTorch wants arrays that may be written to; the file stays as it is
        self.rgb = np.memmap(path, np.uint8, "c", shape=shape)
        self.mask = (np.memmap(path.with_suffix(".mask"), np.uint8, "c", shape=shape[:3])
                     if with_masks else None)
        with np.load(meta) as m:
            self.size, self.scale = m["size"], m["scale"]  # size [n,2] is width, height on the canvas
        self.boxes = [p.boxes * s for p, s in zip(pictures, self.scale)]
        self.ignore = [p.ignore * s for p, s in zip(pictures, self.scale)]

    def __len__(self):
        return len(self.pictures)

    def _build(self, path, meta, shape, with_masks):
        rgb = np.memmap(path, np.uint8, "w+", shape=shape)
        mask = np.memmap(path.with_suffix(".mask"), np.uint8, "w+", shape=shape[:3]) if with_masks else None
        size, scale = np.zeros((shape[0], 2), np.int64), np.zeros(shape[0], np.float32)

        def read(i, p):
            im = Image.open(p.path).convert("RGB")
            scale[i] = min(1.0, self.side / max(im.size))
            w, h = (max(1, round(v * scale[i])) for v in im.size)
            rgb[i, :h, :w] = np.asarray(im.resize((w, h), Image.BILINEAR) if scale[i] < 1 else im)
            if with_masks and p.mask is not None:
                m = Image.open(p.mask)
                mask[i, :h, :w] = np.asarray(m.resize((w, h), Image.NEAREST))
            size[i] = w, h

        with ThreadPoolExecutor(cores()) as pool:  # decoders leave Python's lock
            for _ in pool.map(read, range(len(self.pictures)), self.pictures):
                pass
        rgb.flush()
        finish_cache(meta, size=size, scale=scale)


def finish_cache(meta, **arrays):
    """The file that says the cache is whole, so written last and at once: without it all is built again."""
    part = meta.with_suffix(".part.npz")
    np.savez(part, **arrays)
    part.replace(meta)


def resident(array, device, share):
    """A cache's array on the GPU when it takes less than `share` of what is free there, else None."""
    if device.type != "cuda":
        return None
    free, _ = torch.cuda.mem_get_info(device)
    return torch.from_numpy(np.ascontiguousarray(array)).to(device) if array.nbytes < free * share else None


class Store:
    """The cache where batches are made: on the device when it fits, else read through."""

    def __init__(self, cache, device, share=0.25):
        self.cache, self.device = cache, torch.device(device)
        self.resident = resident(cache.rgb, self.device, share)
        self.size = torch.from_numpy(cache.size).to(self.device)
        self.mask, self.with_people = None, None
        if cache.mask is not None:
            self.mask = torch.from_numpy(np.ascontiguousarray(cache.mask)).to(self.device)
            some = [i for i, p in enumerate(cache.pictures) if p.mask is not None and len(p.boxes)]
            self.with_people = torch.tensor(some, device=self.device)

    def fetch(self, index):
        """Canvases [n,3,side,side] float 0..255 for indices [n]."""
        if self.resident is not None:
            x = self.resident[index.to(self.device)]
        else:
            host = torch.from_numpy(self.cache.rgb[np.sort(index.cpu().numpy())])
            order = torch.argsort(torch.argsort(index.cpu()))
            if self.device.type == "cuda":
                host = host.pin_memory()
            x = host.to(self.device, non_blocking=True)[order.to(self.device)]
        return x.permute(0, 3, 1, 2).float()

    def people(self, index):
        """Person masks [n,1,side,side] of 0 and 1; what is to be ignored counts as background."""
        m = self.mask[index.to(self.device)]
        return ((m > 0) & (m < 255)).float()[:, None]
