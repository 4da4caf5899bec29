# SPDX-License-Identifier: Apache-2.0
"""COCO's average precision for one class, with a bootstrap interval; retrieval; matte quality.

Written out here in NumPy because the bootstrap needs the matches picture by picture. The matching rules
are COCO's: highest score first, crowds absorb without counting, 101 recall points, 100 detections.
"""
import numpy as np


def overlaps(a, b, crowd):
    """IoU of boxes a [n,4] with b [m,4]; for crowds the union is the detection alone."""
    lt, rb = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = np.clip(rb - lt, 0, None).prod(-1)
    area_a, area_b = (np.clip(x[:, 2:] - x[:, :2], 0, None).prod(-1) for x in (a, b))
    union = np.where(crowd[None], area_a[:, None], area_a[:, None] + area_b[None] - inter)
    return inter / np.maximum(union, 1e-9)


def match_picture(boxes, scores, gt, crowd, threshold):
    """Scores, true-positive and ignored flags of one picture's detections, best first."""
    order = np.argsort(-scores, kind="mergesort")[:100]
    boxes, scores = boxes[order], scores[order]
    everything = np.concatenate([gt, crowd])
    is_crowd = np.arange(len(everything)) >= len(gt)
    iou = overlaps(boxes, everything, is_crowd) if len(everything) and len(boxes) else np.zeros((len(boxes), 0))
    taken, hit, ignored = np.zeros(len(everything), bool), np.zeros(len(boxes), bool), np.zeros(len(boxes), bool)
    for d in range(len(boxes)):
        best, at = threshold, -1
        for g in range(len(everything)):
            if taken[g] and not is_crowd[g]:
                continue
            if at >= 0 and not is_crowd[at] and is_crowd[g]:
                break
            if iou[d, g] >= best:
                best, at = iou[d, g], g
        if at >= 0:
            taken[at] = True
            hit[d], ignored[d] = not is_crowd[at], is_crowd[at]
    return scores, hit, ignored


def precision_at_recalls(parts, count):
    if count == 0:
        return 0.0
    scores = np.concatenate([p[0] for p in parts])
    hit = np.concatenate([p[1] for p in parts])
    keep = ~np.concatenate([p[2] for p in parts])
    order = np.argsort(-scores[keep], kind="mergesort")
    tp = np.cumsum(hit[keep][order])
    if len(tp) == 0:
        return 0.0
    precision = tp / np.arange(1, len(tp) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    at = np.searchsorted(tp / count, np.linspace(0, 1, 101), side="left")
    return float(np.where(at < len(precision), precision[np.minimum(at, len(precision) - 1)], 0).mean())


class Precision:
    """Collects detections picture by picture."""
    thresholds = np.linspace(0.5, 0.95, 10)

    def __init__(self):
        self.parts, self.counts = [], []

    def add(self, boxes, scores, gt, crowd):
        self.parts.append([match_picture(boxes, scores, gt, crowd, t) for t in self.thresholds])
        self.counts.append(len(gt))

    def score(self, pick=None):
        pick = range(len(self.parts)) if pick is None else pick
        count = sum(self.counts[i] for i in pick)
        ap = [precision_at_recalls([self.parts[i][t] for i in pick], count) for t in range(len(self.thresholds))]
        return dict(AP50=ap[0] * 100, AP=float(np.mean(ap)) * 100)

    def interval(self, rounds=1000, seed=1):
        """95 % bootstrap interval over pictures of AP50 and AP."""
        rng = np.random.default_rng(seed)
        draws = [self.score(rng.integers(0, len(self.parts), len(self.parts))) for _ in range(rounds)]
        return {k: tuple(np.percentile([d[k] for d in draws], [2.5, 97.5])) for k in draws[0]}


def non_maximum_suppression(boxes, scores, limit=0.65):
    order, keep = np.argsort(-scores, kind="mergesort"), []
    none = np.zeros(len(boxes), bool)
    while len(order):
        keep.append(order[0])
        iou = overlaps(boxes[order[:1]], boxes[order], none[:len(order)])[0]
        order = order[1:][iou[1:] <= limit]
    return np.array(keep, np.int64)


def retrieval(query, gallery, query_id, gallery_id, allowed):
    """Rank-1 and mean average precision in per cent; allowed [q,g] says which pairs may be compared."""
    similarity = np.where(allowed, query @ gallery.T, -np.inf)
    first, average = [], []
    for i in range(len(query)):
        order = np.argsort(-similarity[i], kind="mergesort")
        order = order[allowed[i][order]]
        good = gallery_id[order] == query_id[i]
        if not good.any():
            continue
        first.append(good[0])
        rank = np.flatnonzero(good) + 1
        average.append((np.arange(1, len(rank) + 1) / rank).mean())
    return dict(rank1=float(np.mean(first)) * 100, mAP=float(np.mean(average)) * 100, queries=len(first))


def contour(mask):
    """The pixels of a bool mask that differ from their neighbour to the right, below, or both: one pixel wide."""
    right, below = np.zeros_like(mask), np.zeros_like(mask)
    right[:, :-1] = mask[:, :-1] ^ mask[:, 1:]
    below[:-1] = mask[:-1] ^ mask[1:]
    across = np.zeros_like(mask)
    across[:-1, :-1] = mask[:-1, :-1] ^ mask[1:, 1:]
    out = right | below | across
    out[-1], out[:, -1] = right[-1], below[:, -1]
    return out


def near(mask, radius):
    """Pixels at most `radius` from one that is set."""
    h, w = mask.shape
    out = np.zeros_like(mask)
    for dy in range(-radius, radius + 1):
        half = int(np.sqrt(radius * radius - dy * dy))
        total = np.pad(np.cumsum(np.pad(mask, [(0, 0), (half, half)]), 1, dtype=np.int32), [(0, 0), (1, 0)])
        row = total[:, 2 * half + 1:] > total[:, :w]  # any set within `half` columns
        low, high = max(0, -dy), min(h, h - dy)
        if low < high:
            out[low + dy:high + dy] |= row[low:high]
    return out


def boundary_f(pred, truth, tolerance=0.008):
    """Boundary F of DAVIS (Perazzi et al., CVPR 2016): contours count as met within `tolerance` of the picture's
    diagonal, rounded up."""
    radius = int(np.ceil(tolerance * np.hypot(*truth.shape)))
    p, t = contour(pred), contour(truth)
    if not p.any() or not t.any():
        return float(p.any() == t.any())
    precision, recall = (p & near(t, radius)).sum() / p.sum(), (t & near(p, radius)).sum() / t.sum()
    return float(2 * precision * recall / max(1e-9, precision + recall))


def matte_scores(pred, truth, known):
    """IoU and boundary F of two bool masks [h,w], where known; (None, None) when nobody is in either."""
    pred, truth = pred & known, truth & known
    union = (pred | truth).sum()
    if union == 0:
        return None, None
    return float((pred & truth).sum() / union), boundary_f(pred, truth)
