# SPDX-License-Identifier: Apache-2.0
"""Train person_matte: a matte network that sees with a detector's eyes.

    python3 -m saccade_train.aided begin --matte person_matte.onnx --detector yolox_nano_416.onnx --data FOLDER START.pt
    python3 -m saccade_train.aided train --data FOLDER --init START.pt --out runs/aided --minutes 9 --json
    python3 -m saccade_train.aided export --out runs/aided

What person_matte lacks is other pictures than the 758 it learns from. YOLOX-nano (Apache-2.0) has seen 118,000: the
former network goes on with that one's features beside its own.
"""
import argparse
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

from . import bodies, data, faults, losses, matte, nets, scenes, segment, training, trunk, unfold

SIZES = {  # the full one: matte's, but for a step of the last stage, as 12 MB have to be enough
    "full": dict(widths=[32, 64, 128, 256, 416], depths=[1, 2, 3, 1], neck=[32, 64, 128, 192], refine=[2, 2, 3, 2]),
    "tiny": dict(widths=[12, 12, 24, 24, 24], depths=[1, 1, 1, 0], neck=[12, 12, 24, 24], refine=[1, 1, 1, 1]),
}
SLOW = 0.05  # of the learning rate, for the detector's part


class AidedSeg(nets.PersonSeg):
    """PersonSeg whose maps at strides 8, 16 and 32 are joined by those of a Trunk.

    drop: how often in training, picture by picture, its own maps at these strides are taken away. They know the
    training pictures by heart, and would else leave nothing to learn to what has seen others.
    """

    def __init__(self, **config):
        super().__init__(**config)
        neck = self.config["neck"]
        self.trunk = trunk.Trunk()
        self.trunk.slow = SLOW
        self.aid = nn.ModuleList(nets.Conv(trunk.CHANNELS, c, 1, act=False) for c in (*neck[2:], neck[3]))
        for layer in self.aid:
            nn.init.zeros_(layer.bn.weight)  # nothing at first
        single(self)
        self.drop = 0.0

    def decode(self, x):
        """The decoder's maps at strides 32, 16, 8, 4 and 2."""
        maps, aid = [self.backbone.stem(x)], [layer(y) for layer, y in zip(self.aid, self.trunk(x))]
        for down, stage in zip(self.backbone.down, self.backbone.stages):
            maps.append(stage(down(maps[-1])))
        kept = None
        if self.training and self.drop:
            kept = torch.rand(len(x), 1, 1, 1, device=x.device) >= self.drop
        join = lambda own, i: (own if kept is None else own * kept.to(own.dtype)) + aid[i]
        y = F.relu(join(self.top(self.backbone.pyramid(maps.pop())), 2))
        out = [y]
        for i in (3, 2, 1, 0):
            if i < 3:
                y = self.narrow[i](y)
            y = F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)
            own = self.lateral[i](maps[i])
            y = self.refine[i](F.relu(y + (join(own, i - 2) if i > 1 else own)))
            out.append(y)
        return out


def single(net):
    """One convolution and one normalisation for each layer: the branches of a training from nothing are not needed
    by one that goes on, and take most of its time."""
    for layer in net.modules():
        if isinstance(layer, nets.Conv):
            layer.point = layer.point_bn = layer.skip_bn = None
    return net


class Lone(nn.Module):
    """The network, and a layer for each coarser map of its decoder that guesses the matte there (see matte.Pair)."""

    def __init__(self, config):
        super().__init__()
        self.large = AidedSeg(**config)
        self.config = dict(aided=self.large.config)
        self.sides = nn.ModuleList(nn.Conv2d(c, 1, 1) for c in self.large.config["neck"][:0:-1])

    def forward(self, x):
        maps = self.large.decode(x)
        return self.large.answer(maps[-1]), [side(y) for side, y in zip(self.sides, maps[1:])]


