# SPDX-License-Identifier: Apache-2.0
"""Golden pictures: person_seg on the first ten frames of vtest.avi, as saccade segment writes them. They were looked
at when they were made; `python3 tests/golden/test_mattes.py PROGRAM` makes them anew, to be looked at again.

Networks differ in their last bits between processors, so a few pixels of an edge may differ by a little."""
import pathlib
import subprocess
import sys
import tempfile

import numpy
import pytest

HERE = pathlib.Path(__file__).resolve().parent
CLIP = HERE.parents[1] / 'build/clips/vtest.avi'
LAST = 9
# Golden picture, pixels, what makes it; colours are kept where people are, x, y, width, height.
AREA = (280, 100, 320, 240)
PICTURES = [('first.png', 'gray', 0, ['--as', 'png']), ('last.png', 'gray', LAST, ['--as', 'png']),
            ('overlay.png', 'rgb24', LAST, ['--as', 'overlay', '--encoder', 'ffv1']),
            ('cutout.png', 'rgb24', LAST, ['--as', 'cutout', '--background', '#ff8000', '--encoder', 'ffv1'])]


def decode(path, pixels):
    """[n,height,width,3], or [n,height,width] of grey; the size is that of the file."""
    probe = subprocess.run(['ffprobe', '-v', 'error', '-select_streams', 'v', '-show_entries', 'stream=width,height', '-of',
                            'csv=p=0', path], capture_output=True, check=True, text=True).stdout
    width, height = map(int, probe.strip().strip(',').split(','))
    run = subprocess.run(['ffmpeg', '-v', 'error', '-i', path, '-f', 'rawvideo', '-pix_fmt', pixels, '-'], capture_output=True,
                         check=True)
    channels = {'gray': (), 'rgb24': (3,)}[pixels]
    return numpy.frombuffer(run.stdout, numpy.uint8).reshape(-1, height, width, *channels)


def made(program, folder, pixels, frame, args):
    out = folder / ('mattes' if pixels == 'gray' else 'out.mkv')
    run = subprocess.run([program, 'segment', CLIP, '--device', 'cpu', '--duration', '1', *args, '-o', out], text=True,
                         capture_output=True)
    assert run.returncode == 0, run.stderr
    if pixels == 'gray':
        return decode(out / f'{frame:06d}.png', pixels)[0]
    x, y, width, height = AREA
    return decode(out, pixels)[frame, y:y + height, x:x + width]


def needs_clip():
    if not CLIP.exists():
        pytest.skip(f'no {CLIP}: see scripts/clip')


@pytest.mark.parametrize('name, pixels, frame, args', PICTURES, ids=[row[0] for row in PICTURES])
def test_it_looks_as_it_did(program, tmp_path, name, pixels, frame, args):
    needs_clip()
    golden = decode(HERE / 'mattes' / name, pixels)[0].astype(int)
    found = made(program, tmp_path, pixels, frame, args).astype(int)
    assert found.shape == golden.shape
    off = abs(found - golden)
    assert off.mean() < 0.25 and (off > 24).mean() < 0.002, f'{off.mean():.3f} off, {(off > 24).mean():.2%} far off'


def test_another_frame_looks_otherwise(program, tmp_path):
    """The limits above are such that they can tell."""
    needs_clip()
    golden = decode(HERE / 'mattes/last.png', 'gray')[0].astype(int)
    off = abs(made(program, tmp_path, 'gray', 5, ['--as', 'png']).astype(int) - golden)
    assert off.mean() >= 0.25


def make(program):
    for name, pixels, frame, args in PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            picture = made(program, pathlib.Path(folder), pixels, frame, args)
        subprocess.run(['ffmpeg', '-v', 'error', '-y', '-f', 'rawvideo', '-pix_fmt', pixels, '-s',
                        f'{picture.shape[1]}x{picture.shape[0]}', '-i', '-', HERE / 'mattes' / name], input=picture.tobytes(),
                       check=True)


if __name__ == '__main__':
    make(sys.argv[1])
