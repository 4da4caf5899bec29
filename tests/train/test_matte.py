# SPDX-License-Identifier: Apache-2.0
"""Both matte networks: they begin as person_seg, learn together, stop in time, and saccade runs them."""
import contextlib
import io
import json
import os
import subprocess
import sys
import time
import types

import numpy
import onnx
import onnx.numpy_helper
import pytest
import torch

from helpers import ONE_THREAD, TRAIN, losses
from saccade_train import complete, matte, nets, pack, segment, training, unfold

SIDE, SMALL, SECONDS, STEPS = 64, 32, 8, 32
FILES = {'person_matte.onnx': SIDE, 'person_seg.onnx': SMALL}


def start(*arguments):
    """What the program prints."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setattr(sys, 'argv', ['matte', *map(str, arguments)])
        patch.setattr(matte, 'EXPORT_S', 2)
        matte.main()
    return said.getvalue()


@pytest.fixture(scope='module')
def arguments(folders, tmp_path_factory):
    out = tmp_path_factory.mktemp('run')
    return out, ['--data', folders, '--out', out, '--cache', out / 'cache', '--size', 'tiny', '--start', '', '--side',
                 SIDE, '--small-side', SMALL, '--canvas', 128, '--batch', 6, '--bodies', 4, '--body-side', 64, '--lr',
                 1e-2, '--warmup', 5, '--ema', 0.9, '--log-every', 1, '--device', 'cpu', '--json']


@pytest.fixture(scope='module')
def run(arguments):
    """Folder, and the lines that were printed."""
    out, more = arguments
    return out, start('train', *more, '--steps', STEPS).splitlines()


def test_the_loss_falls(run):
    values = [loss for _, loss in losses(run[0] / 'log.jsonl')]
    assert len(values) == STEPS
    assert numpy.mean(values[-10:]) < 0.88 * numpy.mean(values[:4])  # measured 0.79


def test_progress_is_json(run):
    lines = [json.loads(line) for line in run[1] if line.startswith('{')]
    assert sum(lines[0][k] for k in ('masks', 'boxes', 'nobody')) == 16 and lines[0]['cut_outs'] > 4 and lines[0]['bodies'] > 1
    assert [line['step'] for line in lines[1:]] == list(range(1, STEPS + 1)) and lines[-1]['pictures_per_s'] > 0


def test_it_stops_in_time_with_both_files(arguments, tmp_path):
    _, more = arguments
    begin = time.time()
    said = start('train', *more, '--out', tmp_path, '--minutes', SECONDS / 60).splitlines()
    assert time.time() - begin < SECONDS + 8  # a step, and a busy machine
    assert torch.load(tmp_path / 'checkpoint.pt')['step'] > 0
    for name in FILES:
        assert (tmp_path / name).exists() and any(name in line and 'GFLOP' in line for line in said)


def test_it_resumes_where_it_stopped(run, arguments):
    out, more = arguments
    before = torch.load(out / 'checkpoint.pt')['step']
    start('train', *more, '--steps', before + 2, '--resume')
    assert torch.load(out / 'checkpoint.pt')['step'] == before + 2
    lines = [json.loads(line) for line in (out / 'log.jsonl').read_text().splitlines()]
    assert [n['step'] for n in lines if 'loss' in n][-2:] == [before + 1, before + 2]


@pytest.mark.parametrize('name', FILES)
def test_saccade_computes_what_pytorch_computes(saccade, run, name, tmp_path):
    path, side = run[0] / name, FILES[name]
    start('export', '--out', run[0], '--side', SIDE, '--small-side', SMALL)
    rng = numpy.random.default_rng(2)
    x = rng.random((2, 3, side, side), numpy.float32)
    numpy.save(tmp_path / 'x.npy', x)
    done = saccade('infer', path, '--input', tmp_path / 'x.npy', '--output', tmp_path / 'out')
    assert done.returncode == 0, done.stderr
    averages, _ = matte.load_averages(run[0])
    net = nets.ExportSeg(nets.fuse(averages['large' if side == SIDE else 'small'])).eval()
    for p in net.parameters():
        if p.numel() >= 64:
            p.data = p.data.half().float()  # as the file has them
    with torch.no_grad():
        numpy.testing.assert_allclose(numpy.load(tmp_path / 'out/matte.npy'), net(torch.from_numpy(x)).numpy(), atol=1e-3)
    shown = saccade('inspect', path).stdout
    assert 'matte' in shown and 'ref:' not in shown and 'plain C' not in shown
    meta = {e.key: e.value for e in onnx.load(path).metadata_props}
    assert meta['saccade.head'] == 'matte' and meta['saccade.classes'] == 'person' and 'steps' in str(meta)


def test_the_script_trains_from_an_archive_alone(folders, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, 'argv', ['pack', str(folders), str(tmp_path / 'packed'), '--split', 'train', '--tar',
                                      str(tmp_path / 'mattes.tar')])
    pack.main()
    (tmp_path / 'bin').mkdir()
    (tmp_path / 'bin/python3').write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tmp_path / 'bin/python3').chmod(0o755)
    options = ['--size', 'tiny', '--start', '', '--side', SIDE, '--small-side', SMALL, '--canvas', 128, '--batch', 2,
               '--bodies', 0, '--device', 'cpu', '--steps', 1, '--log-every', 1, '--lr', 0, '--init', 'former.pt']
    torch.save(former := former_average(), tmp_path / 'former.pt')
    done = subprocess.run([TRAIN / 'matte-on-gpu', 'mattes.tar', 'out', '2', '1', *map(str, options)], cwd=tmp_path,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200,
                          env=os.environ | ONE_THREAD | dict(PATH=f"{tmp_path}/bin:{os.environ['PATH']}",
                                                             WORK=str(tmp_path / 'work')))
    assert done.returncode == 0, done.stdout
    assert {p.name for p in (tmp_path / 'out').iterdir()} == {*FILES, 'average.pt', 'log.jsonl'}
    assert '"step": 1' in done.stdout
    # it began where the former training ended, and that training's file is named from where the command was given
    average = torch.load(tmp_path / 'out/average.pt')['average']
    assert all(torch.equal(v, former['average'][k]) for k, v in average.items() if k.endswith('conv.weight'))


def former_average():
    """Of a training with other weights."""
    torch.manual_seed(8)
    pair = matte.Pair(**matte.SIZES['tiny'], small_side=SMALL)
    return dict(average=training.halved(pair.state_dict()), config=pair.config, step=7)


def test_maps_of_one_channel_are_planes():
    kept_last = torch.rand(128).as_strided((2, 1, 8, 8), (64, 1, 8, 1))
    assert matte.plain(kept_last).stride() == (64, 64, 8, 1) and torch.equal(matte.plain(kept_last), kept_last)


def test_the_teacher_is_the_average_of_late():
    torch.manual_seed(3)
    pair = matte.Pair(**matte.SIZES['tiny'], small_side=SMALL)
    trainer = types.SimpleNamespace(average=training.Average(pair), step=0)
    teacher = matte.Teacher(trainer, every=3)
    x = torch.rand(2, 3, SIDE, SIDE) * 255
    with torch.no_grad():
        plain = torch.sigmoid(trainer.average.model.large(x / 255))
        mirrored = torch.sigmoid(trainer.average.model.large(x.flip(3) / 255)).flip(3)
    soft = teacher(x, numpy.array([1]))
    assert torch.allclose(soft[0], plain[0], atol=1e-4) and not torch.allclose(plain[1], mirrored[1], atol=1e-3)
    assert torch.allclose(soft[1], (plain[1] + mirrored[1]) / 2, atol=1e-4)
    trainer.average.model.large.out.bias.data += 1
    trainer.step = 2
    assert torch.equal(teacher(x, numpy.array([1])), soft)
    trainer.step = 3
    assert (teacher(x, numpy.array([1])) > soft).all()
    assert trainer.average.model.large.backbone.stem.fused is None  # the average itself stays as it was


def test_both_begin_as_person_seg():
    """The large one computes what the small one does, though it has more channels and deeper stages."""
    pair = matte.make(type('A', (), dict(size='full', small_side=64, start=str(matte.WEIGHTS)))()).eval()
    before, _ = segment.load_average(matte.WEIGHTS)
    before.eval()
    x = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        large, sides, small, guesses = pair(x)
        want = before(x)
    assert torch.allclose(small, want, atol=1e-4) and torch.allclose(large, want, atol=1e-3)
    assert [s.shape[-1] for s in sides] == [4, 8, 16] and not guesses and want.std() > 0.1
    # 12 MB in half precision, with names and shapes
    assert nets.count_parameters(nets.fuse(pair.large)) * 2 < 11.5e6


def test_new_channels_learn_after_growth():
    small, large = nets.PersonSeg(**matte.SIZES['tiny']['small']), nets.PersonSeg(**matte.SIZES['tiny']['large'])
    nets.grow(large, small)
    large(torch.rand(2, 3, 64, 64)).square().mean().backward()
    new = large.backbone.stages[1].leave.conv.weight.grad[:, -2:]
    assert new.abs().max() > 0


class StandIn(torch.nn.Module):
    """In place of a detector: features that follow from the picture."""

    def forward(self, clean):
        maps = [torch.nn.functional.avg_pool2d(clean, s).repeat(1, 2, 1, 1) for s in (8, 16, 32)]
        return torch.rand(len(clean), sum(m.shape[2] * m.shape[3] for m in maps)), None, maps


def lesson_of(done, detector=None, **more):
    args = types.SimpleNamespace(**dict(calm=0.5, clean=0.0, self_after=1.0, self_share=0.5, boxes=0.0, missed=0.5,
                                        distill=0.5, small_side=SMALL, side=SIDE, mimic=2.0) | more)
    picture = torch.rand(4, 3, SIDE, SIDE) * 255
    batch = matte.scenes.Batch(picture, (picture[:, :1] > 128).float(), torch.ones(4, 1, SIDE, SIDE),
                               numpy.array([], int), torch.zeros(0, 8, 6))
    lesson = matte.Lesson(args, types.SimpleNamespace(device=torch.device('cpu'), batch=lambda n, calm: batch), detector)
    lesson.trainer, lesson.teacher = types.SimpleNamespace(done=done), lambda clean, weak: batch.matte
    return lesson, batch


def test_a_detectors_features_are_learnt_less_and_less(monkeypatch):
    monkeypatch.setattr(matte.scenes, 'spoil', lambda x: x)
    torch.manual_seed(5)
    pair = matte.Pair(**matte.SIZES['tiny'], small_side=SMALL, mimic=6)
    losses = {}
    for done in (0.0, 0.25, 1.0):
        torch.manual_seed(6)
        losses[done], parts = lesson_of(done, StandIn())[0].loss(pair, 4)
    torch.manual_seed(6)
    alone, without = lesson_of(0.0)[0].loss(pair, 4)
    assert 'mimic' not in without and parts['mimic'] > 0.01
    for done, loss in losses.items():
        assert float(loss - alone) == pytest.approx(2 * (1 - done) * float(parts['mimic']), rel=1e-2, abs=1e-5)
    losses[0.0].backward()
    for layer in pair.mimic:  # and what they read: strides 8, 16 and 32
        assert layer.weight.grad.abs().max() > 0
    assert not [k for k in training.halved(pair.state_dict()) if k.startswith('mimic')]


def test_at_the_end_some_pictures_are_without_faults():
    for done, clean, wanted in ((0.9, 1.0, 4), (0.1, 1.0, 0), (0.9, 0.0, 0)):
        lesson, batch = lesson_of(done, clean=clean)
        same = (lesson.draw(4, done > 0.5)[1] == batch.picture).flatten(1).all(1)
        assert int(same.sum()) == wanted


def test_the_teacher_counts_where_nothing_is_labelled():
    lesson = matte.Lesson(type('A', (), dict(self_after=0.2, self_share=0.5)), None)
    known, target = torch.zeros(1, 1, 96, 96), torch.zeros(1, 1, 96, 96)
    known[..., :8] = 1
    soft = torch.full((1, 1, 96, 96), 0.01)
    soft[..., 30:40, 30:40] = 0.99
    lesson.trainer = type('T', (), dict(done=0.5))
    label, weight = lesson.teach(soft, target, known)
    assert (label[..., 30:40, 30:40] > 0.9).all() and (weight[..., 30:40, 30:40] > 0.4).all()
    assert (label[..., :8] == 0).all() and (weight[..., :8] == 1).all()
    lesson.trainer.done = 0.1
    assert lesson.teach(soft, target, known) == (target, known)


def test_a_training_begins_as_an_exported_file(run, arguments, tmp_path):
    path, (_, more) = run[0] / 'person_matte.onnx', arguments
    folded = unfold.folded_net(path, matte.SIZES['tiny']['large'])
    trained, _ = matte.load_averages(run[0])
    x = torch.rand(4, 3, SIDE, SIDE)
    with torch.no_grad():
        assert torch.allclose(torch.sigmoid(folded(x)), torch.sigmoid(trained['large'].eval()(x)), atol=1e-2)
    net = nets.PersonSeg(**matte.SIZES['tiny']['large'])
    assert max(unfold.apart(net, folded, x)) > 0.05
    unfold.unfold(net, folded, x)
    assert net.training and max(unfold.apart(net, folded, x)) < 1e-3
    net(x).square().mean().backward()  # each branch learns
    step = net.backbone.stages[0].steps[0]
    assert all(p.grad.abs().max() > 0 for p in (step.conv.weight, step.point.weight, step.skip_bn.weight))
    # and so does the program, which puts nothing of its own in between
    said = start('train', *more, '--out', tmp_path, '--init', path, '--complete', '--steps', 1, '--lr', 0).splitlines()
    notes = [json.loads(line) for line in said if line.startswith('{')]
    assert [max(n['apart']) < 1e-3 for n in notes if 'apart' in n] == [True]
    again = nets.fuse(matte.load_averages(tmp_path)[0]['large'])
    with torch.no_grad():
        # but for a step's statistics
        assert (torch.sigmoid(again(x)) - torch.sigmoid(folded(x))).abs().mean() < 0.05
    assert any('boxes_seen' in n for n in notes) and 'another network' in refusal(path, *more[:-1], '--size', 'full')


def refusal(path, *more):
    with pytest.raises(SystemExit) as end:
        start('train', *more, '--init', path, '--steps', 1)
    return end.value.code


def test_files_are_mixed_by_their_shares(run, tmp_path):
    path, other = run[0] / 'person_matte.onnx', tmp_path / 'other.onnx'
    model = onnx.load(path)
    for t in model.graph.initializer:
        if t.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16):
            t.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(t) * 0, t.name))
    onnx.save(model, other)
    start('mix', '--out', tmp_path / 'mixed.onnx', path, other, '--shares', 1, 3)
    whole, part = unfold.read_folded(path), unfold.read_folded(tmp_path / 'mixed.onnx')
    assert all(torch.allclose(part[k], v / 4, atol=1e-3) for k, v in whole.items()) and len(part) > 20
    with pytest.raises(SystemExit, match='different shapes'):
        start('mix', '--out', tmp_path / 'mixed.onnx', path, run[0] / 'person_seg.onnx')
    with pytest.raises(SystemExit, match='--shares'):
        start('mix', '--out', tmp_path / 'mixed.onnx', path, other, '--shares', 1)


def test_what_is_in_boxes_is_completed():
    """A network that takes white for people: somebody in the first box, nobody in the second, two in the third and
    fourth who overlap; the fifth is too small to say."""
    picture = numpy.zeros((128, 128, 3), numpy.uint8)
    boxes = numpy.array([[8, 8, 40, 72], [60, 4, 100, 40], [50, 60, 90, 120], [70, 60, 110, 120], [112, 4, 120, 12]], float)
    for i in (0, 2, 3):
        x0, y0, x1, y1 = boxes[i].astype(int)
        picture[y0:y1, x0:x1] = 255
    picture[30:50, 8:14] = 0
    mask = numpy.zeros((1, 128, 128), numpy.uint8)
    for x0, y0, x1, y1 in boxes.astype(int):
        mask[0, y0 - 2:y1 + 2, x0 - 2:x1 + 2] = 255
    cache = types.SimpleNamespace(pictures=[types.SimpleNamespace(mask=None, boxes=boxes)], rgb=picture[None], mask=mask,
                                  size=numpy.array([[128, 128]]), boxes=[boxes], ignore=[boxes[:0]])
    white = lambda x: (x.mean(1, keepdim=True) - 0.5) * 40
    assert complete.complete(cache, white, SIDE, 'cpu', batch=2) == (3, 5)
    assert (mask[0, 12:28, 12:36] == 1).all() and (mask[0, 34:46, 9:12] == 0).all()  # who is alone is cut out
    assert (mask[0, 6:38, 62:98] == 255).all() and (mask[0, 5:11, 113:119] == 255).all()
    assert (mask[0, 64:116, 54:106] == complete.UNCUT).all() and (mask[0, 124:, :40] == 0).all()


def test_what_cannot_be_is_refused_with_a_sentence(arguments, refused, tmp_path):
    _, more = arguments
    assert '--batch 0' in refused('matte', 'train', *more, '--minutes', 1, '--batch', 0)
    assert '--side 100' in refused('matte', 'train', *more, '--minutes', 1, '--side', 100)
    assert '--complete' in refused('matte', 'train', *more, '--minutes', 1, '--complete')
    (tmp_path / 'no.onnx').write_text('no')
    assert 'not an ONNX model' in refused('matte', 'train', *more, '--minutes', 1, '--init', tmp_path / 'no.onnx')
    assert 'preparations' in refused('matte', 'train', *more, '--minutes', 0.01)
    assert 'no such file' in refused('matte', 'export', '--out', tmp_path)
    torch.save(dict(average={}, config={}, step=1), tmp_path / 'average.pt')
    assert 'other networks' in refused('matte', 'export', '--out', tmp_path)
