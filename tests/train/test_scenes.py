# SPDX-License-Identifier: Apache-2.0
"""Pictures with mattes: they fit each other, a seed decides them, and nothing held out is ever read."""
import builtins
import io
import json
import tarfile

import numpy
import pytest
import torch
from PIL import Image

from helpers import forgetful
from saccade_train import augment, bodies, data, pack, scenes, segment, training

SIDE = 96


@pytest.fixture(scope='module')
def bank():
    return bodies.Bank(12, 1, side=64)


@pytest.fixture(scope='module')
def mixed(folders, tmp_path_factory):
    """The drawn pictures with every third training picture's mask forgotten."""
    return forgetful(folders, tmp_path_factory.mktemp('mixed'))


def make(folder, tmp_path, bank=None, **more):
    training.seed_all(4)
    cache = data.Cache(segment.read_pictures(folder, 'train'), 128, tmp_path, with_masks=True)
    return scenes.Scenes(cache, 'cpu', SIDE, bank=bank, **more)


@pytest.fixture
def maker(mixed, tmp_path, bank):
    return make(mixed, tmp_path, bank)


def upright(source, place, scale, flip=0.0):
    """A View of one picture."""
    return scenes.View(*(numpy.array([float(v)]) for v in (*source, *place, scale, 0.0, flip)))


def test_a_seed_decides_a_batch(maker):
    batches = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        batches.append(maker.batch(5))
    first, other, again = batches
    for a, b in zip(first, again):
        assert torch.equal(torch.as_tensor(a), torch.as_tensor(b))
    assert not torch.equal(first.picture, other.picture)
    assert first.picture.shape == (5, 3, SIDE, SIDE) and first.matte.shape == first.known.shape == (5, 1, SIDE, SIDE)


def test_mattes_fit_the_pictures(mixed, tmp_path, bank, monkeypatch):
    """With people white and all else black a picture is its own matte."""
    monkeypatch.setattr(scenes, 'FILL', 0)
    monkeypatch.setattr(scenes, 'lit', lambda drawing, picture, part: drawing[:, :3])
    made = make(mixed, tmp_path, bank, rendered=0.6, pasted=0.8)
    people = (made.store.cache.mask > 0) & (made.store.cache.mask < 255)
    made.store.cache.rgb = numpy.repeat((people * 255).astype(numpy.uint8)[..., None], 3, 3)
    white = lambda planes: planes[:, 3:].expand(-1, 4, -1, -1)
    made.cut_outs.planes = white(made.cut_outs.planes)
    made.bank = type('Bank', (), dict(planes=white(bank.planes), kind=bank.kind, box=bank.box, light=bank.light,
                                      side=bank.side, __len__=lambda self: len(bank)))()
    x, matte, known, _, _ = made.batch(60)
    # a mask that was enlarged is made sharp again, the photograph is not; crowds are unknown
    apart = (x / 255 - matte).abs() * known
    assert apart.mean() < 0.012 and (apart > 0.5).float().mean() < 0.004
    assert 0.03 < (matte > 0.5).float().mean() < 0.6


