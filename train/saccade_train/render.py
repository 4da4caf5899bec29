# SPDX-License-Identifier: Apache-2.0
"""Persons that exist nowhere, rendered on the device: thousands of identities a second, each seen twice.

A body is a set of tapered parts (legs, shoes, trunk, skirt or coat, arms, hands, neck, head, hair, bag) whose
axes follow a walking skeleton. Seen from far away a camera is orthographic, so a part is its axis in the
picture, a width that changes along it, and a round or elliptic bulge towards the camera; depth, normal and
place on the surface follow in closed form, with no mesh and no ray marching. Cloth carries patterns fixed to
the surface. Two views of one identity differ in yaw, step, pitch, light, and what is carried stays.

    python3 -m saccade_train.render SHEET.png    draws persons, two views side by side
"""
import math
import sys

import torch
import torch.nn.functional as F

from .crops import HEIGHT, WIDTH

# What usual clothes look like: many are dark or grey. r, g, b in 0..1 and how frequent.
CLOTH = torch.tensor([
    [.05, .05, .06, 9], [.13, .13, .15, 7], [.28, .28, .30, 5], [.50, .50, .52, 4], [.75, .75, .76, 3],
    [.93, .93, .92, 7], [.07, .09, .20, 7], [.15, .20, .35, 6], [.25, .35, .55, 4], [.45, .58, .75, 3],
    [.65, .55, .40, 4], [.80, .73, .60, 3], [.35, .24, .16, 4], [.55, .10, .10, 3], [.80, .12, .12, 3],
    [.85, .40, .10, 1.5], [.92, .80, .20, 1.5], [.15, .35, .18, 3], [.35, .42, .22, 2], [.20, .60, .30, 1],
    [.10, .55, .60, 1], [.45, .20, .50, 1.5], [.90, .55, .65, 2], [.60, .80, .90, 2]])
SKIN = torch.tensor([
    [.96, .80, .69], [.90, .72, .58], [.82, .62, .47], [.68, .48, .34], [.50, .34, .24], [.34, .22, .16]])
HAIR = torch.tensor([
    [.05, .04, .04], [.15, .10, .07], [.30, .19, .11], [.55, .40, .22], [.80, .68, .42], [.55, .53, .52],
    [.85, .84, .82], [.45, .18, .08]])
PATTERNS = 7  # plain, level stripes, upright stripes, checks, blotches, a print on the chest, an open front

PARTS = ("thigh_l", "thigh_r", "shin_l", "shin_r", "shoe_l", "shoe_r", "trunk", "skirt", "upper_l", "upper_r",
         "fore_l", "fore_r", "hand_l", "hand_r", "neck", "head", "hair", "bag")
INDEX = {name: i for i, name in enumerate(PARTS)}


def uniform(shape, low, high, device):
    return torch.rand(shape, device=device) * (high - low) + low


def pick(table, n, device, weight=None):
    table = table.to(device)
    weight = torch.ones(len(table), device=device) if weight is None else weight
    return table[torch.multinomial(weight, n, replacement=True)]


def cloth_colour(n, device):
    table = CLOTH.to(device)
    c = pick(table[:, :3], n, device, table[:, 3])
    return (c * uniform((n, 1), 0.8, 1.2, device) + torch.randn(n, 3, device=device) * 0.025).clamp(0.02, 0.98)


def chance(n, p, device):
    return torch.rand(n, device=device) < p


