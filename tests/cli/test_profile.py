# SPDX-License-Identifier: Apache-2.0
"""saccade profile: the page, the statistics and the trace beside it."""
import html.parser
import json
import math
import pathlib
import re
import signal
import subprocess

import jsonschema
import pytest
from support import FRAMES, LONG, catches, fails, has_frames, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Page(html.parser.HTMLParser):
    """Whether elements are closed in order; what it loads."""
    VOID = {'meta', 'line', 'polyline', 'rect'}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.loads = [], [], []
        self.feed(text)
        assert self.open == [], self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.loads += [value for name, value in attributes if name in ('src', 'href', 'action', 'xlink:href')]
        if tag not in self.VOID and tag not in ('tr', 'td', 'th'):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID and tag not in ('tr', 'td', 'th'):
            assert self.open.pop() == tag


def check_trace(events):
    """The published trace event format, its JSON array: complete events ('X') and metadata ('M')."""
    names, spans = {}, {}
    assert isinstance(events, list) and events
    for event in events:
        assert event['ph'] in ('X', 'M') and isinstance(event['name'], str) and event['name']
        assert type(event['pid']) is int and type(event['tid']) is int and isinstance(event['args'], dict)
        if event['ph'] == 'M':
            assert event['name'] in ('process_name', 'thread_name') and isinstance(event['args']['name'], str)
            names[event['tid']] = event['args']['name']
            continue
        assert isinstance(event['ts'], (int, float)) and isinstance(event['dur'], (int, float))
        assert event['ts'] >= 0 and event['dur'] >= 0
        spans.setdefault((event['pid'], event['tid']), set()).add((event['ts'], event['ts'] + event['dur']))
    for (_, tid), of in spans.items():
        assert tid in names
        ends = []  # of one thread each span lies inside another, or apart from it
        for begun, ended in sorted(of, key=lambda span: (span[0], -span[1])):
            while ends and ends[-1] <= begun + 0.002:
                ends.pop()
            assert not ends or ended <= ends[-1] + 0.002
            ends.append(ended)
    return names, spans


def check(folder, page):
    text = (folder / page).read_text()
    parsed = Page(text)
    assert parsed.loads == [] and not re.search(r'url\(|@import|<script', text)
    stats = json.loads((folder / page).with_suffix('.json').read_text())
    jsonschema.Draft202012Validator(json.loads((ROOT / 'docs/stats.schema.json').read_text())).validate(stats)
    check_trace(json.loads((folder / page).with_suffix('.trace.json').read_text()))
    return text, parsed, stats


def test_a_run_is_profiled_and_compared(saccade, clip, tmp_path):
    arguments = ['profile', clip / 'img', '--fps', 25, '--realtime', '--detections', clip / 'det.txt',
                 '--monitor-interval', 100]
    run = saccade(*arguments, '-o', tmp_path / 'a.html')
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == [str(tmp_path / name) for name in ('a.html', 'a.json', 'a.trace.json')]
    text, parsed, stats = check(tmp_path, 'a.html')
    assert 'Largest allocations' in text
    for words in 'Bottleneck', 'Stages', 'What each thread did', 'Over time', 'Queues', 'Copies by reason', 'p95':
        assert words in text or words == 'Bottleneck' and stats['bottleneck'] is None
    assert 'Not measured: the run had no network' in text and 'Against the earlier run' not in text
    assert {'polyline', 'rect'} <= set(parsed.tags)
    assert stats['frames'] == FRAMES and f'<b>{FRAMES}</b> frames' in text
    run = saccade(*arguments, '-o', tmp_path / 'b.html', '--against', tmp_path / 'a.json')
    assert run.returncode == 0, run.stderr
    text, _, _ = check(tmp_path, 'b.html')
    table = text.split('Against the earlier run')[1].split('</table>')[0]
    for row in 'fps', 'latency p50', 'decode p99', 'tracking p50', 'rss_peak':
        assert f'<td>{row}</td>' in table
    assert f"{stats['fps']:.1f} frames/s" in table


