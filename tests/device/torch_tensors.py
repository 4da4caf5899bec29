#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors in saccade and saccade's in PyTorch, by DLPack: no copy, each other's streams, and either side
ends first. tests/device/test_dlpack.py runs it on the CPU; on a machine with a GPU:

    python3 torch_tensors.py cuda [LIBRARY]

LIBRARY is libsaccade.so; default: $SACCADE_LIB, else the one beside it (build/, or lib/ of scripts/gpu-pack).
Prints a line for each case; the status is 1 if one fails.
"""
import ctypes as c
import os
import pathlib
import sys
import time

import torch
from torch.utils import dlpack

F32 = 1  # enum sac_dtype


class Desc(c.Structure):
    _fields_ = [('dtype', c.c_int), ('rank', c.c_int), ('shape', c.c_int64 * 8)]


class Pool(c.Structure):
    _fields_ = [(name, c.c_uint64) for name in ('allocations', 'reuses', 'returns', 'leaks', 'fragmentation', 'live',
                                                'idle', 'peak', 'requests_warm', 'allocations_warm')]
    _fields_ += [('reserved', c.c_uint64 * 8)]


class Ledger(c.Structure):
    _fields_ = [('reason', c.c_uint64 * 64), ('crossed', c.c_uint64), ('reserved', c.c_uint64 * 4)]


def find_library():
    here = pathlib.Path(__file__).resolve()
    places = [os.environ.get('SACCADE_LIB'), here.parents[2] / 'build/libsaccade.so',
              here.parents[1] / 'lib/libsaccade.so.0']
    return next(str(p) for p in places if p and pathlib.Path(p).exists())


class Saccade:
    """The few calls that are needed, and PyTorch's capsules."""

    def __init__(self, device, library=None):
        self.lib = c.CDLL(library or find_library())
        self.lib.sac_tensor_data.restype = self.lib.sac_tensor_describe.restype = c.c_void_p
        self.ctx, self.dev = c.c_void_p(), c.c_void_p()
        self.call('sac_context_create', None, c.byref(self.ctx))
        self.call('sac_device_open', self.ctx, device.encode(), None, c.byref(self.dev))

    def call(self, name, *arguments):
        if getattr(self.lib, name)(*arguments) != 0:
            why = c.create_string_buffer(512)
            self.lib.sac_context_last_error(self.ctx, why, c.c_size_t(512))
            raise RuntimeError(f'{name}: {why.value.decode()}')

    def close(self):
        self.lib.sac_device_unref(c.byref(self.dev))
        self.lib.sac_context_destroy(c.byref(self.ctx))

    def take(self, theirs):
        """A torch tensor as a tensor of the library: the capsule's contents are taken."""
        capsule = dlpack.to_dlpack(theirs)
        api = c.pythonapi
        api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = c.c_void_p, [c.py_object, c.c_char_p]
        api.PyCapsule_SetName.argtypes = [c.py_object, c.c_char_p]
        pointer, t = api.PyCapsule_GetPointer(capsule, b'dltensor'), c.c_void_p()
        self.call('sac_tensor_from_dlpack', self.dev, c.c_void_p(pointer), c.byref(t))
        api.PyCapsule_SetName(capsule, b'used_dltensor')
        return t

    def give(self, t, call='sac_tensor_to_dlpack', name=b'dltensor'):
        """A tensor of the library as a torch tensor."""
        ours = c.c_void_p()
        self.call(call, t, c.byref(ours))
        api = c.pythonapi
        api.PyCapsule_New.restype, api.PyCapsule_New.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
        return dlpack.from_dlpack(api.PyCapsule_New(ours, name, None))

    def create(self, dtype, *shape):
        desc, t = Desc(dtype, len(shape), (c.c_int64 * 8)(*shape)), c.c_void_p()
        self.call('sac_tensor_create', self.dev, c.byref(desc), b'test', c.byref(t))
        return t

    def end(self, t):
        self.lib.sac_tensor_unref(c.byref(t))

    def data(self, t):
        return self.lib.sac_tensor_data(t)

    def describe(self, t):
        return Desc.from_address(self.lib.sac_tensor_describe(t))

    def numbers(self, t, like):
        host = torch.empty_like(like, device='cpu')
        self.call('sac_tensor_download', t, c.c_void_p(host.data_ptr()))
        return host

    def live(self):
        pool = Pool()
        self.lib.sac_device_pool_stats(self.dev, c.byref(pool))
        return pool.live

    def crossed(self):
        ledger = Ledger()
        self.lib.sac_device_ledger(self.dev, c.byref(ledger))
        return ledger.crossed


