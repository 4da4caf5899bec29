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

from saccade_train import bodies, data, pack, segment, studio

SIDE = 96


@pytest.fixture(scope='module')
def bank(tmp_path_factory):
    return bodies.Bank(tmp_path_factory.mktemp('bank'), 12, 1, size=64)


def make(folders, tmp_path, bank, seed=1, **more):
    cache = data.Cache(segment.read_pictures(folders, 'train'), 128, tmp_path, with_masks=True)
    return studio.Studio(cache, bank, SIDE, seed, **more)


def test_a_picture_depends_on_seed_and_number_alone(folders, tmp_path, bank):
    made, again = make(folders, tmp_path, bank), make(folders, tmp_path, bank)
    later = make(folders, tmp_path, bank, first=5)
    pictures = [made[i] for i in range(8)]
    for i in (6, 2, 7):
        assert torch.equal(again[i], pictures[i])
    assert torch.equal(later[1], pictures[6])
    assert not torch.equal(make(folders, tmp_path, bank, 2)[2], pictures[2])
    assert pictures[0].shape == (SIDE, SIDE, 5) and pictures[0].dtype == torch.uint8


def test_loaders_make_the_same_in_other_processes(folders, tmp_path, bank):
    made = make(folders, tmp_path, bank, count=6)
    batches = list(torch.utils.data.DataLoader(made, 3, num_workers=2))
    assert len(batches) == 2 and torch.equal(torch.cat(batches), torch.stack([made[i] for i in range(6)]))


def test_mattes_fit_the_pictures(folders, tmp_path, bank, monkeypatch):
    """With people white and all else black a picture is its own matte."""
    monkeypatch.setattr(studio, 'FILL', 0)
    monkeypatch.setattr(studio.Studio, 'lit', lambda self, canvas, drawing, rng: drawing)
    made = make(folders, tmp_path, bank, rendered=0.6, pasted=0.8)
    people = (made.cache.mask > 0) & (made.cache.mask < 255)
    made.cache.rgb = numpy.repeat((people * 255).astype(numpy.uint8)[..., None], 3, 3)
    white = lambda drawing: numpy.repeat(drawing[..., 3:], 4, -1)
    made.cut_outs.rgba = [white(d) for d in made.cut_outs.rgba]
    made.bank = type('Bank', (), dict(rgba=white(numpy.array(bank.rgba)), kind=bank.kind, box=bank.box, light=bank.light))
    pictures = torch.stack([made[i] for i in range(60)]).int()
    apart = (pictures[..., 0] - pictures[..., 3]).abs().float()
    # a mask that was enlarged is made sharp again, the photograph is not; crowds are unknown
    apart[pictures[..., 4] == 0] = 0
    assert apart.mean() < 3 and (apart > 128).float().mean() < 0.004
    assert 0.03 < (pictures[..., 3] > 128).float().mean() < 0.6


def test_rendered_people_are_laid_with_their_own_alpha(bank):
    """Over black and over white: the difference is what alpha lets through, to one step of a byte."""
    k = int(numpy.flatnonzero(bank.kind == 0)[0])
    drawing, canvases = numpy.array(bank.rgba[k]), []
    for value in (0, 255):
        canvas = studio.Canvas(SIDE)
        canvas.rgb[:] = value
        canvas.lay(drawing, 10, 20)
        canvases.append(canvas)
    black, white = canvases
    assert (black.matte[20:84, 10:74] == drawing[..., 3]).all() and black.matte.sum() == drawing[..., 3].sum()
    through = white.rgb.astype(int) - black.rgb
    assert numpy.abs(through - (255 - black.matte.astype(int))[..., None]).max() <= 1
    assert (black.rgb[20:84, 10:74] == drawing[..., :3]).all()


def test_drawings_may_lie_partly_or_wholly_outside(bank):
    canvas = studio.Canvas(32)
    for x, y in ((-40, -40), (20, 20), (400, 0), (-400, 9)):
        canvas.lay(numpy.full((64, 64, 4), 255, numpy.uint8), x, y)
    assert (canvas.matte[:24, :24] == 255).all() and (canvas.matte[20:, 20:] == 255).all()
    assert canvas.matte[28, 10] == 0


def test_a_cut_out_has_no_halo():
    """Red before green, with a mask two pixels too large: nothing of the green comes along."""
    rgb = numpy.zeros((80, 80, 3), numpy.uint8)
    rgb[..., 1] = 200
    rgb[22:58, 22:58] = 200, 0, 0
    person = numpy.zeros((80, 80), bool)
    person[21:59, 21:59] = True
    out = studio.soft_cut_out(rgb, person).astype(float)
    seen = out[..., 3] > 25
    share = out[..., 1][seen] / out[..., 3][seen]
    assert share.max() < 0.25 and seen.sum() > 30 * 30
    edge = (out[..., 3] > 10) & (out[..., 3] < 245)
    assert edge.sum() > 100  # soft, not a staircase
    assert (out[..., :3] <= out[..., 3:] + 1).all()


def test_light_and_faults_keep_the_range(folders, tmp_path, bank):
    made = make(folders, tmp_path, bank)
    torch.manual_seed(2)
    x, matte, known = studio.split(torch.stack([made[i] for i in range(12)]), 'cpu')
    y = studio.spoil(x)
    assert y.shape == x.shape and 0 <= y.min() and y.max() <= 255 and (y - x).abs().mean() > 5
    assert 0 <= matte.min() and matte.max() <= 1 and set(known.unique().tolist()) <= {0.0, 1.0}


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
    made = make(folders, tmp_path / 'cache', bank)
    for i in range(20):
        made[i]
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
        studio.Studio(cache, bank, SIDE, 1)


def test_a_sheet_shows_pictures_beside_their_mattes(folders, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr('sys.argv', ['studio', '--data', str(folders), '--cache', str(tmp_path), '--bodies', '0', '--side',
                                     '64', str(tmp_path / 'a.png')])
    studio.main()
    assert '24 pictures' in capsys.readouterr().out
    assert Image.open(tmp_path / 'a.png').size == (8 * 192, 6 * 192)