def test_a_network_has_steps_and_batches(saccade, clip, tmp_path):
    run = saccade('profile', clip / 'img', '-o', tmp_path / 'a.html', '--detector', 'person_det_fast', '--reid', 'none',
                  '--monitor-interval', 100, '--device', 'cpu', '--rows', 7, '--sort', 'flops', '--shapes')
    assert run.returncode == 0, run.stderr
    text, _, stats = check(tmp_path, 'a.html')
    steps = text.split('Costliest steps of the network')[1].split('</table>')[0]
    assert steps.count('<tr>') == 8 and 'Conv' in steps
    assert len(re.findall(r'<td>float32 \[[0-9,]+\]</td>', steps)) == 7
    flops = [float(row) for row in re.findall(r'<td class=n>([0-9.]+)</td><td>[a-z]+</td></tr>', steps)]
    assert len(flops) == 7 and flops == sorted(flops, reverse=True) and flops[0] > 0
    bars = re.findall(r'<title>(\d+) runs with (\d+)</title>', text)
    assert sum(int(runs) * int(frames) for runs, frames in bars) == FRAMES
    assert 'The network is mostly bound by' in text and stats['detector'].endswith('person_det_fast.onnx')


def test_the_largest_allocations(saccade, clip, tmp_path):
    """By default the page has them behind the network's steps; --sort memory begins with them, and sorts the steps."""
    arguments = ['profile', clip / 'img', '--detector', 'person_det_fast', '--reid', 'none', '--device', 'cpu']
    for sort in 'time', 'memory':
        run = saccade(*arguments, '-o', tmp_path / 'a.html', '--sort', sort, '--rows', 3, '--shapes')
        assert run.returncode == 0, run.stderr
        text, _, stats = check(tmp_path, 'a.html')
        assert (text.index('Largest allocations') < text.index('<h2>Stages')) == (sort == 'memory')
        table = text.split('<h2>Largest allocations')[1].split('</table>')[0]
        listed = stats['allocations']
        assert table.count('<tr>') == 4 and len(listed) > 3
        rows = [re.findall(r'<td[^>]*>(.*?)</td>', row) for row in table.split('<tr>')[2:]]
        assert [row[0] for row in rows] == [a['owner'] for a in listed[:3]]
        assert [row[5] for row in rows] == [f"{a['bytes_peak'] / 1e6:.3f} MB" for a in listed[:3]]
        taken = [a['bytes_peak'] for a in listed]
        assert taken == sorted(taken, reverse=True) and taken[0] <= stats['pool']['bytes_peak'] <= sum(taken)
        for a in listed:
            assert a['bytes'] * a['count_peak'] <= a['bytes_peak'] and a['count'] <= a['count_peak'] <= a['requests']
            assert a['place'] == 'cpu' and a['first_s'] <= a['last_s']
        inputs = [a for a in listed if a['owner'] == 'detector input']
        assert inputs and inputs[0]['stage'] == 'preprocess' and re.fullmatch(r'float32 \[[0-9,]+\]', inputs[0]['shape'])
        steps = text.split('Costliest steps of the network')[1].split('</table>')[0]
        shapes = [[int(n) for n in shape.split(',')] for shape in re.findall(r'<td>float32 \[([0-9,]+)\]</td>', steps)]
        counts = [math.prod(shape) for shape in shapes]
        assert len(counts) == 3 and (sort == 'time' or counts == sorted(counts, reverse=True))


def test_call_stacks(saccade, clip, tmp_path):
    run = saccade('profile', clip / 'img', '-o', tmp_path / 'a.html', '--detector', 'person_det_fast', '--reid', 'none',
                  '--device', 'cpu', '--stack', '--rows', 5)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split()[-1] == str(tmp_path / 'a.folded')
    text, parsed, stats = check(tmp_path, 'a.html')
    sampling, stacks = stats['sampling'], stats['stacks']
    counts = [stack['samples'] for stack in stacks]
    assert stacks and counts == sorted(counts, reverse=True) and len({stack['stack'] for stack in stacks}) == len(stacks)
    assert sum(counts) + sampling['other'] == sampling['samples'] and sampling['note'] is None
    seen = sampling['samples'] * sampling['interval_us'] * 1e-6
    assert 0.3 * sampling['cpu_s'] < seen < 1.2 * sampling['cpu_s'] and sampling['cost_s'] < 0.5 * sampling['cpu_s']
    assert (tmp_path / 'a.folded').read_text() == ''.join(f"{stack['stack']} {stack['samples']}\n" for stack in stacks)
    network = [stack for stack in stacks if stack['stack'].startswith('sac-infer;') and ';sac_plan_run;' in stack['stack']]
    assert network, stacks[:5]
    part = text.split('<h2>Call stacks')[1].split('<h2>')[0]
    assert f"{sampling['samples']} samples, one after each 10 ms" in part and 'Sampling took' in part
    assert '<title>sac-infer ' in part and '<title>sac_plan_run ' in part
    own = {}
    for stack in stacks:
        function = stack['stack'].split(';')[-1]
        own[function] = own.get(function, 0) + stack['samples']
    rows = re.findall(r'<tr><td>(.*?)</td><td class=n>([0-9.]+) %</td><td class=n>([0-9.]+) %</td></tr>', part)
    assert 1 <= len(rows) <= 5
    for function, of_its_own, with_others in rows:
        assert of_its_own == f"{100 * own[function] / sampling['samples']:.1f}" and float(with_others) >= float(of_its_own)


