#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the switches that save work give and cost, on clips: each is run in turn with none of them, round after round.
Prints the tables of docs/techniques.md. Speed: frames a second by the CPU time of a run, start left out, as other
programs disturb that least; the median of the rounds. Cost: HOTA for tracks; mattes are compared with those of the run
without switches (IoU of all pixels, boundary F), and their flicker is that of eval. Needs onnx for the small network,
which is person_seg with an input of 192 x 192.

    bench/techniques.py [--saccade build/src/cli/saccade] [--clip vtest.avi] [--mot DIR] [--rounds N] [--json FILE]
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
        options = [self.small if option == 'SMALL' else option for option in options]
        stats = self.folder / 'stats.json'
        command = [self.program, verb, clip, *options, *outputs, '--threads', self.threads, '--decode-threads', 1,
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
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--only', nargs='*', default=['track', 'segment', 'padding'])
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
        if 'padding' in args.only:
            clip = clips['TUD-Stadtmitte'][0]
            rows['padding'] = padding(bench, 'TUD-Stadtmitte', clip, [], args.rounds)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1) + '\n')


if __name__ == '__main__':
    main()
