# SPDX-License-Identifier: Apache-2.0
"""Train, score and export the person detector.

    python3 -m saccade_train.detect train  --data FOLDER --out runs/det [--teacher yolox_nano_416.onnx]
    python3 -m saccade_train.detect score  --data FOLDER MODEL.onnx [...]
    python3 -m saccade_train.detect export --out runs/det --model person_det.onnx
    python3 -m saccade_train.detect export --weights weights/detectors.pt --size det --model person_det.onnx
"""
import argparse
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from . import augment, data, faults, losses, metrics, nets, training

SIZES = {
    "det": dict(widths=(16, 32, 64, 128, 192), depths=(1, 2, 2, 1), neck=64, head=48),
    "fast": dict(widths=(16, 16, 48, 96, 128), depths=(1, 1, 2, 1), neck=32, head=32),
    "tiny": dict(widths=(8, 8, 16, 16, 16), depths=(1, 1, 1, 1), neck=16, head=16),
}


class Batches:
    """Makes augmented batches with the teacher's word on them, and the loss of a network on one."""

    def __init__(self, args, cache, device):
        self.args, self.device, self.format = args, device, training.memory_format(device)
        store = data.Store(cache, device)
        labels = augment.pad_labels(cache.boxes, cache.ignore, device)
        self.mosaic = augment.Mosaic(store, labels, args.width, args.height)
        self.teacher = None
        if args.teacher:
            from .teacher import YoloxTeacher
            self.teacher = YoloxTeacher(args.teacher, args.height, args.width).to(device).eval()
        self.feature_channels = self.teacher.read_features() if self.teacher and args.mimic else 0
        self.centres, self.sizes = nets.cell_grid(args.height, args.width, device=device)

    @torch.no_grad()
    def make(self, n):
        x, labels = self.mosaic.paste(*self.mosaic.batch(n))
        x = augment.degrade(augment.photometric(x))
        # the valid labels first, and no more columns than the fullest picture needs
        order = torch.argsort((labels[..., 4] == 0).int(), dim=1, stable=True)
        most = max(1, int((labels[..., 4] != 0).sum(1).max()))
        labels = labels.gather(1, order[..., None].expand(-1, -1, 5))[:, :most]
        soft = None
        if self.teacher:
            half = self.device.type == "cuda"
            with torch.autocast(self.device.type, torch.float16 if half else torch.bfloat16, enabled=half):
                soft = self.teacher(x.contiguous(memory_format=self.format))
        return x, labels, soft

    @staticmethod
    def person_maps(scores, features):
        """Weights for the teacher's maps: the places where it sees persons count five times."""
        shapes = [f.shape[2:] for f in features]
        parts = scores.split([h * w for h, w in shapes], 1)
        return [1 + 4 * F.max_pool2d(part.view(-1, 1, h, w), 3, 1, 1) for part, (h, w) in zip(parts, shapes)]

    def loss(self, model, n):
        with torch.autocast(self.device.type, enabled=False):
            x, labels, soft = self.make(n)
        answers = model((x / 255).contiguous(memory_format=self.format))
        total, parts = 0, {}
        with torch.autocast(self.device.type, enabled=False):
            for name, (raw, guesses) in answers.items():
                raw = raw.float()
                boxes = nets.decode_boxes(raw[..., :4], self.centres, self.sizes)
                loss, some = losses.detection_loss(raw[..., 4], boxes, labels, self.centres, self.sizes,
                                                   soft[:2] if soft else None, self.args.teacher_share)
                if guesses:
                    some["mimic"] = losses.mimic_loss(guesses, soft[2], self.person_maps(soft[0], soft[2]))
                    loss = loss + self.args.mimic * some["mimic"]
                total = total + loss
                parts.update({f"{name}_{k}": v for k, v in some.items()})
        return total, parts


