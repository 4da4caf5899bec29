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
import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
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


def check(folder, page, schema='stats'):
    text = (folder / page).read_text()
    parsed = Page(text)
    assert parsed.loads == [] and not re.search(r'url\(|@import|<script', text)
    stats = json.loads((folder / page).with_suffix('.json').read_text())
    jsonschema.Draft202012Validator(json.loads((ROOT / f'docs/{schema}.schema.json').read_text())).validate(stats)
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
    assert 'GPU p50' not in text and '<th class=n>p50</th>' in text  # no columns of what the run has not
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
    fails(saccade(*arguments, '--against', tmp_path / 'a.json'), 2, 'a.json', 'would overwrite an input')
    assert (tmp_path / 'a.json').read_bytes() == former
    (tmp_path / 'b.html').mkdir()
    fails(saccade(*arguments[:-1], tmp_path / 'b.html'), 2, 'b.html', 'is a folder')
    (tmp_path / 'c.html').symlink_to('/dev/full')
    run = saccade(*arguments[:-1], tmp_path / 'c.html')
    assert run.returncode == 1 and 'No space left on device' in run.stderr


@pytest.mark.parametrize('options, words', [
    ([], ['--output REPORT.html']),
    (['-o', 'a.mp4'], ["'a.mp4'", '.html']),
    (['-o', 'a.html', '--against', '/nowhere.json'], ['/nowhere.json']),
    (['-o', 'a.html', '--task', 'sing'], ["'sing'"]),
    (['-o', 'a.html', '--stats', 's.json'], ['statistics itself', "leave --stats 's.json' out"]),
    (['-o', 'a.html', '--trace', 't.json'], ['trace itself', "leave --trace 't.json' out"]),
])
def test_mistakes(saccade, clip, tmp_path, options, words):
    run = saccade('profile', clip / 'img', '--detections', clip / 'det.txt', *options, cwd=tmp_path)
    fails(run, run.returncode or -1, *words)


@pytest.mark.parametrize('name, page, options', [
    ('clip.html', 'clip.html', []),
    ('clip.json', 'clip.html', []),
    ('clip.trace.json', 'clip.html', []),
    ('clip.folded', 'clip.html', ['--stack']),
    ('old.trace.json', 'old.html', ['--against', 'old.trace.json']),
    ('old.html', 'old.html', ['--against', 'old.html']),
    ('old.folded', 'old.html', ['--stack', '--against', 'old.folded']),
    ('old.folded', 'old.html', ['--stack', '--config', 'old.folded']),
])
def test_nothing_that_the_run_reads_is_overwritten(saccade, clip, tmp_path, name, page, options):
    held = {'--against': b'{"format":"saccade-stats","fps":3}', '--config': b'log_level: warn\n'}
    file = tmp_path / name
    file.write_bytes(next((held[option] for option in options if option in held), b'P6 1 1 255\nabc'))
    before = file.read_bytes()
    clip = clip / 'img' if name.startswith('old') else name
    fails(saccade('profile', clip, '--detector', 'person_det_fast', '--device', 'cpu', '-o', page, *options, cwd=tmp_path), 2, name,
          'would overwrite')
    assert file.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize('old', ['', '[', '{}', '{"format":"saccade-stats"}', '- fps\n', '{"format":["saccade-stats"]}'])
def test_what_is_no_profile_is_refused(saccade, clip, tmp_path, old):
    (tmp_path / 'old.json').write_text(old)
    run = saccade('profile', clip / 'img', '--detections', clip / 'det.txt', '-o', 'a.html', '--against', 'old.json',
                  cwd=tmp_path)
    fails(run, 1, "'old.json'", 'not the JSON of a profile')


# ---- a model by itself ----