def on(device):
    return 'cuda' if device != 'cpu' else 'cpu'


def stream_of(device):
    return torch.cuda.Stream() if on(device) == 'cuda' else None


def handle(stream):
    return c.c_void_p(stream.cuda_stream if stream else None)


def takes_theirs_in_place(s, device):
    x = torch.arange(24, dtype=torch.float32, device=on(device)).reshape(2, 3, 4)
    t = s.take(x)
    s.call('sac_tensor_written_on', t, handle(torch.cuda.current_stream() if on(device) == 'cuda' else None))
    assert s.data(t) == x.data_ptr()
    assert torch.equal(s.numbers(t, x), x.cpu())
    s.end(t)


def takes_the_versioned_form(s, device):
    x = torch.arange(24, dtype=torch.float32, device=on(device))
    try:
        capsule = x.__dlpack__(max_version=(1, 0))
    except TypeError:
        return 'skipped: this PyTorch gives the plain form only'
    t, name = c.c_void_p(), b'dltensor_versioned'
    pointer = c.pythonapi.PyCapsule_GetPointer(capsule, name)
    s.call('sac_tensor_from_dlpack_versioned', s.dev, c.c_void_p(pointer), c.byref(t))
    c.pythonapi.PyCapsule_SetName(capsule, b'used_dltensor_versioned')
    address = x.data_ptr()
    assert s.data(t) == address
    y = s.give(t, 'sac_tensor_to_dlpack_versioned', name)
    s.end(t)
    del x
    assert y.data_ptr() == address and torch.equal(y.cpu(), torch.arange(24, dtype=torch.float32))


def exporter_dies_first(s, device):
    x = torch.full((1 << 20,), 5., device=on(device))
    like, address = torch.empty(x.shape), x.data_ptr()
    t = s.take(x)
    s.call('sac_tensor_written_on', t, handle(torch.cuda.current_stream() if on(device) == 'cuda' else None))
    held = torch.cuda.memory_allocated() if on(device) == 'cuda' else 0
    del x
    other = torch.full((1 << 20,), 6., device=on(device))  # not in the memory that the library holds
    assert other.data_ptr() != address and torch.all(s.numbers(t, like) == 5)
    s.end(t)
    if on(device) == 'cuda':
        del other
        assert torch.cuda.memory_allocated() == held - (4 << 20), 'the exporter was not told'


def gives_ours_in_place(s, device):
    before = s.live()
    t, want = s.create(F32, 3, 5), torch.rand(3, 5)
    s.call('sac_tensor_upload', t, c.c_void_p(want.data_ptr()))
    y = s.give(t)
    assert y.data_ptr() == s.data(t) and y.device.type == on(device)
    s.end(t)
    assert torch.equal(y.cpu(), want) and s.live() > before
    del y
    assert s.live() == before, 'the library was not told'


def consumer_keeps_longer(s, device):
    own = Saccade(device, s.lib._name)
    t, want = own.create(F32, 1000), torch.rand(1000)
    own.call('sac_tensor_upload', t, c.c_void_p(want.data_ptr()))
    y = own.give(t)
    own.end(t)
    own.close()
    assert torch.equal(y.cpu(), want)
    y += 1
    assert torch.equal(y.cpu(), want + 1)
    del y


