#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the switches that save work give and cost, on clips: each is run in turn with none of them, round after round.
Prints the tables of docs/techniques.md. Speed: frames a second by the CPU time of a run, start left out, as other
programs disturb that least; the median of the rounds. Cost: HOTA for tracks; mattes are compared with those of the run
without switches (IoU of all pixels, boundary F), and their flicker is that of eval. Mattes at several scales are
compared with the truth instead: with the held-out pictures' masks, and with the boxes of the clips. Needs onnx for the
small network, which is person_seg with an input of 192 x 192, and numpy and Pillow for scales.

    bench/techniques.py [--saccade build/src/cli/saccade] [--clip vtest.avi] [--mot DIR] [--masks DIR] [--rounds N]
                        [--only track segment scales padding] [--json FILE]
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get('SACCADE_SHARED', ROOT / '../shared'))

TRACK = {'none': [], 'skip-still 0.01': ['--skip-still', 0.01], 'skip-still 0.01, skip-max 1':
         ['--skip-still', 0.01, '--skip-max', 1], 'skip-still 0.003': ['--skip-still', 0.003]}
SEGMENT = {'none': [], 'skip-still 0.01': ['--skip-still', 0.01], 'skip-still 0.01, skip-max 1':
           ['--skip-still', 0.01, '--skip-max', 1], 'skip-still 0.003': ['--skip-still', 0.003], 'region': ['--region'],
           'region, margin 0.1': ['--region', '--region-margin', 0.1], 'small-model': ['--small-model', 'SMALL'],
           'small-model 0.96': ['--small-model', 'SMALL', '--small-confidence', 0.96],
           'small-model 0.96, region': ['--small-model', 'SMALL', '--small-confidence', 0.96, '--region',
                                        '--region-margin', 0.1],
           'small network alone': ['--model', 'SMALL']}
FINE = ['--small-model', 'SAME', '--small-confidence', 0.98, '--region']
SCALES = {'none': [], 'scales 1,1.75': ['--scales', '1,1.75'], 'scales 0.5,1,1.75': ['--scales', '0.5,1,1.75'],
          'scales 0.5,1,2': ['--scales', '0.5,1,2'], 'small-model itself 0.98, region': FINE,
          'small-model itself 0.98, region, scales 1,1.75': [*FINE, '--scales', '1,1.75']}
PADDING = {how: ['--max-batch', 8, '--batch-padding', how] for how in ('auto', 'none', 'power', 'full')}


def small_network(path):
    """person_seg for another size of input: its Resize nodes scale by factors."""
    import onnx
    model = onnx.load(ROOT / 'models/person_seg.onnx')
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value == 320:
                dim.dim_value = 192
    onnx.save(model, path)
    return path


class Bench:
    def __init__(self, args, folder):
        self.program, self.threads, self.folder = args.saccade, args.threads, pathlib.Path(folder)
        self.small = small_network(self.folder / 'small.onnx')

    def run(self, verb, clip, options, *outputs):
        clips = clip if isinstance(clip, list) else [clip]
        model = options[options.index('--model') + 1] if '--model' in options else 'person_seg'
        options = [{'SMALL': self.small, 'SAME': model}.get(option, option) for option in options]
        stats = self.folder / 'stats.json'
        command = [self.program, verb, *clips, *options, *outputs, '--threads', self.threads, '--decode-threads', 1,
                   '--stats', stats, '--quiet']
        subprocess.run([str(word) for word in command], check=True)
        return json.loads(stats.read_text())

    def start_s(self, verb, clip, options, *outputs):
        """CPU seconds before the first frame."""
        return self.run(verb, clip, [*options, '--duration', 0.05], *outputs)['cpu_s']

    def score(self, *args):
        run = subprocess.run([self.program, 'eval', '--json', *map(str, args)], check=True, capture_output=True, text=True)
        return json.loads(run.stdout)


def timed(bench, verb, clip, cases, rounds, *outputs):
    """{case: (frames/s, its statistics)}, the cases in turn."""
    rates, stats, start = {name: [] for name in cases}, {}, {}
    for name, options in cases.items():
        start[name] = bench.start_s(verb, clip, options, *outputs)
    for _ in range(rounds):
        for name, options in cases.items():
            stats[name] = bench.run(verb, clip, options, *outputs)
            rates[name].append(stats[name]['frames'] / max(stats[name]['cpu_s'] - start[name], 1e-3))
    return {name: (statistics.median(rates[name]), stats[name]) for name in cases}


def acted(stats):
    """How often it did, of all frames."""
    said, n = stats['savings'], stats['frames']
    words = []
    if said['still']:
        words.append(f"{said['still']} of {n} skipped")
    if said['regions']:
        words.append(f"{said['regions']} of {n} in part ({100 * said['region_share']:.0f} % of the frame)")
    if said['small'] or said['large']:
        words.append(f"{said['small']} of {n} by the small one")
    if said['scales']:
        words.append(f"{said['scales']} of {n} in {said['looks'] // said['scales']} images")
    return ', '.join(words) or '-'


