# SPDX-License-Identifier: Apache-2.0
"""DLPack against other libraries: NumPy reads and writes the library's memory, and with PyTorch, where it is
installed, torch_tensors.py runs on the CPU."""
import ctypes as c
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Desc(c.Structure):
    _fields_ = [('dtype', c.c_int), ('rank', c.c_int), ('shape', c.c_int64 * 8)]


@pytest.fixture
def lib():
    path = pathlib.Path(os.environ.get('SACCADE_BUILD', ROOT / 'build')) / 'libsaccade.so'
    if not path.exists():
        pytest.skip(f'no {path}')
    found = c.CDLL(str(path))
    found.sac_tensor_data.restype = c.c_void_p
    return found


@pytest.fixture
def device(lib):
    ctx, dev = c.c_void_p(), c.c_void_p()
    assert lib.sac_context_create(None, c.byref(ctx)) == 0
    assert lib.sac_device_open(ctx, b'cpu', None, c.byref(dev)) == 0
    yield dev
    lib.sac_device_unref(c.byref(dev))
    lib.sac_context_destroy(c.byref(ctx))


def capsule_of(pointer):
    api = c.pythonapi
    api.PyCapsule_New.restype, api.PyCapsule_New.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
    return api.PyCapsule_New(pointer, b'dltensor', None)


class Given:
    """What np.from_dlpack asks for."""
    def __init__(self, pointer):
        self.pointer = pointer

    def __dlpack__(self, *, stream=None, **later):
        return capsule_of(self.pointer)

    def __dlpack_device__(self):
        return 1, 0


def take(lib, dev, array):
    """An array as a tensor of the library."""
    api, t = c.pythonapi, c.c_void_p()
    api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = c.c_void_p, [c.py_object, c.c_char_p]
    api.PyCapsule_SetName.argtypes = [c.py_object, c.c_char_p]
    capsule = array.__dlpack__()
    pointer = api.PyCapsule_GetPointer(capsule, b'dltensor')
    if lib.sac_tensor_from_dlpack(dev, c.c_void_p(pointer), c.byref(t)) == 0:
        api.PyCapsule_SetName(capsule, b'used_dltensor')
    return t


@pytest.mark.parametrize('dtype, number', [('float32', 1), ('float64', 3), ('uint8', 6), ('int64', 11)])
def test_numpy_reads_and_writes_ours(lib, device, dtype, number):
    desc, t, ours = Desc(number, 2, (c.c_int64 * 8)(3, 5)), c.c_void_p(), c.c_void_p()
    assert lib.sac_tensor_create(device, c.byref(desc), b'test', c.byref(t)) == 0
    want = np.arange(15, dtype=dtype).reshape(3, 5)
    assert lib.sac_tensor_upload(t, want.ctypes.data_as(c.c_void_p)) == 0
    assert lib.sac_tensor_to_dlpack(t, c.byref(ours)) == 0
    array = np.from_dlpack(Given(ours))
    assert array.ctypes.data == lib.sac_tensor_data(t) and array.dtype == dtype and array.shape == (3, 5)
    lib.sac_tensor_unref(c.byref(t))
    assert (array == want).all()


def test_we_read_numpys_and_it_may_go_first(lib, device):
    array = np.arange(12, dtype='float32').reshape(3, 4)
    address, references = array.ctypes.data, sys.getrefcount(array)
    t = take(lib, device, array)
    assert lib.sac_tensor_data(t) == address and sys.getrefcount(array) == references + 1
    got = np.empty((3, 4), 'float32')
    assert lib.sac_tensor_download(t, got.ctypes.data_as(c.c_void_p)) == 0
    assert (got == array).all()
    lib.sac_tensor_unref(c.byref(t))
    assert sys.getrefcount(array) == references  # it was told, once


def test_a_transposed_one_is_refused_and_stays_numpys(lib, device):
    array = np.zeros((4, 6), 'float32').T
    references = sys.getrefcount(array)
    assert not take(lib, device, array)
    assert sys.getrefcount(array) == references


def test_pytorch(lib):
    """With the Python that has PyTorch: this one, or the system's."""
    python = sys.executable if importlib.util.find_spec('torch') else '/usr/bin/python3'
    if subprocess.run([python, '-c', 'import torch'], capture_output=True).returncode:
        pytest.skip('no PyTorch here')
    env = dict(os.environ, SACCADE_LIB=lib._name, SACCADE_MODELS=str(ROOT / 'models'))
    ran = subprocess.run([python, HERE / 'torch_tensors.py', 'cpu'], env=env, capture_output=True, text=True,
                         timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_public_header_goes_with_the_standards(tmp_path):
    """DLPack's own header before ours and behind it, in C and C++."""
    headers = [p for p in (pathlib.Path('/usr/include/dlpack/dlpack.h'),) if p.exists()]
    text = '#include <saccade/dlpack.h>\n{}int main(void) {{ struct DLManagedTensor *t = 0; return t != 0; }}\n'
    inside = '#include <dlpack/dlpack.h>\n' if headers else \
        'typedef struct DLManagedTensor { void *context; } DLManagedTensor;\n'
    for name, compiler in (('a.c', 'cc'), ('a.cpp', 'c++')):
        if not shutil.which(compiler):
            continue
        for source in (text.format(inside), inside + text.format('')):
            (tmp_path / name).write_text(source)
            subprocess.run([compiler, '-Wall', '-Werror', '-I', ROOT / 'include', '-c', tmp_path / name, '-o',
                            tmp_path / 'a.o'], check=True)
