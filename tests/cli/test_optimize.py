# SPDX-License-Identifier: Apache-2.0
"""saccade optimize: real runs of a short clip. What it chooses on made-up machines is in test_optimize_search.c."""
import os
import re
import signal
import subprocess

import pytest
import yaml

from support import catches, fails, wait_until

QUICK = ['--detector', 'person_det_fast', '--reid', 'none', '--trial', '0.2']


@pytest.fixture
def runs_folder(tmp_path):
    """Where the runs keep their files: empty before and after."""
    folder = tmp_path / 'runs'
    folder.mkdir()
    yield {'TMPDIR': str(folder)}
    assert list(folder.iterdir()) == []


def search(saccade, env, *args, budget=20, until=''):
    """A search of so many seconds; of more where the machine is too busy to begin in them, or to say `until`."""
    for _ in range(3):
        run = saccade('optimize', *args, '--budget', budget, env=env)
        needed = re.search(r'is too short: .* needs (\d+) s at least', run.stderr)
        if not needed and (run.returncode or until in run.stdout):
            break
        budget = 2 * (int(needed[1]) if needed else budget)
    return run


def test_a_search_writes_what_a_run_takes(saccade, video, tmp_path, runs_folder):
    out = tmp_path / 'tuned.yaml'
    run = search(saccade, runs_folder, video, '-o', out, *QUICK, '--auto-optimize', '--detect-bottlenecks',
                 '--max-streams', 2, until='frames/s each')
    assert run.returncode == 0, run.stderr
    text = out.read_text()
    assert text.startswith('# saccade optimize: settings of track') and str(video) in text
    assert yaml.safe_load(text)['detector']['model'] == 'person_det_fast' and 'output' not in yaml.safe_load(text)
    for words in ('frames/s', 'latency p95', 'default', 'bounds it', 'frames/s each', 'at once'):
        assert words in run.stdout and words in text
    assert re.search(r'stay|handed out|more than noise', run.stdout)
    again = saccade('track', video, '--config', out, '--jsonl', tmp_path / 'a.jsonl')
    assert again.returncode == 0, again.stderr
    assert saccade('optimize', video, '-o', out, '--dry-run').returncode == 0  # its own file may be replaced


def test_what_changes_results_needs_to_be_allowed(saccade, shared, tmp_path, runs_folder):
    clip = shared / 'mot/TUD-Stadtmitte/TUD-Stadtmitte.mp4'
    # one frame of eight: whatever else the machine does, that is several times as fast; a busy one needs more turns to say so
    args = [clip, '--detector', 'person_det_fast', '--reid', 'none', '--trial', 0.5, '--duration', 4, '--auto-optimize',
            '--interval-max', 8]
    strict = search(saccade, runs_folder, *args, '--max-loss', 0, budget=150)
    assert strict.returncode == 0, strict.stderr
    assert 'skip' not in yaml.safe_load(strict.stdout) and 'had other results' in strict.stderr
    free = search(saccade, runs_folder, *args, '--max-loss', 1, budget=150)
    assert free.returncode == 0, free.stderr
    skip = yaml.safe_load(free.stdout)['skip']
    assert skip['still'] == 1 and 1 <= skip['max'] <= 7
    agree = float(re.search(r'change: ([\d.]+) % agree', free.stderr).group(1))
    assert 20 < agree < 100


def test_mattes_and_precisions_that_this_device_lacks(saccade, video, tmp_path, runs_folder):
    run = search(saccade, runs_folder, video, '--task', 'segment', '--trial', 0.2, '--auto-optimize',
                 '--precisions', 'fp32,fp16', '--device', 'cpu', '--encode')
    assert run.returncode == 0, run.stderr
    assert 'settings of segment' in run.stdout and 'precision' not in (yaml.safe_load(run.stdout) or {})


def test_latency_is_measured_at_the_inputs_own_rate(saccade, clip, tmp_path, runs_folder):
    slow, out = tmp_path / 'slow.mp4', tmp_path / 'a.yaml'  # slow, so that any machine keeps up with it
    assert saccade('track', clip / 'img', '--fps', 2, '--detections', clip / 'det.txt', '-o', slow).returncode == 0
    run = search(saccade, runs_folder, slow, '-o', out, *QUICK[:-1], 1.5, '--goal', 'latency', budget=45)
    assert run.returncode == 0, run.stderr
    assert 'at its own rate' in out.read_text()


def test_memory_is_a_goal(saccade, video, tmp_path, runs_folder):
    out = tmp_path / 'a.yaml'
    run = search(saccade, runs_folder, video, '-o', out, *QUICK, '--goal', 'vram')
    assert run.returncode == 0, run.stderr
    assert 'memory' in out.read_text()


def test_ctrl_c_keeps_the_best_and_resume_goes_on(saccade, program, video, tmp_path, runs_folder):
    out, log = tmp_path / 'tuned.yaml', tmp_path / 'tuned.yaml.runs'
    command = [program, 'optimize', str(video), '-o', str(out), *QUICK, '--budget', '3000']
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, **runs_folder})
    wait_until(process, lambda: catches(process, signal.SIGINT) and log.exists() and log.read_bytes().count(b'\n') > 4)
    process.send_signal(signal.SIGINT)
    said, err = process.communicate(timeout=120)
    assert process.returncode == 130 and 'has the best so far' in err, err
    assert 'Ctrl-C ended the search' in said and '--resume' in said
    assert out.read_text().startswith('# saccade optimize')
    measured = log.read_text().splitlines()
    run = search(saccade, runs_folder, video, '-o', out, *QUICK, '--resume')
    assert run.returncode == 0, run.stderr
    if log.exists():  # it may have been completed
        assert log.read_text().splitlines()[:len(measured)] == measured
        fails(saccade('optimize', video, '-o', out, *QUICK, '--every', 2, '--resume', '--budget', 20), 2, 'another search')


