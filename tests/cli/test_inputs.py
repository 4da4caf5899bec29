# SPDX-License-Identifier: Apache-2.0
"""What people give as inputs and outputs, and what they mean by it."""
import json
import shutil

import numpy
import pytest

from support import FRAMES, fails, write_detections, write_ppm


@pytest.fixture
def cameras(clip, video, tmp_path):
    """cam1/a.mp4 and cam2/a.mp4, with a folder of detections."""
    for camera in 'cam1', 'cam2':
        (tmp_path / camera).mkdir()
        shutil.copy(video, tmp_path / camera / 'a.mp4')
    (tmp_path / 'det').mkdir()
    shutil.copy(clip / 'det.txt', tmp_path / 'det/a.txt')
    return tmp_path


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob('*') if path.is_file())


def new_files(saccade, folder, *args, status=0):
    before = files(folder)
    run = saccade('track', *args, cwd=folder)
    assert run.returncode == status, run.stderr
    return [name for name in files(folder) if name not in before], run


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


# ---- no output ----

def test_without_an_output_there_are_json_lines(saccade, clip, video, tmp_path):
    new, run = new_files(saccade, tmp_path, video, '--detections', clip / 'det.txt')
    assert new == ['clip.tracks.jsonl'] and 'wrote       clip.tracks.jsonl' in run.stderr
    assert len(lines_of(tmp_path / 'clip.tracks.jsonl')) == 1 + FRAMES
    before = (tmp_path / 'clip.tracks.jsonl').read_bytes()
    fails(saccade('track', video, '--detections', clip / 'det.txt', cwd=tmp_path), 2, 'clip.tracks.jsonl',
          'already exists', '--output')
    assert (tmp_path / 'clip.tracks.jsonl').read_bytes() == before


def test_what_stands_for_no_output(saccade, clip, video, tmp_path):
    for args in ['--jsonl', 'none'], ['--stats', 's.json'], ['--trace', 't.json'], ['-o', 'none']:
        new, run = new_files(saccade, tmp_path, video, '--detections', clip / 'det.txt', *args)
        assert new == [name for name in args if name.endswith('.json')]


@pytest.mark.parametrize('args, name', [(['--detections', 'my.det.txt', '--fps', 20], 'my.det'),
                                        (['-', '--detections', 'my.det.txt'], 'stdin')])
def test_the_default_is_called_as_the_input(saccade, clip, video, tmp_path, args, name):
    shutil.copy(clip / 'det.txt', tmp_path / 'my.det.txt')
    with open(video, 'rb') as stream:
        run = saccade('track', *args, cwd=tmp_path, stdin=stream)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / f'{name}.tracks.jsonl').exists()


def test_several_inputs_without_an_output(saccade, cameras):
    new, run = new_files(saccade, cameras, 'cam1/a.mp4', 'cam2/a.mp4', '--detections', 'det')
    assert new == ['cam1_a.tracks.jsonl', 'cam2_a.tracks.jsonl']
    assert 'wrote       cam1_a.tracks.jsonl and 1 more\n' in run.stderr


# ---- names ----

def test_names_that_would_clash_get_their_folders(saccade, cameras):
    new, _ = new_files(saccade, cameras, 'cam1/a.mp4', 'cam2/a.mp4', '--detections', 'det', '-o', 'out', '--mot', 'out')
    assert new == ['out/cam1_a.mp4', 'out/cam1_a.txt', 'out/cam2_a.mp4', 'out/cam2_a.txt']


def test_folders_are_put_before_names_as_far_as_needed(saccade, cameras):
    for side in 'x', 'y':
        shutil.copytree(cameras / 'cam1', cameras / side / 'cam')
    shutil.copy(cameras / 'cam1/a.mp4', cameras / 'b.mp4')
    shutil.copy(cameras / 'det/a.txt', cameras / 'det/b.txt')
    new, _ = new_files(saccade, cameras, 'x/cam/a.mp4', 'y/cam/a.mp4', 'b.mp4', '--detections', 'det', '--mot', 'out')
    assert new == ['out/b.txt', 'out/x_a.txt', 'out/y_a.txt']


def test_files_that_differ_in_their_ending(saccade, cameras):
    shutil.copy(cameras / 'cam1/a.mp4', cameras / 'cam1/a.mkv')
    new, _ = new_files(saccade, cameras, 'cam1/a.mp4', 'cam1/a.mkv', '--detections', 'det', '-o', 'video')
    assert new == ['video/a.mkv', 'video/a.mp4']
    new, _ = new_files(saccade, cameras, 'cam1/a.mp4', 'cam1/a.mkv', '--detections', 'det', '--mot', 'mot')
    assert new == ['mot/a_mkv.txt', 'mot/a_mp4.txt']
    new, _ = new_files(saccade, cameras, 'cam1/a.mp4', 'cam1/a.mp4', '--detections', 'det', '--mot', 'twice')
    assert new == ['twice/a_1.txt', 'twice/a_2.txt']