def nothing_is_left(s, device):
    if on(device) == 'cuda':
        torch.cuda.synchronize()
    before, held = s.live(), torch.cuda.memory_allocated() if on(device) == 'cuda' else 0
    for i in range(500):
        x = torch.full((1000 + i,), float(i), device=on(device))
        t = s.take(x)
        view = s.give(t)  # and back: the chain holds both
        s.end(t)
        del x
        assert view[-1].item() == i
        del view
    assert s.live() == before
    assert (torch.cuda.memory_allocated() if on(device) == 'cuda' else 0) == held


def refuses_what_is_not_dense(s, device):
    x = torch.zeros(4, 6, device=on(device)).t()
    try:
        s.take(x)
    except RuntimeError as why:
        assert 'make it contiguous first' in str(why)
    else:
        raise AssertionError('taken')


# ---- streams, on a GPU ----

def our_work_follows_their_stream(s, device):
    side, x = stream_of(device), torch.zeros(1 << 20, device='cuda')
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)  # about 0.1 s
        x.fill_(7)
    t, begun = s.take(x), time.perf_counter()
    s.call('sac_tensor_written_on', t, handle(side))
    waited = time.perf_counter() - begun
    assert not side.query(), 'the stream was not busy: nothing is shown'
    assert waited < 0.02, f'the thread waited {waited * 1e3:.1f} ms'
    assert torch.all(s.numbers(t, x) == 7)
    s.end(t)


def our_work_follows_their_event(s, device):
    side, x, event = stream_of(device), torch.zeros(1 << 20, device='cuda'), torch.cuda.Event()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        x.fill_(8)
        event.record()
    t = s.take(x)
    s.call('sac_tensor_written_at', t, c.c_void_p(event.cuda_event))
    assert not side.query(), 'the stream was not busy: nothing is shown'
    assert torch.all(s.numbers(t, x) == 8)
    s.end(t)


class Memory:
    """A plane may only be read, which the plain form of DLPack does not say: PyTorch gets it as CuPy would."""
    def __init__(self, address, shape):
        self.__cuda_array_interface__ = {'shape': shape, 'typestr': '|u1', 'data': (address, False), 'version': 2}


def their_stream_follows_our_work(s, device):
    """The library's kernels are held up behind a busy stream; PyTorch reads what they make on another one."""
    busy, side = stream_of(device), stream_of(device)
    x = torch.randint(0, 256, (3, 1000, 1024), dtype=torch.uint8, device='cuda')
    t, frame, plane = s.take(x), c.c_void_p(), c.c_void_p()
    # Once with an idle card: the driver loads the kernel and maps memory, for which it waits for kernels that run.
    s.call('sac_frame_from_tensor', t, c.c_int64(0), None, c.byref(frame))
    s.lib.sac_frame_unref(c.byref(frame))
    torch.cuda.synchronize()
    with torch.cuda.stream(busy):
        torch.cuda._sleep(400_000_000)
    s.call('sac_tensor_written_on', t, handle(busy))
    begun = time.perf_counter()
    s.call('sac_frame_from_tensor', t, c.c_int64(0), None, c.byref(frame))  # planes: made by a kernel
    s.call('sac_frame_plane_tensor', frame, 0, c.byref(plane))
    desc = s.describe(plane)
    pixels = torch.as_tensor(Memory(s.data(plane), tuple(desc.shape[:2])), device='cuda')
    s.call('sac_tensor_ready_on', plane, handle(side))
    waited = time.perf_counter() - begun
    assert pixels.data_ptr() == s.data(plane)
    with torch.cuda.stream(side):
        got = pixels[:, :3 * 1024].reshape(1000, 1024, 3).permute(2, 0, 1).clone()
    still_busy = not side.query()
    assert waited < 0.05, f'the thread waited {waited * 1e3:.1f} ms'
    assert still_busy, 'the library was not busy: nothing is shown'
    s.end(plane)
    s.lib.sac_frame_unref(c.byref(frame))
    s.end(t)
    side.synchronize()
    assert torch.equal(got, x)