def letterbox(picture, width, height):
    """PIL picture to [3,H,W] 0..255 RGB, top left, fill 114; and the scale."""
    from PIL import Image
    scale = min(width / picture.width, height / picture.height)
    w, h = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    canvas = np.full((height, width, 3), 114, np.float32)
    canvas[:h, :w] = np.asarray(picture.convert("RGB").resize((w, h), Image.BILINEAR), np.float32)
    return canvas.transpose(2, 0, 1), scale


def detections(boxes, scores, scale, least=0.001):
    keep = scores >= least
    boxes, scores = boxes[keep], scores[keep]
    kept = metrics.non_maximum_suppression(boxes, scores)
    return boxes[kept] / scale, scores[kept]


def score_pictures(infer, pictures, width, height):
    from PIL import Image
    result = metrics.Precision()
    for p in pictures:
        x, scale = letterbox(Image.open(p.path), width, height)
        boxes, scores = infer(x[None])
        boxes, scores = detections(boxes, scores, scale)
        result.add(boxes, scores, p.boxes, p.ignore)
    return result


def net_infer(model, device, height, width):
    centres, sizes = nets.cell_grid(height, width, device=device)

    @torch.no_grad()
    def infer(x):
        raw = model(torch.from_numpy(x).to(device) / 255).float()
        boxes = nets.decode_boxes(raw[..., :4], centres, sizes)
        return boxes[0].cpu().numpy(), torch.sigmoid(raw[0, :, 4]).cpu().numpy()
    return infer


def onnx_infer(path):
    """A detector file through ONNX Runtime: ours, or a YOLOX restricted to its first class."""
    import onnxruntime
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    port, shape = session.get_inputs()[0], session.get_outputs()[0].shape
    if len(port.shape) != 4 or not all(isinstance(v, int) for v in port.shape[2:]) or len(shape) != 3:
        raise SystemExit(f"{path}: input {port.shape}, output {shape}; this takes our own detectors and YOLOX networks "
                         "([N,3,H,W] with fixed H and W, [N,cells,numbers])")
    height, width = port.shape[2:]
    centres, sizes = (v.numpy() for v in nets.cell_grid(height, width))

    ours = "saccade.head" in session.get_modelmeta().custom_metadata_map

    def infer(x):
        out = session.run(None, {port.name: x / 255 if ours else x[:, ::-1].copy()})[0][0]
        if ours:
            centre, half, score = out[:, :2], out[:, 2:4] / 2, out[:, 4]
        else:
            centre, half = centres - sizes / 2 + out[:, :2] * sizes, np.exp(out[:, 2:4]) * sizes / 2
            score = out[:, 4] * out[:, 5]
        return np.concatenate([centre - half, centre + half], 1), score
    return infer, width, height


def check_arguments(args):
    unknown = [size for size in args.sizes.split(",") if size not in SIZES]
    if unknown:
        raise SystemExit(f"--sizes {unknown[0]}: no such size; have {', '.join(SIZES)}")
    for name in ("width", "height"):
        if getattr(args, name) % 32 or getattr(args, name) < 32:
            raise SystemExit(f"--{name} {getattr(args, name)}: it must be a multiple of 32")


def train(args):
    check_arguments(args)
    training.join_processes(args)
    training.seed_all(args.seed)
    device = torch.device(args.device)
    pictures = data.read_pictures(args.data, "train", args.category, args.drop_licenses)
    if args.masks and not data.attach_masks(pictures, args.masks):
        raise SystemExit(f"{args.masks}: no masks of the pictures in {args.data}")
    with training.first_rank_first():
        cache = data.Cache(pictures, args.side, args.cache, with_masks=bool(args.masks))
    batches = Batches(args, cache, device)
    model = nets.Siblings({size: SIZES[size] for size in args.sizes.split(",")}, batches.feature_channels)
    if training.rank() == 0:
        print(f"{len(pictures)} pictures, {sum(len(p.boxes) for p in pictures)} persons")
    trainer = training.Trainer(model, batches.loss, args, args.out)
    held = data.read_pictures(args.data, "val", args.category)

    def evaluate(model):
        return {f"{name}_{k}": round(v, 2) for name, net in model.nets.items() for k, v in score_pictures(
            net_infer(net, device, args.height, args.width), held, args.width, args.height).score().items()}

    trainer.train(evaluate if args.score else None)
    if args.score and training.rank() == 0:
        values = evaluate(trainer.average.model)
        trainer.note(**{"eval_" + k: v for k, v in values.items()})
        print(values)


