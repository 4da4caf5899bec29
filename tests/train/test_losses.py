# SPDX-License-Identifier: Apache-2.0
"""Losses: least where the answer is perfect, and with the right gradients."""
import numpy
import pytest
import torch
from torch.autograd import gradcheck

from saccade_train import losses, nets

HEIGHT = WIDTH = 64
PERSON = (9.0, 9.0, 27.0, 27.0)  # six cells of the three strides have their centres in it: fewer than ten
CROWD = (40.0, 40.0, 62.0, 62.0)


@pytest.fixture
def scene():
    """Cells, the labels of one person and one crowd, and the perfect answer to them."""
    centres, sizes = nets.cell_grid(HEIGHT, WIDTH)
    labels = torch.tensor([[[*PERSON, 1], [*CROWD, -1], [0, 0, 0, 0, 0]]])
    inside = ((centres > torch.tensor(PERSON[:2])) & (centres < torch.tensor(PERSON[2:]))).all(1)
    assert inside.sum() == 6
    logit = torch.where(inside, 9.0, -9.0)[None]
    boxes = torch.where(inside[:, None], torch.tensor(PERSON), torch.cat([centres - 4, centres + 4], 1))[None]
    return centres, sizes, labels, inside, logit, boxes


def detection(scene, logit=None, boxes=None, teacher=None, **more):
    centres, sizes, labels, _, perfect_logit, perfect_boxes = scene
    return losses.detection_loss(perfect_logit if logit is None else logit,
                                 perfect_boxes if boxes is None else boxes,
                                 labels, centres, sizes, teacher, **more)


def test_a_perfect_detector_has_next_to_no_loss(scene):
    loss, parts = detection(scene)
    assert float(loss) < 1e-3 and all(float(v) < 1e-3 for v in parts.values())


def test_each_fault_of_a_detector_costs(scene):
    centres, _, _, inside, logit, boxes = scene
    best = float(detection(scene)[0])
    outside = ((centres > 28) & (centres < 38)).all(1).nonzero()[0, 0]
    missed = torch.where(inside[None], torch.tensor(-3.0), logit)
    invented = logit.clone()
    invented[0, outside] = 3.0
    shifted = boxes + torch.tensor([4.0, 0, 4.0, 0])
    assert float(detection(scene, logit=missed)[0]) > best + 0.5
    assert float(detection(scene, logit=invented)[0]) > best + 0.1
    assert float(detection(scene, boxes=shifted)[0]) > best + 0.1
    further = boxes + torch.tensor([8.0, 0, 8.0, 0])
    assert float(detection(scene, boxes=further)[0]) > float(detection(scene, boxes=shifted)[0])


def test_what_is_found_in_a_crowd_is_free(scene):
    centres, _, _, _, logit, _ = scene
    in_crowd = ((centres > CROWD[0]) & (centres < CROWD[2])).all(1)
    assert in_crowd.any()
    found = torch.where(in_crowd[None], torch.tensor(5.0), logit)
    assert float(detection(scene, logit=found)[0]) == pytest.approx(float(detection(scene)[0]), abs=1e-6)


def test_the_teacher_decides_in_crowds_and_shares_elsewhere(scene):
    centres, sizes, labels, inside, logit, boxes = scene
    in_crowd = ((centres > CROWD[0]) & (centres < CROWD[2])).all(1)
    soft = torch.where(in_crowd | inside, 0.9, 0.0)[None]
    agrees = torch.where(in_crowd[None], torch.logit(torch.tensor(0.9)), logit)
    disagrees = torch.where(in_crowd[None], torch.tensor(-5.0), logit)
    least = float(detection(scene, logit=agrees, teacher=(soft, boxes))[0])
    assert least < 0.05 < float(detection(scene, logit=disagrees, teacher=(soft, boxes))[0])
    # with no say, the teacher changes nothing about persons
    alone = float(detection(scene, logit=agrees, teacher=(soft, boxes), teacher_share=0.0)[1]['score'])
    assert alone < 0.01


def test_assignment_gives_each_cell_to_one_person():
    centres, _ = nets.cell_grid(HEIGHT, WIDTH)
    labels = torch.tensor([[[0, 0, 40, 64, 1], [24, 0, 64, 64, 1], [0, 0, 0, 0, 0]]]).float()
    near = centres[:, 0] < 32
    boxes = torch.where(near[:, None], labels[0, 0, :4], labels[0, 1, :4])[None]
    target, box, ignored = losses.assign(torch.full((1, len(centres)), 0.5), boxes, labels, centres)
    chosen = target[0] > 0
    assert 10 < chosen.sum() <= 20 and not ignored.any()
    assert torch.equal(box[0][chosen & near], labels[0, 0, :4].expand(int((chosen & near).sum()), 4))
    assert torch.equal(box[0][chosen & ~near], labels[0, 1, :4].expand(int((chosen & ~near).sum()), 4))
    assert float(target.max()) == pytest.approx(1, abs=1e-4)
    nobody = losses.assign(torch.full((1, len(centres)), 0.5), boxes, torch.zeros(1, 1, 5), centres)[0]
    assert not nobody.any()