def identities(n, device):
    """Bodies and clothes: everything that both views share."""
    u = lambda low, high: uniform((n,), low, high, device)
    who = dict(shoulder=u(.105, .135), hip=u(.08, .105), girth=u(.055, .085), limb=u(.85, 1.25), leg=u(.46, .50),
               head=u(.056, .066), skirt=chance(n, .15, device), coat=chance(n, .2, device),
               shorts=chance(n, .2, device), sleeves=u(0, 1), long_hair=chance(n, .35, device),
               bald=chance(n, .08, device), bag=torch.multinomial(torch.tensor([.6, .2, .2], device=device), n, True),
               side=torch.where(chance(n, .5, device), 1.0, -1.0), bag_size=u(.7, 1.2), skirt_end=u(.55, 1.0),
               flare=u(.8, 1.4))
    skin, hair = pick(SKIN, n, device), pick(HAIR, n, device) * uniform((n, 1), .8, 1.2, device)
    hair = torch.where(chance(n, .12, device)[:, None], cloth_colour(n, device), hair)  # a hat or a scarf
    garments = []  # upper, lower: two colours, pattern, frequency, phase
    share = torch.tensor([[.45, .12, .06, .08, .08, .1, .11], [.8, .02, .03, .05, .1, 0, 0]], device=device)
    for kind in share:
        garments.append(dict(a=cloth_colour(n, device), b=cloth_colour(n, device),
                             pattern=torch.multinomial(kind, n, True), rate=u(4, 16), phase=u(0, 6.28), wave=u(2, 7)))
    upper, lower = garments
    # material of each part: colours a and b [n,K,3], pattern, rate, phase, wave [n,K]
    k = len(PARTS)
    plain = lambda c: dict(a=c, b=c, pattern=torch.zeros(n, dtype=torch.long, device=device), rate=u(4, 8),
                           phase=u(0, 6.28), wave=u(2, 7))
    choose = lambda flag, x, y: {key: torch.where(flag[:, None] if x[key].dim() > 1 else flag, x[key], y[key])
                                 for key in x}
    skin_m, shoe_m = plain(skin), plain(cloth_colour(n, device))
    bare = who["skirt"] | who["shorts"]
    stockings = choose(chance(n, .4, device) & who["skirt"], plain(cloth_colour(n, device)), skin_m)
    shin = choose(bare, stockings, lower)
    thigh = choose(who["skirt"], stockings, lower)
    skirt = choose(who["coat"], upper, lower)
    fore = choose(who["sleeves"] < .4, skin_m, upper)
    arm = choose(who["sleeves"] < .07, skin_m, upper)
    bag = plain(cloth_colour(n, device))
    # an open front shows the shirt below on the chest, not on the arms
    inner = lambda m: dict(m, pattern=torch.where(m["pattern"] >= 5, torch.zeros_like(m["pattern"]), m["pattern"]))
    by_part = dict(thigh=thigh, shin=shin, shoe=shoe_m, trunk=upper, skirt=skirt, upper=inner(arm), fore=inner(fore),
                   hand=skin_m, neck=skin_m, head=skin_m, hair=plain(hair), bag=bag)
    made = [by_part[name.split("_")[0]] for name in PARTS]
    who["material"] = {key: torch.stack([m[key] for m in made], 1) for key in made[0]}
    assert who["material"]["a"].shape == (n, k, 3)
    return who


def skeleton(who, n, device):
    """Joints of a walking step. Person's frame: x to the left hand, y up, z ahead; height about 1."""
    u = lambda low, high: uniform((n,), low, high, device)
    phase, stride = u(0, 2 * math.pi), u(0, 1) ** .5 * .5  # stride 0: standing
    zero = torch.zeros(n, device=device)
    vec = lambda x, y, z: torch.stack([x, y, z], -1)
    leg, hip_y = who["leg"] / 2, who["leg"] + .035
    lean = stride * .06 + u(-.02, .03)
    shoulder_y = hip_y + .325
    joints = {"hip": vec(zero, hip_y + .02, zero), "chest": vec(zero, shoulder_y - .015, lean)}
    for side, sign, shift in (("l", 1.0, 0.0), ("r", -1.0, math.pi)):
        swing = torch.sin(phase + shift) * stride
        bend = (torch.cos(phase + shift).clamp(min=0) * stride * 1.5 + .05)
        root = vec(sign * who["hip"] * .55, hip_y, zero)
        knee = root + vec(zero + sign * .005, -torch.cos(swing) * leg, torch.sin(swing) * leg)
        ankle = knee + vec(zero, -torch.cos(swing - bend) * leg, torch.sin(swing - bend) * leg)
        toe = ankle + vec(sign * .012 + zero, -.018 + .02 * torch.sin(bend), .075 + zero)
        joints.update({f"root_{side}": root, f"knee_{side}": knee, f"ankle_{side}": ankle, f"toe_{side}": toe})
        arm = -swing * .8 + u(-.1, .15)
        elbow_bend = u(.05, .5) + (u(0, 1) < .15) * u(.6, 1.8)  # now and then a hand holds something
        top = vec(sign * who["shoulder"] * .96, shoulder_y - .02, lean)
        out = u(.02, .2) * sign
        elbow = top + vec(out * .17, -torch.cos(arm) * .165, torch.sin(arm) * .165)
        hand = elbow + vec(-out * .05, -torch.cos(arm + elbow_bend) * .14, torch.sin(arm + elbow_bend) * .14)
        joints.update({f"top_{side}": top, f"elbow_{side}": elbow, f"hand_{side}": hand,
                       f"finger_{side}": hand + (hand - elbow) * .25})
    joints["neck"] = vec(zero, shoulder_y + .035, lean + .005)
    turn = u(-.4, .4)
    joints["head"] = joints["neck"] + vec(torch.sin(turn) * .006, .075 + zero, .014 + zero)
    return joints


