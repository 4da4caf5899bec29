# SPDX-License-Identifier: Apache-2.0
"""The models that come with saccade: where they are looked for, what happens without them, and that they are
installed. The program is copied out of its build folder where the folders around it matter."""
import json
import os
import pathlib
import shutil
import subprocess

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from support import fails

ROOT = pathlib.Path(__file__).resolve().parents[2]
OURS = ROOT / 'models'
INSTALLED = pathlib.Path('/usr/local/share/saccade/models')
nothing_installed = pytest.mark.skipif(INSTALLED.exists(), reason=f'{INSTALLED} would be found')


@pytest.fixture
def prefix(program, tmp_path):
    """A prefix with the program in bin/, far from its build folder."""
    (tmp_path / 'prefix/bin').mkdir(parents=True)
    shutil.copy(program, tmp_path / 'prefix/bin/saccade')
    return tmp_path / 'prefix'


def environment(**more):
    return {k: v for k, v in os.environ.items() if k not in ('SACCADE_LOG', 'DEBUG', 'SACCADE_MODELS')} | more


def run_copy(prefix, program, *args, **more):
    libraries = pathlib.Path(program).parents[2]
    return subprocess.run([prefix / 'bin/saccade', *map(str, args)], capture_output=True, text=True, timeout=600,
                          stdin=subprocess.DEVNULL, env=environment(LD_LIBRARY_PATH=str(libraries), **more))


def place(folder, name='person_det', source='person_det_fast'):
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(OURS / f'{source}.onnx', folder / f'{name}.onnx')
    return str(folder / f'{name}.onnx')


def header(path):
    return json.loads(path.read_text().splitlines()[0])


def listed(run):
    """From doctor: which file each model is."""
    findings = json.loads(run.stdout)['findings']
    return {f['text'].split(':')[0]: f['text'] for f in findings if f['area'] == 'models'}


# ---- which file it is ----

def test_the_default_is_our_detector(saccade, clip, tmp_path):
    run = saccade('track', clip / 'img', '--reid', 'none', '--jsonl', tmp_path / 'o.jsonl')
    assert run.returncode == 0, run.stderr
    assert 'warning' not in run.stderr
    first = header(tmp_path / 'o.jsonl')
    assert first['detector'] == str(OURS / 'person_det.onnx') and first['classes'] == ['person']
    assert first['head'] == 'yolov8' and 'reid' not in first


def test_a_name_stands_for_its_file(saccade, clip, tmp_path):
    run = saccade('track', clip / 'img', '--detector', 'person_det_fast', '--reid', 'none', '--jsonl', tmp_path / 'o.jsonl')
    assert run.returncode == 0, run.stderr
    assert header(tmp_path / 'o.jsonl')['detector'] == str(OURS / 'person_det_fast.onnx')
    report = json.loads(saccade('inspect', 'person_det_fast', '--json').stdout)
    assert report['kind'] == 'model' and report['file'] == str(OURS / 'person_det_fast.onnx')
    numpy.save(tmp_path / 'x.npy', numpy.zeros((1, 3, 416, 416), numpy.float32))
    assert saccade('infer', 'person_det_fast', '--input', tmp_path / 'x.npy').returncode == 0


def test_a_file_of_that_name_comes_first(saccade, clip, tmp_path):
    shutil.copy(OURS / 'person_det_fast.onnx', tmp_path / 'person_det')
    run = saccade('track', clip / 'img', '--detector', 'person_det', '--reid', 'none', '--jsonl', 'o.jsonl', cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert header(tmp_path / 'o.jsonl')['detector'] == 'person_det'
    (tmp_path / 'person_det').unlink()
    (tmp_path / 'person_det').mkdir()  # no file
    assert saccade('inspect', 'person_det', cwd=tmp_path).returncode == 0


def test_the_places_in_their_order(prefix, program, tmp_path):
    """From the last place to the first: each new one wins over the others."""
    chosen = tmp_path / 'chosen'
    for folder in (prefix / 'share/saccade/models', prefix / 'bin/models', chosen):
        file = place(folder)
        run = run_copy(prefix, program, 'doctor', '--json', SACCADE_MODELS=str(chosen))
        assert run.returncode == 0, run.stderr
        assert listed(run)['person_det'].endswith(f'({file})')


def test_a_folder_of_ones_own_models(saccade, clip, tmp_path):
    mine = place(tmp_path / 'models', 'mine')
    run = saccade('track', clip / 'img', '--detector', 'mine', '--reid', 'none', '--jsonl', tmp_path / 'o.jsonl',
                  env={'SACCADE_MODELS': str(tmp_path / 'models')})
    assert run.returncode == 0, run.stderr
    assert header(tmp_path / 'o.jsonl')['detector'] == mine
    # what is not there is still found in the other places
    assert listed(saccade('doctor', '--json', env={'SACCADE_MODELS': '/nowhere'}))['person_det'].endswith(
        f'({OURS}/person_det.onnx)')


# ---- what is not there ----

@nothing_installed
def test_without_models_a_sentence_says_where_they_should_be(prefix, program, clip, tmp_path):
    output = tmp_path / 'o.jsonl'
    run = run_copy(prefix, program, 'track', clip / 'img', '--jsonl', output, SACCADE_MODELS='/nowhere')
    fails(run, 1, "own model 'person_det' is missing", 'SACCADE_MODELS', '/nowhere, ', f'{prefix}/bin/models, ',
          f'{prefix}/share/saccade/models', str(INSTALLED))
    assert not output.exists()
    # ready-made detections need none
    run = run_copy(prefix, program, 'track', clip / 'img', '--detections', clip / 'det.txt', '--jsonl', output)
    assert run.returncode == 0 and 'warning' not in run.stderr
    assert 'detector' not in header(output)
    doctor = run_copy(prefix, program, 'doctor')
    assert doctor.returncode == 0 and 'not there: person_det, person_det_fast' in doctor.stdout


def test_the_sentence_comes_before_standard_input_is_waited_for(prefix, program):
    with subprocess.Popen([prefix / 'bin/saccade', 'track', '-', '--detector', 'person_dett'], stdin=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True,
                          env=environment(LD_LIBRARY_PATH=str(pathlib.Path(program).parents[2]))) as process:
        assert process.wait(timeout=300) == 1
        said = process.stderr.read()
    assert said.startswith("saccade: no model 'person_dett'") and 'person_det, person_det_fast' in said


# ---- appearance ----

def embedding(path):
    """A network that looks no further than the mean colour."""
    path.parent.mkdir(parents=True, exist_ok=True)
    graph = helper.make_graph(
        [helper.make_node('ReduceMean', ['image'], ['mean'], axes=[2, 3], keepdims=0),
         helper.make_node('MatMul', ['mean', 'w'], ['looks'])], 'test',
        [helper.make_tensor_value_info('image', TensorProto.FLOAT, ['n', 3, 64, 32])],
        [helper.make_tensor_value_info('looks', TensorProto.FLOAT, ['n', 16])],
        [numpy_helper.from_array(numpy.random.default_rng(1).random((3, 16), numpy.float32), 'w')])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8), path)
    return str(path)


