#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`saccade optimize` beside a grid of 24 settings that is measured whole, on one load.

    python3 bench/tuner.py CLIP [--streams N] [--frames N] [--device cpu|cuda] [--budget S] [--rounds N] [--turns N]
                           [--trial S] [--grid-seconds S] [--only-grid TUNED.yaml] [--report FILE.html] [--json FILE] [-- OPTION ...]

--streams       the clip as so many inputs at once (default 1)
--frames        of each input: the clip is repeated (default 300)
--budget        seconds that the search may take (default 120)
--trial         seconds of each of its runs (default 2)
--rounds        of the grid (default 2), each in another order
--turns         of the default, the tuned settings and the grid's best three, one after the other (default 5)
--grid-seconds  no round and no turn begins after so many (default: no end)
--only-grid     settings of an earlier search: none is made
--report        a profile of the load with the tuned settings
--json          a file to which a line of JSON is added for each setting, and one for all, for bench/results
OPTION ...      of `saccade track`, for all runs: the network, and what the search begins with

The grid on a GPU: batches of up to 1, 8, 16, 32; queues of 2, 4, 8 frames; the network's inputs on its stream or beside
it. On a CPU: 1, 2 threads; batches of up to 1, 2, 4, 8; queues of 2, 4, 8. The first round makes plans, and is not
counted; a grid's frames/s are the medians of the others, and drift by some percent from its first point to its last. So
the ratios are those of the turns, medians of each turn's own: tuned_over_best is the least of those to the best three.
"""
import argparse
import datetime
import itertools
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER / 'gpu')]
import host  # noqa: E402
from loop import loop  # noqa: E402

GRIDS = {'cuda': {'--max-batch': (1, 8, 16, 32), '--queue-length': (2, 4, 8), '--preprocess-streams': (1, 2)},
         'cpu': {'--threads': (1, 2), '--max-batch': (1, 2, 4, 8), '--queue-length': (2, 4, 8)}}


LONG_S = 300  # no run takes as long
BEST = 3  # of the grid's points that are measured once more


def frames_per_s(args, options):
    return host.track(args.inputs, '--device', args.device, *args.options, '--jsonl', 'none', *options, timeout=LONG_S,
                      folder=args.folder)['fps']


def saccade(args, verb, timeout, *options):
    command = [host.SACCADE, verb, *args.inputs, '--device', args.device, *args.options, *options]
    return host.execute(command, timeout)[0]


def settings_of(args, tuned):
    grid = GRIDS[args.device]
    points = {' '.join(f'{key[2:]} {value}' for key, value in zip(grid, values)):
              [word for pair in zip(grid, values) for word in pair] for values in itertools.product(*grid.values())}
    return {'default': [], 'tuned': ['--config', tuned]} | points


def measure(args, settings, rounds, begun):
    """{setting: [frames/s of each round]}; all have the same number of rounds, one at least."""
    found = {name: [] for name in settings}
    for turn in range(rounds):
        if turn and time.monotonic() - begun > args.grid_seconds:
            break
        for name in random.Random(turn).sample(list(settings), len(settings)):
            found[name].append(frames_per_s(args, settings[name]))
    return found


def over(found, name):
    return round(statistics.median(a / b for a, b in zip(found['tuned'], found[name])), 3)


def medians(found):
    return {name: round(statistics.median(turns), 1) for name, turns in found.items()}


def compare(args, settings):
    begun = time.monotonic()
    grid = {name: options for name, options in settings.items() if name not in ('default', 'tuned')}
    measure(args, settings, 1, begun)
    rounds = measure(args, grid, args.rounds, begun)
    rates = medians(rounds)
    best = sorted(grid, key=rates.get, reverse=True)[:BEST]
    turns = measure(args, {name: settings[name] for name in ('default', 'tuned', *best)}, args.turns, begun)
    found = medians(turns)
    nearest = min(best, key=lambda name: over(turns, name))
    return rounds, turns, {'grid': len(grid), 'rounds': len(rounds[best[0]]), 'turns': len(turns['tuned']), 'best': nearest,
                           'tuned_over_best': over(turns, nearest), 'tuned_over_default': over(turns, 'default'),
                           'tuned_fps': found['tuned'], 'best_fps': found[nearest], 'default_fps': found['default'],
                           'worst_fps': min(rates.values())}


def prepare(args):
    clip = args.folder / 'clip.mp4'
    loop(pathlib.Path(args.clip), clip, args.frames)
    args.inputs = host.inputs(clip, args.streams, args.folder)
    os.environ['SACCADE_CACHE'] = str(args.folder / 'cache')


def search(args):
    tuned = args.folder / 'tuned.yaml'
    begun = time.monotonic()
    said = saccade(args, 'optimize', LONG_S + 2 * args.budget, '-o', tuned, '--goal', 'fps', '--budget', args.budget, '--trial', args.trial)
    print(said.strip().splitlines()[-1] if said.strip() else '', flush=True)
    keys = [line for line in tuned.read_text().splitlines() if line and not line.startswith('#')]
    return tuned, {'search_s': round(time.monotonic() - begun, 1), 'settings': keys}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('clip')
    parser.add_argument('--streams', type=int, default=1)
    parser.add_argument('--frames', type=int, default=300)
    parser.add_argument('--device', choices=GRIDS, default='cpu')
    parser.add_argument('--budget', type=float, default=120)
    parser.add_argument('--trial', type=float, default=2)
    parser.add_argument('--rounds', type=int, default=2)
    parser.add_argument('--turns', type=int, default=5)
    parser.add_argument('--grid-seconds', type=float, default=float('inf'))
    parser.add_argument('--only-grid')
    parser.add_argument('--report')
    parser.add_argument('--json')
    parser.add_argument('options', nargs='*')
    args = parser.parse_intermixed_args()
    args.rounds, args.turns = max(args.rounds, 1), max(args.turns, 1)
    about = {'about': 'bench/tuner.py', 'commit': host.commit(), 'date': datetime.date.today().isoformat(), 'device': args.device,
             'gpu': host.NVML.name(), 'driver': host.NVML.driver(), 'clip': pathlib.Path(args.clip).name,
             'streams': args.streams, 'frames': args.frames, 'options': args.options}
    with tempfile.TemporaryDirectory() as name:
        args.folder = pathlib.Path(name)
        prepare(args)
        tuned, what = (args.only_grid, {}) if args.only_grid else search(args)
        rounds, turns, whole = compare(args, settings_of(args, tuned))
        if args.report:
            saccade(args, 'profile', LONG_S, '--config', tuned, '-o', args.report)
        rows = [{'setting': name, 'of': of, 'fps': round(statistics.median(found[name]), 1), 'runs': [round(v, 1) for v in found[name]]}
                for of, found in (('grid', rounds), ('turns', turns)) for name in found]
        for row in sorted(rows, key=lambda row: (row['of'], -row['fps'])):
            print(f'{row["of"]:5} {row["fps"]:10.1f}  {row["setting"]}')
        print(json.dumps(whole | what), flush=True)
        if args.json:
            with open(args.json, 'a') as file:
                file.writelines(json.dumps(about | row) + '\n' for row in [*rows, whole | what])


if __name__ == '__main__':
    try:
        main()
    except host.Failed as failed:
        sys.exit(f'bench/tuner.py: {failed}')
