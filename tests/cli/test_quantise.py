# SPDX-License-Identifier: Apache-2.0
"""saccade build --precision int8, what it prints and refuses, and runs with what it wrote."""
import json
import pathlib
import re
import shutil
import signal
import subprocess

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
        assert 'ranges by min-max' in run.stderr and 'ranges by entropy' not in run.stderr
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
    for method in 'min-max', 'percentile', 'entropy':
        assert f'ranges by {method}' in run.stderr
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
    for limit in '2', '0', '-1', 'nan', 'inf', '':
        fails(build(saccade, network, out, '--max-loss', limit), 2, '--max-loss')
    for batch in '4294967297', '1:2:99999999999':  # the first is 1 to who reads 32 bits
        fails(build(saccade, network, out, '--batch', batch), 2, f"'{batch}'", 'MIN:OPT:MAX')
    fails(build(saccade, network, out, '--size', '4294967328x32'), 2, "'4294967328x32'", 'WIDTHxHEIGHT')
    fails(build(saccade, network, '-'), 2, '--output', 'standard output')
    fails(saccade('build', network, '-o', out, '--device', 'cpu', '--precision', 'fp8'), 1, 'fp8 needs a GPU')
    fails(saccade('build', network, '-o', tmp_path / 'other.onnx', '--device', 'cpu'), 1, 'plans are built for GPUs')
    assert not out.exists()


def test_data_that_shows_nothing(saccade, network, video, tmp_path):
    out = tmp_path / 'net.plan'
    (tmp_path / 'none').mkdir()
    (tmp_path / 'text').mkdir()
    (tmp_path / 'text/a.txt').write_text('no picture')
    (tmp_path / 'noise.mp4').write_bytes(numpy.random.default_rng(3).bytes(20000))
    (tmp_path / 'cut.mp4').write_bytes(video.read_bytes()[:2000])
    for data, word in (('none', 'no image'), ('text', 'no image'), ('noise.mp4', 'not a video'),
                       ('cut.mp4', 'not one frame'), ('missing', 'No such file')):
        fails(build(saccade, network, out, '--calibrate', tmp_path / data), 1, data, word)
    assert not out.exists()


def test_what_cannot_be_quantised(saccade, network, clip, tmp_path):
    out, made = tmp_path / 'out.plan', tmp_path / 'made.plan'
    assert build(saccade, network, made).returncode == 0
    assert build(saccade, network, tmp_path / 'made.onnx').returncode == 0
    for name in 'made.plan', 'made.onnx':
        run = build(saccade, tmp_path / name, out, '--calibrate', clip / 'img')
        assert run.returncode == 1 and 'quantised already' in run.stderr.splitlines()[-1]
    port = helper.make_tensor_value_info('x', TensorProto.FLOAT, ['n', 3, 32, 32])
    out_port = helper.make_tensor_value_info('y', TensorProto.FLOAT, ['n', 3, 32, 32])
    zero = numpy_helper.from_array(numpy.zeros((3, 3, 1, 1), numpy.float32), 'w')
    nan = numpy_helper.from_array(numpy.full((3, 3, 1, 1), numpy.nan, numpy.float32), 'w')
    for node, weights, word in ((helper.make_node('Relu', ['x'], ['y']), zero, 'no convolution'),
                                (helper.make_node('Conv', ['x', 'w'], ['y']), nan, 'no numbers (NaN)')):
        graph = helper.make_graph([node], 'net', [port], [out_port], [weights])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=7), tmp_path / 'no.onnx')
        run = build(saccade, tmp_path / 'no.onnx', out, '--calibrate', clip / 'img')
        assert run.returncode == 1 and word in run.stderr.splitlines()[-1], run.stderr
    assert not out.exists()


def test_files_of_the_user_survive(saccade, program, network, clip, video, tmp_path):
    """What can't be written is said before the work; what is read, and what was there, is kept."""
    data = tmp_path / 'data'
    shutil.copytree(clip / 'img', data)
    shutil.copy(video, tmp_path / 'in.mp4')
    (tmp_path / 'mine.plan').write_text('precious')
    before = {path: path.read_bytes() for path in tmp_path.rglob('*') if path.is_file()}
    picture = next(data.iterdir())
    for shown, out, status, words in ((data, picture, 2, ['would overwrite an input']),
                                      (tmp_path / 'in.mp4', tmp_path / 'in.mp4', 2, ['would overwrite an input']),
                                      (data, tmp_path / 'none/net.plan', 1, ['cannot write', 'No such file']),
                                      (data, tmp_path, 1, ['it is a folder'])):
        fails(build(saccade, network, out, '--calibrate', shown), status, *words)
    assert build(saccade, network, tmp_path / 'mine.plan', '--calibrate', data, '--max-loss', '1e-9').returncode == 1
    process = subprocess.Popen([program, 'build', 'person_det_fast', '-o', tmp_path / 'mine.plan', '--device', 'cpu',
                                '--precision', 'int8', '--calibrate', data], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    assert any('ranges by' in line for line in process.stderr), 'it ended too soon'
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert {path: path.read_bytes() for path in tmp_path.rglob('*') if path.is_file()} == before
