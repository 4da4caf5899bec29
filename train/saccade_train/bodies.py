# SPDX-License-Identifier: Apache-2.0
"""Rendered people for the matte networks, with exact alpha: the bodies of render.py before a real camera.

Four kinds of picture: a whole person, standing or walking; one cut off by the lower edge, from the hips or the
chest up; somebody near, who fills the picture; and the wearer's own body as the camera of a headset sees it: arms
and hands with fingers from the side of the eyes, the trunk and the legs from above. The camera is a pinhole, so
what is near is large. Each is drawn at twice its size and averaged with colour times alpha: alpha is the share
of a pixel that the body covers, and outlines have no colour but the body's own. Hair ends in strands.

    python3 -m saccade_train.bodies SHEET.png    draws some of each kind
"""
import math
import sys

import numpy as np
import torch
import torch.nn.functional as F

from . import render
from .render import INDEX, uniform

KINDS = ("whole", "upper", "near", "own")
SHARES = (0.4, 0.25, 0.15, 0.2)
SIZE = 384        # side of a drawing
SHEET = 8, 192    # of each kind, and their side
FINGERS = 5


def arms_in_front(who, j, n, device, share):
    """Now and then the hands are before the body: they hold, point, wave."""
    u = lambda low, high: uniform((n,), low, high, device)
    for side, sign in (("l", 1.0), ("r", -1.0)):
        moved = (u(0, 1) < share)[:, None]
        top = j[f"top_{side}"]
        hand = top + torch.stack([sign * u(-.16, .12), u(-.2, .14), u(.12, .28)], -1)
        reach = hand - top
        far = reach.norm(dim=1, keepdim=True)
        hand = top + reach * (far.clamp(max=.29) / far)
        # the elbow hangs below and outside of the line from shoulder to hand, where both bones keep their length
        half = (hand - top) / 2
        sag = (.155 ** 2 - (half ** 2).sum(1, keepdim=True)).clamp(min=1e-4).sqrt()
        down = torch.stack([sign * u(.1, .8), -torch.ones(n, device=device), u(-.5, .1)], -1)
        down = down - half * ((down * half).sum(1, keepdim=True) / (half ** 2).sum(1, keepdim=True).clamp(min=1e-5))
        elbow = top + half + F.normalize(down, dim=1) * sag
        finger = hand + F.normalize(hand - elbow, dim=1) * .035
        for name, value in (("elbow", elbow), ("hand", hand), ("finger", finger)):
            j[f"{name}_{side}"] = torch.where(moved, value, j[f"{name}_{side}"])


def add_fingers(who, j, parts, n, device):
    """Five fingers on each hand, spread or closed, as parts after the others."""
    u = lambda low, high: uniform((n,), low, high, device)
    rows, names = [[] for _ in parts], []
    for side, sign in (("l", 1.0), ("r", -1.0)):
        wrist, tip = j[f"hand_{side}"], j[f"finger_{side}"]
        ahead = F.normalize(tip - wrist, dim=1)
        roll = torch.randn(n, 3, device=device) * .5 + torch.tensor([sign, 0., 0.], device=device)
        across = F.normalize(torch.linalg.cross(ahead, torch.linalg.cross(roll, ahead)), dim=1)
        back = torch.linalg.cross(ahead, across)
        curl, spread = u(-.2, .9), u(.1, .55)
        for f in range(FINGERS):
            place = (f - 1.8) / 2.2
            base = wrist + ahead * (.028 if f else .008) + across * (place * .014)
            way = F.normalize(ahead + across * (place * spread)[:, None] - back * (curl * u(.7, 1.3))[:, None], dim=1)
            end = base + way * (.030, .040, .044, .041, .032)[f]
            one = torch.ones(n, device=device)
            wide = .0062 if f else .0072
            for into, value in zip(rows, (base, end, wide * one, wide * .8 * one, wide * one, wide * .8 * one, 0 * one,
                                          one, one > 0)):
                into.append(value)
            names.append(INDEX[f"hand_{side}"])
    parts = [torch.cat([p, torch.stack(r, 1)], 1) for p, r in zip(parts, rows)]
    index = torch.tensor(names, device=device)
    who["material"] = {k: torch.cat([v, v[:, index]], 1) for k, v in who["material"].items()}
    return parts


def look(points, eye, yaw, pitch):
    """The camera's place [n,K,3] of points: x right, y down, z towards the camera, which is at the origin."""
    return render.turn(points - eye[:, None], yaw, pitch)


