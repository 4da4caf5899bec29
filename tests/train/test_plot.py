# SPDX-License-Identifier: Apache-2.0
"""Curves of a training: what is read from its logs, and what is drawn."""
import json

import numpy
import pytest
from PIL import Image

from saccade_train import plot


def write(path, steps, networks=('',), every=10, mode='w'):
    with open(path, mode) as f:
        for step in steps:
            if step % every == 0:
                parts = {f'{n}{part}': 1 / step for n in networks for part in ('score', 'box')}
                f.write(json.dumps(dict(step=step, loss=5 / step, lr=1e-3, pictures_per_s=90, **parts)) + '\n')
    return path


def test_a_resumed_run_is_one_run(tmp_path):
    log = write(tmp_path / 'log', range(1, 101))
    write(log, range(81, 151), mode='a')  # cut off at 100, the checkpoint was of 80
    (run,) = plot.read_log(log)
    assert [note['step'] for note in run] == list(range(10, 151, 10))
    write(log, range(141, 171), mode='a')  # cut off at 150, the checkpoint was of 140
    with log.open('a') as f:
        f.write('{"step": 170, "eval_score": 1}\n')  # this belongs to the note before it
    (run,) = plot.read_log(log)
    assert [note['step'] for note in run] == [*range(10, 171, 10), 170]


def test_a_training_that_begins_again_is_another_run(tmp_path):
    log = write(tmp_path / 'log', range(1, 101))
    write(log, range(1, 51), mode='a')
    assert [len(run) for run in plot.read_log(log)] == [10, 5]


def test_runs_are_joined_behind_each_other(tmp_path):
    first, second = write(tmp_path / 'a', range(1, 101)), write(tmp_path / 'b', range(1, 51))
    third = write(tmp_path / 'c', range(51, 91))  # goes on with the second's steps
    notes, begins = plot.join([run for log in (first, second, third) for run in plot.read_log(log)])
    assert [n['at'] for n in notes] == list(range(10, 191, 10))
    assert begins == [100, 150]


def test_smoothing_keeps_a_level_and_leaves_out_what_is_no_number():
    assert plot.smooth(numpy.full(9, 3.0), 5) == pytest.approx(numpy.full(9, 3.0))
    values = numpy.array([1.0, numpy.nan, 3.0, 5.0])
    assert plot.smooth(values, 3) == pytest.approx([1, 2, 4, 4])
    at, jump = numpy.arange(1, 9), numpy.repeat([1.0, 7.0], 4)
    assert plot.smooth_runs(at, jump, [4], 3) == pytest.approx(jump)
    assert plot.smooth_runs(at, jump, [], 3)[3] == pytest.approx(3)


def test_what_is_no_part_of_a_loss_is_not_drawn(tmp_path):
    log = tmp_path / 'log'
    with log.open('w') as f:
        f.write(json.dumps(dict(step=0, bodies=3000, parameters=dict(large=5, small=1))) + '\n')
    write(log, range(1, 101), mode='a')
    (run,) = plot.read_log(log)
    notes, _ = plot.join([run])
    labels = [label for _, _, labels in plot.panels(notes) for label in labels]
    assert 'score' in labels and 'bodies' not in labels and 'parameters' not in labels


def test_parts_are_grouped_by_network():
    note = dict(step=1, at=1, loss=1.0, det_score=1, det_box=2, fast_score=3, fast_box=4, lr=1, pictures_per_s=2,
                eval_det_AP50=50.0, eval_cosine_plain=0.5)
    assert [(title, own) for title, _, own in plot.panels([note])] == [
        ('loss', dict(loss='loss')),
        ('parts of the loss: det', dict(score='det_score', box='det_box')),
        ('parts of the loss: fast', dict(score='fast_score', box='fast_box')),
        ('metrics', {'det AP50': 'eval_det_AP50'}),
        ('agreement with the teacher', {'cosine plain': 'eval_cosine_plain'}),
        ('learning rate', {'learning rate': 'lr'}), ('speed', {'speed': 'pictures_per_s'})]
    assert plot.panels([dict(step=1, at=1, loss=1.0, bce=1, dice=2)])[1][2] == dict(bce='bce', dice='dice')


def test_a_picture_is_drawn(tmp_path, monkeypatch, capsys):
    pytest.importorskip('matplotlib')
    log = write(tmp_path / 'log', range(1, 501), ('det_', 'fast_'))
    with log.open('a') as f:
        f.write(json.dumps(dict(step=500, eval_det_AP50=61.5)) + '\n')
    monkeypatch.setattr('sys.argv', ['plot', str(log), str(write(tmp_path / 'b', range(1, 201), ('det_', 'fast_'))),
                                     '-o', str(tmp_path / 'curves.png')])
    plot.main()
    assert '700 steps' in capsys.readouterr().out
    image = numpy.asarray(Image.open(tmp_path / 'curves.png').convert('RGB'), int)
    assert image.shape == (980, 1280, 3)  # six panels in two columns
    blue = (numpy.abs(image - (31, 119, 180)).max(-1) < 30)
    for row in range(3):  # a curve in each panel
        for column in range(2):
            assert blue[row * 326:(row + 1) * 326, column * 640:(column + 1) * 640].sum() > 20, (row, column)


def test_faults_of_a_log(refused, tmp_path):
    assert 'nowhere: No such file' in refused('plot', tmp_path / 'nowhere')
    (tmp_path / 'empty').write_text('')
    assert 'nothing is noted yet' in refused('plot', tmp_path / 'empty')
    (tmp_path / 'junk').write_text('{"step": 1}\njunk\n')
    assert 'line 2' in refused('plot', tmp_path / 'junk')
    pytest.importorskip('matplotlib')
    log = write(tmp_path / 'log', range(1, 101))
    assert 'curves.xyz' in refused('plot', log, '-o', tmp_path / 'curves.xyz')
