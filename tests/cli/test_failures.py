# SPDX-License-Identifier: Apache-2.0
"""Runs that go wrong midway: a sentence, status 1, no crash, nothing half-written, nothing lost."""
import json
import os
import random
import resource
import signal
import subprocess
import time

import numpy
import pytest

from support import FRAMES, HEIGHT, PATIENCE, WIDTH, fails, has_frames, wait_until, write_detections

pytestmark = pytest.mark.sanitized

OUTPUTS = {'-o': 'o.mp4', '--jsonl': 'o.jsonl', '--mot': 'o.txt'}


@pytest.fixture(scope='session')
def noise(tmp_path_factory):
    """Pictures that no encoder makes small: a video of them fills a disk."""
    folder = tmp_path_factory.mktemp('noise')
    (folder / 'img').mkdir()
    rng = numpy.random.default_rng(1)
    for frame in range(FRAMES):
        image = rng.integers(0, 256, (HEIGHT, WIDTH, 3), numpy.uint8)
        (folder / 'img' / f'{frame + 1:05d}.ppm').write_bytes(
            b'P6 %d %d 255\n' % (WIDTH, HEIGHT) + image.tobytes())
    write_detections(folder / 'det.txt')
    return folder


def track_args(source, clip, folder):
    """The arguments of a run that writes all there is to write."""
    return ['track', source, '--detections', clip / 'det.txt',
            *(part for option, name in OUTPUTS.items() for part in (option, folder / name))]


def test_a_configuration_that_only_costs_time(saccade, tmp_path):
    """What libyaml would take minutes for is refused at once, with a sentence."""
    path = tmp_path / 'c.yaml'
    for text, word in (('[' * 200000, '128 KiB'), ('[' * 100000, 'deep'), ('{' * 100000, 'deep'),
                       ('- ' * 60000, 'deep'), ('? ' * 60000, 'deep'),
                       ('a: &a [1]\nb: [' + '*a, ' * 30000 + ']\n', 'more than 20000'),
                       (''.join(f'- &a{i} 1\n' for i in range(9000)), 'expected'),
                       (''.join(f'%TAG !{i}! x\n' for i in range(6000)) + '---\n', 'c.yaml')):
        path.write_text(text)
        begun = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = saccade('in.mp4', '--config', path)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        # the program's own time, not that of others on the machine
        assert ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime < 20
        fails(run, 2, 'c.yaml', word)


def sentence(run, status=1):
    """The last line of a run that got as far as working."""
    assert run.returncode == status, run.stderr
    last = run.stderr.splitlines()[-1]
    assert last.startswith('saccade: ')
    assert sum(line.startswith('saccade: ') for line in run.stderr.splitlines()) == 1
    return last


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def frames_in(folder):
    """Frames in the JSON lines, which must be whole."""
    lines = [json.loads(line) for line in (folder / 'o.jsonl').read_text().splitlines()]
    return sum('tracks' in line for line in lines)


def frames_of_video(saccade, path, clip, folder):
    """Frames that come out of a video, counted by reading it."""
    run = saccade('track', path, '--detections', clip / 'det.txt', '--tracker', 'sort',
                  '--jsonl', folder / 'o.jsonl')
    assert run.returncode == 0, run.stderr
    return frames_in(folder)


# ---- a disk that is full ----

def test_a_full_device_behind_the_name_of_a_video(saccade, noise, tmp_path):
    (tmp_path / 'o.mp4').symlink_to('/dev/full')
    run = saccade(*track_args(noise / 'img', noise, tmp_path))
    words = sentence(run)
    assert 'o.mp4' in words and 'No space left on device' in words
    assert names(tmp_path) == ['o.jsonl', 'o.mp4', 'o.txt']
    assert (tmp_path / 'o.mp4').is_symlink()
    frames_in(tmp_path)


@pytest.fixture
def small_disk(tmp_path):
    """A disk with room for a few pages, and a former result on it."""
    disk = tmp_path / 'disk'
    disk.mkdir()
    mounted = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', disk],
                             capture_output=True).returncode == 0
    if not mounted:
        pytest.skip('mounting a small tmpfs needs root')
    yield disk
    subprocess.run(['umount', disk], check=True)


