# SPDX-License-Identifier: Apache-2.0
"""Scores of detectors, embeddings and mattes, beside COCO's own program and cases done by hand."""
import contextlib
import io

import numpy
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from saccade_train import metrics

array = lambda *rows: numpy.array(rows, numpy.float32).reshape(-1, 4)


def scattered(random, n, most=180):
    corner, side = random.uniform(0, most, (n, 2)), random.uniform(6, 70, (n, 2))
    return numpy.concatenate([corner, corner + side], 1).astype(numpy.float32)


def made_up(random, pictures=24):
    """Persons, crowds and a mediocre detector's findings in them; one picture has more than 100."""
    out = []
    for i in range(pictures):
        truth, crowd = scattered(random, int(random.integers(0, 7))), scattered(random, int(i % 4 == 0))
        if i % 3 == 0:  # a crowd around everybody: who is found counts for himself all the same
            crowd = numpy.concatenate([crowd, array([10, 10, 200, 200])])
        near = truth[random.random(len(truth)) < 0.8]
        near = near + random.normal(0, 1.5, near.shape).astype(numpy.float32)
        boxes = numpy.concatenate([near, near[:2] + 1, scattered(random, 3), crowd])
        good = numpy.arange(len(boxes)) < len(near)
        scores = random.uniform(0, 0.7 + 0.3 * good).astype(numpy.float32).round(2)  # with ties
        out.append((boxes, scores, truth, crowd))
    out.append((scattered(random, 150), random.random(150).astype(numpy.float32), scattered(random, 20), array()))
    return out


def coco_scores(pictures):
    """AP50 and AP in per cent from pycocotools."""
    images, truth, found = [], [], []
    for i, (boxes, scores, persons, crowds) in enumerate(pictures, 1):
        images.append(dict(id=i, width=300, height=300))
        for crowd, group in enumerate((persons, crowds)):
            for x0, y0, x1, y1 in group.tolist():
                truth.append(dict(id=len(truth) + 1, image_id=i, category_id=1, iscrowd=crowd,
                                  bbox=[x0, y0, x1 - x0, y1 - y0], area=(x1 - x0) * (y1 - y0)))
        found += [dict(image_id=i, category_id=1, bbox=[x0, y0, x1 - x0, y1 - y0], score=float(s))
                  for (x0, y0, x1, y1), s in zip(boxes.tolist(), scores)]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = dict(images=images, annotations=truth, categories=[dict(id=1, name='person')])
        coco.createIndex()
        evaluation = COCOeval(coco, coco.loadRes(found), 'bbox')
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation.stats[1] * 100, evaluation.stats[0] * 100


@pytest.mark.parametrize('seed', range(4))
def test_average_precision_is_cocos(seed):
    pictures = made_up(numpy.random.default_rng(seed))
    ours = metrics.Precision()
    for picture in pictures:
        ours.add(*picture)
    score = ours.score()
    assert 5 < score['AP'] < score['AP50'] < 90
    assert (score['AP50'], score['AP']) == pytest.approx(coco_scores(pictures), abs=1e-3)


def test_precision_by_hand():
    persons = array([0, 0, 10, 10], [50, 50, 60, 60])
    wrong = array([100, 100, 110, 110])
    perfect = metrics.Precision()
    perfect.add(persons, numpy.array([0.9, 0.8]), persons, array())
    assert perfect.score() == pytest.approx(dict(AP50=100, AP=100))
    half = metrics.Precision()  # a false alarm above the one that is right: half of precision at half of recall
    half.add(numpy.concatenate([wrong, persons[:1]]), numpy.array([0.9, 0.8]), persons, array())
    assert half.score()['AP50'] == pytest.approx(100 * 0.5 * 51 / 101, abs=0.01)
    nothing = metrics.Precision()
    nothing.add(array(), numpy.zeros(0), persons, array())
    assert nothing.score() == dict(AP50=0, AP=0)


