# SPDX-License-Identifier: Apache-2.0
"""saccade tune on sequences made of nothing: whether a gain is seen, and one that is none is not."""
import os
import random
import re
import signal
import subprocess

import pytest
import yaml

from support import catches, fails, wait_until

FRAMES, PEOPLE = 60, 5


def write_sequence(folder, score, seed, drop=0.1):
    """People who walk to the right in lanes of their own; a detector that misses some of them."""
    draw = random.Random(seed)
    (folder / 'gt').mkdir(parents=True)
    (folder / 'det').mkdir()
    truth, found = [], []
    for frame in range(1, FRAMES + 1):
        for person in range(PEOPLE):
            x, y = 20 + 3 * frame + 11 * person, 10 + 90 * person
            truth.append(f'{frame},{person + 1},{x},{y},40,80,1,1,1\n')
            if draw.random() > drop:
                found.append(f'{frame},-1,{x + draw.uniform(-1, 1):.2f},{y},40,80,{score()},-1,-1,-1\n')
    (folder / 'gt/gt.txt').write_text(''.join(truth))
    (folder / 'det/det.txt').write_text(''.join(found))
    (folder / 'seqinfo.ini').write_text(f'[Sequence]\nname={folder.name}\nframeRate=20\nseqLength={FRAMES}\n')


@pytest.fixture
def timid(tmp_path):
    """A detector that is never sure: with the defaults, no track begins."""
    draw = random.Random(1)
    for number in range(3):
        write_sequence(tmp_path / f'gt/S{number}', lambda: round(draw.uniform(0.45, 0.55), 3), number)
    return tmp_path / 'gt'


@pytest.fixture
def sure(tmp_path):
    """Nothing to gain: each box is right, sure and where it should be."""
    for number in range(3):
        write_sequence(tmp_path / f'gt/S{number}', lambda: 0.95, number, drop=0)
    return tmp_path / 'gt'


def score(saccade, folder, tmp_path, *options):
    """HOTA of all, in per cent, as track and eval have it."""
    tracks = tmp_path / 'tracks'
    tracks.mkdir(exist_ok=True)
    for sequence in folder.iterdir():
        run = saccade('track', '--detections', sequence / 'det/det.txt', '--mot', tracks / f'{sequence.name}.txt', *options)
        assert run.returncode == 0, run.stderr
    table = saccade('eval', '--gt', folder, '--tracks', tracks).stdout.splitlines()
    return [float(line.split()[1]) for line in table[1:-1]]


def test_a_gain_is_found_and_holds_in_a_run(saccade, timid, tmp_path):
    out = tmp_path / 'tuned.yaml'
    run = saccade('tune', '--gt', timid, '-o', out, '--trials', 80)
    assert run.returncode == 0, run.stderr
    assert 'more than noise' in run.stdout
    tracker = yaml.safe_load(out.read_text())['tracker']
    assert tracker['score_new'] < 0.55 and tracker['kind'] == 'botsort'
    assert '# default: 0.7' in out.read_text()
    before, after = score(saccade, timid, tmp_path), score(saccade, timid, tmp_path, '--config', out)
    assert all(b > a + 20 for a, b in zip(before, after))
    # the table's figures are those of a run with --detections
    rows = {line.split()[0]: line.split() for line in run.stdout.splitlines() if re.match(r'S\d', line)}
    assert [float(rows[f'S{i}'][2]) for i in range(3)] == pytest.approx(sorted(before), abs=0.2)


def test_what_is_no_gain_leaves_the_defaults(saccade, sure, tmp_path):
    out = tmp_path / 'tuned.yaml'
    run = saccade('tune', '--gt', sure, '-o', out, '--trials', 30)
    assert run.returncode == 0, run.stderr
    assert 'stay' in run.stdout and 'more than noise' not in run.stdout
    assert yaml.safe_load(out.read_text())['tracker']['score_new'] == 0.7
    assert saccade('track', '--detections', sure / 'S0/det/det.txt', '--config', out, '--mot', tmp_path / 'x.txt').returncode == 0


def test_the_real_sequences_say_that_two_are_few(saccade, shared):
    """Searched on one, the other gets worse: that is what leaving out is for."""
    run = saccade('tune', '--gt', shared / 'mot', '--no-preprocess', '--trials', 60)
    assert run.returncode == 0, run.stderr
    assert 'stay' in run.stderr and yaml.safe_load(run.stdout)['tracker']['score_high'] == 0.6
    assert re.search(r'^PETS09-S2L1 +795 +53\.\d\d ', run.stderr, re.M)


