# SPDX-License-Identifier: Apache-2.0
"""docs/optimization.md: its keys are in the configuration, its commands are understood."""
import pathlib
import re
import shlex

import pytest

PAGE = (pathlib.Path(__file__).resolve().parents[2] / 'docs/optimization.md').read_text()
COMMANDS = sorted({*re.findall(r'^    (saccade .*)$', PAGE, re.M),
                   *re.findall(r'^\|.*`(saccade [^`]*)` \|$', PAGE, re.M)})


def key_rows():
    """The cells of the table of other programs' keys: theirs, ours, the note."""
    part = PAGE.split('\n## Keys you may know\n')[1].split('\n## ')[0]
    rows = [[cell.strip() for cell in line.strip('|').split('|')] for line in part.splitlines() if line.startswith('|')]
    return rows[2:]


def keys_of(saccade):
    """The keys of the template, such as decode.threads."""
    section, keys = '', set()
    for line in saccade('config').stdout.splitlines():
        found = re.match(r'( *)(\w+):(.*)$', line)
        if not found:
            continue
        inner, name, value = found.groups()
        if not inner:
            section = '' if value else f'{name}.'
        if value:
            keys.add(f'{section if inner else ""}{name}')
    return keys


def test_each_key_exists(saccade):
    keys = keys_of(saccade)
    assert {'threads', 'decode.threads', 'tracker.kind'} <= keys and 'decode' not in keys
    rows = key_rows()
    assert len(rows) > 30
    for there, here, note in rows:
        assert re.search(r'`[^`]+`', there), there
        names = re.findall(r'`([^`]+)`', here)
        assert len(names) == 1 or here == 'none' and note, there
        dotted = re.findall(r'`([a-z_]+\.[a-z_]+)`', note)
        assert keys.issuperset(names + dotted), f'{there}: {here}: {note}'


def test_the_usual_names_are_there():
    theirs = ' '.join(row[0] for row in key_rows())
    for name in ('prefetch_factor', 'max_queue_size', 'use_multiprocessing', 'stages.decode.threads', 'allow_tf32'):
        assert f'`{name}`' in theirs


@pytest.mark.parametrize('command', COMMANDS)
def test_commands_are_understood(saccade, tmp_path, command):
    """Of what they name nothing is there: status 1; an option or a value that is none would be 2."""
    words = shlex.split(command)[1:]
    if '--config' in words:
        (tmp_path / words[words.index('--config') + 1]).write_text('')
    run = saccade(*words, cwd=tmp_path)
    assert run.returncode == 1, run.stderr


def test_a_misspelt_command_is_not(saccade, tmp_path):
    assert len(COMMANDS) > 10
    assert saccade('track', 'in.mp4', '--skip-stil', 0.01, cwd=tmp_path).returncode == 2
    assert saccade('track', 'in.mp4', '--batch-padding', 'some', cwd=tmp_path).returncode == 2
