# SPDX-License-Identifier: Apache-2.0
"""No transfer passes by the ledger: who may copy is on a list here, and whoever comes anew fails this test."""
import pathlib
import re

SRC = pathlib.Path(__file__).resolve().parents[2] / 'src'

# A pattern, and how often each file may have it, with the reason.
RULES = {
    # the ledger's entry has one call for bytes and one for rows; a conversion that only copies planes was
    # counted by sac_frame_convert_on; a way to convolve, in float or in 8-bit numbers, is tried on
    # random numbers before any frame comes
    r'\bcu(?:da)?Memcpy\w*\s*\(': {'device/cuda/memory.c': 2, 'vision/cuda/convert.c': 1,
                                    'engine/cuda/products/conv_trial.c': 3,
                                    'engine/cuda/products/quant_tune.c': 1},
    # the devices' own copies are behind sac_device_copy and sac_device_copy_rows; what a device can do is
    # measured on memory that holds nothing
    r'->\s*copy(?:_rows)?\s*\(': {'device/ledger.c': 3, 'engine/model/rates.c': 1},
}
# libavcodec's transfers are counted where they are made.
TRANSFER = re.compile(r'\bav_hwframe_transfer_data\s*\(')
COUNTED = re.compile(r'\bsac_device_count_copy\s*\(')


def code_of(path):
    """The text without comments: they may speak of what the code must not do."""
    return re.sub(r'/\*.*?\*/|//[^\n]*', '', path.read_text(), flags=re.S)


def breaches(root):
    found = []
    for path in sorted(p for p in root.rglob('*') if p.suffix in ('.c', '.h', '.cu', '.cuh')):
        name, text = path.relative_to(root).as_posix(), code_of(path)
        for pattern, allowed in RULES.items():
            calls = re.findall(pattern, text)
            if len(calls) > allowed.get(name, 0):
                found.append(f'{name}: {calls[-1]} past the ledger: use sac_device_copy')
        if TRANSFER.search(text) and not COUNTED.search(text):
            found.append(f'{name}: av_hwframe_transfer_data without sac_device_count_copy')
    return found


def test_every_copy_is_in_the_ledger():
    assert breaches(SRC) == []


def test_a_copy_past_the_ledger_is_found(tmp_path):
    (tmp_path / 'device').mkdir()
    (tmp_path / 'device/new.c').write_text('/* cudaMemcpy(a) */ x = cudaMemcpyAsync(a, b, n, k, s);')
    (tmp_path / 'new.cu').write_text('cuMemcpy2D_v2 (&copy);')
    (tmp_path / 'device/other.h').write_text('dev->ops->copy(dev, NULL, a, b, n, k); // ledger')
    (tmp_path / 'media.c').write_text('av_hwframe_transfer_data(a, b, 0);')
    (tmp_path / 'fine.c').write_text('sac_device_count_copy(); av_hwframe_transfer_data(a, b, 0); r.copy(a);')
    assert [b.split(':')[0] for b in breaches(tmp_path)] == ['device/new.c', 'device/other.h', 'media.c', 'new.cu']