def test_a_cell_that_two_persons_want_counts_for_one():
    """It is perfect for the first; the second's best of the rest is then its measure."""
    centres = torch.tensor([[20.0, 20.0], [28.0, 20.0]])
    labels = torch.tensor([[[0, 0, 40, 40, 1], [10, 0, 50, 40, 1]]]).float()  # they overlap by 0.6
    boxes = torch.stack([labels[0, 0, :4], torch.tensor([20.0, 0, 60, 40])])[None]  # 0.6 of the second, 1/3 of the first
    target, box, _ = losses.assign(torch.full((1, 2), 0.5), boxes, labels, centres, top=2)
    assert target[0].tolist() == pytest.approx([1, 0.6], abs=1e-4)
    assert torch.equal(box[0], labels[0, :, :4])
    boxes[0, 1] = torch.tensor([30.0, 0, 70, 40])  # 1/3 of the second
    target = losses.assign(torch.full((1, 2), 0.5), boxes, labels, centres, top=2)[0]
    assert target[0].tolist() == pytest.approx([1, 1 / 3], abs=1e-4)


def test_overlap_of_boxes():
    a = torch.tensor([[0.0, 0, 10, 10], [0, 0, 10, 10], [0, 0, 10, 10]])
    b = torch.tensor([[0.0, 0, 10, 10], [5, 0, 15, 10], [20, 0, 30, 10]])
    iou, giou = losses.box_iou_pairs(a, b)
    assert iou.tolist() == pytest.approx([1, 1 / 3, 0])
    assert giou.tolist() == pytest.approx([1, 1 / 3, -1 / 3])


