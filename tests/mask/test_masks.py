# SPDX-License-Identifier: Apache-2.0
"""`saccade eval --masks` gives the figures of the published formulas, written here in NumPy, to 1e-6; and what it makes
of files: names, numbers, palettes, COCO's JSON, bad ones."""
import json
import math
import random
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy
import pytest
from scipy import ndimage

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'cli'))
from support import fails  # noqa: E402


# ---- files ----

def write_png(path, pixels, palette=False, bits=8):
    """pixels: [h,w] grey or numbers, or [h,w,2], [h,w,3], [h,w,4]."""
    pixels = numpy.asarray(pixels)
    kind = 3 if palette else {2: 0}.get(pixels.ndim) if pixels.ndim == 2 else {2: 4, 3: 2, 4: 6}[pixels.shape[2]]
    height, width = pixels.shape[:2]
    if bits == 1:
        rows = numpy.packbits(pixels > 0, axis=1)
    else:
        rows = pixels.reshape(height, -1).astype('>u2' if bits == 16 else 'u1')

    def chunk(name, data):
        return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
    data = b''.join(b'\0' + row.tobytes() for row in rows)
    colours = chunk(b'PLTE', bytes(random.Random(1).randrange(256) for _ in range(768))) if palette else b''
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, bits, kind, 0, 0, 0)) +
                     colours + chunk(b'IDAT', zlib.compress(data, 1)) + chunk(b'IEND', b''))


def report(run):
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def score(saccade, gt, masks, *options):
    return report(saccade('eval', '--gt', gt, '--masks', masks, '--json', '-q', *options))


# ---- the formulas ----

def iou_of(gt, mask):
    either = (gt | mask).sum()
    return (gt & mask).sum() / either if either else 1.


def contour_of(mask):
    """As DAVIS' seg2bmap at the mask's own size."""
    right, below, corner = mask.copy(), mask.copy(), mask.copy()
    right[:, :-1] = mask[:, 1:]
    below[:-1] = mask[1:]
    corner[:-1, :-1] = mask[1:, 1:]
    out = (mask ^ right) | (mask ^ below) | (mask ^ corner)
    out[-1] = mask[-1] ^ right[-1]
    out[:, -1] = mask[:, -1] ^ below[:, -1]
    out[-1, -1] = False
    return out


def boundary_of(gt, mask, tolerance=0.008):
    reach = math.ceil(tolerance * math.hypot(*gt.shape))
    y, x = numpy.mgrid[-reach:reach + 1, -reach:reach + 1]
    disk = x * x + y * y <= reach * reach
    a, b = contour_of(gt), contour_of(mask)
    if a.any() != b.any():
        precision, recall = (1., 0.) if a.any() else (0., 1.)
    elif not a.any():
        precision = recall = 1.
    else:
        precision = (b & ndimage.binary_dilation(a, disk)).sum() / b.sum()
        recall = (a & ndimage.binary_dilation(b, disk)).sum() / a.sum()
    return (2 * precision * recall / (precision + recall) if precision + recall else 0.), precision, recall


def gradient_of(alpha, sigma=1.4, epsilon=1e-2):
    half = math.ceil(sigma * math.sqrt(-2 * math.log(math.sqrt(2 * math.pi) * sigma * epsilon)))
    at = numpy.arange(-half, half + 1)
    gauss = numpy.exp(-at ** 2 / (2 * sigma ** 2)) / (sigma * math.sqrt(2 * math.pi))
    taps = numpy.outer(gauss, -at * gauss / sigma ** 2)
    taps /= math.sqrt((taps ** 2).sum())
    return numpy.hypot(ndimage.convolve(alpha, taps, mode='nearest'), ndimage.convolve(alpha, taps.T, mode='nearest'))


def alpha_errors(gt, mask):
    gt, mask = gt / 255, mask / 255
    return abs(gt - mask).sum(), ((gt - mask) ** 2).mean(), ((gradient_of(gt) - gradient_of(mask)) ** 2).sum()


def reference(pairs, alpha=True):
    """The mean scores of (ground truth, mask), 0..255."""
    rows = []
    for gt, mask in pairs:
        f = boundary_of(gt >= 128, mask >= 128)
        errors = alpha_errors(gt.astype(float), mask.astype(float)) if alpha else (math.nan,) * 3
        rows.append((iou_of(gt >= 128, mask >= 128), *f, *errors))
    both = sum(((gt >= 128) & (mask >= 128)).sum() for gt, mask in pairs)
    either = sum(((gt >= 128) | (mask >= 128)).sum() for gt, mask in pairs)
    names = ('iou_mean', 'boundary_f', 'boundary_precision', 'boundary_recall', 'sad', 'mse', 'gradient')
    return dict(zip(names, numpy.mean(rows, axis=0))) | {'iou': both / either if either else 1.}


