#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tracking with the networks against tracking from the disk cache: seconds of whole processes, their ratio, and
whether the tracks are equal.

usage: bench/replay.py VIDEO [--saccade build/src/cli/saccade] [--rounds 3]
"""
import argparse
import pathlib
import subprocess
import tempfile
import time

CASES = [['--tracker', 'bytetrack'], ['--tracker', 'ocsort'], ['--no-camera-motion'], []]


def seconds(program, video, out, options):
    begun = time.monotonic()
    subprocess.run([program, 'track', video, '--device', 'cpu', '--quiet', '--mot', out, *options], check=True)
    return time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('video')
    parser.add_argument('--saccade', default='build/src/cli/saccade')
    parser.add_argument('--rounds', type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cache = ['--disk-cache', folder / 'cache']
        seconds(args.saccade, args.video, folder / 'fill.txt', cache)
        for options in CASES:
            plain, kept = [], []
            for _ in range(args.rounds):  # in turns
                plain.append(seconds(args.saccade, args.video, folder / 'a.txt', options))
                kept.append(seconds(args.saccade, args.video, folder / 'b.txt', [*options, *cache]))
            same = (folder / 'a.txt').read_bytes() == (folder / 'b.txt').read_bytes()
            print(f'{" ".join(options) or "botsort, camera motion":24} networks {min(plain):7.3f} s  '
                  f'cache {min(kept):7.3f} s  {min(plain) / min(kept):6.1f} times  '
                  f'{"tracks equal" if same else "TRACKS DIFFER"}')


if __name__ == '__main__':
    main()
