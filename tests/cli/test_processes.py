# SPDX-License-Identifier: Apache-2.0
"""saccade track and segment with --processes: each input as a process of its own."""
import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from support import FRAMES, LONG, PATIENCE, fails, has_frames, wait_until, write_ppm
from test_cache import FAINT
from test_streams import NAMES, clips, frames_of, inputs  # noqa: F401 (a fixture)


@pytest.fixture
def long_inputs(long_clip, tmp_path):
    """Three names of one long sequence."""
    folder = tmp_path / 'in'
    (folder / 'det').mkdir(parents=True)
    for name in NAMES:
        (folder / name).symlink_to(long_clip / 'img')
        (folder / 'det' / f'{name}.txt').symlink_to(long_clip / 'det.txt')
    return folder


@pytest.fixture
def starts(program, long_inputs, tmp_path):
    """Start a run of the long inputs; ends it where a test fails."""
    running = []

    def start(*options):
        environment = {k: v for k, v in os.environ.items() if k not in ('SACCADE_LOG', 'DEBUG')}
        running.append(subprocess.Popen(
            [program, 'track', *(str(long_inputs / name) for name in NAMES), '--detections', str(long_inputs / 'det'),
             '--jsonl', str(tmp_path / 'out'), *map(str, options)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, env=environment))
        return running[-1]
    yield start
    for process in running:
        process.kill()
        process.communicate()


def workers(process):
    """Its processes, in the order in which they began."""
    return sorted(map(int, pathlib.Path(f'/proc/{process.pid}/task/{process.pid}/children').read_text().split()))


def without_command(path):
    """JSON lines, but for the command in the header."""
    first, *rest = path.read_text().splitlines()
    header = json.loads(first)
    del header['command']
    return [json.dumps(header), *rest]


# ---- results ----

def test_each_file_is_as_of_a_run_of_its_own(saccade, clips, tmp_path):
    for name in NAMES:
        run = saccade('track', clips / f'{name}.mp4', '--detections', clips / 'det' / f'{name}.txt', '-o',
                      tmp_path / 'alone' / f'{name}.mp4', '--jsonl', tmp_path / 'alone' / f'{name}.jsonl',
                      '--mot', tmp_path / 'alone' / f'{name}.txt', '--csv', tmp_path / 'alone' / f'{name}.csv')
        assert run.returncode == 0, run.stderr
    for n in 1, 2, 8:
        out = tmp_path / str(n) / 'made'
        run = saccade('track', *inputs(clips), '--detections', clips / 'det', '-o', out, '--jsonl', out, '--mot', out,
                      '--csv', out, '--processes', n)
        assert run.returncode == 0, run.stderr
        assert sorted(path.name for path in out.iterdir()) == \
            sorted(f'{name}.{ending}' for name in NAMES for ending in ('mp4', 'jsonl', 'txt', 'csv'))
        if n == 1:  # in one process ids go on from input to input
            assert all(len(frames_of(out / f'{name}.jsonl')) >= FRAMES for name in NAMES)
            continue
        for name in NAMES:
            for ending in 'mp4', 'txt', 'csv':
                assert (out / f'{name}.{ending}').read_bytes() == (tmp_path / 'alone' / f'{name}.{ending}').read_bytes()
            assert without_command(out / f'{name}.jsonl') == without_command(tmp_path / 'alone' / f'{name}.jsonl')
        wrote = [line for line in run.stderr.splitlines() if line.startswith('wrote')]
        assert [line.split()[1] for line in wrote if '.txt' in line] == [str(out / f'{name}.txt') for name in NAMES]


@pytest.mark.parametrize('options, ending', [(['--as', 'mask'], 'mp4'), (['--as', 'coco'], 'json')])
def test_segment_too(saccade, clip, tmp_path, options, ending):
    """No .mkv: each has a random number of its own."""
    (tmp_path / 'in').mkdir()
    run = saccade('track', clip / 'img', '--fps', 20, '--detections', clip / 'det.txt', '-o', tmp_path / 'in/a.mkv')
    assert run.returncode == 0, run.stderr
    shutil.copy(tmp_path / 'in/a.mkv', tmp_path / 'in/b.mkv')
    segment = ['segment', '--duration', 0.5, '--device', 'cpu', *options]
    assert saccade(*segment, tmp_path / 'in/b.mkv', '-o', tmp_path / f'b.{ending}').returncode == 0
    run = saccade(*segment, tmp_path / 'in', '-o', tmp_path / 'out' / ('{name}-{index}.' + ending), '--processes', 2)
    assert run.returncode == 0, run.stderr
    assert sorted(path.name for path in (tmp_path / 'out').iterdir()) == [f'a-1.{ending}', f'b-2.{ending}']
    assert (tmp_path / 'out' / f'b-2.{ending}').read_bytes() == (tmp_path / f'b.{ending}').read_bytes()


def test_the_disk_cache_is_shared(saccade, clips, tmp_path):
    arguments = ['track', *inputs(clips), *FAINT, '--tracker', 'bytetrack', '--disk-cache', tmp_path / 'cache',
                 '--processes', 2, '--threads', 1, '--mot']
    assert saccade(*arguments, tmp_path / 'first').returncode == 0
    run = saccade(*arguments, tmp_path / 'second')
    assert run.returncode == 0 and run.stderr.count('come from the disk cache; the video is not decoded') == 3
    for name in NAMES:
        assert (tmp_path / 'first' / f'{name}.txt').read_bytes() == (tmp_path / 'second' / f'{name}.txt').read_bytes()
    run = saccade('track', inputs(clips)[1], *FAINT, '--tracker', 'bytetrack', '--threads', 1, '--disk-cache',
                  tmp_path / 'cache', '--mot', tmp_path / 'alone.txt')  # their entries are any run's
    assert run.returncode == 0 and 'not decoded' in run.stderr
    assert (tmp_path / 'alone.txt').read_bytes() == (tmp_path / 'first' / f'{NAMES[1]}.txt').read_bytes()


def test_one_input_is_an_ordinary_run(saccade, clips, tmp_path):
    run = saccade('track', clips / 'one.mp4', '--detections', clips / 'det/one.txt', '--mot', tmp_path / 'a.txt',
                  '--processes', 4)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / 'a.txt').read_text().count('\n') > FRAMES