def test_a_template(saccade, cameras, video):
    new, run = new_files(saccade, cameras, 'cam1/a.mp4', 'cam2/a.mp4', '--detections', 'det',
                       '-o', 'out/{folder}/{name}.mkv', '--mot', 'out/{index}-{stream}.txt', '--jsonl', '{{{folder}}}.jsonl')
    assert new == ['out/1-0.txt', 'out/2-1.txt', 'out/cam1/a.mkv', 'out/cam2/a.mkv', '{cam1}.jsonl', '{cam2}.jsonl']
    wrote = [line[12:].split(' (')[0] for line in run.stderr.splitlines() if line.startswith('wrote ')]
    assert wrote == ['out/cam1/a.mkv and 1 more', '{cam1}.jsonl and 1 more', 'out/1-0.txt and 1 more']
    new, run = new_files(saccade, cameras, video, '--detections', 'det/a.txt', '-o', '{name}_tracked.mp4')
    assert new == ['clip_tracked.mp4'] and 'wrote       clip_tracked.mp4 (' in run.stderr
    fails(saccade('track', 'cam1/a.mp4', '--detections', 'det/a.txt', '-o', '{nmae}.mp4', cwd=cameras), 2, '{nmae}', '{name}')
    fails(saccade('track', 'cam1/a.mp4', 'cam2/a.mp4', '--detections', 'det', '--mot', '{name}.txt', cwd=cameras), 2,
          'a.txt', 'cam1', 'cam2')


def test_one_name_for_several_is_refused(saccade, cameras):
    before = files(cameras)
    for option, name in ('-o', 'out.mp4'), ('--jsonl', 'out.jsonl'), ('--mot', 'new/out.txt'):
        fails(saccade('track', 'cam1/a.mp4', 'cam2/a.mp4', '--detections', 'det', option, name, cwd=cameras), 2,
              'names one file', '{name}')
    assert files(cameras) == before


# ---- folders of outputs ----

def test_an_output_may_be_a_folder(saccade, clip, video, tmp_path):
    (tmp_path / 'there').mkdir()
    new, run = new_files(saccade, tmp_path, video, '--detections', clip / 'det.txt', '-o', 'new/deep/', '--jsonl', 'there',
                         '--mot', 'other/t.txt', '--stats', 'more/s.json')
    assert new == ['more/s.json', 'new/deep/clip.mp4', 'other/t.txt', 'there/clip.jsonl']
    assert 'wrote       new/deep/clip.mp4' in run.stderr


def test_folders_that_nothing_came_into_are_gone(saccade, tmp_path):
    fails(saccade('track', '/nowhere/in.mp4', '-o', 'new/deep/out.mp4', cwd=tmp_path), 1, '/nowhere/in.mp4')
    assert list(tmp_path.iterdir()) == []
    fails(saccade('track', '/nowhere/in.mp4', '-o', '/proc/new/out.mp4', cwd=tmp_path), 1, "'/proc/new'")


# ---- folders and patterns of inputs ----

def test_a_folder_of_videos_is_each_of_them(saccade, cameras):
    shutil.copy(cameras / 'cam1/a.mp4', cameras / 'cam1/b.mkv')
    shutil.copy(cameras / 'det/a.txt', cameras / 'det/b.txt')
    (cameras / 'cam1/notes.txt').write_text('no video')
    new, run = new_files(saccade, cameras, 'cam1', '--detections', 'det', '--mot', 'out')
    assert new == ['out/a.txt', 'out/b.txt']
    new, run = new_files(saccade, cameras, 'cam2/', '--detections', 'det/a.txt', '--mot', 'one.txt')  # of one it is that
    assert new == ['one.txt']
    write_ppm(cameras / 'cam1/x.ppm', 0)
    fails(saccade('track', 'cam1', '--detections', 'det', '--mot', 'no', cwd=cameras), 2, 'pictures and videos', "'cam1/*.jpg'")


@pytest.mark.parametrize('quoted', [True, False])
def test_pictures_are_one_sequence(saccade, clip, tmp_path, quoted):
    (tmp_path / 'imgs').mkdir()
    for frame in range(12):  # as people count
        write_ppm(tmp_path / f'imgs/{frame + 1}.ppm', frame)
    args = ['imgs/*.ppm'] if quoted else [f'imgs/{frame + 1}.ppm' for frame in range(12)]
    new, run = new_files(saccade, tmp_path, *args, '--detections', clip / 'det.txt')
    assert new == ['imgs.tracks.jsonl']
    lines = lines_of(tmp_path / 'imgs.tracks.jsonl')
    assert [line['frame'] for line in lines[1:]] == list(range(12))
    assert lines[0]['input'] == ('imgs/*.ppm' if quoted else 'imgs/1.ppm ... imgs/12.ppm')
    folder = saccade('track', tmp_path / 'imgs', '--detections', clip / 'det.txt', '--jsonl', tmp_path / 'folder.jsonl')
    assert folder.returncode == 0 and lines_of(tmp_path / 'folder.jsonl')[1:] == lines[1:]


