# SPDX-License-Identifier: Apache-2.0
"""Masks for pictures that come with boxes alone, by a network that was trained before (self-training as in Xie et al.,
Noisy Student, CVPR 2020). It sees each box's person large, and mirrored, which a training's own teacher does not; what
it is not sure of, and boxes that its matte does not fill, stay unknown. Whom it found alone and whole is cut out as
those with masks are: there are three times as many people in boxes.
"""
import numpy as np
import torch
import torch.nn.functional as F

UNCUT = 254       # the label of people whom nobody cuts out
LEAST = 24        # boxes whose longer side is less stay unknown
LARGE = 0.7       # a box's longer side in the view of its person
SURE, NOBODY = 0.8, 0.08
FILL = 114       # as in scenes.py


def windows(size, boxes):
    """Squares (x, y, length) of a picture: all of it, and around each box that is not too small."""
    out = [(0, 0, int(max(size)))]
    for x0, y0, x1, y1 in boxes:
        longer = max(x1 - x0, y1 - y0)
        if longer >= LEAST:
            length = int(np.ceil(longer / LARGE))
            out.append((int(round((x0 + x1 - length) / 2)), int(round((y0 + y1 - length) / 2)), length))
    return out


def overlap(window, size):
    """What of a window lies in the picture: slices of the picture, slices of the window."""
    x, y, length = window
    a, b = [max(0, x), max(0, y)], [min(int(size[0]), x + length), min(int(size[1]), y + length)]
    return (np.s_[a[1]:b[1], a[0]:b[0]], np.s_[a[1] - y:b[1] - y, a[0] - x:b[0] - x])


@torch.no_grad()
def look(net, rgb, sizes, looks, side, device):
    """Mattes [length,length] of windows: looks has (picture, window)."""
    views = []
    for i, window in looks:
        inside, at = overlap(window, sizes[i])
        view = torch.full((1, 3, window[2], window[2]), float(FILL), device=device)
        part = torch.from_numpy(np.ascontiguousarray(rgb[i][inside])).to(device)
        view[(0, slice(None), *at)] = part.permute(2, 0, 1).float()
        views.append(resized(view, side))
    x = torch.cat(views) / 255
    soft = (torch.sigmoid(net(x).float()) + torch.sigmoid(net(x.flip(3)).float()).flip(3)) / 2
    return [resized(s[None], window[2])[0, 0].cpu().numpy() for s, (_, window) in zip(soft, looks)]


def resized(x, side):
    return F.interpolate(x, size=(side, side), mode="bilinear", antialias=True, align_corners=False)


def filled(person, share=0.9, inner=0.1):
    """Whether a box [h,w] holds somebody who reaches its sides: nearly all columns and rows of its inside have one."""
    for axis in (0, 1):
        along = person.any(axis)
        edge = int(len(along) * inner)
        if along[edge:len(along) - edge].mean() < share:
            return False
    return True


def label(mask, soft, boxes):
    """`mask` [h,w], 255 in boxes, gets numbers of people and 0 where a matte is sure; returns how many boxes it fills."""
    person = soft > 0.5
    corners = [(max(0, int(x0)), max(0, int(y0)), int(np.ceil(x1)), int(np.ceil(y1))) for x0, y0, x1, y1 in boxes]
    parts = [np.s_[y0:y1, x0:x1] for x0, y0, x1, y1 in corners]
    count = np.zeros(mask.shape, np.uint8)
    for part in parts:
        count[part] += 1
    unknown, found = mask == 255, 0
    mask[unknown & (soft < NOBODY)] = 0
    mask[unknown & (soft > SURE)] = UNCUT
    failed = []
    for k, (part, (x0, y0, x1, y1)) in enumerate(zip(parts, corners)):
        inside = person[part]
        if max(x1 - x0, y1 - y0) < LEAST or not inside.size or not filled(inside):
            failed.append(part)
            continue
        found += 1
        doubt = ((soft[part] > NOBODY) & (soft[part] < SURE)).sum()
        if k < UNCUT - 1 and (count[part] > 1).mean() < 0.1 and doubt < 0.15 * inside.sum():
            alone = mask[part]
            alone[unknown[part] & (soft[part] > 0.6)] = k + 1
    for part in failed:
        mask[part][unknown[part]] = 255
    return found


def complete(cache, net, side, device, batch=32):
    """Labels in cache.mask, where it is 255 in boxes of pictures without masks; returns (boxes filled, boxes).
    net: logits of pictures in 0..1."""
    weak = [i for i, p in enumerate(cache.pictures) if p.mask is None and len(p.boxes)]
    looks = [(i, window) for i in weak for window in windows(cache.size[i], cache.boxes[i])]
    total = {i: np.zeros((2, *cache.size[i][::-1]), np.float32) for i in weak}
    for first in range(0, len(looks), batch):
        some = looks[first:first + batch]
        for (i, window), soft in zip(some, look(net, cache.rgb, cache.size, some, side, device)):
            inside, at = overlap(window, cache.size[i])
            total[i][(0, *inside)] += soft[at]
            total[i][(1, *inside)] += 1
    found = 0
    for i in weak:
        w, h = cache.size[i]
        mask = cache.mask[i, :h, :w]
        crowd = np.zeros(mask.shape, bool)
        for x0, y0, x1, y1 in cache.ignore[i]:
            crowd[max(0, int(y0) - 4):int(y1) + 4, max(0, int(x0) - 4):int(x1) + 4] = True
        found += label(mask, total[i][0] / total[i][1], cache.boxes[i])
        mask[crowd] = 255
    return found, sum(len(cache.boxes[i]) for i in weak)
