# SPDX-License-Identifier: Apache-2.0
"""saccade segment: what it writes, and what it says when it can't."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import jsonschema
import numpy
import onnx
import onnx.helper as make
import pytest

from support import FRAMES, HEIGHT, WIDTH, box_at, fails

ROOT = pathlib.Path(__file__).resolve().parents[2]
GROUND, SQUARE = (60, 60, 60), (200, 120, 40)  # the clip's colours


def network(path, classes=0, sure=1):
    """Sees the clip's square: one number a pixel, or classes of which number 1 is the square."""
    weights = numpy.zeros((classes or 1, 3, 1, 1), numpy.float32)
    weights[-1 if not classes else 1, :, 0, 0] = 8 * sure, 0, -8 * sure
    bias = numpy.full(classes or 1, -3 * sure, numpy.float32)
    bias[:classes > 0] = 0
    nodes = [make.make_node('Conv', ['picture', 'w', 'b'], ['numbers'])]
    out = 'numbers'
    if not classes:
        nodes.append(make.make_node('Sigmoid', ['numbers'], ['matte']))
        out = 'matte'
    graph = make.make_graph(
        nodes, 'square', [make.make_tensor_value_info('picture', onnx.TensorProto.FLOAT, ['n', 3, 120, 160])],
        [make.make_tensor_value_info(out, onnx.TensorProto.FLOAT, ['n', classes or 1, 120, 160])],
        [onnx.numpy_helper.from_array(weights, 'w'), onnx.numpy_helper.from_array(bias, 'b')])
    model = make.make_model(graph, opset_imports=[make.make_opsetid('', 17)], ir_version=8)
    preprocess = model.metadata_props.add()
    preprocess.key, preprocess.value = 'saccade.preprocess', 'mean=0,scale=0.00392157,stretch'
    onnx.save(model, path)
    return path


def instances(path):
    """A box with the whole picture, and prototypes of which one sees the clip's square."""
    rows = numpy.zeros((1, 5, 8), numpy.float32)
    rows[0, 0] = 0, 0, 160, 120, 0.9, 3, 1, 0
    rows[0, 1] = 0, 0, 80, 60, 0.2, 3, 0, 9  # unlikely: it counts for nothing
    weights = numpy.zeros((2, 3, 1, 1), numpy.float32)
    weights[0, :, 0, 0] = 8, 0, -8
    values = {'w': weights, 'b': numpy.array([-3, 1], numpy.float32), 'rows': rows, 'zero': numpy.zeros(1, numpy.float32)}
    nodes = [make.make_node('Conv', ['picture', 'w', 'b'], ['output1']),
             make.make_node('ReduceMean', ['output1'], ['mean'], axes=[1, 2, 3]),
             make.make_node('Mul', ['mean', 'zero'], ['nothing']),
             make.make_node('Squeeze', ['nothing', 'last'], ['column']),
             make.make_node('Add', ['rows', 'column'], ['output0'])]
    values['last'] = numpy.array([3], numpy.int64)
    graph = make.make_graph(
        nodes, 'instances', [make.make_tensor_value_info('picture', onnx.TensorProto.FLOAT, ['n', 3, 120, 160])],
        [make.make_tensor_value_info('output0', onnx.TensorProto.FLOAT, ['n', 5, 8]),
         make.make_tensor_value_info('output1', onnx.TensorProto.FLOAT, ['n', 2, 120, 160])],
        [onnx.numpy_helper.from_array(v, k) for k, v in values.items()])
    model = make.make_model(graph, opset_imports=[make.make_opsetid('', 17)], ir_version=8)
    for key, value in {'task': 'segment', 'names': str({i: name for i, name in enumerate('abcdef')})}.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.save(model, path)
    return path


# x0, y0, x1, y1 of 160 x 160 pixels, score, class: two people who overlap, a dog at the edge, what is unlikely, and one whose
# mask is empty.
CROWD = [(20.3, 40, 90, 130, 0.95, 0), (60, 30.2, 130, 118.3, 0.9, 0), (100, 70, 170, 150, 0.8, 1), (5, 50, 60, 90, 0.2, 0),
         (10, 30, 50, 60, 0.7, 0)]


def crowd(path, names="{0: 'person', 1: 'dog'}", side=160, cells=40, numbers=4):
    """CROWD, whatever the picture shows; returns the prototypes [n,cells,cells] and each one's coefficients."""
    draw = numpy.random.default_rng(5)
    y, x = numpy.mgrid[:cells, :cells] / cells
    waves = [numpy.sin(2 * numpy.pi * (draw.uniform(0.5, 3) * x + draw.uniform(0.5, 3) * y) + draw.uniform(0, 6)) for _ in range(numbers - 1)]
    prototypes = numpy.array([numpy.ones_like(x), *waves], numpy.float32)
    coefficients = draw.uniform(-3, 3, (len(CROWD), numbers)).astype(numpy.float32)
    coefficients[:, 0] = 1.5
    coefficients[-1] = -9, 0, 0, 0
    rows = numpy.array([[*box, *c] for box, c in zip(CROWD, coefficients)], numpy.float32)[None]
    values = {'rows': rows, 'prototypes': prototypes[None], 'zero': numpy.zeros(1, numpy.float32),
              'axes': numpy.array([-1, 1, 1], numpy.int64), 'axes4': numpy.array([-1, 1, 1, 1], numpy.int64)}
    nodes = [make.make_node('ReduceMean', ['picture'], ['mean'], axes=[1, 2, 3], keepdims=0),
             make.make_node('Mul', ['mean', 'zero'], ['nothing']),
             make.make_node('Reshape', ['nothing', 'axes'], ['no_rows']), make.make_node('Add', ['rows', 'no_rows'], ['output0']),
             make.make_node('Reshape', ['nothing', 'axes4'], ['no_maps']), make.make_node('Add', ['prototypes', 'no_maps'], ['output1'])]
    graph = make.make_graph(
        nodes, 'crowd', [make.make_tensor_value_info('picture', onnx.TensorProto.FLOAT, ['n', 3, side, side])],
        [make.make_tensor_value_info('output0', onnx.TensorProto.FLOAT, ['n', len(CROWD), 6 + numbers]),
         make.make_tensor_value_info('output1', onnx.TensorProto.FLOAT, ['n', numbers, cells, cells])],
        [onnx.numpy_helper.from_array(v, k) for k, v in values.items()])
    model = make.make_model(graph, opset_imports=[make.make_opsetid('', 13)], ir_version=8)
    for key, value in {'task': 'segment', 'names': names}.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.save(model, path)
    return prototypes, coefficients


