# SPDX-License-Identifier: Apache-2.0
"""Augmentation: boxes follow pixels, labels tell what is left, values stay in range."""
import numpy
import pytest
import torch

from saccade_train import augment

RED, BLUE = (255.0, 0.0, 0.0), (0.0, 0.0, 255.0)  # a person, and a crowd
SIDE = 64


class Pictures:
    """Stands in for data.Store: grey pictures with one red person each and, in some, a blue crowd."""

    def __init__(self, masks=True):
        random = numpy.random.default_rng(3)
        self.cache, self.device = list(range(8)), torch.device('cpu')
        self.canvas = torch.full((8, 3, SIDE, SIDE), 90.0)
        self.size = torch.zeros(8, 2, dtype=torch.long)
        self.mask = torch.zeros(8, SIDE, SIDE) if masks else None
        self.with_people = torch.arange(1, 8)
        self.boxes, self.ignore = [], []
        for i in range(8):
            width, height = (int(v) for v in random.integers(40, SIDE + 1, 2))
            self.size[i] = torch.tensor([width, height])
            x, y, w, h = (int(v) for v in (*random.integers(0, 12, 2), *random.integers(12, 20, 2)))
            person, crowd = [], []
            if i:  # the first shows nobody
                person.append([x, y, x + w, y + h])
                self._fill(i, person[0], RED)
                if masks:
                    self.mask[i, y:y + h, x:x + w] = 1
            if i % 3 == 1:
                crowd.append([4, 33, 38, 39])
                self._fill(i, crowd[0], BLUE)
            self.boxes.append(numpy.array(person, numpy.float32).reshape(-1, 4))
            self.ignore.append(numpy.array(crowd, numpy.float32).reshape(-1, 4))

    def _fill(self, i, box, colour):
        x0, y0, x1, y1 = box
        self.canvas[i, :, y0:y1, x0:x1] = torch.tensor(colour)[:, None, None]

    def fetch(self, index):
        return self.canvas[index].clone()

    def people(self, index):
        return self.mask[index][:, None]


def mosaic(share, scale=(0.5, 1.6), **more):
    torch.manual_seed(4)
    store = Pictures(**more)
    return augment.Mosaic(store, augment.pad_labels(store.boxes, store.ignore, 'cpu'), 96, 80, share, scale)


def coloured(picture, colour):
    """Pixels [H,W] that are more of this colour than of grey."""
    return ((picture - torch.tensor(colour)[:, None, None]).abs().amax(0) < 120).numpy()


def painted(labels, shape, kinds):
    """Pixels [H,W] under the boxes of these kinds, counted by their centres."""
    out = numpy.zeros(shape, bool)
    ys, xs = (numpy.arange(n) + 0.5 for n in shape)
    for x0, y0, x1, y1, kind in labels.numpy():
        if kind in kinds:
            out |= ((xs >= x0) & (xs < x1))[None] & ((ys >= y0) & (ys < y1))[:, None]
    return out


def borders(mask, by=2):
    """Where a shift by a pixel or two changes the mask: there, interpolation may decide."""
    grown, shrunk = mask.copy(), mask.copy()
    for axis in (0, 1):
        for step in range(-by, by + 1):
            grown |= numpy.roll(mask, step, axis)
            shrunk &= numpy.roll(mask, step, axis)
    return grown & ~shrunk


def check_labels(pictures, labels):
    """Red and blue are where the boxes say; at most slivers are unlabelled."""
    for picture, own in zip(pictures, labels):
        red, blue = coloured(picture, RED), coloured(picture, BLUE)
        persons, both = painted(own, red.shape, (1,)), painted(own, red.shape, (1, -1))
        unsure = borders(both) | borders(persons)
        assert not (persons & ~red & ~unsure).any()       # a person's box is full of him
        assert not (both & ~(red | blue) & ~unsure).any()  # an ignored one shows a crowd, or a rest of someone
        assert ((red | blue) & ~both & ~borders(both, 4)).sum() <= 0.02 * red.size


@pytest.mark.parametrize('share', [0.0, 1.0], ids=['single', 'mosaic'])
def test_boxes_follow_their_pixels(share):
    pictures, labels = mosaic(share).batch(48)
    assert pictures.shape == (48, 3, 80, 96)
    assert labels.shape[1:] == (8 if share else 2, 5) or not share
    check_labels(pictures, labels)
    assert (labels[..., 4] == 1).sum() > 24 and (labels[..., 4] == -1).sum() > 4


def test_persons_are_mirrored_with_their_picture():
    store = Pictures()
    labels = augment.pad_labels(store.boxes, store.ignore, 'cpu')
    index = torch.tensor([2, 3, 4])
    for flip in (False, True):
        flips = torch.full((3,), flip)
        scale, shift = torch.tensor([1.0, 1.3, 0.7]), torch.tensor([[5.0, 3.0], [0.0, 0.0], [20.0, 11.0]])
        picture, inside = augment.sample(store.fetch(index), scale, shift, flips, 96, 80, store.size[index])
        moved = augment.move_boxes(labels[index], scale, shift, flips, store.size[index])
        clipped = augment.clip_boxes(moved, *(torch.full((3, 1), float(v)) for v in (0, 0, 96, 80)))
        check_labels(picture, clipped)
        # outside of its source a picture is the fill
        assert (picture.permute(0, 2, 3, 1)[~inside] == 114).all()