def test_the_interval_holds_the_value():
    precision = metrics.Precision()
    for picture in made_up(numpy.random.default_rng(9)):
        precision.add(*picture)
    score, span = precision.score(), precision.interval(rounds=60)
    for key, value in score.items():
        low, high = span[key]
        assert low < value < high and 1 < high - low < 60


def test_non_maximum_suppression():
    boxes = array([0, 0, 10, 10], [1, 0, 11, 10], [0, 0, 10, 5], [30, 30, 40, 40])
    kept = metrics.non_maximum_suppression(boxes, numpy.array([0.6, 0.9, 0.5, 0.2]), limit=0.65)
    assert kept.tolist() == [1, 2, 3]
    assert len(metrics.non_maximum_suppression(array(), numpy.zeros(0))) == 0


def test_retrieval_by_hand():
    query = numpy.array([[1, 0], [0, 1], [1, 0]], numpy.float32)
    gallery = numpy.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [1, 0], [1, 0]], numpy.float32)
    allowed = numpy.ones((3, 5), bool)
    allowed[0, 3:] = False  # too near in time
    score = metrics.retrieval(query, gallery, numpy.array([1, 2, 3]), numpy.array([2, 1, 2, 1, 1]), allowed)
    # the first finds its own at rank 2 of three that count, the second at 1 and 3; the third has none
    assert score['queries'] == 2
    assert score['rank1'] == pytest.approx(50)
    assert score['mAP'] == pytest.approx(100 * (1 / 2 + (1 + 2 / 3) / 2) / 2)


def disc(cx, cy, r, side=100):
    y, x = numpy.mgrid[:side, :side]
    return (x - cx) ** 2 + (y - cy) ** 2 <= r * r


def test_mattes_by_hand():
    known, truth = numpy.ones((100, 100), bool), disc(50, 50, 20)
    assert metrics.matte_scores(truth, truth, known) == (1, 1)
    assert metrics.matte_scores(disc(15, 15, 8), truth, known) == (0, 0)
    assert metrics.matte_scores(truth & False, truth & False, known) == (None, None)
    # the further to the side, the less; the contour may be off by 0.8 % of the diagonal, here two pixels
    shifted = [metrics.matte_scores(disc(50 + by, 50, 20), truth, known) for by in (1, 3, 6)]
    assert [round(iou, 2) for iou, _ in shifted] == [0.94, 0.83, 0.68]
    assert shifted[0][1] == 1 > 0.65 > shifted[1][1] > shifted[2][1] > 0.1
    # what is not known does not count
    half = known.copy()
    half[:, :50] = False
    assert metrics.matte_scores(truth & half, truth, half) == (1, 1)


def test_the_contour_is_one_pixel_wide():
    square = numpy.zeros((20, 20), bool)
    square[5:15, 5:15] = True
    line = metrics.contour(square)
    assert line.sum() == 4 * 10  # above and to the left outside of it, below and to the right inside
    assert not line[6:13, 6:13].any() and not line[:4].any()
    assert not metrics.contour(numpy.ones((4, 6), bool)).any()


def test_near_is_a_disc_around_each_pixel():
    point = numpy.zeros((31, 40), bool)
    point[3, 20] = True
    assert (metrics.near(point, 7) == disc(20, 3, 7, 40)[:31]).all()
    assert (metrics.near(point, 0) == point).all()
    assert metrics.near(point, 90).all() and not metrics.near(point & False, 5).any()


def test_boundary_f_has_davis_tolerance():
    """0.008 of the diagonal, rounded up: 2 pixels here. Contours moved by so much are met, by one more are not."""
    right_of = lambda x: numpy.tile(numpy.arange(160) >= x, (120, 1))
    truth = right_of(60)
    assert [metrics.boundary_f(right_of(60 + by), truth) for by in (0, 2, -2, 3, -3)] == [1, 1, 1, 0, 0]
    assert metrics.boundary_f(truth & False, truth) == 0 and metrics.boundary_f(truth & False, truth & False) == 1
