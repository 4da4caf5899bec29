# SPDX-License-Identifier: Apache-2.0
"""Augmentation of persons' crops, whole batches on the device: what two cameras would show of one person.

A *canvas* [4,384,192] is a person with what is around it (crops.py); a *view* [3,256,128] is what a network
gets: a box that does not quite fit, somebody in front, other light, a sensor of few pixels, compression.
"""
import math
import random

import torch
import torch.nn.functional as F

from . import augment
from .crops import BOX_HEIGHT, BOX_WIDTH, HEIGHT, MARGIN, WIDTH

uniform = augment.uniform


def inner_box(n, device):
    """The box [n,4] of a crop on its canvas, in 0..1 of width and height."""
    edge = MARGIN / (1 + 2 * MARGIN)
    return torch.tensor([edge, edge, 1 - edge, 1 - edge], device=device).expand(n, 4)


def window(canvas, box, out, flip, height=BOX_HEIGHT, width=BOX_WIDTH, padding="border"):
    """The box of each canvas, moved outwards by out [n,4] (shares of its size), as [n,c,height,width]."""
    side = (box[:, 2:] - box[:, :2]).repeat(1, 2)
    sign = torch.tensor([-1.0, -1.0, 1.0, 1.0], device=canvas.device)
    b = (box + out * side * sign) * 2 - 1
    half, middle = (b[:, 2:] - b[:, :2]) / 2, (b[:, 2:] + b[:, :2]) / 2
    zero = torch.zeros_like(half[:, 0])
    theta = torch.stack([torch.stack([half[:, 0] * (1 - 2 * flip.float()), zero, middle[:, 0]], 1),
                         torch.stack([zero, half[:, 1], middle[:, 1]], 1)], 1)
    grid = F.affine_grid(theta, [len(canvas), canvas.shape[1], height, width], align_corners=False)
    return F.grid_sample(canvas, grid, mode="bilinear", padding_mode=padding, align_corners=False)


def box_jitter(n, room, strength, device):
    """How far the four edges move outwards; not further than there is picture around the box."""
    out = uniform((n, 4), -0.10, 0.16, device) * strength
    shift = torch.randn(n, 2, device=device) * 0.04 * strength
    out = out + torch.cat([-shift, shift], 1)
    return torch.minimum(out, room * MARGIN + 0.02).clamp(min=-0.25)


def ellipse(box, height=HEIGHT, width=WIDTH):
    """A soft ellipse in the box [n,4]: roughly where the person is, when no mask says it."""
    xs = (torch.arange(width, device=box.device) + 0.5) / width
    ys = (torch.arange(height, device=box.device) + 0.5) / height
    middle, half = (box[:, 2:] + box[:, :2]) / 2, (box[:, 2:] - box[:, :2]) / 2
    u = ((xs[None] - middle[:, :1]) / half[:, :1] / 0.8)[:, None, :]
    v = ((ys[None] - middle[:, 1:]) / half[:, 1:])[:, :, None]
    return ((1.15 - (u * u + v * v)) * 4).clamp(0, 1)[:, None] * 255