def test_people_are_pasted_with_their_boxes():
    maker = mosaic(0.0)
    grey, none = torch.full((64, 3, 80, 96), 90.0), torch.zeros(64, 1, 5)
    pictures, labels = maker.paste(grey.clone(), none, share=1.0, height=(16, 60))
    assert (labels[..., 4] == 1).sum() > 16
    for picture, own in zip(pictures, labels):
        red, persons = coloured(picture, RED), painted(own, (80, 96), (1,))
        assert not (persons & ~red & ~borders(persons)).any()
        both = painted(own, (80, 96), (1, -1))
        assert (red & ~both & ~borders(both)).sum() <= 0.02 * red.size
        assert not coloured(picture, BLUE).any()  # the crowd stays where it is
    # whoever filled the picture before is hidden now where somebody tall was pasted
    before = torch.tensor([[40.0, 30.0, 52.0, 54.0, 1.0]]).expand(64, 1, 5).clone()
    pictures, labels = maker.paste(grey.clone(), before, share=1.0, height=(50, 80))
    for picture, kind in zip(pictures, labels[:, 0, 4].tolist()):
        hidden = coloured(picture[:, 30:54, 40:52], RED).mean()
        assert kind == (1 if hidden < 0.5 else -1) or 0.5 < hidden < 0.7
    assert {1.0, -1.0} == set(labels[:, 0, 4].tolist())
    untouched, _ = maker.paste(grey.clone(), none, share=0.0)
    assert torch.equal(untouched, grey)


def test_who_is_hidden_is_ignored():
    labels = torch.tensor([[[0, 0, 32, 32, 1], [32, 0, 64, 32, 1], [0, 32, 32, 64, -1], [0, 0, 0, 0, 0]]]).float()
    hidden = torch.zeros(1, 64, 64)
    hidden[0, :24, :32] = 1   # three quarters of the first person
    hidden[0, :8, 32:] = 1    # a quarter of the second
    assert augment.cover(labels, hidden, 64, 64)[0, :, 4].tolist() == [-1, 1, -1, 0]


@pytest.mark.parametrize('box, kind, left', [
    ((10, 10, 30, 50), 1, (1, (10, 10, 30, 50))),       # whole
    ((-10, 10, 30, 50), 1, (1, (0, 10, 30, 50))),       # three quarters are left
    ((-30, 10, 10, 50), 1, (-1, (0, 10, 10, 50))),      # a quarter: unsure
    ((-39, 10, 1, 50), 1, (0, None)),                   # a sliver
    ((-30, 10, 10, 50), -1, (-1, (0, 10, 10, 50))),     # a crowd stays one
    ((200, 10, 240, 50), 1, (0, None)),                 # gone
    ((10, 10, 12, 50), 1, (0, None)),                   # two pixels wide
])
def test_clipping(box, kind, left):
    labels = torch.tensor([[[*box, kind]]], dtype=torch.float32)
    out = augment.clip_boxes(labels, *(torch.full((1, 1), float(v)) for v in (0, 0, 96, 80)))[0, 0]
    assert int(out[4]) == left[0]
    if left[1]:
        assert out[:4].tolist() == list(left[1])


def test_lists_become_padded_labels():
    some = [numpy.array([[1, 2, 3, 4]], numpy.float32), numpy.zeros((0, 4), numpy.float32)]
    crowd = [numpy.array([[5, 6, 7, 8]], numpy.float32), numpy.zeros((0, 4), numpy.float32)]
    labels = augment.pad_labels(some, crowd, 'cpu')
    assert labels.tolist() == [[[1, 2, 3, 4, 1], [5, 6, 7, 8, -1]], [[0] * 5] * 2]


def test_colours_stay_in_range():
    torch.manual_seed(1)
    x = torch.rand(16, 3, 40, 56) * 255
    y = augment.photometric(x)
    assert y.shape == x.shape and y.min() >= 0 and y.max() <= 255 and torch.isfinite(y).all()
    assert (y - x).abs().mean() > 5


@pytest.mark.parametrize('n', [1, 3, 16])
def test_degrading_changes_some_pictures_and_not_all(n):
    torch.manual_seed(2)
    x = torch.rand(n, 3, 37, 53) * 255
    before = x.clone()
    y = augment.degrade(x)
    assert torch.equal(x, before)
    assert y.shape == x.shape and y.min() >= 0 and y.max() <= 255
    same = sum(torch.equal(a, b) for a, b in zip(x, y))
    assert same == (n - 4 * (n // 5) if n >= 5 else max(0, n - 4))


def test_blur_keeps_what_is_even_and_spreads_a_point():
    even = torch.full((1, 3, 20, 20), 77.0)
    assert torch.allclose(augment.gaussian_blur(even, 1.5), even, atol=1e-3)
    point = torch.zeros(1, 1, 21, 21)
    point[0, 0, 10, 10] = 1
    spread = augment.gaussian_blur(point, 1.2)
    assert spread.sum() == pytest.approx(1, abs=1e-5) and spread.max() == spread[0, 0, 10, 10] < 0.2
    assert torch.allclose(spread, spread.flip(3), atol=1e-7) and torch.allclose(spread, spread.transpose(2, 3), atol=1e-7)


def test_compression_loses_more_with_larger_steps():
    d = augment.dct_matrix('cpu')
    assert torch.allclose(d @ d.t(), torch.eye(8), atol=1e-6)
    torch.manual_seed(3)
    x = torch.nn.functional.interpolate(torch.rand(1, 3, 10, 10) * 255, size=(37, 53), mode='bilinear')
    loss = [float((augment.compress(x, torch.tensor([q])) - x).abs().mean()) for q in (1e-3, 1.0, 8.0, 40.0)]
    assert loss[0] < 1e-2 and loss == sorted(loss) and loss[3] > 3
