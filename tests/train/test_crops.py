# SPDX-License-Identifier: Apache-2.0
"""Crops of every layout, and what the cameras of views.py make of them."""
import shutil

import numpy
import pytest
import torch
from PIL import Image

from saccade_train import crops, training, views


def test_crops_of_the_data_sets_layout(folders):
    found = crops.read_crops(folders, height_min=24)
    boxes = [c for c in found if c.box]
    assert boxes and all(c.mask for c in boxes)
    held = {c.identity for c in found if 'multi' in str(c.path) and c.split == 'val'}
    assert held == {'5', '6'}
    # a copy of a box of `detect` is not a second person
    name = boxes[0].identity
    picture, number = name.split('-')
    copied = folders / f'reid/single/s{int(picture):012d}-{number}.jpg'
    shutil.copyfile(next((folders / 'reid/single').iterdir()), copied)
    again = crops.read_crops(folders, height_min=24)
    copied.unlink()
    assert len(again) == len(found)


def test_a_folder_of_crops_only(tmp_path):
    for name in ('0007_a.jpg', '7/b.jpg', 'somebody.png', '-1_c.jpg'):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new('RGB', (20, 50)).save(tmp_path / name)
    assert sorted(c.identity for c in crops.read_crops(tmp_path)) == ['-1_c.jpg', '7', '7', 'somebody.png']


def test_licences_can_be_left_out(folders, refuse):
    # the drawn single crops belong to no picture of `detect`: their licence is unknown
    refuse('reid', 'train', '--data', folders, '--out', 'x', '--distill', 0, '--drop-licenses', 5, '--device', 'cpu',
           words=['reid/single', 'licence is unknown'])


def test_a_canvas_has_the_box_in_its_middle():
    im = Image.new('RGB', (100, 100), (0, 0, 255))
    im.paste((255, 0, 0), (40, 30, 60, 70))
    canvas, known, room = crops.cut(im, None, (40, 30, 60, 70))
    assert not known and room == pytest.approx([1, 1, 1, 1])
    red = canvas[..., 0] > 128
    ys, xs = numpy.nonzero(red)
    box = numpy.array([xs.min(), ys.min(), xs.max() + 1, ys.max() + 1])
    assert numpy.abs(box - [32, 64, 160, 320]).max() <= 2
    _, _, room = crops.cut(im, None, (0, 0, 50, 100))
    assert room == pytest.approx([0, 0, 1, 0])


def test_views_keep_their_range_and_size(folders, tmp_path):
    training.seed_all(2)
    found = crops.read_crops(folders, 'train', height_min=24)
    store = crops.CropStore(crops.CropCache(found, tmp_path), 'cpu')
    first, second, who = store.pairs(8)
    assert (store.identity[first] == store.identity[second]).all()
    assert len(set(who.tolist())) == 8
    box = views.inner_box(8, 'cpu')
    x, clean = views.Views(store, occlusion=1.0, swap=1.0).view(store.fetch(first), box, store.room[first],
                                                                store.known[first])
    for y in (x, clean):
        assert y.shape == (8, 3, 256, 128) and y.std() > 5
        assert y.min() >= 0 and y.max() <= 255
