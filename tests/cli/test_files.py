# SPDX-License-Identifier: Apache-2.0
"""No output overwrites what its run reads, or another output, however the paths are spelled."""
import os
import pathlib
import shutil
import subprocess

import numpy
import onnx
import pytest

from support import fails

pytestmark = pytest.mark.sanitized

HEADS = pathlib.Path(__file__).resolve().parents[1] / 'heads'


@pytest.fixture
def work(clip, tmp_path):
    """A folder of pictures that may be lost, with detections as a MOTChallenge sequence has them."""
    shutil.copytree(clip / 'img', tmp_path / 'img')
    (tmp_path / 'det').mkdir()
    shutil.copy(clip / 'det.txt', tmp_path / 'det')
    (tmp_path / 'seqinfo.ini').write_text('[Sequence]\nframeRate=20\nseqLength=40\n')
    (tmp_path / 'link').symlink_to('.')
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob('*') if path.is_file()}


def refused(saccade, work, *args, words=('overwrite an input',)):
    """Status 2, the words on the last line, and not one byte changed."""
    before = contents(work)
    run = saccade(*args, cwd=work)
    assert run.returncode == 2, run.stderr
    last = run.stderr.splitlines()[-1]
    for word in words:
        assert word in last
    assert contents(work) == before


@pytest.mark.parametrize('source', ['img', 'img/%05d.ppm', 'link/img'])
@pytest.mark.parametrize('option', ['--jsonl', '--mot', '--stats', '--trace'])
def test_a_picture_of_an_input_is_kept(saccade, work, source, option):
    refused(saccade, work, source, '--detections', 'det/det.txt', option, 'img/00002.ppm')


def test_a_linked_picture_is_kept(saccade, work):
    os.link(work / 'img/00001.ppm', work / 'hard.txt')
    refused(saccade, work, 'img', '--detections', 'det/det.txt', '--mot', 'hard.txt')
    (work / 'img/00001.ppm').unlink()
    (work / 'img/00001.ppm').symlink_to('../hard.txt')
    refused(saccade, work, 'img', '--detections', 'det/det.txt', '--mot', 'hard.txt')


@pytest.mark.parametrize('read', ['det/det.txt', 'seqinfo.ini', 'link/det/../seqinfo.ini', 'run.yaml'])
def test_what_stands_beside_the_input_is_kept(saccade, work, read):
    (work / 'run.yaml').write_text('tracker:\n  kind: sort\n')
    refused(saccade, work, 'img', '--detections', 'det/det.txt', '--config', 'run.yaml', '--jsonl', read)


def test_all_files_of_a_model_are_kept(saccade, work):
    model = onnx.load(HEADS / 'end2end.onnx')
    for tensor in model.graph.initializer:
        if not tensor.raw_data:
            tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), tensor.name))
    onnx.save(model, work / 'net.onnx', save_as_external_data=True, location='weights.bin', size_threshold=0,
              convert_attribute=True)
    (work / 'net.yaml').write_text('names: [person, car]\n')
    arguments = ['img', '--detector', 'net.onnx', '--reid', 'none']
    run = saccade(*arguments, '--mot', 'out.txt', cwd=work)
    assert run.returncode == 0, run.stderr
    for name in ('net.onnx', 'weights.bin', 'net.yaml'):
        refused(saccade, work, *arguments, '--stats', './' + name)
    (work / 'net.yaml').unlink()  # what is not there is not read
    assert saccade(*arguments, '--mot', 'net.yaml', cwd=work).returncode == 0


@pytest.mark.parametrize('a, b', [('q.txt', './q.txt'), ('q.txt', 'link/q.txt'), ('nowhere', 'q.txt')])
def test_one_file_under_two_spellings(saccade, work, a, b):
    (work / 'nowhere').symlink_to('q.txt')
    refused(saccade, work, 'img', '--detections', 'det/det.txt', '--mot', a, '--jsonl', b, words=(a, b))


def test_standard_output_is_a_file_too(program, work):
    with open(work / 'all.txt', 'w') as out:
        run = subprocess.run([program, 'img', '--detections', 'det/det.txt', '--jsonl', '-', '--mot', 'all.txt'],
                             cwd=work, stdout=out, stderr=subprocess.PIPE, text=True)
    assert run.returncode == 2 and 'all.txt' in run.stderr
    run = subprocess.run([program, 'img', '--detections', 'det/det.txt', '--jsonl', '/dev/null', '--mot', '/dev/null'],
                         cwd=work, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_an_address_of_a_file_is_a_file(saccade, video, work):
    shutil.copy(video, work / 'in.mp4')
    refused(saccade, work, 'file:in.mp4', '--detections', 'det/det.txt', '-o', 'in.mp4')


def test_inputs_of_one_run_share_no_output(saccade, video, work):
    (work / 'other').mkdir()
    for name in ('in.mp4', 'other/in.mkv'):
        shutil.copy(video, work / name)
    fails(saccade('in.mp4', 'other/in.mkv', '--mot', 'out/{name}.txt', cwd=work), 2, 'in.mp4', 'in.mkv', 'out/in.txt')
    assert not (work / 'out').exists()


# ---- temporary files ----

def test_an_input_with_the_name_of_a_temporary_file_is_kept(saccade, video, work):
    shutil.copy(video, work / 'x.mp4.part')
    before = (work / 'x.mp4.part').read_bytes()
    (work / 'q.txt.part').symlink_to('precious')
    (work / 'precious').write_text('precious')
    run = saccade('x.mp4.part', '--detections', 'det/det.txt', '-o', 'x.mp4', '--mot', 'q.txt', cwd=work)
    assert run.returncode == 0, run.stderr
    assert (work / 'x.mp4.part').read_bytes() == before
    assert (work / 'precious').read_text() == 'precious'
    assert (work / 'q.txt').stat().st_size > 0


def test_two_runs_with_one_output_write_it_whole(program, saccade, video, work):
    command = [program, str(video), '--detections', 'det/det.txt', '-o', 'o.mp4', '--jsonl', 'o.jsonl']
    runs = [subprocess.Popen(command, cwd=work, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for run in runs:
        _, said = run.communicate(timeout=300)
        assert run.returncode == 0, said
    assert len((work / 'o.jsonl').read_text().splitlines()) == 41
    run = saccade('o.mp4', '--detections', 'det/det.txt', '--jsonl', 'again.jsonl', cwd=work)
    assert run.returncode == 0, run.stderr
    assert len((work / 'again.jsonl').read_text().splitlines()) == 41
    assert not list(work.glob('*.part'))


def test_a_colon_makes_no_protocol_of_an_output(saccade, video, work):
    run = saccade(video, '--detections', 'det/det.txt', '-o', '12:30.mp4', '--mot', 'a:b.txt', cwd=work)
    assert run.returncode == 0, run.stderr
    assert (work / '12:30.mp4').stat().st_size > 0 and (work / 'a:b.txt').stat().st_size > 0


# ---- nothing to write ----

def test_a_run_without_a_frame_keeps_former_results(saccade, tmp_path):
    (tmp_path / 'none.txt').write_text('')
    arguments = ['--detections', 'none.txt', '--fps', '20', '--mot', 'o.txt', '--jsonl', 'o.jsonl', '--stats', 's.json']
    run = saccade(*arguments, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert 'not one frame came' in run.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ['none.txt', 's.json']
    for name in ('o.txt', 'o.jsonl'):
        (tmp_path / name).write_text('good')
    assert saccade(*arguments, cwd=tmp_path).returncode == 0
    assert (tmp_path / 'o.txt').read_text() == (tmp_path / 'o.jsonl').read_text() == 'good'
