# SPDX-License-Identifier: Apache-2.0
"""Runs in which something is made to go wrong after a while: it is told within ten seconds, with its cause. Mostly they
wait, so they run side by side; the one that fills a CPU runs alone, and where it is asked for."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import threading
import time

import numpy
import pytest

ORDINARY_S = 20  # at four samples a second; before that nothing is judged
TOLD_S = 10
FILM_S = 26  # of 25 frames each; more than the camera brings
LOOP = 'while ((SECONDS < 60)); do :; done'  # they end, though a test that is killed can't end them


class Run:
    """A run whose warnings are collected, each with its time."""

    def __init__(self, program, *arguments, **more):
        self.process = subprocess.Popen([program, 'track', *arguments, '--monitor-interval', '250', '--monitor-hold', '2',
                                         '--monitor-utilisation', '0'], stderr=subprocess.PIPE, **more)
        self.told = []
        self.reader = threading.Thread(target=self.listen)
        self.reader.start()

    def listen(self):
        for line in self.process.stderr:
            if b'warning: monitor' in line:
                self.told.append((time.monotonic(), line.decode()))

    def end(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()

    def wait_for(self, words, since, seconds=TOLD_S):
        over = False
        while not over:
            over = time.monotonic() > since + seconds
            for when, line in list(self.told):
                if since <= when < since + seconds and re.search(words, line):
                    return line
            time.sleep(0.1)
        pytest.fail(f'not told within {seconds} s: {words}; but: {[(round(t - since, 1), x) for t, x in self.told]}')


def frames(long_clip):
    return [long_clip / 'img', '--fps', '25', '--realtime', '--detections', long_clip / 'det.txt']


def a_sink_that_stands_still(program, long_clip):
    run = Run(program, *frames(long_clip), '--jsonl', '-', stdout=subprocess.PIPE, pipesize=4096)
    try:
        until = time.monotonic() + ORDINARY_S
        while time.monotonic() < until:
            os.read(run.process.stdout.fileno(), 1 << 16)
        assert run.told == []
        run.wait_for('monitor: frames: .*queue before writing is 100 % full', time.monotonic(), TOLD_S)
    finally:
        run.end()


def a_camera_that_brings_less(program, long_clip, film, tmp_path):
    data = film.read_bytes()
    per_frame = len(data) / FILM_S / 25
    run = Run(program, '-', '--realtime', '--detections', long_clip / 'det.txt', '--mot', tmp_path / 'o.txt',
              stdin=subprocess.PIPE)
    try:
        begun, sent, slow = time.monotonic(), 0, None
        while slow is None or (time.monotonic() < slow + TOLD_S and len(run.told) < 2):
            now = time.monotonic() - begun
            if now > ORDINARY_S and slow is None:
                assert run.told == []
                slow = time.monotonic()
            due = int(per_frame * (50 + 25 * min(now, ORDINARY_S) + 8 * max(now - ORDINARY_S, 0)))
            run.process.stdin.write(data[sent:due])
            run.process.stdin.flush()
            sent = due
            time.sleep(0.02)
        run.wait_for('monitor: frames: .*the inputs bring', slow, TOLD_S)
        run.wait_for('monitor: frames of those due: .*the inputs bring', slow, TOLD_S)
    finally:
        run.end()


def an_encoder_that_slows(program, long_clip, tmp_path):
    """From a picture that stands still to noise, which takes an encoder several times as long."""
    noise = numpy.random.default_rng(1)
    for k in range(4):
        (tmp_path / f'{k}.ppm').write_bytes(b'P6 1280 720 255\n' + noise.bytes(1280 * 720 * 3))
    (tmp_path / 'img').mkdir()
    until = ORDINARY_S * 25
    for frame in range(until + 20 * 25):
        picture = long_clip / 'one.ppm' if frame < until else tmp_path / f'{frame % 4}.ppm'
        (tmp_path / 'img' / f'{frame + 1:05d}.ppm').symlink_to(picture)
    run = Run(program, tmp_path / 'img', *frames(long_clip)[1:], '-o', tmp_path / 'o.mp4')
    try:
        time.sleep(ORDINARY_S)
        assert run.told == []
        run.wait_for('monitor: (stage encode|frames: .*(stage encode|before writing))', time.monotonic(), TOLD_S)
    finally:
        run.end()


def test_runs_that_go_wrong(saccade, program, long_clip, tmp_path):
    film = tmp_path / 'film.ts'  # before they begin: it fills the CPUs
    made = saccade('track', *frames(long_clip)[:3], '--detections', long_clip / 'det.txt', '--duration', FILM_S, '-o', film,
                   '--preset', 'ultrafast', '--jsonl', 'none', '--no-progress')
    assert made.returncode == 0, made.stderr
    with concurrent.futures.ThreadPoolExecutor() as threads:
        for check in [threads.submit(a_sink_that_stands_still, program, long_clip),
                      threads.submit(a_camera_that_brings_less, program, long_clip, film, tmp_path),
                      threads.submit(an_encoder_that_slows, program, long_clip, tmp_path)]:
            check.result()


@pytest.mark.skipif(not os.environ.get('SACCADE_TEST_SLOW'), reason='needs idle CPUs: set SACCADE_TEST_SLOW=1')
def test_a_thread_that_gets_no_cpu(program, long_clip, tmp_path):
    """The run on one CPU, beside loops there. Beside other work that comes and goes it was told in one of five."""
    cpu = sorted(os.sched_getaffinity(0))[0]
    run = Run(program, *frames(long_clip), '--mot', tmp_path / 'o.txt', '--threads', '1')
    loops = []
    try:
        time.sleep(ORDINARY_S)
        since = time.monotonic()
        for task in pathlib.Path(f'/proc/{run.process.pid}/task').iterdir():
            if (task / 'comm').read_text() != 'sac-monitor\n':
                os.sched_setaffinity(int(task.name), {cpu})
        loops = [subprocess.Popen(['taskset', '-c', str(cpu), 'bash', '-c', LOOP]) for _ in range(20)]
        line = run.wait_for('monitor: (frames|latency|stage [a-z]+): .*(kept waiting for a CPU|other programs use)', since,
                            TOLD_S)
        assert line
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
        run.end()
