# SPDX-License-Identifier: Apache-2.0
"""A program that was built with the recorded headers (tests/abi/record) runs with today's library, one built with
today's headers with a later library, and one built with later headers is refused only for what this library lacks."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RECORDED, TODAY = HERE / 'include', ROOT / 'include'
sys.path.insert(0, str(HERE))
import interface  # noqa: E402

AGAIN = 'this breaks programs; if that is meant, say so in CHANGELOG.md and run tests/abi/record'


@pytest.fixture(scope='module')
def later(tmp_path_factory):
    """Today's headers with one field more in every struct that reserves room."""
    folder = tmp_path_factory.mktemp('later')
    for header in (TODAY / 'saccade').iterdir():
        def grown(at):
            return f'uint64_t later; uint64_t reserved[{int(at[1]) - 1}];'
        text = re.sub(r'uint64_t\s+reserved\[(\d+)\];', grown, header.read_text())
        (folder / 'saccade').mkdir(exist_ok=True)
        (folder / 'saccade' / header.name).write_text(text)
    return folder


@pytest.fixture(scope='module')
def library():
    folder = pathlib.Path(os.environ.get('SACCADE_BUILD', ROOT / 'build'))
    if not (folder / 'libsaccade.so').exists():
        pytest.skip(f'no libsaccade.so in {folder}')
    return folder


def output_of(library, include, folder, *arguments, options=()):
    folder.mkdir(exist_ok=True)
    subprocess.run(['cc', '-std=c11', '-Wall', '-Wextra', '-Werror', *options, '-I', include, HERE / 'program.c', '-o',
                    folder / 'program', '-L', library, '-lsaccade', f'-Wl,-rpath,{library}'], check=True)
    rows = [f'{frame},{obj},{10 + 5 * frame + 100 * obj},{20 + frame},30,60,1,1,1\n'
            for frame in range(1, 21) for obj in range(1, 4)]
    (folder / 'det.txt').write_text(''.join(rows))
    ran = subprocess.run([folder / 'program', folder / 'det.txt', folder / 'out.txt', *arguments], text=True,
                         stdout=subprocess.PIPE, timeout=300)
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def test_programs_of_three_versions_see_the_same(library, later, tmp_path):
    outputs = {name: output_of(library, include, tmp_path / name, options=options)
               for name, include, options in [('recorded', RECORDED, ()), ('today', TODAY, ()),
                                              ('later', later, ('-DLATER',))]}
    assert '40 frames, 6 tracks' in outputs['today'] and ' of 60' in outputs['today']
    assert outputs['recorded'] == outputs['today'] == outputs['later']


def test_a_field_that_this_library_lacks_is_refused_by_name(library, later, tmp_path):
    lines = output_of(library, later, tmp_path / 'later', 'later', options=['-DLATER']).splitlines()
    names = {kind: f'{kind} parameters' for kind in ('device', 'tracker', 'pipeline', 'session', 'source', 'sink',
                                                     'model', 'detector', 'embedder')}
    names |= {'frame': 'frame', 'preprocess': 'preprocess', 'stream': 'stream 1'}
    for kind, name in names.items():
        said = [line for line in lines if line.startswith(f'{kind}: ')]
        assert said and f'bad argument: {name}: a field is set' in said[0], lines
        assert 'built with a later version' in said[0], lines
    assert any(line.startswith('context: bad argument') for line in lines)  # no context yet that keeps a sentence


@pytest.mark.skipif(not shutil.which('clang'), reason='no clang')
class TestRecorded:
    def test_structs_keep_their_size_and_their_fields_place(self):
        today = interface.structs(TODAY)
        for name, (size, fields) in interface.structs(RECORDED).items():
            assert name in today, f'struct {name} is gone: {AGAIN}'
            assert today[name][0] == size, f'struct {name} was {size} bytes and is {today[name][0]}: {AGAIN}'
            for field, place in fields.items():
                if field != 'reserved':
                    assert today[name][1].get(field) == place, f'{name}.{field} was {place}: {AGAIN}'

    def test_later_fields_lie_in_what_was_reserved(self):
        """Not in padding: a program need not have cleared that."""
        recorded = interface.structs(RECORDED)
        for name, (_, fields) in interface.structs(TODAY).items():
            before = recorded.get(name, (0, fields))[1]
            for field in fields.keys() - before.keys():
                begin = before.get('reserved', (None,))[0]
                assert begin is not None and fields[field][0] >= begin, f'{name}.{field} is not in what was reserved'

    def test_functions_keep_their_types(self):
        today = interface.functions(TODAY)
        for name, kind in interface.functions(RECORDED).items():
            assert today.get(name) == kind, f'{name} was {kind} and is {today.get(name)}: {AGAIN}'

    def test_constants_keep_their_values(self):
        today = interface.constants(TODAY)
        for name, value in interface.constants(RECORDED).items():
            assert name.endswith('_COUNT') or today.get(name) == value, f'{name} was {value}: {AGAIN}'
