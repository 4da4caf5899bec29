# SPDX-License-Identifier: Apache-2.0
"""saccade track as a program: files, faults, interruption. Ready-made detections stand in for a
detector, so no model is needed."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import jsonschema
import pytest

from support import FRAMES, LONG, PATIENCE, box_at, catches, fails, has_frames, send_at_once, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]


def track(saccade, clip, *args, **more):
    if not {'-o', '--jsonl', '--mot', '--csv', '--kitti', '--coco', '--save-crops', '--stats', '--trace'} & set(args):
        args += ('--jsonl', 'none')
    return saccade('track', clip / 'img', '--fps', 20, '--detections', clip / 'det.txt', *args, **more)


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir())


def mot_rows(path):
    return [[float(x) for x in line.split(',')] for line in path.read_text().splitlines()]


def probe(saccade, path):
    run = saccade('inspect', path, '--json')
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


# ---- what is written ----

def test_one_object_keeps_its_number(saccade, clip, tmp_path):
    run = track(saccade, clip, '--mot', tmp_path / 't.txt')
    assert run.returncode == 0, run.stderr
    rows = mot_rows(tmp_path / 't.txt')
    assert {row[1] for row in rows} == {1}
    assert len(rows) >= FRAMES - 5  # the first ones confirm it
    assert all(1 <= row[0] <= FRAMES for row in rows)
    for row in rows[5:]:
        x, y, w, h = box_at(int(row[0]) - 1)
        assert abs(row[2] - x) < 6 and abs(row[3] - y) < 6
        assert abs(row[4] - w) < 6 and abs(row[5] - h) < 6
    assert leftovers(tmp_path) == ['t.txt']


def test_json_lines_follow_the_schema(saccade, clip, tmp_path):
    schema = json.loads((ROOT / 'docs/tracks.schema.json').read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    run = track(saccade, clip, '--jsonl', tmp_path / 't.jsonl', '--mot', tmp_path / 't.txt')
    assert run.returncode == 0, run.stderr
    lines = [json.loads(line) for line in (tmp_path / 't.jsonl').read_text().splitlines()]
    for line in lines:
        validator.validate(line)
    frames = [line for line in lines if 'tracks' in line]
    assert len(frames) == FRAMES
    assert [line['frame'] for line in frames] == list(range(frames[0]['frame'], frames[0]['frame'] + FRAMES))
    # both files tell the same
    assert sum(len(line['tracks']) for line in frames) == len(mot_rows(tmp_path / 't.txt'))


def test_boxes_end_at_the_pictures_edges(saccade, clip, tmp_path):
    """One object half outside on the left, one past two edges, one that has left the picture."""
    boxes = [(-30, 50, 60, 90), (290, 180, 60, 90), (150, 300, 40, 80)]
    (tmp_path / 'det.txt').write_text(''.join(f'{frame + 1},-1,{x},{y},{w},{h},0.9\n'
                                              for frame in range(FRAMES) for x, y, w, h in boxes))

    def run(*args):
        done = saccade('track', clip / 'img', '--detections', tmp_path / 'det.txt', '--jsonl', tmp_path / 't.jsonl',
                       '--mot', tmp_path / 't.txt', '--csv', tmp_path / 't.csv', *args)
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in (tmp_path / 't.jsonl').read_text().splitlines()[1:]]
        tracks = [track['box'] for line in lines for track in line['tracks']]
        rows = [[row[2], row[3], row[2] + row[4], row[3] + row[5]] for row in mot_rows(tmp_path / 't.txt')]
        assert len(rows) == len(tracks) > FRAMES
        for row, box in zip(rows, tracks):
            assert row == pytest.approx(box, abs=0.02)
        assert tracks == [[float(x) for x in line.split(',')[-4:]]
                          for line in (tmp_path / 't.csv').read_text().splitlines()[1:]]
        return tracks

    cut = run()
    assert all(0 <= x0 < x1 <= 320 and 0 <= y0 < y1 <= 240 for x0, y0, x1, y1 in cut)
    assert any(x0 == 0 for x0, *_ in cut) and any(x1 == 320 and y1 == 240 for *_, x1, y1 in cut)
    whole = run('--no-clip-boxes')
    assert min(x0 for x0, *_ in whole) == pytest.approx(-30, abs=2)
    assert max(y1 for *_, y1 in whole) > 370 and len(whole) > len(cut)


def test_json_lines_have_the_times_of_the_input(saccade, clip, tmp_path):
    ours = ['--detections', clip / 'det.txt', '--jsonl', tmp_path / 't.jsonl']
    run = saccade('track', clip / 'img', '--fps', 20, *ours, '-o', tmp_path / 'clip.ts')
    assert run.returncode == 0, run.stderr
    run = saccade('track', tmp_path / 'clip.ts', *ours)
    assert run.returncode == 0, run.stderr
    lines = [json.loads(line) for line in (tmp_path / 't.jsonl').read_text().splitlines()[1:]]
    assert len(lines) == FRAMES
    start = lines[0]['source_pts']
    for line in lines:
        assert line['source_pts'] - start == pytest.approx(line['pts'], abs=2e-5)
    run = saccade('track', '--detections', clip / 'det.txt', '--fps', 20, '--jsonl', tmp_path / 't.jsonl')
    assert run.returncode == 0, run.stderr
    assert 'source_pts' not in (tmp_path / 't.jsonl').read_text()  # no input, no times of its own


def test_the_annotated_video_has_the_inputs_size_and_rate(saccade, clip, video):
    info = probe(saccade, video)
    assert (info['width'], info['height']) == (320, 240)
    assert info['fps'] == pytest.approx(20, rel=0.01)
    assert info['duration_s'] == pytest.approx(FRAMES / 20, rel=0.1)


def test_a_run_without_a_verb_is_the_same(saccade, clip, tmp_path):
    track(saccade, clip, '--mot', tmp_path / 'a.txt')
    run = saccade(clip / 'img', '--fps', 20, '--detections', clip / 'det.txt', '--mot', tmp_path / 'b.txt')
    assert run.returncode == 0, run.stderr
    assert (tmp_path / 'a.txt').read_bytes() == (tmp_path / 'b.txt').read_bytes()


def test_detections_need_no_video(saccade, clip, tmp_path):
    run = saccade('track', '--detections', clip / 'det.txt', '--fps', 20, '--tracker', 'bytetrack',
                  '--mot', tmp_path / 't.txt')
    assert run.returncode == 0, run.stderr
    assert {row[1] for row in mot_rows(tmp_path / 't.txt')} == {1}


def test_standard_input_is_an_input(saccade, clip, video, tmp_path):
    with open(video, 'rb') as stream:
        run = saccade('track', '-', '--detections', clip / 'det.txt', '--mot', tmp_path / 't.txt', stdin=stream)
    assert run.returncode == 0, run.stderr
    assert mot_rows(tmp_path / 't.txt')


@pytest.mark.parametrize('tracker', ['sort', 'bytetrack', 'ocsort', 'botsort'])
def test_every_tracker_follows_the_square(saccade, clip, tmp_path, tracker):
    run = track(saccade, clip, '--tracker', tracker, '--mot', tmp_path / 't.txt')
    assert run.returncode == 0, run.stderr
    assert {row[1] for row in mot_rows(tmp_path / 't.txt')} == {1}


@pytest.mark.parametrize('option', ['--jsonl', '--mot'])
def test_lines_on_standard_output(saccade, clip, tmp_path, option):
    run = track(saccade, clip, option, '-')
    assert run.returncode == 0, run.stderr
    track(saccade, clip, option, tmp_path / 'file')
    lines, wanted = run.stdout.splitlines(), (tmp_path / 'file').read_text().splitlines()
    assert len(lines) == len(wanted) > 20
    assert lines[1:] == wanted[1:]  # the header has the command
    assert 'frames/s' in run.stderr and 'wrote       standard output' in run.stderr
    # the video that comes in there is no file that would be overwritten
    with open('/dev/null') as nothing:
        fails(saccade('track', '-', '--detections', clip / 'det.txt', option, '-', stdin=nothing), 1, 'standard input')


def test_a_reader_that_leaves_ends_the_run(program, long_clip, tmp_path):
    arguments = [program, 'track', str(long_clip / 'img'), '--detections', str(long_clip / 'det.txt'),
                 '--jsonl', '-', '--mot', str(tmp_path / 'o.txt')]
    with subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=PATIENCE) == 1
        said = process.stderr.read()
    assert 'cannot write \'standard output\': Broken pipe' in said.splitlines()[-1]
    assert 'wrote       standard output' not in said and f'wrote       {tmp_path}/o.txt' in said
    assert len(mot_rows(tmp_path / 'o.txt')) < LONG


# ---- what is said ----

def test_the_summary_tells_objects_speed_and_files(saccade, clip, tmp_path):
    run = track(saccade, clip, '--mot', tmp_path / 't.txt')
    assert run.returncode == 0
    assert run.stdout == ''
    lines = run.stderr.splitlines()
    assert lines[0].startswith(f"{clip / 'img'} (ppm 320x240) on cpu ") and 'tracker botsort' in lines[0]
    assert lines[1].startswith(f'1 object in {FRAMES} frames: ') and 'frames/s' in lines[1]
    assert lines[2:] == [f"wrote       {tmp_path / 't.txt'}"]
    # what an engineer wants stands behind that
    run = track(saccade, clip, '--verbose', '--mot', tmp_path / 't.txt')
    for word in ('boxes', 'device', 'memory', '  tracking '):
        assert word in run.stderr.split('wrote ')[1]
    assert '\r' not in run.stderr and '\033' not in run.stderr


def test_the_default_log_has_no_line_per_frame(saccade, clip, tmp_path):
    counts = []
    for frames in (10, FRAMES):
        folder = tmp_path / str(frames)
        folder.mkdir()
        for frame in range(frames):
            shutil.copy(clip / 'img' / f'{frame + 1:05d}.ppm', folder)
        run = saccade('track', folder, '--detections', clip / 'det.txt', '-o', tmp_path / 'o.mp4')
        assert run.returncode == 0, run.stderr
        counts.append(len(run.stderr.splitlines()))
    # the summary's advice, two lines at most, depends on how the run went
    assert abs(counts[1] - counts[0]) <= 2 and counts[1] < 40


def test_log_levels(saccade, clip):
    assert track(saccade, clip, '--log-level', 'error').stderr == ''
    normal = len(track(saccade, clip).stderr.splitlines())
    assert len(track(saccade, clip, env={'DEBUG': '1'}).stderr.splitlines()) > normal
    assert track(saccade, clip, env={'SACCADE_LOG': 'error'}).stderr == ''
    assert track(saccade, clip, '--log-level', 'error', env={'DEBUG': '1'}).stderr == ''
    assert track(saccade, clip, '--log-level', 'warn').stderr == ''  # nothing to warn of
    for quiet in '--quiet', '-q':
        assert track(saccade, clip, quiet, env={'DEBUG': '1'}).stderr == ''
    assert 'debug: ' in track(saccade, clip, '-v', env={'SACCADE_LOG': 'error'}).stderr
    fails(track(saccade, clip, '-q', '-v'), 2, 'exclude each other')
    fails(saccade('track', '/nowhere/in.mp4', '-q'), 1, '/nowhere/in.mp4')


def test_frames_per_second_are_not_for_videos(saccade, clip, video, tmp_path):
    def warnings(*args):
        run = saccade('track', *args, '--fps', 5, '--detections', clip / 'det.txt', '--jsonl', tmp_path / 'o.jsonl')
        assert run.returncode == 0, run.stderr
        return [line for line in run.stderr.splitlines() if line.startswith('warning: ')]
    assert warnings(clip / 'img') == []
    assert json.loads((tmp_path / 'o.jsonl').read_text().splitlines()[2])['pts'] == 0.2
    said = warnings(video)
    assert len(said) == 1 and '5 frames per second are ignored' in said[0] and 'clip.mp4' in said[0]
    assert json.loads((tmp_path / 'o.jsonl').read_text().splitlines()[2])['pts'] == 0.05


def test_where_video_is_decoded(saccade, clip, tmp_path):
    run = track(saccade, clip, '--decode', 'gpu', '--mot', tmp_path / 'o.txt', '--device', 'cpu')
    assert run.returncode == 2 and 'device cpu is no GPU' in run.stderr.splitlines()[-1]
    for where in 'device', 'auto', 'cpu':
        run = track(saccade, clip, '--decode', where, '--mot', tmp_path / 'o.txt', '--stats', tmp_path / 's.json')
        assert run.returncode == 0, run.stderr
        stream, = json.loads((tmp_path / 's.json').read_text())['streams']
        assert stream['decoder'] and stream['decoder_note'] is None and stream['surface_bytes'] == 0


def test_strict_zero_copy_fails_where_a_frame_is_copied(saccade, clip, tmp_path):
    run = track(saccade, clip, '--zero-copy', 'strict', '--mot', tmp_path / 'o.txt')
    assert run.returncode == 0, run.stderr
    run = track(saccade, clip, '--zero-copy', 'strict', '-o', tmp_path / 'o.mp4')
    assert run.returncode == 1 and 'zero-copy is strict' in run.stderr.splitlines()[-1]
    assert not (tmp_path / 'o.mp4').exists()
    (tmp_path / 'a.yaml').write_text('zero_copy: strict\n')
    assert track(saccade, clip, '-c', tmp_path / 'a.yaml', '-o', tmp_path / 'o.mp4').returncode == 1
    assert track(saccade, clip, '-c', tmp_path / 'a.yaml', '--zero-copy', 'on', '-o', tmp_path / 'o.mp4').returncode == 0


def test_a_terminal_gets_a_progress_line(program, long_clip):
    """script(1) is not everywhere; a pseudo-terminal from Python is."""
    master, slave = os.openpty()
    process = subprocess.Popen([program, 'track', str(long_clip / 'img'), '--detections',
                                str(long_clip / 'det.txt'), '--jsonl', 'none'], stderr=slave, stdout=subprocess.PIPE,
                               stdin=subprocess.DEVNULL)
    os.close(slave)
    seen = b''
    deadline = time.monotonic() + PATIENCE
    while b'object' not in seen and time.monotonic() < deadline:
        seen += os.read(master, 4096)
    process.send_signal(signal.SIGINT)
    try:
        while chunk := os.read(master, 4096):
            seen += chunk
    except OSError:
        pass  # the other side closed
    assert process.wait(timeout=PATIENCE) == 130
    os.close(master)
    assert b'frames/s' in seen and b'ETA' in seen and b'1 object' in seen


# ---- timers and trace ----

def events(path):
    return json.loads(path.read_text())


def test_the_trace_has_an_event_for_each_stage_and_frame(saccade, clip, tmp_path):
    run = track(saccade, clip, '-o', tmp_path / 'o.mp4', '--trace', tmp_path / 't.json')
    assert run.returncode == 0, run.stderr
    assert leftovers(tmp_path) == ['o.mp4', 't.json']
    trace = events(tmp_path / 't.json')
    threads = {event['tid']: event['args']['name'] for event in trace if event['name'] == 'thread_name'}
    work = [event for event in trace if event['ph'] == 'X']
    for stage, thread in {'decode': 'sac-decode', 'tracking': 'sac-track', 'draw': 'sac-sink',
                          'encode': 'sac-sink'}.items():
        mine = [event for event in work if event['name'] == stage]
        assert [event['args']['frame'] for event in mine] == list(range(FRAMES)), stage
        assert [event['args']['pts'] for event in mine] == pytest.approx([i / 20 for i in range(FRAMES)], abs=1e-5)
        # the first picture is decoded where the folder is opened, to learn its size
        assert {threads[event['tid']] for event in mine[1:]} == {thread}
        assert all(a['ts'] + a['dur'] <= b['ts'] + 0.001 for a, b in zip(mine, mine[1:]))


def test_without_timers_nothing_is_timed(saccade, clip, tmp_path):
    assert '  tracking ' in track(saccade, clip, '-v').stderr
    run = track(saccade, clip, '--no-timers', '--verbose', '--mot', tmp_path / 't.txt')
    assert run.returncode == 0 and mot_rows(tmp_path / 't.txt')
    assert '  tracking ' not in run.stderr and 'bottleneck' not in run.stderr


def test_an_interrupted_run_leaves_a_whole_trace(program, long_clip, tmp_path):
    process = start(program, long_clip, tmp_path, '--trace', str(tmp_path / 'trace.json'))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said
    work = [event for event in events(tmp_path / 'trace.json') if event['ph'] == 'X']
    lines = (tmp_path / 'o.jsonl').read_text().splitlines()
    assert sum(event['name'] == 'tracking' for event in work) >= len(lines) - 1 >= 1


# ---- statistics ----

def test_the_statistics_follow_the_schema(saccade, clip, tmp_path):
    schema = json.loads((ROOT / 'docs/stats.schema.json').read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    run = track(saccade, clip, '-v', '-o', tmp_path / 'o.mp4', '--stats', tmp_path / 's.json')
    assert run.returncode == 0, run.stderr
    stats = json.loads((tmp_path / 's.json').read_text())
    validator.validate(stats)
    assert stats['frames'] == FRAMES and stats['tracks'] == 1 and stats['detections'] == FRAMES
    counts = {stage['name']: stage['count'] for stage in stats['stages']}
    assert counts == {'decode': FRAMES, 'tracking': FRAMES, 'draw': FRAMES, 'encode': FRAMES}
    for stage in stats['stages']:
        assert stage['p50_ms'] <= stage['p95_ms'] <= stage['p99_ms'] <= stage['max_ms'] <= stage['total_ms']
    assert [queue['passed'] for queue in stats['queues']] == [FRAMES] * 3
    assert all(queue['length_max'] <= queue['capacity'] for queue in stats['queues'])
    assert stats['batches'] is None and stats['detector'] is None and stats['gpu'] is None
    pool = stats['pool']
    asked = pool['reuses'] + pool['allocations']
    assert pool['reuse_share'] == pytest.approx(pool['reuses'] / asked, abs=1e-6)
    assert pool['allocations_start'] <= pool['requests_start'] <= asked
    new, later = pool['allocations'] - pool['allocations_start'], asked - pool['requests_start']
    assert pool['reuse_share_run'] == pytest.approx(1 - new / later if later else 1, abs=1e-6)
    assert stats['bottleneck']['stage'] in counts
    assert f"bottleneck  {stats['bottleneck']['stage']}: " in run.stderr
    # RGB pictures take a conversion to be encoded; each copy stands in the ledger once
    assert stats['copies']['frame-convert']['calls'] == FRAMES
    # without timers there are no stages, and nobody knows what held the run up
    run = track(saccade, clip, '--no-timers', '--stats', tmp_path / 's.json')
    assert run.returncode == 0, run.stderr
    stats = json.loads((tmp_path / 's.json').read_text())
    validator.validate(stats)
    assert stats['stages'] == [] and stats['bottleneck'] is None and stats['advice'] == []


def test_the_statistics_of_batches(saccade, shared, tmp_path):
    clip = shared / 'mot/TUD-Stadtmitte/TUD-Stadtmitte.mp4'
    run = saccade('track', clip, '--detector', ROOT / 'models/person_det_fast.onnx', '--reid', 'none',
                  '--max-batch', 4, '--stats', tmp_path / 's.json', '-o', tmp_path / 'o.mp4', '--verbose')
    assert run.returncode == 0, run.stderr
    stats = json.loads((tmp_path / 's.json').read_text())
    jsonschema.Draft202012Validator(json.loads((ROOT / 'docs/stats.schema.json').read_text())).validate(stats)
    batches = stats['batches']
    assert batches['frames'] == 179 and batches['max'] == 4 and 45 <= batches['count'] <= 179
    assert batches['mean'] == pytest.approx(179 / batches['count'], abs=1e-5)
    # a decoder's frames are copied to be drawn on, under that reason alone
    assert stats['copies']['overlay-copy']['calls'] > 100
    # each is within the whole; the network is read and opened beside the device and the inputs, so all of them may not be
    parts = dict(stats['start'])
    whole = parts.pop('total_us')
    assert sum(parts.values()) > 0 and max(parts.values()) <= whole
    assert all(parts[part] > 0 for part in ('inputs_us', 'read_us', 'passes_us', 'outputs_us'))
    assert parts['trials_us'] == parts['kept_us'] == 0  # the CPU's plans are neither tried nor kept
    assert 'ready after ' in run.stderr
    assert stats['copies']['overlay-download']['calls'] == 0
    assert stats['copies']['frame-convert']['calls'] == 0
    for sentence in stats['advice']:
        assert sentence in run.stderr


def test_still_frames_are_predicted(saccade, clip, tmp_path):
    """What nobody looked at has tracks all the same."""
    run = saccade('track', clip / 'img', '--detector', ROOT / 'models/person_det_fast.onnx', '--reid', 'none',
                  '--skip-still', 0.5, '--skip-max', 4, '--stats', tmp_path / 's.json', '--mot', tmp_path / 't.txt')
    assert run.returncode == 0, run.stderr
    stats = json.loads((tmp_path / 's.json').read_text())
    assert stats['frames'] == FRAMES and stats['savings']['still'] == FRAMES * 4 // 5
    assert stats['batches']['frames'] == FRAMES // 5
    assert f'skipped     {FRAMES * 4 // 5} still frames' in run.stderr
    run = saccade('track', clip / 'img', '--detections', clip / 'det.txt', '--skip-still', 0.5, '--mot', tmp_path / 't.txt')
    assert run.returncode == 0 and 'boxes come from a file' in run.stderr and 'skipped' not in run.stderr


def test_what_is_held_for_long_is_no_leak_yet(saccade, shared, tmp_path):
    """Networks' inputs, lists of boxes and the like are as old as the run, but never more."""
    clip = shared / 'mot/TUD-Stadtmitte/TUD-Stadtmitte.mp4'
    run = saccade('track', clip, '--device', 'cpu', '--realtime', '--reid', 'person_reid', '--tracker', 'botsort', '--leak-age', 1,
                  '-o', tmp_path / 'o.mp4', '--stats', tmp_path / 's.json', '--no-progress')
    assert run.returncode == 0, run.stderr
    stats = json.loads((tmp_path / 's.json').read_text())
    assert 'pile up' not in run.stderr and 'held for' not in run.stderr and stats['pool']['leaks'] == 0
    assert stats['elapsed_s'] > 6  # as long as a leak takes to be named


