# SPDX-License-Identifier: Apache-2.0
"""The training loop: slices, accumulation, the averaged weights, the batch that fits."""
import argparse
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from helpers import ONE_THREAD, TRAIN
from saccade_train import training


class Line(nn.Module):
    """The least network there is."""

    def __init__(self):
        super().__init__()
        self.config = dict(kind='line')
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x)


def draw_loss(model, n):
    """On pictures drawn at random, as augmentation draws them."""
    x = torch.rand(n, 4)
    loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
    return loss, dict(square=loss)


def arguments(out, *more):
    parser = argparse.ArgumentParser()
    training.add_arguments(parser, lr=1e-2, batch=8, steps=40)
    return parser.parse_args(['--out', str(out), '--device', 'cpu', '--warmup', '4', '--log-every', '1', '--ema', '0.9',
                              *map(str, more)])


def make(out, *more, loss=draw_loss):
    args = arguments(out, *more)
    training.seed_all(args.seed)
    return training.Trainer(Line(), loss, args, out)


def notes(out):
    return [json.loads(line) for line in (out / 'log.jsonl').read_text().splitlines()]


def weights(trainer):
    return torch.cat([p.detach().reshape(-1) for p in trainer.model.parameters()])


def test_a_run_in_slices_equals_one_run(tmp_path):
    """Step for step the same loss and learning rate, and in the end the same bits."""
    whole = make(tmp_path / 'whole')
    assert whole.train() is True
    slices = 0
    while True:
        part = make(tmp_path / 'parts', '--resume', '--minutes', 1e-6 if slices < 3 else 0)
        slices += 1
        if part.train():
            break
        assert part.step == slices
    assert slices == 4 and part.step == whole.step == 40
    one, several = notes(tmp_path / 'whole'), notes(tmp_path / 'parts')
    assert [n['step'] for n in one] == [n['step'] for n in several] == list(range(1, 41))
    assert [n['lr'] for n in one] == [n['lr'] for n in several]
    assert [n['loss'] for n in one] == [n['loss'] for n in several]
    assert torch.equal(weights(whole), weights(part))
    for a, b in zip(whole.average.model.parameters(), part.average.model.parameters()):
        assert torch.equal(a, b)
    assert len({n['loss'] for n in one}) == 40  # each step draws pictures of its own


def test_the_seed_decides(tmp_path):
    first, again, other = (make(tmp_path / name, '--seed', seed) for name, seed in (('a', 1), ('b', 1), ('c', 2)))
    for trainer in (first, again, other):
        trainer.train()
    assert torch.equal(weights(first), weights(again)) and not torch.equal(weights(first), weights(other))


@pytest.mark.parametrize('precision', ['fp32', 'bf16', 'fp16'])
def test_on_the_cpu_every_precision_is_fp32(tmp_path, precision):
    trainer, plain = make(tmp_path / 'a', '--precision', precision), make(tmp_path / 'b')
    for one in (trainer, plain):
        one.train()
    assert torch.equal(weights(trainer), weights(plain))


def test_the_learning_rate_rises_and_falls():
    rates = [training.learning_rate(step, step / 100, 1.0, 10) for step in range(101)]
    assert rates[0] == pytest.approx(0.1) and max(rates) == pytest.approx(rates[9], rel=0.02)
    assert rates[:10] == sorted(rates[:10]) and rates[12:] == sorted(rates[12:], reverse=True)
    assert rates[-1] == pytest.approx(0.01)


def test_a_schedule_of_one_slice_needs_its_length(tmp_path):
    with pytest.raises(SystemExit, match='--minutes'):
        make(tmp_path, '--steps', 0)
    trainer = make(tmp_path, '--steps', 0, '--minutes', 0.005)
    assert trainer.train() is True and trainer.step > training.LOOK_STEPS
    rates = [n['lr'] for n in notes(tmp_path)]
    assert rates[-1] < 0.5 * max(rates)


def test_a_schedule_in_minutes_goes_on_after_a_break(tmp_path):
    """What was spent counts, so the learning rate does not rise again; a slice that was finished begins anew."""
    first = make(tmp_path, '--steps', 0, '--minutes', 0.05)
    first.spent = 1.5  # as if cut off half way
    first.save()
    second = make(tmp_path, '--steps', 0, '--minutes', 0.05, '--resume')
    second.train()
    rates = [note['lr'] for note in notes(tmp_path)]
    assert second.done >= 1 and rates[3] < 0.6e-2 and second.spent == 1.5
    torch.save(torch.load(tmp_path / 'checkpoint.pt') | dict(spent=3.0), tmp_path / 'checkpoint.pt')
    assert make(tmp_path, '--steps', 0, '--minutes', 0.05, '--resume').spent == 0