@pytest.fixture(scope='session')
def plain(tmp_path_factory):
    """Neither a detector nor a segmenter: a picture and a row of numbers in, a row of numbers out."""
    rng = numpy.random.default_rng(1)
    weights = {'w': rng.normal(size=(8, 3, 3, 3)), 'v': rng.normal(size=(8, 5)), 'u': rng.normal(size=(4, 5))}
    nodes = [helper.make_node('Conv', ['image', 'w'], ['c'], name='first', pads=[1] * 4),
             helper.make_node('Relu', ['c'], ['r']),
             helper.make_node('ReduceMean', ['r'], ['m'], axes=[2, 3], keepdims=0),
             helper.make_node('MatMul', ['m', 'v'], ['a'], name='second'),
             helper.make_node('MatMul', ['extra', 'u'], ['b'], name='third'),
             helper.make_node('Sub', ['a', 'b'], ['scores'])]
    graph = helper.make_graph(nodes, 'plain',
                              [helper.make_tensor_value_info('image', TensorProto.FLOAT, ['N', 3, 'H', 'W']),
                               helper.make_tensor_value_info('extra', TensorProto.FLOAT, ['N', 4])],
                              [helper.make_tensor_value_info('scores', TensorProto.FLOAT, ['N', 5])],
                              [numpy_helper.from_array(w.astype(numpy.float32), name) for name, w in weights.items()])
    path = tmp_path_factory.mktemp('plain') / 'net.onnx'
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8), path)
    return path


def alone(saccade, model, *options, shape='image=1,3,64,48', **kwargs):
    return saccade('profile', model, '--shape', shape, '--device', 'cpu', '--seconds', 0.05, *options, **kwargs)


def test_a_model_by_itself(saccade, plain, tmp_path):
    run = alone(saccade, plain, '-o', tmp_path / 'a.html', '--batch', '2,5', '--shapes', '--rows', 2, '--sort', 'flops',
                '--stack')
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == [str(tmp_path / f'a.{end}') for end in ('html', 'json', 'trace.json', 'folded')]
    assert re.search(r'^batch 2: p50 [0-9.]+ ms.*\nbatch 5: p50 ', run.stderr, re.M)
    text, _, report = check(tmp_path, 'a.html', 'model-profile')
    assert [runs['batch'] for runs in report['runs']] == [2, 5] and report['layers_batch'] == 2
    for runs in report['runs']:
        assert runs['count'] >= 5 and 0 < runs['p50_ms'] <= runs['p95_ms'] <= runs['p99_ms'] <= runs['max_ms']
        assert runs['items_per_s'] == pytest.approx(1e3 * runs['batch'] / runs['p50_ms'])
    assert report['parameters'] == 8 * 27 + 8 * 5 + 4 * 5 and report['bottleneck']['what'] in text
    table = text.split('<h2>Time of a run')[1].split('</table>')[0]
    assert [row.split('</td>')[0] for row in table.split('<td class=n>')[1::9]] == ['2', '5']
    steps = text.split('Costliest steps of the network')[1].split('</table>')[0]
    assert steps.count('<tr>') == 3 and 'first' in steps and 'float32 [2,8,64,48]' in steps
    first = next(layer for layer in report['layers'] if layer['name'] == 'first')
    assert first['flops'] == 2 * 2 * 8 * 27 * 64 * 48 and first['bound_by'] in ('launch', 'memory', 'matrix')
    owners = [a['owner'] for a in report['allocations']]
    assert 'bench input' in owners and any(owner.endswith('/net.onnx') for owner in owners)
    assert report['pool_peak_bytes'] < 10e6  # without what measuring the device takes
    for words in 'Memory by owner', 'Largest allocations', 'Call stacks', 'Copies by reason', 'Time of a run</figcaption>':
        assert words in text
    for words in 'Stages', 'Queues', 'What each thread did', 'Against the earlier run':
        assert words not in text
    trace = json.loads((tmp_path / 'a.trace.json').read_text())
    names, _ = check_trace(trace)
    assert names[1] == 'runs' and names[2] == 'steps of a run (means)'
    spans = [event for event in trace if event['ph'] == 'X']
    assert len([span for span in spans if span['tid'] == 1]) == sum(runs['count'] for runs in report['runs'])
    named = [span['name'] for span in spans if span['tid'] == 2]  # in the order of a run, whatever the page sorts by
    assert named.index('first') < named.index('second') and len(named) == len(report['layers'])