def test_a_walk_goes_on_over_still_frames(saccade, shared, tmp_path):
    clip = shared / 'mot/TUD-Stadtmitte/TUD-Stadtmitte.mp4'
    rows = {}
    for level in (0, 0.05):
        run = saccade('track', clip, '--detector', ROOT / 'models/person_det_fast.onnx', '--reid', 'none',
                      '--duration', 2, '--skip-still', level, '--skip-max', 1, '--mot', tmp_path / 't.txt')
        assert run.returncode == 0, run.stderr
        rows[level] = [int(line.split(',')[0]) for line in (tmp_path / 't.txt').read_text().splitlines()]
    assert 'skipped     25 still frames' in run.stderr
    shown = [sum(rows[0.05].count(frame) for frame in range(first, 51, 2)) for first in (1, 2)]
    assert min(shown) > 0.8 * max(shown)  # those that nobody looked at have as many tracks as the others
    assert len(rows[0.05]) > 0.8 * len(rows[0])


# ---- faults ----

def test_missing_files_are_named(saccade, clip, tmp_path):
    fails(saccade('track', '/nowhere/in.mp4', '--detections', clip / 'det.txt', '-o', tmp_path / 'o.mp4'), 1,
          '/nowhere/in.mp4')
    fails(track(saccade, clip, '--reid', '/nowhere/m.onnx', '-o', tmp_path / 'o.mp4'), 1, '/nowhere/m.onnx')
    fails(saccade('track', clip / 'img', '--detections', '/nowhere/d.txt', '-o', tmp_path / 'o.mp4'), 1,
          '/nowhere/d.txt')
    fails(saccade('track', clip / 'img', '--detector', '/nowhere/d.onnx', '-o', tmp_path / 'o.mp4'), 1,
          '/nowhere/d.onnx')
    assert leftovers(tmp_path) == []


