# SPDX-License-Identifier: Apache-2.0
"""What the training does on a GPU alone: mixed precision, compilation, the batch that fits its memory."""
import numpy
import pytest
import torch

from saccade_train import data, nets, training
from test_training import arguments, notes

if not torch.cuda.is_available():
    pytest.skip('PyTorch finds no GPU', allow_module_level=True)


def small_detector():
    return nets.Siblings(dict(tiny=dict(widths=(8, 8, 16, 16, 16), depths=(1, 1, 1, 1), neck=16, head=16)))


def fit(model, n):
    """A task that a detector's answers can be bent to."""
    x = torch.rand(n, 3, 64, 64, device='cuda').contiguous(memory_format=training.memory_format('cuda'))
    out = model(x)['tiny'][0].float()
    loss = ((out - 1) ** 2).mean()
    return loss, dict(square=loss)


def make(out, *more, loss=fit):
    args = arguments(out, '--device', 'cuda', '--steps', 30, *more)
    training.seed_all(args.seed)
    return training.Trainer(small_detector(), loss, args, out)


@pytest.mark.parametrize('precision', ['fp32', 'bf16', 'fp16'])
def test_the_loss_falls_in_each_precision(tmp_path, precision):
    seen = []

    def loss(model, n):
        value = fit(model, n)
        seen.append(torch.is_autocast_enabled() and torch.get_autocast_gpu_dtype())
        return value
    trainer = make(tmp_path, '--precision', precision, loss=loss)
    trainer.train()
    values = [note['loss'] for note in notes(tmp_path)]
    assert numpy.mean(values[-5:]) < 0.5 * numpy.mean(values[:5])
    assert set(seen) == {dict(fp32=False, bf16=torch.bfloat16, fp16=torch.float16)[precision]}
    assert trainer.scaler.is_enabled() == (precision == 'fp16')
    assert all(p.dtype is torch.float32 for p in trainer.model.parameters())


def test_a_gradient_that_overflows_is_left_out(tmp_path):
    trainer = make(tmp_path, '--precision', 'fp16')
    trainer.model.train()
    trainer.advance()
    scale = trainer.scaler.get_scale()
    before = [p.detach().clone() for p in trainer.model.parameters()]
    plain, trainer.loss_of = trainer.loss_of, lambda model, n: (fit(model, n)[0] * float('inf'), {})
    trainer.advance()
    assert trainer.scaler.get_scale() < scale
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters()))
    trainer.loss_of = plain
    trainer.advance()
    assert any(not torch.equal(a, b) for a, b in zip(before, trainer.model.parameters()))


def test_a_resumed_run_keeps_the_scale(tmp_path):
    first = make(tmp_path, '--precision', 'fp16')
    first.train()
    again = make(tmp_path, '--precision', 'fp16', '--resume')
    assert again.step == 30 and again.scaler.state_dict() == first.scaler.state_dict()


def test_a_compiled_network_learns_alike(tmp_path):
    if not hasattr(torch, 'compile'):
        pytest.skip('this PyTorch has no torch.compile')
    plain, compiled = make(tmp_path / 'a', '--precision', 'fp32'), make(tmp_path / 'b', '--precision', 'fp32', '--compile')
    assert compiled.run is not compiled.model
    for trainer in (plain, compiled):
        trainer.train()
    a, b = ([n['loss'] for n in notes(tmp_path / name)] for name in 'ab')
    assert a[:5] == pytest.approx(b[:5], rel=0.02) and b[-1] < 0.5 * b[0]


def test_the_batch_fits_the_memory(tmp_path):
    limit, each = 2 << 30, 32 << 20
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(limit / total)
    try:
        def loss(model, n):
            hold = torch.ones(n, each // 4, device='cuda')
            return fit(model, n)[0] + hold.sum() * 0, {}
        trainer = make(tmp_path, '--batch', 0, loss=loss)
        trainer.find_batch()
        assert 0.5 * limit < trainer.args.batch * each < limit
        trainer.advance()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()


def test_checkpointing_saves_memory(tmp_path):
    peaks = []
    for name, more in (('a', ()), ('b', ('--checkpointing',))):
        trainer = make(tmp_path / name, '--batch', 64, *more)
        trainer.model.train()
        trainer.advance()
        torch.cuda.reset_peak_memory_stats()
        trainer.advance()
        peaks.append(torch.cuda.max_memory_allocated())
    assert peaks[1] < 0.9 * peaks[0]


def test_pictures_on_the_gpu_are_those_of_the_cache(folders, tmp_path):
    pictures = data.read_coco(folders / 'detect')
    cache = data.Cache(pictures, 64, tmp_path)
    here, through = data.Store(cache, 'cuda'), data.Store(cache, 'cuda', share=0)
    assert here.resident is not None and through.resident is None
    index = torch.tensor([5, 2, 9, 2, 0], device='cuda')
    assert torch.equal(here.fetch(index), through.fetch(index))
    assert torch.equal(here.fetch(index).cpu(), data.Store(cache, 'cpu').fetch(index.cpu()))
