# SPDX-License-Identifier: Apache-2.0
"""saccade build --precision int8, what it prints and refuses, and runs with what it wrote."""
import json
import pathlib
import re

import numpy
import pytest

from support import FRAMES, fails

onnx = pytest.importorskip('onnx')
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


@pytest.fixture(scope='module')
def network(tmp_path_factory):
    """Two convolutions and a mean: three numbers of a picture."""
    rng = numpy.random.default_rng(1)
    nodes = [helper.make_node('Conv', ['x', 'w'], ['c'], name='first', pads=[1, 1, 1, 1]),
             helper.make_node('Relu', ['c'], ['r']),
             helper.make_node('Conv', ['r', 'v'], ['d'], name='second'),
             helper.make_node('GlobalAveragePool', ['d'], ['p']),
             helper.make_node('Flatten', ['p'], ['y'])]
    graph = helper.make_graph(nodes, 'net', [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['n', 3, 32, 32])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, ['n', 3])],
                              [numpy_helper.from_array(rng.standard_normal(dims).astype(numpy.float32), name)
                               for name, dims in (('w', (16, 3, 3, 3)), ('v', (3, 16, 1, 1)))])
    path = tmp_path_factory.mktemp('net') / 'net.onnx'
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=7), path)
    return path


def build(saccade, network, out, *options):
    return saccade('build', network, '-o', out, '--device', 'cpu', '--precision', 'int8', *options)


@pytest.mark.parametrize('method', [[], ['--calibration-method', 'min-max']], ids=['best', 'min-max'])
def test_build_prints_what_is_lost_and_gained(saccade, network, clip, video, method, tmp_path):
    out = tmp_path / 'net.plan'
    for data in clip / 'img', video:
        run = build(saccade, network, out, '--calibrate', data, '--max-loss', '0.2', '--batch', '1:2:4', *method)
        assert run.returncode == 0, run.stderr
        assert re.search(r'^int8 +2 of 2 layers$', run.stdout, re.M)
        assert re.search(rf"^accuracy +0\.\d+ of float32's on {FRAMES} samples: it loses 0\.\d+  \(at most 0\.2\)$",
                         run.stdout, re.M), run.stdout
        for what in r'file +\S+ MB -> ', r'weights +\S+ MB -> ', r'batch 1 +\S+ ms -> ', r'batch 4 +\S+ ms -> ', r'wrote ':
            assert re.search(rf'^{what}', run.stdout, re.M), run.stdout
        assert ('ranges by entropy' in run.stderr) == (not method)
    text = saccade('inspect', out).stdout
    assert re.search(r'^quantised   int8, 2 of 2 layers, accuracy 0\.\d+ on .*, ranges by \S+$', text, re.M), text
    report = json.loads(saccade('inspect', out, '--json').stdout)
    assert report['quantised'].startswith('int8, 2 of 2') and report['quantised_kept'] is None
    assert json.loads(saccade('inspect', network, '--json').stdout)['quantised'] is None


def test_what_loses_too_much_is_not_written(saccade, network, clip, tmp_path):
    out = tmp_path / 'net.plan'
    run = build(saccade, network, out, '--calibrate', clip / 'img', '--max-loss', '1e-9')
    assert run.returncode == 1 and not out.exists()
    sentence = run.stderr.splitlines()[-1]
    for word in 'saccade: ', 'it loses', '1e-09 is allowed', "'first'", "'second'", '1 of 2 layers left out':
        assert word in sentence


def test_a_run_asks_for_it(saccade, network, tmp_path):
    out = tmp_path / 'net.plan'
    numpy.save(tmp_path / 'x.npy', numpy.random.default_rng(2).random((1, 3, 32, 32), numpy.float32))
    run = build(saccade, network, out)
    assert run.returncode == 0 and 'random input' in run.stderr
    answers = []
    for model, options in ((network, []), (out, []), (out, ['--precision', 'int8'])):
        folder = tmp_path / f'{len(answers)}'
        done = saccade('infer', model, '--device', 'cpu', '--input', tmp_path / 'x.npy', '--output', folder, *options)
        assert done.returncode == 0, done.stderr
        answers.append(numpy.load(next(pathlib.Path(folder).iterdir())))
    assert (answers[1] == answers[2]).all()
    assert 0 < abs(answers[1] - answers[0]).max() < 0.1 * abs(answers[0]).max()
    fails(saccade('infer', network, '--device', 'cpu', '--precision', 'int8'), 1, 'no layers in int8', 'saccade build')
    fails(saccade('infer', out, '--device', 'cpu', '--precision', 'fp8'), 1, 'fp8 needs a GPU')


def test_refusals_are_sentences(saccade, network, clip, tmp_path):
    out = tmp_path / 'net.plan'
    fails(build(saccade, network, out, '--calibration-method', 'guess'), 2, "'guess'", 'min-max, percentile, entropy')
    fails(build(saccade, network, out, '--max-loss', '2'), 2, '--max-loss')
    fails(saccade('build', network, '-o', out, '--device', 'cpu', '--precision', 'fp8'), 1, 'fp8 needs a GPU')
    fails(saccade('build', network, '-o', tmp_path / 'other.onnx', '--device', 'cpu'), 1, 'plans are built for GPUs')
    assert not out.exists()
