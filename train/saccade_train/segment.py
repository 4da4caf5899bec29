# SPDX-License-Identifier: Apache-2.0
"""Train, score, show and export the segmenter, which gives a matte of people.

    python3 -m saccade_train.segment train  --data FOLDER --out runs/seg [--backbone weights/detectors.pt]
    python3 -m saccade_train.segment export --out runs/seg --model person_seg.onnx
    python3 -m saccade_train.segment score  --data FOLDER MODEL.onnx [...]
    python3 -m saccade_train.segment strip  --data FOLDER --model MODEL.onnx --out strip.png

FOLDER holds detect/annotations.json (COCO format) and segment/index.json with masks.
"""
import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw

from . import data, faults, losses, metrics, nets, scenes, training

SIZES = {
    "seg": dict(),
    "tiny": dict(widths=(8, 8, 16, 16, 16), depths=(1, 1, 1, 1), neck=(8, 8, 16, 16), refine=(1, 1, 1, 1)),
}


def is_dev(pictures):
    """The last tenth of each folder by name: held out of the training pictures when settings are chosen.
    By folder and in one block, since neighbours in a folder may be frames of one video."""
    folders = {}
    for p in pictures:
        folders.setdefault(p.path.parent, []).append(p)
    held = set()
    for members in folders.values():
        members.sort(key=lambda p: p.path.name)
        held.update(p.path for p in members[len(members) - len(members) // 10:])
    return [p.path in held for p in pictures]


def read_pictures(folder, split, category="person", drop_licenses=()):
    """Pictures of split train, val, dev (a tenth of train) or fit (the rest of it), with their masks."""
    folder = Path(folder)
    part = "train" if split in ("dev", "fit") else split
    pictures = data.read_coco(folder / "detect", part, category, drop_licenses)
    if not (folder / "segment" / "index.json").exists():
        raise SystemExit(f"{folder}: no segment/index.json in it, which names each picture's mask (train/README.md)")
    if not data.attach_masks(pictures, folder / "segment"):
        raise SystemExit(f"{folder}: none of its {len(pictures)} {part} pictures has a mask in segment/index.json")
    if split in ("dev", "fit"):
        pictures = [p for p, held in zip(pictures, is_dev(pictures)) if held == (split == "dev")]
    return pictures


class Lesson:
    """Loss of a network on one fresh batch.

    Where nothing is known (inside the boxes of pictures without masks) the averaged network is the teacher,
    on the picture before the faults were added. It counts by how sure it is, and its `background` counts
    only near people that it found, for each box holds one.
    """

    def __init__(self, args, scenes_, device):
        self.args, self.scenes, self.format = args, scenes_, training.memory_format(device)
        self.trainer = None  # gives the averaged network, and how much of the schedule is done

    def teach(self, clean, target, known):
        trainer = self.trainer
        if trainer is None or self.args.self_share <= 0 or trainer.done < self.args.self_after:
            return target, known
        with torch.no_grad():
            p = torch.sigmoid(trainer.average.model((clean / 255).contiguous(memory_format=self.format)).float())
            sure = ((2 * p - 1) ** 2) * ((p - 0.5).abs() > 0.3)
            columns = F.max_pool2d((p > 0.8).float(), (41, 1), 1, (20, 0))  # then rows: as one of 41x41
            near = F.max_pool2d(columns, (1, 41), 1, (0, 20))
            trust = self.args.self_share * torch.where(p > 0.5, sure, sure * near)
            return torch.where(known > 0, target, p), known + (1 - known) * trust

    def loss(self, model, n):
        with torch.autocast(self.scenes.device.type, enabled=False):
            clean, target, known, _, _ = self.scenes.batch(n)
            x = scenes.spoil(clean)
        target, weight = self.teach(clean, target, known)
        logit = model((x / 255).contiguous(memory_format=self.format))
        with torch.autocast(self.scenes.device.type, enabled=False):
            return losses.matte_loss(logit.float(), target, weight)


# ---- how good it is ----

def letterbox(picture, side):
    """PIL picture to [3,side,side] 0..255 RGB, top left, fill 114, by area when it shrinks (as the contract
    of the exported file says); and the size that it takes there."""
    scale = side / max(picture.size)
    w, h = (max(1, round(v * scale)) for v in picture.size)
    canvas = np.full((side, side, 3), 114, np.float32)
    small = picture.convert("RGB").resize((w, h), Image.BOX if scale < 1 else Image.BILINEAR)
    canvas[:h, :w] = np.asarray(small, np.float32)
    return canvas.transpose(2, 0, 1), (w, h)


def matte_of(infer, picture, side):
    """Matte [h,w] 0..1 of a PIL picture at its own size."""
    x, (w, h) = letterbox(picture, side)
    matte = Image.fromarray(np.ascontiguousarray(infer(x[None])[:h, :w], dtype=np.float32))
    return np.asarray(matte.resize(picture.size, Image.BILINEAR))


def net_infer(model, device):
    @torch.no_grad()
    def infer(x):
        return torch.sigmoid(model(torch.from_numpy(x).to(device) / 255).float())[0, 0].cpu().numpy()
    return infer


def onnx_infer(path):
    import onnxruntime
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    port = session.get_inputs()[0]
    if len(port.shape) != 4 or port.shape[2] != port.shape[3] or not isinstance(port.shape[2], int):
        raise SystemExit(f"{path}: its input is {port.shape}; [N,3,S,S] with a fixed S is expected")
    width = port.shape[3]
    return lambda x: session.run(None, {port.name: x / np.float32(255)})[0][0, 0], width


def saccade_infer(program, path):
    """As onnx_infer, computed by `saccade infer`: the figure is then one of this project's engine."""
    import onnx
    port = onnx.load(path).graph.input[0]
    width = port.type.tensor_type.shape.dim[3].dim_value

    def infer(x):
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/x.npy", x / np.float32(255))
            done = subprocess.run([program, "infer", path, "--quiet", "--input", f"{folder}/x.npy", "--output", folder],
                                  text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            if done.returncode:
                raise SystemExit(f"{program} infer {path}: {done.stderr.strip()}")
            return np.load(f"{folder}/matte.npy")[0, 0]
    return infer, width


class Scores:
    """Quality picture by picture. IoU and boundary F are means over pictures that show people; `pooled` is
    the IoU of all pixels of all pictures taken together; `false` is the share of the pixels of pictures of
    nobody that were marked."""
    columns = dict(iou="IoU", f="boundary F", pooled="IoU, pixels pooled", false="marked where nobody is")

    def __init__(self):
        self.rows, self.names = [], []

    def add(self, matte, mask, name=""):
        known, truth, pred = mask != 255, (mask > 0) & (mask < 255), matte > 0.5
        iou, f = metrics.matte_scores(pred, truth, known) if truth.any() else (np.nan, np.nan)
        both, either = (pred & truth & known).sum(), ((pred | truth) & known).sum()
        self.rows.append((iou, f, both, either, np.nan if truth.any() else (pred & known).sum() / max(1, known.sum())))
        self.names.append(name)

    def score(self, pick=None):
        rows = np.array(self.rows, np.float64)
        rows = rows if pick is None else rows[pick]
        mean = lambda v: float(np.mean(v[~np.isnan(v)])) * 100 if (~np.isnan(v)).any() else 0.0
        return dict(iou=mean(rows[:, 0]), f=mean(rows[:, 1]),
                    pooled=float(rows[:, 2].sum() / max(1, rows[:, 3].sum())) * 100, false=mean(rows[:, 4]))

    def interval(self, rounds=1000, seed=1):
        """95 % bootstrap interval over pictures."""
        rng = np.random.default_rng(seed)
        draws = [self.score(rng.integers(0, len(self.rows), len(self.rows))) for _ in range(rounds)]
        return {k: tuple(np.percentile([d[k] for d in draws], [2.5, 97.5])) for k in draws[0]}


def covered(picture):
    """The share of a picture that people take up, by its mask; unknown parts count as background."""
    mask = np.asarray(Image.open(picture.mask))
    return float(((mask > 0) & (mask < 255)).mean())


def score_pictures(infer, pictures, side):
    result = Scores()
    for p in pictures:
        if p.mask is not None:
            result.add(matte_of(infer, Image.open(p.path), side), np.asarray(Image.open(p.mask)), p.path.name)
    return result


def score_boxes(pictures):
    """What the true boxes, filled, would reach: a floor for a segmenter."""
    result = Scores()
    for p in pictures:
        if p.mask is None:
            continue
        mask = np.asarray(Image.open(p.mask))
        filled = np.zeros(mask.shape, np.float32)
        for x0, y0, x1, y1 in np.round(p.boxes).astype(int):
            filled[y0:y1, x0:x1] = 1
        result.add(filled, mask)
    return result


# ---- verbs ----

def load_backbone(model, path):
    """Weights of another network's backbone of the same shape, from a checkpoint of this package."""
    state = training.read_weights(path)["average"]
    mine = model.backbone.state_dict()
    for prefix in sorted({k[:k.index("backbone.")] for k in state if "backbone." in k}):
        theirs = {k: state.get(f"{prefix}backbone.{k}") for k in mine}
        if all(v is not None and v.shape == mine[k].shape for k, v in theirs.items()):
            model.backbone.load_state_dict({k: v.to(mine[k].dtype) for k, v in theirs.items()})
            print(f"backbone of {prefix.rstrip('.') or 'the network'} in {path}")
            return
    raise SystemExit(f"{path}: no backbone of widths {model.config['widths']}, depths {model.config['depths']} in it")


def train(args):
    if args.side % 32:
        raise SystemExit(f"--side {args.side}: it must be a multiple of 32")
    training.join_processes(args)
    training.seed_all(args.seed)
    device = torch.device(args.device)
    pictures = read_pictures(args.data, "fit" if args.dev else "train", args.category, args.drop_licenses)
    with training.first_rank_first():
        cache = data.Cache(pictures, args.canvas, args.cache, with_masks=True)
    batches = scenes.Scenes(cache, device, args.side, args.shares)
    if training.rank() == 0:
        print(f"{len(pictures)} pictures: " + ", ".join(f"{v} {k}" for k, v in batches.counts.items()))
    model = nets.PersonSeg(**SIZES[args.size])
    if args.backbone:
        load_backbone(model, args.backbone)
    lesson = Lesson(args, batches, device)
    trainer = lesson.trainer = training.Trainer(model, lesson.loss, args, args.out)
    held = read_pictures(args.data, "dev", args.category, args.drop_licenses) if args.dev else []

    def evaluate(model):
        return {k: round(v, 2) for k, v in score_pictures(net_infer(model, device), held, args.side).score().items()}

    if trainer.train(evaluate if held else None) and held and training.rank() == 0:
        values = evaluate(trainer.average.model)
        trainer.note(**{"eval_" + k: v for k, v in values.items()})
        print(values)


def score(args):
    pictures = read_pictures(args.data, args.split, args.category)
    if args.covered:
        pictures = [p for p in pictures if p.mask is not None and covered(p) >= args.covered]
    count = sum(p.mask is not None for p in pictures)
    if not count:
        raise SystemExit(f"{args.data}: no picture of {args.split} has a mask" +
                         (f" of people who cover {args.covered:.1%} of it" if args.covered else ""))
    shown = sum(p.mask is not None and covered(p) > 0 for p in pictures)
    print(f"{count} pictures of {args.split}, {shown} with people" +
          (f", who cover at least {args.covered:.1%} of each" if args.covered else ""))
    print(f"| model | {' | '.join(f'{v} (95 % interval)' for v in Scores.columns.values())} |")
    print("| --- " * (1 + len(Scores.columns)) + "|")
    results = [("true boxes, filled", score_boxes(pictures))]
    for path in args.models:
        infer, side = saccade_infer(args.program, path) if args.program else onnx_infer(path)
        results.append((Path(path).name, score_pictures(infer, pictures, side)))
    for name, result in results:
        value, span = result.score(), result.interval()
        cells = [f"{value[k]:.1f} ({span[k][0]:.1f} to {span[k][1]:.1f})" for k in Scores.columns]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def cut_out(picture, matte, colour=(40, 160, 90)):
    rgb = np.asarray(picture.convert("RGB"), np.float32)
    return Image.fromarray((rgb * matte[..., None] + np.array(colour) * (1 - matte[..., None])).astype(np.uint8))


def strip(args):
    """Pictures that show people at even steps of the sorted IoU: the worst is left, the best right."""
    infer, side = onnx_infer(args.model)
    pictures = [p for p in read_pictures(args.data, args.split, args.category) if p.mask is not None]
    result = score_pictures(infer, pictures, side)
    iou = np.array([row[0] for row in result.rows], np.float64)
    shown = np.flatnonzero(~np.isnan(iou))
    order = shown[np.argsort(iou[shown], kind="stable")]
    chosen = order[np.round(np.linspace(0, len(order) - 1, min(args.count, len(order)))).astype(int)]
    tile, head, gap = args.tile, 14, 4
    sheet = Image.new("RGB", (len(chosen) * (tile + gap) - gap, head + 4 * (tile + gap) - gap), "white")
    draw = ImageDraw.Draw(sheet)
    for column, i in enumerate(chosen):
        p, left = pictures[i], column * (tile + gap)
        picture = Image.open(p.path).convert("RGB")
        mask = np.asarray(Image.open(p.mask))
        matte = matte_of(infer, picture, side)
        truth = np.where(mask == 255, 128, np.where(mask > 0, 255, 0)).astype(np.uint8)
        draw.text((left + 2, 1), f"IoU {iou[i] * 100:.0f}  {p.name}", fill="black")
        rows = (picture, Image.fromarray(truth), Image.fromarray((matte * 255).astype(np.uint8)),
                cut_out(picture, matte))
        for row, im in enumerate(rows):
            im = im.convert("RGB")
            im.thumbnail((tile, tile))
            sheet.paste(im, (left + (tile - im.width) // 2, head + row * (tile + gap) + (tile - im.height) // 2))
    sheet.save(args.out)
    print(f"{args.out}: {len(chosen)} of {len(order)} pictures, from the worst IoU to the best")


def load_average(path):
    """The averaged network of a checkpoint, or of a file of weights, which may be in half precision."""
    if not Path(path).exists():
        raise SystemExit(f"{path}: no such file; 'train' leaves a checkpoint at the end of each slice")
    state = training.read_weights(path)
    if "refine" not in state["config"]:
        raise SystemExit(f"{path}: holds other networks: {state['config']}")
    model = nets.PersonSeg(**state["config"])
    model.load_state_dict(training.restored(state["average"]))
    return model, state.get("step")


def export(args):
    from .export import contract, store_half, to_onnx
    import onnx
    model, step = load_average(args.weights or Path(args.out) / "checkpoint.pt")
    entries = contract("matte", "rgb,letterbox=topleft,mean=0,scale=1/255,fill=114,filter=area", [args.category],
                       **({"steps": step} if step else {}))
    module = nets.ExportSeg(nets.fuse(model))
    onnx.save(store_half(to_onnx(module, (1, 3, args.side, args.side), "matte", entries)), args.model)
    print(f"{args.model}: {nets.count_parameters(model)} parameters, "
          f"{nets.count_flops(model, (1, 3, args.side, args.side)) / 1e9:.2f} GFLOP, "
          f"{Path(args.model).stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(prog="saccade_train.segment", description=__doc__.split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("train", "score", "strip", "export"):
        p = verbs.add_parser(verb)
        p.add_argument("--category", default="person", help="name of the one class")
        if verb != "export":
            p.add_argument("--data", required=True, help="folder with detect/ and segment/")
        if verb in ("train", "export"):
            p.add_argument("--side", type=int, default=320, help="of the square input; a multiple of 32")
        if verb in ("score", "strip"):
            p.add_argument("--split", choices=["val", "dev", "train"], default="val")
        if verb == "train":
            training.add_arguments(p, lr=2e-3, batch=128, steps=12000)
            p.add_argument("--size", choices=SIZES, default="seg")
            p.add_argument("--backbone", help="start from the backbone of these weights (a detector's)")
            p.add_argument("--drop-licenses", type=int, nargs="*", default=(), metavar="ID",
                           help="licence ids not to train on (5: share-alike)")
            p.add_argument("--dev", action="store_true",
                           help="hold a tenth of the training pictures out and score them")
            p.add_argument("--self-share", type=float, default=0.7,
                           help="weight of the averaged network's own word inside boxes without masks")
            p.add_argument("--self-after", type=float, default=0.25, help="it begins at this part of the steps")
            p.add_argument("--shares", type=float, nargs=3, default=[0.55, 0.25, 0.2],
                           metavar=("MASKS", "BOXES", "NOBODY"), help="of the three kinds of pictures")
            p.add_argument("--canvas", type=int, default=640, help="side of the cached pictures")
            p.add_argument("--cache", default="cache")
        elif verb == "score":
            p.add_argument("models", nargs="*")
            p.add_argument("--program", help="compute with this saccade, not with ONNX Runtime")
            p.add_argument("--covered", type=float, default=0, metavar="SHARE",
                           help="only pictures of which people cover at least this share")
        elif verb == "strip":
            p.add_argument("--model", required=True)
            p.add_argument("--out", required=True, help="a PNG file")
            p.add_argument("--count", type=int, default=8)
            p.add_argument("--tile", type=int, default=200)
        else:
            source = p.add_mutually_exclusive_group(required=True)
            source.add_argument("--out", help="folder of a training: its checkpoint")
            source.add_argument("--weights", help="a file of weights, as train/weights holds them")
            p.add_argument("--model", required=True)
    args = parser.parse_args()
    with faults.as_sentences():
        {"train": train, "score": score, "strip": strip, "export": export}[args.verb](args)


if __name__ == "__main__":
    main()
