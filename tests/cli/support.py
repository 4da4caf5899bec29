# SPDX-License-Identifier: Apache-2.0
"""Inputs made of nothing, what a fault looks like, and how to wait for what a running program does."""
import signal
import time

import numpy

WIDTH, HEIGHT, FRAMES = 320, 240, 40
LONG = 5000  # frames of the clip that is to be interrupted
PATIENCE = 300  # seconds, for what takes one or two on an idle machine


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


# ---- running programs ----

def wait_until(process, happened):
    """Wait for the event, not the time that it takes: under the sanitizers, on a busy machine, that may be long."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, f'nothing happened for {PATIENCE} s'
        time.sleep(0.02)


def has_frames(folder, name):
    """Whether lines of frames follow the header in the unfinished file of that name; some kilobytes come at a time."""
    return any(path.read_bytes().count(b'\n') > 1 for path in folder.glob(f'{name}.*.part'))


def send_at_once(process, *signals):
    """All of them before the process can answer the first."""
    for number in (signal.SIGSTOP, *signals, signal.SIGCONT):
        process.send_signal(number)


def catches(process, number):
    """Whether the program has its handler for the signal in place."""
    with open(f'/proc/{process.pid}/status') as status:
        caught = next(line for line in status if line.startswith('SigCgt:'))
    return int(caught.split()[1], 16) >> (number - 1) & 1
