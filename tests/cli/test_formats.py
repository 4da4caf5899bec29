# SPDX-License-Identifier: Apache-2.0
"""The files of results for other programs: CSV, KITTI and COCO beside MOTChallenge lines, and crops. A network that
says the same boxes for every picture stands in for a detector."""
import csv
import json
import pathlib

import numpy
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from support import FRAMES, HEIGHT, WIDTH, box_at, fails, write_ppm

ROOT = pathlib.Path(__file__).resolve().parents[2]
NETWORK = 64  # pixels of its input's side
FORMATS = ['--mot', '--csv', '--kitti', '--coco']
NAMES = ['person', 'cat, small', '19" rack', 'café', 'cyclist', 'traffic light']


def detector(path, names):
    """Boxes one below the other, one of each class."""
    rows = numpy.zeros((1, len(names), 6), numpy.float32)
    for i in range(len(names)):
        top = 2 + i * (NETWORK - 4) / len(names)
        rows[0, i] = 8 + i, top, 40 + i, top + (NETWORK - 8) / len(names), 0.9 - 0.01 * i, i
    graph = helper.make_graph(
        [helper.make_node('ReduceMean', ['image'], ['mean'], axes=[1, 2, 3], keepdims=0),
         helper.make_node('Mul', ['mean', 'zero'], ['nothing']), helper.make_node('Add', ['nothing', 'rows'], ['boxes'])],
        'test', [helper.make_tensor_value_info('image', TensorProto.FLOAT, [1, 3, NETWORK, NETWORK])],
        [helper.make_tensor_value_info('boxes', TensorProto.FLOAT, list(rows.shape))],
        [numpy_helper.from_array(rows, 'rows'), numpy_helper.from_array(numpy.zeros((1,), numpy.float32), 'zero')])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=7)
    for key, value in {'saccade.head': 'end2end', 'saccade.preprocess': 'letterbox=none',
                       'names': repr(dict(enumerate(names)))}.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.save(model, path)
    return path


def run_with(saccade, clip, folder, names, formats, *args):
    out = {option: folder / option.strip('-') for option in formats}
    run = saccade('track', clip / 'img', '--fps', 20, '--detector', detector(folder / 'net.onnx', names), '--classes',
                  'all', '--reid', 'none', '--tracker', 'bytetrack', *args,
                  *(word for option in formats for word in (option, out[option])))
    assert run.returncode == 0, run.stderr
    for path in out.values():
        assert f'wrote       {path}' in run.stderr
    return out


@pytest.fixture(scope='module')
def results(saccade, clip, tmp_path_factory):
    return run_with(saccade, clip, tmp_path_factory.mktemp('results'), NAMES, FORMATS)


def mot_rows(results):
    return [[float(field) for field in line.split(',')] for line in results['--mot'].read_text().splitlines()]


# ---- one run, four formats ----

def test_csv_tells_the_same_as_mot(results):
    text = results['--csv'].read_text(encoding='utf-8')
    rows = list(csv.DictReader(text.splitlines(keepends=True), strict=True))
    assert list(rows[0]) == ['frame', 'time_s', 'id', 'class_id', 'class', 'score', 'x0', 'y0', 'x1', 'y1']
    expected = mot_rows(results)
    assert len(rows) == len(expected) > 5 * FRAMES
    for row, mot in zip(rows, expected):
        assert (int(row['frame']) + 1, int(row['id'])) == (mot[0], mot[1])
        assert float(row['time_s']) == pytest.approx(int(row['frame']) / 20, abs=2e-6)
        x0, y0, x1, y1 = (float(row[edge]) for edge in ('x0', 'y0', 'x1', 'y1'))
        assert [x0, y0, x1 - x0, y1 - y0] == pytest.approx(mot[2:6], abs=0.0151)
        assert float(row['score']) == mot[6]
        assert row['class'] == NAMES[int(row['class_id'])]  # quoted where it must be, and as it was
    assert {row['class'] for row in rows} == set(NAMES)