def same(scores, expected):
    for name, value in expected.items():
        if math.isnan(value):
            assert scores[name] is None, name
        else:
            assert scores[name] == pytest.approx(value, rel=1e-6, abs=1e-9), name


# ---- masks ----

def blob(rng, height, width):
    """A soft body somewhere."""
    y, x = numpy.mgrid[:height, :width]
    cy, cx = rng.uniform(0, height), rng.uniform(0, width)
    ry, rx = rng.uniform(1, max(2, height / 2)), rng.uniform(1, max(2, width / 2))
    distance = numpy.hypot((y - cy) / ry, (x - cx) / rx)
    return numpy.clip((1.2 - distance) * rng.uniform(100, 900), 0, 255).astype(numpy.uint8)


def drawings():
    rng = numpy.random.default_rng(5)
    for height, width in ((1, 1), (1, 9), (7, 1), (33, 61), (120, 97), (241, 320)):
        yield rng.integers(0, 256, (height, width), numpy.uint8), rng.integers(0, 256, (height, width), numpy.uint8)
        for _ in range(3):
            yield blob(rng, height, width), blob(rng, height, width)
        body = blob(rng, height, width)
        yield body, numpy.roll(body, 2, axis=1)
        nothing = numpy.zeros_like(body)
        yield body, nothing
        yield nothing, body
        yield nothing, nothing
        yield body, body
        yield numpy.full_like(body, 255), body


def test_the_scores_are_those_of_the_formulas(saccade, tmp_path):
    pairs = list(drawings())
    for i, (gt, mask) in enumerate(pairs):
        write_png(tmp_path / f'gt/{i:05d}.png', gt)
        write_png(tmp_path / f'masks/{i:05d}.png', mask)
    scores = score(saccade, tmp_path / 'gt', tmp_path / 'masks')
    assert len(scores['pictures']) == len(pairs) and scores['combined']['pictures'] == len(pairs)
    for row, pair in zip(scores['pictures'], pairs):
        same(row, reference([pair]))
    same(scores['combined'], reference(pairs))


def test_another_tolerance_moves_the_contours(saccade, tmp_path):
    rng = numpy.random.default_rng(8)
    gt, mask = blob(rng, 200, 300), blob(rng, 200, 300)
    write_png(tmp_path / 'a.png', gt)
    write_png(tmp_path / 'b/a.png', mask)
    for tolerance in (0, 0.002, 0.05):
        row = score(saccade, tmp_path / 'a.png', tmp_path / 'b', '--tolerance', tolerance)['combined']
        assert row['boundary_f'] == pytest.approx(boundary_of(gt >= 128, mask >= 128, tolerance)[0], rel=1e-6)


def test_nothing_on_one_side_or_both(saccade, tmp_path):
    body, nothing = numpy.full((20, 30), 255, numpy.uint8), numpy.zeros((20, 30), numpy.uint8)
    body[:5] = 0
    for name, gt, mask, iou, f in (('a', body, nothing, 0, 0), ('b', nothing, body, 0, 0), ('c', nothing, nothing, 1, 1)):
        write_png(tmp_path / name / 'gt/x.png', gt)
        write_png(tmp_path / name / 'masks/x.png', mask)
        row = score(saccade, tmp_path / name / 'gt', tmp_path / name / 'masks')['combined']
        assert (row['iou'], row['iou_mean'], row['boundary_f']) == (iou, iou, f)


def test_objects_in_a_palette_are_one_mask_and_255_is_left_out(saccade, tmp_path):
    rng = numpy.random.default_rng(3)
    objects = rng.integers(0, 4, (40, 50), numpy.uint8)
    objects[10:20, 5:30] = 255
    mask = blob(rng, 40, 50)
    write_png(tmp_path / 'gt/dog/00001.png', objects, palette=True)
    write_png(tmp_path / 'masks/dog/00001.png', mask)
    ignored = objects == 255
    expected = reference([(numpy.where((objects > 0) & ~ignored, 255, 0), numpy.where(ignored, 0, mask))])
    expected['mse'] *= objects.size / (~ignored).sum()
    same(score(saccade, tmp_path / 'gt', tmp_path / 'masks')['combined'], expected)
    write_png(tmp_path / 'gt/dog/00001.png', objects)  # grey: somebody has to say so
    same(score(saccade, tmp_path / 'gt', tmp_path / 'masks', '--gt-values', 'objects')['combined'], expected)


