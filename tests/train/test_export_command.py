# SPDX-License-Identifier: Apache-2.0
"""From a module or a checkpoint to an ONNX file, a plan and its times, in one command."""
import os
import re
import sys

import numpy
import onnx
import onnxruntime
import pytest
import torch

NET = '''
from torch import nn

class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ReLU(),
                                    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 5))

    def forward(self, x):
        return self.layers(x)

def build():
    return Net()

made = Net()
number = 7
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / 'net.py').write_text(NET)
    sys.path.insert(0, str(tmp_path))
    import net
    torch.manual_seed(3)
    module = net.build().eval()
    torch.save(module.state_dict(), tmp_path / 'plain.pt')
    torch.save({'epoch': 3, 'state_dict': {f'module.{k}': v for k, v in module.state_dict().items()}},
               tmp_path / 'checkpoint.pt')
    torch.jit.script(module).save(str(tmp_path / 'whole.pt'))
    torch.save({'epoch': 3}, tmp_path / 'none.pt')
    torch.save(net.Net(16).state_dict(), tmp_path / 'wide.pt')
    torch.save({k: v for k, v in module.state_dict().items() if 'bias' not in k}, tmp_path / 'part.pt')
    yield tmp_path
    sys.path.remove(str(tmp_path))
    del sys.modules['net']


def outputs_differ(path):
    module = torch.jit.load(path.parent / 'whole.pt')
    x = torch.rand(2, 3, 16, 24)
    got = onnxruntime.InferenceSession(str(path)).run(None, {'images': x.numpy()})[0]
    return numpy.abs(got - module(x).detach().numpy()).max()


@pytest.mark.parametrize('module, weights', [('net.py:build', 'plain.pt'), ('net.py:Net', 'checkpoint.pt'),
                                             ('net.py:made', 'plain.pt'), ('whole.pt', None)])
def test_a_module_with_its_weights_becomes_a_file(folder, train_program, module, weights):
    done = train_program('export', folder / module, *(['--weights', folder / weights] if weights else []),
                         '--shape', '3,16,24', '-o', folder / 'net.onnx')
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r'\S+net\.onnx: 0\.0 MB, images \[n,3,16,24\]\n', done.stdout)
    assert outputs_differ(folder / 'net.onnx') < 1e-5


def test_the_file_says_what_it_is_and_may_be_half_as_large(folder, train_program):
    done = train_program('export', folder / 'net.py:build', '--weights', folder / 'plain.pt', '--shape', '3,16,24',
                         '-o', folder / 'net.onnx', '--head', 'embedding', '--preprocess', 'rgb,mean=0,scale=1/255',
                         '--half', '--classes', 'a,b')
    assert done.returncode == 0, done.stderr
    model = onnx.load(folder / 'net.onnx')
    assert {e.key: e.value for e in model.metadata_props} == {
        'saccade.head': 'embedding', 'saccade.preprocess': 'rgb,mean=0,scale=1/255', 'saccade.classes': 'a,b'}
    assert onnx.TensorProto.FLOAT16 in {t.data_type for t in model.graph.initializer}
    assert outputs_differ(folder / 'net.onnx') < 1e-2


def test_it_is_timed(folder, train_program, program):
    done = train_program('export', folder / 'net.py:build', '--shape', '3,16,24', '-o', folder / 'net.onnx', '--time',
                         '--batch', '1:4', '--seconds', '0.05', '--device', 'cpu', '--program', program)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()[1:]
    for line, batch in zip(lines, (1, 4)):
        found = re.fullmatch(rf'\S+net\.onnx: fp32 on cpu, batch {batch}: latency ([0-9.]+) ms, '
                             r'throughput ([0-9.]+) items/s', line)
        assert found, line
        assert float(found[2]) > 0
    assert len(lines) == 2


PROGRAM = '''#!{python}
import json, pathlib, sys
print(json.dumps(sys.argv[1:]), file=open({log!r}, 'a'))
if sys.argv[1] == 'build':
    pathlib.Path(sys.argv[sys.argv.index('-o') + 1]).write_bytes(b'plan')
    print('built')
else:
    print(json.dumps({{'precision': 'fp16', 'device': 'cuda:0',
                       'batches': [{{'batch': 8, 'median_ms': 2.0, 'items_per_s': 4000.0}}]}}))
'''


def test_the_plan_is_built_and_timed(folder, train_program):
    """What the program is asked for: on a machine without a GPU there is no plan of float."""
    (folder / 'saccade').write_text(PROGRAM.format(python=sys.executable, log=str(folder / 'log')))
    (folder / 'saccade').chmod(0o755)
    done = train_program('export', folder / 'net.py:build', '--shape', '3,16,24', '-o', folder / 'net.onnx', '--plan',
                         folder / 'net.plan', '--precision', 'fp16', '--batch', '8', '--program', folder / 'saccade',
                         '--', '--calibrate', 'pictures')
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == [
        'built', f"{folder / 'net.plan'}: fp16 on cuda:0, batch 8: latency 2.000 ms, throughput 4000.0 items/s"]
    build, bench = (folder / 'log').read_text().splitlines()
    assert f'["build", "{folder}/net.onnx", "-o", "{folder}/net.plan", "--batch", "8", "--precision", "fp16", ' \
           '"--calibrate", "pictures"]' == build
    assert f'["bench", "{folder}/net.plan", "--json", "--batch", "8", "--seconds", "1"]' == bench


def test_the_programs_refusal_is_the_commands(folder, train_program, program):
    done = train_program('export', folder / 'net.py:build', '--shape', '3,16,24', '-o', folder / 'net.onnx', '--plan',
                         folder / 'net.plan', '--device', 'cpu', '--precision', 'fp32', '--program', program)
    assert done.returncode == 1
    assert 'plans are built for GPUs' in done.stderr and 'failed with status' in done.stderr
    assert not (folder / 'net.plan').exists()


@pytest.mark.parametrize('arguments, said', [
    (['missing.py:build'], 'missing.py: there is no such file'),
    (['net.py:nothing'], "net.py: it has no 'nothing'"),
    (['net.py:number', '--weights', 'plain.pt'], 'it is a int; a function'),
    (['absent.pt'], 'absent.pt: there is no such file'),
    (['none.pt'], 'it holds a dict, not a module'),
    (['net.py:build', '--weights', 'none.pt'], 'it holds no weights'),
    (['net.py:build', '--weights', 'wide.pt'], "'layers.0.weight' is [16, 3, 3, 3]; the module has [8, 3, 3, 3]"),
    (['net.py:build', '--weights', 'part.pt'], "it lacks 'layers.0.bias' and 2 more, which the module has"),
    (['net.py:build', '--weights', 'absent.pt'], 'absent.pt: No such file'),
    (['net.py:build', '--shape', '3,x'], "'3,x' is no shape"),
    (['net.py:build', '--time', '--program', 'no/such/program'], 'no/such/program: No such file'),
])
def test_a_mistake_is_one_sentence(folder, train_program, arguments, said):
    files = {'missing.py:build', 'none.pt', 'wide.pt', 'part.pt', 'plain.pt', 'absent.pt'}
    given = [str(folder / a) if a in files or a.startswith('net.py') else a for a in arguments]
    done = train_program('export', given[0], *(['--shape', '3,16,24'] if '--shape' not in given else []), '-o',
                         folder / 'net.onnx', *given[1:])
    assert done.returncode != 0
    assert said in done.stderr, done.stderr
    assert 'Traceback' not in done.stderr
