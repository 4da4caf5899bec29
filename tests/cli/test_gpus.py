# SPDX-License-Identifier: Apache-2.0
"""--gpus: what is no list of GPUs is said before any work; so is a GPU that gets no input."""
import pytest

from support import fails


def inputs(clip):
    return [clip / 'img', '--detections', clip / 'det.txt']


@pytest.mark.parametrize('numbers', ['x', '-1', '0,', ',0', '0,,1', '0 1', '0;1', '256', '0,1x', 'cuda:0',
                                     ','.join(map(str, range(17)))])
def test_what_is_no_list(saccade, clip, numbers):
    fails(saccade('track', *inputs(clip), '--gpus=' + numbers), 2, '--gpus', 'up to 16 GPU numbers')


def test_one_twice(saccade, clip):
    fails(saccade('track', *inputs(clip), '--gpus', '0,1,0'), 2, '0,1,0', 'GPU 0 is listed twice')


@pytest.mark.parametrize('device', ['cpu', 'cuda:1'])
def test_together_with_another_device(saccade, clip, device):
    fails(saccade('track', *inputs(clip), '--gpus', '0,1', '--device', device), 2, device, 'exclude each other')


def test_one_that_cannot_be_had(saccade, clip):
    run = saccade('track', *inputs(clip), '--gpus', '200', '--jsonl', 'none')
    assert run.returncode == 1
    assert "device 'cuda:200'" in run.stderr.splitlines()[-1]


@pytest.mark.parametrize('numbers, unused', [('200,201', 'cuda:201 is not used'),
                                             ('200,201,202', 'cuda:201 and those behind it are not used')])
def test_more_than_inputs(saccade, clip, numbers, unused):
    run = saccade('track', *inputs(clip), '--gpus', numbers, '--jsonl', 'none')
    assert '1 input for %d devices: %s' % (numbers.count(',') + 1, unused) in run.stderr