def test_two_runs_of_a_model_are_compared(saccade, plain, clip, tmp_path):
    assert alone(saccade, plain, '-o', tmp_path / 'a.html').returncode == 0
    run = alone(saccade, plain, '-o', tmp_path / 'b.html', '--against', tmp_path / 'a.json', '--sort', 'memory')
    assert run.returncode == 0, run.stderr
    text, _, _ = check(tmp_path, 'b.html', 'model-profile')
    table = text.split('Against the earlier run')[1].split('</table>')[0]
    for row in 'batch 1 p50', 'batch 1 p99', 'rss_peak':
        assert f'<td>{row}</td>' in table
    assert text.index('Largest allocations') < text.index('Time of a run')
    fails(saccade('profile', clip / 'img', '--detections', clip / 'det.txt', '-o', tmp_path / 'c.html', '--against',
                  tmp_path / 'a.json'), 1, 'a.json', 'is of a model by itself')
    (tmp_path / 'run.json').write_text('{"format":"saccade-stats","fps":3}')
    fails(alone(saccade, plain, '-o', tmp_path / 'd.html', '--against', tmp_path / 'run.json'), 1, 'run.json',
          'is of a run over inputs')


def test_a_detector_by_itself_only_when_asked(saccade, tmp_path):
    for name, how in ('person_det_fast', '--detector person_det_fast'), ('person_seg', '--task segment --model person_seg'):
        fails(saccade('profile', name, '-o', 'a.html', '--device', 'cpu', cwd=tmp_path), 2, how, '--task model')
    assert list(tmp_path.iterdir()) == []
    for model in ['person_det_fast'], ['--model', 'person_det_fast']:
        run = saccade('profile', *model, '--task', 'model', '-o', 'a.html', '--device', 'cpu', '--seconds', 0.05, cwd=tmp_path)
        assert run.returncode == 0, run.stderr
        _, _, report = check(tmp_path, 'a.html', 'model-profile')
        assert report['model'] == 'person_det_fast' and report['runs'][0]['batch'] == 1


@pytest.mark.parametrize('arguments, words', [
    (['NET'], ["'image' (float32 [?,3,?,?])", 'add --shape image=1,3,640,640']),
    (['--model', 'NET', '--shape', 'picture=1,3,8,8'], ["no input 'picture'", 'image, extra']),
    (['NET', '--shape', 'image=1,3,8,8', '--batch', '0'], ["'0' is no list"]),
    (['NET', '--shape', 'image=1,3,8,8', '--batch', ','.join(map(str, range(1, 18)))], ['16 sizes, not 17']),
    (['NET', 'CLIP'], ['is a model', 'img']),
    (['CLIP', '--model', 'NET'], ['neither a detector nor a segmenter', 'img']),
    (['NET', '--task', 'segment'], ['--task segment needs an INPUT']),
    (['CLIP', '--task', 'model'], ['takes a MODEL', 'img']),
    (['--task', 'model'], ['needs a MODEL']),
    (['--detector', 'person_det'], ["--detector 'person_det' needs an INPUT"]),
    ([], ['needs INPUT... or a MODEL']),
])
def test_mistakes_with_a_model(saccade, plain, clip, tmp_path, arguments, words):
    arguments = [{'NET': plain, 'CLIP': clip / 'img'}.get(argument, argument) for argument in arguments]
    fails(saccade('profile', *arguments, '-o', 'a.html', '--device', 'cpu', cwd=tmp_path), 2, *words)
    assert list(tmp_path.iterdir()) == []


def test_a_models_files_are_not_overwritten(saccade, plain, tmp_path):
    (tmp_path / 'a.onnx').write_bytes(plain.read_bytes())
    (tmp_path / 'a.json').hardlink_to(tmp_path / 'a.onnx')
    fails(alone(saccade, tmp_path / 'a.onnx', '-o', tmp_path / 'a.html'), 2, 'a.onnx', 'overwrite')
    assert (tmp_path / 'a.onnx').read_bytes() == plain.read_bytes()
    fails(alone(saccade, plain, '-o', tmp_path / 'none/b.html'), 1, 'none/b.html')
    (tmp_path / 'c.trace.json').mkdir()
    fails(alone(saccade, plain, '-o', tmp_path / 'c.html'), 2, 'c.trace.json', 'is a folder')
    assert not (tmp_path / 'c.html').exists()


def test_optimize_takes_no_model(saccade, clip, tmp_path):
    fails(saccade('optimize', clip / 'img', '-o', 'a.yaml', '--task', 'model', cwd=tmp_path), 2, "--task model is profile's")