def native_masks(prototypes, coefficients, width, height, side=160):
    """As Ultralytics makes masks for COCO (process_mask_native): the sums without the letterbox's border, interpolated to the
    frame (bilinear, align_corners=False), cut at the box, over 0. For each of CROWD: box, mask, and where it is too near to tell."""
    cells = prototypes.shape[1]
    gain = min(side / width, side / height)
    left, top = (side - width * gain) / 2, (side - height * gain) / 2
    first_x, first_y = round(left * cells / side), round(top * cells / side)
    sums = numpy.einsum('bk,kyx->byx', coefficients.astype(float), prototypes.astype(float))
    sums = sums[:, first_y:cells - first_y, first_x:cells - first_x]

    def taps(pixels, count):
        at = numpy.maximum((numpy.arange(pixels) + 0.5) * count / pixels - 0.5, 0)
        low = numpy.minimum(at.astype(int), count - 1)
        return low, numpy.minimum(low + 1, count - 1), at - low
    (y0, y1, wy), (x0, x1, wx) = taps(height, sums.shape[1]), taps(width, sums.shape[2])
    rows = sums[:, y0] * (1 - wy)[:, None] + sums[:, y1] * wy[:, None]
    full = rows[..., x0] * (1 - wx) + rows[..., x1] * wx
    out = []
    for box, one in zip(CROWD, full):
        a, b, c, d = (numpy.array(box[:4]) - (left, top) * 2) / gain
        y, x = numpy.mgrid[:height, :width]
        cut = (x >= a) & (x < c) & (y >= b) & (y < d)
        out.append(((max(a, 0), max(b, 0), min(c, width), min(d, height)), cut & (one > 0), cut & (abs(one) < 2e-3)))
    return out


@pytest.fixture(scope='module')
def square(tmp_path_factory):
    return network(tmp_path_factory.mktemp('square') / 'square.onnx')


def frames_of(path, pixels='rgb24', width=WIDTH):
    """[n,h,w,...] of a video or a pattern of pictures."""
    size = {'rgb24': (3,), 'rgba': (4,), 'gray': ()}[pixels]
    run = subprocess.run(['ffmpeg', '-v', 'error', '-i', path, '-f', 'rawvideo', '-pix_fmt', pixels, '-'],
                         capture_output=True, check=True)
    return numpy.frombuffer(run.stdout, numpy.uint8).reshape(-1, HEIGHT, width, *size)


def inside(frame):
    """The clip's square, [h,w] of bool."""
    x, y, w, h = box_at(frame)
    mask = numpy.zeros((HEIGHT, WIDTH), bool)
    mask[y:y + h, x:x + w] = True
    return mask


def segment(saccade, *args, **more):
    run = saccade('segment', *args, **more)
    assert run.returncode == 0, run.stderr
    return run


def near(pixels, colour, off=12):
    return abs(pixels.astype(int) - colour).max() <= off


def iou(found, wanted):
    return (found & wanted).sum() / (found | wanted).sum()


def test_mask_is_a_grey_video(saccade, video, square, tmp_path):
    run = segment(saccade, video, '--model', square, '--as', 'mask', '-o', tmp_path / 'm.mp4')
    assert re.search(r'mattes of square.onnx', run.stderr) and f'{FRAMES} frames' in run.stderr
    assert 'object' not in run.stderr
    masks = frames_of(tmp_path / 'm.mp4', 'gray')
    assert len(masks) == FRAMES
    for i in range(FRAMES):
        assert iou(masks[i] >= 128, inside(i)) > 0.93, i
        assert masks[i][5, 5] <= 8 and masks[i][box_at(i)[1] + 40, box_at(i)[0] + 20] >= 247


def test_pictures_and_records_say_the_same(saccade, video, square, tmp_path):
    segment(saccade, video, '--model', square, '--as', 'png', '-o', tmp_path / 'pngs')
    assert sorted(p.name for p in (tmp_path / 'pngs').iterdir()) == [f'{i:06d}.png' for i in range(FRAMES)]
    pictures = frames_of(tmp_path / 'pngs/%06d.png', 'gray')
    segment(saccade, video, '--model', square, '--as', 'coco', '-o', tmp_path / 'r.json')
    records = json.loads((tmp_path / 'r.json').read_text())
    assert [r['image_id'] for r in records] == list(range(1, FRAMES + 1))
    for record, picture in zip(records, pictures):
        assert record['category_id'] == 1 and 0.5 <= record['score'] <= 1
        assert record['segmentation']['size'] == [HEIGHT, WIDTH]
        assert (decode(record['segmentation']) == (picture >= 128)).all()


def test_nobody_is_there(saccade, square, tmp_path):
    (tmp_path / 'img').mkdir()
    for i in range(8):
        (tmp_path / f'img/{i:05d}.ppm').write_bytes(b'P6 %d %d 255\n' % (WIDTH, HEIGHT) + bytes(GROUND) * (WIDTH * HEIGHT))
    for kind, name in (('mask', 'm.mkv'), ('coco', 'r.json'), ('png', 'pngs'), ('cutout', 'c.mkv')):
        segment(saccade, tmp_path / 'img', '--model', square, '--as', kind, '-o', tmp_path / name)
    assert len(frames_of(tmp_path / 'm.mkv', 'gray')) == 8 and frames_of(tmp_path / 'm.mkv', 'gray').max() <= 2
    assert json.loads((tmp_path / 'r.json').read_text()) == []
    assert frames_of(tmp_path / 'pngs/%06d.png', 'gray').max() == 0
    assert near(frames_of(tmp_path / 'c.mkv'), frames_of(tmp_path / 'c.mkv')[0, 0, 0])  # the background alone