def test_text_is_no_video(saccade, clip, tmp_path):
    (tmp_path / 'in.mp4').write_text('this is a text\n' * 100)
    fails(saccade('track', tmp_path / 'in.mp4', '--detections', clip / 'det.txt', '-o', tmp_path / 'o.mp4'), 1,
          'in.mp4')
    assert leftovers(tmp_path) == ['in.mp4']


@pytest.mark.parametrize('model, head, word', [('oriented', None, 'angle'), ('tokens', None, '--head takes'),
                                               ('classifier', None, 'classifier'), ('oriented', 'yolov8', 'angle'),
                                               ('open_masks', 'yolov8', '[15,6400]'), ('fifth_wheel', None, 'prompt')])
def test_what_is_no_detector_is_refused_before_any_output(saccade, clip, tmp_path, model, head, word):
    path = pathlib.Path(__file__).parents[1] / 'heads' / (model + '.onnx')
    out = tmp_path / 'o.jsonl'
    out.write_text('kept')
    run = saccade('track', clip / 'img', '--detector', path, '--reid', 'none', *(['--head', head] if head else []),
                  '-o', tmp_path / 'o.mp4', '--jsonl', out)
    fails(run, 1, word)
    assert leftovers(tmp_path) == ['o.jsonl'] and out.read_text() == 'kept'