def test_without_them_nothing_is_sampled(saccade, clip, tmp_path):
    run = saccade('profile', clip / 'img', '-o', tmp_path / 'a.html', '--detections', clip / 'det.txt')
    assert run.returncode == 0, run.stderr
    text, _, stats = check(tmp_path, 'a.html')
    assert stats['sampling'] is None and stats['stacks'] == [] and 'Call stacks' not in text
    assert not (tmp_path / 'a.folded').exists()


def test_an_interrupted_run_has_a_page_too(program, long_clip, tmp_path):
    process = subprocess.Popen([program, 'profile', str(long_clip / 'img'), '--detections', str(long_clip / 'det.txt'),
                                '-o', 'a.html', '--monitor-interval', '100', '--jsonl', 'a.jsonl', '--stack'],
                               cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(process, lambda: catches(process, signal.SIGINT) and has_frames(tmp_path, 'a.jsonl'))
    process.send_signal(signal.SIGINT)
    said, err = process.communicate(timeout=60)
    assert process.returncode == 130 and 'interrupted: ' in err, err
    assert said.split()[-4:] == ['a.html', 'a.json', 'a.trace.json', 'a.folded']
    _, _, stats = check(tmp_path, 'a.html')
    assert 0 < stats['frames'] < LONG and stats['sampling']['samples'] > 0


def test_a_page_that_cannot_be_written_leaves_the_former_one(saccade, clip, tmp_path):
    arguments = ['profile', clip / 'img', '--detections', clip / 'det.txt', '-o', tmp_path / 'a.html']
    assert saccade(*arguments).returncode == 0
    former = (tmp_path / 'a.json').read_bytes()
    fails(saccade(*arguments, '--against', tmp_path / 'a.json'), 2, 'a.json', 'would overwrite --against')
    assert (tmp_path / 'a.json').read_bytes() == former
    (tmp_path / 'b.html').mkdir()
    fails(saccade(*arguments[:-1], tmp_path / 'b.html'), 2, 'b.html', 'is a folder')
    (tmp_path / 'c.html').symlink_to('/dev/full')
    run = saccade(*arguments[:-1], tmp_path / 'c.html')
    assert run.returncode == 1 and 'No space left on device' in run.stderr


@pytest.mark.parametrize('options, words', [
    ([], ['--output REPORT.html']),
    (['-o', 'a.mp4'], ['--output REPORT.html']),
    (['-o', 'a.html', '--against', '/nowhere.json'], ['/nowhere.json']),
    (['-o', 'a.html', '--task', 'sing'], ["'sing'"]),
])
def test_mistakes(saccade, clip, tmp_path, options, words):
    run = saccade('profile', clip / 'img', '--detections', clip / 'det.txt', *options, cwd=tmp_path)
    fails(run, run.returncode or -1, *words)


@pytest.mark.parametrize('old', ['', '[', '{}', '{"format":"saccade-stats"}', '- fps\n', '{"format":["saccade-stats"]}'])
def test_what_is_no_profile_is_refused(saccade, clip, tmp_path, old):
    (tmp_path / 'old.json').write_text(old)
    run = saccade('profile', clip / 'img', '--detections', clip / 'det.txt', '-o', 'a.html', '--against', 'old.json',
                  cwd=tmp_path)
    fails(run, 1, "'old.json'", 'not the JSON of a profile')
