# SPDX-License-Identifier: Apache-2.0
"""Inputs made of nothing, and what a fault looks like."""
import numpy

WIDTH, HEIGHT, FRAMES = 320, 240, 40
LONG = 5000  # frames of the clip that is to be interrupted


def box_at(frame):
    """A square that walks to the right, 4 pixels a frame."""
    return 20 + 4 * frame, 80, 48, 96


def write_ppm(path, frame, width=WIDTH, height=HEIGHT):
    image = numpy.full((height, width, 3), 60, numpy.uint8)
    x, y, w, h = box_at(frame)
    image[y:y + h, x:x + w] = (200, 120, 40)
    path.write_bytes(b'P6 %d %d 255\n' % (width, height) + image.tobytes())


def write_detections(path, frames=FRAMES):
    path.write_text(''.join('%d,-1,%d,%d,%d,%d,0.9\n' % (frame + 1, *box_at(frame))
                            for frame in range(frames)))


def fails(run, status, *words):
    """One sentence on standard error that has the words, nothing else."""
    assert run.returncode == status, run.stderr
    lines = run.stderr.splitlines()
    assert len(lines) == 1, run.stderr
    assert lines[0].startswith('saccade: ')
    for word in words:
        assert word in lines[0]
    assert run.stdout == ''
