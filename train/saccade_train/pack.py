# SPDX-License-Identifier: Apache-2.0
"""A smaller copy of a training folder, for a machine that is far away:

    python3 -m saccade_train.pack FOLDER OUT --side 512

Pictures and masks are reduced to `side` pixels at most, boxes with them; the layout stays the same.
"""
import argparse
import json
import shutil
from pathlib import Path

from PIL import Image

from . import faults


def reduce(source, target, side, mask):
    im = Image.open(source)
    scale = min(1.0, side / max(im.size))
    target.parent.mkdir(parents=True, exist_ok=True)
    if scale == 1.0 and mask:
        shutil.copyfile(source, target)
        return scale
    size = tuple(max(1, round(v * scale)) for v in im.size)
    if mask:
        im.resize(size, Image.NEAREST).save(target, optimize=True)
    else:
        im.convert("RGB").resize(size, Image.LANCZOS).save(target, quality=85)
    return scale


def pack(args):
    coco = json.loads((args.folder / "detect/annotations.json").read_text())
    scales = {}
    for im in coco["images"]:
        s = reduce(args.folder / "detect" / im["file_name"], args.out / "detect" / im["file_name"], args.side, False)
        scales[im["id"]] = s
        im["width"], im["height"] = round(im["width"] * s), round(im["height"] * s)
    for a in coco["annotations"]:
        a["bbox"] = [v * scales[a["image_id"]] for v in a["bbox"]]
        a.pop("segmentation", None)  # the masks have it
    (args.out / "detect/annotations.json").write_text(json.dumps(coco))
    index = json.loads((args.folder / "segment/index.json").read_text())
    for item in index["items"]:
        reduce(args.folder / "segment" / item["mask"], args.out / "segment" / item["mask"], args.side, True)
    shutil.copyfile(args.folder / "segment/index.json", args.out / "segment/index.json")
    shutil.copytree(args.folder / "reid", args.out / "reid", dirs_exist_ok=True)


def main():
    parser = argparse.ArgumentParser(prog="saccade_train.pack", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--side", type=int, default=512)
    args = parser.parse_args()
    with faults.as_sentences():
        pack(args)


if __name__ == "__main__":
    main()
