# SPDX-License-Identifier: Apache-2.0
"""Rendered people: what is drawn is where alpha says, and alpha is the share that is covered."""
import numpy
import pytest
import torch
from PIL import Image

from saccade_train import bodies

CPU = torch.device('cpu')


def drawn(kind, n=3, size=48, over=2, seed=3):
    torch.manual_seed(seed)
    return bodies.draw(kind, n, CPU, size, over)


@pytest.mark.parametrize('kind', bodies.KINDS)
def test_alpha_is_the_share_that_is_covered(kind):
    """The same bodies with three times the rays a side have the same alpha."""
    (few, _), (many, _) = drawn(kind, over=2), drawn(kind, over=6)
    alpha = few[:, 3] / 255
    assert 0 <= alpha.min() and alpha.max() <= 1 and alpha.mean() > 0.01
    apart = (few[:, 3] - many[:, 3]).abs() / 255
    assert apart.mean() < 0.006 and apart.max() < 0.35


@pytest.mark.parametrize('kind', bodies.KINDS)
def test_outlines_have_the_bodys_colours_alone(kind):
    x, light = drawn(kind)
    assert torch.isfinite(x).all() and (x[:, :3] <= x[:, 3:] + 0.01).all() and (x >= 0).all()
    assert light.shape == (3,) and (light.abs() <= 1).all()


def test_whole_people_fit_and_others_are_cut_by_the_lower_edge():
    whole, _ = drawn('whole', 6)
    rim = torch.cat([whole[:, 3, 0], whole[:, 3, -1], whole[:, 3, :, 0], whole[:, 3, :, -1]], 1)
    assert (rim.amax(1) < 128).all()
    for kind in ('upper', 'near', 'own'):
        x, _ = drawn(kind, 6)
        assert (x[:, 3, -1].amax(1) > 200).float().mean() > 0.7, kind


def test_a_seed_decides_the_bank():
    bank, again, other = (bodies.Bank(20, seed, side=32) for seed in (4, 4, 5))
    assert sorted(set(bank.kind)) == [0, 1, 2, 3] and 10 < len(bank) <= 20
    assert (bank.planes == again.planes).all() and (bank.box == again.box).all()
    assert bank.planes.shape != other.planes.shape or (bank.planes != other.planes).any()
    for (x0, y0, x1, y1), picture in zip(bank.box, bank.planes.numpy()):
        assert bodies.bounds(picture[3]) == (x0, y0, x1, y1)
        outside = picture[3].copy()
        outside[y0:y1, x0:x1] = 0
        assert outside.max() <= 8 and (x1 - x0) * (y1 - y0) > 4


def test_what_is_empty_has_no_box():
    alpha = torch.zeros(2, 8, 8, dtype=torch.uint8)
    alpha[1, 3, 5] = 9
    assert bodies.boxes_of(alpha).tolist() == [[0, 0, 0, 0], [5, 3, 6, 4]]


def test_a_sheet_shows_each_kind(tmp_path, monkeypatch):
    monkeypatch.setattr(bodies, 'SHEET', (2, 48))
    monkeypatch.setattr('sys.argv', ['bodies', str(tmp_path / 'sheet.png')])
    bodies.main()
    assert Image.open(tmp_path / 'sheet.png').size == (2 * 48, 4 * 48)