def test_kitti_has_the_columns_of_its_development_kit(results):
    lines = results['--kitti'].read_text(encoding='utf-8').split('\n')
    assert lines.pop() == ''
    expected = mot_rows(results)
    assert len(lines) == len(expected)
    types = {}
    for line, mot in zip(lines, expected):
        fields = line.split(' ')
        assert len(fields) == 18
        assert (int(fields[0]) + 1, int(fields[1])) == (mot[0], mot[1])
        types[fields[2]] = True
        assert fields[3:6] == ['-1', '-1', '-10']
        left, top, right, bottom = map(float, fields[6:10])
        assert [left, top, right - left, bottom - top] == pytest.approx(mot[2:6], abs=0.0151)
        assert fields[10:17] == ['-1'] * 3 + ['-1000'] * 3 + ['-10']
        assert float(fields[17]) == mot[6]
    assert set(types) == {'Pedestrian', 'cat,_small', '19"_rack', 'café', 'Cyclist', 'traffic_light'}


def test_coco_results_tell_the_same_as_mot(results):
    boxes = json.loads(results['--coco'].read_text())
    expected = mot_rows(results)
    assert len(boxes) == len(expected)
    for box, mot in zip(boxes, expected):
        assert set(box) == {'image_id', 'category_id', 'bbox', 'score', 'track_id'}
        assert (box['image_id'], box['track_id']) == (mot[0], mot[1])
        assert box['bbox'] == mot[2:6] and box['score'] == mot[6]
    # not all are COCO's classes: they are counted from 1
    assert {box['category_id'] for box in boxes} == set(range(1, len(NAMES) + 1))


def test_coco_results_are_loaded_and_scored_by_its_own_tools(results):
    coco = pytest.importorskip('pycocotools.coco')
    cocoeval = pytest.importorskip('pycocotools.cocoeval')
    boxes = json.loads(results['--coco'].read_text())
    truth = coco.COCO()
    truth.dataset = {
        'images': [{'id': frame + 1, 'width': WIDTH, 'height': HEIGHT} for frame in range(FRAMES)],
        'categories': [{'id': i + 1, 'name': name} for i, name in enumerate(NAMES)],
        'annotations': [{'id': i + 1, 'image_id': box['image_id'], 'category_id': box['category_id'],
                         'bbox': box['bbox'], 'area': box['bbox'][2] * box['bbox'][3], 'iscrowd': 0}
                        for i, box in enumerate(boxes)]}
    truth.createIndex()
    score = cocoeval.COCOeval(truth, truth.loadRes(str(results['--coco'])), 'bbox')
    score.evaluate()
    score.accumulate()
    score.summarize()
    assert score.stats[0] == pytest.approx(1)


@pytest.mark.parametrize('names, numbers', [
    (['person', 'car', 'traffic light', 'stop sign', 'toothbrush'], [1, 3, 10, 13, 90]),
    (['background', 'person', 'N/A', 'hair drier'], [None, 1, None, 89]),  # as in exports with COCO's own numbers
    (['person', 'forklift'], [1, 2]),
])
def test_classes_of_coco_have_its_numbers(saccade, clip, tmp_path, names, numbers):
    out = run_with(saccade, clip, tmp_path, names, ['--csv', '--coco'])
    with out['--csv'].open(newline='', encoding='utf-8') as file:
        rows = list(csv.DictReader(file))
    boxes = json.loads(out['--coco'].read_text())
    assert len(boxes) == len(rows) > 0
    for row, box in zip(rows, boxes):
        number = numbers[int(row['class_id'])]
        assert number is None or box['category_id'] == number


# ---- as files ----

def ready_made(saccade, clip, *args, **more):
    return saccade('track', clip / 'img', '--fps', 20, '--detections', clip / 'det.txt', *args, **more)


@pytest.mark.parametrize('option', FORMATS)
def test_standard_output_is_a_file_too(saccade, clip, tmp_path, option):
    run = ready_made(saccade, clip, option, '-')
    assert run.returncode == 0, run.stderr
    again = ready_made(saccade, clip, option, tmp_path / 'file')
    assert again.returncode == 0
    assert run.stdout == (tmp_path / 'file').read_text() != ''