def test_classes_are_scored_apart_and_averaged(saccade, tmp_path):
    rng = numpy.random.default_rng(4)
    units = {}
    for i in range(4):
        gt, mask = (ndimage.zoom(rng.integers(0, 2 + i, (6, 5)), 9, order=0) for _ in range(2))
        gt[:4] = 255
        write_png(tmp_path / f'gt/{i}.png', gt, palette=i % 2 == 0)
        write_png(tmp_path / f'masks/{i}.png', mask)
        mask = numpy.where(gt == 255, 0, mask)
        gt = numpy.where(gt == 255, 0, gt)
        for number in range(1, 6):
            if (gt == number).any() or (mask == number).any():
                units.setdefault(number, []).append(((gt == number) * 255, (mask == number) * 255))
    scores = score(saccade, tmp_path / 'gt', tmp_path / 'masks', '--gt-values', 'classes', '--mask-values', 'classes')
    expected = {number: reference(pairs, alpha=False) for number, pairs in units.items()}
    assert [row['name'] for row in scores['classes']] == [str(number) for number in sorted(units)]
    for row in scores['classes']:
        assert row['pictures'] == len(units[int(row['name'])])
        same(row, expected[int(row['name'])])
    for name in ('iou', 'iou_mean', 'boundary_f'):
        assert scores['combined'][name] == pytest.approx(numpy.mean([row[name] for row in expected.values()]), rel=1e-6)
    assert scores['combined']['pictures'] == 4
    one = score(saccade, tmp_path / 'gt', tmp_path / 'masks', '--gt-values', 'classes', '--mask-values', 'classes',
                '--classes', '2')
    same(one['combined'], expected[2])


def test_every_kind_of_png(saccade, tmp_path):
    rng = numpy.random.default_rng(6)
    gt, mask = blob(rng, 30, 45), blob(rng, 30, 45)
    colour = rng.integers(0, 256, (30, 45, 3), numpy.uint8)
    write_png(tmp_path / 'gt/a.png', gt)
    files = {
        'wide': dict(pixels=mask.astype(numpy.uint16) * 257, bits=16),
        'rgb': dict(pixels=numpy.dstack([mask] * 3)),
        'grey and opaque': dict(pixels=numpy.dstack([mask, numpy.full_like(mask, 255)])),
        'grey with alpha': dict(pixels=numpy.dstack([colour[..., 0], mask])),
        'cut out': dict(pixels=numpy.dstack([colour, mask])),
    }
    for name, file in files.items():
        write_png(tmp_path / name / 'a.png', **file)
        same(score(saccade, tmp_path / 'gt', tmp_path / name)['combined'], reference([(gt, mask)]))
    write_png(tmp_path / 'bits/a.png', mask >= 128, bits=1)
    same(score(saccade, tmp_path / 'gt', tmp_path / 'bits')['combined'], reference([(gt, (mask >= 128) * 255)]))
    (tmp_path / 'pgm').mkdir()
    (tmp_path / 'pgm/a.pgm').write_bytes(b'P5 45 30 255\n' + mask.tobytes())
    same(score(saccade, tmp_path / 'gt', tmp_path / 'pgm')['combined'], reference([(gt, mask)]))
    write_png(tmp_path / 'colour/a.png', colour)
    fails(saccade('eval', '--gt', tmp_path / 'gt', '--masks', tmp_path / 'colour', '-q'), 1, 'a.png', 'colour')


# ---- which picture belongs to which ----

def folder_of(tmp_path, name, files):
    for file, value in files.items():
        write_png(tmp_path / name / f'{file}.png', numpy.full((8, 9), value, numpy.uint8))
    return tmp_path / name


def test_pictures_belong_together_by_name(saccade, tmp_path):
    gt = folder_of(tmp_path, 'gt', {'a/1': 255, 'a/2': 0, 'b/1': 255, 'b/7': 255})
    masks = folder_of(tmp_path, 'masks', {'a/1': 255, 'a/2': 255, 'b/1': 255, 'c/1': 0})
    scores = score(saccade, gt, masks)
    assert [(row['name'], row['iou']) for row in scores['pictures']] == [('a/1', 1), ('a/2', 0), ('b/1', 1)]
    assert [(row['name'], row['iou_mean']) for row in scores['sequences']] == [('a', 0.5), ('b', 1)]
    assert scores['missing'] == {'masks': 1, 'gt': 1, 'empty': 0, 'frames': 0}
    table = saccade('eval', '--gt', gt, '--masks', masks).stdout
    assert [line.split()[0] for line in table.splitlines()[1:]] == ['a', 'b', 'combined', '1', '1']
    assert '1 picture of the ground truth has no mask' in table and '1 mask has no ground truth' in table


def test_where_no_name_is_common_by_the_file_and_by_number(saccade, tmp_path):
    gt = folder_of(tmp_path, 'gt', {'x1': 255, 'x2': 255})
    inner = folder_of(tmp_path, 'inner', {'deep/er/x2': 0, 'deep/er/x1': 255})
    assert [row['iou'] for row in score(saccade, gt, inner)['pictures']] == [1, 0]
    other = folder_of(tmp_path, 'other', {'mask_0002': 0, 'mask_0001': 255})
    assert [row['iou'] for row in score(saccade, gt, other)['pictures']] == [1, 0]


