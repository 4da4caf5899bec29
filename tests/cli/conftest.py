# SPDX-License-Identifier: Apache-2.0
import pytest

from support import FRAMES, LONG, box_at, write_detections, write_ppm


@pytest.fixture(scope='session')
def clip(tmp_path_factory):
    """A folder of pictures and the detections in them."""
    folder = tmp_path_factory.mktemp('clip')
    (folder / 'img').mkdir()
    for frame in range(FRAMES):
        write_ppm(folder / 'img' / f'{frame + 1:05d}.ppm', frame)
    write_detections(folder / 'det.txt')
    return folder


@pytest.fixture(scope='session')
def video(saccade, clip):
    """The same as a video file."""
    path = clip / 'clip.mp4'
    run = saccade('track', clip / 'img', '--fps', 20, '--detections', clip / 'det.txt', '-o', path)
    assert run.returncode == 0, run.stderr
    return path


@pytest.fixture(scope='session')
def long_clip(clip, tmp_path_factory):
    """Thousands of larger pictures, all the same: long enough to be interrupted."""
    folder = tmp_path_factory.mktemp('long')
    (folder / 'img').mkdir()
    write_ppm(folder / 'one.ppm', 0, 1280, 720)
    for frame in range(LONG):
        (folder / 'img' / f'{frame + 1:05d}.ppm').symlink_to(folder / 'one.ppm')
    (folder / 'det.txt').write_text(''.join('%d,-1,%d,%d,%d,%d,0.9\n' % (frame + 1, *box_at(0))
                                            for frame in range(LONG)))
    return folder