def parts_of(who, j, n, device):
    """Per part: two ends [n,K,3], half widths across and ahead at both ends [n,K], bulge, flatness of the ends,
    and whether it is there."""
    one = torch.ones(n, device=device)
    f, g, s = who["limb"], who["girth"], who["shoulder"]
    rows = {}

    def put(name, p0, p1, w0, w1, d0=None, d1=None, bulge=0.0, cap=1.0, there=None):
        w0, w1 = w0 * one, w1 * one
        rows[name] = (p0, p1, w0, w1, w0 if d0 is None else d0 * one, w1 if d1 is None else d1 * one, bulge * one,
                      cap * one, one > 0 if there is None else there)

    trousers = torch.where(who["skirt"] | who["shorts"], one, 1.12 * one)
    for side in ("l", "r"):
        put(f"thigh_{side}", j[f"root_{side}"], j[f"knee_{side}"], .056 * f, .039 * f * trousers, bulge=.004)
        put(f"shin_{side}", j[f"knee_{side}"], j[f"ankle_{side}"], .037 * f * trousers, .024 * f * trousers ** 3,
            bulge=.006, cap=1.5)
        put(f"shoe_{side}", j[f"ankle_{side}"], j[f"toe_{side}"], .024, .021, bulge=.004)
        put(f"upper_{side}", j[f"top_{side}"], j[f"elbow_{side}"], .036 * f, .028 * f, cap=1.2)
        put(f"fore_{side}", j[f"elbow_{side}"], j[f"hand_{side}"], .027 * f, .019 * f)
        put(f"hand_{side}", j[f"hand_{side}"], j[f"finger_{side}"], .017, .014)
    put("trunk", j["hip"], j["chest"], who["hip"] * 1.0, s * .98, g * 1.05, g, bulge=-.004, cap=3.2)
    length = torch.where(who["coat"], .5 * one, .75 * one) * who["skirt_end"] * who["leg"] * .8
    hem = j["hip"] - torch.stack([0 * one, length, 0 * one], -1) + .15 * (j["knee_l"] + j["knee_r"] - 2 * j["hip"]) * \
        torch.tensor([0., 0., 1.], device=device)
    put("skirt", j["hip"], hem, who["hip"] * 1.04, who["hip"] * who["flare"] * 1.1, g * 1.12, g * 1.2 * who["flare"],
        cap=6.0, there=who["skirt"] | who["coat"])
    put("neck", j["chest"], j["neck"], .033, .028)
    up = torch.tensor([0., 1., 0.], device=device)
    put("head", j["head"] - up * .022, j["head"] + up * .018, who["head"] * .86, who["head"], who["head"] * .95,
        who["head"] * 1.12)
    back = torch.tensor([0., .012, -.018], device=device)
    drop = torch.where(who["long_hair"], .11 * one, .02 * one)
    put("hair", j["head"] + back + up * .022, j["head"] + back - up * drop[:, None], who["head"] * 1.05,
        who["head"] * torch.where(who["long_hair"], 1.15 * one, .9 * one), who["head"] * 1.1, who["head"] * .75,
        there=~who["bald"])
    behind = (j["hip"] + j["chest"]) / 2 + torch.tensor([0., .03, 0.], device=device)
    behind = behind - torch.stack([0 * one, 0 * one, g + .035], -1)
    beside = j["hip"] + torch.stack([who["side"] * (who["hip"] + .035), -.02 * one, -.01 * one], -1)
    worn = (who["bag"] == 1)[:, None]
    at = torch.where(worn, behind, beside)
    tall = torch.where(worn[:, 0], .075 * one, .04 * one) * who["bag_size"]
    size = lambda pack, purse: torch.where(worn[:, 0], pack * one, purse * one)
    put("bag", at - up * tall[:, None], at + up * tall[:, None], size(.075, .035) * who["bag_size"],
        size(.07, .03) * who["bag_size"], size(.05, .075), size(.045, .07), cap=2.5, there=who["bag"] > 0)
    return [torch.stack([rows[name][i] for name in PARTS], 1) for i in range(9)]