def before_the_lens(p0, p1, widths, there, nearest):
    """Parts cut where they come closer to the lens than `nearest`."""
    d0, d1 = -p0[..., 2], -p1[..., 2]
    span = (d1 - d0)
    at = ((nearest - d0) / torch.where(span.abs() < 1e-6, torch.full_like(span, 1e-6), span)).clamp(0, 1)
    cut = lambda a, b, keep: torch.where(keep, a, a + (b - a) * (at[..., None] if a.dim() == 3 else at))
    behind0, behind1 = d0 < nearest, d1 < nearest
    new0 = cut(p0, p1, (~behind0)[..., None])
    new1 = torch.where((~behind1)[..., None], p1, p0 + (p1 - p0) * at[..., None])
    ends = []
    for a, b in widths:
        ends.append((cut(a, b, ~behind0), torch.where(~behind1, b, a + (b - a) * at)))
    return new0, new1, ends, there & ~(behind0 & behind1)


@torch.no_grad()
def draw(kind, n, device, size=SIZE, over=2):
    """n drawings of one kind: colour times alpha and alpha [n,4,size,size] in 0..255, and the side of the light
    [n], -1 left to 1 right."""
    u = lambda low, high: uniform((n,), low, high, device)
    zero = torch.zeros(n, device=device)
    vec = lambda x, y, z: torch.stack([x, y, z], -1)
    who = render.identities(n, device)
    who["strand"] = u(0, 6.28)
    j = render.skeleton(who, n, device)
    arms_in_front(who, j, n, device, 0.9 if kind == "own" else 0.35)
    parts = add_fingers(who, j, render.parts_of(who, j, n, device), n, device)
    p0, p1, w0, w1, d0, d1, bulge, cap, there = parts
    middle = (j["hip"] + j["chest"]) / 2
    if kind == "own":
        for name in ("head", "hair", "neck", "bag"):
            there[:, INDEX[name]] = False
        eye = j["head"] + vec(zero, zero + .02, zero + .07)
        # it looks ahead and down. render.turn has a camera that faces the body: half a circle makes it look away
        yaw, pitch = math.pi + u(-.5, .5), u(.5, 1.4)
        half = u(.7, 1.2)
    else:
        if kind == "near":  # below the edge, where a lens so close would turn them into towers
            for name in ("thigh", "shin", "shoe"):
                there[:, INDEX[name + "_l"]] = there[:, INDEX[name + "_r"]] = False
        yaw = u(0, 2 * math.pi)
        pitch = u(-.05, .35)
        distance = {"whole": u(1.6, 6), "upper": u(.8, 3), "near": u(.4, .9)}[kind]
        look_at = {"whole": j["hip"], "upper": middle, "near": j["head"] - vec(zero, u(0, .2), zero)}[kind]
        # the camera stands `distance` from what it looks at, against the direction of the view
        eye = look_at + render_back(yaw, pitch) * distance[:, None]
    q0, q1 = look(p0, eye, yaw, pitch), look(p1, eye, yaw, pitch)
    c, s = torch.cos(yaw)[:, None] ** 2, torch.sin(yaw)[:, None] ** 2
    e = [(torch.sqrt(w * w * c + d * d * s)) for w, d in ((w0, d0), (w1, d1))]
    t = [(torch.sqrt(w * w * s + d * d * c)) for w, d in ((w0, d0), (w1, d1))]
    q0, q1, ((e0, e1), (t0, t1)), there = before_the_lens(q0, q1, [tuple(e), tuple(t)], there, .05)
    depth0, depth1 = (-q0[..., 2]).clamp(min=.05), (-q1[..., 2]).clamp(min=.05)
    flat0 = torch.cat([q0[..., :2] / depth0[..., None], q0[..., 2:]], -1)
    flat1 = torch.cat([q1[..., :2] / depth1[..., None], q1[..., 2:]], -1)
    e0, e1 = e0 / depth0, e1 / depth1
    # frame
    if kind == "own":
        centre, scale = torch.zeros(n, 2, device=device), half * 2 / size
    else:
        reach = torch.maximum(e0 / cap.clamp(max=2), e1 / cap.clamp(max=2))
        far = torch.where(there, 0.0, 1e3)[..., None]
        low = (torch.minimum(flat0[..., :2], flat1[..., :2]) - reach[..., None] + far).amin(1)
        high = (torch.maximum(flat0[..., :2], flat1[..., :2]) + reach[..., None] - far).amax(1)
        if kind == "whole":
            centre, scale = (low + high) / 2, (high - low).amax(1) * 1.04 / size
        else:
            # the lower edge cuts the body, which is what the edge of a picture does
            top = low[:, 1]
            shown = (high[:, 1] - top) * (u(.32, .6) if kind == "upper" else u(.35, .7))
            width = torch.minimum((high[:, 0] - low[:, 0]) * 1.05, shown * 1.6)
            scale = torch.maximum(shown * 1.03, width) / size
            centre = torch.stack([(low[:, 0] + high[:, 0]) / 2, top + shown * 1.0 - scale * size / 2], 1)
    m = size * over
    steps = (torch.arange(m, device=device) + .5) / over - size / 2
    xs = (steps[None] * scale[:, None] + centre[:, :1])[:, None, :].expand(n, m, m)
    ys = (steps[None] * scale[:, None] + centre[:, 1:])[:, :, None].expand(n, m, m)
    made = dict(q0=flat0, q1=flat1, e0=e0, e1=e1, t0=t0, t1=t1, bulge=bulge / depth0, cap=cap, there=there)
    picture, _, light = render.trace(who, made, xs, ys, scale / over, yaw, n, device, hair=(INDEX["hair"],))
    alpha = picture[:, 3:] / 255
    grain = 1 + torch.randn(n, 1, m, m, device=device) * u(0, .05)[:, None, None, None]
    colour = (picture[:, :3] * grain).clamp(0, 255) * alpha
    return F.avg_pool2d(torch.cat([colour, alpha * 255], 1), over), torch.sin(light[:, 0]).clamp(-1, 1)