def test_the_default_output_is_as_without(saccade, clips, tmp_path):
    arguments = ['track', *inputs(clips), '--detections', clips / 'det', '--processes', 2]
    assert saccade(*arguments, cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f'{name}.tracks.jsonl' for name in NAMES)
    fails(saccade(*arguments, cwd=tmp_path), 2, 'already exists')


# ---- one that fails ----

def test_others_go_on_beside_one_that_fails(saccade, clips, tmp_path):
    run = saccade('track', inputs(clips)[0], '/nowhere/four.mp4', *inputs(clips)[1:], '--detections', clips / 'det',
                  '--mot', tmp_path / 'out', '--processes', 2)
    assert run.returncode == 1
    *_, before, last = run.stderr.splitlines()
    assert last == "saccade: 1 of 4 inputs failed, the first: '/nowhere/four.mp4'"
    said = [line for line in run.stderr.splitlines() if 'four' in line]
    assert len(said) >= 2 and 'four' not in before  # in the order of the inputs
    assert sorted(path.stem for path in (tmp_path / 'out').iterdir()) == sorted(NAMES)


def test_what_is_wrong_for_all_is_not_tried_with_all(saccade, clips, tmp_path):
    """Two see it side by side, no more."""
    run = saccade('track', *inputs(clips) * 4, '--detector', 'person_det_fast', '--reid', 'none', '--mot',
                  tmp_path / '{index}.txt', '--classes', 'unicorn', '--processes', 2)
    assert run.returncode == 2 and list(tmp_path.iterdir()) == []
    *said, last = run.stderr.splitlines()
    assert 1 <= len(said) <= 2 and all("'unicorn'" in line for line in said), run.stderr
    assert 'is not its own' in last and 'of 12 inputs were not begun' in last


def test_one_that_is_killed_is_told(starts, tmp_path):
    process = starts('--processes', 2, '--every', 10)
    wait_until(process, lambda: has_frames(tmp_path / 'out', 'two.jsonl'))
    os.kill(workers(process)[1], signal.SIGKILL)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, said
    told = [line for line in said.splitlines() if 'signal 9' in line]
    assert len(told) == 1 and told[0].startswith('saccade: ') and '/two' in told[0] and 'go on' in told[0]
    assert said.splitlines()[-1].startswith('saccade: 1 of 3 inputs failed')
    for name in 'one', 'three':
        assert len(frames_of(tmp_path / 'out' / f'{name}.jsonl')) == LONG / 10
    assert not (tmp_path / 'out' / 'two.jsonl').exists()


