# SPDX-License-Identifier: Apache-2.0
"""Train, score and export the ReID network: a person's crop becomes a direction in 256 dimensions.

    python3 -m saccade_train.reid train  --data FOLDER --out runs/reid --teacher person_reid_0288.onnx
    python3 -m saccade_train.reid check  --data FOLDER --teacher person_reid_0288.onnx MODEL.onnx [...]
    python3 -m saccade_train.reid sheet  --data FOLDER SHEET.png
    python3 -m saccade_train.reid score  --mot FOLDER MODEL.onnx [...]
    python3 -m saccade_train.reid export --out runs/reid --model person_reid.onnx

Four ingredients, each with a weight or a share that 0 switches off: contrast of two views of one person
(--contrast), distillation from a teacher (--distill), rendered persons (--synthetic), new persons made of real
ones (--mix, --recolour). Choices are made by what `train` and `check` print: held-out persons of FOLDER. `score`
reads MOT sequences, which are for the last test only.
"""
import argparse
import random
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from . import crops, faults, losses, metrics, nets, render, training, views

SIZES = {
    "reid": dict(widths=(16, 32, 64, 96, 160), depths=(1, 2, 2, 1), dim=256),
    "tiny": dict(widths=(8, 8, 16, 16, 16), depths=(1, 1, 1, 1), dim=256),
}
CALIBRATION, CALIBRATION_BATCH = 1024, 64  # views that tell the mean and deviation of the teacher's answers
RENDERED = 256  # persons that are drawn for the validation