def test_a_size_that_changes(saccade, clip, square, tmp_path):
    """Mattes are of the frame's size, and are written in the first one's, as the pictures are."""
    for i, size in enumerate((f'{WIDTH}x{HEIGHT}', f'{WIDTH // 2}x{HEIGHT // 2}', f'{WIDTH}x{HEIGHT}')):
        subprocess.run(['ffmpeg', '-v', 'error', '-start_number', str(10 * i + 1), '-i', clip / 'img/%05d.ppm', '-frames:v', '10', '-s', size,
                        '-pix_fmt', 'yuv420p', '-c:v', 'libx264', '-bf', '0', tmp_path / f'{i}.h264'], check=True)
    (tmp_path / 'sizes.h264').write_bytes(b''.join((tmp_path / f'{i}.h264').read_bytes() for i in range(3)))
    for smooth in ('0', '0.95'):
        segment(saccade, tmp_path / 'sizes.h264', '--model', square, '--smooth', smooth, '--as', 'mask', '-o', tmp_path / 'm.mkv')
        masks = frames_of(tmp_path / 'm.mkv', 'gray')
        assert len(masks) == 30
        assert min(iou(masks[i] >= 128, inside(i)) for i in range(30)) > 0.9


def test_masks_of_boxes_are_a_matte(saccade, video, tmp_path):
    model = instances(tmp_path / 'i.onnx')
    run = segment(saccade, video, '--model', model, '--as', 'mask', '-o', tmp_path / 'm.mp4')
    assert 'keeps all' not in run.stderr  # which it does
    for i, mask in enumerate(frames_of(tmp_path / 'm.mp4', 'gray')):
        assert iou(mask >= 128, inside(i)) > 0.93, i
    segment(saccade, video, '--model', model, '--classes', 'd', '--as', 'coco', '-o', tmp_path / 'r.json')
    records = json.loads((tmp_path / 'r.json').read_text())
    assert len(records) == FRAMES and all(r['category_id'] == 4 for r in records)
    assert iou(decode(records[10]['segmentation']), inside(10)) > 0.93
    segment(saccade, video, '--model', model, '--classes', 'a', '--as', 'coco', '-o', tmp_path / 'none.json')
    assert json.loads((tmp_path / 'none.json').read_text()) == []
    segment(saccade, video, '--model', model, '--as', 'classes', '-o', tmp_path / 'o.mp4', '--crf', 5)
    before, after = frames_of(video), frames_of(tmp_path / 'o.mp4')
    assert iou(abs(after[10].astype(int) - before[10]).max(2) > 25, inside(10)) > 0.85


@pytest.mark.parametrize('classes, kept', [(None, (0, 1)), ('all', (0, 1, 2)), ('dog', (2,))])
def test_each_instance_has_a_record(saccade, video, tmp_path, classes, kept):
    wanted = native_masks(*crowd(tmp_path / 'c.onnx'), WIDTH, HEIGHT)
    segment(saccade, video, '--model', tmp_path / 'c.onnx', '--as', 'coco', '-o', tmp_path / 'r.json',
            *(['--classes', classes] if classes else []))
    records = json.loads((tmp_path / 'r.json').read_text())
    assert [r['image_id'] for r in records] == [i for i in range(1, FRAMES + 1) for _ in kept]
    masks = []
    for record, i in zip(records[-len(kept):], kept):
        (x0, y0, x1, y1), mask, unsure = wanted[i]
        assert record['category_id'] == (1, 1, 18)[i] and abs(record['score'] - CROWD[i][4]) < 1e-4
        assert numpy.allclose(record['bbox'], (x0, y0, x1 - x0, y1 - y0), atol=0.01)
        masks.append(decode(record['segmentation']))
        assert masks[-1].shape == (HEIGHT, WIDTH) and unsure.sum() < 0.02 * mask.sum()
        assert ((masks[-1] == mask) | unsure).all() and mask.sum() > 2000
        assert record['area'] == masks[-1].sum()
    if len(kept) > 1:  # each is whole
        assert (masks[0] & masks[1]).sum() > 500


def test_instances_of_each_eye(saccade, video, tmp_path):
    """Beside each other both eyes have what one has alone, at their place in the frame; masks are scored from the file."""
    crowd(tmp_path / 'c.onnx', "{0: 'person', 1: 'tent'}")
    subprocess.run(['ffmpeg', '-v', 'error', '-i', video, '-filter_complex', '[0:v][0:v]hstack', '-c:v', 'ffv1', '-frames:v', '3',
                    '-an', tmp_path / 'both.mkv'], check=True)
    found = {}
    for name, path, layout in ('one', video, 'mono'), ('both', tmp_path / 'both.mkv', 'sbs'):
        segment(saccade, path, '--model', tmp_path / 'c.onnx', '--as', 'coco', '--classes', 'all', '--stereo', layout,
                '--duration', 0.15, '-o', tmp_path / f'{name}.json')
        found[name] = [r for r in json.loads((tmp_path / f'{name}.json').read_text()) if r['image_id'] == 2]
    assert len(found['one']) == 3 and len(found['both']) == 6
    assert [r['category_id'] for r in found['one']] == [1, 1, 2]  # not all are COCO's
    nothing = numpy.zeros((HEIGHT, WIDTH), bool)
    for i, record in enumerate(found['both']):
        alone = found['one'][i % 3]
        mask = decode(alone['segmentation'])
        assert (decode(record['segmentation']) == numpy.hstack([nothing, mask] if i >= 3 else [mask, nothing])).all()
        assert record['bbox'] == [alone['bbox'][0] + (WIDTH if i >= 3 else 0), *alone['bbox'][1:]]
        assert record['area'] == alone['area'] and record['score'] == alone['score']
    # Ground truth with the same masks, each category's in one picture.
    truth = [{**{k: r[k] for k in ('image_id', 'category_id', 'segmentation')}, 'id': i, 'iscrowd': 0} for i, r in
             enumerate(json.loads((tmp_path / 'one.json').read_text()))]
    (tmp_path / 'gt.json').write_text(json.dumps({
        'images': [{'id': i, 'width': WIDTH, 'height': HEIGHT} for i in {t['image_id'] for t in truth}], 'annotations': truth,
        'categories': [{'id': 1, 'name': 'person'}, {'id': 2, 'name': 'tent'}]}))
    run = saccade('eval', '--gt', tmp_path / 'gt.json', '--masks', tmp_path / 'one.json', '--json')
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)['combined']['iou'] == 1


