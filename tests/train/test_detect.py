# SPDX-License-Identifier: Apache-2.0
"""A user's own detector: trained on a COCO folder, exported, run by saccade."""
import json

import numpy
import onnx
import onnxruntime
import pytest
import torch
from PIL import Image

import drawings
from helpers import losses
from saccade_train import data, detect, nets

SIDE, STEPS = 96, 200
SMALL = ('--width', SIDE, '--height', SIDE)


@pytest.fixture(scope='module')
def run(folders, succeed, tmp_path_factory):
    """A finished training of the least size."""
    out = tmp_path_factory.mktemp('run')
    succeed('detect', 'train', '--data', folders / 'detect', '--masks', folders / 'segment', '--out', out,
            '--cache', out / 'cache', '--sizes', 'tiny', '--steps', STEPS, '--batch', 8, '--side', 128, *SMALL,
            '--lr', 1e-2, '--warmup', 10, '--ema', 0.9, '--log-every', 1, '--score', '--device', 'cpu')
    return out


@pytest.fixture(scope='module')
def model(run, succeed):
    path = run / 'mine.onnx'
    succeed('detect', 'export', '--out', run, '--size', 'tiny', '--model', path, *SMALL)
    return path


def test_the_loss_falls(run):
    values = losses(run / 'log.jsonl')
    assert [step for step, _ in values] == list(range(1, STEPS + 1))
    first, last = (numpy.mean([loss for _, loss in part]) for part in (values[:10], values[-10:]))
    assert last < 0.8 * first


def test_it_finds_the_persons_of_the_held_out_pictures(run):
    note = json.loads((run / 'log.jsonl').read_text().splitlines()[-1])
    assert note['eval_tiny_AP50'] > 40


def test_the_export_is_opset_17_with_halved_weights(run, model):
    file = onnx.load(model)
    assert [(entry.domain, entry.version) for entry in file.opset_import] == [('', 17)]
    weights = [t for t in file.graph.initializer if len(t.dims) == 4]
    assert len(weights) > 30 and all(t.data_type == onnx.TensorProto.FLOAT16 for t in weights if t.dims[0] > 4)


def rounded(run):
    """The average of a run in its exported form, with weights rounded as the file has them."""
    net, step = detect.load_average(run / 'checkpoint.pt', 'tiny')
    assert step == STEPS
    net = nets.ExportDet(nets.fuse(net), SIDE, SIDE).eval()
    for p in net.parameters():
        if p.numel() >= 64:
            p.data = p.data.half().float()
    return net


def test_saccade_computes_what_pytorch_computes(saccade, folders, run, model, tmp_path):
    pictures = [Image.open(folders / f'detect/images/{i:06d}.jpg') for i in (2, 3)]
    x = numpy.stack([detect.letterbox(p, SIDE, SIDE)[0] for p in pictures]) / 255
    numpy.save(tmp_path / 'x.npy', x)
    done = saccade('infer', model, '--input', tmp_path / 'x.npy', '--output', tmp_path / 'out')
    assert done.returncode == 0, done.stderr
    ours = numpy.load(tmp_path / 'out/detections.npy')
    assert ours.shape == (2, 12 * 12 + 6 * 6 + 3 * 3, 5)  # a row for each cell
    with torch.no_grad():
        theirs = rounded(run)(torch.from_numpy(x)).numpy()
    assert theirs[..., 4].max() > 0.1  # somebody is there
    numpy.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-3)  # pixels and scores
    numpy.testing.assert_allclose(ours[..., 4], theirs[..., 4], atol=1e-5)
    oracle = onnxruntime.InferenceSession(model).run(None, {'images': x})[0]
    numpy.testing.assert_allclose(ours, oracle, rtol=1e-4, atol=1e-3)


def test_inspect_recognises_head_and_contract(saccade, model):
    done = saccade('inspect', model, '--json')
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report['head'] == 'yolov8'
    contract = report['contract']
    assert contract['order'] == dict(value='rgb', source='metadata')
    assert contract['fit'] == dict(value='letterbox topleft', source='metadata')
    assert contract['scale']['value'] == pytest.approx([1 / 255] * 3)
    assert contract['fill']['value'] == [114] * 3
    assert contract['classes']['value'] == ['person']


def overlap(a, b):
    w, h = (max(0, min(a[i + 2], b[i + 2]) - max(a[i], b[i])) for i in (0, 1))
    area = lambda box: (box[2] - box[0]) * (box[3] - box[1])
    return w * h / (area(a) + area(b) - w * h)


def test_saccade_tracks_with_it(saccade, folders, model, tmp_path):
    done = saccade('track', folders / 'walk', '--detector', model, '--mot', tmp_path / 'tracks.txt',
                   '--score-high', 0.25, '--score-new', 0.25)  # so short a training is unsure of itself
    assert done.returncode == 0, done.stderr
    rows = numpy.loadtxt(tmp_path / 'tracks.txt', delimiter=',', ndmin=2)
    truth = drawings.walk_boxes()
    followed = 0
    for frame, box in enumerate(truth, 1):
        boxes = [(x, y, x + w, y + h) for x, y, w, h in rows[rows[:, 0] == frame, 2:6]]
        followed += any(overlap(b, box) > 0.5 for b in boxes)
    assert followed >= len(truth) / 2


def test_the_held_out_pictures_are_not_trained_on(folders):
    parts = {split: {p.name for p in data.read_coco(folders / 'detect', split)} for split in ('train', 'val')}
    assert len(parts['train']) == drawings.PICTURES - drawings.HELD_OUT and len(parts['val']) == drawings.HELD_OUT
    assert not parts['train'] & parts['val']


def test_a_detector_learns_from_mot_sequences(folders, succeed, tmp_path):
    for name in ('01', '02'):
        folder = tmp_path / 'mot' / name
        (folder / 'gt').mkdir(parents=True)
        (folder / 'img1').mkdir()
        for i, picture in enumerate(sorted((folders / 'walk').iterdir()), 1):
            (folder / f'img1/{i:06d}.png').symlink_to(picture)
        (folder / 'gt/gt.txt').write_text(''.join(f'{i},1,{x0},{y0},{x1 - x0},{y1 - y0},1,1,1\n' for i, (x0, y0, x1, y1)
                                                  in enumerate(drawings.walk_boxes(), 1)))
        (folder / 'seqinfo.ini').write_text('[Sequence]\nframeRate=10\nimDir=img1\nimExt=.png\nseqLength=20\n')
    said = succeed('detect', 'train', '--data', tmp_path / 'mot', '--out', tmp_path / 'run', '--cache', tmp_path / 'cache',
                   '--sizes', 'tiny', '--steps', 20, '--batch', 4, '--side', 128, *SMALL, '--device', 'cpu', '--score')
    assert '10 pictures, 10 persons' in said and 'tiny_AP50' in said