def test_davis_own_folder_is_known(saccade, tmp_path):
    folder_of(tmp_path, 'DAVIS/Annotations/480p', {'bear/00000': 255})
    folder_of(tmp_path, 'DAVIS/JPEGImages/480p', {'bear/00000': 9})
    masks = folder_of(tmp_path, 'masks', {'bear/00000': 255})
    assert [row['name'] for row in score(saccade, tmp_path / 'DAVIS', masks)['pictures']] == ['bear/00000']


def test_small_masks_can_be_left_out(saccade, tmp_path):
    for i, rows in enumerate((1, 10)):
        gt = numpy.zeros((20, 20), numpy.uint8)
        gt[:rows] = 255
        write_png(tmp_path / f'gt/{i}.png', gt)
        write_png(tmp_path / f'masks/{i}.png', gt)
    rows = score(saccade, tmp_path / 'gt', tmp_path / 'masks', '--area-min', '0.5')['pictures']
    assert [row['name'] for row in rows] == ['1']


def test_faults_are_one_sentence(saccade, tmp_path):
    def run(gt, masks, *more):
        return saccade('eval', '--gt', gt, '--masks', masks, '-q', *more)
    gt = folder_of(tmp_path, 'gt', {'a1': 255})
    fails(run(gt, folder_of(tmp_path, 'none', {'b2': 255})), 1, 'no picture', 'a1', 'b2')
    write_png(tmp_path / 'size/a1.png', numpy.zeros((9, 8)))
    fails(run(gt, tmp_path / 'size'), 1, 'a1', '9 x 8', '8 x 9')
    fails(run(gt, tmp_path / 'gone'), 1, 'gone')
    (tmp_path / 'void').mkdir()
    fails(run(gt, tmp_path / 'void'), 1, 'void', 'no mask')
    whole = (gt / 'a1.png').read_bytes()
    for name, data in (('cut', whole[:-20]), ('text', b'hello'), ('short', b''), ('spoilt', whole[:60] + b'xx' + whole[62:])):
        (tmp_path / name).mkdir()
        (tmp_path / name / 'a1.png').write_bytes(data)
        fails(run(gt, tmp_path / name), 1, 'a1.png')
    write_png(tmp_path / 'huge/a1.png', numpy.zeros((1, 1)))
    file = bytearray((tmp_path / 'huge/a1.png').read_bytes())
    file[16:24] = struct.pack('>II', 60000, 60000)
    file[29:33] = struct.pack('>I', zlib.crc32(bytes(file[12:29])))
    (tmp_path / 'huge/a1.png').write_bytes(file)
    fails(run(gt, tmp_path / 'huge'), 1, 'a1.png')
    fails(run(gt, gt, '--tracks', 'x'), 2, '--tracks')
    fails(saccade('eval', '--masks', gt), 2, '--video')
    fails(saccade('eval', '--gt', gt, gt, '--masks', gt), 2, 'one ground truth')
    fails(run(gt, gt, '--classes', 'dog'), 1, "'dog'")


def test_numbers_taken_for_alpha_are_remarked(saccade, tmp_path):
    gt = folder_of(tmp_path, 'gt', {'a1': 2})
    run = saccade('eval', '--gt', gt, '--masks', folder_of(tmp_path, 'masks', {'a1': 255}))
    assert run.returncode == 0 and 'numbers of objects' in run.stderr
    run = saccade('eval', '--gt', gt, '--masks', tmp_path / 'masks', '--gt-values', 'objects')
    assert run.returncode == 0 and run.stderr == ''


# ---- COCO ----

coco = pytest.importorskip('pycocotools.mask')


def rle_of(mask, text=True):
    rle = coco.encode(numpy.asfortranarray(mask.astype(numpy.uint8)))
    if text:
        return {'size': rle['size'], 'counts': rle['counts'].decode()}
    flat = mask.astype(bool).T.ravel()
    ends = numpy.flatnonzero(numpy.diff(flat)) + 1
    counts = numpy.diff(numpy.concatenate([[0], ends, [flat.size]])).tolist()
    return {'size': list(mask.shape), 'counts': [0, *counts] if flat[0] else counts}


def polygons(rng, width, height):
    """As data sets have them: inside or a little outside, also with corners on whole pixels."""
    for _ in range(rng.integers(1, 4)):
        corners = rng.integers(3, 12)
        xy = rng.uniform(-3, 1.05, (corners, 2)) * (width, height) if rng.random() < 0.1 else \
            rng.uniform(-0.02, 1.02, (corners, 2)) * (width, height)
        yield numpy.round(xy, int(rng.integers(0, 3))).ravel().tolist()