def test_instances_need_every_frame(saccade, clip, square, tmp_path):
    crowd(tmp_path / 'c.onnx')
    run = segment(saccade, clip / 'img', '--model', tmp_path / 'c.onnx', '--as', 'coco', '--skip-still', 0.5, '-o', tmp_path / 'r.json')
    assert 'sees all frames, as instances cannot be moved along' in run.stderr
    assert len(json.loads((tmp_path / 'r.json').read_text())) == 2 * FRAMES
    run = saccade('segment', clip / 'img', '--model', tmp_path / 'c.onnx', '--as', 'coco', '--small-model', square, '-o', tmp_path / 'x.json')
    assert run.returncode == 2 and 'its answer has no instances' in run.stderr and not (tmp_path / 'x.json').exists()


@pytest.mark.parametrize('looks', [('--projection', 'fisheye'), ('--scales', '0.5,1')])
def test_looks_have_one_mask_a_frame(saccade, clip, tmp_path, looks):
    crowd(tmp_path / 'c.onnx')
    run = segment(saccade, clip / 'img', '--model', tmp_path / 'c.onnx', '--as', 'coco', *looks, '--duration', 0.1,
                  '-o', tmp_path / 'r.json')
    assert 'not put together from facets or scales' in run.stderr
    records = json.loads((tmp_path / 'r.json').read_text())
    assert records and all('bbox' not in r for r in records)
    assert len({r['image_id'] for r in records}) == len(records)


def decode(rle):
    """COCO's compressed run lengths."""
    runs, at, text = [], 0, rle['counts'].encode()
    while at < len(text):
        value, shift, more = 0, 0, True
        while more:
            c = text[at] - 48
            value |= (c & 31) << shift
            more, at, shift = bool(c & 32), at + 1, shift + 5
        if c & 16:
            value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
    flat = numpy.repeat(numpy.arange(len(runs)) % 2 == 1, runs)
    return flat.reshape(rle['size'][::-1]).T


def test_overlay_tints_the_square_alone(saccade, video, square, tmp_path):
    segment(saccade, video, '--model', square, '-o', tmp_path / 'o.mp4', '--crf', 5)
    before, after = frames_of(video), frames_of(tmp_path / 'o.mp4')
    x, y, w, h = box_at(10)
    assert near(after[10][5:40, 5:100], GROUND) and not near(after[10][y + 30, x + 20], SQUARE)
    tinted = (before[10][y + 30, x + 20].astype(int) + (0, 177, 64)) / 2
    assert near(after[10][y + 30, x + 20], tinted, 14)
    assert iou(abs(after[10].astype(int) - before[10]).max(2) > 30, inside(10)) > 0.8  # with its outline


@pytest.mark.parametrize('background', ['#ff8000', 'picture', 'blur', 'blur:3'])
def test_cutout_over(saccade, video, square, clip, tmp_path, background):
    if background == 'picture':
        (tmp_path / 'b.ppm').write_bytes(b'P6 2 1 255\n' + bytes((255, 0, 0, 0, 0, 255)))
    segment(saccade, video, '--model', square, '--as', 'cutout', '-o', tmp_path / 'o.mp4', '--crf', 5, '--background',
            tmp_path / 'b.ppm' if background == 'picture' else background)
    out = frames_of(tmp_path / 'o.mp4')
    x, y, w, h = box_at(10)
    assert near(out[10][y + 20:y + 60, x + 15:x + 30], SQUARE, 16)
    if background == '#ff8000':
        assert near(out[10][5:40, 5:100], (255, 128, 0), 16)
    elif background == 'picture':  # the middle of it, as wide as the frame
        assert out[10][10, 10][0] > 150 or out[10][10, 10][2] > 150
    else:
        assert near(out[10][5:20, 5:15], GROUND)


@pytest.mark.parametrize('ending', ['mkv', 'mov', 'webm'])
def test_alpha_is_in_the_file(saccade, video, square, tmp_path, ending):
    segment(saccade, video, '--model', square, '--as', 'alpha', '-o', tmp_path / f'a.{ending}')
    decoder = ['-c:v', 'libvpx-vp9'] if ending == 'webm' else []  # FFmpeg's own VP9 decoder drops alpha
    run = subprocess.run(['ffmpeg', '-v', 'error', *decoder, '-i', tmp_path / f'a.{ending}', '-f', 'rawvideo',
                          '-pix_fmt', 'rgba', '-'], capture_output=True, check=True)
    frames = numpy.frombuffer(run.stdout, numpy.uint8).reshape(-1, HEIGHT, WIDTH, 4)
    assert len(frames) == FRAMES
    assert iou(frames[20][..., 3] >= 128, inside(20)) > 0.93
    x, y, w, h = box_at(20)
    assert near(frames[20][y + 30, x + 20, :3], SQUARE, 16) and near(frames[20][10, 10, :3], GROUND, 16)


def test_packed_below_the_picture(saccade, video, square, tmp_path):
    segment(saccade, video, '--model', square, '--as', 'alpha-packed', '-o', tmp_path / 'o.mp4', '--crf', 5)
    assert json.loads(saccade('inspect', tmp_path / 'o.mp4', '--json').stdout)['height'] == 2 * HEIGHT
    run = subprocess.run(['ffmpeg', '-v', 'error', '-i', tmp_path / 'o.mp4', '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-'],
                         capture_output=True, check=True)
    frames = numpy.frombuffer(run.stdout, numpy.uint8).reshape(-1, 2 * HEIGHT, WIDTH, 3)
    assert len(frames) == FRAMES
    assert near(frames[10][:HEIGHT][10, 10], GROUND) and iou(frames[10][HEIGHT:, :, 1] >= 128, inside(10)) > 0.9
    run = saccade('segment', video, '--model', square, '--as', 'alpha-packed', '--projection', 'fisheye',
                  '-o', tmp_path / 'x.mp4')  # its eyes are not square
    assert run.returncode == 2 and 'square' in run.stderr and not (tmp_path / 'x.mp4').exists()
    assert 'frames:' not in run.stderr  # before the first


