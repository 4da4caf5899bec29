# SPDX-License-Identifier: Apache-2.0
"""A smaller copy of a training folder, for a machine that is far away:

    python3 -m saccade_train.pack FOLDER OUT --side 512

Pictures and masks are reduced to `side` pixels at most, boxes with them; the layout stays the same. For the
matte networks, without what is held out and without ReID's crops, as one archive:

    python3 -m saccade_train.pack FOLDER OUT --side 480 --quality 80 --split train --tar mattes.tar
"""
import argparse
import json
import shutil
import tarfile
from pathlib import Path

from PIL import Image

from . import data, faults


def reduce(source, target, side, mask, quality=85):
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
        im.convert("RGB").resize(size, Image.LANCZOS).save(target, quality=quality)
    return scale


def pack(args):
    coco = json.loads((args.folder / "detect/annotations.json").read_text())
    index = json.loads((args.folder / "segment/index.json").read_text())
    if args.split:
        kept = {Path(p.path).name for p in data.read_coco(args.folder / "detect", args.split, args.category)}
        coco["images"] = [im for im in coco["images"] if Path(im["file_name"]).name in kept]
        ids = {im["id"] for im in coco["images"]}
        coco["annotations"] = [a for a in coco["annotations"] if a["image_id"] in ids]
        index["items"] = [item for item in index["items"] if Path(item["image"]).name in kept]
    scales = {}
    for im in coco["images"]:
        s = reduce(args.folder / "detect" / im["file_name"], args.out / "detect" / im["file_name"], args.side, False,
                   args.quality)
        scales[im["id"]] = s
        im["width"], im["height"] = round(im["width"] * s), round(im["height"] * s)
    for a in coco["annotations"]:
        a["bbox"] = [v * scales[a["image_id"]] for v in a["bbox"]]
        a.pop("segmentation", None)  # the masks have it
    (args.out / "detect/annotations.json").write_text(json.dumps(coco))
    for item in index["items"]:
        reduce(args.folder / "segment" / item["mask"], args.out / "segment" / item["mask"], args.side, True)
    (args.out / "segment/index.json").write_text(json.dumps(index))
    if not args.split:
        shutil.copytree(args.folder / "reid", args.out / "reid", dirs_exist_ok=True)
    if args.tar:
        with tarfile.open(args.tar, "w") as tar:
            for part in ("detect", "segment"):
                tar.add(args.out / part, part)
        print(f"{args.tar}: {len(coco['images'])} pictures, {len(index['items'])} masks, "
              f"{args.tar.stat().st_size / 1e6:.1f} MB")


def main():
    parser = argparse.ArgumentParser(prog="saccade_train.pack", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--quality", type=int, default=85, help="of the JPEG files")
    parser.add_argument("--split", choices=["train", "val"], help="pictures of one split, without reid/")
    parser.add_argument("--category", default="person", help="name of the one class")
    parser.add_argument("--tar", type=Path, help="all of it as an archive, too")
    args = parser.parse_args()
    with faults.as_sentences():
        pack(args)


if __name__ == "__main__":
    main()