def table(head, rows):
    print('| ' + ' | '.join(head) + ' |')
    print('| ' + ' | '.join('---' for _ in head) + ' |')
    for row in rows:
        print('| ' + ' | '.join(row) + ' |')
    print(flush=True)


def track(bench, name, clip, truth, rounds):
    tracks = bench.folder / 'tracks.txt'
    found = timed(bench, 'track', clip, TRACK, rounds, '--mot', tracks)
    rows, none = [], found['none'][0]
    for case, (rate, stats) in found.items():
        bench.run('track', clip, TRACK[case], '--mot', tracks)
        s = bench.score('--gt', truth, '--tracks', tracks)['sequences'][0]
        rows.append((case, f'{rate:.1f}', f'{rate / none:.2f}', acted(stats), f"{100 * s['hota']:.1f}",
                     f"{100 * s['mota']:.1f}", f"{100 * s['idf1']:.1f}", str(s['idsw'])))
    print(f'{name}, track\n')
    table(('switch', 'frames/s', 'times', 'acted', 'HOTA', 'MOTA', 'IDF1', 'IDSW'), rows)
    return rows


def segment(bench, name, clip, part, rounds):
    found = timed(bench, 'segment', clip, {k: [*v, *part] for k, v in SEGMENT.items()}, rounds, '--as', 'none')
    rows, none = [], found['none'][0]
    for case, (rate, stats) in found.items():
        masks = bench.folder / name / case.replace(' ', '_')
        bench.run('segment', clip, [*SEGMENT[case], *part], '--as', 'png', '-o', masks)
        s = bench.score('--gt', bench.folder / name / 'none', '--masks', masks)['combined']
        flicker = bench.score('--masks', masks, '--video', clip)['combined']['flicker']
        rows.append((case, f'{rate:.1f}', f'{rate / none:.2f}', acted(stats), f"{100 * s['iou']:.1f}",
                     f"{100 * s['boundary_f']:.1f}", '-' if flicker is None else f'{1000 * flicker:.0f}'))
    print(f'{name}, segment\n')
    table(('switch', 'frames/s', 'times', 'acted', 'IoU', 'boundary F', 'flicker / 1000'), rows)
    return rows


def mattes(folder):
    import numpy
    from PIL import Image
    for path in sorted(folder.glob('*.png')):
        yield numpy.array(Image.open(path)) >= 128


def in_boxes(folder, truth):
    """Of the true boxes the part that is covered by a fifth at least; of the mattes that in boxes."""
    import numpy
    boxes = {}
    for line in truth.read_text().split():
        frame, _, left, top, width, height = (float(v) for v in line.split(',')[:6])
        boxes.setdefault(int(frame), []).append([max(int(v), 0) for v in (left, top, left + width, top + height)])
    covered, inside, pixels = [], 0, 0
    for i, matte in enumerate(mattes(folder)):
        marked = numpy.zeros_like(matte)
        for x0, y0, x1, y1 in boxes.get(i + 1, []):
            covered.append(matte[y0:y1, x0:x1].mean() >= 0.2)
            marked[y0:y1, x0:x1] = True
        inside += (matte & marked).sum()
        pixels += matte.sum()
    return numpy.mean(covered), inside / max(pixels, 1)


def scales_of_clip(bench, name, clip, part, truth, rounds):
    found = timed(bench, 'segment', clip, {k: [*v, *part] for k, v in SCALES.items()}, rounds, '--as', 'none')
    rows, none = [], found['none'][0]
    for case, (rate, stats) in found.items():
        folder = bench.folder / name / 'scales' / case.replace(' ', '_')
        bench.run('segment', clip, [*SCALES[case], *part], '--as', 'png', '-o', folder)
        flicker = bench.score('--masks', folder, '--video', clip)['combined']['flicker']
        covered, inside = in_boxes(folder, truth)
        rows.append((case, f'{rate:.1f}', f'{rate / none:.2f}', acted(stats), f'{100 * covered:.1f}',
                     f'{100 * inside:.1f}', '-' if flicker is None else f'{1000 * flicker:.0f}'))
    print(f'{name}, scales\n')
    table(('switch', 'frames/s', 'times', 'acted', 'boxes covered', 'matte in boxes', 'flicker / 1000'), rows)
    return rows


def overlaps(folder, truths):
    """Of each picture: how much of it people cover; the pixels that are matte and people, and either."""
    import numpy
    from PIL import Image
    for matte, path in zip(mattes(folder), truths, strict=True):
        truth = numpy.array(Image.open(path))
        known, people = truth != 255, (truth > 0) & (truth != 255)
        matte = matte & known
        yield people.sum() / max(known.sum(), 1), (matte & people).sum(), (matte | people).sum()