def test_the_boxes_of_a_model_for_masks_are_tracked(saccade, clip, tmp_path):
    path = pathlib.Path(__file__).parents[1] / 'heads' / 'yolov8_seg.onnx'
    run = saccade('track', clip / 'img', '--detector', path, '--reid', 'none', '--jsonl', tmp_path / 'o.jsonl')
    assert run.returncode == 0
    assert 'its mask coefficients are not' in run.stderr
    frames = [json.loads(line) for line in (tmp_path / 'o.jsonl').read_text().splitlines()[1:]]
    labels = {track['class'] for frame in frames for track in frame['tracks']}
    assert labels and labels <= {'cup', 'plate', 'spoon'}


def test_the_kept_classes_are_said(saccade, clip, shared, tmp_path):
    """Of 80 classes persons alone are tracked: the log and the summary say so, and what keeps all."""
    arguments = ['track', clip / 'img', '--detector', shared / 'models/yolox_nano_416.onnx', '--reid', 'none']
    run = saccade(*arguments, '--jsonl', tmp_path / 'o.jsonl', '--verbose')
    assert run.returncode == 0
    assert '\nclasses person (1 of 80); --classes all keeps all\n' in run.stderr
    assert '\nclasses     person (1 of 80); --classes all keeps all\n' in run.stderr
    run = saccade(*arguments, '--classes', 'all', '--stats', tmp_path / 's.json', '-v')
    assert '\nclasses     all 80\n' in run.stderr and 'keeps all' not in run.stderr
    assert json.loads((tmp_path / 's.json').read_text())['classes'] == 'all 80'