@pytest.fixture
def dataset(tmp_path):
    """Ground truth with polygons and both forms of RLE, results, and what pycocotools makes of them."""
    rng = numpy.random.default_rng(11)
    document = {'info': {'year': 2017, 'x': [1.5e-3, True, None, {'deep': ['"\\u00e4\\ud83d\\ude00']}]}, 'images': [],
                'annotations': [], 'categories': [{'id': 1, 'name': 'person'}, {'id': 18, 'name': 'dog'}]}
    results, truth, found = [], {}, {}
    for i in range(40):
        number, width, height = 100 + 7 * i, int(rng.integers(1, 90)), int(rng.integers(1, 70))
        document['images'].append({'id': number, 'file_name': f'{number:012d}.jpg', 'width': width, 'height': height})
        for category in (1, 18):
            gt, mask = numpy.zeros((height, width), bool), numpy.zeros((height, width), bool)
            for _ in range(rng.integers(0, 3)):
                kind = rng.integers(3)
                if kind == 0:
                    shapes = list(polygons(rng, width, height))
                    gt |= coco.decode(coco.merge(coco.frPyObjects(shapes, height, width))).astype(bool)
                    segmentation = shapes
                else:
                    one = blob(rng, height, width) >= 128
                    gt |= one
                    segmentation = rle_of(one, text=kind == 1)
                document['annotations'].append({'id': len(document['annotations']), 'image_id': number, 'iscrowd': 0,
                                                'category_id': category, 'segmentation': segmentation})
            for _ in range(rng.integers(0, 3)):
                one, sure = blob(rng, height, width) >= 128, rng.random() < 0.8
                mask |= one & sure
                results.append({'image_id': number, 'category_id': category, 'score': 0.9 if sure else 0.3,
                                'segmentation': rle_of(one)})
            truth[number, category], found[number, category] = gt, mask
    rng.shuffle(document['annotations'])
    (tmp_path / 'gt.json').write_text(json.dumps(document))
    (tmp_path / 'results.json').write_text(json.dumps(results, indent=1))
    return tmp_path, document, results, truth, found


def test_coco_files_are_scored_as_pycocotools_reads_them(saccade, dataset):
    folder, document, results, truth, found = dataset
    scores = score(saccade, folder / 'gt.json', folder / 'results.json')
    assert [row['name'] for row in scores['classes']] == ['person', 'dog']
    has = {(a['image_id'], a['category_id']) for a in document['annotations']}
    has |= {(r['image_id'], r['category_id']) for r in results if r['score'] >= 0.5}
    for row, category in zip(scores['classes'], (1, 18)):
        pairs = [(truth[key] * 255, found[key] * 255) for key in sorted(truth) if key[1] == category and key in has]
        assert row['pictures'] == len(pairs)
        same(row, reference(pairs, alpha=False))
        both = sum((gt & mask).sum() for gt, mask in ((a > 0, b > 0) for a, b in pairs))
        assert row['inside_both'] == both


def test_coco_against_pngs_is_persons(saccade, dataset):
    folder, document, _, truth, _ = dataset
    rng = numpy.random.default_rng(2)
    pairs = []
    for image in document['images']:
        mask = blob(rng, image['height'], image['width'])
        write_png(folder / 'masks' / image['file_name'].replace('jpg', 'png'), mask)
        pairs.append((truth[image['id'], 1] * 255, mask))
    same(score(saccade, folder / 'gt.json', folder / 'masks')['combined'], reference(pairs))
    dogs = [(truth[image['id'], 18] * 255, pair[1]) for image, pair in zip(document['images'], pairs)]
    same(score(saccade, folder / 'gt.json', folder / 'masks', '--classes', 'dog')['combined'], reference(dogs))
    # results have no names: the numbers of the files are COCO's
    back = score(saccade, folder / 'masks', folder / 'results.json')
    assert back['combined']['pictures'] == 40 and back['missing']['masks'] == 0


def test_crowds_are_not_scored_and_no_result_is_an_empty_mask(saccade, tmp_path):
    gt, crowd = numpy.zeros((30, 40), bool), numpy.zeros((30, 40), bool)
    gt[5:15, 5:15] = crowd[15:25, 5:35] = True
    images = [{'id': i, 'width': 40, 'height': 30} for i in (1, 2)]
    annotations = [{'image_id': i, 'category_id': 1, 'iscrowd': int(c), 'segmentation': rle_of(m, text=not c)}
                   for i in (1, 2) for m, c in ((gt, False), (crowd, True))]
    (tmp_path / 'gt.json').write_text(json.dumps({'images': images, 'annotations': annotations}))
    (tmp_path / 'results.json').write_text(json.dumps([
        {'image_id': 1, 'category_id': 1, 'segmentation': rle_of(gt | crowd), 'score': 1},
        {'image_id': 3, 'category_id': 1, 'segmentation': rle_of(gt), 'score': 1}]))
    scores = score(saccade, tmp_path / 'gt.json', tmp_path / 'results.json')
    assert [row['iou'] for row in scores['pictures']] == [1, 0]
    assert scores['missing'] == {'masks': 0, 'gt': 1, 'empty': 1, 'frames': 0}


