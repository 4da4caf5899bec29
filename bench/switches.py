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
are over all the seconds of the program, opening included, and of the clip as four inputs unless --streams says more.
Those of "mmap" are too, of the clip as an array of 1920x1080 (ffmpeg makes it; 6.2 MB a frame); before each run of
"mmap-cold" the system drops what it has of that file. MB is the most memory that the process had. A setting's ratio is
the median over the rounds of its frames/s over the first setting's in the same round, beside the least and the most.
A model's file is always mapped, nothing reads it otherwise.
"simd" is of saccade's own loops: oneDNN, where it is found, chooses its own. What else can be left out is in
bench/ablation.py.
"""
import argparse
import datetime
import functools
import json
import os
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
    'mmap': (CPU, {'mapped': ([], {}), 'read': ([], {WITHOUT: 'mmap'})}),
    'mmap-cold': (CPU, {'mapped': ([], {}), 'read': ([], {WITHOUT: 'mmap'})}),
}


def track(args, folder, inputs, options, changes):
    """Runs it; the seconds of the whole program."""
    command = [host.SACCADE, 'track', *inputs, '--device', args.device, '--quiet', *options]
    env = host.environment() | {'SACCADE_CACHE': str(folder / 'cache')} | changes
    begun = time.monotonic()
    done = subprocess.run(list(map(str, command)), env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f'bench/switches.py: {" ".join(map(str, command))}: {done.stderr.strip()}')
    return time.monotonic() - begun


def run(args, folder, options, changes):
    """Frames a second of one run, and the most megabytes that it had."""
    stats = folder / 'stats.json'
    track(args, folder, [args.clip] * args.streams,
          ['--jsonl', 'none', '--duration', args.duration, '--stats', stats, *options], changes)
    read = json.loads(stats.read_text())
    return read['frames'] / read['elapsed_s'], read['rss_peak_bytes'] / 1e6


def run_whole(args, folder, options, changes):
    """Frames a second of the whole program: several processes have no statistics in common."""
    streams = max(args.streams, 4)
    took = track(args, folder, [args.clip] * streams,
                 ['--jsonl', folder / '{index}.jsonl', '--duration', args.duration, *options], changes)
    frames = sum((folder / f'{i + 1}.jsonl').read_bytes().count(b'\n') - 1 for i in range(streams))
    return frames / took, None


def array_of(args, folder):
    """The clip as an array of frames: a .npy file, made once."""
    path = folder / 'frames.npy'
    if path.exists():
        return path
    with open(path, 'wb') as file:
        file.write(bytes(128))
        file.flush()
        subprocess.run(['ffmpeg', '-v', 'error', '-i', args.clip, '-t', str(args.duration), '-vf', 'scale=1920:1080',
                        '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-'], stdin=subprocess.DEVNULL, stdout=file, check=True)
        frames = (file.seek(0, os.SEEK_END) - 128) // (1920 * 1080 * 3)
        words = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({frames}, 1080, 1920, 3), }}"
        file.seek(0)
        file.write(b'\x93NUMPY\x01\0' + (118).to_bytes(2, 'little') + words.ljust(117).encode() + b'\n')
        file.flush()
        os.fsync(file.fileno())  # what is not written yet can't be dropped
    return path


def run_array(args, folder, options, changes, cold=False):
    """Frames a second of the whole program, as an array that is not mapped is read when it is opened."""
    array, stats = array_of(args, folder), folder / 'stats.json'
    if cold:
        with open(array, 'rb') as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    took = track(args, folder, [array], ['--jsonl', 'none', '--stats', stats, *options], changes)
    read = json.loads(stats.read_text())
    return read['frames'] / took, read['rss_peak_bytes'] / 1e6


RUNS = {'processes': run_whole, 'mmap': run_array, 'mmap-cold': functools.partial(run_array, cold=True)}


def measure(args, folder, settings, ends, run):
    """{setting: [what run says of each round]}; the first round makes plans, and is not counted."""
    found = {name: [] for name in settings}
    for turn in range(args.rounds + 1):
        if turn > 1 and time.monotonic() > ends:
            break
        names = list(settings) if turn % 2 else list(reversed(settings))
        for name in names:
            one = run(args, folder, *settings[name])
            if turn:
                found[name].append(one)
    return found


def rows_of(switch, found):
    first = next(iter(found.values()))
    for name, turns in found.items():
        ratios = [rate / base for (rate, _), (base, _) in zip(turns, first)]
        memory = [mb for _, mb in turns if mb is not None]
        yield {'switch': switch, 'setting': name, 'rounds': len(turns),
               'frames_per_s': round(statistics.median(rate for rate, _ in turns), 2),
               'ratio': round(statistics.median(ratios), 3), 'least': round(min(ratios), 3),
               'most': round(max(ratios), 3)} | ({'memory_mb': round(statistics.median(memory), 1)} if memory else {})


def show(switch, rows):
    print(f'{switch}, {rows[0]["rounds"]} rounds\n')
    print('| setting | frames/s | times | least to most | MB |\n| --- | --- | --- | --- | --- |')
    for row in rows:
        print(f'| {row["setting"]} | {row["frames_per_s"]:.1f} | {row["ratio"]:.2f} | '
              f'{row["least"]:.2f} to {row["most"]:.2f} | {row.get("memory_mb", "")} |')
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
            rows = list(rows_of(switch, measure(args, pathlib.Path(name), settings, ends, RUNS.get(switch, run))))
            show(switch, rows)
            if args.json:
                with open(args.json, 'a') as file:
                    file.writelines(json.dumps(about | row) + '\n' for row in rows)


if __name__ == '__main__':
    main()
