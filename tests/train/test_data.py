# SPDX-License-Identifier: Apache-2.0
"""Folders, and the cache of decoded pictures."""
import json

import numpy
import pytest
import torch
from PIL import Image

import drawings
from saccade_train import data


def coco(root, images, annotations=(), categories=((1, 'person'),)):
    root.mkdir(parents=True, exist_ok=True)
    (root / 'annotations.json').write_text(json.dumps(dict(
        images=images, annotations=list(annotations), categories=[dict(id=i, name=n) for i, n in categories])))
    return root


def test_a_coco_folder_is_read(folders):
    pictures = data.read_coco(folders / 'detect')
    assert len(pictures) == drawings.PICTURES
    assert not len(pictures[0].boxes) and not len(pictures[0].ignore)
    assert pictures[1].ignore.tolist() == [[0, 0, drawings.WIDTH, 8]]
    assert [len(p.boxes) for p in pictures[1:4]] == [2, 3, 1]
    image = numpy.asarray(Image.open(pictures[3].path), int)
    x0, y0, x1, y1 = pictures[3].boxes[0].astype(int)
    assert image[y0:y1, x0:x1].std() > image[:, :x0 - 2].std()  # something is drawn there


def test_other_classes_splits_and_licences_are_left_out(tmp_path):
    images = [dict(id=i, file_name=f'{i}.jpg', license=i % 3) for i in range(1, 25)]
    boxes = [dict(id=1, image_id=1, category_id=1, bbox=[1, 2, 3, 4]),
             dict(id=2, image_id=1, category_id=2, bbox=[5, 6, 7, 8]),
             dict(id=3, image_id=1, category_id=1, bbox=[9, 9, 0.5, 8])]  # too thin to be anything
    folder = coco(tmp_path, images, boxes, [(1, 'cat'), (2, 'dog')])
    assert data.read_coco(folder, category='cat')[0].boxes.tolist() == [[1, 2, 4, 6]]
    assert data.read_coco(folder, category='dog')[0].boxes.tolist() == [[5, 6, 12, 14]]
    # without a `split` of its own every eighth picture is held out
    assert [p.name for p in data.read_coco(folder, 'val', 'cat')] == ['8', '16', '24']
    assert len(data.read_coco(folder, 'train', 'cat')) == 21
    assert all(p.license != 2 for p in data.read_coco(folder, None, 'cat', drop_licenses=(2,)))


def mot(root, name, rows, length=40, rate=20, images=True):
    """A sequence in MOTChallenge's layout."""
    (root / name / 'gt').mkdir(parents=True)
    (root / name / 'img1').mkdir()
    (root / name / 'gt/gt.txt').write_text(''.join(','.join(map(str, row)) + '\n' for row in rows))
    (root / name / 'seqinfo.ini').write_text(
        f'[Sequence]\nname={name}\nimDir=img1\nframeRate={rate}\nseqLength={length}\nimExt=.jpg\n')
    for frame in range(1, length + 1 if images else 1):
        Image.fromarray(numpy.full((48, 64, 3), 3 * frame, numpy.uint8)).save(root / name / f'img1/{frame:06d}.jpg')
    return root


def test_mot_sequences_are_read(tmp_path):
    rows = [(1, 1, 10, 20, 8, 16, 1, 1, 1.0),    # a person
            (1, 2, 30, 20, 8, 16, 1, 1, 0.1),    # hidden
            (1, 3, 40, 20, 8, 16, 0, 1, 1.0),    # not to be counted
            (1, 4, 50, 20, 8, 16, 1, 7, 1.0),    # stands still
            (1, 5, 1, 1, 30, 10, 1, 3, 1.0),     # a car
            (5, 1, 14, 20, 8, 16, 1, 1, 1.0), (6, 1, 15, 20, 8, 16, 1, 1, 1.0)]
    mot(tmp_path, 'a', [], images=False)  # by name the first: held out
    mot(tmp_path, 'b', rows)
    pictures = data.read_pictures(tmp_path, 'train')
    assert [p.name for p in pictures] == [f'b-{frame}' for frame in range(1, 41, 4)]  # 0.2 s of 20 a second
    assert pictures[0].boxes.tolist() == [[10, 20, 18, 36]]
    assert sorted(pictures[0].ignore[:, 0].tolist()) == [30, 40, 50]
    assert pictures[1].boxes.tolist() == [[14, 20, 22, 36]] and not len(pictures[2].boxes)
    assert {p.path.parent.parent.name for p in data.read_pictures(tmp_path, 'val')} == {'a'}
    cache = data.Cache(pictures, 64, tmp_path / 'cache')
    assert numpy.abs(cache.rgb[1, :48].astype(int) - 15).max() <= 2  # frame 5
    with pytest.raises(SystemExit, match='persons alone'):
        data.read_pictures(tmp_path, 'train', 'cat')
    for text, word in (('1,2,3\n', '3 columns'), ('1,2,3,4,5,6,7\n1,2\n', 'columns'), ('junk\n', 'junk')):
        (tmp_path / 'b/gt/gt.txt').write_text(text)
        with pytest.raises(SystemExit, match=f'gt.txt: .*{word}'):
            data.read_pictures(tmp_path, 'train')


