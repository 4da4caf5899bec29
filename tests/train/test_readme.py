# SPDX-License-Identifier: Apache-2.0
"""The commands of train/README.md do what it says."""
import importlib
import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from helpers import ONE_THREAD, TRAIN

README = (TRAIN / 'README.md').read_text()
CARDS = ''.join(card.read_text() for card in sorted((TRAIN.parent / 'models').glob('*.md')))


def commands(heading):
    """The indented lines under a heading."""
    section = README.split(f'## {heading}\n')[1].split('\n## ')[0]
    return [line.strip() for line in section.splitlines() if line.startswith('    ')]


@pytest.fixture
def place(folders, program, saccade, tmp_path):
    """A copy of train/ with a FOLDER and an in.mp4 in it, and a shell that finds python3 and saccade."""
    for name in ('saccade_train', 'weights'):
        (tmp_path / name).symlink_to(TRAIN / name)
    (tmp_path / 'FOLDER').symlink_to(folders / 'detect')
    (tmp_path / 'bin').mkdir()
    for name, path in (('python3', sys.executable), ('saccade', program)):
        (tmp_path / 'bin' / name).write_text(f'#!/bin/sh\nexec "{path}" "$@"\n')
        (tmp_path / 'bin' / name).chmod(0o755)
    (tmp_path / 'det.txt').write_text('')
    done = saccade('track', folders / 'walk', '--detections', tmp_path / 'det.txt', '-o', tmp_path / 'in.mp4')
    assert done.returncode == 0, done.stderr

    def shell(command):
        done = subprocess.run(['sh', '-c', command], cwd=tmp_path, text=True, capture_output=True, timeout=1800,
                              env=os.environ | ONE_THREAD | dict(PATH=f"{tmp_path}/bin:{os.environ['PATH']}"))
        assert done.returncode == 0, f'{command}\n{done.stdout}{done.stderr}'
        return done.stdout
    shell.folder = tmp_path
    return shell


def test_a_detector_in_three_commands(place, saccade):
    """As they stand there, but with so few steps and so small an input that it takes seconds."""
    train, export, track = commands('A detector of your own')
    small = ' --width 96 --height 96'
    place(train + small + ' --side 128 --steps 4 --batch 2 --device cpu')
    assert 'mine.onnx' in place(export + small)
    place(track)
    video = json.loads(saccade('inspect', place.folder / 'out.mp4', '--json').stdout)
    assert video['kind'] == 'video' and (video['width'], video['height']) == (128, 96)
    # and what is said below them
    score, plot = (re.search(rf'`(python3 -m saccade_train\.{name}[^`]+)`', README).group(1)
                   for name in ('detect score', 'plot'))
    assert re.search(r'\| mine.onnx \| [\d.]+ \([\d.]+ to [\d.]+\) \|', place(score))
    assert 'curves.png' in place(plot)
    assert (place.folder / 'curves.png').read_bytes().startswith(b'\x89PNG')


COMMANDS = re.findall(r'-m (saccade_train\.[^`\n]+ -[^`\n]+)', re.sub(r'\\\n\s*', '', README + CARDS))


@pytest.mark.parametrize('command', sorted(set(COMMANDS)))
def test_each_command_is_understood(command, monkeypatch):
    """Its program has the verb and every option."""
    words = shlex.split(command.replace(' ...', ''))
    module = importlib.import_module(words[0])
    verb = words[1] if hasattr(module, words[1]) else words[0].split('.')[-1]
    called = []
    monkeypatch.setattr(module, verb, called.append)
    monkeypatch.setattr(sys, 'argv', words)
    module.main()
    assert len(called) == 1