@pytest.mark.parametrize('text, words', [
    ('', ['x.json:1', 'file ends']),
    ('{', ['x.json:1', 'file ends']),
    ('[{"image_id": 1,}]', ["'}'"]),
    ('{"x": ' + '[' * 100000, ['64 levels']),
    ('[{"image_id": 1, "segmentation": ' + '[{"a": ' * 40, ['64 levels']),
    ('[{"image_id": 1e400}]', ['too large']),
    ('[{"image_id": 1.5}]', ['image_id', 'whole number']),
    ('[{"category_id": 1}]', ['without an image_id']),
    ('[{"image_id": 1, "bbox": [1, 2, 3, 4]}]', ['none of its 1 annotations']),
    ('[{"image_id": 1, "segmentation": 7}]', ['a list']),
    ('[{"image_id": 1, "segmentation": {"counts": "04"}}]', ['without its size']),
    ('[{"image_id": 1, "segmentation": {"size": [9, 8, 7], "counts": "04"}}]', ['without its size']),
    ('[{"image_id": 1, "segmentation": {"size": [1e9, 1e9], "counts": "04"}}]', ['1e+09 x 1e+09']),
    ('[{"image_id": 1, "segmentation": {"size": [8, 9], "counts": [4294967297, 7]}}]', ['RLE', '4294967297']),
    ('[{"image_id": 1, "segmentation": {"size": [8, 9], "counts": [-1, 73]}}]', ['RLE', '-1']),
    ('[{"image_id": 1, "segmentation": {"size": [8, 9], "counts": "04"}}]', ['RLE of 4 pixels', '9 x 8']),
    ('[{"image_id": 1, "segmentation": {"size": [8, 9], "counts": "oooooooooooooooo"}}]', ['RLE', 'run 0']),
    ('[{"image_id": 1, "segmentation": [[1, 2, 3]]}]', ['polygon of 3 numbers']),
    ('[{"image_id": 1, "segmentation": [[1e12, 2, 3, 4, 5, 6]]}]', ['polygon', 'far outside']),
    ('[{"image_id": 1, "segmentation": {"size": [9, 9], "counts": [81]}}]', ['9 x 9', '9 x 8']),
    ('[] []', ["'['"]),
    ('[{"image_id": 1, "a": "\\x"}]', ["'x'"]),
    ('[{"image_id": 1, "a": "\n"}]', ['0x0a']),
    ('[01]', ['x.json:1']),
    ('{"images": [{"id": 1}, {"id": 1}], "annotations": []}', ['two images']),
])
def test_bad_coco_files_are_refused_in_a_sentence(saccade, tmp_path, text, words):
    gt = folder_of(tmp_path, 'gt', {'1': 255})
    (tmp_path / 'x.json').write_text(text)
    fails(saccade('eval', '--gt', gt, '--masks', tmp_path / 'x.json', '-q'), 1, 'x.json', *words)


# ---- video and flicker ----

needs_ffmpeg = pytest.mark.skipif(not shutil.which('ffmpeg'), reason='no ffmpeg')


def write_video(path, frames, pixels='gray'):
    height, width = frames[0].shape
    subprocess.run(['ffmpeg', '-v', 'error', '-f', 'rawvideo', '-pix_fmt', 'gray', '-s', f'{width}x{height}', '-i', '-',
                    '-c:v', 'ffv1', '-pix_fmt', pixels, path], input=b''.join(f.tobytes() for f in frames), check=True)


def scene(count, width=128, height=96, step=3):
    """A textured body that walks over textured ground: pictures and its mattes."""
    rng = numpy.random.default_rng(9)
    ground = ndimage.gaussian_filter(rng.uniform(0, 255, (height, width)), 2)
    ground = ((ground - ground.min()) / numpy.ptp(ground) * 200).astype(numpy.uint8)
    body = ndimage.gaussian_filter(rng.uniform(0, 255, (48, 32)), 1.5)
    body = (55 + (body - body.min()) / numpy.ptp(body) * 200).astype(numpy.uint8)
    pictures, mattes = [], []
    for i in range(count):
        picture, matte = ground.copy(), numpy.zeros_like(ground)
        picture[24:72, 16 + step * i:48 + step * i] = body
        matte[24:72, 16 + step * i:48 + step * i] = 255
        pictures.append(picture)
        mattes.append(matte)
    return pictures, mattes