class Lesson(matte.Lesson):
    """Loss on one fresh batch, as matte.Lesson's for the large network."""

    def loss(self, model, n):
        device, done = self.scenes.device, self.trainer.done
        with torch.autocast(device.type, enabled=False):
            batch, x = self.draw(n, done > 1 - self.args.calm)
        if done < self.args.self_after:
            label, weight = batch.matte, batch.known
        else:
            label, weight = self.teach(self.teacher(batch.picture, batch.weak), batch.matte, batch.known)
        logit, sides = model((x / 255).contiguous(memory_format=training.memory_format(device)))
        with torch.autocast(device.type, enabled=False):
            logit, label, weight = (matte.plain(v) for v in (logit, label, weight))
            loss, parts = self.weigh(logit, [matte.plain(s) for s in sides], label, weight)
            if len(batch.weak) and self.args.boxes:
                rows = scenes.upload_rows(device, batch.weak)
                parts["box"] = losses.box_loss(torch.sigmoid(logit[rows]), batch.boxes)
                loss = loss + self.args.boxes * parts["box"]
            return loss, parts

    def weigh(self, logit, sides, label, weight):
        large, parts = losses.matte_loss(logit, label, weight, self.args.missed)
        edge = losses.pyramid_loss(torch.sigmoid(logit), label, weight)
        deep = 0
        for side in sides:
            size = side.shape[2:]
            w = F.adaptive_avg_pool2d(weight, size)
            bce = F.binary_cross_entropy_with_logits(side, F.adaptive_avg_pool2d(label, size), reduction="none")
            deep = deep + (bce * w).sum() / w.sum().clamp(min=1)
        return large + edge + 0.3 * deep / len(sides), dict(parts, edge=edge, deep=deep)


def shortened(folded, steps):
    """The fused network with so many steps in its last stage."""
    stage = folded.backbone.stages[-1]
    old, kept = stage.leave.fused, stage.enter.fused.out_channels * (2 + steps)
    stage.steps = stage.steps[:steps]
    stage.leave.fused = nn.Conv2d(kept, old.out_channels, 1)
    stage.leave.fused.load_state_dict(dict(weight=old.weight[:, :kept], bias=old.bias))
    return folded


def joined(args, x):
    """matte's network of the file `args.matte` with the detector, which is not heard yet."""
    config, net = SIZES[args.size], Lone(SIZES[args.size])
    former = single(nets.PersonSeg(**config))
    unfold.unfold(former, shortened(unfold.folded_net(args.matte, matte.SIZES[args.size]["large"]), config["depths"][-1]), x)
    net.large.load_state_dict(former.state_dict(), strict=False)
    net.large.trunk.load_state_dict(trunk.read(args.detector).state_dict())
    return net


def taken_up(args, x):
    """The network that `export` wrote to the file `args.matte`."""
    net, folded = Lone(SIZES[args.size]), nets.fuse(AidedSeg(**SIZES[args.size]))
    numbers = unfold.read_folded(args.matte)
    if {k: v.shape for k, v in folded.state_dict().items()} != {k: v.shape for k, v in numbers.items()}:
        raise SystemExit(f"{args.matte}: not a network that 'export' wrote; one of saccade_train.matte needs --detector")
    folded.load_state_dict(numbers)
    net.large.trunk.load_state_dict(folded.trunk.state_dict())
    unfold.unfold(net.large, folded, x)
    return net


def begin(args):
    """Writes what a training starts from."""
    training.seed_all(args.seed)
    pictures = segment.read_pictures(args.data, "train", args.category, ())[:args.pictures]
    x = torch.from_numpy(np.stack([segment.letterbox(Image.open(p.path), args.side)[0] for p in pictures])) / 255
    net = (joined if args.detector else taken_up)(args, x)
    torch.save(dict(average=training.halved(net.state_dict()), config=net.config, step=0), args.start)


def train(args):
    began = time.time()
    training.seed_all(args.seed)
    device = torch.device(args.device)
    pictures = segment.read_pictures(args.data, "train", args.category, args.drop_licenses)
    cache = data.Cache(pictures, args.canvas, args.cache, with_masks=True)
    bank = bodies.Bank(args.bodies, args.seed, device, args.body_side) if args.bodies else None
    lesson = Lesson(args, scenes.Scenes(cache, device, args.side, args.shares, bank))
    prepared = time.time() - began
    args.minutes -= prepared / 60 if args.minutes else 0
    model = Lone(SIZES[args.size])
    model.large.drop = args.drop
    trainer = lesson.trainer = training.Trainer(model, lesson.loss, args, args.out)
    lesson.teacher = matte.Teacher(trainer)
    trainer.note(**lesson.scenes.counts, cut_outs=len(lesson.scenes.cut_outs), prepared_s=round(prepared, 1),
                 parameters=nets.count_parameters(trainer.model.large))
    trainer.train()
    if device.type == "cuda":
        trainer.note(memory_gb=round(torch.cuda.max_memory_allocated(device) / 1e9, 1))