def test_given_pictures_come_in_the_given_order(saccade, tmp_path):
    for frame, name in enumerate('cab'):
        write_ppm(tmp_path / f'{name}.ppm', frame)
    write_detections(tmp_path / 'det.txt')
    run = saccade('track', 'c.ppm', 'a.ppm', 'b.ppm', '--detections', 'det.txt', '-o', 'o.mp4', '--confirm', 0,
                  '--mot', 't.txt', cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert 'in 3 frames' in run.stderr
    fails(saccade('track', 'c.ppm', 'a.ppm', '--detections', 'det.txt', '--mot', 'a.ppm', cwd=tmp_path), 2, 'a.ppm')


def test_a_pattern_of_videos_is_each_of_them(saccade, cameras):
    new, _ = new_files(saccade, cameras, 'cam?/*.mp4', '--detections', 'det', '--mot', 'out')
    assert new == ['out/cam1_a.txt', 'out/cam2_a.txt']
    fails(saccade('track', 'none*/*.mp4', '--detections', 'det', '--mot', 'out', cwd=cameras), 1, "'none*/*.mp4'",
          'no file matches')
    shutil.copy(cameras / 'cam1/a.mp4', cameras / 'odd[1].mp4')  # a name that looks like a pattern
    new, _ = new_files(saccade, cameras, 'odd[1].mp4', '--detections', 'det/a.txt', '--mot', 'odd.txt')
    assert new == ['odd.txt']


@pytest.mark.parametrize('name', ['12:30.mp4', 'm:x.mp4', 'http:a.mp4'])
def test_a_colon_in_a_name_is_no_protocol(saccade, cameras, name):
    shutil.copy(cameras / 'cam1/a.mp4', cameras / name)
    new, _ = new_files(saccade, cameras, name, '--detections', 'det/a.txt', '--mot', f'{name}.txt')
    assert f'{name}.txt' in new


def test_too_many_inputs_are_told(saccade, tmp_path):
    (tmp_path / 'many').mkdir()
    for i in range(300):
        (tmp_path / f'many/{i}.mp4').write_bytes(b'')
    fails(saccade('track', 'many', '--mot', 'out', cwd=tmp_path), 2, '300 inputs', '256')


# ---- an array of frames ----

@pytest.fixture
def array(clip, tmp_path):
    """The pictures as one .npy file."""
    def pixels(path):
        header, _, rest = path.read_bytes().partition(b'255\n')
        width, height = map(int, header.split()[1:3])
        return numpy.frombuffer(rest, numpy.uint8).reshape(height, width, 3)
    numpy.save(tmp_path / 'frames.npy', numpy.stack([pixels(path) for path in sorted((clip / 'img').iterdir())]))
    return tmp_path / 'frames.npy'


def test_an_array_is_as_good_as_its_pictures(saccade, clip, array, tmp_path):
    for name, source in ('images', clip / 'img'), ('array', array):
        run = saccade('track', source, '--fps', 20, '--detections', clip / 'det.txt', '--jsonl',
                      tmp_path / f'{name}.jsonl', '-o', tmp_path / f'{name}.mp4')
        assert run.returncode == 0 and 'ignored' not in run.stderr, run.stderr
    frames = [[json.loads(line) for line in (tmp_path / f'{name}.jsonl').read_text().splitlines()[1:]]
              for name in ('images', 'array')]
    assert frames[0] == frames[1] and len(frames[0]) == FRAMES
    assert (tmp_path / 'images.mp4').read_bytes() == (tmp_path / 'array.mp4').read_bytes()
    run = saccade('segment', array, '--fps', 20, '--duration', 0.2, '--as', 'mask', '-o', tmp_path / 'mattes.mp4')
    assert run.returncode == 0, run.stderr


def test_the_frame_rate_of_an_array_is_part_of_what_is_kept(saccade, array, tmp_path):
    def times(fps):
        run = saccade('track', array, '--fps', fps, '--device', 'cpu', '--detector', 'person_det_fast', '--tracker',
                      'sort', '--jsonl', tmp_path / 'out.jsonl', '--disk-cache', tmp_path / 'cache')
        assert run.returncode == 0, run.stderr
        return [json.loads(line)['pts'] for line in (tmp_path / 'out.jsonl').read_text().splitlines()[1:]]
    for _ in range(2):
        assert times(20)[10] == pytest.approx(0.5) and times(10)[10] == pytest.approx(1)


def test_an_array_that_is_no_frames(saccade, array, tmp_path):
    frames = numpy.load(array)
    for bad, word in ((frames.astype(numpy.float32), 'uint8'), (frames[0], '[frames,height,width,3]'),
                      (numpy.asfortranarray(frames), 'Fortran order')):
        numpy.save(tmp_path / 'bad.npy', bad)
        fails(saccade('track', tmp_path / 'bad.npy', '--device', 'cpu', '--jsonl', tmp_path / 'o'), 1, 'bad.npy', word)
    (tmp_path / 'bad.npy').write_bytes(array.read_bytes()[:-1])
    fails(saccade('track', tmp_path / 'bad.npy', '--device', 'cpu', '--jsonl', tmp_path / 'o'), 1, 'bad.npy', 'promises')
    assert not (tmp_path / 'o').exists()
