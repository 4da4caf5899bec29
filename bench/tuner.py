#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`saccade optimize` beside a grid of 24 settings that is measured whole, on one load.

    python3 bench/tuner.py CLIP [--streams N] [--frames N] [--device cpu|cuda] [--budget S] [--rounds N]
                           [--trial S] [--grid-seconds S] [--only-grid TUNED.yaml] [--report FILE.html] [--json FILE] [-- OPTION ...]

--streams       the clip as so many inputs at once (default 1)
--frames        of each input: the clip is repeated (default 300)
--budget        seconds that the search may take (default 120)
--trial         seconds of each of its runs (default 2)
--rounds        turns of each setting (default 3), the grid's with the default's and the tuned one's, in changing order
--grid-seconds  no round begins after so many (default: no end)
--only-grid     settings of an earlier search: none is made
--report        a profile of the load with the tuned settings
--json          a file to which a line of JSON is added for each setting, and one for all, for bench/results
OPTION ...      of `saccade track`, for all runs: the network, and what the search begins with

The grid on a GPU: batches of up to 1, 8, 16, 32; queues of 2, 4, 8 frames; the network's inputs on its stream or beside
it. On a CPU: 1, 2 threads; batches of up to 1, 2, 4, 8; queues of 2, 4, 8. Frames/s are medians of the rounds; the first
round makes plans, and is not counted. "of the best" is the tuned settings' frames/s over those of the grid's best point,
the median of the ratios of each round.
"""
import argparse
import datetime
import itertools
import json
import os
import pathlib
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


def measure(args, settings):
    """{setting: [frames/s of each round]}; all have the same number of rounds."""
    found = {name: [] for name in settings}
    begun = time.monotonic()
    for turn in range(args.rounds + 1):
        if turn > 1 and time.monotonic() - begun > args.grid_seconds:
            break
        for name in sorted(settings, reverse=turn % 2):
            rate = frames_per_s(args, settings[name])
            if turn:
                found[name].append(rate)
    return found


def over(found, name):
    return round(statistics.median(a / b for a, b in zip(found['tuned'], found[name])), 3)


def compare(found):
    rates = {name: statistics.median(turns) for name, turns in found.items()}
    points = [name for name in found if name not in ('default', 'tuned')]
    best = max(points, key=rates.get)
    return rates, {'grid': len(points), 'rounds': len(found['tuned']), 'best': best, 'tuned_over_best': over(found, best),
                   'tuned_over_default': over(found, 'default'), 'tuned_fps': round(rates['tuned'], 1), 'best_fps': round(rates[best], 1),
                   'default_fps': round(rates['default'], 1), 'worst_fps': round(min(rates[name] for name in points), 1)}


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
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--grid-seconds', type=float, default=float('inf'))
    parser.add_argument('--only-grid')
    parser.add_argument('--report')
    parser.add_argument('--json')
    parser.add_argument('options', nargs='*')
    args = parser.parse_intermixed_args()
    args.rounds = max(args.rounds, 1)
    about = {'about': 'bench/tuner.py', 'commit': host.commit(), 'date': datetime.date.today().isoformat(), 'device': args.device,
             'gpu': host.NVML.name(), 'driver': host.NVML.driver(), 'clip': pathlib.Path(args.clip).name,
             'streams': args.streams, 'frames': args.frames, 'options': args.options}
    with tempfile.TemporaryDirectory() as name:
        args.folder = pathlib.Path(name)
        prepare(args)
        tuned, what = (args.only_grid, {}) if args.only_grid else search(args)
        found = measure(args, settings_of(args, tuned))
        rates, whole = compare(found)
        if args.report:
            saccade(args, 'profile', LONG_S, '--config', tuned, '-o', args.report)
        rows = [{'setting': key, 'fps': round(value, 1), 'turns': [round(v, 1) for v in found[key]]} for key, value in rates.items()]
        for row in sorted(rows, key=lambda row: -row['fps']):
            print(f'{row["fps"]:10.1f}  {row["setting"]}')
        print(json.dumps(whole | what), flush=True)
        if args.json:
            with open(args.json, 'a') as file:
                file.writelines(json.dumps(about | row) + '\n' for row in [*rows, whole | what])


if __name__ == '__main__':
    try:
        main()
    except host.Failed as failed:
        sys.exit(f'bench/tuner.py: {failed}')
