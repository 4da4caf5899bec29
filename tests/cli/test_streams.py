# SPDX-License-Identifier: Apache-2.0
"""saccade track with several inputs at once."""
import json
import os
import pathlib
import shutil
import signal
import subprocess

import jsonschema
import pytest

from support import FRAMES, LONG, PATIENCE, box_at, fails, has_frames, wait_until, write_ppm

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ['one', 'two', 'three']


@pytest.fixture(scope='session')
def clips(saccade, tmp_path_factory):
    """Three videos of different length, and a folder with the detections in them. Somebody new comes in
    each now and then, so that they have many ids."""
    folder = tmp_path_factory.mktemp('clips')
    (folder / 'det').mkdir()
    for k, name in enumerate(NAMES):
        (folder / name).mkdir()
        frames = FRAMES + 20 * k
        rows = []
        for frame in range(frames):
            write_ppm(folder / name / f'{frame + 1:05d}.ppm', frame)
            x, y, w, h = box_at(frame)
            rows.append(f'{frame + 1},-1,{x},{y},{w},{h},0.9\n')
            for i in range(k + 1):  # a visitor every 12 frames, elsewhere each time
                rows.append(f'{frame + 1},-1,{(frame // 12) * 30 % 250 + i},{150 + 10 * k},30,60,0.8\n')
        (folder / 'det' / f'{name}.txt').write_text(''.join(rows))
        run = saccade('track', folder / name, '--fps', 20, '--detections', folder / 'det' / f'{name}.txt',
                      '-o', folder / f'{name}.mp4')
        assert run.returncode == 0, run.stderr
    return folder


def inputs(clips):
    return [clips / f'{name}.mp4' for name in NAMES]


def frames_of(path):
    """The frames of JSON lines, with ids renumbered by their first appearance: alone or among others, an object has
    another number, as numbers are unique over the streams of a run."""
    names = {}
    frames = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    for frame in frames:
        for track in frame['tracks']:
            track['id'] = names.setdefault(track['id'], len(names))
        frame['tracks'].sort(key=lambda track: track['id'])
    return frames


def ids_of(path):
    return {track['id'] for line in path.read_text().splitlines()[1:] for track in json.loads(line)['tracks']}


@pytest.fixture(scope='session')
def alone(saccade, clips):
    """Each input's frames from a run of its own."""
    out = {}
    for name in NAMES:
        run = saccade('track', clips / f'{name}.mp4', '--detections', clips / 'det' / f'{name}.txt',
                      '--jsonl', clips / f'{name}.jsonl')
        assert run.returncode == 0, run.stderr
        out[name] = frames_of(clips / f'{name}.jsonl')
        assert len(out[name]) >= FRAMES and len(ids_of(clips / f'{name}.jsonl')) > 3
    return out


def probe(saccade, path):
    run = saccade('inspect', path, '--json')
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


# ---- results ----

def test_each_stream_is_as_it_is_alone(saccade, clips, alone, tmp_path):
    out = tmp_path / 'new' / 'folder'  # made on the way
    run = saccade('track', *inputs(clips), '--detections', clips / 'det', '-o', out, '--jsonl', out, '--mot', out,
                  '--stats', tmp_path / 's.json')
    assert run.returncode == 0, run.stderr
    assert sorted(path.name for path in out.iterdir()) == \
        sorted(f'{name}.{ending}' for name in NAMES for ending in ('mp4', 'jsonl', 'txt'))
    seen = set()
    for name in NAMES:
        assert frames_of(out / f'{name}.jsonl') == alone[name]
        ids = ids_of(out / f'{name}.jsonl')
        assert not ids & seen  # unique over the streams
        seen |= ids
        assert probe(saccade, out / f'{name}.mp4')['frames'] == len(alone[name])
        assert json.loads((out / f'{name}.jsonl').read_text().splitlines()[0])['input'] == str(clips / f'{name}.mp4')

    stats = json.loads((tmp_path / 's.json').read_text())
    jsonschema.Draft202012Validator(json.loads((ROOT / 'docs/stats.schema.json').read_text())).validate(stats)
    assert [stream['frames'] for stream in stats['streams']] == [len(alone[name]) for name in NAMES]
    assert stats['frames'] == sum(len(alone[name]) for name in NAMES)
    assert stats['tracks'] == sum(stream['tracks'] for stream in stats['streams']) >= len(seen)
    assert all(queue['passed'] == stats['frames'] for queue in stats['queues'])
    for stream in stats['streams']:
        assert stream['input'] in run.stderr and stream['fault'] is None
    assert run.stderr.count(' frames: ') == 1


