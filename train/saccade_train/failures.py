# SPDX-License-Identifier: Apache-2.0
"""Where a detector fails: the held-out pictures with the most errors on one sheet, for its card.

    python3 -m saccade_train.failures --data FOLDER --out failures.jpg MODEL.onnx

Green: found. Yellow: missed. Red: found where the labels have nobody. Prints who made each picture.
"""
import argparse
import json
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from . import data, detect, faults, metrics

FOUND, MISSED, FALSE = (60, 200, 80), (255, 210, 0), (235, 40, 40)


def sort_out(boxes, truth, ignore, overlap=0.5):
    """Which of the truth is found [n], and which boxes have no truth [m]; crowds excuse boxes."""
    found, spare = np.zeros(len(truth), bool), np.ones(len(boxes), bool)
    plain = np.zeros(len(truth), bool)
    for i, box in enumerate(boxes):
        iou = metrics.overlaps(box[None], truth, plain)[0] if len(truth) else np.zeros(0)
        iou = np.where(found, 0, iou)
        if len(iou) and iou.max() >= overlap:
            found[iou.argmax()], spare[i] = True, False
        elif len(ignore) and metrics.overlaps(box[None], ignore, np.ones(len(ignore), bool)).max() >= overlap:
            spare[i] = False
    return found, spare


def paint(picture, boxes, spare, truth, found):
    image = Image.open(picture.path).convert("RGB")
    draw, line = ImageDraw.Draw(image), max(2, max(image.size) // 200)
    groups = [(boxes[~spare], FOUND), (boxes[spare], FALSE), (truth[~found], MISSED)]
    for some, colour in groups:
        for box in some:
            draw.rectangle([float(v) for v in box], outline=colour, width=line)
    return image


def sheet(images, columns, cell):
    """Pictures side by side, each fitted into a cell (width, height)."""
    rows = -(-len(images) // columns)
    out = Image.new("RGB", (columns * cell[0], rows * cell[1]), (24, 24, 24))
    for i, image in enumerate(images):
        scale = min((cell[0] - 6) / image.width, (cell[1] - 6) / image.height)
        image = image.resize((round(image.width * scale), round(image.height * scale)), Image.LANCZOS)
        x, y = i % columns * cell[0], i // columns * cell[1]
        out.paste(image, (x + (cell[0] - image.width) // 2, y + (cell[1] - image.height) // 2))
    return out


def credits(folder, names):
    """One line a picture: whose it is, under which licence."""
    coco = json.loads((Path(folder) / "annotations.json").read_text())
    licences = {entry["id"]: entry for entry in coco.get("licenses", [])}
    images = {str(im["id"]): im for im in coco["images"]}
    lines = []
    for name in names:
        im = images[name]
        licence = licences.get(im.get("license"), {})
        where = im.get("photo_page") or im.get("flickr_url") or im["file_name"]
        lines.append(f"{Path(im['file_name']).name}: {where}, {licence.get('name', 'licence unknown')}")
    return lines


def failures(args):
    infer, width, height = detect.onnx_infer(args.model)
    cases = []
    for p in data.read_coco(args.data, args.split, args.category, args.drop_licenses):
        x, scale = detect.letterbox(Image.open(p.path), width, height)
        boxes, _ = detect.detections(*infer(x[None]), scale, args.score)
        found, spare = sort_out(boxes, p.boxes, p.ignore)
        cases.append((int((~found).sum() + spare.sum()), p, boxes, spare, found))
    cases.sort(key=lambda c: -c[0])
    shown = cases[:args.count]
    sheet([paint(p, boxes, spare, p.boxes, found) for _, p, boxes, spare, found in shown], 4, (400, 320)).save(
        args.out, quality=85)
    missed = sum(int((~c[4]).sum()) for c in cases)
    false = sum(int(c[3].sum()) for c in cases)
    people = sum(len(c[1].boxes) for c in cases)
    print(f"score {args.score}: {people - missed} of {people} persons found, {false} boxes without a person, "
          f"{sum(c[0] > 0 for c in cases)} of {len(cases)} pictures with an error")
    print("\n".join(credits(args.data, [c[1].name for c in shown])))


def main():
    parser = argparse.ArgumentParser(prog="saccade_train.failures", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder with annotations.json (COCO format)")
    parser.add_argument("--category", default="person")
    parser.add_argument("--split", default="val")
    parser.add_argument("--score", type=float, default=0.4, help="boxes from this score on count")
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--drop-licenses", type=int, nargs="*", default=(), help="licence ids not to show")
    parser.add_argument("--out", required=True)
    parser.add_argument("model")
    args = parser.parse_args()
    with faults.as_sentences():
        failures(args)



if __name__ == "__main__":
    main()
