# SPDX-License-Identifier: Apache-2.0
"""Rendered persons: both views are of one person."""
import torch

from saccade_train import crops, render, training


def test_two_views_of_a_rendered_person_wear_the_same():
    training.seed_all(2)
    grey = lambda n: torch.full((n, 3, crops.HEIGHT, crops.WIDTH), 128.0)
    a, b, box_a, box_b = render.pairs(24, torch.device('cpu'), grey)
    for canvas, box in ((a, box_a), (b, box_b)):
        assert canvas.shape == (24, 4, crops.HEIGHT, crops.WIDTH) and torch.isfinite(canvas).all()
        assert ((box[:, 2:] - box[:, :2]) > 0.2).all()
    mean = lambda x: (x[:, :3] * x[:, 3:]).sum((2, 3)) / x[:, 3:].sum((2, 3))
    colour_a, colour_b = (torch.nn.functional.normalize(mean(x), dim=1) for x in (a, b))
    apart = torch.cdist(colour_a, colour_b)
    assert apart.diagonal().mean() < 0.6 * apart.mean()
