# SPDX-License-Identifier: Apache-2.0
"""Passwords and tokens in addresses reach nothing that the program writes, and no list of processes."""
import base64
import http.server
import json
import pathlib
import subprocess
import threading

import pytest

pytestmark = pytest.mark.sanitized

WORD, TOKEN = 'PaSsw0rd-7Q', 'T0keN-9X'
USER = 'Us3r-4K'
SECRETS = (WORD, TOKEN, USER)


@pytest.fixture(scope='session')
def stored(saccade, clip, tmp_path_factory):
    """A video that can be read from its beginning to its end."""
    path = tmp_path_factory.mktemp('stored') / 'clip.mkv'
    run = saccade('track', clip / 'img', '--detections', clip / 'det.txt', '-o', path)
    assert run.returncode == 0, run.stderr
    return path


class Server:
    """Gives a file to those who know user, password and token; with `hold` it keeps them waiting."""

    def __init__(self, path):
        want = base64.b64encode(f'{USER}:{WORD}'.encode()).decode()
        owner = self
        self.asked, self.hold = threading.Event(), None

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                known = self.headers.get('Authorization') == f'Basic {want}'
                if known and owner.hold:
                    owner.asked.set()
                    owner.hold.wait(600)
                if known and f'token={TOKEN}' in self.path:
                    body = path.read_bytes()
                    self.send_response(200)
                else:
                    body = b''
                    self.send_response(404 if known else 401)
                    self.send_header('WWW-Authenticate', 'Basic realm="cameras"')
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.place = f'127.0.0.1:{self.server.server_port}'
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def url(self, path='door.mkv', token=TOKEN):
        return f'http://{USER}:{WORD}@{self.place}/{path}?channel=7&token={token}'

    def close(self):
        if self.hold:
            self.hold.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def server(stored):
    server = Server(stored)
    yield server
    server.close()


def is_clean(folder, *texts):
    """No secret in the texts, in a file, or in a file's name."""
    files = list(pathlib.Path(folder).rglob('*'))
    for secret in SECRETS:
        for text in texts:
            assert secret not in text
        for path in files:
            assert secret not in str(path.relative_to(folder))
            assert not path.is_file() or secret.encode() not in path.read_bytes(), path


def outputs(folder):
    return ['-o', folder / 'o.mp4', '--jsonl', folder / 'o.jsonl', '--mot', folder / 'o.txt', '--stats',
            folder / 'stats.json', '--trace', folder / 'trace.json', '--log-level', 'trace']


def test_a_run_that_works(saccade, clip, server, tmp_path):
    run = saccade('track', server.url(), '--detections', clip / 'det.txt', *outputs(tmp_path))
    assert run.returncode == 0, run.stderr
    is_clean(tmp_path, run.stderr, run.stdout)
    header = json.loads((tmp_path / 'o.jsonl').read_text().splitlines()[0])
    assert header['input'] == f'http://***@{server.place}/door.mkv?channel=7&token=***'
    assert f'***@{server.place}' in header['command']
    assert f'***@{server.place}' in run.stderr


def test_json_lines_on_standard_output(saccade, clip, server, tmp_path):
    run = saccade('track', server.url(), '--detections', clip / 'det.txt', '--jsonl', '-')
    assert run.returncode == 0 and run.stdout, run.stderr
    is_clean(tmp_path, run.stderr, run.stdout)


def test_several_inputs_and_files_named_after_them(saccade, clip, server, tmp_path):
    boxes = tmp_path / 'boxes'
    boxes.mkdir()
    for name in ('door', 'gate'):
        (boxes / f'{name}.txt').write_bytes((clip / 'det.txt').read_bytes())
    folder = tmp_path / 'out'
    run = saccade('track', server.url('door.mkv'), server.url('gate.mkv'), server.url('gate.mkv', 'no'),
                  '--detections', boxes, '-o', folder / '{name}.mkv', '--jsonl', folder)
    is_clean(tmp_path, run.stderr, run.stdout)  # two of one name: refused
    assert run.returncode == 2
    run = saccade('track', server.url('door.mkv'), server.url('gate.mkv'), '--detections', boxes, '-o', folder,
                  '--jsonl', folder, '--stats', tmp_path / 'stats.json', '--log-level', 'trace')
    assert run.returncode == 0, run.stderr
    assert (folder / 'door.jsonl').exists() and (folder / 'gate.jsonl').exists()
    is_clean(tmp_path, run.stderr, run.stdout)