class Batches:
    """Makes two views each of real and rendered persons, with the teacher's word on them, and the loss."""

    def __init__(self, args, store, device):
        self.args, self.device, self.format = args, device, training.memory_format(device)
        self.store = store
        self.views = views.Views(store, args.jitter, args.colour, args.occlusion, args.swap, args.heights)
        self.teacher = None
        if args.distill > 0:
            from .teacher import ReidTeacher
            self.teacher = ReidTeacher(args.teacher).to(device).eval()
            rounds = range(-(-CALIBRATION // (2 * CALIBRATION_BATCH)))
            self.teacher.standardise(torch.cat([self.ask(self.asked(*self.make(CALIBRATION_BATCH)[:2]))
                                                for _ in rounds]))

    def canvases(self, n):
        """Two canvases [n,4,H,W] of n persons, boxes, margins, whether the mask is known, who they are [n]."""
        first, second, who = self.store.pairs(n)
        a, b = self.store.fetch(first), self.store.fetch(second)
        known = self.store.known[first] & self.store.known[second]
        box = views.inner_box(n, self.device)
        soft = views.ellipse(box[:1])  # stands in for a mask that is not known
        a[:, 3:], b[:, 3:] = (torch.where(known[:, None, None, None], x[:, 3:], soft) for x in (a, b))
        a, b, known, mixed = views.mix(a, b, known, self.args.mix)
        coloured = views.recolour(a, b, self.args.recolour)
        who = who.clone()
        for rows, first_number in ((mixed, 10 ** 7), (coloured, 2 * 10 ** 7)):  # these are new persons
            who[rows] = first_number + rows
        return a, b, box, box, self.store.room[first], self.store.room[second], known, who

    def rendered(self, n):
        a, b, box_a, box_b = render.pairs(n, self.device, lambda m: views.backdrops(self.store, m))
        room = torch.ones(n, 4, device=self.device)
        who = 3 * 10 ** 7 + torch.arange(n, device=self.device)
        return a, b, box_a, box_b, room, room, torch.zeros(n, dtype=torch.bool, device=self.device), who

    @torch.no_grad()
    def make(self, n):
        """Views [2n,3,256,128] in 0..255, first one of each person then the other, clean ones, who [n]."""
        count = round(n * self.args.synthetic)
        parts = [self.canvases(n - count)] if n > count else []
        parts += [self.rendered(count)] if count else []
        a, b, box_a, box_b, room_a, room_b, known, who = (torch.cat(v) for v in zip(*parts))
        xa, clean_a = self.views.view(a, box_a, room_a, known)
        xb, clean_b = self.views.view(b, box_b, room_b, known)
        return torch.cat([xa, xb]), torch.cat([clean_a, clean_b]), who

    def asked(self, x, clean):
        return clean if self.args.teacher_view == "clean" else x

    @torch.no_grad()
    def ask(self, x):
        half = self.device.type == "cuda"
        with torch.autocast(self.device.type, torch.float16 if half else torch.bfloat16, enabled=half):
            return self.teacher(x)

    def loss(self, model, n):
        with torch.autocast(self.device.type, enabled=False):
            x, clean, who = self.make(n)
            word = self.ask(self.asked(x, clean)) if self.teacher else None
        out = model((x / 255).contiguous(memory_format=self.format))
        with torch.autocast(self.device.type, enabled=False):
            out, total, parts = out.float(), 0, {}
            if self.args.contrast > 0:
                parts["contrast"] = losses.contrast_loss(out[:n], out[n:], self.args.temperature, who)
                total = total + self.args.contrast * parts["contrast"]
            if word is not None:
                value, some = losses.distill_loss(out, word)
                parts.update(some)
                total = total + self.args.distill * value
        return total, parts


class Validation:
    """Held-out persons, the same views each time: does a network find the other view of each, and does it
    agree with the teacher? Every number is of networks that map [n,3,256,128] in 0..255 to rows."""

    def __init__(self, held, cache, device, seed=7, rounds=2):
        self.device = torch.device("cpu")  # the views shall not depend on the machine
        state = torch.get_rng_state(), random.getstate()
        torch.manual_seed(seed)
        random.seed(seed)
        store = crops.CropStore(crops.CropCache(held, cache), self.device)
        maker = views.Views(store, swap=0.5)
        everybody = torch.arange(len(held))
        box = views.inner_box(len(held), self.device)
        canvas = store.fetch(everybody)
        canvas[:, 3:] = torch.where(store.known[:, None, None, None], canvas[:, 3:], views.ellipse(box[:1]))
        unmoved, unflipped = torch.zeros(len(held), 4), torch.zeros(len(held), dtype=torch.bool)
        self.plain = views.window(canvas[:, :3], box, unmoved, unflipped)
        self.pairs = [[maker.view(canvas, box, store.room, store.known)[0] for _ in range(2)] for _ in range(rounds)]
        self.who = store.identity.numpy()
        a, b, box_a, box_b = render.pairs(RENDERED, self.device, lambda m: views.backdrops(store, m))
        none = torch.zeros(RENDERED, dtype=torch.bool)
        self.rendered = [maker.view(c, o, torch.ones(RENDERED, 4), none)[0] for c, o in ((a, box_a), (b, box_b))]
        torch.set_rng_state(state[0])
        random.setstate(state[1])

    def score(self, infer, teacher=None, cosine=True):
        """infer(views) gives rows of length 1; percentages, and agreement with the teacher."""
        values, alone = {}, np.bincount(self.who)[self.who] == 1
        same = lambda: np.ones((len(self.who), len(self.who)), bool)
        found = []
        for a, b in self.pairs:
            ea, eb = infer(a), infer(b)
            # one picture each: its other view among everybody's
            found.append(metrics.retrieval(ea[alone], eb, np.flatnonzero(alone), np.arange(len(eb)),
                                           same()[alone]))
            # persons with several pictures: another picture, among everybody's
            if (~alone).any():
                rows = np.flatnonzero(~alone)
                apart = same()[rows] & (rows[:, None] != np.arange(len(eb))[None])
                got = metrics.retrieval(ea[rows], eb, self.who[rows], self.who, apart)
                values["frames_mAP"] = values.get("frames_mAP", 0) + got["mAP"] / len(self.pairs)
        values["views_rank1"] = float(np.mean([f["rank1"] for f in found]))
        values["views_mAP"] = float(np.mean([f["mAP"] for f in found]))
        ea, eb = infer(self.rendered[0]), infer(self.rendered[1])
        one = np.arange(len(ea))
        values["rendered_rank1"] = metrics.retrieval(ea, eb, one, one, np.ones((len(ea), len(eb)), bool))["rank1"]
        if teacher is not None:
            for name, x in (("plain", self.plain), ("views", self.pairs[0][0])):
                e, t = infer(x), teacher(x)
                off = ~np.eye(len(e), dtype=bool)
                if cosine:
                    values[f"cosine_{name}"] = float((e * t).sum(1).mean())
                values[f"relations_{name}"] = float(np.corrcoef((e @ e.T)[off], (t @ t.T)[off])[0, 1])
        return {k: round(v, 3 if k[:6] in ("cosine", "relati") else 1) for k, v in values.items()}


def rows_of(function, device, batch=128):
    """A torch function of views as one that gives rows of length 1 in NumPy."""
    @torch.no_grad()
    def infer(x):
        out = [F.normalize(function(p.to(device)).float(), dim=1).cpu() for p in x.split(batch)]
        return torch.cat(out).numpy()
    return infer


def net_infer(model, device):
    return rows_of(lambda x: model((x / 255).contiguous(memory_format=training.memory_format(device))), device)


def table(rows):
    """{name: {column: value}} as Markdown; a column that only some rows have is blank in the others."""
    columns = list(dict.fromkeys(c for row in rows.values() for c in row))
    lines = ["| model | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join([name] + [str(row.get(c, "")) for c in columns]) + " |"
                              for name, row in rows.items()])


def train(args):
    if not args.contrast > 0 and not args.distill > 0:
        raise SystemExit("--contrast 0 --distill 0: nothing is left to learn from")
    if args.distill > 0 and not args.teacher:
        raise SystemExit("--distill needs --teacher MODEL.onnx; --distill 0 trains without one")
    training.join_processes(args)
    training.seed_all(args.seed)
    device = torch.device(args.device)
    everybody = crops.read_crops(args.data, None, args.height_min, args.drop_licenses)
    mine = [c for c in everybody if c.split == "train"]
    held = [c for c in everybody if c.split == "val"]
    if len({c.identity for c in mine}) < 2:
        raise SystemExit(f"{args.data}: {len(mine)} pictures of one person to train on; two persons are the least")
    with training.first_rank_first():
        cache = crops.CropCache(mine, args.cache)
    store = crops.CropStore(cache, device)
    batches = Batches(args, store, device)
    if training.rank() == 0:
        print(f"{len(mine)} crops of {len(store.start)} persons, {int(store.known.sum())} with masks; "
              f"{len(held)} held out", flush=True)
    trainer = training.Trainer(nets.PersonReid(**SIZES[args.size]), batches.loss, args, args.out)
    trainer.train()
    if training.rank() != 0:
        return
    if len(held) < 2:
        print("nobody is held out: no validation")
        return
    validation = Validation(held, args.cache, device)
    rows, word = {}, None
    if batches.teacher:
        word = rows_of(batches.ask, device)
        rows["teacher"] = validation.score(word)
    rows["this"] = validation.score(net_infer(trainer.average.model, device), word)
    trainer.note(**{"eval_" + k: v for k, v in rows["this"].items()})
    print(table(rows))


def sheet(args):
    """What the network is given: two views of each person, side by side."""
    from PIL import Image
    training.seed_all(args.seed)
    device = torch.device(args.device)
    mine = crops.read_crops(args.data, "train", args.height_min, args.drop_licenses)
    args.distill = 0
    batches = Batches(args, crops.CropStore(crops.CropCache(mine, args.cache), device), device)
    x, _, who = batches.make(args.count)
    both = torch.stack([x[:args.count], x[args.count:]], 1).flatten(0, 1)
    Image.fromarray(render.sheet(F.interpolate(both, scale_factor=0.5), 20)).save(args.picture)
    print(f"{args.picture}: {args.count} persons, two views each")


def load_average(path):
    state = training.read_weights(path)
    if "dim" not in state["config"]:
        raise SystemExit(f"{path}: holds no ReID network")
    model = nets.PersonReid(**state["config"])
    model.load_state_dict(training.restored(state["average"]))
    return model, state.get("step")


def export(args):
    from .export import contract, store_half, to_onnx
    import onnx
    model, step = load_average(args.weights or Path(args.out) / "checkpoint.pt")
    nets.fuse(model).fold()
    entries = contract("embedding", "rgb,stretch,mean=0,scale=1/255", **({"steps": step} if step else {}))
    shape = (1, 3, crops.BOX_HEIGHT, crops.BOX_WIDTH)
    onnx.save(store_half(to_onnx(model, shape, "embedding", entries)), args.model)
    print(f"{args.model}: {Path(args.model).stat().st_size} bytes")


def check(args):
    """Held-out persons of a folder, for model files."""
    from .retrieval import OnnxEmbedding
    held = crops.read_crops(args.data, "val", args.height_min, args.drop_licenses)
    if len(held) < 2:
        raise SystemExit(f"{args.data}: {len(held)} held-out persons; two are the least that can be told apart")
    validation = Validation(held, args.cache, "cpu")
    infer = lambda path: (lambda model: lambda x: model(x.numpy()))(OnnxEmbedding(path))
    word = infer(args.teacher) if args.teacher else None
    # no cosine: the teacher's file is not standardised as the training did
    rows = {Path(args.teacher).name: validation.score(word)} if word else {}
    rows.update({Path(path).name: validation.score(infer(path), word, cosine=False) for path in args.models})
    print(table(rows))


def score(args):
    from . import retrieval
    videos = dict(v.split("=", 1) for v in args.video if "=" in v)
    if len(videos) != len(args.video):
        raise SystemExit("--video takes SEQUENCE=FILE")
    rows = retrieval.score(args.mot, args.models, args.gap, args.visible, args.every, videos, args.wrong)
    print(table({Path(name).name: row for name, row in rows.items()}))


def add_data(p, **several):
    p.add_argument("--data", required=True, help="folder of crops or pictures, see below")
    p.add_argument("--cache", default="cache", help="folder of the decoded crops")
    p.add_argument("--height-min", type=int, default=48, help="of boxes taken from detect, in pixels")
    # where pictures or models follow without an option's name, it takes one id and may be repeated
    p.add_argument("--drop-licenses", type=int, default=[], help="licence ids not to use", metavar="ID",
                   **(several or dict(action="append")))


def add_views(p):
    p.add_argument("--synthetic", type=float, default=0.25, help="share of rendered persons in a batch")
    p.add_argument("--mix", type=float, default=0.25, help="share of persons made of two: upper and lower body")
    p.add_argument("--recolour", type=float, default=0.25, help="share of persons with clothes of another colour")
    p.add_argument("--jitter", type=float, default=1.0, help="how badly boxes fit")
    p.add_argument("--colour", type=float, default=0.7, help="how much light and colour differ between two views")
    p.add_argument("--occlusion", type=float, default=0.35, help="share of views with somebody or something in front")
    p.add_argument("--swap", type=float, default=0.5, help="share of other backgrounds, of persons with masks")
    p.add_argument("--heights", type=float, nargs=2, default=(28, 256), help="smallest and largest sensor height")


def main():
    parser = argparse.ArgumentParser(prog="saccade_train.reid", description=__doc__, epilog=crops.LAYOUT,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    add = lambda verb, text: verbs.add_parser(verb, help=text, description=text, epilog=crops.LAYOUT,
                                              formatter_class=argparse.RawDescriptionHelpFormatter)
    p = add("train", "train a network, or go on with --resume")
    training.add_arguments(p, lr=2e-3, batch=384, steps=20000)
    add_data(p, nargs="*")
    add_views(p)
    p.add_argument("--size", choices=SIZES, default="reid")
    p.add_argument("--teacher", help="an embedding network, as person_reid_0288.onnx")
    p.add_argument("--contrast", type=float, default=1.0, help="weight; 0: off")
    p.add_argument("--distill", type=float, default=2.0, help="weight; 0: off")
    p.add_argument("--teacher-view", choices=["same", "clean"], default="same",
                   help="clean: the teacher sees the view before light and sensor spoiled it")
    p.add_argument("--temperature", type=float, default=0.1, help="of the contrast")
    p = add("check", "held-out persons of FOLDER: what choices are made by")
    add_data(p)
    p.add_argument("--teacher", help="the network to compare with")
    p.add_argument("models", nargs="*")
    p = add("sheet", "draw what the network is given")
    add_data(p)
    add_views(p)
    p.add_argument("--device", default="cpu")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=60)
    p.add_argument("picture")
    p = add("score", "identity retrieval on MOT sequences: tests only, never for choices")
    p.add_argument("--mot", required=True, help="folder of sequences, each with gt.txt, seqinfo.ini and its video")
    p.add_argument("--gap", type=float, metavar="S",
                   help="seconds between query and gallery; default 5, or 3 on sequences under 20 s")
    p.add_argument("--video", action="append", default=[], metavar="SEQUENCE=FILE",
                   help="a sequence's video that is not in its folder; PETS09-S2L1 is build/clips/vtest.avi")
    p.add_argument("--visible", type=float, default=0.5, help="smallest share of a box that no other box covers")
    p.add_argument("--every", type=float, default=0.5, help="seconds between sampled frames")
    p.add_argument("--wrong", nargs=2, metavar=("SEQUENCE", "PNG"),
                   help="draw what the first model confuses most in a sequence")
    p.add_argument("models", nargs="*")
    p = add("export", "write MODEL.onnx")
    source = p.add_mutually_exclusive_group(required=True)
    source.add_argument("--out", help="folder of a training: its checkpoint")
    source.add_argument("--weights", help="a file of weights, as train/weights holds them")
    p.add_argument("--model", required=True)
    args = parser.parse_args()
    with faults.as_sentences():
        {"train": train, "check": check, "sheet": sheet, "score": score, "export": export}[args.verb](args)


if __name__ == "__main__":
    main()
