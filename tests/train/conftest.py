# SPDX-License-Identifier: Apache-2.0
"""The training package on Debian's PyTorch and the CPU, with pictures that drawings.py draws."""
import ctypes
import importlib
import importlib.util
import os
import subprocess
import sys

import pytest

from helpers import ONE_THREAD, TRAIN

sys.path.insert(0, str(TRAIN))
if importlib.util.find_spec('torch') is None:
    collect_ignore_glob = ['test_*.py']  # scripts/test counts the part as skipped, and says why
else:
    import torch
    torch.set_num_threads(1)
    for option in (-3, -1):  # the same for this process: M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
        ctypes.CDLL(None).mallopt(option, 1 << 30)


@pytest.fixture(scope='session')
def folders(tmp_path_factory):
    """A folder with detect/, segment/, reid/ and walk/, as drawings.py draws them."""
    import drawings
    root = tmp_path_factory.mktemp('pictures')
    drawings.write_folders(root)
    drawings.write_walk(root / 'walk')
    return root


@pytest.fixture(scope='session')
def train_program():
    """train_program(module, *args) runs `python -m saccade_train.MODULE`."""
    def run(module, *args, timeout=1800, **more):
        return subprocess.run([sys.executable, '-m', f'saccade_train.{module}', *map(str, args)], text=True,
                              cwd=TRAIN, timeout=timeout, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=os.environ | ONE_THREAD, **more)
    return run


@pytest.fixture(scope='session')
def succeed(train_program):
    """As train_program; the output of a run that must end well."""
    def run(module, *args, **more):
        done = train_program(module, *args, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
    return run


@pytest.fixture(scope='session')
def refuse(train_program):
    """As train_program; it must fail with one sentence that has the words, and no traceback."""
    def run(module, *args, words=()):
        done = train_program(module, *args)
        assert done.returncode not in (0, -11, -6), done.stdout
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        assert len(lines) == 1, done.stderr
        for word in words:
            assert str(word) in lines[0], lines[0]
    return run


@pytest.fixture
def refused(monkeypatch, capsys):
    """refused(module, *args) runs the program here; its sentence. A traceback would be another exception."""
    def run(module, *args):
        program = importlib.import_module(f'saccade_train.{module}')
        monkeypatch.setattr(sys, 'argv', [module, *map(str, args)])
        with pytest.raises(SystemExit) as end:
            program.main()
        said = end.value.code
        if said == 2:  # argparse: usage, then the sentence
            said = capsys.readouterr().err.splitlines()[-1]
        assert isinstance(said, str) and said and '\n' not in said
        return said
    return run