def turn(p, yaw, pitch):
    """Person's frame [n,K,3] to the camera's: x right, y down, z towards the camera."""
    c, s = torch.cos(yaw)[:, None], torch.sin(yaw)[:, None]
    x, y, z = p.unbind(-1)
    x, z = x * c + z * s, z * c - x * s
    c, s = torch.cos(pitch)[:, None], torch.sin(pitch)[:, None]
    return torch.stack([x, -(y * c - z * s), z * c + y * s], -1)


def pattern(m, angle, along, n_waves):
    """Share of colour b [n,h,w] at a place on the cloth: angle around the body (0 ahead), along 0..1."""
    wave = lambda x: (torch.sin(x) * 6).clamp(-1, 1) * .5 + .5
    level = wave(along * m["rate"] * 3.1 + m["phase"])
    upright = wave(angle * m["rate"] * .8 + m["phase"])
    blotch = wave((torch.sin(angle * m["wave"] + m["phase"]) + torch.sin(along * m["rate"] + m["phase"] * 2) +
                   torch.sin(angle * n_waves - along * m["rate"] * 1.3)) * 1.2)
    mark = ((angle.abs() < .55) & ((along - .62).abs() < .13)).float()
    front = (angle.abs() < .33).float()
    table = [torch.zeros_like(level), level, upright, (level + upright) * .5, blotch, mark, front]
    out = table[0]
    for i in range(1, PATTERNS):
        out = torch.where(m["pattern"] == i, table[i], out)
    return out