def test_a_text_is_no_model(saccade, clip, tmp_path):
    (tmp_path / 'm.onnx').write_text('this is a text\n' * 100)
    fails(saccade('track', clip / 'img', '--detector', tmp_path / 'm.onnx', '-o', tmp_path / 'o.mp4'), 1, 'm.onnx')
    assert leftovers(tmp_path) == ['m.onnx']


@pytest.mark.parametrize('option, value', [('--device', 'gpu'), ('--classes', 'persn'), ('--preprocess', 'foo=1'),
                                           ('--head', 'nosuch')])
def test_what_the_library_cannot_take_is_wrong_usage(saccade, clip, shared, tmp_path, option, value):
    model = shared / 'models/yolox_nano_416.onnx'
    fails(saccade('track', clip / 'img', '--detector', model, option, value, '-o', tmp_path / 'o.mp4'), 2,
          value.split('=')[0])
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize('option', ['--jsonl', '--mot', '-o', '--trace', '--stats'])
def test_an_unwritable_output_is_named_before_the_work(saccade, clip, option):
    run = track(saccade, clip, option, '/proc/nowhere/out.mp4')
    fails(run, 1, '/proc/nowhere')


@pytest.mark.parametrize('option', ['--jsonl', '--mot', '--trace', '--stats'])
def test_a_full_disk_is_a_failure(saccade, clip, option):
    run = track(saccade, clip, option, '/dev/full')
    assert run.returncode == 1
    assert '/dev/full' in run.stderr and 'No space left' in run.stderr
    assert pathlib.Path('/dev/full').is_char_device()


