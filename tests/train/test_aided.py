# SPDX-License-Identifier: Apache-2.0
"""A matte network that sees with a detector's features too: it begins as both, learns, and saccade runs it."""
import json
import sys
import types

import numpy
import onnx
import pytest
import torch

from helpers import losses
from saccade_train import aided, matte, nets, teacher, training, trunk, unfold

SIDE, STEPS = 64, 32


def start(*arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, 'argv', ['aided', *map(str, arguments)])
        aided.main()


@pytest.fixture(scope='module')
def detector(shared):
    return shared / 'models/yolox_nano_416.onnx'


@pytest.fixture(scope='module')
def begun(folders, detector, tmp_path_factory):
    """A folder with matte's network, as matte exports it, and the weights that are made of it and the detector."""
    out = tmp_path_factory.mktemp('begun')
    torch.manual_seed(5)
    pair = matte.Pair(**matte.SIZES['tiny'], small_side=32)
    for m in pair.modules():
        if isinstance(m, torch.nn.BatchNorm2d):  # an export keeps the same numbers once
            torch.nn.init.normal_(m.bias, std=0.1)
    torch.save(dict(average=training.halved(pair.state_dict()), config=pair.config, step=1), out / 'average.pt')
    matte.export(types.SimpleNamespace(out=out, side=SIDE, small_side=32, category='person'))
    start('begin', '--data', folders, '--size', 'tiny', '--side', SIDE, '--pictures', 8, '--matte',
          out / 'person_matte.onnx', '--detector', detector, out / 'start.pt')
    return out


@pytest.fixture(scope='module')
def run(folders, begun, tmp_path_factory):
    out = tmp_path_factory.mktemp('run')
    start('train', '--data', folders, '--size', 'tiny', '--side', SIDE, '--init', begun / 'start.pt', '--out', out,
          '--cache', out / 'cache', '--canvas', 128, '--batch', 6, '--bodies', 4, '--body-side', 64, '--lr', 1e-2,
          '--warmup', 3, '--ema', 0.8, '--self-after', 0.5, '--steps', STEPS, '--log-every', 1, '--device', 'cpu',
          '--json')
    start('export', '--out', out, '--side', SIDE)
    return out


def whole(path):
    """The network that a file of weights holds, with all of its maps."""
    net = aided.Lone(aided.SIZES['tiny'])
    own, kept = net.state_dict(), training.restored(training.read_weights(path)['average'])
    net.load_state_dict({k: kept.get(k, v) for k, v in own.items()})
    return net.large.eval()


def test_the_trunk_computes_what_the_file_does(detector):
    theirs, mine = teacher.YoloxTeacher(detector, SIDE, SIDE), trunk.read(detector)
    theirs.read_features()
    x = torch.rand(2, 3, SIDE, SIDE)
    with torch.no_grad():
        wanted, found = theirs(x * 255)[2], mine(x)
    for a, b in zip(wanted, found):
        assert b.shape[1] == trunk.CHANNELS and torch.allclose(a, b[:, :a.shape[1]], atol=1e-3)


def test_it_begins_as_the_former_network(begun):
    """As that one is without the last step of its last stage: the detector is not heard yet."""
    sizes = matte.SIZES['tiny']['large']
    former = aided.shortened(unfold.folded_net(begun / 'person_matte.onnx', sizes), 0)
    x = torch.rand(3, 3, SIDE, SIDE)
    with torch.no_grad():
        assert torch.allclose(whole(begun / 'start.pt')(x), former(x), atol=2e-2)


def test_its_own_maps_are_taken_away_now_and_then(begun):
    net, x = whole(begun / 'start.pt'), torch.rand(1, 3, SIDE, SIDE).expand(16, -1, -1, -1)
    net.eval()
    net.training, net.drop = True, 0.5  # of the network alone: normalisations stay as they are
    with torch.no_grad():
        rows = net.decode(x)[0].flatten(1)
    gone = rows.abs().amax(1) == 0
    assert 0 < int(gone.sum()) < len(x) and torch.equal(rows[~gone], rows[~gone][:1].expand(int((~gone).sum()), -1))


def test_the_loss_falls_and_the_detector_learns_slowly(run, begun):
    values = [loss for _, loss in losses(run / 'log.jsonl')]
    assert len(values) == STEPS and numpy.mean(values[-6:]) < 0.9 * numpy.mean(values[:4])
    before, after = whole(begun / 'start.pt'), whole(run / 'average.pt')
    moved = lambda part: numpy.mean([float((a - b).abs().mean())
                                     for a, b in zip(part(before).parameters(), part(after).parameters())])
    assert 0 < moved(lambda net: net.trunk) < 0.3 * moved(lambda net: net.refine)
    assert float(after.aid[0].bn.weight.abs().max()) > 0


def test_saccade_computes_what_pytorch_computes(saccade, run, tmp_path):
    x = numpy.random.default_rng(2).random((2, 3, SIDE, SIDE), numpy.float32)
    numpy.save(tmp_path / 'x.npy', x)
    done = saccade('infer', run / 'person_matte.onnx', '--input', tmp_path / 'x.npy', '--output', tmp_path / 'out')
    assert done.returncode == 0, done.stderr
    net = nets.ExportSeg(nets.fuse(aided.trained(run)[0])).eval()
    for p in net.parameters():
        if p.numel() >= 64:
            p.data = p.data.half().float()  # as the file has them
    with torch.no_grad():
        numpy.testing.assert_allclose(numpy.load(tmp_path / 'out/matte.npy'), net(torch.from_numpy(x)).numpy(), atol=1e-3)
    shown = saccade('inspect', run / 'person_matte.onnx').stdout
    assert 'matte' in shown and 'ref:' not in shown and 'plain C' not in shown
    meta = {e.key: e.value for e in onnx.load(run / 'person_matte.onnx').metadata_props}
    assert meta['saccade.head'] == 'matte' and str(STEPS) in json.dumps(meta)


def test_a_training_goes_on_from_an_exported_file(run, folders, tmp_path):
    start('begin', '--data', folders, '--size', 'tiny', '--side', SIDE, '--pictures', 8, '--matte',
          run / 'person_matte.onnx', tmp_path / 'start.pt')
    x = torch.rand(3, 3, SIDE, SIDE)
    with torch.no_grad():
        assert torch.allclose(whole(tmp_path / 'start.pt')(x), whole(run / 'average.pt')(x), atol=5e-2)


def test_what_cannot_be_is_refused_with_a_sentence(begun, folders, refused, tmp_path):
    more = ['begin', '--data', folders, '--size', 'tiny', '--side', SIDE, '--pictures', 2, '--matte']
    assert '--detector' in refused('aided', *more, begun / 'person_matte.onnx', tmp_path / 'start.pt')
    assert 'not YOLOX-nano' in refused('aided', *more, begun / 'person_matte.onnx', '--detector',
                                       begun / 'person_matte.onnx', tmp_path / 'start.pt')
    assert 'no such file' in refused('aided', 'export', '--out', tmp_path)
