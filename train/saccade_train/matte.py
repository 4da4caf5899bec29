# SPDX-License-Identifier: Apache-2.0
"""Train person_matte, the large matte network, and the small one beside it, which learns from the large one too.

    python3 -m saccade_train.matte train  --data FOLDER --out runs/matte --minutes 12 --json
    python3 -m saccade_train.matte export --out runs/matte
    python3 -m saccade_train.matte mix    --out mixed.onnx A.onnx B.onnx

`train` stops by itself after --minutes, its preparations and exports included, and leaves person_matte.onnx and
person_seg.onnx in --out; cut off, the same command with --resume goes on with what is left of them. Where one
command may not run so long, --pause ends each slice. FOLDER is what the segmenter takes (segment.py), whole or
packed (pack.py). Pictures come from scenes.py.
"""
import argparse
import copy
import os
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from . import bodies, data, detect, faults, losses, nets, scenes, segment, training, unfold

WEIGHTS = Path(__file__).parent.parent / "weights/segmenter.pt"
SIZES = {
    "full": dict(
        large=dict(widths=(32, 64, 128, 256, 416), depths=(1, 2, 3, 2), neck=(32, 64, 128, 192), refine=(2, 2, 3, 2)),
        small=segment.SIZES["seg"]),
    "tiny": dict(
        large=dict(widths=(12, 12, 24, 24, 24), depths=(1, 1, 1, 1), neck=(12, 12, 24, 24), refine=(1, 1, 1, 1)),
        small=segment.SIZES["tiny"]),
}
NAMES = dict(large="person_matte", small="person_seg")
EXPORT_S = 25  # both files; 6 s on two cores of an EPYC, and the GPU's host may be busy


class Pair(nn.Module):
    """Both networks as one that is trained, averaged and kept together.

    sides: a layer for each coarser map of the large decoder that guesses the matte there: deep supervision (Lee et
    al., AISTATS 2015), which places whole bodies early; for training alone. So are those of mimic, which guess the
    `mimic` channels (0: none) of a detector's features at strides 8, 16 and 32 (see nets.Siblings).
    """

    def __init__(self, large, small, small_side, mimic=0):
        super().__init__()
        self.large, self.small = nets.PersonSeg(**large), nets.PersonSeg(**small)
        self.config = dict(large=self.large.config, small=self.small.config)
        self.small_side = small_side
        neck = self.large.config["neck"]
        self.sides = nn.ModuleList(nn.Conv2d(c, 1, 1) for c in neck[:0:-1])
        self.mimic = nn.ModuleList(nn.Conv2d(c, mimic, 1) for c in (neck[2], neck[3], neck[3]) if mimic)

    def forward(self, x):
        """Logits of the large network, of its sides, of the small network at its own size; guessed features."""
        maps = self.large.decode(x)
        return (self.large.answer(maps[-1]), [side(y) for side, y in zip(self.sides, maps[1:])],
                self.small(shrunk(x, self.small_side)), [layer(y) for layer, y in zip(self.mimic, maps[2::-1])])


def shrunk(x, side):
    return x if x.shape[-1] == side else F.interpolate(x, size=(side, side), mode="bilinear", antialias=True,
                                                       align_corners=False)


def plain(x):
    """Maps of one channel with the strides of planes. From layers that keep channels last they come with others,
    which mean the same, but pooling takes them at their word: a thread block for each pixel's one channel."""
    return x.float().flatten().view(x.shape)