def test_without_objects_the_files_are_whole(saccade, clip, tmp_path):
    (tmp_path / 'none.txt').write_text('')
    args = [word for option in FORMATS for word in (option, tmp_path / option.strip('-'))]
    run = saccade('track', clip / 'img', '--fps', 20, '--detections', tmp_path / 'none.txt', *args, '--save-crops',
                  tmp_path / 'crops')
    assert run.returncode == 0, run.stderr
    assert json.loads((tmp_path / 'coco').read_text()) == []
    assert (tmp_path / 'csv').read_text() == 'frame,time_s,id,class_id,class,score,x0,y0,x1,y1\n'
    assert (tmp_path / 'kitti').read_text() == (tmp_path / 'mot').read_text() == ''
    assert f'wrote       {tmp_path}/crops' not in run.stderr


@pytest.mark.parametrize('option', FORMATS)
def test_a_full_disk_is_a_failure(saccade, clip, option):
    run = ready_made(saccade, clip, option, '/dev/full')
    assert run.returncode == 1
    assert '/dev/full' in run.stderr and 'No space left' in run.stderr


@pytest.mark.parametrize('option', FORMATS + ['--save-crops'])
def test_an_unwritable_place_is_named_before_the_work(saccade, clip, option):
    fails(ready_made(saccade, clip, option, '/proc/nowhere/out'), 1, '/proc/nowhere')


def test_each_input_has_its_own_files(saccade, clip, tmp_path):
    for name in ('a', 'b'):
        (tmp_path / 'in' / name).mkdir(parents=True)
        for frame in range(FRAMES):
            write_ppm(tmp_path / 'in' / name / f'{frame + 1:05d}.ppm', frame)
    (tmp_path / 'det').mkdir()
    for name in ('a', 'b'):
        (tmp_path / 'det' / f'{name}.txt').write_text((clip / 'det.txt').read_text())
    (tmp_path / 'c.yaml').write_text(f'output:\n  csv: {tmp_path}/csv\n  kitti: {tmp_path}/kitti\n'
                                     f'  coco: {tmp_path}/coco\n  crops: {tmp_path}/crops\n')
    run = saccade('track', tmp_path / 'in/a', tmp_path / 'in/b', '--fps', 20, '--detections', tmp_path / 'det', '-c',
                  tmp_path / 'c.yaml')
    assert run.returncode == 0, run.stderr
    for folder, ending in (('csv', 'csv'), ('kitti', 'txt'), ('coco', 'json')):
        assert sorted(path.name for path in (tmp_path / folder).iterdir()) == [f'a.{ending}', f'b.{ending}']
    ids = [json.loads((tmp_path / f'coco/{name}.json').read_text())[0]['track_id'] for name in ('a', 'b')]
    assert sorted(ids) == [1, 2]
    for name, number in zip(('a', 'b'), ids):
        assert [path.name for path in (tmp_path / 'crops' / name / '0').iterdir()] == [f'{number:05d}.jpg']


@pytest.mark.parametrize('keep', [False, True])
def test_all_formats_end_at_the_pictures_edges(saccade, clip, tmp_path, keep):
    (tmp_path / 'det.txt').write_text(''.join('%d,-1,-30,%d,80,90,0.9\n' % (frame + 1, HEIGHT - 60)
                                              for frame in range(FRAMES)))
    out = {option: tmp_path / option.strip('-') for option in FORMATS}
    run = saccade('track', clip / 'img', '--fps', 20, '--detections', tmp_path / 'det.txt',
                  *(['--no-clip-boxes'] if keep else []), *(word for item in out.items() for word in item))
    assert run.returncode == 0, run.stderr
    expected = (-30, HEIGHT - 60, 80, 90) if keep else (0, HEIGHT - 60, 50, 60)
    x, y, w, h = expected
    assert mot_rows(out)[9][2:6] == pytest.approx(expected, abs=1)
    assert json.loads(out['--coco'].read_text())[9]['bbox'] == pytest.approx(expected, abs=1)
    corners = pytest.approx((x, y, x + w, y + h), abs=1)
    assert [float(field) for field in out['--kitti'].read_text().splitlines()[9].split()[6:10]] == corners
    assert [float(field) for field in out['--csv'].read_text().splitlines()[10].split(',')[6:]] == corners


# ---- crops ----

