# SPDX-License-Identifier: Apache-2.0
"""saccade serve-bench on a small model made here."""
import json
import re
import subprocess

import pytest
from onnx import helper

from support import fails
from test_models import save, value


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    """Two inputs, of 4 and of 2 x 3 numbers."""
    return save(tmp_path_factory.mktemp('serve') / 'net.onnx',
                [helper.make_node('Relu', ['a'], ['x']), helper.make_node('Exp', ['b'], ['y'])],
                [value('a', ['n', 4]), value('b', ['n', 2, 3])], [value('x', ['n', 4]), value('y', ['n', 2, 3])])


def serve(saccade, model, *options):
    run = saccade('serve-bench', model, '--device', 'cpu', '--seconds', '0.2', '--load', '0.2', *options)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_it_says_what_each_priority_met(saccade, model):
    said = serve(saccade, model, '--priorities', 2, '--clients', 3)
    assert f'{model}  fp32 on cpu, 3 clients' in said
    assert float(re.search(r'^batch 1 +([\d.]+) items/s$', said, re.M)[1]) > 0
    p50, p95, p99, longest = map(float, re.search(
        r'^priority 1 +p50 ([\d.]+)  p95 ([\d.]+)  p99 ([\d.]+)  max ([\d.]+) ms  missed \d+ of \d+, failed 0$',
        said, re.M).groups())
    assert 0 < p50 <= p95 <= p99 <= longest
    assert said.index('priority 1') < said.index('priority 0') < said.index('batches  ')


@pytest.mark.parametrize('options', [(), ('--host-tensors',), ('--goal', 'none', '--batch-padding', 'full')])
def test_json_has_the_same_figures(saccade, model, options):
    said = json.loads(serve(saccade, model, '--json', '--max-batch', 4, *options))
    assert said['batch_1_items_per_s'] > 0 and said['items_per_s'] > 0
    assert said['batch_max'] == 4 if 'none' in options else 1 <= said['batch_max'] <= 4
    assert said['offered'] == said['submitted'] + said['full']
    assert [p['priority'] for p in said['priorities']] == [2, 1, 0]
    assert sum(p['answered'] for p in said['priorities']) == said['submitted'] > 0
    assert all(p['failed'] == 0 for p in said['priorities'])
    assert sum(b['items'] * b['count'] for b in said['batches']) == said['submitted']
    assert all(b['items'] <= said['batch_max'] for b in said['batches'])


def test_late_requests_are_refused(saccade, model):
    said = json.loads(serve(saccade, model, '--json', '--deadline', '0.001', '--late', 'refuse'))
    missed, answered = (sum(p[what] for p in said['priorities']) for what in ('missed', 'answered'))
    assert answered == said['submitted'] and missed > 0
    assert said['refused'] == sum(p['failed'] for p in said['priorities']) <= missed


def test_it_says_what_is_wrong(saccade, model, tmp_path):
    open_size = save(tmp_path / 'open.onnx', [helper.make_node('Relu', ['x'], ['y'])],
                     [value('x', ['n', 1, 'h', 'w'])], [value('y', ['n', 1, 'h', 'w'])])
    fails(saccade('serve-bench', open_size, '--device', 'cpu'), 1, "'x'", 'width and height')
    assert serve(saccade, open_size, '--size', '8x6')
    fails(saccade('serve-bench', 'person_reid', '--device', 'cpu', '--size', '8x6'), 2, '--size 8x6', 'fixes the size')
    for size in '8', '4294967304x6':  # the second is 8x6 to who reads 32 bits
        fails(saccade('serve-bench', model, '--size', size), 2, f"'{size}'", '640x640')
    fails(saccade('serve-bench', model, '--goal', 'speed'), 2, 'latency, throughput')
    fails(saccade('serve-bench', model, '--load', '0'), 2, 'out of range')
    fails(saccade('serve-bench', '/nowhere/net.onnx', '--device', 'cpu'), 1, '/nowhere/net.onnx')
    fixed = save(tmp_path / 'fixed.onnx', [helper.make_node('Relu', ['x'], ['y'])],
                 [value('x', [3, 4])], [value('y', [3, 4])])
    fails(saccade('serve-bench', fixed, '--device', 'cpu'), 1, 'no batch of 1')


def test_a_priority_without_requests_has_no_percentiles(saccade):
    run = saccade('serve-bench', 'person_reid', '--device', 'cpu', '--seconds', 0.5, '--load', 0.01, '--priorities', 10)
    assert run.returncode == 0, run.stderr
    assert 'none ran' in run.stdout and 'nan' not in run.stdout


def test_a_slow_network_does_not_hold_it_up(program):
    """What waits when its time is over is not run: 1,024 mattes would take minutes."""
    run = subprocess.run([program, 'serve-bench', 'person_matte', '--device', 'cpu', '--seconds', '0.2'],
                         capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 or 'give it more --seconds' in run.stderr, run.stderr
