# SPDX-License-Identifier: Apache-2.0
"""Runs that take boxes and embeddings from the disk cache, and saccade cache."""
import json
import math
import resource
import shutil
import signal
import subprocess

import numpy
import pytest
from support import fails, wait_until
from test_formats import NAMES, detector

# No person is in the pictures: with low thresholds there are boxes all the same, and they are tracked.
FAINT = ['--device', 'cpu', '--detector', 'person_det_fast', '--score-min', 0.001, '--score-low', 0.001,
         '--score-high', 0.004, '--score-new', 0.004, '--boxes-max', 40]
TRACKERS = [['--tracker', 'bytetrack'], ['--tracker', 'ocsort', '--lost-max', 1], ['--tracker', 'botsort'],
            ['--no-camera-motion'], ['--reid', 'none'], ['--score-high', 0.002]]


@pytest.fixture(scope='module')
def video(saccade, clip, tmp_path_factory):
    """The clip's first second: it is tracked a hundred times here."""
    folder = tmp_path_factory.mktemp('short')
    (folder / 'img').mkdir()
    for picture in sorted((clip / 'img').iterdir())[:20]:
        shutil.copy(picture, folder / 'img')
    run = saccade('track', folder / 'img', '--fps', 20, '--detections', clip / 'det.txt', '-o', folder / 'clip.mp4')
    assert run.returncode == 0, run.stderr
    return folder / 'clip.mp4'


@pytest.fixture
def track(saccade, video, tmp_path):
    def run(*options, cache=True, name='tracks.txt'):
        options = [*options, *(['--disk-cache', tmp_path / 'cache'] if cache else [])]
        ran = saccade('track', video, *FAINT, *options, '--mot', tmp_path / name)
        assert ran.returncode == 0, ran.stderr
        return (tmp_path / name).read_bytes(), ran.stderr
    return run


def entries(saccade, folder):
    run = saccade('cache', 'list', '--json', '--disk-cache', folder)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)['entries']


def test_tracks_are_equal_to_the_last_byte(track, saccade, tmp_path):
    track('--tracker', 'botsort')
    assert sorted(e['kind'] for e in entries(saccade, tmp_path / 'cache')) == ['boxes', 'embeddings', 'motion']
    for options in TRACKERS:
        plain, _ = track(*options, cache=False)
        kept, log = track(*options)
        assert plain == kept and plain.count(b'\n') > 20
        assert 'come from the disk cache; the video is not decoded' in log
    assert len(entries(saccade, tmp_path / 'cache')) == 3


def test_the_video_is_decoded_where_it_is_seen(track, tmp_path):
    track('--tracker', 'bytetrack')
    _, log = track('--tracker', 'bytetrack')
    assert 'not decoded' in log
    _, log = track('--tracker', 'bytetrack', '-o', tmp_path / 'a.mp4')
    assert 'come from the disk cache' in log and 'not decoded' not in log
    track('--tracker', 'bytetrack', '-o', tmp_path / 'b.mp4', cache=False)
    assert (tmp_path / 'a.mp4').read_bytes() == (tmp_path / 'b.mp4').read_bytes()


def test_embeddings_come_to_kept_boxes(track, saccade, tmp_path):
    """The detector does not run again for a tracker that wants embeddings."""
    track('--tracker', 'bytetrack')
    assert [e['kind'] for e in entries(saccade, tmp_path / 'cache')] == ['boxes']
    tracks, log = track('--tracker', 'botsort')
    assert 'boxes of' in log
    assert tracks == track('--tracker', 'botsort', cache=False)[0]
    _, log = track('--tracker', 'botsort')
    assert 'boxes, embeddings and camera motion of' in log