def test_measurements_lie_beside_files_only(saccade, video, tmp_path, runs_folder):
    os.mkfifo(tmp_path / 'pipe')
    reader = os.open(tmp_path / 'pipe', os.O_RDONLY | os.O_NONBLOCK)
    run = search(saccade, runs_folder, video, '-o', tmp_path / 'pipe', *QUICK)
    assert run.returncode == 0 and '--resume' not in run.stdout, run.stderr
    assert os.read(reader, 100).startswith(b'# saccade optimize')
    os.close(reader)
    assert [path.name for path in tmp_path.iterdir() if 'runs' in path.name and path.is_file()] == []


def test_a_dry_run_runs_nothing(saccade, video, tmp_path, runs_folder):
    run = saccade('optimize', video, '-o', tmp_path / 'a.yaml', '--dry-run', '--interval-max', 3, '--threads', 1,
                  env=runs_folder)
    assert run.returncode == 0, run.stderr
    assert re.search(r'^ +threads +\[1\]', run.stdout, re.M) or 'threads' not in run.stdout
    assert re.search(r'^ +skip.max +\[0\] 1 2$', run.stdout, re.M) and 'Nothing was run' in run.stdout
    assert not (tmp_path / 'a.yaml').exists()


def test_threads_of_stages_are_turned_where_there_are_any(saccade, video, runs_folder):
    def turned(*args):
        run = saccade('optimize', *args, '--dry-run', env=runs_folder)
        assert run.returncode == 0, run.stderr
        return run.stdout
    several = len(os.sched_getaffinity(0)) > 1
    assert bool(re.search(r'^ +postprocess.threads +\[1\] 2', turned(video, video), re.M)) == several
    assert 'postprocess.threads' not in turned(video)  # of several inputs,
    assert 'postprocess.threads' not in turned(video, video, '--tracker', 'bytetrack')  # whose camera is followed
    assert 'postprocess.threads' not in turned(video, video, '--device', 'cuda')
    assert 'preprocess.streams' not in turned(video, video)
    assert re.search(r'^ +preprocess.streams +\[1\] 2', turned(video, '--device', 'cuda'), re.M)
    assert re.search(r'^ +preprocess.streams +1 \[2\]', turned(video, '--device', 'cuda', '--task', 'segment'), re.M)


def test_what_does_not_fit_is_named(saccade, video, tmp_path, runs_folder):
    mine = tmp_path / 'mine.yaml'
    mine.write_text('threads: 1\n')

    def optimize(*args):
        return saccade('optimize', *args, env=runs_folder)
    fails(optimize(), 2, 'needs INPUT')
    fails(optimize(tmp_path / 'none.mp4'), 1, 'none.mp4', 'No such file')
    fails(optimize(video, '--goal', 'speed'), 2, "'speed'", 'fps, latency, vram, watts')
    fails(optimize('-'), 2, 'standard input')
    fails(optimize(video, '-o', mine), 2, 'not of saccade optimize')
    fails(optimize(video, '-o', video), 2, 'not of saccade optimize')
    assert mine.read_text() == 'threads: 1\n'
    fails(optimize(video, '-o', tmp_path), 2, 'is a folder')
    fails(optimize(video, '-o', tmp_path / 'no/a.yaml'), 1, "can't be written")
    fails(optimize(video, '-o', tmp_path / 'a.yaml', '--resume', *QUICK), 2, '--resume', 'a.yaml.runs')
    fails(optimize(video, '--budget', 1, *QUICK), 2, '--budget 1 is too short')
    fails(optimize(video, '--realtime'), 2, '--realtime', '--goal fps')
    fails(optimize(video, '--precisions', 'fp32,fp17', *QUICK), 2, 'fp32,fp17')
    fails(optimize(video, '--detector', tmp_path / 'none.onnx'), 1, 'none.onnx')
    fails(optimize(video, '--goal', 'watts', '--device', 'cpu', *QUICK), 1, '--goal watts')
    (tmp_path / 'b.yaml.runs').write_text('mine\n')
    fails(optimize(video, '-o', tmp_path / 'b.yaml', *QUICK), 2, 'b.yaml.runs', 'another file')
    assert (tmp_path / 'b.yaml.runs').read_text() == 'mine\n'


def test_the_former_spelling_is_read_with_a_sentence(saccade, tmp_path):
    old = tmp_path / 'old.yaml'
    old.write_text('infer:\n  optimise: false\n')
    run = saccade('infer', 'none.onnx', '--config', old)
    assert "old.yaml:2: the key 'infer.optimise' is 'infer.optimize' now" in run.stderr
    assert '--optimise is --optimize now' in saccade('infer', 'none.onnx', '--no-optimise').stderr
    assert 'now' not in saccade('infer', 'none.onnx', '--no-optimize').stderr
