# SPDX-License-Identifier: Apache-2.0
"""packaging/check-bundle passes a good folder and names what is wrong with a bad one."""
import pathlib
import platform
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBAVCODEC = 'const char sac_text[] = "libavcodec license: {}";'
LGPL = 'LGPL version 2.1 or later'

pytestmark = pytest.mark.skipif(not shutil.which('objdump') or not shutil.which('gcc') or
                                platform.machine() != 'x86_64', reason='no compiler for x86-64 here')


def library(path, source, *options):
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(['gcc', '-shared', '-fPIC', '-x', 'c', '-', '-x', 'none', '-o', str(path), *options],
                   input=source.encode(), check=True)


@pytest.fixture
def bundle(tmp_path):
    folder = tmp_path / 'bundle'
    library(folder / 'lib/libsaccade.so.0', LIBAVCODEC.format(LGPL))
    library(folder / 'lib/saccade/libsaccade-onednn.so', 'int one(void) { return 1; }', '-Wl,-rpath,$ORIGIN')
    for name in ('bin/saccade', 'tests/run', 'tests/list', 'include/saccade/saccade.h'):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text('')
    (folder / 'LICENSES').mkdir()
    (folder / 'LICENSES/STATEMENT.md').write_text('As a whole: Apache-2.0 and LGPL-2.1-or-later.\n')
    return folder


def check(folder):
    done = subprocess.run([str(ROOT / 'packaging/check-bundle'), str(folder)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def refused(folder, *words):
    status, said = check(folder)
    assert status == 1, said
    for word in words:
        assert word in said


def test_good(bundle):
    status, said = check(bundle)
    assert status == 0, said
    assert LGPL in said


def test_new_symbol(bundle):
    glibc = tuple(int(n) for n in platform.libc_ver()[1].split('.'))
    if glibc < (2, 35):
        pytest.skip('this glibc has none that is too new')
    library(bundle / 'lib/saccade/libnew.so',
            'double hypot(double, double); double f(double x) { return hypot(x, x); }', '-fno-builtin', '-lm')
    refused(bundle, 'libnew.so needs GLIBC_2.35', 'hypot')


def test_library_of_nobody(bundle, tmp_path):
    library(tmp_path / 'libcudnn.so', 'int f(void) { return 1; }', '-Wl,-soname,libcudnn.so.9')
    library(bundle / 'lib/saccade/libwants.so', 'int f(void); int g(void) { return f(); }',
            str(tmp_path / 'libcudnn.so'))
    refused(bundle, 'libwants.so needs libcudnn.so.9')
    shutil.copy(tmp_path / 'libcudnn.so', bundle / 'lib/saccade/libcudnn.so.9')
    assert check(bundle)[0] == 0


@pytest.mark.parametrize('path', ['/usr/lib/here', '$ORIGIN:/work/build', 'lib'])
def test_paths_of_the_builder(bundle, path):
    library(bundle / 'lib/saccade/libpath.so', 'int f(void) { return 1; }', f'-Wl,-rpath,{path}')
    refused(bundle, 'libpath.so looks for libraries in')


def test_what_must_stay_inside(bundle):
    library(bundle / 'lib/libsaccade.so.0', LIBAVCODEC.format(LGPL) + 'int avcodec_open2(void) { return 1; }')
    refused(bundle, 'exports avcodec_open2')


@pytest.mark.parametrize('licence', ['GPL version 2 or later', 'nonfree and unredistributable', 'none'])
def test_licence_that_is_not_the_stated_one(bundle, licence):
    library(bundle / 'lib/libsaccade.so.0', LIBAVCODEC.format(licence))
    refused(bundle, 'fault: ')


def test_gpl_is_stated(bundle):
    library(bundle / 'lib/libsaccade.so.0', LIBAVCODEC.format('GPL version 2 or later'))
    (bundle / 'LICENSES/STATEMENT.md').write_text('As a whole: **GPL-3.0**: libx264 is in it\n')
    assert check(bundle)[0] == 0


def test_missing_parts_and_loose_links(bundle):
    (bundle / 'tests/run').unlink()
    (bundle / 'clips').symlink_to('nowhere')
    refused(bundle, 'fault: no tests/run', 'clips leads nowhere')