# ---- interruption ----

def start(program, long_clip, tmp_path, *args, **more):
    process = subprocess.Popen([program, 'track', str(long_clip / 'img'), '--detections', str(long_clip / 'det.txt'),
                                '-o', str(tmp_path / 'o.mp4'), '--jsonl', str(tmp_path / 'o.jsonl'),
                                '--mot', str(tmp_path / 'o.txt'), *args],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    wait_until(process, lambda: has_frames(tmp_path, 'o.jsonl'))
    return process


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_leaves_whole_files(program, saccade, long_clip, tmp_path, number):
    process = start(program, long_clip, tmp_path)
    assert leftovers(tmp_path) and not (tmp_path / 'o.mp4').exists()  # under a temporary name so far
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert 'interrupted' in said
    assert leftovers(tmp_path) == ['o.jsonl', 'o.mp4', 'o.txt']
    lines = [json.loads(line) for line in (tmp_path / 'o.jsonl').read_text().splitlines()]
    frames = [line for line in lines if 'tracks' in line]
    assert 1 <= len(frames) < LONG
    info = probe(saccade, tmp_path / 'o.mp4')
    assert (info['width'], info['height']) == (1280, 720)
    # the video and the lines end at the same frame
    assert info['frames'] == pytest.approx(len(frames), abs=1)


def test_a_second_interrupt_ends_at_once(program, long_clip, tmp_path):
    process = start(program, long_clip, tmp_path)
    send_at_once(process, signal.SIGINT, signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert said.splitlines()[-1] == 'saccade: interrupted twice: 3 unfinished output files were removed'
    assert leftovers(tmp_path) == []


def test_a_second_interrupt_removes_the_files_of_many(program, long_clip, tmp_path):
    inputs = []
    for i in range(40):
        (tmp_path / f'in{i}').symlink_to(long_clip / 'img')
        inputs.append(str(tmp_path / f'in{i}'))
    (tmp_path / 'det').mkdir()
    for i in range(40):
        (tmp_path / 'det' / f'in{i}.txt').symlink_to(long_clip / 'det.txt')
    out = tmp_path / 'out'
    process = subprocess.Popen([program, 'track', *inputs, '--detections', str(tmp_path / 'det'), '--jsonl', str(out),
                                '--mot', str(out)], stderr=subprocess.PIPE, text=True)
    wait_until(process, lambda: len(list(out.glob('*'))) == 80)
    send_at_once(process, signal.SIGHUP, signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert 'interrupted twice: 80 unfinished output files were removed' in said
    assert leftovers(out) == []


def test_a_hangup_that_is_ignored_stays_ignored(program, long_clip, tmp_path):
    process = start(program, long_clip, tmp_path,
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130


def test_an_interrupt_while_the_input_says_nothing(program, shared, tmp_path):
    process = subprocess.Popen([program, 'track', '-', '--detections', str(shared / 'mot/TUD-Stadtmitte/det_yolox_nano.txt'),
                                '--mot', str(tmp_path / 'o.txt')],
                               stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(process, lambda: catches(process, signal.SIGINT))
    time.sleep(0.3)  # mostly it waits for its pipe by now, and has no pipeline yet
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=PATIENCE) == 130
    assert process.stderr.read().splitlines()[-1] == 'saccade: interrupted while opening; nothing was written'
    process.stdin.close()
    assert leftovers(tmp_path) == []


def test_an_interrupted_main_job_with_models(program, saccade, shared, tmp_path):
    models, clip = shared / 'models', shared / 'mot/TUD-Stadtmitte/TUD-Stadtmitte.mp4'
    process = subprocess.Popen([program, 'track', str(clip), '--detector', str(models / 'yolox_nano_416.onnx'),
                                '--reid', str(models / 'person_reid_0288.onnx'), '--classes', 'person',
                                '-o', str(tmp_path / 'o.mp4'), '--jsonl', str(tmp_path / 'o.jsonl')],
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until(process, lambda: has_frames(tmp_path, 'o.jsonl'))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said
    lines = [json.loads(line) for line in (tmp_path / 'o.jsonl').read_text().splitlines()]
    assert lines[0]['format'] == 'saccade-tracks' and lines[0]['head'] == 'yolox'
    assert probe(saccade, tmp_path / 'o.mp4')['frames'] == pytest.approx(len(lines) - 1, abs=1)
    assert leftovers(tmp_path) == ['o.jsonl', 'o.mp4']


# ---- a part of the input ----

def frames_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


@pytest.mark.parametrize('kind', ['video', 'pictures', 'detections'])
def test_a_part_of_the_input(saccade, clip, video, tmp_path, kind):
    source = {'video': [video], 'pictures': [clip / 'img', '--fps', 20], 'detections': ['--fps', 20]}[kind]
    run = saccade('track', *source, '--detections', clip / 'det.txt', '--start', '0.5', '--duration', '00:00:01',
                  '--every', 3, '--jsonl', tmp_path / 'p.jsonl', '--mot', tmp_path / 'p.txt', '--stats', tmp_path / 's.json')
    assert run.returncode == 0, run.stderr
    frames = frames_of(tmp_path / 'p.jsonl')
    assert [frame['frame'] for frame in frames] == list(range(10, 30, 3))
    assert [frame['pts'] for frame in frames] == pytest.approx([number / 20 for number in range(10, 30, 3)], abs=1e-3)
    assert {row[0] for row in mot_rows(tmp_path / 'p.txt')} <= {number + 1 for number in range(10, 30, 3)}
    stats = json.loads((tmp_path / 's.json').read_text())
    assert stats['frames'] == stats['frames_total'] == 7
    # detections are found by the number in the whole input
    box = frames[-1]['tracks'][0]['box']
    assert box[0] == pytest.approx(box_at(28)[0], abs=6)


def test_an_annotated_part_begins_at_zero(saccade, clip, video, tmp_path):
    run = saccade('track', video, '--detections', clip / 'det.txt', '--start', '0:01', '-o', tmp_path / 'o.mp4')
    assert run.returncode == 0, run.stderr
    assert probe(saccade, tmp_path / 'o.mp4')['duration_s'] == pytest.approx(FRAMES / 20 - 1, abs=0.1)


@pytest.mark.parametrize('kind', ['video', 'pictures', 'detections'])
def test_a_start_past_the_end_is_told_before_the_work(saccade, clip, video, tmp_path, kind):
    source = {'video': [video], 'pictures': [clip / 'img', '--fps', 20], 'detections': ['--fps', 20]}[kind]
    fails(saccade('track', *source, '--detections', clip / 'det.txt', '--start', '1:00', '--mot', tmp_path / 'p.txt'), 2,
          'no frame at 60.000 s or later', 'it lasts 2.000 s')
    assert leftovers(tmp_path) == []