@needs_ffmpeg
def test_a_video_of_masks_is_scored_by_frame(saccade, tmp_path):
    rng = numpy.random.default_rng(1)
    pairs = [(blob(rng, 48, 64), blob(rng, 48, 64)) for _ in range(5)]
    for i, (gt, _) in enumerate(pairs):
        write_png(tmp_path / f'gt/{i:05d}.png', gt)
    write_video(tmp_path / 'masks.mkv', [mask for _, mask in pairs])
    scores = score(saccade, tmp_path / 'gt', tmp_path / 'masks.mkv')
    same(scores['combined'], reference(pairs))
    assert score(saccade, tmp_path / 'masks.mkv', tmp_path / 'masks.mkv')['combined']['iou'] == 1


def write_alpha(path, mattes, *options):
    """A picture of noise with the mattes as its alpha."""
    rng = numpy.random.default_rng(7)
    height, width = mattes[0].shape
    frames = [numpy.dstack([rng.integers(0, 256, (height, width, 3), numpy.uint8), matte]) for matte in mattes]
    subprocess.run(['ffmpeg', '-v', 'error', '-f', 'rawvideo', '-pix_fmt', 'bgra', '-s', f'{width}x{height}', '-i', '-',
                    *options, path], input=b''.join(f.tobytes() for f in frames), check=True)


@needs_ffmpeg
@pytest.mark.parametrize('name, options', [
    ('bgra.mkv', ['-c:v', 'ffv1', '-pix_fmt', 'bgra']),
    ('yuva.mkv', ['-c:v', 'ffv1', '-pix_fmt', 'yuva420p']),
    ('deep.mkv', ['-c:v', 'ffv1', '-pix_fmt', 'yuva444p10le']),
    ('pro.mov', ['-c:v', 'prores_ks', '-pix_fmt', 'yuva444p10le', '-alpha_bits', '16']),
    ('vp9.webm', ['-c:v', 'libvpx-vp9', '-pix_fmt', 'yuva420p', '-lossless', '1']),
    ('vp8.webm', ['-c:v', 'libvpx', '-pix_fmt', 'yuva420p', '-auto-alt-ref', '0', '-crf', '4', '-b:v', '9M']),
])
def test_of_a_video_with_alpha_that_is_scored(saccade, tmp_path, name, options):
    rng = numpy.random.default_rng(1)
    mattes = [blob(rng, 49, 65) for _ in range(4)]
    mattes[0][:] = 255  # a first frame that is opaque is no opaque video
    for i, matte in enumerate(mattes):
        write_png(tmp_path / f'gt/{i:05d}.png', matte)
    write_alpha(tmp_path / name, mattes, *options)
    run = saccade('eval', '--gt', tmp_path / 'gt', '--masks', tmp_path / name, '--json')
    scores = report(run)['combined']
    assert scores['pictures'] == 4 and scores['mse'] < (1e-3 if name == 'vp8.webm' else 1e-4)
    assert 'its alpha is read as masks' in run.stderr
    run = saccade('eval', '--gt', tmp_path / 'gt', '--masks', tmp_path / name, '--mask-values', 'objects', '-q')
    fails(run, 1, f'{name}: alpha, where numbers of objects')


@needs_ffmpeg
def test_alpha_of_a_video_that_is_turned_lies_like_the_picture(saccade, tmp_path):
    rng = numpy.random.default_rng(3)
    matte = blob(rng, 40, 64)
    write_png(tmp_path / 'gt/0.png', numpy.rot90(matte, -1))
    write_alpha(tmp_path / 'a.mov', [matte], '-c:v', 'qtrle', '-pix_fmt', 'argb')
    subprocess.run(['ffmpeg', '-v', 'error', '-i', tmp_path / 'a.mov', '-c', 'copy', '-metadata:s:v', 'rotate=270',
                    tmp_path / 'turned.mov'], check=True)
    same(score(saccade, tmp_path / 'gt', tmp_path / 'turned.mov')['combined'],
         reference([(matte, matte)]))


@needs_ffmpeg
def test_a_video_in_colour_is_remarked(saccade, tmp_path):
    mattes = [blob(numpy.random.default_rng(2), 48, 64)] * 2
    write_png(tmp_path / 'gt/0.png', mattes[0])
    for name, source, remarked in (('green.mp4', 'color=0x00b140', True), ('grey.mp4', 'color=0x808080', False),
                                   ('bars.mp4', 'testsrc=r=25', True)):
        subprocess.run(['ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', f'{source}:s=64x48:d=0.08', '-pix_fmt', 'yuv420p',
                        tmp_path / name], check=True)
        run = saccade('eval', '--gt', tmp_path / 'gt', '--masks', tmp_path / name, '--json')
        assert report(run) and (f'{name}: a video in colour' in run.stderr) == remarked