def scales_of_pictures(bench, masks, model):
    """Held-out pictures, as train/ scores them: by how much the mean IoU differs, with a bootstrap interval."""
    import numpy
    items = [i for i in json.loads((masks / 'index.json').read_text())['items'] if i['split'] == 'val']
    pictures, truths = ([(masks / i[key]).resolve() for i in items] for key in ('image', 'mask'))
    rows, before, none = [], None, None
    for case, options in SCALES.items():
        folder = bench.folder / 'pictures' / model / case.replace(' ', '_')
        options = [*options, '--model', model, '--smooth', 0]
        stats = bench.run('segment', pictures, options, '--as', 'png', '-o', f'{folder}/')
        rate = stats['frames'] / max(stats['cpu_s'] - bench.start_s('segment', pictures[0], options, '--as', 'none'), 1e-3)
        none = none or rate
        share, both, either = (numpy.array(v) for v in zip(*overlaps(folder, truths)))
        large = share >= 0.05
        iou = both[large] / either[large]
        before = iou if before is None else before
        draws = numpy.random.default_rng(1).integers(0, len(iou), (2000, len(iou)))
        low, high = numpy.percentile((iou - before)[draws].mean(axis=1), [2.5, 97.5])
        rows.append((case, f'{rate / none:.2f}', acted(stats), f'{100 * iou.mean():.1f}',
                     '-' if case == 'none' else f'{100 * low:+.1f} to {100 * high:+.1f}',
                     f'{100 * both[large].sum() / either[large].sum():.1f}', f'{100 * both.sum() / either.sum():.1f}'))
    print(f'{model}, held-out pictures with masks, people cover 5 % of {large.sum()} of {len(large)}\n')
    table(('switch', 'speed, times', 'acted', 'IoU', 'difference (95 %)', 'IoU, pooled', 'pooled, all pictures'), rows)
    return rows


def padding(bench, name, clip, part, rounds):
    rows = []
    for verb, output in (('track', ('--detector', 'person_det_fast', '--reid', 'none', '--jsonl', 'none')),
                         ('segment', ('--as', 'none'))):
        # frames of a camera, in batches of whatever came meanwhile
        cases = {k: [*v, *part, '--batch-timeout', 60, '--realtime'] for k, v in PADDING.items()}
        for how, (rate, stats) in timed(bench, verb, clip, cases, rounds, *output).items():
            b = stats['batches']
            rows.append((verb, how, f'{rate:.1f}', f"{b['count']}", f"{b['mean']:.1f}", f"{b['padded']}"))
    print(f'{name}, batches of up to 8 frames in real time\n')
    table(('verb', 'batch-padding', 'frames/s', 'runs', 'frames in one', 'padded'), rows)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--saccade', default=str(ROOT / 'build/src/cli/saccade'))
    parser.add_argument('--clip', default=ROOT / 'build/clips/vtest.avi', help='vtest.avi: the frames of PETS09-S2L1')
    parser.add_argument('--mot', type=pathlib.Path, default=SHARED / 'data/mot')
    parser.add_argument('--masks', type=pathlib.Path, default=SHARED / 'data/train/segment')
    parser.add_argument('--models', nargs='*', default=['person_seg', 'person_matte'], help='for scales of pictures')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--only', nargs='*', default=['track', 'segment', 'scales', 'padding'])
    parser.add_argument('--json', help='write the rows there as well')
    args = parser.parse_args()
    clips = {'TUD-Stadtmitte': (args.mot / 'TUD-Stadtmitte/TUD-Stadtmitte.mp4', []),
             'PETS09-S2L1': (pathlib.Path(args.clip), ['--duration', 20])}
    rows = {'date': datetime.date.today().isoformat(), 'threads': args.threads, 'rounds': args.rounds}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, folder)
        for name, (clip, part) in clips.items():
            if 'track' in args.only:
                rows[f'{name} track'] = track(bench, name, clip, args.mot / name / 'gt.txt', args.rounds)
            if 'segment' in args.only:
                rows[f'{name} segment'] = segment(bench, name, clip, part, args.rounds)
            if 'scales' in args.only:
                rows[f'{name} scales'] = scales_of_clip(bench, name, clip, part, args.mot / name / 'gt.txt', args.rounds)
        for model in args.models if 'scales' in args.only else []:
            rows[f'{model} scales'] = scales_of_pictures(bench, args.masks, model)
        if 'padding' in args.only:
            clip = clips['TUD-Stadtmitte'][0]
            rows['padding'] = padding(bench, 'TUD-Stadtmitte', clip, [], args.rounds)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1) + '\n')


if __name__ == '__main__':
    main()