def test_mot_sequences_of_2015_have_no_classes(tmp_path):
    mot(tmp_path, 'one', [(1, 1, 10, 20, 8, 16, 1, -1, -1, -1), (1, 2, 30, 20, 8, 16, 0, -1, -1, -1)], images=False)
    first, *_ = train = data.read_pictures(tmp_path, 'train')
    assert first.boxes.tolist() == [[10, 20, 18, 36]] and first.ignore.tolist() == [[30, 20, 38, 36]]
    # a single sequence: its end is held out
    held = data.read_pictures(tmp_path, 'val')
    assert [p.name for p in held] == ['one-37'] and len(train) == 9


def test_masks_find_their_pictures(folders):
    pictures = data.read_coco(folders / 'detect')
    assert len(data.attach_masks(pictures, folders / 'segment')) == drawings.PICTURES
    for p in pictures:
        mask = numpy.asarray(Image.open(p.mask))
        assert len(set(mask.reshape(-1)) - {0, 255}) == len(p.boxes)
        for i, box in enumerate(p.boxes):
            assert drawings.outline(mask == i + 1) == box.astype(int).tolist()


@pytest.mark.parametrize('side', [128, 64])
def test_the_cache_holds_pictures_and_boxes_at_one_scale(folders, tmp_path, side):
    pictures = data.read_coco(folders / 'detect')
    data.attach_masks(pictures, folders / 'segment')
    cache = data.Cache(pictures, side, tmp_path, with_masks=True)
    assert len(cache) == len(pictures) and cache.rgb.shape == (len(pictures), side, side, 3)
    assert (cache.size == (side, side * 3 // 4)).all()
    scale = side / drawings.WIDTH
    for i, p in enumerate(pictures):
        assert numpy.allclose(cache.boxes[i], p.boxes * scale)
        file = Image.open(p.path).resize((side, side * 3 // 4), Image.BILINEAR)
        assert numpy.abs(cache.rgb[i, :side * 3 // 4].astype(int) - numpy.asarray(file)).mean() < 1
        for n, box in enumerate(cache.boxes[i]):
            seen = drawings.outline(cache.mask[i] == n + 1)
            assert numpy.abs(seen - box).max() <= 1


def test_the_cache_is_built_once(folders, tmp_path, monkeypatch):
    pictures = data.read_coco(folders / 'detect')
    first = data.Cache(pictures, 64, tmp_path)
    monkeypatch.setattr(data.Cache, '_build', lambda *_: pytest.fail('built again'))
    again = data.Cache(pictures, 64, tmp_path)
    assert (first.rgb == again.rgb).all() and (first.size == again.size).all()
    with pytest.raises(pytest.fail.Exception):
        data.Cache(pictures[:-1], 64, tmp_path)  # other pictures
    with pytest.raises(pytest.fail.Exception):
        data.Cache(pictures, 32, tmp_path)       # another size


def test_other_masks_are_another_cache(folders, tmp_path):
    pictures = data.read_coco(folders / 'detect')
    data.attach_masks(pictures, folders / 'segment')
    assert data.Cache(pictures, 64, tmp_path, with_masks=True).mask.any()
    for p in pictures:
        p.mask = None
    assert not data.Cache(pictures, 64, tmp_path, with_masks=True).mask.any()


def test_a_cache_that_was_cut_off_is_built_again(folders, tmp_path, monkeypatch):
    pictures = data.read_coco(folders / 'detect')[:4]

    def cut_off(*args, **more):
        raise KeyboardInterrupt
    with monkeypatch.context() as patch:
        patch.setattr(numpy, 'savez', cut_off)
        with pytest.raises(KeyboardInterrupt):
            data.Cache(pictures, 64, tmp_path)
    assert (data.Cache(pictures, 64, tmp_path).rgb[3] > 0).any()


def test_the_cache_is_not_written_to(folders, tmp_path):
    pictures = data.read_coco(folders / 'detect')[:2]
    cache = data.Cache(pictures, 64, tmp_path)
    before = cache.rgb[0, 0, 0].tolist()
    cache.rgb[0, 0, 0] = 255 - cache.rgb[0, 0, 0]
    assert data.Cache(pictures, 64, tmp_path).rgb[0, 0, 0].tolist() == before


def test_the_store_fetches_in_any_order(folders, tmp_path):
    pictures = data.read_coco(folders / 'detect')
    data.attach_masks(pictures, folders / 'segment')
    cache = data.Cache(pictures, 64, tmp_path, with_masks=True)
    store = data.Store(cache, 'cpu')
    index = torch.tensor([5, 2, 9, 2, 0])
    x = store.fetch(index)
    assert x.shape == (5, 3, 64, 64) and x.dtype == torch.float32
    for row, i in zip(x, index.tolist()):
        assert torch.equal(row, torch.from_numpy(numpy.array(cache.rgb[i])).permute(2, 0, 1).float())
    people = store.people(torch.tensor([1]))[0, 0].numpy()
    assert (people == ((cache.mask[1] > 0) & (cache.mask[1] < 255))).all() and 0 < people.mean() < 0.5
    assert store.with_people.tolist() == list(range(1, drawings.PICTURES))  # the first shows nobody
