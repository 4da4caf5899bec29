# SPDX-License-Identifier: Apache-2.0
"""Losses: detection by task-aligned assignment and distillation; mattes; embeddings."""
import torch
import torch.nn.functional as F


def box_iou_pairs(a, b):
    """IoU and GIoU of boxes [...,4], element by element (broadcast). GIoU: Rezatofighi et al., CVPR 2019."""
    lt, rb = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area = lambda x: (x[..., 2:] - x[..., :2]).clamp(min=0).prod(-1)
    union = area(a) + area(b) - inter
    hull = (torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
    iou = inter / union.clamp(min=1e-6)
    return iou, iou - (hull - union) / hull.clamp(min=1e-6)


@torch.no_grad()
def assign(scores, boxes, labels, centres, top=10, alpha=0.5, beta=6.0):
    """Task-aligned assignment (TOOD, Feng et al., ICCV 2021).

    scores [B,A] in 0..1, boxes [B,A,4], labels [B,M,5], centres [A,2].
    Returns target score [B,A], target box [B,A,4], and a mask [B,A] of cells inside ignored regions.
    """
    gt, kind = labels[..., :4], labels[..., 4]
    inside = ((centres[None, None, :, 0] > gt[..., None, 0]) & (centres[None, None, :, 0] < gt[..., None, 2]) &
              (centres[None, None, :, 1] > gt[..., None, 1]) & (centres[None, None, :, 1] < gt[..., None, 3]))
    ignored = (inside & (kind < 0)[..., None]).any(1)
    inside &= (kind > 0)[..., None]
    iou = box_iou_pairs(gt[:, :, None], boxes[:, None])[0] * inside
    align = scores[:, None].clamp(min=1e-6) ** alpha * iou ** beta
    best, index = align.topk(top, -1)
    chosen = torch.zeros_like(inside).scatter_(-1, index, best > 1e-9)
    # A cell that several persons want goes to the one that it overlaps most.
    owner_iou, owner = (iou * chosen).max(1)
    positive = owner_iou > 0
    mine = chosen & (F.one_hot(owner, labels.shape[1]).transpose(1, 2) > 0)
    strength = align * mine
    norm = strength.amax(-1, keepdim=True).clamp(min=1e-9)
    reach = (iou * mine).amax(-1, keepdim=True)
    target = (strength / norm * reach).amax(1) * positive
    target_box = gt.gather(1, owner[..., None].expand(-1, -1, 4))
    return target, target_box, ignored & ~positive


def detection_loss(raw_score, boxes, labels, centres, sizes, teacher=None, teacher_share=0.5):
    """Loss and its parts. teacher: (scores [B,A], boxes [B,A,4]) or None.

    The score's target is a blend of the assignment's and the teacher's score; where the labels say
    nothing (crowds) it is the teacher's alone. Quality focal loss (Li et al., NeurIPS 2020).
    """
    prob = torch.sigmoid(raw_score)
    target, target_box, ignored = assign(prob.detach(), boxes.detach(), labels, centres)
    weight_box = target
    blend = target
    known = torch.ones_like(target)
    if teacher is not None:
        soft, soft_box = teacher
        blend = torch.where(ignored, soft, (1 - teacher_share) * target + teacher_share * soft)
        use_soft = (target == 0) & (soft > 0.1)
        target_box = torch.where(use_soft[..., None], soft_box, target_box)
        weight_box = torch.where(use_soft, soft * teacher_share, target)
    else:
        known = (~ignored).float()
    focal = (blend - prob).abs() ** 2
    score_loss = (F.binary_cross_entropy_with_logits(raw_score, blend, reduction="none") * focal * known).sum()
    giou = box_iou_pairs(boxes, target_box)[1]
    scale = 1 / sizes[:, 0]
    edges = ((boxes - target_box).abs() * scale[None, :, None]).clamp(max=8).mean(-1)
    box_loss, edge_loss = ((1 - giou) * weight_box).sum(), (edges * weight_box).sum()
    norm, box_norm = blend.sum().clamp(min=1), weight_box.sum().clamp(min=1)
    parts = dict(score=score_loss / norm, box=box_loss / box_norm, edge=edge_loss / box_norm)
    return parts["score"] * 4 + parts["box"] * 2 + parts["edge"] * 0.3, parts


def mimic_loss(guesses, features, weight):
    """How far the guesses are from the teacher's features, a map per stride, channels brought to one scale;
    weight: a map [B,1,H,W] per stride, more where persons are."""
    total = 0
    for guess, feature, w in zip(guesses, features, weight):
        feature, guess = feature.float(), guess.float()
        mean, std = feature.mean((0, 2, 3), keepdim=True), feature.std((0, 2, 3), keepdim=True).clamp(min=1e-4)
        apart = F.smooth_l1_loss(guess, (feature - mean) / std, reduction="none")
        total = total + (apart * w).sum() / (w.sum() * feature.shape[1])
    return total / len(guesses)


def matte_loss(logit, target, weight, missed=0.5):
    """Cross-entropy with more weight along the contour, and soft Dice on pictures that show people.

    target [B,1,H,W] in 0..1; weight [B,1,H,W], 0 where nothing is known. missed: what a missed pixel costs in Dice,
    beside 1 - missed for one too many (Tversky's index; Salehi et al., MLMI 2017).
    """
    blurred = F.avg_pool2d(target, 9, 1, 4, count_include_pad=False)
    edge = (1 + 8 * (blurred - target).abs().clamp(max=0.5)) * weight
    bce = F.binary_cross_entropy_with_logits(logit, target, reduction="none")
    bce = (bce * edge).sum() / edge.sum().clamp(min=1)
    p, t = torch.sigmoid(logit) * weight, target * weight
    total = lambda v: v.sum((1, 2, 3))
    dice = 1 - (total(p * t) + 0.5) / ((1 - missed) * total(p) + missed * total(t) + 0.5)
    shown = (t.sum((1, 2, 3)) > 50).float()  # on an empty picture Dice is 1 whatever the network says
    dice = (dice * shown).sum() / shown.sum().clamp(min=1)
    return bce + 0.5 * dice, dict(bce=bce, dice=dice)


def pyramid_loss(matte, target, weight, levels=4):
    """How far two mattes' Laplacian pyramids are apart (as in Hou and Liu, ICCV 2019), where something is known.

    It is the loss for boundaries: cross-entropy asks each pixel alone, this one asks for the step at its place and
    with its steepness, and the coarse levels forgive a polygon that is a few pixels off more than a lost arm."""
    total = 0
    for level in range(levels):
        small = [F.avg_pool2d(v, 2) for v in (matte, target)]
        fine = [v - F.interpolate(s, size=v.shape[2:], mode="bilinear", align_corners=False)
                for v, s in zip((matte, target), small)]
        total = total + 2 ** (level - 2) * ((fine[0] - fine[1]).abs() * weight).sum() / weight.sum().clamp(min=1)
        (matte, target), weight = small, F.avg_pool2d(weight, 2)
    return total + ((matte - target).abs() * weight).sum() / weight.sum().clamp(min=1)


def box_loss(matte, boxes, cell=4, inner=0.1):
    """Each box holds a person who reaches all of its sides: every column of it has somebody in one row at least, and
    every row in one column (BoxInst's projection, Tian et al., CVPR 2021, but for what the background already says).

    matte [B,1,H,W] in 0..1; boxes [B,M,6] as scenes.Batch has them. `inner`: the share of a box at each side that
    is left out, for boxes are drawn with a hand that trembles."""
    best = F.max_pool2d(matte, cell)[:, 0]
    ys, xs = ((torch.arange(s, device=matte.device) + 0.5) * cell for s in best.shape[1:])
    x0, y0, x1, y1, by_column, by_row = boxes[..., None].unbind(2)

    def side(at, low, high, least):
        edge = (high - low) * least
        return (at > low + edge) & (at < high - edge)

    total = count = 0
    for axis, asked, along, across in ((1, by_column, (xs, x0, x1), (ys, y0, y1)),
                                       (2, by_row, (ys, y0, y1), (xs, x0, x1))):
        seen = side(*across, 0.0)[:, :, :, None] if axis == 1 else side(*across, 0.0)[:, :, None, :]
        most = (best[:, None] * seen).amax(axis + 1)
        weight = side(*along, inner) * asked
        total = total - (torch.log(most.clamp(min=1e-3)) * weight).sum()
        count = count + weight.sum()
    return total / count.clamp(min=1)


def contrast_loss(a, b, temperature=0.07, identity=None):
    """Two views of the same persons [n,d]: each must find its other view among all (SimCLR, Chen et al., 2020).

    identity [n]: rows of the same number are the same person and do not count as wrong answers."""
    a, b = F.normalize(a, dim=1), F.normalize(b, dim=1)
    logits = a @ b.t() / temperature
    goal = torch.arange(len(a), device=a.device)
    if identity is not None:
        same = (identity[:, None] == identity[None]) & (goal[:, None] != goal[None])
        logits = logits.masked_fill(same, -1e4)
    return 0.5 * (F.cross_entropy(logits, goal) + F.cross_entropy(logits.t(), goal))


def distill_loss(student, teacher):
    """Same direction as the teacher, and the same similarities within the batch (Park et al., CVPR 2019)."""
    s, t = F.normalize(student, dim=1), F.normalize(teacher, dim=1)
    direct = (1 - (s * t).sum(1)).mean()
    relations = ((s @ s.t() - t @ t.t()) ** 2).mean()
    return direct + 4 * relations, dict(direct=direct, relations=relations)
