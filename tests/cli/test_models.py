# SPDX-License-Identifier: Apache-2.0
"""saccade infer and inspect on models made here, with ONNX Runtime as the oracle."""
import json
import pathlib
import re

import numpy
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from support import FRAMES, fails

ROOT = pathlib.Path(__file__).resolve().parents[2]
random = numpy.random.default_rng(7)


def save(path, nodes, inputs, outputs, weights=(), **metadata):
    graph = helper.make_graph(nodes, 'test', inputs, outputs,
                              [numpy_helper.from_array(array, name) for name, array in weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=7,
                              producer_name='saccade tests')
    for key, value in metadata.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.save(model, path)
    return path


def value(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


@pytest.fixture(scope='module')
def two_by_two(tmp_path_factory):
    """Two inputs, two outputs; names that are no file names."""
    folder = tmp_path_factory.mktemp('model')
    weights = random.standard_normal((8, 3, 3, 3)).astype(numpy.float32)
    return save(folder / 'net.onnx',
                [helper.make_node('Conv', ['image', 'w'], ['c'], pads=[1, 1, 1, 1]),
                 helper.make_node('Relu', ['c'], ['out/relu:0']),
                 helper.make_node('Mul', ['c', 'gain'], ['scaled'])],
                [value('image', [1, 3, 16, 24]), value('gain', [1])],
                [value('out/relu:0', [1, 8, 16, 24]), value('scaled', [1, 8, 16, 24])],
                [('w', weights)])


@pytest.fixture(scope='module')
def arrays(tmp_path_factory):
    folder = tmp_path_factory.mktemp('arrays')
    arrays = {'image': random.standard_normal((1, 3, 16, 24)).astype(numpy.float32),
              'gain': numpy.array([2.5], numpy.float32)}
    for name, array in arrays.items():
        numpy.save(folder / f'{name}.npy', array)
    return folder, arrays


@pytest.mark.parametrize('flags', [[], ['--reference'], ['--no-optimize'], ['--threads', 2]])
def test_infer_computes_what_onnx_runtime_computes(saccade, two_by_two, arrays, tmp_path, flags):
    folder, values = arrays
    run = saccade('infer', two_by_two, '--input', folder / 'image.npy', f'gain={folder}/gain.npy',
                  '--output', tmp_path / 'out', *flags)
    assert run.returncode == 0, run.stderr
    expected = onnxruntime.InferenceSession(two_by_two).run(None, values)
    for name, array in zip(['out_relu:0', 'scaled'], expected):
        numpy.testing.assert_allclose(numpy.load(tmp_path / 'out' / f'{name}.npy'), array, rtol=1e-4, atol=1e-5)
    assert sorted(p.name for p in (tmp_path / 'out').iterdir()) == ['out_relu:0.npy', 'scaled.npy']


def test_infer_tells_its_times(saccade, two_by_two, arrays):
    folder, _ = arrays
    inputs = ['--input', f'gain={folder}/gain.npy', f'image={folder}/image.npy', '--repeat', '20']
    run = saccade('infer', two_by_two, *inputs)
    assert run.returncode == 0, run.stderr
    times = re.search(r'min ([\d.]+) ms  median ([\d.]+) ms  p99 ([\d.]+) ms  \(20 runs', run.stdout)
    low, median, high = map(float, times.groups())
    assert 0 < low <= median <= high
    report = json.loads(saccade('infer', two_by_two, *inputs, '--json').stdout)
    assert report['runs'] == 20 and 0 < report['min_ms'] <= report['median_ms'] <= report['p99_ms']
    assert [output['shape'] for output in report['outputs']] == [[1, 8, 16, 24]] * 2


@pytest.mark.parametrize('chosen, spins', [({}, '1000'), ({'GOMP_SPINCOUNT': '77'}, '77'),
                                           ({'OMP_WAIT_POLICY': 'active'}, '30000000000')])
def test_openmp_has_calm_workers_unless_the_user_chose(saccade, two_by_two, arrays, chosen, spins):
    """libgomp tells what it was loaded with; it may have been loaded before main, and then again."""
    folder, _ = arrays
    unset = {name: None for name in ('GOMP_SPINCOUNT', 'OMP_WAIT_POLICY')}
    run = saccade('infer', two_by_two, '--input', folder / 'image.npy', folder / 'gain.npy', '--threads', 2,
                  env=unset | {'OMP_DISPLAY_ENV': 'verbose'} | chosen)
    assert run.returncode == 0, run.stderr
    told = re.findall(r"GOMP_SPINCOUNT = '(\d+)'", run.stderr)
    if not told:
        pytest.skip('no oneDNN on OpenMP here')
    assert told[-1] == spins
    assert 'threads spin' not in run.stderr


def test_infer_names_what_is_wrong_with_its_inputs(saccade, two_by_two, arrays, tmp_path):
    folder, _ = arrays
    image, gain = folder / 'image.npy', folder / 'gain.npy'
    fails(saccade('infer', two_by_two, '--input', image), 2, "'gain'", 'float32 [1]', '--input gain=FILE.npy')
    fails(saccade('infer', two_by_two, '--input', f'imgae={image}'), 2, "'imgae'", 'image, gain')
    fails(saccade('infer', two_by_two, '--input', image, gain, image), 2, 'the model takes 2')
    fails(saccade('infer', two_by_two, '--input', f'image={image}', f'image={image}'), 2, 'given twice')
    fails(saccade('infer', two_by_two, '--input', '/nowhere/x.npy', gain), 1, '/nowhere/x.npy')
    numpy.save(tmp_path / 'small.npy', numpy.zeros((1, 3, 8), numpy.float32))
    fails(saccade('infer', two_by_two, '--input', tmp_path / 'small.npy', gain), 1, 'image')
    numpy.save(tmp_path / 'double.npy', numpy.zeros((1, 3, 16, 24)))
    fails(saccade('infer', two_by_two, '--input', tmp_path / 'double.npy', gain), 1, 'float64')
    (tmp_path / 'cut.npy').write_bytes(image.read_bytes()[:500])
    fails(saccade('infer', two_by_two, '--input', tmp_path / 'cut.npy', gain), 1, 'cut.npy')
    fails(saccade('infer', two_by_two, '--input', image, gain, '--output', '/proc/nowhere/out', '--log-level', 'error'), 1,
          '/proc/nowhere')


def test_a_missing_operator_is_named(saccade, tmp_path):
    model = save(tmp_path / 'odd.onnx',
                 [helper.make_node('Frobnicate', ['x'], ['y'], name='the_node')],
                 [value('x', [1])], [value('y', [1])])
    numpy.save(tmp_path / 'x.npy', numpy.zeros(1, numpy.float32))
    fails(saccade('infer', model, '--input', tmp_path / 'x.npy'), 1, 'Frobnicate')
    run = saccade('inspect', model)  # looking at it works
    assert run.returncode == 0
    assert re.search(r'Frobnicate +1  not supported', run.stdout)
    operators = json.loads(saccade('inspect', model, '--json').stdout)['operators']
    assert operators[0]['name'] == 'Frobnicate' and not operators[0]['supported']


def test_a_model_that_lies_about_its_sizes_is_refused(saccade, tmp_path):
    model = onnx.load(save(tmp_path / 'good.onnx', [helper.make_node('Add', ['x', 'w'], ['y'])],
                           [value('x', [4])], [value('y', [4])], [('w', numpy.ones(4, numpy.float32))]))
    model.graph.initializer[0].dims[0] = 1 << 40
    (tmp_path / 'liar.onnx').write_bytes(model.SerializeToString())
    numpy.save(tmp_path / 'x.npy', numpy.zeros(4, numpy.float32))
    fails(saccade('infer', tmp_path / 'liar.onnx', '--input', tmp_path / 'x.npy'), 1, 'liar.onnx')
    fails(saccade('inspect', tmp_path / 'liar.onnx'), 1, 'liar.onnx')


def test_truncated_models_are_refused(saccade, two_by_two, tmp_path):
    whole = two_by_two.read_bytes()
    for share in (0, 1, 2, 3):
        cut = tmp_path / f'cut{share}.onnx'
        cut.write_bytes(whole[:len(whole) * share // 4])
        fails(saccade('inspect', cut), 1, cut.name)


def test_inspect_describes_a_model(saccade, two_by_two):
    report = json.loads(saccade('inspect', two_by_two, '--json').stdout)
    assert report['kind'] == 'model' and report['opset'] == 13
    assert [port['name'] for port in report['inputs']] == ['image', 'gain']
    assert report['outputs'][0]['name'] == 'out/relu:0'
    assert report['parameters'] == 8 * 3 * 3 * 3
    # 2 a multiply-add: the convolution outweighs what else there is
    assert report['flops'] == pytest.approx(2 * 16 * 24 * 8 * 27, rel=0.2)
    assert {op['name'] for op in report['operators']} == {'Conv', 'Relu', 'Mul'}
    assert all(op['supported'] and op['kernel'] for op in report['operators'])
    text = saccade('inspect', two_by_two).stdout
    assert 'image  float32 [1,3,16,24]' in text


def test_a_compiled_engine_gets_a_hint(saccade, tmp_path):
    (tmp_path / 'net.engine').write_bytes(b'ftrt')
    fails(saccade('inspect', tmp_path / 'net.engine'), 1, 'use the ONNX file')


def test_inspect_tells_head_and_contract(saccade, shared):
    report = json.loads(saccade('inspect', shared / 'models/yolox_nano_416.onnx', '--json').stdout)
    assert report['head'] == 'yolox'
    contract = report['contract']
    assert (contract['size']['width'], contract['size']['height']) == (416, 416)
    assert contract['order']['value'] in ('rgb', 'bgr')
    assert contract['fit']['source'] == 'head'
    assert 'person' in contract['classes']['value']
    overridden = json.loads(saccade('inspect', shared / 'models/yolox_nano_416.onnx', '--json',
                                    '--preprocess', 'rgb,mean=1').stdout)['contract']
    assert overridden['order'] == {'source': '--preprocess', 'value': 'rgb'}
    assert overridden['mean'] == {'source': '--preprocess', 'value': [1, 1, 1]}


@pytest.mark.parametrize('named, head, source', [(None, 'end2end', 'outputs'), ('detr', 'detr', 'metadata'),
                                                 ('of-tomorrow', 'end2end', 'outputs')])
def test_the_file_may_name_its_head(saccade, tmp_path, named, head, source):
    metadata = {'saccade.preprocess': 'bgr,mean=1:2:3,scale=1/255,letterbox=none,fill=7', 'saccade.classes': 'cat,dog'}
    model = save(tmp_path / 'net.onnx', [helper.make_node('ReduceMean', ['image'], ['mean'], axes=[1, 2, 3], keepdims=0),
                                         helper.make_node('Add', ['mean', 'rows'], ['boxes'])],
                 [value('image', [1, 3, 64, 64])], [value('boxes', [1, 9, 6])],
                 [('rows', numpy.zeros((1, 9, 6), numpy.float32))],
                 **(metadata | ({'saccade.head': named} if named else {})))
    run = saccade('inspect', model, '--json')
    report = json.loads(run.stdout)
    assert (report['head'], report['head_source']) == (head, source)
    assert ("'of-tomorrow' that this saccade lacks" in run.stderr) == (named == 'of-tomorrow')
    contract = report['contract']
    assert contract['order'] == {'source': 'metadata', 'value': 'bgr'}
    assert contract['fit'] == {'source': 'metadata', 'value': 'stretch'}
    assert contract['mean'] == {'source': 'metadata', 'value': [1, 2, 3]}
    assert contract['scale'] == {'source': 'metadata', 'value': [pytest.approx(1 / 255)] * 3}
    assert contract['fill'] == {'source': 'metadata', 'value': [7] * 3}
    assert contract['classes'] == {'source': 'metadata', 'value': ['cat', 'dog']}
    chosen = json.loads(saccade('inspect', model, '--json', '--head', 'end2end').stdout)
    assert (chosen['head'], chosen['head_source']) == ('end2end', '--head')


def test_inspect_tells_a_segmenters_map(saccade):
    report = json.loads(saccade('inspect', 'person_seg', '--json').stdout)
    assert (report['head'], report['head_source']) == ('matte', 'metadata')
    assert report['map'] == {'output': 'matte', 'form': 'share', 'width': 320, 'height': 320}
    assert report['states'] == []
    assert report['contract']['fit']['value'] == 'letterbox topleft'
    maps = ROOT / 'tests/heads'
    text = saccade('inspect', maps / 'maps_torchvision.onnx').stdout
    assert 'head        semantic  (outputs)\n' in text
    assert 'map         out  16x16 cells, class logits\n' in text
    assert 'classes   21: background, aeroplane' in text
    text = saccade('inspect', maps / 'instances_yolov8.onnx').stdout
    assert 'head        yolov8  (outputs)\nmasks       output1  prototypes' in text
    assert json.loads(saccade('inspect', maps / 'instances_end2end.onnx', '--json').stdout)['masks'] == 'output1'
    assert json.loads(saccade('inspect', maps / 'instances_orphans.onnx', '--json').stdout)['masks'] is None
    text = saccade('inspect', maps / 'maps_recurrent.onnx').stdout
    assert 'head        recurrent  (outputs)\n' in text
    assert 'state       r1i  from r1o\nstate       r2i  from r2o\n' in text
    crossed = saccade('inspect', maps / 'maps_recurrent.onnx', '--json', '--preprocess', 'state=r1i:r2o,state=r2i:r1o')
    assert [s['output'] for s in json.loads(crossed.stdout)['states']] == ['r2o', 'r1o']
    named = json.loads(saccade('inspect', maps / 'maps_recurrent_named.onnx', '--json').stdout)
    assert [s['output'] for s in named['states']] == ['a', 'b']


@pytest.mark.parametrize('name', ['person_det', 'person_det_fast'])
def test_our_own_detectors_tell_all_about_themselves(saccade, name):
    report = json.loads(saccade('inspect', ROOT / f'models/{name}.onnx', '--json').stdout)
    assert (report['head'], report['head_source']) == ('yolov8', 'metadata')
    assert report['batches'] and (ROOT / f'models/{name}.onnx').stat().st_size < 3e6
    contract = report['contract']
    assert contract['classes'] == {'source': 'metadata', 'value': ['person']}
    for key in ('fit', 'order', 'mean', 'scale', 'fill'):
        assert contract[key]['source'] == 'metadata'


def test_inspect_describes_a_video(saccade, video):
    report = json.loads(saccade('inspect', video, '--json').stdout)
    assert report['kind'] == 'video'
    assert (report['width'], report['height']) == (320, 240)
    assert report['fps'] == pytest.approx(20, rel=0.01)
    assert [stream['kind'] for stream in report['streams']] == ['video']
    text = saccade('inspect', video).stdout
    assert '320x240' in text and '20 frames/s' in text
    fails(saccade('inspect', '/nowhere/in.mp4'), 1, '/nowhere/in.mp4')


def test_outputs_of_infer_have_a_file_each(saccade, tmp_path):
    names = ['a/b', 'a_b', 'a_b-2', '..', 'A_b', 'x' * 300, 'x' * 300 + 'y', '/../../up']
    nodes = [helper.make_node('Constant', [], [f'c{i}'], value=numpy_helper.from_array(numpy.array([i + 1], numpy.float32)))
             for i in range(len(names))]
    nodes += [helper.make_node('Add', ['x', f'c{i}'], [name]) for i, name in enumerate(names)]
    model = save(tmp_path / 'odd.onnx', nodes, [value('x', [1])], [value(name, [1]) for name in names])
    numpy.save(tmp_path / 'x.npy', numpy.zeros(1, numpy.float32))
    run = saccade('infer', model, '--input', tmp_path / 'x.npy', '--output', tmp_path / 'out', '--json')
    assert run.returncode == 0, run.stderr
    outputs = json.loads(run.stdout)['outputs']
    assert [output['name'] for output in outputs] == names
    for i, output in enumerate(outputs):
        assert numpy.load(output['file'])[0] == i + 1
    files = sorted(path.name for path in (tmp_path / 'out').iterdir())
    assert len(files) == len(names) and {'a_b.npy', 'a_b-2.npy', 'A_b.npy', 'a_b-3.npy'} <= set(files)
    assert pathlib.Path(outputs[1]['file']).name == 'a_b.npy'  # who has a file's name keeps it
    assert sorted(path.name for path in tmp_path.iterdir()) == ['odd.onnx', 'out', 'x.npy']


def test_infer_and_build_overwrite_nothing_that_they_read(saccade, tmp_path):
    model = save(tmp_path / 'net.onnx', [helper.make_node('Relu', ['x'], ['x_out'])], [value('x', [1])],
                 [value('x_out', [1])])
    numpy.save(tmp_path / 'x_out.npy', numpy.ones(1, numpy.float32))
    (tmp_path / 'link').symlink_to('.')
    before = (tmp_path / 'x_out.npy').read_bytes()
    fails(saccade('infer', model, '--input', tmp_path / 'x_out.npy', '--output', tmp_path / 'link'), 2,
          'overwrite an input', 'x_out.npy')
    assert (tmp_path / 'x_out.npy').read_bytes() == before
    former = model.read_bytes()
    run = saccade('build', 'net.onnx', '--output', './net.onnx', '--device', 'cpu', cwd=tmp_path)
    assert run.returncode == 2 and 'overwrite an input' in run.stderr.splitlines()[-1]
    assert model.read_bytes() == former


# ---- bench ----

def bench(saccade, model, *options):
    run = saccade('bench', model, '--device', 'cpu', '--seconds', '0.02', *options)
    assert run.returncode == 0, run.stderr
    return run


def test_bench_times_each_batch(saccade, tmp_path):
    model = save(tmp_path / 'net.onnx', [helper.make_node('Relu', ['x'], ['y'])],
                 [value('x', ['n', 3, 640, 480])], [value('y', ['n', 3, 640, 480])]) # times of three decimals
    said = bench(saccade, model).stdout
    median, best, items = map(float, re.search(
        r'^batch 1 +median ([\d.]+) ms  best ([\d.]+) ms  ([\d.]+) items/s', said, re.M).groups())
    assert 0 < best <= median and items == pytest.approx(1000 / median, rel=0.2)
    assert 'measured' not in said and 'Relu' not in said
    report = json.loads(bench(saccade, model, '--batch', '1,4', '--json').stdout)
    assert report['precision'] == 'fp32' and report['device'] == 'cpu' and report['threads'] >= 1
    assert [row['batch'] for row in report['batches']] == [1, 4]
    for row in report['batches']:
        assert 0 < row['best_ms'] <= row['median_ms']
        assert row['items_per_s'] == pytest.approx(1000 * row['batch'] / row['median_ms'])


def test_bench_tells_what_each_layer_moves_and_computes(saccade, tmp_path):
    """Sizes that are known: a convolution, and an Add that nothing can fuse with it."""
    weights = random.standard_normal((8, 3, 3, 3)).astype(numpy.float32)
    model = save(tmp_path / 'net.onnx',
                 [helper.make_node('Conv', ['image', 'w'], ['c'], pads=[1, 1, 1, 1], name='the/conv'),
                  helper.make_node('MaxPool', ['c'], ['out'], kernel_shape=[2, 2], strides=[2, 2], name='the/pool')],
                 [value('image', [1, 3, 64, 48])], [value('out', [1, 8, 32, 24])], [('w', weights)])
    report = json.loads(bench(saccade, model, '--layers', '--json').stdout)
    rates, batch = report['measured'], report['batches'][0]
    assert rates['bytes_per_s'] > 1e7 and rates['flops_per_s'] > 1e7 and rates['step_ms'] > 0
    layers = {layer['name']: layer for layer in batch['layers']}
    conv, pool = layers['the/conv'], layers['the/pool']
    assert conv['operator'] == 'Conv' and pool['operator'] == 'MaxPool'
    assert conv['bytes'] == 4 * (3 * 64 * 48 + 8 * 27 + 8 * 64 * 48)
    assert conv['flops'] == 2 * 27 * 8 * 64 * 48
    assert conv['output'].endswith(']') and pool['output'] == 'float32 [1,8,32,24]'
    assert pool['bytes'] == 4 * (8 * 64 * 48 + 8 * 32 * 24) and pool['flops'] == 8 * 32 * 24
    assert sum(layer['share'] for layer in batch['layers']) == pytest.approx(1)
    for layer in batch['layers']:
        assert layer['bandwidth_share'] == pytest.approx(layer['bytes_per_s'] / rates['bytes_per_s'])
        assert layer['matrix_share'] == pytest.approx(layer['flops_per_s'] / rates['flops_per_s'])
        least = {'launch': rates['step_ms'] / 1e3, 'memory': layer['bytes'] / rates['bytes_per_s'],
                 'matrix': layer['flops'] / rates['flops_per_s']}
        assert least[layer['bound_by']] == max(least.values())
    sums = {row['operator']: row for row in batch['operators']}
    assert sums['Conv']['layers'] == 1 and sums['Conv']['ms'] == conv['ms']
    assert [layer['ms'] for layer in batch['layers']] == sorted((layer['ms'] for layer in batch['layers']), reverse=True)
    text = bench(saccade, model, '--layers').stdout
    assert re.search(r'^measured +[\d.]+ GB/s of a copy, [\d.]+ TFLOP/s of a product, [\d.]+ us a step$', text, re.M)
    assert re.search(r'^  the/conv +Conv +\S.* (matrix|memory|launch)$', text, re.M)
    assert re.search(r'^  Conv +1 +[\d.]+ +[\d.]+%', text, re.M) and re.search(r'^  all +[2-9] ', text, re.M)


def test_bench_takes_sizes_that_the_file_leaves_open(saccade, tmp_path):
    model = save(tmp_path / 'open.onnx', [helper.make_node('Relu', ['x'], ['y'])],
                 [value('x', ['n', 3, 'h', 'w'])], [value('y', ['n', 3, 'h', 'w'])])
    fails(saccade('bench', model), 2, "'x'", '--shape x=1,3,640,640')
    for shape in 'x=1,3,8,16', '1,3,8,16':
        report = json.loads(bench(saccade, model, '--shape', shape, '--batch', '1,2', '--layers', '--json').stdout)
        assert [row['layers'][0]['flops'] for row in report['batches']] == [384, 768]
    fails(saccade('bench', model, '--shape', 'z=1,3,8,8'), 2, "'z'", 'it has x')
    fails(saccade('bench', model, '--shape', 'x=1,4,8,8'), 2, 'does not fit', '[?,3,?,?]')
    fails(saccade('bench', model, '--shape', 'x=1,3,8'), 2, 'does not fit')
    fails(saccade('bench', model, '--shape', 'x=1,3,a,b'), 2, "'x=1,3,a,b'")


def test_bench_names_what_is_wrong(saccade, two_by_two, tmp_path):
    fails(saccade('bench', '/nowhere/net.onnx'), 1, '/nowhere/net.onnx')
    for batch in '0', '1,,2', 'x', '1,', '-1', '99999999999':
        fails(saccade('bench', two_by_two, f'--batch={batch}'), 2, batch, '1,8,32')
    fails(saccade('bench', two_by_two, '--precision', 'fp16', '--device', 'cpu'), 1, 'fp16 needs a GPU')
    fixed = save(tmp_path / 'fixed.onnx', [helper.make_node('Relu', ['x'], ['y'])],
                 [value('x', [2, 3, 8, 8])], [value('y', [2, 3, 8, 8])])
    fails(saccade('bench', fixed, '--batch', '1,2'), 2, 'a batch of 2 of its own')
    assert 'batch 2 ' in bench(saccade, fixed).stdout
    fails(saccade('infer', two_by_two, '--layers'), 2, "--layers is in 'saccade bench' now")


def test_inspect_names_what_fp16_is_too_narrow_for(saccade, program, tmp_path):
    """On the device of the tests, which has FP16."""
    folder = pathlib.Path(program).resolve().parents[2] / 'tests/engine'
    if not (folder / 'libsaccade-cuda.so').exists():
        pytest.skip('the plug-in of the tests is not built')
    model = save(tmp_path / 'net.onnx',
                 [helper.make_node('Mul', ['x', 'c'], ['large'], name='enlarged'),
                  helper.make_node('MaxPool', ['large'], ['most'], kernel_shape=[2, 2], name='most'),  # or all were one step
                  helper.make_node('Div', ['most', 'c'], ['d'], name='divided'),
                  helper.make_node('Tanh', ['d'], ['y'], name='bounded')],
                 [value('x', [1, 1, 8, 8])], [value('y', [1, 1, 7, 7])], [('c', numpy.array([1e5], numpy.float32))])
    device = {'SACCADE_PLUGIN_PATH': str(folder), 'SACCADE_CACHE': ''}
    run = saccade('inspect', model, '--device', 'cuda', env=device)
    assert run.returncode == 0, run.stderr
    assert re.search(r'^in float32  3 steps.*\n +layer 0 \(Mul .*\n +layer 1 \(MaxPool .*\n +layer 3 \(Chain ', run.stdout, re.M)
    report = json.loads(saccade('inspect', model, '--device', 'cuda', '--json', env=device).stdout)
    assert len(report['wide_steps']) == 3 and "'enlarged'" in report['wide_steps'][0]
    assert 'in float32' not in saccade('inspect', model, '--device', 'cuda', '--precision', 'fp32', env=device).stdout
    assert 'in float32' not in saccade('inspect', model, '--device', 'cpu').stdout


def test_build_calibrates_with_pictures_or_a_video(saccade, program, clip, video, tmp_path):
    """On the device of the tests, which has FP16. What inspect tells of the plan, it tells on every device."""
    folder = pathlib.Path(program).resolve().parents[2] / 'tests/engine'
    if not (folder / 'libsaccade-cuda.so').exists():
        pytest.skip('the plug-in of the tests is not built')
    model = save(tmp_path / 'net.onnx',
                 [helper.make_node('Mul', ['x', 'c'], ['large'], name='enlarged'),
                  helper.make_node('MaxPool', ['large'], ['most'], kernel_shape=[2, 2], name='most'),  # or these were one step
                  helper.make_node('Div', ['most', 'c'], ['d'], name='divided'),
                  helper.make_node('GlobalAveragePool', ['d'], ['p']),
                  helper.make_node('Flatten', ['p'], ['y'])],
                 [value('x', ['n', 3, 32, 32])], [value('y', ['n', 3])], [('c', numpy.array([3e4], numpy.float32))])
    env = {'SACCADE_PLUGIN_PATH': str(folder), 'SACCADE_CACHE': ''}
    plan = tmp_path / 'net.plan'
    for data, sample in (clip / 'img', '/img/'), (video, 'frame '):
        run = saccade('build', model, '-o', plan, '--device', 'cuda', '--precision', 'fp16', '--calibrate', data, env=env)
        assert run.returncode == 0, run.stderr
        assert f'3 of 5 steps stay in float32 in FP16: calibrated on the CPU with {FRAMES} samples of {data}' in run.stderr
        text = saccade('inspect', plan).stdout
        assert re.search(rf'^calibrated  with {FRAMES} samples of {re.escape(str(data))}\n'
                         rf"in float32  3 steps.*\n +layer 0 \(Mul 'enlarged'\): up to \S+ in .*{sample}.*\n"
                         r' +layer 1 \(MaxPool .*\n +layer 2 \(Div ',
                         text, re.M), text
        report = json.loads(saccade('inspect', plan, '--json').stdout)
        assert report['calibration'] == f'{FRAMES} samples of {data}' and len(report['wide_steps']) == 3
    assert json.loads(saccade('inspect', model, '--json').stdout)['calibration'] is None
    plan.unlink()
    fails(saccade('build', model, '-o', plan, '--device', 'cuda', '--calibrate', model, env=env), 1, 'net.onnx: not a video')
    fails(saccade('build', model, '-o', plan, '--device', 'cuda', '--calibrate', tmp_path / 'none', env=env), 1, 'none: No such')
    assert not plan.exists()


@pytest.mark.parametrize('model', sorted((ROOT / 'tests/models').glob('*.onnx')), ids=lambda path: path.stem)
def test_no_operator_of_a_common_export_is_in_plain_c(saccade, model):
    run = saccade('inspect', model)
    table = run.stdout[run.stdout.index('operator  '):].splitlines()
    plain = {line.split()[0] for line in table if 'plain C' in line}
    if any('cpu avx' in line for line in table):
        assert plain <= {'TopK', 'GatherElements'}  # of some hundred numbers
        assert sum('cpu avx' in line or 'folded' in line for line in table) >= 4
    else:
        pytest.skip('a CPU without AVX2')


def image(rank):
    return [helper.make_node('Conv', ['x', 'w'], ['c'], pads=[1] * 2 * (rank - 2)), helper.make_node('Relu', ['c'], ['r'])]


AWKWARD = {
    'means of a map of three dims, channels last': (5, [helper.make_node('Transpose', ['x'], ['t'], perm=[0, 4, 1, 2, 3]),
                                                        helper.make_node('Relu', ['t'], ['r']),
                                                        helper.make_node('ReduceMean', ['r'], ['y'], axes=[2, 3, 4], keepdims=0)], {}),
    'an exponent of more dims, of lines': (3, [*image(3), helper.make_node('Pow', ['r', 'e'], ['y'])], {'e': numpy.full((1, 1, 1, 1), 2, numpy.float32)}),
    'an exponent of more dims, of maps': (4, [*image(4), helper.make_node('Pow', ['r', 'e'], ['y'])], {'e': numpy.full((1, 1, 1, 1, 1), 3, numpy.float32)}),
    'the largest of lines of a map': (4, [*image(4), helper.make_node('ReduceMax', ['r'], ['y'], axes=[3], keepdims=0)], {}),
    'the largest of channels': (4, [*image(4), helper.make_node('ReduceMax', ['r'], ['y'], axes=[1])], {}),
    'sums of channels and lines': (4, [*image(4), helper.make_node('ReduceL2', ['r'], ['y'], axes=[1, 3], keepdims=0)], {}),
    'one channel far from zero': (4, [helper.make_node('Conv', ['x', 'one', 'far'], ['c']), helper.make_node('InstanceNormalization', ['c', 's', 'b'], ['y'])],
                                  {'one': numpy.full((1, 4, 1, 1), 0.05, numpy.float32), 'far': numpy.full(1, 1000, numpy.float32),
                                   's': numpy.ones(1, numpy.float32), 'b': numpy.zeros(1, numpy.float32)}),
}


@pytest.mark.parametrize('name', AWKWARD)
def test_kernels_beside_the_reference(saccade, tmp_path, name):
    rank, nodes, weights = AWKWARD[name]
    shape = {3: [2, 4, 33], 4: [2, 4, 65, 64], 5: [2, 4, 5, 6, 8]}[rank]
    weights = dict(weights)
    if rank < 5:
        weights['w'] = random.standard_normal((16, 4, *[3] * (rank - 2))).astype(numpy.float32)
    model = save(tmp_path / 'net.onnx', nodes, [value('x', ['n', *shape[1:]])], [value('y', None)], weights.items())
    numpy.save(tmp_path / 'x.npy', random.standard_normal(shape).astype(numpy.float32))
    numbers = []
    for more in ([], ['--reference']):
        run = saccade('infer', model, '-i', tmp_path / 'x.npy', '-o', tmp_path / 'out', '-d', 'cpu', *more)
        assert run.returncode == 0, run.stderr
        numbers.append(numpy.load(tmp_path / 'out/y.npy'))
    numpy.testing.assert_allclose(*numbers, rtol=1e-4, atol=5e-3 if 'far' in name else 1e-4)
