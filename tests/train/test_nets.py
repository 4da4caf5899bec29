# SPDX-License-Identifier: Apache-2.0
"""The networks: fused as trained, the exported form as the trained one, checkpointing without a trace."""
import copy

import pytest
import torch
from torch import nn

from saccade_train import nets, training

WIDTHS, DEPTHS = (8, 8, 16, 16, 16), (1, 1, 2, 1)
MAKERS = {
    'det': lambda: nets.PersonDet(WIDTHS, DEPTHS, neck=16, head=16),
    'reid': lambda: nets.PersonReid(WIDTHS, DEPTHS, dim=32),
    'seg': lambda: nets.PersonSeg(WIDTHS, DEPTHS, neck=(8, 8, 16, 16), refine=(1, 1, 1, 1)),
}
SHAPES = {'det': (3, 3, 64, 96), 'reid': (3, 3, 128, 64), 'seg': (3, 3, 64, 96)}


def lived_in(model, seed=1):
    """Normalisation as after a training: means, variances and gains that are not 0 and 1."""
    torch.manual_seed(seed)
    for m in model.modules():
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)):
            m.running_mean.normal_(0, 0.3)
            m.running_var.uniform_(0.4, 2)
            if m.affine:
                nn.init.uniform_(m.weight, 0.5, 1.5)
                nn.init.normal_(m.bias, 0, 0.3)
    return model.eval()


@pytest.mark.parametrize('name', MAKERS)
def test_fused_branches_give_the_same(name):
    model = lived_in(MAKERS[name]())
    x = torch.rand(SHAPES[name])
    with torch.no_grad():
        before = model(x)
        after = nets.fuse(copy.deepcopy(model))(x)
    assert before.std() > 1e-2
    assert (after - before).abs().max() < 1e-4 * before.abs().max()
    assert nets.count_parameters(nets.fuse(copy.deepcopy(model))) < nets.count_parameters(model)


@pytest.mark.parametrize('stride', [1, 2])
@pytest.mark.parametrize('c_in, c_out, k', [(4, 4, 3), (4, 6, 3), (4, 6, 1)])
def test_a_fused_convolution_is_its_branches(c_in, c_out, k, stride):
    conv = lived_in(nets.Conv(c_in, c_out, k, stride))
    assert (conv.skip_bn is not None) == (k == 3 and c_in == c_out and stride == 1)
    x = torch.randn(2, c_in, 9, 11)
    with torch.no_grad():
        before = conv(x)
        conv.fuse()
        assert torch.allclose(conv(x), before, atol=1e-5)
    assert sorted(name for name, _ in conv.named_parameters()) == ['fused.bias', 'fused.weight']


def test_cells_are_in_the_order_of_the_answers():
    height, width = 64, 96
    centres, sizes = nets.cell_grid(height, width)
    assert MAKERS['det']()(torch.zeros(1, 3, height, width)).shape == (1, len(centres), 5)
    # a map of each stride that holds its own coordinates, flattened as the network flattens
    maps = [torch.stack(torch.meshgrid(torch.arange(height // s), torch.arange(width // s), indexing='ij'))
            for s in nets.PersonDet.strides]
    rows = torch.cat([m.flatten(1) for m in maps], 1).float()
    assert torch.equal(centres.t(), (rows.flip(0) + 0.5) * sizes.t())


def test_boxes_are_never_inside_out():
    centres, sizes = nets.cell_grid(64, 64)
    raw = torch.randn(2, len(centres), 4) * 50
    boxes = nets.decode_boxes(raw, centres, sizes)
    assert (boxes[..., 2:] >= boxes[..., :2]).all() and torch.isfinite(boxes).all()
    # distances of 1, 2, 3 and 4 cells to left, top, right and bottom
    raw = torch.log(torch.expm1(torch.tensor([1.0, 2, 3, 4]))).expand(1, len(centres), 4)
    box = nets.decode_boxes(raw, centres, sizes)[0, 0]
    assert box.tolist() == pytest.approx([4 - 8, 4 - 16, 4 + 24, 4 + 32], abs=1e-3)


def test_the_exported_detector_is_the_trained_one():
    model = lived_in(MAKERS['det']())
    x = torch.rand(2, 3, 64, 96)
    centres, sizes = nets.cell_grid(64, 96)
    with torch.no_grad():
        raw, out = model(x), nets.ExportDet(model, 64, 96).eval()(x)
        boxes = nets.decode_boxes(raw[..., :4], centres, sizes)
    assert out.shape == (2, len(centres), 5)
    centre, half = out[..., :2], out[..., 2:4] / 2
    assert torch.allclose(torch.cat([centre - half, centre + half], -1), boxes, atol=1e-3)
    assert torch.allclose(out[..., 4], torch.sigmoid(raw[..., 4]), atol=1e-6)


def test_siblings_answer_by_name_and_guess_when_asked():
    configs = {'a': dict(widths=WIDTHS, depths=DEPTHS, neck=16, head=16), 'b': dict(neck=32)}
    x = torch.rand(2, 3, 64, 64)
    plain = nets.Siblings(configs)(x)
    assert list(plain) == ['a', 'b'] and all(raw.shape == (2, 84, 5) and none is None for raw, none in plain.values())
    for raw, guesses in nets.Siblings(configs, mimic=7)(x).values():
        assert [g.shape[1:] for g in guesses] == [(7, 8, 8), (7, 4, 4), (7, 2, 2)]


def gradients(model, x):
    model.zero_grad()
    (model(x) ** 2).mean().backward()
    return {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize('name', MAKERS)
def test_checkpointing_changes_no_gradient(name):
    torch.manual_seed(2)
    model, x = MAKERS[name]().train(), torch.rand(SHAPES[name])
    plain = gradients(model, x)
    calls = []
    for m in model.modules():
        if isinstance(m, nets.Stage):
            m.body = lambda x, own=m.body: calls.append(1) or own(x)
    training.save_memory(model)
    saved = gradients(model, x)
    stages = sum(isinstance(m, nets.Stage) for m in model.modules())
    assert stages > 0 and len(calls) == 2 * stages  # each once more in the backward pass
    assert plain.keys() == saved.keys()
    for key, value in plain.items():
        assert torch.allclose(saved[key], value, rtol=1e-4, atol=1e-6), key
    training.save_memory(model, False)
    calls.clear()
    gradients(model, x)
    assert len(calls) == stages


def test_work_is_counted():
    conv = nets.Conv(3, 8, 3, 2)
    assert nets.count_flops(nets.fuse(conv), (1, 3, 16, 16)) == 2 * 8 * 3 * 9 * 8 * 8
    assert nets.count_parameters(conv) == 8 * 3 * 9 + 8