@pytest.mark.parametrize('stereo, stack', [('sbs', 'hstack'), ('tb', 'vstack')])
def test_each_eye_has_the_matte_that_it_has_alone(saccade, video, square, tmp_path, stereo, stack):
    lossless = ['-c:v', 'ffv1', '-pix_fmt', 'yuv420p', '-an']
    for name, way in ('left', 'null'), ('right', 'hflip,eq=brightness=0.05'):
        subprocess.run(['ffmpeg', '-v', 'error', '-i', video, '-vf', way, *lossless, tmp_path / f'{name}.mkv'], check=True)
    subprocess.run(['ffmpeg', '-v', 'error', '-i', tmp_path / 'left.mkv', '-i', tmp_path / 'right.mkv', '-filter_complex',
                    stack, *lossless, tmp_path / 'both.mkv'], check=True)
    mattes = {}
    for name, layout in ('left', 'mono'), ('right', 'mono'), ('both', stereo):
        segment(saccade, tmp_path / f'{name}.mkv', '-o', tmp_path / name, '--as', 'png', '--model', square, '--stereo', layout)
        run = subprocess.run(['ffmpeg', '-v', 'error', '-i', tmp_path / name / '%06d.png', '-f', 'rawvideo', '-pix_fmt', 'gray',
                              '-'], capture_output=True, check=True)
        mattes[name] = numpy.frombuffer(run.stdout, numpy.uint8).reshape(FRAMES, -1)
    shape = FRAMES, HEIGHT, WIDTH
    left, right = mattes['left'].reshape(shape), mattes['right'].reshape(shape)
    assert left.max() == right.max() == 255 and (left != right).any()
    halves = numpy.concatenate([left, right], axis=2 if stereo == 'sbs' else 1)
    assert (mattes['both'] == halves.reshape(FRAMES, -1)).all()


def test_eyes_need_whole_halves(saccade, video, square, tmp_path):
    subprocess.run(['ffmpeg', '-v', 'error', '-i', video, '-vf', f'crop={WIDTH - 1}:{HEIGHT}:exact=1', '-pix_fmt', 'bgr0', '-c:v',
                    'ffv1', '-an', tmp_path / 'odd.mkv'], check=True)
    run = saccade('segment', tmp_path / 'odd.mkv', '-o', tmp_path / 'm.mp4', '--stereo', 'sbs', '--model', square)
    assert run.returncode == 1 and 'frames:' not in run.stderr  # before the first
    assert 'no two eyes side by side' in run.stderr and 'its width must be a multiple of 2' in run.stderr
    assert not (tmp_path / 'm.mp4').exists()


def test_classes_have_colours_of_their_own(saccade, video, tmp_path):
    model = network(tmp_path / 'c.onnx', classes=3)
    segment(saccade, video, '--model', model, '--head', 'semantic', '--as', 'classes', '-o', tmp_path / 'o.mp4', '--crf', 5)
    before, after = frames_of(video), frames_of(tmp_path / 'o.mp4')
    assert iou(abs(after[10].astype(int) - before[10]).max(2) > 25, inside(10)) > 0.85


def test_times_and_sound_are_kept(saccade, square, tmp_path):
    source = tmp_path / 's.mp4'
    subprocess.run(['ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', f'testsrc=size={WIDTH}x{HEIGHT}:rate=15:duration=1',
                    '-f', 'lavfi', '-i', 'sine=duration=1', '-c:v', 'mpeg4', '-c:a', 'aac', source], check=True)
    segment(saccade, source, '--model', square, '--as', 'mask', '-o', tmp_path / 'o.mp4')
    said = [json.loads(saccade('inspect', path, '--json').stdout) for path in (source, tmp_path / 'o.mp4')]
    kinds = [[s['kind'] for s in info['streams']] for info in said]
    assert kinds[0] == kinds[1]
    assert said[0]['fps'] == said[1]['fps'] and said[0]['duration_s'] == pytest.approx(said[1]['duration_s'], abs=0.1)


def test_several_inputs_go_to_a_folder(saccade, video, clip, square, tmp_path):
    out = tmp_path / 'out'
    (tmp_path / 'b.mp4').write_bytes(video.read_bytes())
    run = segment(saccade, video, tmp_path / 'b.mp4', '--model', square, '--as', 'alpha', '-o', f'{out}/')
    assert re.search(r'frames +frames/s +input', run.stderr) and not re.search('objects|boxes', run.stderr)
    assert sorted(p.name for p in out.iterdir()) == ['b.mov', 'clip.mov']
    segment(saccade, video, tmp_path / 'b.mp4', '--model', square, '--as', 'png', '-o', f'{out}/')
    assert len(list((out / 'b').iterdir())) == len(list((out / 'clip').iterdir())) == FRAMES