def test_a_pause_ends_a_slice_before_the_schedule(tmp_path):
    trainer = make(tmp_path, '--steps', 0, '--minutes', 5, '--pause', 0.005)
    assert trainer.train() is False and 0 < trainer.done < 0.1
    assert 0.2 < torch.load(tmp_path / 'checkpoint.pt')['spent'] < 20


def test_progress_as_json_lines(tmp_path, capsys):
    make(tmp_path, '--steps', 3, '--json').train()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith('{')]
    assert [line['step'] for line in lines] == [1, 2, 3] and lines == notes(tmp_path)


def test_accumulated_batches_are_one_batch(tmp_path):
    torch.manual_seed(3)
    x = torch.rand(16, 4)

    def loss_on(pieces):
        turn = iter(x.split(pieces) for _ in range(99))
        queue = []

        def loss(model, n):
            if not queue:
                queue.extend(next(turn))
            part = queue.pop(0)
            assert len(part) == n
            value = ((model(part) - part.sum(1, keepdim=True)) ** 2).mean()
            return value, {}
        return loss

    one = make(tmp_path / 'one', '--batch', 16, '--steps', 5, loss=loss_on(16))
    four = make(tmp_path / 'four', '--batch', 4, '--accumulate', 4, '--steps', 5, loss=loss_on(4))
    for trainer in (one, four):
        trainer.train()
        assert trainer.step == 5
    assert torch.allclose(weights(one), weights(four), atol=1e-6)


def test_the_average_follows_slowly():
    model = Line()
    average = training.Average(model, decay=0.9)
    start = [p.clone() for p in average.model.parameters()]
    with torch.no_grad():
        for p in model.parameters():
            p += 1
    average.steps = 10 ** 6  # warmed up
    average.update(model)
    for before, now in zip(start, average.model.parameters()):
        assert torch.allclose(now, before + 0.1, atol=1e-6) and not now.requires_grad
    fresh = training.Average(model, decay=0.9)
    with torch.no_grad():
        for p in model.parameters():
            p += 1
    fresh.update(model)
    for p, now in zip(model.parameters(), fresh.model.parameters()):
        assert torch.allclose(now, p, atol=0.01)  # early steps do not linger


def test_biases_and_norms_do_not_decay():
    decays, plain = training.parameter_groups(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), 0.05)
    assert decays['weight_decay'] == 0.05 and [p.dim() for p in decays['params']] == [4]
    assert plain['weight_decay'] == 0 and [p.dim() for p in plain['params']] == [1, 1, 1]


def memory_of(most, tried):
    """try_step of a device that holds so many pictures."""
    def step(n):
        tried.append(n)
        if n > most:
            raise RuntimeError('CUDA out of memory. Tried to allocate 20.00 MiB')
    return step


@pytest.mark.parametrize('most', [1, 2, 3, 17, 100, 1000])
def test_the_largest_batch_that_fits(most):
    tried = []
    found = training.largest_batch(memory_of(most, tried))
    assert most * 15 / 16 - 1 < found <= most
    assert found in tried  # it was seen to fit
    assert len(tried) < 25


def test_the_largest_batch_stays_under_its_limit():
    tried = []
    assert training.largest_batch(memory_of(10 ** 9, tried), high=100) == 100
    assert max(tried) == 100


def test_no_batch_fits():
    with pytest.raises(SystemExit, match='memory'):
        training.largest_batch(memory_of(0, []))


def test_other_faults_are_no_lack_of_memory():
    def step(n):
        raise RuntimeError('shapes differ')
    with pytest.raises(RuntimeError, match='shapes differ'):
        training.largest_batch(step)


def test_batch_0_finds_the_batch(tmp_path):
    def loss(model, n):
        if n > 12:
            raise RuntimeError('out of memory')
        return draw_loss(model, n)
    trainer = make(tmp_path, '--batch', 0, '--steps', 3, loss=loss)
    trainer.train()
    assert trainer.args.batch in (11, 12) and trainer.step == 3


def test_a_loss_that_is_no_number_ends_the_run(tmp_path):
    trainer = make(tmp_path, loss=lambda model, n: (model(torch.ones(n, 4)).mean() * float('nan'), {}))
    with pytest.raises(SystemExit, match='lower --lr'):
        trainer.train()


def test_where_no_compiler_is_it_goes_on_without(tmp_path):
    trainer = make(tmp_path, '--steps', 3)

    def broken(x):
        raise RuntimeError('no compiler on this machine')
    trainer.run = broken
    assert trainer.train()
    said = notes(tmp_path)
    assert 'no compiler' in said[0]['not_compiled'] and len([n for n in said if 'loss' in n]) == 3
    # what worked once and then fails is no matter of compilers
    trainer.run, trainer.proven = broken, True
    with pytest.raises(RuntimeError):
        trainer.once(8)


