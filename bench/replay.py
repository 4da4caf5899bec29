#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tracking with the networks against tracking from the disk cache: seconds of whole processes, their ratio, and
whether the tracks are equal. With --frames: another detector's run over the video against one over its prepared
frames, and what it costs to keep these, also in seconds of CPU.

usage: bench/replay.py VIDEO [--saccade build/src/cli/saccade] [--rounds 3] [--frames] [OPTIONS OF TRACK]
"""
import argparse
import pathlib
import resource
import subprocess
import tempfile
import time

CASES = [['--tracker', 'bytetrack'], ['--tracker', 'ocsort'], ['--no-camera-motion'], []]


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def spent(program, video, out, options):
    """Seconds, and seconds of CPU."""
    begun, used = time.monotonic(), cpu_seconds()
    subprocess.run([program, 'track', video, '--device', 'cpu', '--quiet', '--mot', out, *options], check=True)
    return time.monotonic() - begun, cpu_seconds() - used


def seconds(*args):
    return spent(*args)[0]


def replay(args, folder):
    cache = ['--disk-cache', folder / 'cache']
    seconds(args.saccade, args.video, folder / 'fill.txt', [*args.options, *cache])
    for case in CASES:
        options = [*args.options, *case]
        plain, kept = [], []
        for _ in range(args.rounds):  # in turns
            plain.append(seconds(args.saccade, args.video, folder / 'a.txt', options))
            kept.append(seconds(args.saccade, args.video, folder / 'b.txt', [*options, *cache]))
        same = (folder / 'a.txt').read_bytes() == (folder / 'b.txt').read_bytes()
        print(f'{" ".join(case) or "botsort, camera motion":24} networks {min(plain):7.3f} s  '
              f'cache {min(kept):7.3f} s  {min(plain) / min(kept):6.1f} times  '
              f'{"tracks equal" if same else "TRACKS DIFFER"}')


def prepared(args, folder):
    """Each round has a threshold of its own, so that it finds no boxes."""
    cache = ['--disk-cache', folder / 'cache', '--disk-cache-frames']
    runs, same = {'decoded': [], 'decoded and kept': [], 'prepared': []}, True
    for number in range(args.rounds):  # in turns
        options = [*args.options, '--tracker', 'bytetrack', '--score-min', str(0.1 + 0.001 * number)]
        runs['decoded'].append(spent(args.saccade, args.video, folder / 'a.txt', options))
        for path in (folder / 'cache').glob('*.entry'):
            path.unlink()
        runs['decoded and kept'].append(spent(args.saccade, args.video, folder / 'fill.txt',
                                              [*options, '--boxes-max', '299', *cache]))
        runs['prepared'].append(spent(args.saccade, args.video, folder / 'b.txt', [*options, *cache]))
        same &= (folder / 'a.txt').read_bytes() == (folder / 'b.txt').read_bytes()
    least = {name: [min(numbers) for numbers in zip(*times)] for name, times in runs.items()}
    print(*(f'{name} {wall:.3f} s, CPU {cpu:.3f} s;' for name, (wall, cpu) in least.items()),
          *(f'{a / b:.2f}' for a, b in zip(least['decoded'], least['prepared'])), 'times;',
          'tracks equal' if same else 'TRACKS DIFFER')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('video')
    parser.add_argument('--saccade', default='build/src/cli/saccade')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--frames', action='store_true')
    args, args.options = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as name:
        (prepared if args.frames else replay)(args, pathlib.Path(name))


if __name__ == '__main__':
    main()