@pytest.mark.skipif('SACCADE_SANITIZED' in os.environ, reason='four clips through a detector take minutes there')
def test_in_batches_with_a_detector_too(saccade, shared, tmp_path):
    clip = shared / 'mot/TUD-Stadtmitte/TUD-Stadtmitte.mp4'
    model = ['--detector', ROOT / 'models/person_det_fast.onnx', '--reid', 'none', '--duration', 3]
    shutil.copy(clip, tmp_path / 'a.mp4')
    shutil.copy(clip, tmp_path / 'b.mp4')
    shutil.copy(clip, tmp_path / 'c.mp4')
    run = saccade('track', tmp_path / 'a.mp4', *model, '--jsonl', tmp_path / 'alone.jsonl')
    assert run.returncode == 0, run.stderr
    run = saccade('track', *(tmp_path / f'{name}.mp4' for name in 'abc'), *model, '--max-batch', 3,
                  '--batch-timeout', 1000, '--jsonl', tmp_path / 'out', '--stats', tmp_path / 's.json')
    assert run.returncode == 0, run.stderr
    batches = json.loads((tmp_path / 's.json').read_text())['batches']
    assert batches['fill'] > 0.9  # filled over the streams
    expected = frames_of(tmp_path / 'alone.jsonl')
    for name in 'abc':
        frames = frames_of(tmp_path / 'out' / f'{name}.jsonl')
        assert [frame['pts'] for frame in frames] == [frame['pts'] for frame in expected]
        for got, want in zip(frames, expected):
            assert [track['id'] for track in got['tracks']] == [track['id'] for track in want['tracks']]
            for a, b in zip(got['tracks'], want['tracks']):
                assert a['box'] == pytest.approx(b['box'], abs=0.1)
                assert a['score'] == pytest.approx(b['score'], abs=1e-3)


# ---- one that fails ----