def double(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def test_gradients_of_overlaps():
    torch.manual_seed(1)
    base = torch.rand(6, 4, dtype=torch.float64) * 10
    a, b = (torch.cat([base[:, :2] + s, base[:, :2] + 3 + base[:, 2:] + s], 1) for s in (0, 1.7))
    assert gradcheck(lambda x: losses.box_iou_pairs(x, b), a.requires_grad_())


def test_gradients_of_the_detection_loss(scene, monkeypatch):
    """With the assignment held still: it is no function that one differentiates."""
    torch.manual_seed(2)
    centres, sizes, labels, _, logit, boxes = scene
    logit, boxes = logit.double() / 6, boxes.double() + torch.rand(boxes.shape, dtype=torch.float64)
    fixed = losses.assign(torch.sigmoid(logit), boxes, labels.double(), centres.double())
    assert (fixed[0] > 0.5).sum() > 2
    monkeypatch.setattr(losses, 'assign', lambda *_: fixed)
    loss = lambda s, b: losses.detection_loss(s, b, labels.double(), centres.double(), sizes.double())[0]
    # 84 cells are many; those of the second stride and the third are enough for the boxes
    assert gradcheck(lambda s: loss(s, boxes), logit.requires_grad_())
    some = boxes[:, -20:].clone().requires_grad_()
    assert gradcheck(lambda b: loss(logit.detach(), torch.cat([boxes[:, :-20], b], 1)), some)


def test_mattes():
    torch.manual_seed(3)
    target = torch.zeros(2, 1, 24, 24)
    target[:, :, 6:18, 4:12] = 1
    known = torch.ones_like(target)
    perfect = (target * 2 - 1) * 12
    least = float(losses.matte_loss(perfect, target, known)[0])
    assert least < 1e-3
    assert float(losses.matte_loss(perfect.roll(2, 3), target, known)[0]) > least + 0.1
    assert float(losses.matte_loss(perfect.roll(4, 3), target, known)[0]) > float(
        losses.matte_loss(perfect.roll(2, 3), target, known)[0])
    assert float(losses.matte_loss(-perfect, target, known)[0]) > float(losses.matte_loss(perfect * 0, target, known)[0])
    # somebody missed costs more than as many pixels too many
    less, more = perfect.clone(), perfect.clone()
    less[:, :, 6:12, 4:12], more[:, :, :6, 4:12] = -12, 12
    dice = lambda logit, missed: float(losses.matte_loss(logit, target, known, missed)[1]['dice'])
    assert dice(less, 0.8) > dice(less, 0.5) + 0.05 and dice(more, 0.8) < dice(more, 0.5) - 0.05
    # what is not known costs nothing
    known[:, :, :, :6] = 0
    wrong = perfect.clone()
    wrong[:, :, :, :6] *= -1
    assert float(losses.matte_loss(wrong, target, known)[0]) == pytest.approx(least, abs=1e-3)
    nobody = torch.zeros_like(target)
    assert float(losses.matte_loss(nobody - 12, nobody, torch.ones_like(nobody))[0]) < least
    small = (target[:1, :, 4:16, 2:14].double(), known[:1, :, 4:16, 2:14].double())
    assert (small[0] * small[1]).sum() > 50  # so that Dice counts
    assert gradcheck(lambda x: losses.matte_loss(x, *small)[0], double(1, 1, 12, 12))


def test_pyramids_of_mattes():
    """The further a contour is off and the softer it is, the more; the same matte costs nothing."""
    at = torch.arange(64.0)
    edge = lambda x, soft=1.0: ((at - x) / soft + 0.5).clamp(0, 1).expand(1, 1, 64, 64)
    ones = torch.ones(1, 1, 64, 64)
    loss = lambda a: float(losses.pyramid_loss(a, edge(30), ones))
    assert loss(edge(30)) == 0
    assert 0 < loss(edge(31)) < loss(edge(33)) < loss(edge(40)) < loss(edge(60))
    assert 0 < loss(edge(30, 3.0)) < loss(edge(30, 12.0))
    known = ones.clone()
    known[..., 16:] = 0
    assert losses.pyramid_loss(edge(50), edge(58), known) < 1e-6  # nothing is known near the contour


def test_boxes_ask_for_somebody_in_each_row_and_column():
    matte = torch.full((1, 1, 64, 64), 0.01)
    box = torch.tensor([[[8.0, 16, 40, 56, 1, 1], [0, 0, 0, 0, 0, 0]]])
    loss = lambda: float(losses.box_loss(matte, box))
    nobody = loss()
    assert nobody == pytest.approx(-numpy.log(0.01), rel=1e-3)
    matte[..., 16:56, 20:24] = 0.99  # a post: all rows, few columns
    post = loss()
    assert 0.2 * nobody < post < 0.8 * nobody
    matte[..., 30:34, 8:40] = 0.99  # and a beam
    assert loss() < 0.02
    box[..., 4:] = 0
    assert losses.box_loss(matte * 0, box) == 0
    # a column that the box does not have asks for nothing; the gradient goes where somebody is likeliest
    matte = torch.full((1, 1, 64, 64), 0.2)
    matte[..., 40:44, :] = 0.3
    matte.requires_grad_()
    losses.box_loss(matte, torch.tensor([[[8.0, 16, 40, 56, 1, 0]]])).backward()
    shown = matte.grad[0, 0] != 0
    assert shown[40:44, 12:36].any() and not shown[:40].any() and not shown[:, 40:].any() and (matte.grad <= 0).all()


def test_mimicry_of_features():
    torch.manual_seed(6)
    features = [torch.randn(2, 5, s, s) * 3 + 1 for s in (8, 4)]
    scaled = [(f - f.mean((0, 2, 3), keepdim=True)) / f.std((0, 2, 3), keepdim=True) for f in features]
    weight = [torch.ones(2, 1, s, s) for s in (8, 4)]
    assert float(losses.mimic_loss(scaled, features, weight)) < 1e-6
    wrong = [s + 0.5 for s in scaled]
    assert float(losses.mimic_loss(wrong, features, weight)) == pytest.approx(0.5 * 0.5 ** 2, rel=1e-3)
    weight[0][:, :, :4], weight[1][:, :, :2] = 5, 5  # a fault counts five times where persons are
    up, down = ([s.clone() for s in scaled] for _ in range(2))
    for u, d in zip(up, down):
        u[:, :, :u.shape[2] // 2] += 0.5
        d[:, :, u.shape[2] // 2:] += 0.5
    assert float(losses.mimic_loss(up, features, weight)) == pytest.approx(
        5 * float(losses.mimic_loss(down, features, weight)), rel=1e-3)


def test_contrast():
    torch.manual_seed(4)
    a = torch.eye(6, 16)
    least = float(losses.contrast_loss(a, a * 3))
    assert least < 1e-4
    assert float(losses.contrast_loss(a, a.roll(1, 0))) > 5
    assert float(losses.contrast_loss(torch.randn(6, 16), torch.randn(6, 16))) > least + 0.5
    assert gradcheck(losses.contrast_loss, (double(4, 5), double(4, 5)))


def test_distillation_of_embeddings():
    torch.manual_seed(5)
    teacher = torch.randn(6, 16)
    assert float(losses.distill_loss(teacher * 2, teacher)[0]) < 1e-5
    assert float(losses.distill_loss(-teacher, teacher)[1]['direct']) == pytest.approx(2, abs=1e-4)
    assert float(losses.distill_loss(torch.randn(6, 16), teacher)[0]) > 0.5
    assert gradcheck(lambda s: losses.distill_loss(s, teacher[:4, :5].double())[0], double(4, 5))