def test_the_letterboxed_view_is_what_the_scorer_sees(maker):
    picture, size = maker.store.cache.pictures[0], maker.size[:1]
    fit = SIDE / size.max()
    placed, inside = scenes.project(maker.fetch(numpy.array([0])), size, upright(size[0] / 2, size[0] / 2 * fit, fit), SIDE)
    ours = (placed[:, :3] * inside + 114 * (1 - inside))[0].numpy()
    theirs, (w, h) = segment.letterbox(Image.open(picture.path), SIDE)
    assert (w, h) == (SIDE, SIDE * 3 // 4)
    assert numpy.abs(ours - theirs).mean() < 3  # fine noise: two samples a side are not the exact area
    assert numpy.abs(ours[:, h:] - 114).max() == 0


@pytest.mark.parametrize('scale', [0.7, 0.4, 0.2, 0.1])
def test_what_shrinks_is_averaged(scale):
    """Noise, which single samples would keep as strong as it is."""
    noise = torch.rand(1, 1, 128, 128, generator=torch.Generator().manual_seed(1)) * 255
    view = upright((64, 64), (16, 16), scale)
    (rows, cell), = scenes.parcels(view.scale, 128)
    placed, inside = scenes.project(noise, numpy.array([[128, 128]]), view, 32, cell)
    middle = placed[0, 0][inside[0, 0] == 1]
    # the mean over an area has the deviation over the root of its pixels; linear samples overlap a little
    assert middle.std() < 1.25 * noise.std() * scale and abs(float(middle.mean()) - 127.5) < 40 * scale


def test_a_picture_goes_on_beyond_its_edge_as_it_ends():
    canvas = torch.zeros(1, 1, 64, 64)
    canvas[..., :33, :41] = 200
    for scale in (1.5, 0.45):
        view = upright((20, 16), (32, 32), scale)
        (_, cell), = scenes.parcels(view.scale, 64)
        placed, inside = scenes.project(canvas, numpy.array([[41, 33]]), view, 64, cell)
        assert placed.min() > 199 and 0 < inside.mean() < 1


def test_mask_and_picture_move_alike(maker):
    index, _, view, _ = maker.photographs(numpy.random.default_rng(1), 48)
    _, covering = maker.covering(numpy.random.default_rng(1), numpy.arange(48))
    for views in (view, covering):
        canvas = maker.fetch(index)
        canvas[:, :3] = canvas[:, 3:4] * 255
        placed, _ = scenes.project(canvas, maker.size[index], views, SIDE)
        assert torch.allclose(placed[:, 0] / 255, placed[:, 3], atol=1e-5)
    assert (view.scale > 0).all() and view.angle.any() and 0 < view.flip.mean() < 1


def test_a_person_cut_by_the_border_stays_cut(maker):
    """Else a bust would float in the middle of the picture."""
    outs, rng, rows = maker.cut_outs, numpy.random.default_rng(2), numpy.arange(64)
    ground = numpy.full(64, 40.0), numpy.full(64, 60.0)
    for edge in range(4):
        outs.cut[:] = False
        outs.cut[:, edge] = True
        placed = maker.choose_cut_outs(rng, rows, ground)
        view, (w, h) = placed.view, outs.size[placed.index].T
        low = (view.px - w * view.scale / 2, view.py - h * view.scale / 2)[edge % 2]
        high = (view.px + w * view.scale / 2, view.py + h * view.scale / 2)[edge % 2]
        # a mirrored picture has its left edge at the right
        at_high = (edge > 1) ^ (view.flip.astype(bool) & (edge % 2 == 0))
        assert numpy.where(at_high, high >= SIDE - 0.01, low <= 0.01).all(), edge


def test_boxes_are_where_nothing_is_known(mixed, tmp_path):
    """In pictures with boxes alone, under any view; and one that is not there in full does not say so."""
    made = make(mixed, tmp_path, shares=(0, 1, 0), pasted=0, hidden=0)
    _, _, known, weak, boxes = made.batch(40)
    assert len(weak) == 40 and boxes.shape == (40, scenes.BOXES, 6) and boxes[..., 4].mean() > 0.05
    for unknown, some in zip(1 - known[:, 0], boxes):
        inside = torch.zeros(SIDE, SIDE)
        for x0, y0, x1, y1, columns, rows in some.tolist():
            assert not columns or (y0 > -2 and y1 < SIDE + 2)
            assert not rows or (x0 > -2 and x1 < SIDE + 2)
            inside[max(0, round(y0)):max(0, round(y1)), max(0, round(x0)):max(0, round(x1))] = 1
        assert (unknown[inside > 0] > 0).float().mean() > 0.99 or not inside.any()


def test_few_people_are_added_at_the_end(maker):
    added = []
    for name in ('choose_cut_outs', 'choose_bodies'):
        plain = getattr(maker, name)
        setattr(maker, name, lambda rng, rows, ground, plain=plain: (added.append(len(rows)), plain(rng, rows, ground))[1])
    counts = []
    for calm in (False, True):
        added.clear()
        maker.batch(60, calm)
        counts.append(sum(added))
    assert counts[1] < 0.7 * counts[0]


def over(bank, value, x=42, y=52):
    """A whole person at its own size over one grey, as Scenes lays it."""
    k = int(numpy.flatnonzero(bank.kind == 0)[0])
    canvas = torch.zeros(1, 5, SIDE, SIDE)
    canvas[:, :3] = value
    placed = scenes.Placed(numpy.zeros(1, int), numpy.array([k]), upright((32, 32), (x, y), 1.0), numpy.zeros(1),
                           numpy.zeros(1), numpy.array([[0, 0, 1, 1, 0.0]]))
    stand = type('S', (), dict(device='cpu', side=SIDE))
    scenes.Scenes.lay(stand, canvas, bank.planes, numpy.full((len(bank), 2), 64.0), placed)
    return canvas, bank.planes[k].float()


def test_rendered_people_are_laid_with_their_own_alpha(bank):
    """Over black and over white: the difference is what alpha lets through."""
    (black, drawing), (white, _) = over(bank, 0.0), over(bank, 255.0)
    alpha = black[0, 3] * 255
    assert abs(float(alpha.sum() / drawing[3].sum()) - 1) < 0.01
    assert (white[0, :3] - black[0, :3] - (255 - alpha)).abs().max() < 0.01
    # two samples a side, each between its neighbours: softer than the drawing by a quarter of a pixel
    assert (alpha[20:84, 10:74] - drawing[3]).abs().mean() < 4
    assert (black[0, :3, 20:84, 10:74] - drawing[:3]).abs().mean() < 4


def test_drawings_may_lie_partly_or_wholly_outside(bank):
    shown = [float(over(bank, 0.0, x, y)[0][0, 3].sum()) for x, y in ((48, 60), (0, 60), (-40, -40), (400, 9))]
    assert shown[0] > shown[1] > 0 and shown[2:] == [0, 0]


def test_a_shadow_is_where_it_should_be():
    dark = scenes.shade(64, torch.tensor([[20.5, 50.5, 8.0, 3.0, 0.5], [20.0, 50.0, 8.0, 3.0, 0.0]]))
    assert dark.shape == (2, 1, 64, 64) and dark[0].argmax() == 50 * 64 + 20 and abs(float(dark[0].max()) - 0.5) < 1e-5
    assert dark[1].max() == 0


def test_softening_keeps_the_sum_and_needs_no_sigma():
    x = torch.zeros(2, 1, 9, 9)
    x[:, :, 4, 4] = 1
    y = scenes.soften(x, torch.tensor([0.0, 1.0]))
    assert torch.allclose(y[0], x[0], atol=1e-6) and abs(float(y[1].sum()) - 1) < 1e-5 and y[1].max() < 0.3


def test_only_what_is_known_is_taught(maker):
    """Boxes without masks: unknown inside, background outside; masks: all known but crowds."""
    masks, cache = maker.store.mask, maker.store.cache
    for i, picture in enumerate(cache.pictures):
        w, h = cache.size[i]
        inside = torch.zeros(128, 128, dtype=torch.bool)
        for x0, y0, x1, y1 in cache.boxes[i].round().astype(int):
            inside[y0:y1, x0:x1] = True
        if picture.mask is None:
            assert len(cache.boxes[i]) and (masks[i][inside] == 255).all()
            assert (masks[i] == 0).any() and not ((masks[i] > 0) & (masks[i] < 255)).any()
        else:
            truth = torch.from_numpy(numpy.array(Image.open(picture.mask)))
            assert (masks[i][:h, :w] == truth).all()
    assert maker.counts['boxes'] > 3 and maker.counts['nobody'] > 0


def test_a_cut_out_has_no_halo():
    """Red before green, with a mask two pixels too large: nothing of the green comes along."""
    rgb = numpy.zeros((80, 80, 3), numpy.uint8)
    rgb[..., 1] = 200
    rgb[22:58, 22:58] = 200, 0, 0
    person = numpy.zeros((80, 80), bool)
    person[21:59, 21:59] = True
    out = scenes.soft_cut_out(rgb, person).astype(float)
    seen = out[..., 3] > 25
    share = out[..., 1][seen] / out[..., 3][seen]
    assert share.max() < 0.25 and seen.sum() > 30 * 30
    edge = (out[..., 3] > 10) & (out[..., 3] < 245)
    assert edge.sum() > 100  # soft, not a staircase
    assert (out[..., :3] <= out[..., 3:] + 1).all()


def test_light_and_faults_keep_the_range(maker):
    x = maker.batch(12).picture
    y = scenes.spoil(x)
    assert y.shape == x.shape and 0 <= y.min() and y.max() < 255.01 and (y - x).abs().mean() > 5


def test_motion_blurs_some_and_keeps_the_mean():
    torch.manual_seed(2)
    x = torch.rand(10, 3, 32, 32) * 255
    assert augment.motion_blur(x, 0.0) is x
    y = augment.motion_blur(x, 0.5)
    moved = (y - x).abs().mean((1, 2, 3)) > 1
    assert 0 < moved.sum() < 10 and (y.mean((1, 2, 3)) - x.mean((1, 2, 3))).abs().max() < 4


def names_of(folders, split):
    coco = json.loads((folders / 'detect/annotations.json').read_text())
    stems = {im['file_name'].split('/')[-1].split('.')[0] for im in coco['images'] if im['split'] == split}
    return {f'{s}.jpg' for s in stems} | {f'{s}.png' for s in stems}


def test_no_held_out_file_is_read(folders, tmp_path, bank, monkeypatch):
    """Neither packed nor trained on, nor its people pasted: the list of all files that are opened."""
    opened = []
    plain, plain_io = Image.open, io.open

    def image(path, *args, **more):
        opened.append(str(path))
        return plain(path, *args, **more)

    def file(path, *args, **more):
        opened.append(str(path))
        return plain_io(path, *args, **more)
    monkeypatch.setattr(Image, 'open', image)
    monkeypatch.setattr(io, 'open', file)
    monkeypatch.setattr(builtins, 'open', file)
    make(folders, tmp_path / 'cache', bank).batch(20)
    monkeypatch.setattr('sys.argv', ['pack', str(folders), str(tmp_path / 'small'), '--split', 'train', '--side', '64',
                                     '--tar', str(tmp_path / 'small.tar')])
    pack.main()
    monkeypatch.undo()
    held, trained = names_of(folders, 'val'), names_of(folders, 'train')
    names = {path.split('/')[-1] for path in opened}
    assert not names & held
    assert len(names & trained) >= len(trained) // 2 + 8  # it was not blind
    with tarfile.open(tmp_path / 'small.tar') as tar:
        packed = {name.split('/')[-1] for name in tar.getnames()}
    assert not packed & held and packed & trained and 'annotations.json' in packed
    pictures = segment.read_pictures(tmp_path / 'small', 'train')
    assert len(pictures) == len([n for n in trained if n.endswith('.jpg')])
    assert all(p.mask is not None for p in pictures)


def test_held_out_pictures_are_refused(folders, tmp_path, bank):
    cache = data.Cache(segment.read_pictures(folders, 'val'), 128, tmp_path, with_masks=True)
    with pytest.raises(ValueError, match='only training pictures'):
        scenes.Scenes(cache, 'cpu', SIDE)


def test_a_sheet_shows_pictures_beside_their_mattes(folders, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr('sys.argv', ['scenes', '--data', str(folders), '--cache', str(tmp_path), '--bodies', '0', '--side',
                                     '64', '--canvas', '128', '--device', 'cpu', '--time', str(tmp_path / 'a.png')])
    scenes.main()
    said = capsys.readouterr().out
    assert '24 pictures' in said and 'pictures/s at 64x64' in said
    assert Image.open(tmp_path / 'a.png').size == (8 * 192, 6 * 192)