def memory_waits_for_their_stream(s, device):
    """A tensor of ours is released while PyTorch's kernel is still to read it: the next one lies elsewhere."""
    side, n = stream_of(device), 1 << 22
    t, want = s.create(F32, n), torch.rand(n)
    s.call('sac_tensor_upload', t, c.c_void_p(want.data_ptr()))
    y, address = s.give(t), s.data(t)
    s.call('sac_tensor_ready_on', t, handle(side))
    s.end(t)
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        got = y + 0
    del y
    assert not side.query(), 'the stream was not busy: nothing is shown'
    other, zeros = s.create(F32, n), torch.zeros(n)
    assert s.data(other) != address
    s.call('sac_tensor_upload', other, c.c_void_p(zeros.data_ptr()))
    side.synchronize()
    assert torch.equal(got.cpu(), want)
    s.end(other)


class Params(c.Structure):
    _fields_ = [(name, c.c_char_p) for name in ('head', 'preprocess', 'classes')]
    _fields_ += [('score_min', c.c_float), ('nms_iou', c.c_float)]
    _fields_ += [(name, c.c_int) for name in ('detection_max', 'batch_max', 'precision')]
    _fields_ += [('reserved', c.c_uint64 * 8)]


class Found(c.Structure):
    _fields_ = [('items', c.POINTER(c.c_float * 6)), ('count', c.c_size_t), ('capacity', c.c_size_t)]


def detector_reads_their_tensor(s, device):
    """Interleaved, planar and float pictures have the same boxes; the first is not copied."""
    det, found = c.c_void_p(), [Found() for _ in range(3)]
    params = Params(score_min=.001, nms_iou=.65, detection_max=300, batch_max=1)
    s.call('sac_detector_create', s.dev, b'person_det_fast', c.byref(params), c.byref(det))
    torch.manual_seed(1)
    small = torch.randint(0, 256, (1, 3, 12, 16), dtype=torch.uint8).float()
    x = torch.nn.functional.interpolate(small, (480, 640), mode='bilinear', align_corners=False).round()
    x = x.to(torch.uint8).to(on(device))
    forms = [x.permute(0, 2, 3, 1).contiguous(), x, x.float() / 255]
    crossed = s.crossed()
    for form, list_of in zip(forms, found):
        t = s.take(form)
        s.call('sac_tensor_written_on', t, handle(torch.cuda.current_stream() if on(device) == 'cuda' else None))
        s.call('sac_detector_run_tensor', det, t, None, c.byref(list_of))
        s.end(t)
    rows = [[list(f.items[i])[:5] for i in range(f.count)] for f in found]
    assert rows[0] and rows[0] == rows[1] == rows[2], [len(r) for r in rows]
    assert s.crossed() - crossed < 200_000, 'a picture crossed'
    for list_of in found:
        s.lib.sac_detections_finish(c.byref(list_of))
    s.lib.sac_detector_destroy(c.byref(det))


CASES = [takes_theirs_in_place, takes_the_versioned_form, exporter_dies_first, gives_ours_in_place,
         consumer_keeps_longer, nothing_is_left, refuses_what_is_not_dense]
GPU_CASES = [our_work_follows_their_stream, our_work_follows_their_event, their_stream_follows_our_work,
             memory_waits_for_their_stream]
LAST = [detector_reads_their_tensor]


def main(device, library=None):
    failed, s = 0, Saccade(device, library)
    for case in CASES + (GPU_CASES if on(device) == 'cuda' else []) + LAST:
        begun = time.perf_counter()
        try:
            said = case(s, device) or 'ok'
        except (AssertionError, RuntimeError) as why:
            failed, said = failed + 1, f'FAILED: {why!r}'
        print(f'{case.__name__}: {said} ({(time.perf_counter() - begun) * 1e3:.0f} ms)', flush=True)
    s.close()
    print(f'torch {torch.__version__} on {device}: {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:3] if len(sys.argv) > 1 else ['cuda']))