def fill(path):
    """Write until the disk is full."""
    with open(path, 'wb', buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


@pytest.mark.parametrize('option', OUTPUTS)
def test_a_disk_that_is_full(saccade, noise, small_disk, tmp_path, option):
    output = small_disk / OUTPUTS[option]
    output.write_bytes(b'former')
    fill(small_disk / 'filler')
    others = tmp_path / 'others'
    others.mkdir()
    arguments = track_args(noise / 'img', noise, others)
    arguments[arguments.index(option) + 1] = output
    run = saccade(*arguments)
    assert run.returncode == 1
    words = run.stderr.splitlines()[-1]
    assert output.name in words and 'No space left on device' in words
    assert names(small_disk) == sorted(['filler', output.name])
    assert output.read_bytes() == b'former'
    # the header of the JSON lines does not fit, which is known before the work; what the run had done
    # by then is in the other files, and they are whole
    assert names(others) == ([] if option == '--jsonl' else sorted(set(OUTPUTS.values()) - {output.name}))


def test_a_disk_that_fills_up_midway(saccade, noise, small_disk, tmp_path):
    run = saccade('track', noise / 'img', '--detections', noise / 'det.txt',
                  '-o', small_disk / 'o.mkv', '--jsonl', tmp_path / 'o.jsonl')
    words = sentence(run)
    assert 'o.mkv' in words and 'No space left on device' in words
    assert names(small_disk) == []
    assert 1 <= frames_in(tmp_path) <= FRAMES
    assert f'wrote       {tmp_path}/o.jsonl' in run.stderr and 'wrote       ' + str(small_disk) not in run.stderr


@pytest.mark.parametrize('option, name', [('--jsonl', 'o.jsonl'), ('--mot', 'o.txt')])
def test_whole_lines_are_kept_when_the_disk_fills_up(saccade, clip, tmp_path, option, name):
    """The lines that fitted have the file's name; no frame in them is cut."""
    whole, cut = tmp_path / 'whole', tmp_path / 'cut'
    for folder in (whole, cut):
        folder.mkdir()
    arguments = ['track', clip / 'img', '--detections', clip / 'det.txt', option]
    assert saccade(*arguments, whole / name).returncode == 0
    (cut / name).write_text('former')
    size = (whole / name).stat().st_size * 2 // 3
    run = saccade(*arguments, cut / name, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
    words = sentence(run)
    assert name in words and 'File too large' in words and 'it holds what was written before' in words
    assert names(cut) == [name]
    # the commands in the headers differ
    lines, all_lines = ((folder / name).read_text().splitlines(keepends=True)[1:] for folder in (cut, whole))
    assert 5 < len(lines) < len(all_lines) and lines == all_lines[:len(lines)]


@pytest.mark.parametrize('option', ['--csv', '--jsonl', '--mot', '--kitti', '--coco'])
def test_a_header_alone_replaces_nothing(saccade, tmp_path, option):
    """Not one frame's lines fit: what an earlier run left stays."""
    rows = ''.join(f'1,{i},{20 * i},0,15,40,1,-1,-1,-1\n' for i in range(60))
    (tmp_path / 'many.txt').write_text(rows)
    out = tmp_path / 'out'
    out.mkdir()
    (out / 'o').write_text('former')
    run = saccade('track', '--detections', tmp_path / 'many.txt', '--fps', '10', option, out / 'o',
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
    assert 'File too large' in sentence(run)
    assert names(out) == ['o'] and (out / 'o').read_text() == 'former'


def test_a_file_over_the_limit(saccade, noise, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))
    run = saccade('track', noise / 'img', '--detections', noise / 'det.txt', '-o', tmp_path / 'o.mp4',
                  preexec_fn=limit)
    words = sentence(run)
    assert 'o.mp4' in words and 'File too large' in words
    assert names(tmp_path) == []


# ---- a video that is damaged ----

def index_last(data):
    """An MP4 file as a camera writes it: the pictures, then the index."""
    at, boxes = 0, {}
    while at < len(data):
        size = int.from_bytes(data[at:at + 4], 'big')
        boxes[data[at + 4:at + 8]] = bytearray(data[at:at + size])
        at += size
    index = boxes[b'moov']
    table = index.index(b'stco') + 8  # after name and flags: a count, then where the pieces lie
    for i in range(int.from_bytes(index[table:table + 4], 'big')):
        entry = slice(table + 4 + 4 * i, table + 8 + 4 * i)
        index[entry] = (int.from_bytes(index[entry], 'big') - len(index)).to_bytes(4, 'big')
    return boxes[b'ftyp'] + boxes[b'free'] + boxes[b'mdat'] + index


def test_an_index_at_the_end_of_a_pipe(saccade, noise, tmp_path):
    whole, late = tmp_path / 'whole.mp4', tmp_path / 'late.mp4'
    assert saccade('track', noise / 'img', '--detections', noise / 'det.txt', '-o', whole).returncode == 0
    late.write_bytes(index_last(whole.read_bytes()))
    assert frames_of_video(saccade, late, noise, tmp_path) == FRAMES
    with open(late, 'rb') as file, subprocess.Popen(['cat'], stdin=file, stdout=subprocess.PIPE) as pipe:
        run = saccade('track', '-', '--detections', noise / 'det.txt', '--mot', tmp_path / 'o.txt',
                      stdin=pipe.stdout)
        pipe.stdout.close()
    assert 'standard input: its pictures lie before its index' in sentence(run)
    assert not list(tmp_path.glob('o.txt.*'))


@pytest.mark.parametrize('ending', ['mp4', 'mkv', 'avi'])
@pytest.mark.parametrize('share', [0.3, 0.6])
def test_a_truncated_video_gives_what_it_has(saccade, noise, tmp_path, ending, share):
    whole, cut = tmp_path / f'whole.{ending}', tmp_path / f'cut.{ending}'
    assert saccade('track', noise / 'img', '--detections', noise / 'det.txt', '-o', whole).returncode == 0
    data = whole.read_bytes()
    cut.write_bytes(data[:int(len(data) * share)])
    (tmp_path / 'out').mkdir()
    run = saccade(*track_args(cut, noise, tmp_path / 'out'))
    words = sentence(run)
    assert f'cut.{ending}: the file is cut off' in words
    for name in OUTPUTS.values():
        assert f'wrote       {tmp_path}/out/{name}' in run.stderr
    assert names(tmp_path / 'out') == sorted(OUTPUTS.values())
    frames = frames_in(tmp_path / 'out')
    assert FRAMES * share - 6 <= frames <= FRAMES * share + 1
    assert f'the {frames} frames' in words
    assert frames_of_video(saccade, tmp_path / 'out/o.mp4', noise, tmp_path) == frames


def test_a_video_that_cannot_be_opened_leaves_nothing(saccade, clip, video, tmp_path):
    out = tmp_path / 'out'
    out.mkdir()
    (tmp_path / 'text.mp4').write_text('This is a text.\n' * 1000)
    (tmp_path / 'empty.mp4').write_bytes(b'')
    (tmp_path / 'head.mp4').write_bytes(video.read_bytes()[:100])
    (tmp_path / 'folder.mp4').mkdir()
    for name in ('text.mp4', 'empty.mp4', 'head.mp4', 'folder.mp4', 'missing.mp4'):
        fails(saccade(*track_args(tmp_path / name, clip, out)), 1, name)
        assert names(out) == []


@pytest.mark.parametrize('seed', range(12))
def test_damaged_bytes_never_crash(saccade, clip, video, tmp_path, seed):
    rng = random.Random(seed)
    data = bytearray(video.read_bytes())
    for _ in range(1 << (seed % 8)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    (tmp_path / 'bad.mp4').write_bytes(data)
    out = tmp_path / 'out'
    out.mkdir()
    run = saccade(*track_args(tmp_path / 'bad.mp4', clip, out))
    assert run.returncode in (0, 1), run.stderr
    if run.returncode == 1:
        assert run.stderr.splitlines()[-1].startswith('saccade: ')
    assert names(out) in ([], sorted(OUTPUTS.values()))
    if names(out):
        frames_in(out)


# ---- a run that is stopped ----

def start(program, arguments):
    return subprocess.Popen([program, *map(str, arguments)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize('delay', [0.01, 0.05, 0.1, 0.2, 0.4, 0.8])
def test_interrupted_at_any_moment(program, saccade, long_clip, tmp_path, delay):
    out = tmp_path / 'out'
    out.mkdir()
    process = start(program, track_args(long_clip / 'img', long_clip, out))
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    if process.returncode == -signal.SIGINT and not said:
        return  # it had not begun
    assert process.returncode == 130, said
    assert 'interrupted' in said.splitlines()[-1]
    assert names(out) in ([], ['o.jsonl', 'o.txt'], sorted(OUTPUTS.values()))
    if (out / 'o.mp4').exists():
        assert frames_of_video(saccade, out / 'o.mp4', long_clip, tmp_path) == frames_in(out)


def test_who_holds_memory_is_told_at_any_time(program, long_clip, tmp_path):
    process = start(program, track_args(long_clip / 'img', long_clip, tmp_path))
    said, held = [], []
    deadline = time.monotonic() + PATIENCE
    for line in process.stderr:  # the first line comes when all is open
        said.append(line.rstrip('\n'))
        if line.startswith("cpu: '") and said[-1].endswith('s old'):
            held.append(line)
        if line.startswith('live buffers: ') and (held or time.monotonic() > deadline):
            break
        if ' on cpu ' in line or line.startswith('live buffers: '):  # none yet: the first frame is still to come
            time.sleep(0.02)
            process.send_signal(signal.SIGUSR1)
    assert held, said
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said


@pytest.mark.skipif('SACCADE_SANITIZED' in os.environ, reason='the sanitizers report a crash themselves')
def test_a_crash_says_where_each_thread_was(program, long_clip, tmp_path):
    process = start(program, track_args(long_clip / 'img', long_clip, tmp_path))
    wait_until(process, lambda: has_frames(tmp_path, 'o.jsonl'))
    process.send_signal(signal.SIGSEGV)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGSEGV, said
    assert said.count('saccade: crashed') == 1
    assert said.count('one of its threads is at') > 2, said  # those that decode, infer and track
    assert 'libc.so' in said


def test_a_killed_run_leaves_the_former_results_alone(program, long_clip, tmp_path):
    for name in OUTPUTS.values():
        (tmp_path / name).write_bytes(b'former')
    process = start(program, track_args(long_clip / 'img', long_clip, tmp_path))
    wait_until(process, lambda: has_frames(tmp_path, 'o.jsonl'))
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGKILL
    for name in OUTPUTS.values():
        assert (tmp_path / name).read_bytes() == b'former'


# ---- started without standard input, output and error ----

@pytest.mark.parametrize('closed', [(2,), (1, 2), (0, 1, 2)])
def test_no_file_gets_what_is_meant_for_standard_error(program, clip, tmp_path, closed):
    """A file of the run would have the number of one that is closed."""
    outputs = [part for option, name in (('--jsonl', 'o.jsonl'), ('--stats', 's.json'), ('--trace', 't.json'))
               for part in (option, tmp_path / name)]
    run = subprocess.run([program, 'track', clip / 'img', '--detections', clip / 'det.txt', '--verbose', *outputs],
                         preexec_fn=lambda: [os.close(fd) for fd in closed])
    assert run.returncode == 0
    for name in 's.json', 't.json':
        json.loads((tmp_path / name).read_text())
    assert len([json.loads(line) for line in (tmp_path / 'o.jsonl').read_text().splitlines()]) == FRAMES + 1


def test_what_is_closed_cannot_be_written(program, clip, tmp_path):
    run = subprocess.run([program, 'track', clip / 'img', '--detections', clip / 'det.txt', '--mot', '-'],
                         preexec_fn=lambda: os.close(1), stderr=subprocess.PIPE, text=True)
    assert run.returncode == 1 and 'Bad file descriptor' in run.stderr, run.stderr


# ---- a folder that must not be written ----

@pytest.mark.skipif(os.geteuid() == 0, reason='root may write everywhere')
@pytest.mark.parametrize('option', OUTPUTS)
def test_a_folder_that_is_read_only(saccade, clip, tmp_path, option):
    tmp_path.chmod(0o500)
    run = saccade('track', clip / 'img', '--detections', clip / 'det.txt', option,
                  tmp_path / OUTPUTS[option])
    tmp_path.chmod(0o700)
    fails(run, 1, OUTPUTS[option], 'Permission denied')
    assert names(tmp_path) == []