def render_back(yaw, pitch):
    """The direction from what is looked at to the camera, in the person's frame: what render.turn takes to +z."""
    cy, sy, cp, sp = torch.cos(yaw), torch.sin(yaw), torch.cos(pitch), torch.sin(pitch)
    return torch.stack([-sy * cp, sp, cy * cp], -1)


class Bank:
    """Drawings [n,4,side,side] uint8 (colour times alpha, alpha) on the device, with their kind, the side of their
    light, and the box of each; a seed decides them."""

    def __init__(self, count, seed, device="cpu", side=SIZE):
        self.side = side
        device = torch.device(device)
        group = 32 if device.type == "cuda" else 8  # a GPU needs more at once to be busy
        kind = np.repeat(np.arange(len(KINDS)), np.diff(np.round(np.cumsum((0,) + SHARES) * count).astype(int)))
        drawings, lights = [], []
        state = torch.get_rng_state()
        torch.manual_seed(seed)
        for k in range(len(KINDS)):
            left = int((kind == k).sum())
            while left > 0:
                picture, light = draw(KINDS[k], min(group, left), device, side)
                drawings.append(picture.round().clamp(0, 255).byte())
                lights.append(light)
                left -= group
        torch.set_rng_state(state)
        planes, light = torch.cat(drawings), torch.cat(lights).cpu().numpy()
        box = boxes_of(planes[:, 3]).cpu().numpy()
        # what is hardly there teaches nothing
        kept = (box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1]) > (side / 16) ** 2
        self.planes = planes[torch.from_numpy(np.flatnonzero(kept)).to(device)]
        self.kind, self.light, self.box = kind[kept], light[kept], box[kept]

    def __len__(self):
        return len(self.planes)


def boxes_of(alpha, least=8):
    """x0,y0,x1,y1 of what is not empty in each of [n,h,w], [n,4]; all 0 if nothing is there."""
    shown = alpha > least

    def ends(flags):
        m = flags.shape[1]
        at = torch.arange(m, device=alpha.device)
        first, last = torch.where(flags, at, m).amin(1), torch.where(flags, at + 1, 0).amax(1)
        return torch.minimum(first, last), last
    (x0, x1), (y0, y1) = ends(shown.any(1)), ends(shown.any(2))
    return torch.stack([x0, y0, x1, y1], 1)


def bounds(alpha, least=8):
    """x0,y0,x1,y1 of what is not empty; all 0 if nothing is there."""
    rows, columns = np.flatnonzero((alpha > least).any(1)), np.flatnonzero((alpha > least).any(0))
    return (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1) if len(rows) else (0, 0, 0, 0)


def main():
    from PIL import Image
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    torch.manual_seed(1)
    rows = []
    for kind in KINDS:
        x, _ = draw(kind, SHEET[0], torch.device("cpu"), SHEET[1])
        ground = torch.tensor([90.0, 150.0, 110.0])[:, None, None]
        rows.append(render.sheet(x[:, :3] + ground * (1 - x[:, 3:] / 255), SHEET[0]))
    Image.fromarray(np.concatenate(rows)).save(sys.argv[1])


if __name__ == "__main__":
    main()
