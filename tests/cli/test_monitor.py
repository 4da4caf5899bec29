# SPDX-License-Identifier: Apache-2.0
"""saccade monitor, and what it sees of runs."""
import json
import os
import pathlib
import re
import subprocess

import jsonschema
import pytest
from support import fails, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('SACCADE_BUILD', ROOT / 'build'))


@pytest.fixture
def runtime(tmp_path):
    """Where this test's runs publish themselves: no others are seen there."""
    folder = tmp_path / 'runtime'
    folder.mkdir(mode=0o700)
    return {'XDG_RUNTIME_DIR': str(folder)}


def watched(saccade, runtime):
    run = saccade('monitor', '--once', '--json', '--monitor-interval', 100, env=runtime)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_the_machine_without_a_run(saccade, runtime):
    report = watched(saccade, runtime)
    figures = {figure['name']: figure for figure in report['machine']['figures']}
    assert 0 < figures['memory']['now'] < 1 and figures['memory']['unit'] == 'share'
    assert figures['memory']['least'] <= figures['memory']['mean_1m'] <= figures['memory']['most']
    assert len(report['machine']['processes']) == len(report['machine']['gpus'])
    assert report['runs'] == [] and report['cost'] >= 0
    run = saccade('monitor', '--once', '--monitor-interval', 100, env=runtime)
    assert run.returncode == 0 and run.stderr == ''
    assert run.stdout.startswith('machine\n') and '% of one core' in run.stdout
    assert 'no run of saccade' in run.stdout


def test_who_computes_on_a_card_is_named(saccade, program, runtime, tmp_path):
    fake = BUILD / 'tests/observe/nvml/libnvml.so'
    if not fake.exists():
        pytest.skip('a build without tests')
    (tmp_path / 'libnvidia-ml.so.1').symlink_to(fake)
    runtime = runtime | {'LD_LIBRARY_PATH': str(tmp_path)}
    machine = watched(saccade, runtime)['machine']
    assert machine['gpus'] == ['Card 1']
    (process,), = machine['processes']
    assert process.pop('pid') > 0
    assert process == {'name': 'saccade', 'memory_bytes': 600000000}
    run = saccade('monitor', '--once', '--monitor-interval', 100, env=runtime)
    assert re.search(r'gpu0 is a Card 1\n    process \d+ +saccade +600 MB\n', run.stdout)


def start(program, long_clip, runtime, tmp_path, *options):
    return subprocess.Popen([program, 'track', long_clip / 'img', '--fps', '25', '--realtime', '--detections',
                             long_clip / 'det.txt', '--mot', tmp_path / 'o.txt', '--monitor-interval', '100',
                             '--stats', tmp_path / 's.json', *options],
                            env={**os.environ, **runtime}, stderr=subprocess.PIPE, text=True)


def test_a_run_is_seen_while_it_runs(saccade, program, long_clip, runtime, tmp_path):
    process = start(program, long_clip, runtime, tmp_path)
    folder = pathlib.Path(runtime['XDG_RUNTIME_DIR']) / 'saccade'

    def has_figures():
        runs = watched(saccade, runtime)['runs']
        return runs and any(f['name'] == 'stage decode' and f['now'] for f in runs[0]['figures'])
    try:
        wait_until(process, has_figures)
        run, = watched(saccade, runtime)['runs']
        assert run['pid'] == process.pid and 'img' in run['title'] and run['elapsed_s'] > 0
        figures = {figure['name']: figure for figure in run['figures']}
        assert figures['frames']['most'] > 0 and figures['rss']['now'] > 1e6
        assert figures['latency p99']['most'] > 0
        assert (folder.stat().st_mode & 0o777, (folder / f'{process.pid}.json').stat().st_mode & 0o777) == (0o700, 0o600)
        assert f'run {process.pid}: ' in saccade('monitor', '--once', env=runtime).stdout
    finally:
        process.terminate()
        process.communicate()
    assert list(folder.iterdir()) == []
    stats = json.loads((tmp_path / 's.json').read_text())
    jsonschema.Draft202012Validator(json.loads((ROOT / 'docs/stats.schema.json').read_text())).validate(stats)
    figures = {figure['name']: figure for figure in stats['monitor']['figures']}
    assert len(figures['rss']['history']) > 2 and figures['rss']['step_s'] > 0
    p99 = figures['latency p99']
    assert p99['unit'] == 'ms' and 0 < p99['least'] <= p99['most'] and len(p99['history']) > 2
    assert stats['monitor']['interval_s'] == 0.1 and stats['monitor']['cost'] >= 0


def test_a_run_may_be_unseen(saccade, program, clip, runtime, tmp_path):
    run = saccade('track', '--detections', clip / 'det.txt', '--fps', 20, '--mot', tmp_path / 'o.txt', '--no-monitor',
                  '--stats', tmp_path / 's.json', env=runtime)
    assert run.returncode == 0, run.stderr
    assert not (pathlib.Path(runtime['XDG_RUNTIME_DIR']) / 'saccade').exists()
    assert json.loads((tmp_path / 's.json').read_text())['monitor'] is None


@pytest.mark.parametrize('options, words', [
    (['--monitor-interval', '10'], ['--monitor-interval', '100']),
    (['--anomaly-ratio', '0.5'], ['anomaly_ratio']),
    (['in.mp4'], ["'in.mp4'"]),
])
def test_mistakes(saccade, options, words):
    run = saccade('monitor', '--once', *options)
    fails(run, run.returncode or -1, *words)


def test_a_closed_pipe_ends_it(program):
    run = subprocess.run(['bash', '-c', f'{program} monitor --json --monitor-interval 100 | head -n 1 | wc -l'],
                         capture_output=True, text=True, timeout=300)
    assert run.stdout.strip() == '1' and run.stderr == ''


def test_a_full_disk_is_named(program):
    run = subprocess.run(f'{program} monitor --json --monitor-interval 100 >/dev/full', shell=True, capture_output=True,
                         text=True, timeout=300)
    fails(run, 1, 'standard output', 'No space left on device')
