# SPDX-License-Identifier: Apache-2.0
"""Streams from servers on this machine that fall silent, or end before they said they would."""
import contextlib
import json
import signal
import socket
import subprocess
import threading

import pytest

from support import box_at, write_ppm

FRAMES = 120  # more than libavformat reads to learn what a stream is


@pytest.fixture(scope='module')
def transport(saccade, tmp_path_factory):
    """A transport stream's bytes, and a file with the detections in it."""
    folder = tmp_path_factory.mktemp('network')
    (folder / 'img').mkdir()
    rows = []
    for frame in range(FRAMES):
        write_ppm(folder / 'img' / f'{frame + 1:05d}.ppm', frame % 40)
        rows.append('%d,-1,%d,%d,%d,%d,0.9\n' % (frame + 1, *box_at(frame % 40)))
    (folder / 'det.txt').write_text(''.join(rows))
    run = saccade('track', folder / 'img', '--fps', 20, '--detections', folder / 'det.txt', '-o', folder / 'clip.ts')
    assert run.returncode == 0, run.stderr
    return (folder / 'clip.ts').read_bytes(), folder / 'det.txt'


@contextlib.contextmanager
def server(answer):
    """Call answer(connection, port, over) for the first that connects; over is set at the end."""
    over = threading.Event()
    with socket.create_server(('127.0.0.1', 0)) as listening:
        port = listening.getsockname()[1]

        def serve():
            with contextlib.suppress(OSError), listening.accept()[0] as connection:
                answer(connection, port, over)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield port
        finally:
            over.set()
            thread.join(10)


def over_http(data, promised):
    def answer(connection, port, over):
        connection.recv(65536)
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % promised + data)
        over.wait(0 if promised > len(data) else 600)
    return answer


def over_tcp(data):
    def answer(connection, port, over):
        connection.sendall(data)
        over.wait(600)
    return answer


SDP = 'v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\nm=video 0 RTP/AVP 33\r\na=control:track0\r\n'


def over_rtsp(data):
    """The transport stream in RTP packets on the connection itself."""
    def reply(connection, request, *lines, body=''):
        sequence = next(line for line in request.splitlines() if line.lower().startswith('cseq'))
        head = ['RTSP/1.0 200 OK', sequence, 'Session: 1', *lines, f'Content-Length: {len(body)}']
        connection.sendall(('\r\n'.join(head) + '\r\n\r\n' + body).encode())

    def answer(connection, port, over):
        stream = connection.makefile('rb')
        while True:
            request = ''
            while not request.endswith('\r\n\r\n'):
                request += stream.readline().decode()
            verb = request.split()[0]
            if verb == 'OPTIONS':
                reply(connection, request, 'Public: DESCRIBE, SETUP, PLAY')
            elif verb == 'DESCRIBE':
                reply(connection, request, 'Content-Type: application/sdp', body=SDP)
            elif verb == 'SETUP':
                reply(connection, request, 'Transport: RTP/AVP/TCP;unicast;interleaved=0-1')
            elif verb == 'PLAY':
                reply(connection, request)
                break
        for number, at in enumerate(range(0, len(data), 7 * 188)):
            packet = bytes([0x80, 33]) + number.to_bytes(2, 'big') + (number * 900).to_bytes(4, 'big') + b'sacc'
            packet += data[at:at + 7 * 188]
            connection.sendall(b'$\0' + len(packet).to_bytes(2, 'big') + packet)
        over.wait(600)
    return answer


@pytest.mark.parametrize('scheme, words', [('http', 'the connection ended before the video'), ('tcp', 'no answer for 1 s'),
                                           ('rtsp', 'no answer for 1 s')])
def test_a_stream_that_breaks_off_fails_with_whole_outputs(saccade, transport, tmp_path, scheme, words):
    data, detections = transport
    data = data[:len(data) * 9 // 10 // 188 * 188]
    answer = {'http': over_http(data, 2 * len(data)), 'tcp': over_tcp(data), 'rtsp': over_rtsp(data)}[scheme]
    out = tmp_path / 'out.mp4'
    with server(answer) as port:
        url = f'{scheme}://127.0.0.1:{port}' + ('' if scheme == 'tcp' else '/camera')
        run = saccade('track', url, '--input-timeout', 1, '--detections', detections, '--jsonl', tmp_path / 'out.jsonl',
                      '-o', out)
    assert run.returncode == 1, run.stderr
    assert words in run.stderr.splitlines()[-1] and url in run.stderr.splitlines()[-1]
    frames = [json.loads(line) for line in (tmp_path / 'out.jsonl').read_text().splitlines()[1:]]
    assert len(frames) > FRAMES * 3 // 4
    assert [frame['frame'] for frame in frames] == list(range(len(frames)))
    probe = json.loads(saccade('inspect', out, '--json').stdout)
    assert probe['frames'] == len(frames)


def test_a_stream_that_ends_as_promised_is_no_fault(saccade, transport, tmp_path):
    data, detections = transport
    with server(over_http(data, len(data))) as port:
        run = saccade('track', f'http://127.0.0.1:{port}/camera', '--input-timeout', 30, '--detections', detections,
                      '--jsonl', tmp_path / 'out.jsonl')
    assert run.returncode == 0, run.stderr
    assert len((tmp_path / 'out.jsonl').read_text().splitlines()) == FRAMES + 1


def test_several_are_opened_at_once(saccade, transport, tmp_path):
    """Each of them answers when the other one was asked too."""
    data, _ = transport
    both = threading.Barrier(2, timeout=20)

    def answer(connection, port, over):
        both.wait()
        over_http(data, len(data))(connection, port, over)

    with server(answer) as one, server(answer) as two:
        run = saccade('track', f'http://127.0.0.1:{one}/one.ts', f'http://127.0.0.1:{two}/two.ts', '--input-timeout', 10,
                      '--detector', 'person_det_fast', '--reid', 'none', '--jsonl', tmp_path)
    assert run.returncode == 0, run.stderr
    for name in ('one', 'two'):
        assert len((tmp_path / f'{name}.jsonl').read_text().splitlines()) == FRAMES + 1


def test_an_interrupt_ends_inputs_that_are_being_opened(program, tmp_path):
    """Eight at a time; none of them answers, and none would give up by itself for a minute."""
    with socket.create_server(('127.0.0.1', 0), backlog=64) as silent, contextlib.ExitStack() as held:
        silent.settimeout(30)
        urls = [f'http://127.0.0.1:{silent.getsockname()[1]}/{i}.ts' for i in range(12)]
        process = subprocess.Popen([program, 'track', *urls, '--input-timeout', '60', '--device', 'cpu', '--detector',
                                    'person_det_fast', '--reid', 'none', '--jsonl', str(tmp_path)],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(8):
            held.enter_context(silent.accept()[0])
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert 'interrupted' in said.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []
