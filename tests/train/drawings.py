# SPDX-License-Identifier: Apache-2.0
"""Training pictures made of nothing: simple figures on noise, in the layout that train/ reads. Boxes and
masks are right by construction."""
import json

import numpy
from PIL import Image, ImageDraw

PICTURES, HELD_OUT, WIDTH, HEIGHT = 20, 4, 128, 96
# hue of coat and of trousers: what tells the persons apart
PERSONS = [((220, 40, 40), (30, 30, 90)), ((40, 90, 220), (90, 80, 60)), ((230, 200, 40), (20, 20, 20)),
           ((40, 170, 60), (150, 150, 160)), ((200, 60, 190), (60, 30, 20)), ((235, 235, 235), (60, 110, 200))]


def figure(draw, x, y, height, person, value=None):
    """A head, a coat and two legs that fill a box of height/3 by height; `value` draws it in one colour."""
    coat, trousers = PERSONS[person] if value is None else (value, value)
    skin = (220, 180, 150) if value is None else value
    w, h = height / 3, height - 1
    draw.ellipse([x + w * 0.28, y, x + w * 0.72, y + h * 0.2], fill=skin)
    draw.rectangle([x, y + h * 0.2, x + w - 1, y + h * 0.58], fill=coat)
    draw.rectangle([x + w * 0.1, y + h * 0.58, x + w * 0.42, y + h], fill=trousers)
    draw.rectangle([x + w * 0.58, y + h * 0.58, x + w * 0.9, y + h], fill=trousers)


def noise(random, width, height):
    """Coarse and fine grey noise, as walls and pavements have it."""
    coarse = random.integers(100, 150, (height // 8, width // 8, 3), dtype=numpy.uint8)
    coarse = numpy.asarray(Image.fromarray(coarse).resize((width, height), Image.BILINEAR), numpy.float32)
    fine = random.normal(0, 8, (height, width, 1))
    return Image.fromarray(numpy.clip(coarse + fine, 0, 255).astype(numpy.uint8))


def places(random, count):
    """Boxes x0,y0,x1,y1 that do not touch each other."""
    out, slot = [], WIDTH // 3
    for column in random.permutation(3)[:count]:
        height = int(random.integers(42, 84))
        x = int(column * slot + random.integers(0, slot - height // 3))
        y = int(random.integers(0, HEIGHT - height))
        out.append((x, y, x + height // 3, y + height))
    return out


def outline(mask):
    """The box of a mask's pixels, right and bottom edge open."""
    ys, xs = numpy.nonzero(mask)
    return [int(xs.min()), int(ys.min()), int(xs.max()) + 1, int(ys.max()) + 1]


def picture(random, count):
    """A picture, its mask (0 background, 1..N person), and its persons as (number, box)."""
    image, mask = noise(random, WIDTH, HEIGHT), Image.new('L', (WIDTH, HEIGHT))
    who = [int(p) for p in random.permutation(len(PERSONS))[:count]]
    boxes = places(random, count)
    for i, (person, (x0, y0, _, y1)) in enumerate(zip(who, boxes)):
        figure(ImageDraw.Draw(image), x0, y0, y1 - y0, person)
        figure(ImageDraw.Draw(mask), x0, y0, y1 - y0, person, i + 1)
    marks = numpy.asarray(mask)
    return image, mask, [(person, outline(marks == i + 1)) for i, person in enumerate(who)]


def write_folders(root, pictures=PICTURES, seed=5):
    """detect/, segment/ and reid/ under root. The first picture shows nobody, the second has a crowd, the
    last HELD_OUT are of the split `val`. Returns the pictures' persons."""
    random = numpy.random.default_rng(seed)
    for part in ('detect/images', 'segment/masks', 'reid/single', 'reid/multi'):
        (root / part).mkdir(parents=True)
    images, annotations, items, shown = [], [], [], []
    for i in range(pictures):
        image, mask, persons = picture(random, 0 if i == 0 else 1 + i % 3)
        name, split = f'{i + 1:06d}', 'val' if i >= pictures - HELD_OUT else 'train'
        if i == 1:
            # a crowd where nobody stands: neither a person nor background
            crowd = [0, 0, WIDTH, 8]
            ImageDraw.Draw(mask).rectangle([0, 0, WIDTH - 1, 7], fill=255)
            annotations.append(coco_box(len(annotations) + 1, i + 1, crowd, 1))
        image.save(root / f'detect/images/{name}.jpg', quality=95)
        mask.save(root / f'segment/masks/{name}.png')
        images.append(dict(id=i + 1, file_name=f'images/{name}.jpg', width=WIDTH, height=HEIGHT, license=4,
                           split=split))
        items.append(dict(image=f'../detect/images/{name}.jpg', mask=f'masks/{name}.png', persons=len(persons),
                          split=split, license=4))
        for _, box in persons:
            annotations.append(coco_box(len(annotations) + 1, i + 1, box, 0))
        shown.append(persons)
    coco = dict(info={}, licenses=[dict(id=4, name='CC BY')], categories=[dict(id=1, name='person')],
                images=images, annotations=annotations)
    (root / 'detect/annotations.json').write_text(json.dumps(coco))
    (root / 'segment/index.json').write_text(json.dumps(dict(mask_values='0 background', items=items)))
    write_crops(root / 'reid', random)
    return shown


def coco_box(number, image, box, crowd):
    x0, y0, x1, y1 = box
    return dict(id=number, image_id=image, category_id=1, bbox=[x0, y0, x1 - x0, y1 - y0],
                area=(x1 - x0) * (y1 - y0), iscrowd=crowd)


def crop(random, person, height=192):
    """One person at some place and light, as a tracker would cut him out."""
    width = height // 2
    image = noise(random, width, height)
    tall = int(random.integers(height * 3 // 4, height))
    figure(ImageDraw.Draw(image), (width - tall // 3) // 2 + int(random.integers(-6, 7)),
           int(random.integers(0, height - tall + 1)), tall, person)
    return image.point(lambda v, gain=random.uniform(0.7, 1.2): min(255, int(v * gain)))


def write_crops(folder, random):
    for i in range(16):
        crop(random, i % len(PERSONS)).save(folder / f'single/s{i + 101:012d}-0.jpg', quality=95)
    for person in range(len(PERSONS)):
        for frame in range(4):
            crop(random, person).save(folder / f'multi/{person + 1:04d}_c1_{frame:06d}.jpg', quality=95)


def walk_boxes(frames=20):
    """Where the figure of write_walk is."""
    return [(10 + 3 * frame, 16, 32 + 3 * frame, 82) for frame in range(frames)]


def write_walk(folder, seed=11):
    """A folder of frames: one figure walks to the right on a still background."""
    random = numpy.random.default_rng(seed)
    folder.mkdir(parents=True)
    still = noise(random, WIDTH, HEIGHT)
    for frame, (x0, y0, _, y1) in enumerate(walk_boxes(), 1):
        image = still.copy()
        figure(ImageDraw.Draw(image), x0, y0, y1 - y0, 0)
        image.save(folder / f'{frame:05d}.png')
