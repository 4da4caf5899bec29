# SPDX-License-Identifier: Apache-2.0
"""What the Python tests share. scripts/test sets SACCADE_BIN (the program) and SACCADE_SHARED."""
import os
import pathlib
import signal
import subprocess

import pytest

# Whoever runs this in the background of a script, or under nohup, hands down that Ctrl-C or a hangup is ignored;
# programs under test get them as from a terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure(config):
    config.addinivalue_line('markers', 'sanitized: runs with the program that is built with the sanitizers, and with '
                                       'no other: about memory, leaks, and ends in the middle of work')


ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope='session')
def program():
    path = os.environ.get('SACCADE_BIN', ROOT / 'build/src/cli/saccade')
    if not os.access(path, os.X_OK):
        pytest.fail(f'{path} is not built')
    return str(path)


@pytest.fixture(scope='session')
def saccade(program):
    """saccade(*args) runs the program; its output is text. env: changes to the environment, None takes out."""
    environment = {k: v for k, v in os.environ.items() if k not in ('SACCADE_LOG', 'DEBUG')}

    def run(*args, env=None, timeout=600, **more):
        more.setdefault('stdin', subprocess.DEVNULL)
        more.setdefault('stdout', subprocess.PIPE)
        more.setdefault('stderr', subprocess.PIPE)
        return subprocess.run([program, *map(str, args)], text=True, timeout=timeout,
                              env={k: v for k, v in (environment | (env or {})).items() if v is not None}, **more)
    return run


@pytest.fixture(scope='session')
def shared():
    """The folder with test models and sequences."""
    path = pathlib.Path(os.environ.get('SACCADE_SHARED', ROOT / '../shared')) / 'data'
    if not path.is_dir():
        pytest.skip(f'no test data at {path}')
    return path