@needs_ffmpeg
def test_opaque_alpha_leaves_the_luma(saccade, tmp_path):
    rng = numpy.random.default_rng(1)
    mattes = [blob(rng, 48, 64) for _ in range(3)]
    for i, matte in enumerate(mattes):
        write_png(tmp_path / f'gt/{i:05d}.png', matte)
    write_video(tmp_path / 'masks.mkv', mattes, 'bgra')
    run = saccade('eval', '--gt', tmp_path / 'gt', '--masks', tmp_path / 'masks.mkv', '--json')
    assert report(run)['combined']['iou'] > 0.99 and 'opaque throughout' in run.stderr


def flicker_of(saccade, tmp_path, name, mattes, *more):
    for i, matte in enumerate(mattes):
        write_png(tmp_path / name / f'{i:05d}.png', matte)
    run = saccade('eval', '--masks', tmp_path / name, '--video', tmp_path / 'in', '--json', '-q', *more)
    combined = report(run)['combined']
    assert combined['pictures'] == len(mattes)
    return combined['flicker']


def test_flicker_is_what_motion_does_not_explain(saccade, tmp_path):
    pictures, mattes = scene(8)
    for i, picture in enumerate(pictures):
        write_png(tmp_path / f'in/{i:05d}.png', picture)
    steady = flicker_of(saccade, tmp_path, 'steady', mattes)
    rng = numpy.random.default_rng(12)
    shaken = [numpy.roll(matte, rng.integers(-3, 4), axis=0) for matte in mattes]
    gone = [matte * (i % 2) for i, matte in enumerate(mattes)]
    assert steady < 0.005
    assert 0.03 < flicker_of(saccade, tmp_path, 'shaken', shaken) < 0.3
    assert flicker_of(saccade, tmp_path, 'gone', gone) > 0.95
    standing = flicker_of(saccade, tmp_path, 'standing', [mattes[0]] * 8)
    assert standing > 0.05  # a matte that does not move with its body
    assert flicker_of(saccade, tmp_path, 'empty', [matte * 0 for matte in mattes]) == 0


def runs_of(mask):
    """COCO's counts."""
    flat = numpy.concatenate(([0], (mask > 0).flatten(order='F').astype(int)))
    starts = numpy.flatnonzero(numpy.diff(flat))
    return numpy.diff(numpy.concatenate(([0], starts, [mask.size]))).tolist()


def test_results_count_frames_from_1_though_the_last_frames_have_none(saccade, tmp_path):
    pictures, mattes = scene(8)
    mattes[-1] = mattes[-1] * 0
    for i, picture in enumerate(pictures):
        write_png(tmp_path / f'in/{i:05d}.png', picture)
    expected = flicker_of(saccade, tmp_path, 'masks', mattes)
    (tmp_path / 'masks.json').write_text(json.dumps(
        [{'image_id': i + 1, 'category_id': 1, 'score': 1,
          'segmentation': {'size': list(matte.shape), 'counts': runs_of(matte)}}
         for i, matte in enumerate(mattes) if matte.any()]))
    run = saccade('eval', '--masks', tmp_path / 'masks.json', '--video', tmp_path / 'in', '--json', '-q')
    assert report(run)['combined']['flicker'] == pytest.approx(expected, abs=1e-9)
    assert report(run)['missing']['frames'] == 0


def test_flicker_by_sequence_and_with_ground_truth(saccade, tmp_path):
    pictures, mattes = scene(5)
    for i, (picture, matte) in enumerate(zip(pictures, mattes)):
        for name in 'ab':
            write_png(tmp_path / f'in/{name}/{i + 1:04d}.png', picture)
            write_png(tmp_path / f'gt/{name}/{i + 1:04d}.png', matte)
            write_png(tmp_path / f'masks/{name}/{i + 1:04d}.png', matte * (name == 'a' or i % 2))
    scores = score(saccade, tmp_path / 'gt', tmp_path / 'masks', '--video', tmp_path / 'in')
    a, b = (row['flicker'] for row in scores['sequences'])
    assert a < 0.005 and b > 0.95 and a < scores['combined']['flicker'] < b
    assert scores['missing']['frames'] == 0
    masks = tmp_path / 'masks/a'
    assert report(saccade('eval', '--masks', masks, '--video', tmp_path / 'in/b', '--json', '-q'))['combined']['iou'] is None
    write_png(masks / '0009.png', mattes[0])
    extra = report(saccade('eval', '--masks', masks, '--video', tmp_path / 'in/a', '--json', '-q'))
    assert extra['missing']['frames'] > 0
