# SPDX-License-Identifier: Apache-2.0
"""bench/moving.py: its mattes are where its people are, and these move as they should."""
import importlib.util
import pathlib

import numpy as np
import pytest
from PIL import Image

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / 'bench/moving.py'
spec = importlib.util.spec_from_file_location('moving', SCRIPT)
moving = importlib.util.module_from_spec(spec)
spec.loader.exec_module(moving)

PERSON = np.zeros((200, 80, 4), np.uint8)
PERSON[..., [0, 3]] = 255  # red, as wide as the drawing
GREY = Image.new('RGB', (640, 480), (90, 90, 90))


@pytest.fixture
def scene():
    scene = moving.Scene(0, 1, [PERSON], [GREY])
    scene.noise = 0
    return scene


def test_the_matte_is_where_the_person_is(scene):
    shown = 0
    for number in range(0, 100, 20):
        rgb, matte = scene.frame(number)
        red = (rgb[..., 0].astype(int) - 90) / (255 - 90)
        assert abs(red - matte / 255.0).max() < 0.02
        shown += (matte == 255).sum()
    assert shown > 1000


def test_a_clip_can_be_made_again():
    one, other = (moving.Scene(3, 1, [PERSON], [GREY]).frame(7) for _ in range(2))
    assert (one[0] == other[0]).all() and (one[1] == other[1]).all()
    assert (one[0] != moving.Scene(3, 2, [PERSON], [GREY]).frame(7)[0]).any()


@pytest.mark.parametrize('pace', moving.PACES)
def test_a_second_takes_so_many_heights(pace):
    walker = moving.Walker(np.random.default_rng(1), PERSON, pace)
    walker.at = 0.5
    step = walker.spot(0.04)[0] - walker.spot(0)[0]
    assert step == pytest.approx(0.04 * pace * walker.height * walker.turn)


def test_the_interval_is_around_the_mean():
    mean, low, high = moving.interval(np.array([1.0, 2.0, 3.0, 6.0]))
    assert mean == 3 and 1 < low < mean < high < 6