def test_truth_without_classes_is_no_line_for_each_point(saccade, sure):
    for truth in sure.glob('*/gt/gt.txt'):  # MOT15's form
        truth.write_text(re.sub(r',1,1,1$', ',1,-1,-1,-1', truth.read_text(), flags=re.M))
    run = saccade('tune', '--gt', sure, '--trials', 30)
    assert run.returncode == 0, run.stderr
    assert len(run.stderr.splitlines()) < 12


def test_one_seed_gives_one_result(saccade, timid):
    def values(seed):
        return re.sub(r'in [\d.]+ s', '', saccade('tune', '--gt', timid, '--seed', seed, '--trials', 40).stdout)
    assert values(4) == values(4)


def test_time_and_ctrl_c_keep_the_best_so_far(saccade, program, timid, tmp_path):
    run = saccade('tune', '--gt', timid, '--budget', 0.001, '-o', tmp_path / 'a.yaml')
    assert run.returncode == 0 and 'ended the search' in run.stdout
    assert 'tracker' in yaml.safe_load((tmp_path / 'a.yaml').read_text())
    process = subprocess.Popen([program, 'tune', '--gt', timid, '--budget', '3000', '--trials', '100000', '-o',
                                tmp_path / 'b.yaml'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(process, lambda: catches(process, signal.SIGINT))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130 and 'interrupted' in err
    if 'nothing was written' not in err:  # it came while the files were read
        assert 'Ctrl-C ended the search' in out and yaml.safe_load((tmp_path / 'b.yaml').read_text())['tracker']
    assert not [name for name in os.listdir(tmp_path) if name.endswith('.part')]


def write_unseen(folder, video):
    """A video beside the ground truth, and no boxes."""
    for name in 'AB':
        (folder / name).mkdir(parents=True)
        (folder / name / 'gt.txt').write_text(
            ''.join(f'{frame + 1},1,{20 + 4 * frame},80,48,96,1,1,1\n' for frame in range(10)))
        (folder / name / 'a.mp4').write_bytes(video.read_bytes())
    return folder


def test_ctrl_c_while_the_detector_runs(program, video, tmp_path):
    folder = write_unseen(tmp_path / 'gt', video)
    process = subprocess.Popen([program, 'tune', '--gt', folder, '-o', tmp_path / 'a.yaml'],
                               stderr=subprocess.PIPE, text=True)
    assert 'detecting once' in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and 'interrupted' in err
    assert not (tmp_path / 'a.yaml').exists()


def test_no_output_replaces_what_the_detector_reads(saccade, video, tmp_path):
    """Found before anything is detected."""
    folder = write_unseen(tmp_path / 'gt', video)
    run = saccade('tune', '--gt', folder, '-o', folder / 'A/a.mp4')
    fails(run, 1, 'overwrite')
    assert 'detecting' not in run.stderr


def test_what_does_not_fit_is_named(saccade, timid, tmp_path):
    fails(saccade('tune'), 2, '--gt')
    fails(saccade('tune', '--gt', tmp_path / 'none.txt'), 1, 'none.txt', 'No such file')
    fails(saccade('tune', '--gt', timid / 'S0'), 2, 'only one sequence', "'S0'")
    fails(saccade('tune', '--gt', timid / 'S0/det'), 1, 'no gt.txt')
    fails(saccade('tune', '--gt', timid, '--gt', timid / '../gt/S0'), 2, 'S0/gt/gt.txt was given twice')
    fails(saccade('tune', '--gt', timid, '--detections', timid / 'S0/det/det.txt'), 2, 'sequences of --gt: 3, files of --detections: 1')
    boxes = [timid / f'S{i}/det/det.txt' for i in range(3)]
    saccade('tune', '--gt', timid, '--detections', *boxes, '--trials', 2, '-o', tmp_path / 'a.yaml')
    saccade('tune', '--gt', timid, '--detections', *reversed(boxes), '--trials', 2, '-o', tmp_path / 'b.yaml')
    a, b = ((tmp_path / name).read_text().splitlines() for name in ('a.yaml', 'b.yaml'))
    assert a[2:] == b[2:]  # each with its own sequence; above are the seconds that it took
    late = tmp_path / 'late.txt'
    late.write_text(boxes[0].read_text() + '5000,-1,10,10,20,40,0.9\n')
    fails(saccade('tune', '--gt', timid, '--detections', late, *boxes[1:]), 1, 'late.txt: it has frame 5000, but S0 has')
    fails(saccade('tune', '--gt', timid, '--detections', tmp_path), 1, "no 'S0.txt'")
    fails(saccade('tune', '--gt', timid, '-o', tmp_path), 2, 'is a folder')
    fails(saccade('tune', '--gt', timid, '-o', tmp_path / 'no/a.yaml'), 1, "can't be written")
    for read in ('gt/gt.txt', 'det/det.txt', 'seqinfo.ini'):
        fails(saccade('tune', '--gt', timid, '-o', timid / 'S1' / read), 1, 'overwrite')
    fails(saccade('tune', '--gt', timid, '--score-low', '0.9'), 1, 'low')
    (timid / 'S1/det/det.txt').unlink()
    fails(saccade('tune', '--gt', timid), 1, 'ground truth without detections', 'S1/gt/gt.txt')
    (timid / 'S1/det/det.txt').write_text('1,2\n')
    fails(saccade('tune', '--gt', timid), 1, 'det.txt:1')


def test_the_detector_runs_where_there_are_no_boxes(saccade, video, tmp_path):
    folder = write_unseen(tmp_path / 'gt', video)
    run = saccade('tune', '--gt', folder, '--trials', 3, '--detector', 'person_det_fast')
    assert run.returncode == 0, run.stderr
    assert run.stderr.count('detecting once') == 2
    assert 'a.mp4' in run.stdout and yaml.safe_load(run.stdout)['tracker']['kind'] == 'botsort'


def cut(shared, folder, frames):
    """The first frames of a real sequence, boxes and all, beside its video."""
    whole = shared / 'mot/TUD-Stadtmitte'
    folder.mkdir(parents=True)
    for name, own in (('gt.txt', 'gt.txt'), ('det_yolox_nano.txt', 'det.txt')):
        rows = (whole / name).read_text().splitlines(keepends=True)
        (folder / own).write_text(''.join(row for row in rows if int(row.split(',')[0]) <= frames))
    (folder / 'seqinfo.ini').write_text(f'[Sequence]\nname={folder.name}\nframeRate=25\nseqLength={frames}\n')
    (folder / 'a.mp4').symlink_to(whole / 'TUD-Stadtmitte.mp4')


def test_appearance_is_searched_where_it_is_asked_for(saccade, shared, tmp_path):
    folder, tracks = tmp_path / 'gt', tmp_path / 'tracks'
    tracks.mkdir()
    for name, frames in (('A', 30), ('B', 20)):
        cut(shared, folder / name, frames)
        assert saccade('track', folder / name / 'a.mp4', '--detections', folder / name / 'det.txt', '--reid', 'person_reid',
                       '--no-camera-motion', '--duration', frames / 25, '--mot', tracks / f'{name}.txt').returncode == 0
    run = saccade('tune', '--gt', folder, '--no-preprocess', '--reid', 'person_reid', '--trials', 8)
    assert run.returncode == 0, run.stderr
    assert run.stderr.count('embedding the boxes once') == 2
    tracker = yaml.safe_load(run.stdout)['tracker']
    assert tracker['reid_distance'] == 0.15 and tracker['gallery_max'] == 1
    assert 'with the embeddings of person_reid' in run.stdout
    table = saccade('eval', '--gt', folder, '--tracks', tracks, '--no-preprocess').stdout.splitlines()
    rows = [line.split() for line in run.stderr.splitlines() if re.match(r'[AB] +\d', line)]
    assert [float(row[2]) for row in rows] == pytest.approx([float(line.split()[1]) for line in table[1:3]], abs=0.2)
    alone = saccade('tune', '--gt', folder, '--no-preprocess', '--reid', 'none', '--trials', 3)
    assert 'by motion alone' in alone.stdout and 'reid_distance' not in alone.stdout


def test_appearance_needs_pictures_and_a_tracker_that_looks(saccade, shared, timid, video, tmp_path):
    fails(saccade('tune', '--gt', timid, '--reid', 'person_reid'), 1, '--reid needs the pictures', 'S0')
    for name in 'AB':
        cut(shared, tmp_path / 'cut' / name, 100)
    fails(saccade('tune', '--gt', tmp_path / 'cut', '--reid', 'person_reid', '--tracker', 'sort'), 2, 'sort', 'motion only')
    fails(saccade('tune', '--gt', tmp_path / 'cut', '--reid', tmp_path / 'none.onnx'), 1, 'none.onnx')
    (tmp_path / 'cut/A/a.mp4').unlink()
    (tmp_path / 'cut/A/a.mp4').write_bytes(video.read_bytes())
    run = saccade('tune', '--gt', tmp_path / 'cut', '--reid', 'person_reid')
    assert run.returncode == 1 and 'boxes in later ones' in run.stderr
