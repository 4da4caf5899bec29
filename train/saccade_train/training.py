# SPDX-License-Identifier: Apache-2.0
"""The training loop that all three networks share.

It works in slices: a run stops after `minutes` and the next one goes on from the checkpoint, with the
same schedule, optimiser and averaged weights. With `--steps 0` the schedule is stretched over one slice's
minutes instead, and a run that was cut off goes on within them. Started by torchrun it uses all GPUs of
the host: each makes batches of its own, the gradients are averaged.
"""
import contextlib
import copy
import json
import math
import os
import random
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

LOOK_STEPS = 10  # how often the clock is read: all processes must agree on what it says
SAVE_S = 60  # an interrupted training loses this much at most


def join_processes(args):
    """Under torchrun: one process a GPU (or a CPU process each, for tests). Returns this one's rank."""
    cuda = torch.device(args.device).type == "cuda"
    if cuda and not torch.cuda.is_available():
        raise SystemExit(f"--device {args.device}: PyTorch finds no GPU here; have cpu")
    if "RANK" not in os.environ:
        return 0
    if cuda:
        args.device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(args.device)
    os.environ.setdefault("USE_LIBUV", "0")  # the default since PyTorch 2.4, which Debian 13's lacks
    dist.init_process_group("nccl" if cuda else "gloo")
    return dist.get_rank()


def rank():
    return dist.get_rank() if dist.is_initialized() else 0


@contextlib.contextmanager
def first_rank_first():
    """What is inside runs on the first process, then on the others: they find its files."""
    if dist.is_initialized() and rank() != 0:
        dist.barrier()
    yield
    if dist.is_initialized() and rank() == 0:
        dist.barrier()


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def memory_format(device):
    """Channels-last on the GPU. On the CPU it gains little, and PyTorch 1.13 (Debian 12) corrupts memory
    in the backward pass of pooling there."""
    return torch.channels_last if torch.device(device).type == "cuda" else torch.contiguous_format


class Average:
    """Exponential moving average of the weights; warms up, so that early steps do not linger."""

    def __init__(self, model, decay=0.9995):
        self.model, self.decay, self.steps = copy.deepcopy(model).eval(), decay, 0
        for p in self.model.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        self.steps += 1
        d = self.decay * (1 - math.exp(-self.steps / 500))
        mine, theirs = ([v.detach() for v in m.state_dict().values()] for m in (self.model, model))
        real = [v.dtype.is_floating_point for v in mine]
        pick = lambda values: [v for v, r in zip(values, real) if r]
        torch._foreach_mul_(pick(mine), d)  # a kernel or two for all of them
        torch._foreach_add_(pick(mine), pick(theirs), alpha=1 - d)
        for a, b, r in zip(mine, theirs, real):
            if not r:
                a.copy_(b)


def parameter_groups(model, weight_decay):
    """No decay for biases and normalisation. What is in a module with a number `slow` learns at that share of the
    rate."""
    share = {p: m.slow for m in model.modules() if hasattr(m, "slow") for p in m.parameters()}
    groups = {}
    for p in model.parameters():
        groups.setdefault((p.dim() <= 1, share.get(p, 1.0)), []).append(p)
    return [dict(params=params, weight_decay=0.0 if plain else weight_decay, share=part)
            for (plain, part), params in sorted(groups.items(), key=lambda g: g[0])]


def learning_rate(step, done, peak, warmup):
    """Half a cosine over the share `done` of the schedule; the first steps rise in a line."""
    cosine = peak * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))
    return cosine * min(1.0, (step + 1) / max(1, warmup))


def halved(weights):
    """Weights as they are kept for later: in half precision, without what serves training alone."""
    return {k: v.half().cpu() if v.dtype.is_floating_point else v.cpu() for k, v in weights.items()
            if not k.startswith(("mimic.", "sides."))}


def restored(weights):
    """What `halved` made, or a checkpoint's weights, as a network takes them."""
    return {k: v.float() if v.dtype.is_floating_point else v for k, v in weights.items()}


def read_weights(path):
    """The state in a checkpoint or a file of weights, in host memory."""
    try:
        state = torch.load(path, map_location="cpu")
        state["average"], state["config"]
    except OSError:
        raise
    except Exception:  # what torch.load raises depends on the bytes
        raise SystemExit(f"{path}: no weights of this package") from None
    return state


def save_memory(model, on=True):
    """Gradient checkpointing: stages compute their activations again in the backward pass."""
    for m in model.modules():
        if hasattr(m, "checkpoint"):
            m.checkpoint = on