def score(args):
    pictures = data.read_pictures(args.data, args.split, args.category)
    rows = []
    for path in args.models:
        infer, width, height = onnx_infer(path)
        result = score_pictures(infer, pictures, width, height)
        rows.append((path, result.score(), result.interval()))
    print("| model | AP50 (95 % interval) | AP (95 % interval) |\n| --- | --- | --- |")
    for path, value, span in rows:
        cells = [f"{value[k]:.1f} ({span[k][0]:.1f} to {span[k][1]:.1f})" for k in ("AP50", "AP")]
        print(f"| {Path(path).name} | {cells[0]} | {cells[1]} |")


def load_average(path, size):
    """The averaged network of a checkpoint, or of a file of weights, which may be in half precision."""
    state = training.read_weights(path)
    if size not in state["config"]:
        raise SystemExit(f"{path}: no network '{size}' in it; it has {', '.join(state['config'])}")
    model = nets.Siblings(state["config"])
    model.load_state_dict({k: v for k, v in training.restored(state["average"]).items()
                           if not k.startswith("mimic.")})
    return model.nets[size], state.get("step")


def export(args):
    from .export import contract, store_half, to_onnx
    import onnx
    model, step = load_average(args.weights or Path(args.out) / "checkpoint.pt", args.size)
    module = nets.ExportDet(nets.fuse(model), args.height, args.width)
    entries = contract("yolov8", "rgb,letterbox=topleft,mean=0,scale=1/255,fill=114", [args.category],
                       **({"steps": step} if step else {}))
    onnx.save(store_half(to_onnx(module, (1, 3, args.height, args.width), "detections", entries)), args.model)
    print(f"{args.model}: {Path(args.model).stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(prog="saccade_train.detect", description=__doc__.split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("train", "score", "export"):
        p = verbs.add_parser(verb)
        p.add_argument("--width", type=int, default=416)
        p.add_argument("--height", type=int, default=416)
        p.add_argument("--category", default="person", help="name of the one class")
        if verb != "export":
            p.add_argument("--data", required=True, help="folder in COCO's format (annotations.json) or MOTChallenge's")
        if verb == "train":
            training.add_arguments(p, lr=2e-3, batch=128, steps=20000)
            p.add_argument("--sizes", default="det", help=f"of {', '.join(SIZES)}; several with commas")
            p.add_argument("--masks", help="folder with index.json and masks of people, for copy-paste")
            p.add_argument("--teacher", help="a YOLOX network with the same input size")
            p.add_argument("--teacher-share", type=float, default=0.5, help="of a score's target, beside the labels")
            p.add_argument("--mimic", type=float, default=0.5, help="weight of the teacher's features; 0: none")
            p.add_argument("--drop-licenses", type=int, nargs="*", default=(), help="licence ids not to train on")
            p.add_argument("--side", type=int, default=640, help="of the cached canvases")
            p.add_argument("--cache", default="cache")
            p.add_argument("--score", action="store_true", help="score the val split at the end")
        elif verb == "score":
            p.add_argument("--split", default="val")
            p.add_argument("models", nargs="+")
        else:
            source = p.add_mutually_exclusive_group(required=True)
            source.add_argument("--out", help="folder of a training: its checkpoint")
            source.add_argument("--weights", help="a file of weights, as train/weights holds them")
            p.add_argument("--size", choices=SIZES, default="det")
            p.add_argument("--model", required=True)
    args = parser.parse_args()
    with faults.as_sentences():
        {"train": train, "score": score, "export": export}[args.verb](args)


if __name__ == "__main__":
    main()
