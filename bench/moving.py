#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What settings of `segment` do to people who move, where the truth is known: people cut out of held-out pictures walk
and run over other held-out pictures, nearer and farther, past each other, before a camera that shakes, with blur of
motion, noise and H.264. Their mattes are known to the pixel. IoU, boundary F and flicker are those of `saccade eval`,
means over the clips; the differences to the first setting are paired, with 95 % bootstrap intervals over clips. Of real
clips (--real) the flicker alone is known.

    bench/moving.py [--saccade build/src/cli/saccade] [--data DIR] [--clips N] [--frames N] [--real CLIP ...]
                    [--model FILE] [--keep DIR] [--json FILE] ["--smooth 0" "--smooth 0.8" ...]

Needs NumPy, Pillow and ffmpeg.
"""
import argparse
import json
import math
import os
import pathlib
import shlex
import subprocess
import tempfile

import numpy as np
from PIL import Image, ImageFilter

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get('SACCADE_SHARED', ROOT / '../shared'))
CASES = ['--smooth 0', '--smooth 0.5', '--smooth 0.8', '--smooth 0.9', '--smooth 0.95']
PEOPLE = {'coco_000000019432', 'coco_000000030504', 'coco_000000033368', 'coco_000000261888', 'coco_000000273760',
          'coco_000000326128', 'coco_000000352760', 'coco_000000571264', 'onebyone_0485', 'onebyone_0640'}
WIDTH, HEIGHT, RATE = 640, 480, 25
EXPOSURES = 3  # of a shutter that is open for half of a frame's time
# Heights of a body in a second: 1.7 m, at 0.7, 1.4 and 4 m/s.
PACES = (0.4, 0.8, 2.4)


# ---- pictures ----

def four(array):
    """[h,w,4] bytes as a picture whose planes Pillow scales one by one: of RGBA it would divide by alpha."""
    return Image.frombuffer('CMYK', array.shape[1::-1], np.ascontiguousarray(array), 'raw', 'CMYK', 0, 1)


def bounds(inside):
    ys, xs = np.nonzero(inside)
    return xs.min(), ys.min(), xs.max() + 1, ys.max() + 1


def cut_out(rgb, inside):
    """Colour times alpha, and alpha, [h,w,4] bytes. The polygon's corners are rounded, its edge is soft, and the colours
    beside it are those inside, carried outwards: what was behind the person would else be a halo."""
    blurred = Image.fromarray((inside * 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(2.2))
    alpha = np.clip((np.asarray(blurred, np.float32) / 255 - 0.55) * 3 + 0.5, 0, 1)
    inner = alpha > 0.97
    weight = np.asarray(Image.fromarray((inner * 255).astype(np.uint8)).filter(ImageFilter.BoxBlur(3)), np.float32)
    held = Image.fromarray((rgb * inner[..., None]).astype(np.uint8)).filter(ImageFilter.BoxBlur(3))
    carried = np.minimum(np.asarray(held, np.float32) * 255 / np.maximum(weight, 1)[..., None], 255)
    colour = np.where(inner[..., None] | (weight < 5)[..., None], rgb, carried)
    return np.round(np.concatenate([colour, np.full_like(alpha, 255)[..., None]], 2) * alpha[..., None]).astype(np.uint8)


def read_people(folder):
    """Cut-outs of held-out pictures: those whose polygons are of a whole body, upright, chosen by eye."""
    people = []
    for item in json.loads((folder / 'segment/index.json').read_text())['items']:
        if pathlib.Path(item['mask']).stem not in PEOPLE:
            continue
        if item['split'] != 'val':
            raise SystemExit(f"{item['mask']}: not held out")
        inside = np.asarray(Image.open(folder / 'segment' / item['mask'])) == 1
        rgb = np.asarray(Image.open(folder / 'segment' / item['image']).convert('RGB'))
        x0, y0, x1, y1 = bounds(inside)
        part = np.s_[max(0, y0 - 3):y1 + 3, max(0, x0 - 3):x1 + 3]
        people.append(cut_out(rgb[part], inside[part]))
    return people


def read_grounds(folder):
    """Held-out pictures that nobody is in."""
    coco = json.loads((folder / 'detect/annotations.json').read_text())
    shown = {a['image_id'] for a in coco['annotations']}
    return [Image.open(folder / 'detect' / image['file_name']).convert('RGB') for image in coco['images']
            if image['split'] == 'val' and image['id'] not in shown]


# ---- a clip ----

class Walker:
    """A person on a way: across the picture and back, with steps, swinging, nearer or farther."""

    def __init__(self, rng, person, pace):
        self.person = person if rng.random() < 0.5 else person[:, ::-1]
        self.pace, self.turn = pace, rng.choice([-1, 1])
        self.height = math.exp(rng.uniform(math.log(110), math.log(380)))
        self.at, self.foot = rng.uniform(0, 1), rng.uniform(0.75, 1.05) * HEIGHT
        self.near, self.near_at = rng.uniform(0, 0.35), rng.uniform(0, 2 * math.pi)
        self.step, self.bob, self.swing = rng.uniform(1.5, 2.2), rng.uniform(0.002, 0.012), rng.uniform(0, 0.06)

    def spot(self, t):
        """Centre of the feet, height in pixels and lean at t seconds."""
        height = self.height * math.exp(self.near * math.sin(self.near_at + 1.2 * t))
        wide = WIDTH + 0.8 * self.height  # it leaves the picture at one side and comes back at the other
        way = (self.at * wide + self.turn * self.pace * self.height * t) % wide
        phase = 2 * math.pi * self.step * t * (1.5 if self.pace > 1 else 1)
        foot = self.foot + 0.3 * (height - self.height) - self.bob * height * abs(math.sin(phase))
        return way - 0.4 * self.height, foot, height, self.swing * math.sin(phase)

    def reduced(self):
        """The cut-out no larger than it is ever seen: an affine map alone would leave out pixels."""
        most = self.height * math.exp(self.near)
        drawing, high = four(self.person), len(self.person)
        if high > most:
            drawing = drawing.resize((max(1, round(drawing.width * most / high)), round(most)), Image.BOX)
        return drawing


def lay(rgb, rest, drawing, spot, shift):
    """Over rgb [h,w,3] float; rest [h,w]: what is left of 1 behind all people."""
    x, foot, height, lean = spot
    x, foot = x + shift[0], foot + shift[1]
    scale = height / drawing.height
    half, lift = drawing.width * scale / 2 + abs(lean) * height + 2, height + 2
    x0, y0 = max(0, math.floor(x - half)), max(0, math.floor(foot - lift))
    x1, y1 = min(WIDTH, math.ceil(x + half)), min(HEIGHT, math.ceil(foot + 2))
    if x1 <= x0 or y1 <= y0:
        return
    # from a pixel of the box to one of the drawing; the feet stay where they are, the head leans
    slope = lean / scale
    inverse = (1 / scale, slope, (x0 - x) / scale + slope * (y0 - foot) + drawing.width / 2,
               0, 1 / scale, (y0 - foot) / scale + drawing.height)
    shown = drawing.transform((x1 - x0, y1 - y0), Image.AFFINE, inverse, Image.BILINEAR)
    shown = np.asarray(shown, np.float32)
    part, left = np.s_[y0:y1, x0:x1], 1 - shown[..., 3] / 255
    rgb[part] = rgb[part] * left[..., None] + shown[..., :3]
    rest[part] *= left


class Scene:
    def __init__(self, number, seed, people, grounds):
        self.rng = rng = np.random.default_rng([seed, number])
        ground = grounds[number % len(grounds)]
        if rng.random() < 0.5:
            ground = ground.transpose(Image.FLIP_LEFT_RIGHT)
        room = rng.uniform(1.15, 1.5)
        scale = room * max(WIDTH / ground.width, HEIGHT / ground.height)
        self.ground = ground.resize((round(ground.width * scale), round(ground.height * scale)), Image.BICUBIC)
        # the first paces are all there are in turn, so that a few clips have each
        chosen = rng.choice(len(people), min(len(people), int(rng.integers(2, 5))), replace=False)
        self.walkers = [Walker(rng, people[k], PACES[(number + i) % len(PACES)]) for i, k in enumerate(chosen)]
        self.walkers.sort(key=lambda w: w.foot)
        self.drawings = [w.reduced() for w in self.walkers]
        self.noise, self.hand = rng.uniform(1.5, 5), rng.uniform(0, 1.5)
        self.pan = rng.uniform(-12, 12) if rng.random() < 0.5 else 0.0  # pixels a second
        self.waves = rng.uniform([0.3, 0, 0.3, 0], [3, 6, 3, 6], (3, 4))

    def shake(self, t):
        """Of the camera, pixels each way."""
        across = sum(math.sin(2 * math.pi * f * t + p) for f, p, _, _ in self.waves) / 2
        down = sum(math.sin(2 * math.pi * f * t + p) for _, _, f, p in self.waves) / 2
        return self.hand * across + self.pan * t, self.hand * down

    def exposure(self, t):
        x, y = self.shake(t)
        room = self.ground.width - WIDTH, self.ground.height - HEIGHT
        seen = self.ground.transform((WIDTH, HEIGHT), Image.AFFINE,
                                     (1, 0, room[0] / 2 - x, 0, 1, room[1] / 2 - y), Image.BILINEAR)
        rgb, rest = np.asarray(seen, np.float32).copy(), np.ones((HEIGHT, WIDTH), np.float32)
        for walker, drawing in zip(self.walkers, self.drawings):
            lay(rgb, rest, drawing, walker.spot(t), (x, y))
        return rgb, 1 - rest

    def frame(self, number):
        """[h,w,3] and the matte [h,w], bytes."""
        times = [(number + 0.5 * i / EXPOSURES) / RATE for i in range(EXPOSURES)]
        rgb, matte = (np.mean(part, 0) for part in zip(*(self.exposure(t) for t in times)))
        rgb = rgb + self.rng.normal(0, self.noise, rgb.shape)
        return tuple(np.clip(np.round(part), 0, 255).astype(np.uint8) for part in (rgb, 255 * matte))


def write_clip(scene, frames, folder):
    truth = folder / 'gt'
    truth.mkdir(parents=True)
    encoder = subprocess.Popen(
        ['ffmpeg', '-v', 'error', '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-s', f'{WIDTH}x{HEIGHT}', '-r', str(RATE), '-i', '-',
         '-c:v', 'libx264', '-preset', 'medium', '-crf', '23', '-pix_fmt', 'yuv420p', '-threads', '1', folder / 'clip.mp4'],
        stdin=subprocess.PIPE)
    for number in range(frames):
        rgb, matte = scene.frame(number)
        encoder.stdin.write(rgb.tobytes())
        Image.fromarray(matte).save(truth / f'{number:06d}.png', compress_level=1)
    encoder.stdin.close()
    if encoder.wait():
        raise SystemExit('ffmpeg did not write the clip')


# ---- scores ----

def call(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def scored(args, clip, case, folder, truth=None, part=()):
    masks = folder / 'masks'
    call('rm', '-rf', masks)
    call(args.saccade, 'segment', clip, *part, *shlex.split(case), *args.model, '--device', 'cpu', '--threads', args.threads,
         '--as', 'png', '-o', masks, '--quiet')
    against = ['--gt', truth] if truth else []
    return json.loads(call(args.saccade, 'eval', '--json', *against, '--masks', masks, '--video', clip))['combined']


def truth_flicker(args, clip, truth):
    """Of the true mattes, which score 0 only where all motion is one of whole pixels and whole blocks."""
    return json.loads(call(args.saccade, 'eval', '--json', '--masks', truth, '--video', clip))['combined']['flicker']


def interval(values, seed=1, rounds=10000):
    """Mean and 95 % bootstrap interval over the clips."""
    drawn = np.random.default_rng(seed).choice(values, (rounds, len(values))).mean(1)
    return values.mean(), *np.percentile(drawn, [2.5, 97.5])


# What eval calls it, the column's head, and what it is shown in.
COLUMNS = {'iou_mean': ('IoU', 100), 'boundary_f': ('boundary F', 100), 'mse': ('MSE * 1000', 1000), 'flicker': ('flicker', 100)}


def cells(found, first):
    """Means of one setting and their differences to the first."""
    row = []
    for name, (_, unit) in COLUMNS.items():
        values, base = (unit * np.array([s[name] for s in part]) for part in (found, first))
        row.append(f'{values.mean():.1f}')
        if found is not first:
            row[-1] += ' ({:+.2f}, {:+.2f} to {:+.2f})'.format(*interval(values - base))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--saccade', default=str(ROOT / 'build/src/cli/saccade'))
    parser.add_argument('--data', type=pathlib.Path, default=SHARED / 'data/train', help='folder with detect/ and segment/')
    parser.add_argument('--model', help='another network than person_seg')
    parser.add_argument('--clips', type=int, default=24)
    parser.add_argument('--frames', type=int, default=60)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--real', nargs='*', default=[], help='clips of which the flicker is asked alone; of each the first 20 s')
    parser.add_argument('--keep', type=pathlib.Path, help='the clips stay there')
    parser.add_argument('--json', type=pathlib.Path, help='write all scores there')
    parser.add_argument('cases', nargs='*', help='options of segment, a setting each; the first is what others are compared with')
    args = parser.parse_args()
    args.model = ['--model', args.model] if args.model else []
    cases, real = args.cases or CASES, {pathlib.Path(clip).stem: clip for clip in args.real}
    with tempfile.TemporaryDirectory() as work:
        folder = args.keep or pathlib.Path(work)
        people, grounds = read_people(args.data), read_grounds(args.data)
        print(f'{args.clips} clips of {args.frames} frames, {len(people)} people, {len(grounds)} pictures behind them\n')
        scores, true = {case: [] for case in cases}, []
        for number in range(args.clips):
            here = folder / f'{number:02d}'
            if not here.exists():
                write_clip(Scene(number, args.seed, people, grounds), args.frames, here)
            for case in cases:
                scores[case].append(scored(args, here / 'clip.mp4', case, pathlib.Path(work), here / 'gt'))
            true.append(truth_flicker(args, here / 'clip.mp4', here / 'gt'))
            if args.json:
                args.json.write_text(json.dumps({'clips': scores}) + '\n')
        steady = {case: {name: scored(args, clip, case, pathlib.Path(work), part=('--duration', 20))['flicker']
                         for name, clip in real.items()} for case in cases}
    head = ['setting', *(shown for shown, _ in COLUMNS.values()), *(f'flicker, {name}' for name in real)]
    print('| ' + ' | '.join(head) + ' |\n|' + ' --- |' * len(head))
    for case in cases:
        row = [f'`{case}`', *cells(scores[case], scores[cases[0]]), *(f'{100 * v:.1f}' for v in steady[case].values())]
        print('| ' + ' | '.join(row) + ' |')
    print('\nflicker of the true mattes: {:.1f} ({:.1f} to {:.1f})'.format(*interval(100 * np.array(true))))
    if args.json:
        args.json.write_text(json.dumps({'clips': scores, 'real': steady, 'true_flicker': true}) + '\n')


if __name__ == '__main__':
    main()