def test_fine_tuning_starts_from_the_averaged_weights(tmp_path):
    first = make(tmp_path / 'first')
    first.train()
    for name in ('checkpoint.pt', 'average.pt'):  # the second is in half precision
        tuned = make(tmp_path / name, '--init', tmp_path / 'first' / name)
        assert tuned.step == 0
        for a, b in zip(first.average.model.parameters(), tuned.model.parameters()):
            assert torch.allclose(a, b, atol=1e-3) and b.dtype is torch.float32


def test_a_checkpoint_is_whole_or_the_one_before(tmp_path, monkeypatch):
    trainer = make(tmp_path)
    trainer.train()
    before = (tmp_path / 'checkpoint.pt').read_bytes()

    def cut_off(state, path):
        Path(path).write_bytes(b'half')
        raise KeyboardInterrupt
    monkeypatch.setattr(torch, 'save', cut_off)
    with pytest.raises(KeyboardInterrupt):
        trainer.save()
    assert (tmp_path / 'checkpoint.pt').read_bytes() == before


def test_a_checkpoint_is_kept_on_the_way(tmp_path, monkeypatch):
    """What ends a training from outside costs the time since the last one, not all of it."""
    monkeypatch.setattr(training, 'SAVE_S', 0)

    def loss(model, n):
        if trainer.step == 7:
            raise KeyboardInterrupt
        return draw_loss(model, n)
    trainer = make(tmp_path, loss=loss)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert make(tmp_path, '--resume').step == 7


def test_other_networks_are_not_resumed(tmp_path):
    trainer = make(tmp_path, '--steps', 1)
    trainer.train()
    assert make(tmp_path, '--resume').step == 1
    other = Line()
    other.config = dict(kind='curve')
    with pytest.raises(SystemExit, match='checkpoint.pt: holds other networks'):
        training.Trainer(other, draw_loss, arguments(tmp_path, '--resume'), tmp_path)


def test_evaluation_is_noted(tmp_path):
    trainer = make(tmp_path, '--steps', 20, '--eval-every', 10)
    trainer.train(lambda model: dict(score=1.5))
    assert [n['step'] for n in notes(tmp_path) if n.get('eval_score') == 1.5] == [10, 20]


PROCESSES = '''
import sys, torch
sys.path[:0] = [{tests!r}, {train!r}]
from test_training import Line, arguments
from saccade_train import training
args = arguments({out!r}, '--steps', 12, '--batch', 4)
rank = training.join_processes(args)
training.seed_all(args.seed)

def loss(model, n):
    x = torch.full((n, 4), 1.0 + rank)
    value = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
    return value, {{}}

trainer = training.Trainer(Line(), loss, args, args.out)
trainer.train()
flat = torch.cat([p.detach().reshape(-1) for p in trainer.model.parameters()])
both = [torch.zeros_like(flat) for _ in range(2)]
torch.distributed.all_gather(both, flat)
assert torch.equal(*both), "the processes' weights differ"
for p in trainer.model.parameters():
    p.grad = torch.full_like(p, float(rank))
trainer.average_gradients()
assert all((p.grad == 0.5).all() for p in trainer.model.parameters()), "no mean"
if rank == 0:
    torch.save(flat, {out!r} + '/weights.pt')
'''


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def test_two_processes_learn_from_both_their_batches(tmp_path):
    """Started by hand, as torchrun would: Debian's is broken."""
    script = tmp_path / 'script.py'
    script.write_text(PROCESSES.format(tests=str(Path(__file__).parent), train=str(TRAIN), out=str(tmp_path)))
    place = dict(WORLD_SIZE='2', MASTER_ADDR='127.0.0.1', MASTER_PORT=str(free_port()))
    runs = [subprocess.Popen([sys.executable, str(script)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             env=os.environ | ONE_THREAD | place | dict(RANK=str(rank), LOCAL_RANK=str(rank)))
            for rank in range(2)]
    try:
        for run in runs:
            _, errors = run.communicate(timeout=900)
            assert run.returncode == 0, errors
    finally:
        for run in runs:
            run.kill()
    assert [n['step'] for n in notes(tmp_path)] == list(range(1, 13))  # one process writes

    def loss(model, n):
        x = torch.cat([torch.full((n, 4), 1.0), torch.full((n, 4), 2.0)])
        value = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        return value, {}
    alone = make(tmp_path / 'alone', '--steps', 12, '--batch', 4, loss=loss)
    alone.train()
    assert torch.allclose(weights(alone), torch.load(tmp_path / 'weights.pt'), atol=1e-5)