@pytest.fixture(scope='module')
def swaying(saccade, tmp_path_factory):
    """A camera that sways before a wall with a pattern, each picture twice, and options for tracking it: a network
    that says the same boxes for every picture stands in for a detector."""
    folder = tmp_path_factory.mktemp('swaying')
    (folder / 'img').mkdir()
    rng = numpy.random.default_rng(7)
    wall = numpy.kron(rng.integers(0, 256, (60, 80, 3), numpy.uint8), numpy.ones((8, 8, 1), numpy.uint8))
    for frame in range(40):
        x, y = int(60 + 40 * math.sin(frame // 2 * 0.5)), int(50 + 20 * math.cos(frame // 2 * 0.7))
        image = numpy.ascontiguousarray(wall[y:y + 240, x:x + 320])
        (folder / 'img' / f'{frame + 1:05d}.ppm').write_bytes(b'P6 320 240 255\n' + image.tobytes())
    network = detector(folder / 'net.onnx', NAMES)
    options = ['--device', 'cpu', '--detector', network, '--classes', 'all', '--reid', 'none']
    run = saccade('track', folder / 'img', '--fps', 20, *options, '-o', folder / 'swaying.mp4')
    assert run.returncode == 0, run.stderr
    return [folder / 'swaying.mp4', *options]


def test_the_motion_of_the_camera_is_kept_for_any_tracker(saccade, swaying, tmp_path):
    """What moves is left out of it, and other trackers see other objects: one entry serves them all."""
    def track(*options, name='tracks.txt', cache=True):
        options = [*options, *(['--disk-cache', tmp_path / 'cache'] if cache else [])]
        run = saccade('track', *swaying, *options, '--mot', tmp_path / name)
        assert run.returncode == 0, run.stderr
        return (tmp_path / name).read_bytes(), run.stderr
    still, _ = track('--no-camera-motion')
    assert 'not decoded' not in track()[1]  # boxes are kept, the motion was not asked for
    assert [e['kind'] for e in sorted(entries(saccade, tmp_path / 'cache'), key=lambda e: e['kind'])] == \
        ['boxes', 'motion']
    for options in ([], ['--score-high', 0.88], ['--score-new', 0.89], ['--lost-max', 0.2, '--track-max', 3],
                    ['-o', tmp_path / 'shown.mp4']):
        plain, _ = track(*options, cache=False)
        kept, log = track(*options)
        assert plain == kept and plain.count(b'\n') > 20 and plain != still
        assert 'boxes and camera motion of 40 frames' in log
        assert ('not decoded' in log) == ('-o' not in options)
    assert len(entries(saccade, tmp_path / 'cache')) == 2


def test_the_motion_between_frames_that_are_not_still(saccade, swaying, tmp_path):
    tracks = []
    for cache in ([], ['--disk-cache', tmp_path / 'cache'], ['--disk-cache', tmp_path / 'cache']):
        run = saccade('track', *swaying, '--skip-still', 0.02, '--skip-max', 3, *cache,
                      '--mot', tmp_path / 'tracks.txt')
        assert run.returncode == 0, run.stderr
        tracks.append((tmp_path / 'tracks.txt').read_bytes())
    assert 'not decoded' in run.stderr
    assert tracks[0] == tracks[1] == tracks[2] and tracks[0].count(b'\n') > 20


def test_damaged_motion_is_made_anew(saccade, swaying, tmp_path):
    options = [*swaying, '--disk-cache', tmp_path / 'cache', '--mot', tmp_path / 'tracks.txt']
    assert saccade('track', *options).returncode == 0
    whole = {path: path.read_bytes() for path in (tmp_path / 'cache').iterdir()}
    tracks = (tmp_path / 'tracks.txt').read_bytes()
    boxes, motion = sorted(whole, key=lambda path: len(whole[path]))
    for damage in (lambda b: b[:-1], lambda b: b[:-40] + b'x' + b[-39:], lambda b: b''):
        motion.write_bytes(damage(whole[motion]))
        run = saccade('track', *options)
        assert run.returncode == 0 and 'made anew' in run.stderr and 'boxes of' in run.stderr
        assert (tmp_path / 'tracks.txt').read_bytes() == tracks
        assert motion.read_bytes() == whole[motion] and boxes.read_bytes() == whole[boxes]


def test_other_options_are_other_entries(track, saccade, tmp_path):
    track('--tracker', 'bytetrack')
    for option in (['--nms-iou', 0.5], ['--every', 2], ['--boxes-max', 5], ['--skip-still', 0.001]):
        _, log = track('--tracker', 'bytetrack', *option)
        assert 'come from' not in log
        tracks, log = track('--tracker', 'bytetrack', *option)
        assert 'come from' in log
        assert tracks == track('--tracker', 'bytetrack', *option, cache=False)[0]
    assert len(entries(saccade, tmp_path / 'cache')) == 5


def test_a_damaged_entry_is_made_anew(track, saccade, tmp_path):
    tracks, _ = track('--tracker', 'bytetrack')
    entry, = (tmp_path / 'cache').iterdir()
    whole = entry.read_bytes()
    for bytes_ in (whole[:-1], whole[:100], b'', whole[:-9] + b'x' + whole[-8:], whole + b'x', b'x' * len(whole)):
        entry.write_bytes(bytes_)
        again, log = track('--tracker', 'bytetrack')
        assert again == tracks and 'made anew' in log
        assert entry.read_bytes() == whole


def test_several_inputs_of_which_some_are_kept(saccade, video, tmp_path):
    (tmp_path / 'a.mp4').write_bytes(video.read_bytes())
    (tmp_path / 'b.mp4').write_bytes(video.read_bytes() + b'\0' * 8)
    options = [*FAINT, '--tracker', 'bytetrack', '--disk-cache', tmp_path / 'cache']
    assert saccade('track', video, *options, '--mot', tmp_path / 'one.txt').returncode == 0
    for _ in range(2):
        run = saccade('track', tmp_path / 'a.mp4', tmp_path / 'b.mp4', *options, '--mot', tmp_path / 'out')
        assert run.returncode == 0, run.stderr

        def shape(path):
            """Streams share the numbers of tracks."""
            return [line.split(',')[:1] + line.split(',')[2:] for line in path.read_text().splitlines()]
        one = shape(tmp_path / 'one.txt')
        assert one == shape(tmp_path / 'out/a.txt') == shape(tmp_path / 'out/b.txt')
    assert len(entries(saccade, tmp_path / 'cache')) == 2


def test_still_frames_beside_an_input_whose_boxes_are_kept(saccade, video, tmp_path):
    (tmp_path / 'a.mp4').write_bytes(video.read_bytes())
    (tmp_path / 'b.mp4').write_bytes(video.read_bytes() + b'\0' * 8)
    options = [*FAINT, '--tracker', 'bytetrack', '--skip-still', 0.001, '--max-batch', 1]
    cache = ['--disk-cache', tmp_path / 'cache']
    assert saccade('track', tmp_path / 'a.mp4', *options, *cache, '--mot', tmp_path / 'a.txt').returncode == 0
    rows = []
    for more in ([], cache):
        run = saccade('track', tmp_path / 'a.mp4', tmp_path / 'b.mp4', *options, *more, '--mot', tmp_path / 'out')
        assert run.returncode == 0, run.stderr
        rows.append([[line.split(',')[:1] + line.split(',')[2:] for line in
                      (tmp_path / f'out/{name}.txt').read_text().splitlines()] for name in 'ab'])
    assert 'boxes of 20 frames come from the disk cache' in run.stderr
    assert rows[0] == rows[1] and len(rows[0][1]) > 20


def leaves_nothing(program, video, tmp_path, ready, *options):
    """A run that is interrupted once an unfinished entry is `ready`."""
    process = subprocess.Popen([program, 'track', video, *map(str, FAINT), '--tracker', 'bytetrack', '--realtime',
                                '--mot', tmp_path / 'o.txt', '--disk-cache', tmp_path / 'cache', *options],
                               stderr=subprocess.PIPE, text=True)
    try:
        wait_until(process, lambda: any(ready(path) for path in tmp_path.glob('cache/*.part')))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert list((tmp_path / 'cache').iterdir()) == []


def test_a_run_that_is_stopped_keeps_nothing(program, video, tmp_path):
    leaves_nothing(program, video, tmp_path, lambda path: True)


def test_two_processes_at_once(program, video, saccade, tmp_path):
    processes = [subprocess.Popen([program, 'track', video, *map(str, FAINT), '--tracker', 'bytetrack', '--mot',
                                   tmp_path / f'{i}.txt', '--disk-cache', tmp_path / 'cache'],
                                  stderr=subprocess.PIPE, text=True) for i in range(2)]
    for process in processes:
        _, log = process.communicate(timeout=120)
        assert process.returncode == 0, log
    assert (tmp_path / '0.txt').read_bytes() == (tmp_path / '1.txt').read_bytes()
    assert len(list((tmp_path / 'cache').iterdir())) == 1


def test_what_is_no_clip_is_not_kept(saccade, clip, tmp_path):
    run = saccade('track', clip / 'img', *FAINT, '--disk-cache', tmp_path / 'cache', '--mot', tmp_path / 'o.txt')
    assert run.returncode == 0 and 'keeps clips of files' in run.stderr
    assert list((tmp_path / 'cache').iterdir()) == []


def test_a_folder_that_cannot_be_is_one_sentence(saccade, video, tmp_path):
    (tmp_path / 'file').write_text('x')
    run = saccade('track', video, *FAINT, '--disk-cache', tmp_path / 'file/below', '--mot', tmp_path / 'o.txt')
    fails(run, 1, 'file/below')


def test_cache_lists_and_clears(track, saccade, tmp_path):
    folder = tmp_path / 'cache'
    track('--tracker', 'bytetrack')
    (folder / 'mine.txt').write_text('mine')
    run = saccade('cache', '--disk-cache', folder)
    assert run.returncode == 0 and 'person_det_fast.onnx' in run.stdout and 'clip.mp4' in run.stdout
    assert '1 file, ' in run.stdout
    run = saccade('cache', 'clear', '--older', 1, '--disk-cache', folder)
    assert run.returncode == 0 and run.stdout.startswith('0 files removed')
    run = saccade('cache', 'clear', '--disk-cache', folder, '--json')
    assert json.loads(run.stdout)['removed'] == 1
    assert [path.name for path in folder.iterdir()] == ['mine.txt']
    fails(saccade('cache', 'burn'), 2, "'burn'", 'list or clear')


def test_listing_makes_no_folder(saccade, tmp_path):
    for what in ('list', 'clear'):
        fails(saccade('cache', what, '--disk-cache', tmp_path / 'typo'), 1, 'typo')
    assert not (tmp_path / 'typo').exists()


def test_an_input_that_is_not_there_is_said_once(saccade, tmp_path):
    run = saccade('track', tmp_path / 'none.mp4', *FAINT, '--disk-cache', tmp_path / 'cache')
    fails(run, 1, 'none.mp4')
    assert 'keeps clips' not in run.stderr


def test_a_large_input_can_be_interrupted(program, video, tmp_path):
    """The sum of its bytes is made before anything else is opened."""
    large = tmp_path / 'large.mp4'
    large.write_bytes(video.read_bytes())
    with open(large, 'r+b') as file:
        file.truncate(200 << 30)
    process = subprocess.Popen([program, 'track', large, *map(str, FAINT), '--disk-cache', tmp_path / 'cache',
                                '--mot', tmp_path / 'o.txt'], stderr=subprocess.PIPE, text=True)
    try:
        wait_until(process, lambda: (tmp_path / 'cache').exists())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130


# ---- prepared frames ----

NETWORKS = [['--score-min', 0.002], ['--nms-iou', 0.4], ['--boxes-max', 7], ['--detector', 'person_det'],
            ['--classes', 'all', '--tracker', 'ocsort'], ['--max-batch', 4, '--deterministic'],
            ['--tracker', 'botsort', '--no-camera-motion', '--reid', 'none', '--score-min', 0.003]]
IMAGE = 3 * 416 * 416 * 4


@pytest.fixture
def prepare(saccade, video, tmp_path):
    """prepare(*options): the tracks, the log, and how many frames were decoded. By motion: nothing wants pixels."""
    def run(*options, cache=True, clip=video, name='tracks.txt'):
        options = [*options, *(['--disk-cache', tmp_path / 'cache', '--disk-cache-frames'] if cache else [])]
        ran = saccade('track', clip, *FAINT, '--tracker', 'bytetrack', *options, '--mot', tmp_path / name,
                      '--stats', tmp_path / 'stats.json')
        assert ran.returncode == 0, ran.stderr
        source = json.loads((tmp_path / 'stats.json').read_text())['source']
        return (tmp_path / name).read_bytes(), ran.stderr, source['frames']
    return run


def kinds(saccade, folder):
    return sorted(e['kind'] for e in entries(saccade, folder))


def file_of(saccade, folder, kind):
    file, = [e['file'] for e in entries(saccade, folder) if e['kind'] == kind]
    return folder / file


def test_another_network_takes_the_prepared_frames(prepare, saccade, tmp_path):
    _, log, decoded = prepare()
    assert 'prepared' not in log and decoded == 20
    assert kinds(saccade, tmp_path / 'cache') == ['boxes', 'frames', 'times']
    assert IMAGE * 20 < file_of(saccade, tmp_path / 'cache', 'frames').stat().st_size < IMAGE * 20 + 5000
    run = saccade('cache', '--disk-cache', tmp_path / 'cache')
    assert run.returncode == 0 and '\nframes ' in run.stdout and '\ntimes ' in run.stdout
    for options in NETWORKS:
        plain, _, _ = prepare(*options, cache=False)
        kept, log, decoded = prepare(*options)
        assert plain == kept and plain.count(b'\n') > 5
        assert '20 prepared frames come from the disk cache; the video is not decoded' in log and decoded == 0
        again, log, _ = prepare(*options)  # the boxes were kept meanwhile
        assert again == plain and 'prepared' not in log and 'boxes of 20 frames come from' in log
    assert kinds(saccade, tmp_path / 'cache') == ['boxes'] * (1 + len(NETWORKS)) + ['frames', 'times']


def test_records_have_the_times_of_the_video(prepare, tmp_path):
    part = ['--start', 0.2, '--duration', 0.5, '--every', 2, '--rotate', 90]
    prepare(*part)
    records = []
    for cache in (False, True):
        _, log, decoded = prepare(*part, '--score-min', 0.002, '--jsonl', tmp_path / 'out.jsonl', cache=cache)
        assert (decoded <= 1) == ('prepared frames come from' in log) == cache  # one to find the start
        records.append((tmp_path / 'out.jsonl').read_text().splitlines()[1:])
    assert records[0] == records[1] and len(records[0]) >= 5


def test_boxes_are_cut_to_each_frames_own_size(prepare, video, tmp_path):
    for i, part in enumerate((1, 2)):
        subprocess.run(['ffmpeg', '-v', 'error', '-i', video, '-frames:v', '10', '-vf', f'scale=iw/{part}:ih/{part}', '-pix_fmt', 'yuv420p',
                        '-c:v', 'libx264', '-bf', '0', tmp_path / f'{i}.h264'], check=True)
    clip = tmp_path / 'sizes.h264'
    clip.write_bytes(b''.join((tmp_path / f'{i}.h264').read_bytes() for i in range(2)))
    prepare(clip=clip)
    plain, _, _ = prepare('--score-min', 0.002, cache=False, clip=clip)
    kept, log, decoded = prepare('--score-min', 0.002, clip=clip)
    assert 'prepared frames come from' in log and decoded == 0
    assert kept == plain and plain.count(b'\n') > 10


def test_another_input_of_the_network_is_another_entry(prepare, saccade, tmp_path):
    prepare()
    for options in (['--preprocess', 'fill=0'], ['--preprocess', 'mean=1'], ['--every', 2], ['--start', 0.1],
                    ['--skip-still', 0.001]):
        assert 'come from' not in prepare(*options)[1]
        kept, log, _ = prepare(*options, '--nms-iou', 0.4)
        assert 'prepared frames come from' in log
        assert kept == prepare(*options, '--nms-iou', 0.4, cache=False)[0]
    assert kinds(saccade, tmp_path / 'cache').count('frames') == 6


def test_still_frames_have_no_image(prepare, saccade, tmp_path):
    still = ['--skip-still', 0.02, '--skip-max', 3]
    prepare(*still)
    images, left = divmod(file_of(saccade, tmp_path / 'cache', 'frames').stat().st_size, IMAGE)
    assert images < 10 and left < 5000
    kept, _, decoded = prepare(*still, '--score-min', 0.002)
    assert decoded == 0 and kept == prepare(*still, '--score-min', 0.002, cache=False)[0]


def test_a_damaged_image_is_decoded_and_all_are_made_anew(prepare, saccade, tmp_path):
    prepare()
    frames = file_of(saccade, tmp_path / 'cache', 'frames')
    whole = frames.read_bytes()
    damaged = bytearray(whole)
    for image in (3, 4, 11):
        damaged[len(whole) - IMAGE * image - 1] ^= 1  # from the end: of images 16, 15 and 8
    frames.write_bytes(damaged)
    for options, decoded_frames in ((['--score-min', 0.002], 17), (['--nms-iou', 0.4], 20), (['--boxes-max', 7], 0)):
        kept, log, decoded = prepare(*options)
        assert kept == prepare(*options, cache=False)[0]
        assert decoded == decoded_frames
        assert log.count('are damaged') == (decoded == 17)
        assert frames.exists() == (decoded != 17)
    assert frames.read_bytes() == whole


def test_damaged_entries_of_frames_are_made_anew(prepare, saccade, tmp_path):
    prepare()
    frames, times = (file_of(saccade, tmp_path / 'cache', kind) for kind in ('frames', 'times'))
    whole = {path: path.read_bytes() for path in (frames, times)}
    damages = [(frames, lambda b: b[:-1]), (frames, lambda b: b''), (frames, lambda b: b'x' * 16 + b[16:]),
               (frames, lambda b: b + b'x'), (times, lambda b: b[:-9] + b'x' + b[-8:]), (times, lambda b: b[:-1])]
    for number, (path, damage) in enumerate(damages):
        path.write_bytes(damage(whole[path]))
        options = ['--boxes-max', 10 + number]
        kept, log, decoded = prepare(*options)
        assert decoded == 20 and 'made anew' in log
        assert kept == prepare(*options, cache=False)[0]
        assert {path: path.read_bytes() for path in whole} == whole
    for path in whole:
        path.unlink()
        assert prepare('--boxes-max', 30 + (path == frames))[2] == 20
        assert {path: path.read_bytes() for path in whole} == whole


def short_files():
    """A limit on the size of files stands in for a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5 * IMAGE, 5 * IMAGE))


@pytest.mark.parametrize('options, before, why', [(['--disk-cache-gb', 0.01], None, 'the bound'),
                                                  ([], short_files, 'too large')])
def test_frames_that_have_no_room_are_given_up_at_once(program, prepare, saccade, video, tmp_path, options, before, why):
    process = subprocess.Popen([program, 'track', video, *map(str, FAINT), '--tracker', 'bytetrack', '--realtime',
                                '--mot', tmp_path / 'o.txt', '--disk-cache', tmp_path / 'cache', '--disk-cache-frames',
                                *map(str, options)], stderr=subprocess.PIPE, text=True, preexec_fn=before)
    try:
        line = next(line for line in process.stderr if 'prepared frames are not kept' in line)
        files = list((tmp_path / 'cache').iterdir())
        # most frames are to come: nothing is whole, but the images are gone
        assert files and all(path.suffix == '.part' and path.stat().st_size < IMAGE for path in files)
        _, log = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0 and why in line and 'prepared' not in log
    assert (tmp_path / 'o.txt').read_bytes() == prepare(cache=False)[0]
    assert kinds(saccade, tmp_path / 'cache') == ['boxes'] and len(list((tmp_path / 'cache').iterdir())) == 1


def test_a_run_that_is_stopped_keeps_no_frames(program, video, tmp_path):
    leaves_nothing(program, video, tmp_path, lambda path: path.stat().st_size > IMAGE, '--disk-cache-frames')


def test_pixels_that_are_wanted_are_decoded(prepare, saccade, tmp_path):
    """Prepared frames are then neither taken nor kept."""
    wanting = [['--tracker', 'botsort', '--reid', 'none'], ['--tracker', 'botsort', '--no-camera-motion'],
               ['--reid-every', '--reid', 'person_reid'], ['-o', tmp_path / 'out.mp4'], ['--save-crops', tmp_path / 'crops']]
    log = prepare(*wanting[0])[1]
    assert log.count('neither taken nor kept') == 1 and 'frames' not in kinds(saccade, tmp_path / 'cache')
    prepare()
    for number, options in enumerate(wanting):
        options = [*options, '--boxes-max', 10 + number]
        kept, log, decoded = prepare(*options)
        assert 'neither taken nor kept' in log and decoded == 20
        assert kept == prepare(*options, cache=False)[0]


def test_several_inputs_of_which_some_are_prepared(prepare, saccade, video, tmp_path):
    """A batch has frames of both."""
    clips = [tmp_path / f'{name}.mp4' for name in 'abc']
    for number, clip in enumerate(clips):
        clip.write_bytes(video.read_bytes() + b'\0' * (8 * number))
    prepare(clip=clips[0])
    prepare(clip=clips[2])
    for more in ([], ['--skip-still', 0.001], ['--skip-still', 0.001, '--nms-iou', 0.4]):
        rows = []
        for cache in ([], ['--disk-cache', tmp_path / 'cache', '--disk-cache-frames']):
            run = saccade('track', *clips, *FAINT, '--tracker', 'bytetrack', '--score-min', 0.002, '--max-batch', 4,
                          *more, *cache, '--mot', tmp_path / 'out', '--stats', tmp_path / 'stats.json')
            assert run.returncode == 0, run.stderr
            rows.append([[line.split(',')[:1] + line.split(',')[2:] for line in
                          (tmp_path / f'out/{clip.stem}.txt').read_text().splitlines()] for clip in clips])
        assert rows[0] == rows[1] and len(rows[0][1]) > 20
        decoded = json.loads((tmp_path / 'stats.json').read_text())['source']['frames']
        assert decoded == {0: 20, 2: 60, 4: 0}[len(more)]


def test_two_processes_keep_frames_at_once(program, video, saccade, prepare, tmp_path):
    processes = [subprocess.Popen([program, 'track', video, *map(str, FAINT), '--tracker', 'bytetrack', '--mot',
                                   tmp_path / f'{i}.txt', '--disk-cache', tmp_path / 'cache', '--disk-cache-frames'],
                                  stderr=subprocess.PIPE, text=True) for i in range(2)]
    for process in processes:
        _, log = process.communicate(timeout=120)
        assert process.returncode == 0, log
    assert kinds(saccade, tmp_path / 'cache') == ['boxes', 'frames', 'times']
    assert prepare('--score-min', 0.002)[2] == 0
    assert len(list((tmp_path / 'cache').iterdir())) == 4


def test_frames_without_a_cache_are_said(prepare):
    assert 'it is off' in prepare('--disk-cache-frames', cache=False)[1]