def trained(folder):
    """The averaged network of a training, and the step."""
    path = Path(folder) / "average.pt"
    if not path.exists():
        raise SystemExit(f"{path}: no such file; 'train' leaves it every minute and at its end")
    state = training.read_weights(path)
    net = AidedSeg(**state["config"]["aided"])
    net.load_state_dict(training.restored({k[6:]: v for k, v in state["average"].items() if k.startswith("large.")}))
    return net, state["step"]


def export(args):
    from .export import contract, store_half, to_onnx
    import onnx
    net, step = trained(args.out)
    entries = contract("matte", "rgb,letterbox=topleft,mean=0,scale=1/255,fill=114,filter=area", [args.category], steps=step)
    path, shape = Path(args.out) / "person_matte.onnx", (1, 3, args.side, args.side)
    module = nets.ExportSeg(nets.fuse(net))
    onnx.save(store_half(to_onnx(module, shape, "matte", entries)), path)
    print(f"{path}: {nets.count_parameters(module)} parameters, {nets.count_flops(module, shape) / 1e9:.2f} GFLOP, "
          f"{path.stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(prog="saccade_train.aided", description=__doc__.split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("begin", "train", "export"):
        p = verbs.add_parser(verb)
        p.add_argument("--category", default="person", help="name of the one class")
        p.add_argument("--side", type=int, default=512, help="of the network's input; a multiple of 32")
        if verb == "export":
            p.add_argument("--out", required=True, help="folder of a training; the file comes there too")
            continue
        p.add_argument("--data", required=True, help="folder with detect/ and segment/")
        p.add_argument("--size", choices=SIZES, default="full")
        if verb == "begin":
            p.add_argument("--matte", required=True, help="what saccade_train.matte exported, or 'export' here")
            p.add_argument("--detector", help="yolox_nano_416.onnx, which joins a network of saccade_train.matte")
            p.add_argument("--pictures", type=int, default=24, help="of which statistics are taken")
            p.add_argument("--seed", type=int, default=1)
            p.add_argument("start", metavar="START.pt")
            continue
        training.add_arguments(p, lr=1e-3, batch=96, steps=0)
        p.set_defaults(warmup=60, ema=0.997)
        p.add_argument("--bodies", type=int, default=3000, help="rendered people; 0.6 MB of the device's memory each")
        p.add_argument("--body-side", type=int, default=bodies.SIZE, help="of their drawings")
        p.add_argument("--drop", type=float, default=0.5, help="how often own maps are taken away")
        p.add_argument("--drop-licenses", type=int, nargs="*", default=(), metavar="ID",
                       help="licence ids not to train on (5: share-alike)")
        p.add_argument("--self-share", type=float, default=0.7,
                       help="weight of the averaged network's own word inside boxes without masks")
        p.add_argument("--self-after", type=float, default=0.35, help="it begins at this part of the schedule")
        p.add_argument("--boxes", type=float, default=0.2, help="weight of what boxes without masks say by themselves")
        p.add_argument("--missed", type=float, default=0.6,
                       help="cost of a pixel of somebody who is missed, beside 1 - MISSED for one too many")
        p.add_argument("--calm", type=float, default=0.25, help="part of the schedule, at its end, with plainer pictures")
        p.add_argument("--clean", type=float, default=0.3, help="how many of those are without faults of light and camera")
        p.add_argument("--shares", type=float, nargs=3, default=[0.55, 0.3, 0.15], metavar=("MASKS", "BOXES", "NOBODY"),
                       help="of the three kinds of pictures")
        p.add_argument("--canvas", type=int, default=512, help="side of the cached pictures")
        p.add_argument("--cache", default="cache")
    args = parser.parse_args()
    with faults.as_sentences():
        {"begin": begin, "train": train, "export": export}[args.verb](args)


if __name__ == "__main__":
    main()