def test_a_truncated_one_among_good_ones(saccade, clips, alone, tmp_path):
    whole = (clips / 'two.mp4').read_bytes()
    (tmp_path / 'in').mkdir()
    (tmp_path / 'in/two.mp4').write_bytes(whole[:len(whole) * 2 // 3])  # its index comes first
    out = tmp_path / 'out'
    run = saccade('track', clips / 'one.mp4', tmp_path / 'in/two.mp4', '/nowhere/four.mp4', clips / 'three.mp4',
                  '--detections', clips / 'det', '--jsonl', out, '-o', out)
    assert run.returncode == 1
    assert 'cut off' in run.stderr and 'four' in run.stderr
    assert run.stderr.splitlines()[-1].startswith('saccade: 2 of 4 inputs failed: ')
    assert sorted(path.name for path in out.iterdir()) == \
        sorted(f'{name}.{ending}' for name in NAMES for ending in ('jsonl', 'mp4'))
    for name in ('one', 'three'):
        assert frames_of(out / f'{name}.jsonl') == alone[name]
    cut = frames_of(out / 'two.jsonl')
    assert 0 < len(cut) < len(alone['two'])
    assert [frame['frame'] for frame in cut] == list(range(len(cut)))
    assert probe(saccade, out / 'two.mp4')['frames'] == len(cut)


def test_none_that_opens_is_a_failure(saccade, clips, tmp_path):
    run = saccade('track', '/nowhere/a.mp4', '/nowhere/b.mp4', '--jsonl', tmp_path)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith('saccade: 2 of 2 inputs failed: ')
    assert list(tmp_path.iterdir()) == []


# ---- names ----

def test_names_that_clash_are_refused_before_the_work(saccade, clips, tmp_path):
    other = tmp_path / 'other'
    other.mkdir()
    shutil.copy(clips / 'one.mp4', other / 'one.mkv')
    out = tmp_path / 'out'
    fails(saccade('track', clips / 'one.mp4', other / 'one.mkv', '--detections', clips / 'det',
                  '--jsonl', out / '{name}.jsonl'), 2, 'one.mp4', 'one.mkv', str(out / 'one.jsonl'))
    fails(saccade('track', clips / 'one.mp4', clips / 'one.mp4', '--detections', clips / 'det',
                  '--mot', out / '{name}.txt'), 2, 'would both write')
    fails(saccade('track', *inputs(clips), '--detections', clips / 'det', '-o', clips), 2, 'overwrite an input')
    fails(saccade('track', *inputs(clips), '--detections', clips / 'det', '--mot', clips / 'det'), 2,
          'overwrite an input')
    fails(saccade('track', '-', '-', '--detections', clips / 'det', '--mot', out), 2, 'standard input')
    assert not out.exists()
    # nothing is written twice where nothing is written
    assert saccade('track', clips / 'one.mp4', clips / 'one.mp4', '--detections', clips / 'det',
                   '--jsonl', 'none').returncode == 0


def test_folders_are_folders(saccade, clips, tmp_path):
    (tmp_path / 'file').write_text('')
    fails(saccade('track', *inputs(clips), '--detections', clips / 'det', '--mot', tmp_path / 'file'), 2,
          'not a folder', '--mot')
    fails(saccade('track', *inputs(clips), '--detections', clips / 'det/one.txt'), 2, 'not a folder', '--detections')
    fails(saccade('track', *inputs(clips), '--detections', '/nowhere'), 1, '/nowhere', '--detections')
    fails(saccade('track', *inputs(clips), '--detections', clips / 'det', '--mot', '/proc/nowhere'), 1,
          "cannot create folder '/proc/nowhere'")


# ---- interruption ----

def test_an_interrupt_leaves_whole_files_of_all(program, saccade, long_clip, tmp_path):
    folder = tmp_path / 'in'
    folder.mkdir()
    (folder / 'det').mkdir()
    for name in NAMES:
        (folder / name).symlink_to(long_clip / 'img')
        (folder / 'det' / f'{name}.txt').symlink_to(long_clip / 'det.txt')
    out = tmp_path / 'out'
    process = subprocess.Popen([program, 'track', *(str(folder / name) for name in NAMES), '--detections',
                                str(folder / 'det'), '-o', str(out), '--jsonl', str(out),
                                '--trace', str(tmp_path / 't.json')],
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until(process, lambda: all(has_frames(out, f'{name}.jsonl') for name in NAMES))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said
    assert 'interrupted' in said.splitlines()[-1]
    assert sorted(path.name for path in out.iterdir()) == \
        sorted(f'{name}.{ending}' for name in NAMES for ending in ('jsonl', 'mp4'))
    for name in NAMES:
        frames = frames_of(out / f'{name}.jsonl')
        assert 1 <= len(frames) < LONG
        assert [frame['frame'] for frame in frames] == list(range(len(frames)))
        assert probe(saccade, out / f'{name}.mp4')['frames'] == pytest.approx(len(frames), abs=1)
    trace = json.loads((tmp_path / 't.json').read_text())
    threads = {event['tid']: event['args']['name'] for event in trace if event['name'] == 'thread_name'}
    for stage, thread in (('decode', 'sac-read'), ('encode', 'sac-sink')):  # of each stream its own
        work = {(threads[event['tid']], event['args']['stream']) for event in trace if event['name'] == stage}
        assert {(f'{thread}-{i}', i) for i in range(len(NAMES))} <= work


@pytest.mark.parametrize('option', ['--jsonl', '--mot', '-o'])
def test_several_inputs_need_a_folder_not_standard_output(saccade, clips, tmp_path, option):
    fails(saccade('track', *inputs(clips), '--detections', clips / 'det', option, '-', cwd=tmp_path), 2,
          'names a folder, not standard output')
    assert list(tmp_path.iterdir()) == []
