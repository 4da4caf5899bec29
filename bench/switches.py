#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each switch of a run is worth: whole runs of `saccade track`, all settings of a switch in turns in one call.

    python3 bench/switches.py CLIP [--device cpu|cuda] [--rounds N] [--duration S] [--streams N] [--only SWITCH ...]
                              [--budget S] [--json FILE]

--rounds    turns of each setting (default 5)
--duration  seconds of the clip (default 3)
--streams   the clip as so many inputs at once (default 1 on a CPU, 8 on a GPU)
--only      of: {names}
--budget    no round begins after so many seconds; a table says how many it had (default: no end)
--json      a file to which a line of JSON per setting is added, for bench/results

Frames/s are frames over the seconds between the run's start and end, without what opening took; those of "processes"
are over all the seconds of the program, opening included, and of the clip as four inputs unless --streams says more. A setting's ratio is
the median over the rounds of its frames/s over the first setting's in the same round, beside the least and the most.
There is no table for mmap: a model's file is always mapped, nothing reads it otherwise.
"simd" is of saccade's own loops: oneDNN, where it is found, chooses its own. What else can be left out is in
bench/ablation.py.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER / 'gpu'))
import host  # noqa: E402

WITHOUT = 'SACCADE_WITHOUT'
ANY, CPU, GPU = ('cpu', 'cuda'), ('cpu',), ('cuda',)
# name: (devices, {setting: (options, environment)}); the first setting is what the others are compared with
SWITCHES = {
    'uploads': (GPU, {'page-locked': (['--decode', 'cpu'], {}),
                      'pageable': (['--decode', 'cpu'], {WITHOUT: 'page-locked'})}),
    'prefetch': (ANY, {f'{n} frames': (['--prefetch', n], {}) for n in (4, 0, 1, 16)}),
    'simd': (CPU, {'best': ([], {}), 'avx512': ([], {'SACCADE_CPU': 'avx512'}), 'avx2': ([], {'SACCADE_CPU': 'avx2'}),
                   'plain C': ([], {'SACCADE_CPU': 'ref'})}),
    'batching': (ANY, {f'up to {n}': (['--max-batch', n], {}) for n in (1, 4, 16)}),
    'threads': (ANY, {f'{n} thread{"s" * (n > 1)}': (['--threads', n], {}) for n in (1, 2, 4)}),
    'processes': (CPU, {'1, of 2 threads': (['--threads', 2], {}),
                        **{f'{n}, of 1 thread': (['--threads', 1, '--processes', n], {}) for n in (1, 2, 4)}}),
    'queue': (ANY, {f'{n} frames': (['--queue-length', n], {}) for n in (4, 1, 16)}),
    'graph': (GPU, {'captured': ([], {}), 'step by step': ([], {WITHOUT: 'cuda-graph'})}),
    'pool': (ANY, {'pool': ([], {}), 'none': ([], {WITHOUT: 'buffer-pool'})}),
}


def run(args, folder, options, changes):
    """Frames a second of one run."""
    stats = folder / 'stats.json'
    command = [host.SACCADE, 'track', *[args.clip] * args.streams, '--device', args.device, '--quiet',
               '--jsonl', 'none', '--duration', args.duration, '--stats', stats, *options]
    env = host.environment() | {'SACCADE_CACHE': str(folder / 'cache')} | changes
    done = subprocess.run(list(map(str, command)), env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f'bench/switches.py: {" ".join(map(str, command))}: {done.stderr.strip()}')
    read = json.loads(stats.read_text())
    return read['frames'] / read['elapsed_s']


def run_whole(args, folder, options, changes):
    """The same, over the time of the whole program: several processes have no statistics in common."""
    streams = max(args.streams, 4)
    command = [host.SACCADE, 'track', *[args.clip] * streams, '--device', args.device, '--quiet', '--jsonl',
               folder / '{index}.jsonl', '--duration', args.duration, *options]
    env = host.environment() | {'SACCADE_CACHE': str(folder / 'cache')} | changes
    begun = time.monotonic()
    done = subprocess.run(list(map(str, command)), env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    took = time.monotonic() - begun
    if done.returncode:
        sys.exit(f'bench/switches.py: {" ".join(map(str, command))}: {done.stderr.strip()}')
    frames = sum((folder / f'{i + 1}.jsonl').read_bytes().count(b'\n') - 1 for i in range(streams))
    return frames / took


def measure(args, folder, settings, ends, run):
    """{setting: [frames a second of each round]}; the first round makes plans, and is not counted."""
    rates = {name: [] for name in settings}
    for turn in range(args.rounds + 1):
        if turn > 1 and time.monotonic() > ends:
            break
        names = list(settings) if turn % 2 else list(reversed(settings))
        for name in names:
            rate = run(args, folder, *settings[name])
            if turn:
                rates[name].append(rate)
    return rates


def rows_of(switch, rates):
    first = next(iter(rates.values()))
    for name, found in rates.items():
        ratios = [rate / base for rate, base in zip(found, first)]
        yield {'switch': switch, 'setting': name, 'rounds': len(found),
               'frames_per_s': round(statistics.median(found), 2), 'ratio': round(statistics.median(ratios), 3),
               'least': round(min(ratios), 3), 'most': round(max(ratios), 3)}


def show(switch, rows):
    print(f'{switch}, {rows[0]["rounds"]} rounds\n')
    print('| setting | frames/s | times | least to most |\n| --- | --- | --- | --- |')
    for row in rows:
        print(f'| {row["setting"]} | {row["frames_per_s"]:.1f} | {row["ratio"]:.2f} | '
              f'{row["least"]:.2f} to {row["most"]:.2f} |')
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.format(names=', '.join(SWITCHES)),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('clip')
    parser.add_argument('--device', choices=ANY, default='cpu')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--duration', type=float, default=3)
    parser.add_argument('--streams', type=int)
    parser.add_argument('--only', nargs='*', choices=SWITCHES, default=list(SWITCHES))
    parser.add_argument('--budget', type=float, default=float('inf'))
    parser.add_argument('--json')
    args = parser.parse_args()
    args.rounds = max(args.rounds, 1)
    args.streams = args.streams or (1 if args.device == 'cpu' else 8)
    ends = time.monotonic() + args.budget
    about = {'about': 'bench/switches.py', 'date': datetime.date.today().isoformat(), 'device': args.device,
             'streams': args.streams, 'clip': pathlib.Path(args.clip).name, 'duration_s': args.duration}
    with tempfile.TemporaryDirectory() as name:
        for switch in args.only:
            devices, settings = SWITCHES[switch]
            if args.device not in devices:
                continue
            if time.monotonic() > ends:
                print(f'{switch}: left out, the budget is spent')
                continue
            rows = list(rows_of(switch, measure(args, pathlib.Path(name), settings, ends,
                                                run_whole if switch == 'processes' else run)))
            show(switch, rows)
            if args.json:
                with open(args.json, 'a') as file:
                    file.writelines(json.dumps(about | row) + '\n' for row in rows)


if __name__ == '__main__':
    main()