def noise_field(n, height, width, device):
    """Coloured clouds 0..255."""
    x = uniform((n, 1, 1, 1), 40, 215, device) + torch.randn(n, 3, 1, 1, device=device) * 14
    for cells, size in ((3, 40), (9, 25), (27, 15)):
        coarse = torch.randn(n, 3, cells, max(2, cells // 2), device=device)
        coarse = coarse.mean(1, keepdim=True) * 1.2 + coarse * 0.2
        x = x + F.interpolate(coarse, size=(height, width), mode="bilinear", align_corners=False) * (
            size * torch.rand(n, 1, 1, 1, device=device))
    return x.clamp(0, 255)


def backdrops(store, n):
    """Surroundings [n,3,HEIGHT,WIDTH] without the person: a crop's margin, mirrored on and on, or clouds."""
    dev = store.device
    clouds = noise_field(n, HEIGHT, WIDTH, dev)
    if not len(store.roomy):
        return clouds
    index = store.roomy[torch.randint(len(store.roomy), (n,), device=dev)]
    strip = int(WIDTH * MARGIN / (1 + 2 * MARGIN))
    canvas, right = store.fetch(index)[:, :3], store.room[index, 2] > 0.9
    side = torch.where(right[:, None, None, None], canvas[..., -strip:], canvas[..., :strip])
    zero = torch.zeros(n, device=dev)
    theta = torch.stack([torch.stack([uniform((n,), 1, 5, dev), zero, uniform((n,), -1, 1, dev)], 1),
                         torch.stack([zero, uniform((n,), 0.5, 1, dev), uniform((n,), -0.2, 0.2, dev)], 1)], 1)
    grid = F.affine_grid(theta, [n, 3, HEIGHT, WIDTH], align_corners=False)
    side = F.grid_sample(side, grid, mode="bilinear", padding_mode="reflection", align_corners=False)
    return torch.where((torch.rand(n, device=dev) < 0.15)[:, None, None, None], clouds, side)


def mix(a, b, known, share):
    """New persons: the upper body of one with the lower body of another, in both canvases alike."""
    n, dev = len(a), a.device
    rows = (torch.rand(n, device=dev) < share).nonzero()[:, 0]
    if not len(rows) or n < 2:
        return a, b, known, rows
    other = (rows + 1 + torch.randint(n - 1, (len(rows),), device=dev)) % n
    ys = (torch.arange(HEIGHT, device=dev) + 0.5) / HEIGHT
    cut = uniform((len(rows), 1), 0.42, 0.56, dev)
    lower = torch.sigmoid((ys[None] - cut) * 60)[:, None, :, None]
    new_a, new_b = a.clone(), b.clone()
    new_a[rows] = a[rows] * (1 - lower) + a[other] * lower
    new_b[rows] = b[rows] * (1 - lower) + b[other] * lower
    new_known = known.clone()
    new_known[rows] = known[rows] & known[other]
    return new_a, new_b, new_known, rows


def hue_matrix(n, device):
    """Turns colours about the grey axis and scales them, [n,3,3]."""
    angle, gain = uniform((n,), -math.pi, math.pi, device), torch.exp(uniform((n,), -0.4, 0.4, device))
    c, s, third = torch.cos(angle), torch.sin(angle), math.sqrt(1 / 3)
    eye, ones = torch.eye(3, device=device), torch.full((3, 3), 1 / 3, device=device)
    cross = torch.tensor([[0, -third, third], [third, 0, -third], [-third, third, 0]], device=device)
    turn = c[:, None, None] * eye + (1 - c)[:, None, None] * ones + s[:, None, None] * cross
    return turn * gain[:, None, None]


def recolour(a, b, share):
    """New persons: clothes of another colour, upper and lower body apart, in both canvases alike."""
    n, dev = len(a), a.device
    rows = (torch.rand(n, device=dev) < share).nonzero()[:, 0]
    if not len(rows):
        return rows
    ys = (torch.arange(HEIGHT, device=dev) + 0.5) / HEIGHT
    lower = torch.sigmoid((ys[None] - uniform((len(rows), 1), 0.45, 0.53, dev)) * 60)[:, None, :, None]
    head = torch.sigmoid((ys[None] - 0.28) * 60)[:, None, :, None]  # faces keep their colour
    upper_m, lower_m = hue_matrix(len(rows), dev), hue_matrix(len(rows), dev)
    for canvas in (a, b):
        x = canvas[rows, :3]
        upper_x, lower_x = (torch.einsum("nij,njhw->nihw", m, x).clamp(0, 255) for m in (upper_m, lower_m))
        alpha = canvas[rows, 3:] / 255 * head
        canvas[rows, :3] = x + (upper_x * (1 - lower) + lower_x * lower - x) * alpha
    return rows


def occlude(x, canvas, box, share):
    """Somebody of the batch, or a box of his picture, stands in front at one side."""
    n, dev = len(x), x.device
    rows = (torch.rand(n, device=dev) < share).nonzero()[:, 0]
    if not len(rows):
        return x
    other = torch.randint(n, (len(rows),), device=dev)
    m = len(rows)
    sideways = uniform((m,), 0.4, 0.85, dev) * torch.where(torch.rand(m, device=dev) < 0.5, -1.0, 1.0)
    down = uniform((m,), -0.25, 0.1, dev)  # negative: the one in front stands lower in the picture
    grow = uniform((m,), -0.12, 0.12, dev)
    out = torch.stack([grow + sideways, grow - down, grow - sideways, grow + down], 1)
    front = window(canvas[other], box[other], out, torch.rand(m, device=dev) < 0.5, padding="zeros")
    alpha = front[:, 3:] / 255
    # one in three is a thing with straight edges: a pillar, a car, a bench
    size, at = uniform((m, 2), 0.15, 0.5, dev), torch.rand(m, 2, device=dev)
    xs = (torch.arange(BOX_WIDTH, device=dev) + 0.5) / BOX_WIDTH
    ys = (torch.arange(BOX_HEIGHT, device=dev) + 0.5) / BOX_HEIGHT
    plank = (((xs[None] - at[:, :1]).abs() < size[:, :1] / 2)[:, None, :] &
             ((ys[None] - at[:, 1:]).abs() < size[:, 1:] / 2)[:, :, None])[:, None].float()
    thing = torch.rand(m, device=dev) < 0.33
    flat = front[:, :3].mean((2, 3), keepdim=True) + torch.randn(m, 3, 1, 1, device=dev) * 40
    pick = thing[:, None, None, None]
    alpha, colour = torch.where(pick, plank, alpha), torch.where(pick, flat.clamp(0, 255), front[:, :3])
    x = x.clone()
    x[rows] = x[rows] * (1 - alpha) + colour * alpha
    return x


def light(x, strength):
    """Exposure, gamma, contrast, saturation, colour cast, a shadow's edge; strength 1 is two street cameras."""
    n, dev = len(x), x.device
    col = lambda span: uniform((n, 1, 1, 1), -span * strength, span * strength, dev)
    x = (x / 255).clamp(1e-4, 1) ** torch.exp(col(0.4))
    grey = augment.luma(x)
    saturation = torch.where(torch.rand(n, 1, 1, 1, device=dev) < 0.03 * strength,
                             torch.zeros(1, device=dev), torch.exp(col(0.5)))
    x = grey + (x - grey) * saturation
    x = x * (1 + uniform((n, 3, 1, 1), -0.1 * strength, 0.1 * strength, dev))
    slope = torch.randn(n, 2, device=dev)
    ys, xs = torch.linspace(-1, 1, x.shape[2], device=dev), torch.linspace(-1, 1, x.shape[3], device=dev)
    edge = slope[:, :1, None] * ys[None, :, None] + slope[:, 1:, None] * xs[None, None] + torch.randn(
        n, 1, 1, device=dev) * 0.7
    depth = uniform((n, 1, 1, 1), 0, 0.5 * strength, dev) * (torch.rand(n, 1, 1, 1, device=dev) < 0.25)
    x = x * (1 - depth * torch.sigmoid(edge * 8)[:, None])
    x = (x - 0.45) * torch.exp(col(0.3)) + 0.45 + col(0.1)
    return x.clamp(0, 1) * 255


def soften(x, sigma):
    """Gaussian blur by five shifted sums: cuDNN would look for an algorithm at every new size."""
    weight = [math.exp(-t * t / (2 * sigma * sigma)) for t in (-2, -1, 0, 1, 2)]
    total = sum(weight)
    h, w = x.shape[2:]
    y = F.pad(x, [2, 2, 0, 0], mode="replicate")
    y = sum(y[..., t:t + w] * (weight[t] / total) for t in range(5))
    y = F.pad(y, [0, 0, 2, 2], mode="replicate")
    return sum(y[..., t:t + h, :] * (weight[t] / total) for t in range(5))


def camera(x, height=(28, 256), groups=8):
    """What a sensor leaves of persons of `height` pixels: few pixels, blur or sharpening, noise, compression.

    Parts of the batch share one resolution, so that each is a handful of dense operations."""
    n, dev = len(x), x.device
    out = torch.empty_like(x)
    order = torch.randperm(n, device=dev)
    low, high = (math.log(v) for v in height)
    for rows in order.chunk(groups):
        h = min(BOX_HEIGHT, round(math.exp(random.uniform(low, high))))
        w = max(8, min(BOX_WIDTH, round(h * random.uniform(0.38, 0.5))))
        y = F.interpolate(x[rows], size=(h, w), mode="area") if h < 230 else x[rows]
        dice = random.random()
        if dice < 0.3:
            y = soften(y, random.uniform(0.4, 1.2))
        elif dice < 0.45:
            y = y + (y - soften(y, 1.0)) * random.uniform(0.3, 1.2)
        m = len(rows)
        noise = uniform((m, 1, 1, 1), -8, 9, dev).clamp(min=0)  # about half of them have none
        y = (y + torch.randn_like(y) * noise).clamp(0, 255)
        if random.random() < 0.6:
            y = augment.compress(y, uniform((m,), 0.5, 6.0, dev))
        out[rows] = F.interpolate(y, size=(BOX_HEIGHT, BOX_WIDTH), mode="bilinear", align_corners=False)
    return out


class Views:
    """Strengths of all this: what tests and ablations switch."""

    def __init__(self, store, jitter=1.0, colour=0.7, occlusion=0.35, swap=0.5, heights=(28, 256)):
        self.store, self.jitter, self.colour = store, jitter, colour
        self.occlusion, self.swap, self.heights = occlusion, swap, heights

    def view(self, canvas, box, room, known):
        """One camera's views [n,3,256,128] in 0..255, and the same before light and sensor spoiled them."""
        n, dev = len(canvas), canvas.device
        rows = (known & (torch.rand(n, device=dev) < self.swap)).nonzero()[:, 0]
        if len(rows):
            canvas, room = canvas.clone(), room.clone()
            alpha = canvas[rows, 3:] / 255
            canvas[rows, :3] = canvas[rows, :3] * alpha + backdrops(self.store, len(rows)) * (1 - alpha)
            room[rows] = 1
        out = box_jitter(n, room, self.jitter, dev)
        x = window(canvas[:, :3], box, out, torch.rand(n, device=dev) < 0.5)
        x = occlude(x, canvas, box, self.occlusion).clamp(0, 255)  # blending rounds
        spoiled = light(x, self.colour) if self.colour > 0 else x
        return camera(spoiled, self.heights).clamp(0, 255), x