def cars(path):
    """A detector of something else than persons."""
    model = onnx.load(OURS / 'person_det_fast.onnx')
    for entry in model.metadata_props:
        if entry.key == 'saccade.classes':
            entry.value = 'car'
    onnx.save(model, path)
    return path


def test_appearance_is_used_where_it_helps(saccade, clip, tmp_path):
    looks = embedding(tmp_path / 'models/person_reid.onnx')

    def reid(*args):
        run = saccade('track', clip / 'img', '--jsonl', tmp_path / 'o.jsonl', *args,
                      env={'SACCADE_MODELS': str(tmp_path / 'models')})
        assert run.returncode == 0 and 'warning' not in run.stderr, run.stderr
        return header(tmp_path / 'o.jsonl').get('reid')

    assert reid() == looks
    assert reid('--tracker', 'bytetrack') is None
    assert reid('--reid', 'none') is None
    assert reid('--detections', clip / 'det.txt') is None
    assert reid('--detections', clip / 'det.txt', '--reid', 'person_reid') == looks
    assert reid('--detector', cars(tmp_path / 'cars.onnx')) is None
    assert reid('--detector', cars(tmp_path / 'cars.onnx'), '--reid', 'person_reid') == looks


@nothing_installed
def test_without_the_appearance_network_a_warning_and_a_run(prefix, program, clip, tmp_path):
    place(prefix / 'share/saccade/models')
    run = run_copy(prefix, program, 'track', clip / 'img', '--jsonl', tmp_path / 'o.jsonl')
    assert run.returncode == 0, run.stderr
    warnings = [line for line in run.stderr.splitlines() if line.startswith('warning: ')]
    assert len(warnings) == 1 and 'without appearance' in warnings[0] and "'person_reid'" in warnings[0]
    assert 'reid' not in header(tmp_path / 'o.jsonl')
    fails(run_copy(prefix, program, 'track', clip / 'img', '--reid', 'person_reid'), 1, "own model 'person_reid' is missing")


# ---- the installation ----

def test_the_installed_program_has_its_models(program, clip, tmp_path):
    build = pathlib.Path(program).parents[2]
    if not shutil.which('meson') or not (build / 'build.ninja').exists():
        pytest.skip('no meson, or the program is not in its build folder')
    done = subprocess.run(['meson', 'install', '-C', build, '--no-rebuild', '--destdir', tmp_path / 'root'],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    prefix = tmp_path / 'root/usr/local'
    models = prefix / 'share/saccade/models'
    wanted = {p.name for p in OURS.iterdir() if p.suffix in ('.onnx', '.md') or p.name == 'LICENSE'}
    assert wanted <= {p.name for p in models.iterdir()} and 'person_det.onnx' in wanted
    assert not (models / 'pictures').exists()
    library = next(prefix.glob('lib*/**/libsaccade.so.0'))
    run = subprocess.run([prefix / 'bin/saccade', clip / 'img', '--reid', 'none', '--jsonl', tmp_path / 'o.jsonl'],
                         capture_output=True, text=True, env=environment(LD_LIBRARY_PATH=str(library.parent)))
    assert run.returncode == 0, run.stderr
    assert header(tmp_path / 'o.jsonl')['detector'] == str(models / 'person_det.onnx')