# ---- interruption ----

def test_an_interrupt_ends_all_and_keeps_what_is_written(starts, tmp_path):
    process = starts('--processes', 2)
    wait_until(process, lambda: all(has_frames(tmp_path / 'out', f'{name}.jsonl') for name in NAMES[:2]))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said
    assert said.splitlines()[-1] == \
        'saccade: interrupted: 0 of 3 inputs are done; 2 were ended early, and 1 not begun'
    assert said.count('the output files are complete up to there') == 2
    assert sorted(path.name for path in (tmp_path / 'out').iterdir()) == ['one.jsonl', 'two.jsonl']
    for name in NAMES[:2]:
        frames = frames_of(tmp_path / 'out' / f'{name}.jsonl')
        assert 1 <= len(frames) < LONG and [frame['frame'] for frame in frames] == list(range(len(frames)))


def test_the_processes_end_with_the_one_that_began_them(starts, tmp_path):
    process = starts('--processes', 2)
    wait_until(process, lambda: all(has_frames(tmp_path / 'out', f'{name}.jsonl') for name in NAMES[:2]))
    process.kill()
    process.wait()
    wait_until_whole = [tmp_path / 'out' / f'{name}.jsonl' for name in NAMES[:2]]
    sleeper = subprocess.Popen(['sleep', str(PATIENCE)])  # wait_until wants a process that lives
    try:
        wait_until(sleeper, lambda: all(path.exists() for path in wait_until_whole))
    finally:
        sleeper.kill()
        sleeper.wait()


# ---- what does not go together ----

@pytest.mark.parametrize('options, words', [
    (['--device', 'cuda'], ['--processes and --device cuda exclude each other']),
    (['--gpus', '0,1'], ['--processes and --gpus 0,1 exclude each other']),
    (['--stats', 's.json'], ["--stats 's.json'", 'one process']),
    (['--trace', 't.json'], ["--trace 't.json'", 'one process']),
    (['--processes', '0'], ['--processes', '0']),
    (['--mot', 'a.txt'], ["'a.txt' names one file"]),
    (['-o', '-'], ['not standard output']),
])
def test_what_does_not_go_together(saccade, clips, tmp_path, options, words):
    fails(saccade('track', *inputs(clips), '--detections', clips / 'det', '--processes', 2, *options, cwd=tmp_path), 2,
          *words)
    assert list(tmp_path.iterdir()) == []


def test_inputs_without_an_end_are_refused(saccade, clips, tmp_path):
    for odd in 'rtsp://user:secret@127.0.0.1:1/cam', '/dev/null':
        run = saccade('track', inputs(clips)[0], odd, '--processes', 2, '--mot', tmp_path / 'out')
        fails(run, 2, '--processes takes files')
        assert 'secret' not in run.stderr
    for verb in 'profile', 'optimize':
        run = saccade(verb, *inputs(clips), '--processes', 2, '--detections', clips / 'det', '-o', tmp_path /
                      ('a.html' if verb == 'profile' else 'a.yaml'))
        fails(run, 2, 'leave --processes out')


def test_more_inputs_than_one_process_takes(saccade, tmp_path):
    (tmp_path / 'in').mkdir()
    write_ppm(tmp_path / 'in/one.ppm', 0, 64, 48)
    (tmp_path / 'det.txt').write_text('1,-1,10,10,20,20,0.9\n')
    arguments = ['track', *[tmp_path / 'in'] * 300, '--mot', tmp_path / 'out/{index}.txt', '-q']
    (tmp_path / 'dets').mkdir()
    (tmp_path / 'dets/in.txt').symlink_to(tmp_path / 'det.txt')
    arguments += ['--detections', tmp_path / 'dets']
    fails(saccade(*arguments), 2, '300 inputs are too many', '--processes')
    run = saccade(*arguments, '--processes', 2)
    assert run.returncode == 0, run.stderr
    assert len(list((tmp_path / 'out').iterdir())) == 300
