# SPDX-License-Identifier: Apache-2.0
"""bench/loop.py: a long clip of a short one."""
import json
import pathlib
import subprocess
import sys

import pytest
from support import FRAMES

pytestmark = pytest.mark.sanitized

LOOP = pathlib.Path(__file__).resolve().parents[2] / 'bench/loop.py'


def loop(*args):
    return subprocess.run([sys.executable, LOOP, *map(str, args)], text=True, capture_output=True)


def test_rounds_are_whole_and_times_run_on(saccade, clip, video, tmp_path):
    long, out = tmp_path / 'long.mp4', tmp_path / 'out.jsonl'
    run = loop(video, long, 3 * FRAMES - 5)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) == 3 * FRAMES
    assert long.stat().st_size < video.stat().st_size + 40 * 3 * FRAMES
    run = saccade('track', long, '--detections', clip / 'det.txt', '--jsonl', out)
    assert run.returncode == 0, run.stderr
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row['pts'] for row in rows if 'frame' in row] == [n / 20 for n in range(3 * FRAMES)]


def test_says_what_is_no_clip(tmp_path):
    (tmp_path / 'a.mp4').write_bytes(b'\0\0\0\x08free')
    run = loop(tmp_path / 'a.mp4', tmp_path / 'b.mp4', 10)
    assert run.returncode == 1 and 'no MP4' in run.stderr
    run = loop(tmp_path / 'none.mp4', tmp_path / 'b.mp4', 10)
    assert run.returncode == 1 and 'none.mp4' in run.stderr