def test_nothing_is_written_to_measure(saccade, video, square, tmp_path):
    run = segment(saccade, video, '--model', square, '--as', 'none', '--verbose', '--stats', tmp_path / 's.json',
                  cwd=tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ['s.json']
    assert re.search(r'segmenter +\S*square.onnx \(matte\)', run.stderr) and 'boxes ' not in run.stderr
    stats = json.loads((tmp_path / 's.json').read_text())
    jsonschema.Draft202012Validator(json.loads((ROOT / 'docs/stats.schema.json').read_text())).validate(stats)
    assert stats['segmenter'].endswith('square.onnx') and stats['tracker'] is None and stats['detector'] is None
    stages = [s['name'] for s in stats['stages']]
    assert stages == ['decode', 'preprocess', 'inference', 'matte']


def test_still_frames_are_not_looked_at(saccade, video, square, tmp_path):
    """The square walks on: its matte is moved along, and the statistics tell how often."""
    run = segment(saccade, video, '--model', square, '--as', 'png', '-o', tmp_path / 'm', '--skip-still', 0.2,
                  '--skip-max', 3, '--stats', tmp_path / 's.json')
    stats = json.loads((tmp_path / 's.json').read_text())
    jsonschema.Draft202012Validator(json.loads((ROOT / 'docs/stats.schema.json').read_text())).validate(stats)
    assert stats['savings']['still'] == FRAMES * 3 // 4
    assert stats['batches']['frames'] == FRAMES - stats['savings']['still']
    assert f"skipped     {FRAMES * 3 // 4} still frames that the network did not see" in run.stderr
    assert 'compare' in [s['name'] for s in stats['stages']]
    masks = frames_of(tmp_path / 'm/%06d.png', 'gray')
    for i in range(FRAMES):
        assert iou(masks[i] >= 128, inside(i)) > 0.85, i
    run = segment(saccade, video, '--model', square, '--as', 'png', '-o', tmp_path / 'n', '--skip-still', 0.0001,
                  '--stats', tmp_path / 's.json')
    assert json.loads((tmp_path / 's.json').read_text())['savings']['still'] == 0 and 'skipped' not in run.stderr


def test_a_region_follows_the_square(saccade, video, square, tmp_path):
    """A sixteenth of the frame in the network's whole input: its map is finer there, and 0 is elsewhere."""
    run = segment(saccade, video, '--model', square, '--as', 'png', '-o', tmp_path / 'm', '--region',
                  '--region-every', 12, '--stats', tmp_path / 's.json')
    savings = json.loads((tmp_path / 's.json').read_text())['savings']
    assert FRAMES * 0.8 < savings['regions'] < FRAMES and savings['region_share'] < 0.6
    assert f"regions     {savings['regions']} frames of which the network saw a part" in run.stderr
    masks = frames_of(tmp_path / 'm/%06d.png', 'gray')
    for i in range(FRAMES):
        assert iou(masks[i] >= 128, inside(i)) > 0.93, i
        assert masks[i][5, 5] == 0 and masks[i][230, 310] <= 8


def test_a_region_is_a_part_of_each_eye(saccade, video, square, tmp_path):
    """Two eyes that see the same see as much of it as one."""
    both = tmp_path / 'both.mkv'
    subprocess.run(['ffmpeg', '-v', 'error', '-i', video, '-vf', 'split,hstack', '-c:v', 'ffv1', both], check=True)
    shares = []
    for clip, stereo in ((video, 'mono'), (both, 'sbs')):
        segment(saccade, clip, '--model', square, '--as', 'none', '--region', '--stereo', stereo, '--max-batch', 1,
                '--stats', tmp_path / 's.json')
        savings = json.loads((tmp_path / 's.json').read_text())['savings']
        assert savings['regions'] > FRAMES * 0.8
        shares.append(savings['region_share'])
    assert shares[0] == pytest.approx(shares[1], abs=0.02)


def test_the_small_network_answers_where_it_is_sure(saccade, video, square, tmp_path):
    unsure = network(tmp_path / 'unsure.onnx', sure=0.3)
    for small, level, which in ((square, 0.8, 'small'), (unsure, 0.8, 'large'), (unsure, 0, 'small')):
        run = segment(saccade, video, '--model', square, '--small-model', small, '--small-confidence', level, '--as',
                      'png', '-o', tmp_path / f'm{level}{which}', '--stats', tmp_path / 's.json', '--max-batch', 3)
        savings = json.loads((tmp_path / 's.json').read_text())['savings']
        assert {k: savings[k] for k in ('small', 'large')} == {'small': 0, 'large': 0, which: FRAMES}
        assert f'{which:11} {FRAMES} frames that' in run.stderr
    masks = frames_of(tmp_path / 'm0.8large/%06d.png', 'gray')
    assert all(iou(masks[i] >= 128, inside(i)) > 0.93 for i in range(FRAMES))


@pytest.mark.parametrize('how', ['auto', 'none', 'power', 'full'])
def test_batches_are_filled_up_as_asked(saccade, video, square, tmp_path, how):
    """40 frames in batches of 6: six full ones and one of 4."""
    segment(saccade, video, '--model', square, '--as', 'png', '-o', tmp_path / 'm', '--max-batch', 6,
            '--batch-timeout', 5000, '--batch-padding', how, '--stats', tmp_path / 's.json')
    batches = json.loads((tmp_path / 's.json').read_text())['batches']
    assert (batches['count'], batches['frames'], batches['max']) == (7, FRAMES, 6)
    assert batches['padded'] == {'auto': 0, 'none': 0, 'power': 0, 'full': 2}[how]
    masks = frames_of(tmp_path / 'm/%06d.png', 'gray')
    assert all(iou(masks[i] >= 128, inside(i)) > 0.93 for i in range(FRAMES))


def test_a_coarse_look_and_a_fine_one(saccade, video, square, tmp_path):
    """The second network sees the square alone, in its whole input, on the frames that the first one is not sure of."""
    unsure = network(tmp_path / 'unsure.onnx', sure=0.5)
    segment(saccade, video, '--model', square, '--small-model', unsure, '--small-confidence', 0.9, '--region',
            '--as', 'png', '-o', tmp_path / 'm', '--stats', tmp_path / 's.json')
    savings = json.loads((tmp_path / 's.json').read_text())['savings']
    assert savings['large'] == savings['regions'] == FRAMES and savings['region_share'] < 0.6  # also of the first frame
    masks = frames_of(tmp_path / 'm/%06d.png', 'gray')
    for i in range(FRAMES):
        assert iou(masks[i] >= 128, inside(i)) > 0.93, i
        assert masks[i][5, 5] == 0


def test_all_techniques_together(saccade, video, square, tmp_path):
    segment(saccade, video, '--model', square, '--small-model', network(tmp_path / 'u.onnx', sure=0.5), '--region',
            '--skip-still', 0.2, '--skip-max', 1, '--as', 'png', '-o', tmp_path / 'm', '--stats', tmp_path / 's.json')
    savings = json.loads((tmp_path / 's.json').read_text())['savings']
    assert savings['still'] and savings['regions'] and savings['still'] + savings['small'] + savings['large'] == FRAMES
    masks = frames_of(tmp_path / 'm/%06d.png', 'gray')
    assert all(iou(masks[i] >= 128, inside(i)) > 0.8 for i in range(FRAMES))


def test_several_scales_are_averaged(saccade, video, square, tmp_path):
    """Edges are finer than of one look, and the statistics tell in how many images; --scales 1 is that one look."""
    found = {}
    for scales in '', '1', '1,1.75', '0.5,1,2':
        out = tmp_path / f'm{scales}'
        run = segment(saccade, video, '--model', square, '--as', 'png', '-o', out, '--scales', scales, '--smooth', 0,
                      '--guide', 0, '--stats', tmp_path / 's.json')
        stats = json.loads((tmp_path / 's.json').read_text())
        jsonschema.Draft202012Validator(json.loads((ROOT / 'docs/stats.schema.json').read_text())).validate(stats)
        looks = {'': 0, '1': 1, '1,1.75': 5, '0.5,1,2': 11}[scales] * FRAMES
        assert (stats['savings']['scales'], stats['savings']['looks']) == (FRAMES if scales else 0, looks)
        assert (f'scales      {FRAMES} frames that the network saw at several scales' in run.stderr) == bool(scales)
        masks = frames_of(out / '%06d.png', 'gray')
        found[scales] = sum(iou(masks[i] >= 128, inside(i)) for i in range(FRAMES)) / FRAMES
        assert min(iou(masks[i] >= 128, inside(i)) for i in range(FRAMES)) > 0.85, scales
    assert found['1'] == found[''] < found['1,1.75']


def test_scales_go_with_what_else_there_is(saccade, video, square, tmp_path):
    """Two eyes, a region of each, still frames, and a coarse look first: on fewer frames, and in its place."""
    both = tmp_path / 'both.mkv'
    subprocess.run(['ffmpeg', '-v', 'error', '-i', video, '-vf', 'split,hstack', '-c:v', 'ffv1', both], check=True)
    unsure = network(tmp_path / 'unsure.onnx', sure=0.5)
    for n, more in enumerate((['--region'], ['--mode', 'vr'], ['--skip-still', 0.2, '--skip-max', 1], ['--small-model', unsure, '--region'])):
        segment(saccade, both, '--model', square, '--stereo', 'sbs', '--scales', '0.5,1,1.75', '--as', 'png', '-o',
                tmp_path / f'm{n}', '--stats', tmp_path / 's.json', *more)
        savings = json.loads((tmp_path / 's.json').read_text())['savings']
        assert savings['scales'] == FRAMES - savings['still'] and savings['looks'] == 12 * savings['scales']
        assert ('--region' in more) == (savings['regions'] > 0) and ('--small-model' in more) == (savings['large'] > 0)
        masks = frames_of(tmp_path / f'm{n}/%06d.png', 'gray', width=2 * WIDTH)
        for i in range(FRAMES):
            assert all(iou(eye >= 128, inside(i)) > 0.85 for eye in (masks[i][:, :WIDTH], masks[i][:, WIDTH:])), (more, i)


def test_classes_need_every_frame(saccade, video, tmp_path):
    model = network(tmp_path / 'c.onnx', classes=3)
    run = segment(saccade, video, '--model', model, '--head', 'semantic', '--as', 'classes', '-o', tmp_path / 'o.mp4',
                  '--skip-still', 0.5, '--region')
    assert 'sees all frames' in run.stderr and 'skipped' not in run.stderr
    assert 'whole frames are seen' in run.stderr and 'regions' not in run.stderr
    run = saccade('segment', video, '--model', model, '--head', 'semantic', '--as', 'classes', '-o', tmp_path / 'x.mp4',
                  '--small-model', model)
    assert run.returncode == 2 and 'small_model' in run.stderr and not (tmp_path / 'x.mp4').exists()


@pytest.mark.parametrize('args, words', [
    ([], ['--output', '--as none']),
    (['--as', 'none', '-o', 'x.mp4'], ['--as none', 'x.mp4']),
    (['-o', '-'], ['standard output']),
    (['-o', 'x.mp4', '--background', 'blur'], ['--as cutout']),
    (['-o', 'x.mp4', '--as', 'cutout', '--background', 'nothing.png'], ['nothing.png', '#00b140', 'blur']),
    (['-o', 'x.mp4', '--as', 'cutout', '--background', 'blur:0'], ['blur:0']),
    (['-o', 'x.mp4', '--as', 'cutout', '--background', '#+12345'], ['#+12345']),
    (['-o', 'x.mp4', '--as', 'alpha'], ['.webm', '.mov', '.mkv']),
    (['-o', 'x.mp4', '--projection', 'fisheye', '--facets', 'none'], ['--as alpha-packed', '--facets front']),
    (['-o', 'x.mp4', '--facets', 'all'], ['--projection fisheye', 'equirect180']),
    (['-o', 'x.mp4', '--projection', 'equirect180', '--region'], ['region', 'facets']),
    (['-o', 'x.mp4', '--projection', 'fisheye', '--as', 'classes'], ['map of classes', 'facets']),
    (['-o', 'x.mp4', '--scales', '1,3'], ['scales', '0.25 to 2']),
    (['-o', 'x.mp4', '--scales', '1,,2'], ['--scales', '1,,2', '0.5,1,2']),
    (['-o', 'x.mp4', '--scales', '1,1,1,1,1'], ['--scales', 'up to 4']),
    (['-o', 'x.mp4', '--scales', '1,2', '--as', 'classes'], ['map of classes', 'scales']),
    (['-o', 'x.mp4', '--scales', '1,2', '--projection', 'fisheye'], ['scales', 'facets none']),
    (['-o', 'x.mp4', '--stereo', 'both'], ['--stereo', 'mono', 'sbs', 'tb']),
    (['-o', 'x.mp4', '--as', 'mattes'], ['mattes', 'overlay', 'cutout']),
    (['-o', 'x.xyz'], ['xyz']),
    (['-o', 'x.mp4', '--mode', 'fast'], ['--mode', 'throughput', 'vr']),
    (['-o', 'x.mp4', '--smooth', '2'], ['--smooth', '0.95']),
    (['-o', 'x.mp4', '--model', 'nothing.onnx'], ['nothing.onnx']),
    (['-o', 'x.mp4', '--small-model', 'nowhere.onnx'], ['nowhere.onnx']),
    (['-o', 'x.mp4', '--region-margin', '5'], ['--region-margin', '4']),
    (['-o', 'x.mp4', '--tracker', 'sort'], ['--tracker'])])
def test_mistakes_get_a_sentence(saccade, video, square, tmp_path, args, words):
    model = [] if '--model' in args else ['--model', square]
    run = saccade('segment', video, *model, *args, cwd=tmp_path)
    fails(run, run.returncode, *words)
    assert run.returncode in (1, 2) and list(tmp_path.iterdir()) == []


def test_batches_are_as_large_as_asked_for(saccade, video, square, tmp_path):
    segment(saccade, video, '--model', square, '--as', 'none', '--max-batch', 20, '--batch-timeout', 10000,
            '--stats', tmp_path / 's.json')
    assert json.loads((tmp_path / 's.json').read_text())['batches']['max'] == 20


@pytest.mark.parametrize('mode', ['vr', 'throughput'])
def test_pictures_are_composed_and_not_encoded(saccade, video, square, tmp_path, mode):
    segment(saccade, video, '--model', square, '--as', 'overlay', '-o', 'none', '--mode', mode, '--max-batch', 4,
            '--batch-timeout', 10000, '--stats', tmp_path / 's.json', cwd=tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ['s.json']
    stats = json.loads((tmp_path / 's.json').read_text())
    assert [s['name'] for s in stats['stages']] == ['decode', 'preprocess', 'inference', 'matte', 'composite']
    assert stats['composite_latency']['count'] == FRAMES and stats['encoder'] is None
    assert stats['batches']['max'] == (1 if mode == 'vr' else 4)


def test_vr_takes_packets_when_they_are_due(saccade, video, square, tmp_path):
    segment(saccade, video, '--model', square, '--as', 'overlay', '-o', 'none', '--mode', 'vr', '--realtime',
            '--stats', tmp_path / 's.json')
    stats = json.loads((tmp_path / 's.json').read_text())
    fps = stats['frames'] / stats['elapsed_s']
    wanted = json.loads(saccade('inspect', video, '--json').stdout)['fps']
    assert fps < 1.1 * wanted


@pytest.mark.skipif(os.geteuid() == 0, reason='root may write everywhere')
def test_a_folder_that_is_read_only_is_found_before_the_first_frame(saccade, video, square, tmp_path):
    (tmp_path / 'p').mkdir(0o500)
    run = saccade('segment', video, '--model', square, '--as', 'png', '-o', tmp_path / 'p')
    fails(run, 1, "p': Permission denied")
    assert 'frames:' not in run.stderr


def test_a_background_is_one_picture(saccade, video, clip, square, tmp_path):
    run = saccade('segment', video, '--model', square, '--as', 'cutout', '--background', video, '-o', tmp_path / 'o.mp4')
    fails(run, 2, f"'{video}' is a video")
    assert not list(tmp_path.glob('o.mp4*'))
    single = tmp_path / 'single.mkv'  # what holds one picture is one
    subprocess.run(['ffmpeg', '-v', 'error', '-i', video, '-frames:v', '1', '-c:v', 'ffv1', single], check=True)
    segment(saccade, video, '--model', square, '--as', 'cutout', '--background', single, '-o', tmp_path / 'o.mp4')


def test_pictures_need_a_folder(saccade, video, square, tmp_path):
    (tmp_path / 'file').write_text('kept')
    run = saccade('segment', video, '--model', square, '--as', 'png', '-o', tmp_path / 'file')
    fails(run, 2, "file' is no folder")
    assert 'frames:' not in run.stderr and (tmp_path / 'file').read_text() == 'kept'


def test_pictures_of_an_earlier_run_stay_and_are_not_mixed_with_new_ones(saccade, video, square, tmp_path):
    out = tmp_path / 'my pictures'
    segment(saccade, video, '--model', square, '--as', 'png', '-o', out, '--duration', 0.4)
    (out / 'notes.txt').write_text('kept')
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    run = saccade('segment', video, '--model', square, '--as', 'png', '-o', out, '--duration', 0.2)
    fails(run, 2, "my pictures' already has pictures, such as '0000", 'name another folder')
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    for picture in out.glob('*.png'):
        picture.unlink()
    (out / 'cover.png').write_text('no picture of a matte')
    segment(saccade, video, '--model', square, '--as', 'png', '-o', out, '--duration', 0.2)
    assert (out / 'cover.png').read_text() == 'no picture of a matte' and (out / 'notes.txt').exists()


def test_a_detector_makes_no_mattes(saccade, video, tmp_path):
    run = saccade('segment', video, '--model', ROOT / 'tests/heads/end2end.onnx', '-o', tmp_path / 'x.mp4')
    fails(run, run.returncode, 'end2end.onnx')
    assert run.returncode != 0 and list(tmp_path.iterdir()) == []
    run = saccade('track', video, '--detector', network(tmp_path / 's.onnx'), '--mot', tmp_path / 'x.txt')
    fails(run, run.returncode, 's.onnx')
    assert run.returncode != 0


def test_inputs_are_never_overwritten(saccade, clip, square, tmp_path):
    pictures = tmp_path / 'p'
    pictures.mkdir()
    segment(saccade, clip / 'img', '--model', square, '--as', 'png', '-o', pictures)
    before = (pictures / '000000.png').read_bytes()
    run = saccade('segment', pictures, '--model', square, '--as', 'png', '-o', pictures)
    fails(run, run.returncode, 'would overwrite an input')
    assert run.returncode != 0 and (pictures / '000000.png').read_bytes() == before
    picture = tmp_path / 'b.png'
    picture.write_bytes(before)
    run = saccade('segment', clip / 'img', '--model', square, '--as', 'cutout', '--background', picture, '-o', picture)
    assert run.returncode != 0 and picture.read_bytes() == before


@pytest.mark.parametrize('ending', ['m.mp4', 'r.json', 'pngs'])
def test_an_interrupted_run_leaves_whole_files(program, saccade, long_clip, square, tmp_path, ending):
    kind = {'m.mp4': 'mask', 'r.json': 'coco', 'pngs': 'png'}[ending]
    run = subprocess.Popen([program, 'segment', long_clip / 'img', '--model', square, '--as', kind,
                            '-o', tmp_path / ending], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while time.monotonic() < until and not any(tmp_path.iterdir()):
        time.sleep(0.05)
    time.sleep(1)
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=60)[1]
    assert run.returncode == 130 and 'interrupted' in said, said
    done = int(re.search(r'interrupted: (\d+) frame', said).group(1))
    if kind == 'coco':
        assert [r['image_id'] for r in json.loads((tmp_path / ending).read_text())] == list(range(1, done + 1))
    elif kind == 'png':
        assert len(list((tmp_path / ending).iterdir())) == done
    else:
        assert json.loads(saccade('inspect', tmp_path / ending, '--json').stdout)['frames'] == done
    assert not [p for p in tmp_path.rglob('*.part')]


@pytest.mark.parametrize('names, classes, category', [(['ground', 'dog', 'person'], 'dog', 18), (['ground', 'tent', 'x'], 'tent', 2),
                                                      (['ground', 'dog', 'person'], 'dog,person', 1)])
def test_records_say_what_they_show(saccade, clip, tmp_path, names, classes, category):
    model = onnx.load(network(tmp_path / 'c.onnx', classes=3))
    entry = model.metadata_props.add()
    entry.key, entry.value = 'saccade.classes', ','.join(names)
    onnx.save(model, tmp_path / 'c.onnx')
    segment(saccade, clip / 'img', '--model', tmp_path / 'c.onnx', '--head', 'semantic', '--classes', classes,
            '--as', 'coco', '-o', tmp_path / 'r.json', '--duration', 0.2)
    assert {r['category_id'] for r in json.loads((tmp_path / 'r.json').read_text())} == {category}