def largest_batch(try_step, low=1, high=4096):
    """Largest batch of low..high that fits the memory, by doubling and then binary search on out-of-memory."""
    def fits(n):
        try:
            try_step(n)
            return True
        except RuntimeError as fault:
            if "out of memory" not in str(fault):
                raise
            return False
        finally:
            if torch.cuda.is_available():
                torch.cuda.empty_cache()

    if not fits(low):
        raise SystemExit(f"a batch of {low} does not fit the memory: a smaller input, --checkpointing or another "
                         "--device would do")
    good, bad = low, high + 1
    while good < high and bad > high:
        more = min(high, good * 2)
        good, bad = (more, bad) if fits(more) else (good, more)
    while bad <= high and bad - good > max(1, good // 16):
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good


class Trainer:
    def __init__(self, model, loss_of, args, out):
        """loss_of(model, batch_size) makes a batch and returns loss and a dict of its parts."""
        if not args.steps and not args.minutes:
            raise SystemExit("--steps 0 needs --minutes: how long the schedule should be")
        self.args, self.out = args, Path(out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.device = torch.device(args.device)
        self.model = model.to(self.device, memory_format=memory_format(args.device))
        self.loss_of = loss_of
        self.average = Average(self.model, args.ema)
        self.optimiser = torch.optim.AdamW(parameter_groups(self.model, args.weight_decay), lr=args.lr,
                                           betas=(0.9, 0.99))
        self.half = args.precision != "fp32" and self.device.type == "cuda"
        # PyTorch 1.13 takes no other type than bfloat16 on the CPU, even where autocast is switched off
        self.dtype = torch.float16 if self.half and args.precision == "fp16" else torch.bfloat16
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.half and self.dtype is torch.float16)
        self.step, self.done, self.over = 0, 0.0, False
        self.spent, self.start = 0.0, None  # seconds of the slices before, of the schedule in minutes
        self.log = self.out / "log.jsonl"
        if args.resume and (self.out / "checkpoint.pt").exists():
            self.load()
        elif args.init:
            self.start_from(args.init)
        if args.checkpointing:
            save_memory(self.model)
        torch.backends.cudnn.benchmark = True  # shapes stay the same: worth a look at every algorithm
        # compile only what exists for ever: the fused form and the average stay plain modules
        self.run = (torch.compile(self.model) if args.compile and hasattr(torch, "compile")
                    and self.device.type == "cuda" else self.model)
        self.proven = False  # a compiled model has made its first step

    def load(self):
        path = self.out / "checkpoint.pt"
        state = read_weights(path)
        if state["config"] != self.model.config or state.get("model", {}).keys() != self.model.state_dict().keys():
            raise SystemExit(f"{path}: holds other networks: --resume takes the sizes, and --mimic or not, of the "
                             "slice before")
        self.model.load_state_dict(state["model"])
        self.average.model.load_state_dict(state["average"])
        self.average.steps = self.step = state["step"]
        self.optimiser.load_state_dict(state["optimiser"])
        self.scaler.load_state_dict(state["scaler"])
        spent = state.get("spent", 0.0)
        self.spent = spent if spent < self.args.minutes * 60 - 1 else 0.0

    def start_from(self, path):
        """Fine-tune: weights of an earlier training, a new schedule and optimiser."""
        state = read_weights(path)
        if any(state["config"].get(k) != v for k, v in self.model.config.items()):
            raise SystemExit(f"{path}: holds other networks: {state['config']}")
        weights = restored(state["average"])
        for model in (self.model, self.average.model):
            # the file may hold more siblings, and lack what serves training alone
            own = model.state_dict()
            model.load_state_dict({k: weights.get(k, v) for k, v in own.items()})

    def save(self):
        if rank() != 0:
            return
        state = dict(model=self.model.state_dict(), average=self.average.model.state_dict(), step=self.step,
                     optimiser=self.optimiser.state_dict(), scaler=self.scaler.state_dict(),
                     config=self.model.config,
                     spent=self.spent + (time.time() - self.start if self.start else 0.0))
        part = self.out / "checkpoint.part"
        torch.save(state, part)
        part.replace(self.out / "checkpoint.pt")
        torch.save(dict(average=halved(state["average"]), config=state["config"], step=self.step), part)
        part.replace(self.out / "average.pt")

    def note(self, **values):
        if rank() != 0:
            return
        line = json.dumps(dict(step=self.step, **values))
        with self.log.open("a") as f:
            f.write(line + "\n")
        if self.args.json:
            print(line, flush=True)

    def once(self, batch):
        """A batch forth and back. Compilers need more of a machine than PyTorch does: where it lacks, go on without."""
        if self.run is self.model or self.proven:
            return self.pass_on(batch)
        try:
            result = self.pass_on(batch)
            self.proven = True
            return result
        except Exception as fault:
            self.note(not_compiled=f"{type(fault).__name__}: {str(fault)[:300]}")
            self.run = self.model
            self.optimiser.zero_grad(set_to_none=True)
        return self.pass_on(batch)

    def pass_on(self, batch):
        with torch.autocast(self.device.type, self.dtype, enabled=self.half):
            loss, parts = self.loss_of(self.run, batch)
        self.scaler.scale(loss / self.args.accumulate).backward()
        return loss.detach(), {k: v.detach() for k, v in parts.items()}

    def average_gradients(self):
        """Over the processes, as one message."""
        if not dist.is_initialized():
            return
        grads = [p.grad for p in self.model.parameters() if p.grad is not None]
        flat = torch.cat([g.reshape(-1) for g in grads])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        for g, mean in zip(grads, flat.split([g.numel() for g in grads])):
            g.copy_(mean.view_as(g))

    def look_at_clock(self, start):
        """How much of the schedule is done, and whether the slice is over: the first process says."""
        spent = time.time() - start + (0 if self.args.steps else self.spent)
        slice_s = self.args.minutes * 60
        done = self.step / self.args.steps if self.args.steps else spent / slice_s
        over = self.step >= self.args.steps if self.args.steps else False
        pause_s = self.args.pause * 60
        over = over or bool(slice_s) and spent >= slice_s or bool(pause_s) and time.time() - start >= pause_s
        if not dist.is_initialized():  # no need to wait for the device
            self.done, self.over = done, over
            return
        word = torch.tensor([done, float(over)], device=self.device)
        if dist.is_initialized():
            dist.broadcast(word, 0)
        self.done, self.over = float(word[0]), bool(word[1])

    def seed_step(self):
        """Each step has a seed of its own: a run that resumes goes on with the batches that it would have made,
        not with those of its first slice again; and each process draws its own pictures."""
        seed_all(int(np.random.SeedSequence([self.args.seed, self.step, rank()]).generate_state(1)[0]))

    def advance(self):
        self.seed_step()
        done = self.step / self.args.steps if self.args.steps else self.done
        lr = learning_rate(self.step, done, self.args.lr, self.args.warmup)
        for group in self.optimiser.param_groups:
            group["lr"] = lr * group.get("share", 1.0)
        for _ in range(self.args.accumulate):
            loss, parts = self.once(self.args.batch)
        self.average_gradients()
        self.scaler.unscale_(self.optimiser)
        nn.utils.clip_grad_norm_(self.model.parameters(), 10.0)
        self.scaler.step(self.optimiser)
        self.scaler.update()
        self.optimiser.zero_grad(set_to_none=True)
        self.average.update(self.model)
        self.step += 1
        return loss, parts, lr

    def find_batch(self):
        def try_step(n):
            self.once(n)
            self.optimiser.zero_grad(set_to_none=True)
        self.args.batch = largest_batch(try_step)
        print(f"batch: {self.args.batch} fits the memory", flush=True)

    def train(self, evaluate=None):
        """Until the last step, or until the slice's minutes are over; evaluate(model) gives metrics."""
        self.model.train()
        if self.args.batch <= 0:
            self.find_batch()
        start, first = time.time(), self.step
        saved = reported = self.start = start
        told = first
        look = LOOK_STEPS if dist.is_initialized() else 1
        pictures = self.args.batch * self.args.accumulate * (dist.get_world_size() if dist.is_initialized() else 1)
        while True:
            if (self.step - first) % look == 0 or self.step == self.args.steps:
                self.look_at_clock(start)
                if self.over:
                    break
            loss, parts, lr = self.advance()
            if self.step % self.args.log_every == 0 or self.step == self.args.steps:
                values = {k: round(float(v), 5) for k, v in parts.items()}  # waits for the device
                now = time.time()
                self.report(loss, values, lr, (self.step - told) * pictures / (now - reported))
                told, reported = self.step, now
            if evaluate and self.args.eval_every and self.step % self.args.eval_every == 0 and rank() == 0:
                self.note(**{"eval_" + k: v for k, v in evaluate(self.average.model).items()})
            if time.time() - saved >= SAVE_S:
                self.save()
                saved = time.time()
        self.save()
        finished = self.done >= 1 or not (self.args.steps or self.args.pause)
        if rank() == 0:
            print("finished" if finished else f"slice over at step {self.step}: run again with --resume", flush=True)
        return finished

    def report(self, loss, values, lr, rate):
        """rate: since the last report."""
        if rank() == 0:
            self.note(loss=round(float(loss), 5), lr=lr, pictures_per_s=round(rate), **values)
            if not self.args.json:
                print(f"step {self.step}/{self.args.steps or '?'} loss {float(loss):.4f} {values} {rate:.0f}/s",
                      flush=True)
        if not math.isfinite(float(loss)):
            raise SystemExit("the loss is not finite: lower --lr")


def add_arguments(parser, lr, batch, steps):
    parser.add_argument("--out", required=True, help="folder of checkpoint and log")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", choices=["bf16", "fp16", "fp32"], default="bf16")
    parser.add_argument("--lr", type=float, default=lr)
    parser.add_argument("--weight-decay", type=float, default=0.05)
    parser.add_argument("--batch", type=int, default=batch, help="0: the largest that fits the memory")
    parser.add_argument("--accumulate", type=int, default=1, help="batches per step of the optimiser")
    parser.add_argument("--steps", type=int, default=steps,
                        help="of the whole schedule, over all slices; 0: one schedule that fits --minutes")
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=0, help="stop after this long; 0: at the last step")
    parser.add_argument("--pause", type=float, default=0,
                        help="stop after so many minutes before the schedule is over; --resume goes on")
    parser.add_argument("--ema", type=float, default=0.9995)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--init", help="weights to start from, as train/weights holds them")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--checkpointing", action="store_true", help="less memory, a third more work")
    parser.add_argument("--json", action="store_true", help="print the log's lines, not sentences")
    parser.add_argument("--log-every", type=int, default=50)
    parser.add_argument("--eval-every", type=int, default=0, help="steps; 0: at the end alone")