def test_a_crop_shows_the_object_and_nothing_drawn(saccade, clip, tmp_path):
    image = pytest.importorskip('PIL.Image')
    run = ready_made(saccade, clip, '--save-crops', tmp_path / 'crops', '-o', tmp_path / 'o.mp4', '--stats',
                     tmp_path / 's.json')
    assert run.returncode == 0, run.stderr
    assert f'wrote       {tmp_path}/crops' in run.stderr
    assert [path.relative_to(tmp_path / 'crops') for path in (tmp_path / 'crops').rglob('*.jpg')] == \
        [pathlib.Path('0/00001.jpg')]
    pixels = numpy.asarray(image.open(tmp_path / 'crops/0/00001.jpg').convert('RGB')).astype(int)
    _, _, w, h = box_at(0)
    assert abs(pixels.shape[1] - w) <= 4 and abs(pixels.shape[0] - h) <= 4
    of_object = numpy.abs(pixels - (200, 120, 40)).max(axis=2) < 12
    of_ground = numpy.abs(pixels - 60).max(axis=2) < 12
    assert of_object.mean() > 0.85
    assert (of_object | of_ground).mean() > 0.93  # the rest lies on the edge between both
    stats = json.loads((tmp_path / 's.json').read_text())
    assert {stage['name']: stage['count'] for stage in stats['stages']}['crop'] == FRAMES
    assert stats['copies']['crop-download'] == {'calls': 0, 'bytes': 0}  # on the CPU none is copied


def test_a_crop_of_each_object_in_its_class(saccade, clip, tmp_path):
    names = ['person', '../../up', '.hidden', 'a/b', 'cat, small']
    run_with(saccade, clip, tmp_path, names, ['--save-crops'])
    crops = tmp_path / 'save-crops'
    assert sorted(path.parent.name for path in tmp_path.rglob('*.jpg')) == \
        ['_._.._up', '_hidden', 'a_b', 'cat, small', 'person']
    assert len(list(crops.glob('*/*.jpg'))) == len(names)
    assert {path.stem for path in crops.rglob('*.jpg')} == {f'{number:05d}' for number in range(1, len(names) + 1)}


def test_the_best_view_is_kept(saccade, tmp_path):
    """An object that comes nearer, is surest in the middle, and walks away."""
    (tmp_path / 'img').mkdir()
    rows = []
    for frame in range(FRAMES):
        write_ppm(tmp_path / 'img' / f'{frame + 1:05d}.ppm', frame)
        size = 40 + 3 * min(frame, FRAMES - frame)
        rows.append('%d,-1,%d,%d,%d,%d,%.2f\n' % (frame + 1, 160 - size / 2, 120 - size / 2, size, size,
                                                  0.95 if abs(frame - 20) < 3 else 0.5))
    (tmp_path / 'det.txt').write_text(''.join(rows))
    run = saccade('track', tmp_path / 'img', '--fps', 20, '--detections', tmp_path / 'det.txt', '--save-crops',
                  tmp_path / 'crops', '--score-new', 0.3)
    assert run.returncode == 0, run.stderr
    info = json.loads(saccade('inspect', next((tmp_path / 'crops').rglob('*.jpg')), '--json').stdout)
    assert 90 <= info['width'] <= 110 and 90 <= info['height'] <= 110


def test_crops_of_a_run_with_pictures_of_a_run_before(saccade, clip, tmp_path):
    assert ready_made(saccade, clip, '--save-crops', tmp_path / 'crops').returncode == 0
    (tmp_path / 'crops/0').rename(tmp_path / 'crops/person')
    before = (tmp_path / 'crops/person/00001.jpg').read_bytes()
    fails(saccade('track', tmp_path / 'crops/person', '--detections', clip / 'det.txt', '--fps', 20, '--save-crops',
                  tmp_path / 'crops'), 2, 'would overwrite an input', '00001.jpg')
    assert (tmp_path / 'crops/person/00001.jpg').read_bytes() == before
    # beside them there is room
    assert saccade('track', tmp_path / 'crops/person', '--detections', clip / 'det.txt', '--fps', 20, '--save-crops',
                   tmp_path / 'more').returncode == 0


def test_crops_need_pixels(saccade, clip, tmp_path):
    fails(saccade('track', '--detections', clip / 'det.txt', '--fps', 20, '--save-crops', tmp_path / 'crops'), 2,
          '--save-crops', 'INPUT')
    assert list(tmp_path.iterdir()) == []
