# SPDX-License-Identifier: Apache-2.0
"""Videos that say how they are to be shown, as phones write them."""
import json

import pytest

from support import fails

# What a track's header has (ISO/IEC 14496-12, 8.3.2): a, b, u, c, d, v, x, y, w; 16.16 but for u, v, w.
MATRICES = {'90': (0, 1, -1, 0), '180': (-1, 0, 0, -1), '270': (0, -1, 1, 0), 'mirrored': (-1, 0, 0, 1),
            '45': (0.7071, 0.7071, -0.7071, 0.7071)}


def show(video, path, matrix):
    """A copy whose picture is to be shown so."""
    data = bytearray(video.read_bytes())
    at = data.index(b'tkhd') + 44
    for place, number in zip((0, 1, 3, 4), matrix):
        data[at + 4 * place:at + 4 * place + 4] = round(number * 65536).to_bytes(4, 'big', signed=True)
    path.write_bytes(data)
    return path


def inspect(saccade, path):
    run = saccade('inspect', path, '--json')
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize('name', MATRICES)
def test_inspect_tells_the_truth(saccade, video, tmp_path, name):
    path = show(video, tmp_path / 'a.mp4', MATRICES[name])
    info = inspect(saccade, path)
    said = saccade('inspect', path).stdout
    angle = 0 if name == 'mirrored' else int(name)
    assert info['rotation'] == pytest.approx(angle, abs=0.01) and info['mirrored'] == (name == 'mirrored')
    assert info['turned'] == (name != '45')
    assert (info['width'], info['height']) == ((240, 320) if name in ('90', '270') else (320, 240))
    assert (info['streams'][0]['width'], info['streams'][0]['height']) == (320, 240)  # as it is stored
    assert f'{angle} degrees clockwise' in said
    assert ('only quarter turns are made' if name == '45' else 'frames are turned upright') in said
    assert ('mirrored, then' in said) == (name == 'mirrored')


def test_a_usual_video_says_nothing_of_it(saccade, video):
    assert 'rotation' not in saccade('inspect', video).stdout
    assert inspect(saccade, video)['rotation'] == 0


def track(saccade, clip, path, *args):
    run = saccade('track', path, '--detections', clip / 'det.txt', *args)
    assert run.returncode == 0, run.stderr
    return run


def test_outputs_are_in_the_turned_picture(saccade, clip, video, tmp_path):
    path, out = show(video, tmp_path / 'a.mp4', MATRICES['90']), tmp_path / 'o.mp4'
    run = track(saccade, clip, path, '-o', out, '--jsonl', tmp_path / 'o.jsonl')
    assert 'its frames are turned by 90 degrees, as it says' in run.stderr
    header = json.loads((tmp_path / 'o.jsonl').read_text().splitlines()[0])
    assert (header['width'], header['height']) == (240, 320)
    info = inspect(saccade, out)
    assert (info['width'], info['height'], info['rotation']) == (240, 320, 0)


def test_the_user_may_leave_them_or_choose(saccade, clip, video, tmp_path):
    path, out = show(video, tmp_path / 'a.mp4', MATRICES['90']), tmp_path / 'o.mp4'
    for word in ('none', '0'):
        run = track(saccade, clip, path, '--rotate', word, '-o', out)
        info = inspect(saccade, out)
        assert info['rotation'] == 90 and 'turned' not in run.stderr
    track(saccade, clip, path, '--rotate', '180', '-o', out)
    info = inspect(saccade, out)
    assert (info['width'], info['height'], info['rotation']) == (320, 240, 0)
    (tmp_path / 'c.yaml').write_text('input:\n  rotate: 270\n')
    track(saccade, clip, video, '--config', tmp_path / 'c.yaml', '-o', out)
    assert inspect(saccade, out)['width'] == 240
    fails(saccade('track', path, '--rotate', '45', '-o', out), 2, '--rotate', '45', 'auto, none, 0, 90, 180, 270')


def test_strict_on_the_cpu_names_the_turn(saccade, clip, video, tmp_path):
    path = show(video, tmp_path / 'a.mp4', MATRICES['270'])
    run = saccade('track', path, '--detections', clip / 'det.txt', '--device', 'cpu', '--zero-copy', 'strict',
                  '--mot', tmp_path / 'o.txt')
    assert run.returncode == 1
    assert 'turned by 270 degrees: a copy of' in run.stderr and 'zero-copy is strict' in run.stderr