def around(mask, reach=32, cell=8):
    """1 within about `reach` pixels of the mask: widened in cells, for a window of 65 x 65 at each pixel costs more
    than both networks."""
    cells = F.max_pool2d(mask.float(), cell)
    return F.interpolate(F.max_pool2d(cells, 2 * reach // cell + 1, 1, reach // cell), scale_factor=cell)


class Teacher:
    """The averaged large network, fused, as it was a few steps ago: it sees the picture before the faults were
    added."""

    def __init__(self, trainer, every=50):
        self.trainer, self.every = trainer, every
        self.net, self.step = None, -1

    @torch.no_grad()
    def __call__(self, clean, weak):
        """Mattes [n,1,h,w]; of rows `weak`, for which there is no other word, also mirrored."""
        if self.net is None or self.trainer.step - self.step >= self.every:
            self.net, self.step = nets.fuse(copy.deepcopy(self.trainer.average.model.large)), self.trainer.step
        view = (clean / 255).contiguous(memory_format=training.memory_format(clean.device))
        soft = plain(torch.sigmoid(self.net(view).float()))
        if len(weak):
            rows = scenes.upload_rows(clean.device, weak)
            soft[rows] = (soft[rows] + plain(torch.sigmoid(self.net(view[rows].flip(3)).float())).flip(3)) / 2
        return soft


class Lesson:
    """Loss of both networks on one fresh batch.

    Inside boxes without masks the Teacher teaches both, as in segment.Lesson, from --self-after on; everywhere it is
    half of what the small one learns. Over the last --calm of the schedule the pictures are more like those that
    will be met: fewer people added, more of them whole, --clean of them without faults.

    detector: of many more pictures than there are masks (teacher.YoloxTeacher). Its features, which tell a rider
    from the horse, are learnt too: --mimic is their weight, less and less until the end, where mattes alone count."""

    def __init__(self, args, scenes_, detector=None):
        self.args, self.scenes, self.detector = args, scenes_, detector
        self.trainer = self.teacher = None

    def loss(self, model, n):
        device = self.scenes.device
        with torch.autocast(device.type, enabled=False):
            batch, x = self.draw(n, self.trainer.done > 1 - self.args.calm)
        soft = self.teacher(batch.picture, batch.weak)
        label, weight = self.teach(soft, batch.matte, batch.known)
        form = training.memory_format(device)
        logit, sides, small, guesses = model((x / 255).contiguous(memory_format=form))
        seen = self.look(batch.picture.contiguous(memory_format=form))
        with torch.autocast(device.type, enabled=False):
            logit, small, label, weight, soft = (plain(v) for v in (logit, small, label, weight, soft))
            loss, parts = self.weigh(logit, [plain(s) for s in sides], small, label, weight, soft)
            if seen:
                parts["mimic"] = losses.mimic_loss(guesses, seen[2], detect.Batches.person_maps(seen[0], seen[2]))
                loss = loss + self.args.mimic * (1 - min(1.0, self.trainer.done)) * parts["mimic"]
            if not len(batch.weak) or not self.args.boxes:
                return loss, parts
            rows, scale = scenes.upload_rows(device, batch.weak), torch.ones(6, device=device)
            scale[:4] = self.args.small_side / self.args.side
            box = losses.box_loss(torch.sigmoid(logit[rows]), batch.boxes)
            box = box + losses.box_loss(torch.sigmoid(small[rows]), batch.boxes * scale)
            return loss + self.args.boxes * box, dict(parts, box=box)

    def draw(self, n, calm):
        """A batch, and what is seen of its pictures."""
        batch = self.scenes.batch(n, calm)
        x = scenes.spoil(batch.picture)
        if calm and self.args.clean:
            x = torch.where(torch.rand(n, 1, 1, 1, device=x.device) < self.args.clean, batch.picture, x)
        return batch, x

    def look(self, clean):
        """What the detector says, or None."""
        half = clean.device.type == "cuda"
        with torch.autocast(clean.device.type, torch.float16 if half else torch.bfloat16, enabled=half):
            return self.detector(clean) if self.detector else None

    def teach(self, soft, target, known):
        """The labels, and the teacher's word where there are none: by how sure it is, and its background near
        people alone (see segment.Lesson)."""
        if self.trainer.done < self.args.self_after:
            return target, known
        sure = ((2 * soft - 1) ** 2) * ((soft - 0.5).abs() > 0.3)
        near = around(soft > 0.8)
        trust = self.args.self_share * torch.where(soft > 0.5, sure, sure * near)
        return torch.where(known > 0, target, soft), known + (1 - known) * trust

    def weigh(self, logit, sides, small, label, weight, soft):
        large, parts = losses.matte_loss(logit, label, weight, self.args.missed)
        edge = losses.pyramid_loss(torch.sigmoid(logit), label, weight)
        deep = 0
        for side in sides:
            size = side.shape[2:]
            w = F.adaptive_avg_pool2d(weight, size)
            bce = F.binary_cross_entropy_with_logits(side, F.adaptive_avg_pool2d(label, size), reduction="none")
            deep = deep + (bce * w).sum() / w.sum().clamp(min=1)
        side = small.shape[-1]
        half = self.args.distill
        goal = shrunk(label * (1 - half) + soft * half, side).clamp(0, 1)
        learned, _ = losses.matte_loss(small, goal, shrunk(weight, side).clamp(0, 1), self.args.missed)
        parts.update(edge=edge, deep=deep, small=learned)
        return large + edge + 0.3 * deep / len(sides) + learned, parts


def read_detector(args, device):
    """The detector whose features are learnt, and how many channels they have; or None and 0."""
    if not args.teacher or not args.mimic:
        return None, 0
    from .teacher import YoloxTeacher
    detector = YoloxTeacher(args.teacher, args.side, args.side).to(device).eval()
    return detector, detector.read_features()


def make(args, mimic=0):
    model = Pair(**SIZES[args.size], small_side=args.small_side, mimic=mimic)
    if args.start:
        state = training.read_weights(args.start)
        if {k: list(v) for k, v in model.small.config.items()} != {k: list(v) for k, v in state["config"].items()}:
            raise SystemExit(f"{args.start}: holds other networks: {state['config']}")
        model.small.load_state_dict(training.restored(state["average"]))
        nets.grow(model.large, model.small)
    return model


def former(args, device):
    """The large network that --init names, in its inference form, or None."""
    if not args.init:
        return None
    if args.init.endswith(".onnx"):
        net = unfold.folded_net(args.init, SIZES[args.size]["large"])
    else:
        state = training.read_weights(args.init)
        net = nets.fuse(averages(state, args.init)["large"])
    return net.to(device).eval()


def begin_as(trainer, lesson, net):
    """A training whose large network begins as an exported one; the small one is what it was."""
    batch = lesson.draw(trainer.args.batch, False)[1] / 255
    x = batch.contiguous(memory_format=training.memory_format(batch.device))
    unfold.unfold(trainer.model.large, net, x)
    trainer.average.model.load_state_dict(trainer.model.state_dict())
    trainer.note(apart=[round(v, 5) for v in unfold.apart(trainer.model.large, net, x)])


def train(args):
    began = time.time()
    for name in ("side", "small_side"):
        if getattr(args, name) % 32:
            raise SystemExit(f"--{name.replace('_', '-')} {getattr(args, name)}: it must be a multiple of 32")
    if args.batch < 1:
        raise SystemExit(f"--batch {args.batch}: have 1 or more")
    if "RANK" in os.environ:
        raise SystemExit("torchrun: this training runs on one device alone")
    training.join_processes(args)
    training.seed_all(args.seed)
    device = torch.device(args.device)
    pictures = segment.read_pictures(args.data, "fit" if args.dev else "train", args.category, args.drop_licenses)
    cache = data.Cache(pictures, args.canvas, args.cache, with_masks=True)
    bank = bodies.Bank(args.bodies, args.seed, device, args.body_side) if args.bodies else None
    start = former(args, device)
    if args.complete and not start:
        raise SystemExit("--complete: it needs --init, whose network says what is in boxes")
    made = scenes.Scenes(cache, device, args.side, args.shares, bank, net=start if args.complete else None)
    held = segment.read_pictures(args.data, "dev", args.category, args.drop_licenses) if args.dev else []
    detector, channels = read_detector(args, device)
    lesson = Lesson(args, made, detector)
    prepared = time.time() - began
    stop = "pause" if args.pause else "minutes"  # a slice ends in time; a schedule over several is all training
    if getattr(args, stop):
        setattr(args, stop, getattr(args, stop) - (prepared + EXPORT_S) / 60)
        if getattr(args, stop) <= 0:
            raise SystemExit(f"--{stop}: the preparations took {prepared:.0f} s, the export needs {EXPORT_S} s")
    exported = args.init and args.init.endswith(".onnx")
    if exported:
        args.init = None  # which for a Trainer is a file of weights
    trainer = lesson.trainer = training.Trainer(make(args, channels), lesson.loss, args, args.out)
    lesson.teacher = Teacher(trainer)
    if exported and not trainer.step:
        begin_as(trainer, lesson, start)
    trainer.note(**made.counts, cut_outs=len(made.cut_outs), bodies=len(bank) if bank else 0,
                 prepared_s=round(prepared, 1), parameters={k: nets.count_parameters(getattr(trainer.model, k))
                                                            for k in NAMES})
    if device.type == "cuda":
        trainer.note(drawn_per_s=round(drawn(made, args.batch)))
    trainer.train()
    if device.type == "cuda":
        trainer.note(memory_gb=round(torch.cuda.max_memory_allocated(device) / 1e9, 1))
    export(args)
    if held:
        for name, side in (("large", args.side), ("small", args.small_side)):
            net = getattr(trainer.average.model, name)
            result = segment.score_pictures(segment.net_infer(net, device), held, side).score()
            trainer.note(**{f"dev_{NAMES[name]}_{k}": round(v, 2) for k, v in result.items()})


def drawn(made, count, rounds=4):
    """Pictures a second without any learning: what part of a step goes into them."""
    for again in (1, rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(again):
            scenes.spoil(made.batch(count).picture)
        torch.cuda.synchronize()
    return rounds * count / (time.perf_counter() - start)


def load_averages(folder):
    """Both averaged networks of a training, and the step."""
    path = Path(folder) / "average.pt"
    if not path.exists():
        raise SystemExit(f"{path}: no such file; 'train' leaves it every minute and at its end")
    state = training.read_weights(path)
    return averages(state, path), state["step"]


def averages(state, path):
    """Both networks of what `path` holds."""
    out = {}
    if state["config"].keys() != NAMES.keys():
        raise SystemExit(f"{path}: holds other networks: {state['config']}")
    for name in NAMES:
        out[name] = nets.PersonSeg(**state["config"][name])
        out[name].load_state_dict(training.restored({k[len(name) + 1:]: v for k, v in state["average"].items()
                                                     if k.startswith(name + ".")}))
    return out


def export(args):
    from .export import contract, store_half, to_onnx
    import onnx
    trained, step = load_averages(args.out)
    for name, side in (("large", args.side), ("small", args.small_side)):
        path, shape = Path(args.out) / f"{NAMES[name]}.onnx", (1, 3, side, side)
        entries = contract("matte", "rgb,letterbox=topleft,mean=0,scale=1/255,fill=114,filter=area",
                           [args.category], steps=step)
        module = nets.ExportSeg(nets.fuse(trained[name]))
        onnx.save(store_half(to_onnx(module, shape, "matte", entries)), path)
        print(f"{path}: {nets.count_parameters(module)} parameters, {nets.count_flops(module, shape) / 1e9:.2f} GFLOP, "
              f"{path.stat().st_size} bytes", flush=True)


def mix(args):
    shares = args.shares or [1.0] * len(args.models)
    if len(shares) != len(args.models) or min(shares) < 0 or not sum(shares):
        raise SystemExit("--shares: have one for each file, none below 0, not all 0")
    unfold.mix(args.models, shares, args.out)


def main():
    parser = argparse.ArgumentParser(prog="saccade_train.matte", description=__doc__.split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    p = verbs.add_parser("mix", help="the mean of the weights of exported networks")
    p.add_argument("models", nargs="+", help="exported files of one network's trainings")
    p.add_argument("--shares", type=float, nargs="*", help="of the files; all the same without it")
    p.add_argument("--out", required=True, help="the file that is made")
    for verb in ("train", "export"):
        p = verbs.add_parser(verb)
        p.add_argument("--category", default="person", help="name of the one class")
        p.add_argument("--side", type=int, default=512, help="of the large network's input; a multiple of 32")
        p.add_argument("--small-side", type=int, default=320, help="of the small one's")
        if verb == "export":
            p.add_argument("--out", required=True, help="folder of a training; the files come there too")
            continue
        training.add_arguments(p, lr=1e-3, batch=96, steps=0)
        p.set_defaults(warmup=200, ema=0.999)
        p.add_argument("--complete", action="store_true",
                       help="the network of --init says what is in boxes without masks, and its people are pasted too")
        p.add_argument("--data", required=True, help="folder with detect/ and segment/")
        p.add_argument("--size", choices=SIZES, default="full")
        p.add_argument("--start", default=str(WEIGHTS), help="weights of a small network; both begin as it. '': none")
        p.add_argument("--bodies", type=int, default=3000, help="rendered people; 0.6 MB of the device's memory each")
        p.add_argument("--body-side", type=int, default=bodies.SIZE, help="of their drawings")
        p.add_argument("--distill", type=float, default=0.5, help="the large network's share in what the small learns")
        p.add_argument("--dev", action="store_true", help="hold a tenth of the training pictures out and score them")
        p.add_argument("--drop-licenses", type=int, nargs="*", default=(), metavar="ID",
                       help="licence ids not to train on (5: share-alike)")
        p.add_argument("--self-share", type=float, default=0.7,
                       help="weight of the averaged network's own word inside boxes without masks")
        p.add_argument("--self-after", type=float, default=0.15, help="it begins at this part of the schedule")
        p.add_argument("--boxes", type=float, default=0.2, help="weight of what boxes without masks say by themselves")
        p.add_argument("--missed", type=float, default=0.6,
                       help="cost of a pixel of somebody who is missed, beside 1 - MISSED for one too many")
        p.add_argument("--calm", type=float, default=0.2, help="part of the schedule, at its end, with plainer pictures")
        p.add_argument("--clean", type=float, default=0.0, help="how many of those are without faults of light and camera")
        p.add_argument("--teacher", help="a YOLOX network whose features are learnt beside the mattes")
        p.add_argument("--mimic", type=float, default=0.5, help="their weight at the beginning; it falls to 0")
        p.add_argument("--shares", type=float, nargs=3, default=[0.55, 0.3, 0.15], metavar=("MASKS", "BOXES", "NOBODY"),
                       help="of the three kinds of pictures")
        p.add_argument("--canvas", type=int, default=512, help="side of the cached pictures")
        p.add_argument("--cache", default="cache")
    args = parser.parse_args()
    with faults.as_sentences():
        {"train": train, "export": export, "mix": mix}[args.verb](args)


if __name__ == "__main__":
    main()