def test_an_address_without_a_path_gives_its_files_no_password(saccade, tmp_path):
    run = saccade('track', f'rtsp://{USER}:{WORD}@127.0.0.1:1', f'rtsp://{USER}:{WORD}@127.0.0.2:1', '--detector',
                  'none', '--detections', tmp_path, '--jsonl', tmp_path / 'out')
    assert run.returncode == 1
    is_clean(tmp_path, run.stderr, run.stdout)


@pytest.mark.parametrize('url', [
    f'rtsp://{USER}:{WORD}@127.0.0.1:1/live?token={TOKEN}',
    f'rtsp://{USER}:{WORD}@[::1]:1/live',
    f'rtsp://{USER}:a@{WORD}@127.0.0.1:1/live',
    f'rtsp://{USER}:a/{WORD}@127.0.0.1:1/live',
    f'rtsp://{USER}:a {WORD}@127.0.0.1:1/live',
    f'http://{USER}:%40{WORD}@127.0.0.1:1/a.mp4?password={TOKEN}',
    f'http://127.0.0.1:1/a.mp4?X-Amz-Signature={TOKEN}',
    f'tcp://{USER}:{WORD}@127.0.0.1:1?key={TOKEN}',
    f'rtsp:{USER}:{WORD}@127.0.0.1:1/live',
    f'nosuch://{USER}:{WORD}@127.0.0.1:1/{"x" * 300}?token={TOKEN}',
])
def test_a_run_that_is_refused(saccade, clip, tmp_path, url):
    run = saccade('track', url, '--detections', clip / 'det.txt', '--input-timeout', 5, *outputs(tmp_path))
    assert run.returncode == 1, run.stderr
    is_clean(tmp_path, run.stderr, run.stdout)
    run = saccade('inspect', url, '--log-level', 'trace')
    assert run.returncode == 1, run.stderr
    is_clean(tmp_path, run.stderr, run.stdout)


def test_wrong_words(saccade, server, tmp_path):
    """What the server says no to, and usage errors that quote an argument."""
    url = server.url(token=f'x{TOKEN}')
    for args in (('inspect', url), ('track', url, '--fps', url), ('track', url, f'--{url}'), ('inspect', url, url),
                 (url, '--jsonl', url), (url, '--jsonl', f'{tmp_path}/{url}'), (url, '--config', url),
                 (url, '--detector', url), (url, '--device', url)):
        run = saccade(*args)
        assert run.returncode in (1, 2), run.stderr
        is_clean(tmp_path, run.stderr, run.stdout)


def test_inspect(saccade, server, tmp_path):
    for more in ([], ['--json']):
        run = saccade('inspect', server.url(), '--log-level', 'trace', *more)
        assert run.returncode == 0, run.stderr
        assert f'http://***@{server.place}/door.mkv?channel=7&token=***' in run.stdout
        is_clean(tmp_path, run.stderr, run.stdout)


def test_the_list_of_processes(program, clip, server, tmp_path):
    server.hold = threading.Event()
    run = subprocess.Popen([program, 'track', server.url(), '--detections', clip / 'det.txt', '--jsonl',
                            tmp_path / 'o.jsonl'], stderr=subprocess.PIPE, text=True)
    try:
        assert server.asked.wait(300)
        words = pathlib.Path(f'/proc/{run.pid}/cmdline').read_bytes().decode()
        assert 'track' in words and f'***@{server.place}' in words
        is_clean(tmp_path, words)
    finally:
        server.hold.set()
        _, errors = run.communicate(timeout=300)
    assert run.returncode == 0, errors