@torch.no_grad()
def draw(who, n, device, height=HEIGHT // 2, width=WIDTH // 2):
    """One view of each identity: colours with mask [n,4,height,width] in 0..255, and the box [n,4] in 0..1."""
    yaw = uniform((n,), 0, 2 * math.pi, device)
    pitch = uniform((n,), .02, .65, device)
    p0, p1, w0, w1, d0, d1, bulge, cap, there = parts_of(who, skeleton(who, n, device), n, device)
    q0, q1 = turn(p0, yaw, pitch), turn(p1, yaw, pitch)
    # a part's width across the picture, from its elliptic section; the bag turns with the body as well
    c, s = torch.cos(yaw)[:, None] ** 2, torch.sin(yaw)[:, None] ** 2
    e0, e1 = torch.sqrt(w0 * w0 * c + d0 * d0 * s), torch.sqrt(w1 * w1 * c + d1 * d1 * s)
    t0, t1 = torch.sqrt(w0 * w0 * s + d0 * d0 * c), torch.sqrt(w1 * w1 * s + d1 * d1 * c)
    # frame: the parts that are there fill the middle 2/3 of the canvas
    far = torch.where(there, torch.zeros_like(e0), torch.full_like(e0, 9.0))
    reach = torch.stack([e0, e1]).amax(0)
    low = torch.minimum(q0[..., :2], q1[..., :2]) - (reach / cap)[..., None] * .8 + far[..., None]
    high = torch.maximum(q0[..., :2], q1[..., :2]) + (reach / cap)[..., None] * .8 - far[..., None]
    low, high = low.amin(1), high.amax(1)
    middle, span_y = (low + high) / 2, (high - low)[:, 1]
    scale = span_y * 1.5 / height                       # person's units a pixel
    stretch = uniform((n,), .95, 1.05, device)           # a tracker's boxes differ in aspect
    # pixels of the canvas are not square: a box of 256x128 shows a person about 0.42 as wide as high
    half = torch.maximum((high - low)[:, 0] * .5, span_y * .19) * stretch
    scale_x = half * 2 * 1.5 / width
    ys = (torch.arange(height, device=device) + .5 - height / 2)[None] * scale[:, None] + middle[:, 1:]
    xs = (torch.arange(width, device=device) + .5 - width / 2)[None] * scale_x[:, None] + middle[:, :1]
    shape = (n, height, width)
    xs, ys = xs[:, None, :].expand(shape), ys[:, :, None].expand(shape)
    parts = dict(q0=q0, q1=q1, e0=e0, e1=e1, t0=t0, t1=t1, bulge=bulge, cap=cap, there=there)
    return trace(who, parts, xs, ys, torch.maximum(scale, scale_x), yaw, n, device)


def fringe(u, v, phase):
    """How far hair reaches at a place around its part, in shares of its width: strands stand out unevenly."""
    around = torch.atan2(u, v)
    strands = sum(torch.sin(around * k + phase * (k % 7)) for k in (9, 23, 41, 67)) / 4
    return 1.06 + 0.16 * strands


def trace(who, parts, xs, ys, pixel, yaw, n, device, hair=()):
    """The parts as the rays at xs, ys [n,h,w] meet them, shaded; pixel [n]: the size of one, for the edges.
    hair: parts whose outline is made of strands."""
    q0, q1, e0, e1, t0, t1, bulge, cap, there = (parts[k] for k in
                                                 ("q0", "q1", "e0", "e1", "t0", "t1", "bulge", "cap", "there"))
    shape = xs.shape
    best = torch.full(shape, -9.0, device=device)
    alpha, part = torch.zeros(shape, device=device), torch.zeros(shape, dtype=torch.long, device=device)
    along, across, normal_y = (torch.zeros(shape, device=device) for _ in range(3))
    for k in range(q0.shape[1]):
        col = lambda v: v[:, k, None, None]
        ax, ay = q1[:, k, 0] - q0[:, k, 0], q1[:, k, 1] - q0[:, k, 1]
        length2 = (ax * ax + ay * ay).clamp(min=1e-5)
        px, py = xs - q0[:, k, 0, None, None], ys - q0[:, k, 1, None, None]
        t = (px * ax[:, None, None] + py * ay[:, None, None]) / length2[:, None, None]
        tc = t.clamp(0, 1)
        over = (t - tc) * length2.sqrt()[:, None, None]
        side = (px * ay[:, None, None] - py * ax[:, None, None]) / length2.sqrt()[:, None, None]
        swell = col(bulge) * 4 * tc * (1 - tc)
        w = col(e0) + (col(e1) - col(e0)) * tc + swell
        thick = col(t0) + (col(t1) - col(t0)) * tc + swell
        u, v = side / w, over * col(cap) / w
        r2 = u * u + v * v
        axis_z = q0[:, k, 2, None, None] + (q1[:, k, 2] - q0[:, k, 2])[:, None, None] * tc
        z = axis_z + thick * (1 - r2).clamp(min=0).sqrt()
        cover = ((1 - r2.sqrt()) * w / pixel[:, None, None] + .5).clamp(0, 1) * col(there)
        if k in hair:
            cover = torch.maximum(cover, ((fringe(u, v, who["strand"][:, None, None]) - r2.sqrt()) * 5).clamp(0, 1) *
                                  col(there))
        nearer = (cover > .5) & (z > best) | (cover > alpha) & (best < -8)
        best = torch.where(nearer & (cover > .5), z, best)
        part = torch.where(nearer, torch.full_like(part, k), part)
        along, across = torch.where(nearer, tc, along), torch.where(nearer, u, across)
        normal_y = torch.where(nearer, v * torch.sign(ay)[:, None, None], normal_y)
        alpha = torch.maximum(alpha, cover)
    return shade(who, part, along, across, normal_y, alpha, yaw, n, device)


def shade(who, part, along, across, normal_y, alpha, yaw, n, device):
    shape = alpha.shape
    flat = part.view(n, -1)
    take = lambda v: v.gather(1, flat).view(shape)
    material = {key: take(v) for key, v in who["material"].items() if v.dim() == 2}
    nx = across.clamp(-1, 1)
    nz = (1 - nx * nx - normal_y * normal_y).clamp(min=0).sqrt()
    # the angle on the body of what faces the camera: 0 is ahead, where the camera sits at yaw 0
    angle = torch.asin(nx) + yaw[:, None, None]
    angle = torch.remainder(angle + math.pi, 2 * math.pi) - math.pi
    share = pattern(material, angle, along, 3.0)[..., None]
    take3 = lambda v: v.gather(1, flat[..., None].expand(-1, -1, 3)).view(*shape, 3)
    colour = take3(who["material"]["a"]) * (1 - share) + take3(who["material"]["b"]) * share
    # hair covers the skull's back: the face shows only ahead
    head = (part == INDEX["head"]) & ~who["bald"][:, None, None]
    hidden = head & ((angle.abs() > 1.25) | (along > .97) & (normal_y < -.45))
    hair = who["material"]["a"][:, INDEX["hair"], None, None]
    colour = torch.where(hidden[..., None], hair, colour)
    face = head & (angle.abs() < .75) & ((along - .45).abs() < .12) & (angle.abs() > .2)  # eyes' shade
    colour = torch.where(face[..., None], colour * .7, colour)
    # folds of the cloth, this step's, and light from one side
    folds = torch.sin(along * uniform((n, 1, 1), 6, 14, device) + across * uniform((n, 1, 1), -3, 3, device) +
                      part * 2.1 + uniform((n, 1, 1), 0, 6, device)) * uniform((n, 1, 1), 0, .12, device)
    azimuth, height = uniform((n, 1, 1), -1.4, 1.4, device), uniform((n, 1, 1), .2, 1.2, device)
    lx, ly, lz = torch.sin(azimuth) * torch.cos(height), -torch.sin(height), torch.cos(azimuth) * torch.cos(height)
    direct = (nx * lx + normal_y * ly + nz * lz + folds).clamp(min=0)
    sun, sky = uniform((n, 1, 1), .2, 1.0, device), uniform((n, 1, 1), .35, .75, device)
    tint = 1 + torch.randn(n, 1, 1, 3, device=device) * .04
    lit = (sky * (1 - .25 * normal_y) * (.75 + .25 * nz) + sun * direct)[..., None] * tint
    colour = (colour * lit).clamp(0, 1) ** (1 / 1.1) * 255
    picture = torch.cat([colour.permute(0, 3, 1, 2), alpha[:, None] * 255], 1)
    rows, cols = (alpha > .5).any(2), (alpha > .5).any(1)

    def ends(flags):
        m = flags.shape[1]
        at = torch.arange(m, device=device)
        first = torch.where(flags, at, m).amin(1)
        last = torch.where(flags, at + 1, 0).amax(1)
        return first.float() / m, last.float() / m
    (y0, y1), (x0, x1) = ends(rows), ends(cols)
    # a box is not narrower than a tracker would draw it
    middle, half = (x0 + x1) / 2, torch.maximum((x1 - x0) / 2, (y1 - y0) * .42)
    return picture, torch.stack([middle - half, y0, middle + half, y1], 1), light_side(lx, height)


def light_side(lx, height):
    return torch.stack([lx.view(-1), height.view(-1)], 1)


def shadow(picture, box, light, ground):
    """A soft shadow on the ground beside the feet, away from the light."""
    n, _, h, w = ground.shape
    xs = ((torch.arange(w, device=ground.device) + .5) / w)[None, None, :]
    ys = ((torch.arange(h, device=ground.device) + .5) / h)[None, :, None]
    feet, middle = box[:, 3, None, None], (box[:, 0, None, None] + box[:, 2, None, None]) / 2
    reach = (1.4 - light[:, 1, None, None]).clamp(.1) * .35
    away = -torch.sign(light[:, 0, None, None])
    u = (xs - middle) * away / reach
    v = (ys - feet + .012 + .05 * u.clamp(0, 1)) / (.035 + .02 * u.clamp(0, 1))
    dark = torch.exp(-((u - .35) / .5) ** 2 - v * v) * uniform((n, 1, 1), .1, .6, ground.device)
    return ground * (1 - dark[:, None])


@torch.no_grad()
def pairs(n, device, backdrops):
    """Two canvases [n,4,HEIGHT,WIDTH] of each of n new persons, over backdrops(n) [n,3,HEIGHT,WIDTH], with their
    boxes [n,4] in 0..1."""
    who = identities(n, device)
    out = []
    for _ in range(2):
        picture, box, light = draw(who, n, device)
        picture = F.interpolate(picture, size=(HEIGHT, WIDTH), mode="bilinear", align_corners=False)
        ground = shadow(picture, box, light, backdrops(n))
        a = picture[:, 3:] / 255
        out += [torch.cat([picture[:, :3] * a + ground * (1 - a), picture[:, 3:]], 1), box]
    return out[0], out[2], out[1], out[3]


def sheet(pictures, columns):
    """Pictures [n,3,h,w] as one array [rows*h, columns*w, 3] uint8."""
    n, _, h, w = pictures.shape
    rows = -(-n // columns)
    x = F.pad(pictures.clamp(0, 255), [0, 0, 0, 0, 0, 0, 0, rows * columns - n])
    x = x.view(rows, columns, 3, h, w).permute(0, 3, 1, 4, 2).reshape(rows * h, columns * w, 3)
    return x.round().byte().cpu().numpy()


def main():
    from PIL import Image
    from .views import noise_field
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    torch.manual_seed(1)
    a, b, _, _ = pairs(40, torch.device("cpu"), lambda n: noise_field(n, HEIGHT, WIDTH, "cpu"))
    both = torch.stack([a, b], 1).flatten(0, 1)[:, :3]
    Image.fromarray(sheet(F.interpolate(both, scale_factor=.5), 16)).save(sys.argv[1])


if __name__ == "__main__":
    main()
