# SPDX-License-Identifier: Apache-2.0
"""The examples are run as a reader would run them."""
import json
import os
import pathlib
import subprocess

import jsonschema
import numpy as np
import onnx
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES_SOURCE = ROOT / 'examples'
EXAMPLES = pathlib.Path(os.environ.get('SACCADE_BUILD', ROOT / 'build')) / 'examples'


def run(name, *args, **more):
    return subprocess.run([EXAMPLES / name, *map(str, args)], capture_output=True, timeout=900, **more)


@pytest.fixture(scope='module')
def detector(shared):
    return shared / 'models/yolox_nano_416.onnx'


@pytest.fixture(scope='module')
def pictures(shared, tmp_path_factory):
    """Ten frames of one scene with people in it, as a numbered sequence."""
    folder = tmp_path_factory.mktemp('pictures')
    picture = shared / 'train/detect/images/intel/onebyone_0067.jpg'
    for i in range(10):
        (folder / f'{i:03}{picture.suffix}').symlink_to(picture)
    return folder


def test_track(detector, pictures, tmp_path):
    video, lines = tmp_path / 'out.mp4', tmp_path / 'out.jsonl'
    done = run('track', pictures, detector, video, lines)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b'10 frames, ')
    assert sorted(p.name for p in tmp_path.iterdir()) == ['out.jsonl', 'out.mp4']
    schema = json.loads((ROOT / 'docs/tracks.schema.json').read_text())
    records = [json.loads(line) for line in lines.read_text().splitlines()]
    for record in records:
        jsonschema.validate(record, schema)
    assert [r['frame'] for r in records[1:]] == list(range(10))
    assert records[-1]['tracks'] and records[-1]['tracks'][0]['class'] == 'person'


def test_track_says_what_is_wrong(detector, tmp_path):
    assert run('track').returncode == 2
    done = run('track', tmp_path / 'none.mp4', detector, tmp_path / 'o.mp4', tmp_path / 'o.jsonl')
    assert done.returncode == 1
    assert b'none.mp4' in done.stderr
    assert not list(tmp_path.iterdir())


def test_push(detector):
    width, height, frames = 320, 240, 5
    done = run('push', detector, width, height, 10, input=bytes(width * height * 3 * frames + 17))
    assert done.returncode == 0, done.stderr
    results = [line for line in done.stdout.decode().splitlines() if line.startswith('frame ')]
    assert [line.split(':')[0] for line in results] == [f'frame {i}' for i in range(frames)]
    assert run('push').returncode == 2
    assert run('push', 'none.onnx', 8, 8, 10, input=b'').returncode == 1


def test_tensor(tmp_path):
    done = run('tensor', ROOT / 'models/person_det_fast.onnx', 'cpu')
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(b' boxes, 0 frames copied\n')
    assert run('tensor').returncode == 2
    done = run('tensor', tmp_path / 'none.onnx', 'cpu')
    assert done.returncode == 1 and b'none.onnx' in done.stderr


def test_serve(tmp_path):
    model = ROOT / 'tests/heads/embedding_nchw.onnx'
    done = run('serve', model, 'cpu')
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 24
    assert lines[0].startswith('request  0, priority 1: ') and ' in a batch of ' in lines[0]
    assert run('serve').returncode == 2
    done = run('serve', tmp_path / 'none.onnx', 'cpu')
    assert done.returncode == 1 and b'none.onnx' in done.stderr


def test_gpu_tensor(detector, pictures):
    done = run('gpu_tensor', pictures, detector, 'cpu')
    assert done.returncode == 0, done.stderr
    assert done.stdout == b'10 frames, 0 bytes between host and device\n'
    assert run('gpu_tensor').returncode == 2
    assert run('gpu_tensor', pictures, 'none.onnx', 'cpu').returncode == 1


def test_segment(pictures, tmp_path):
    out = tmp_path / 'people.mkv'
    done = run('segment', pictures, out)
    assert done.returncode == 0, done.stderr
    alpha = subprocess.run(['ffmpeg', '-v', 'error', '-i', out, '-vf', 'alphaextract', '-f', 'rawvideo', '-pix_fmt', 'gray', '-'],
                           capture_output=True, check=True, timeout=900).stdout
    shares = np.frombuffer(alpha, np.uint8).reshape(10, -1).mean(axis=1) / 255
    assert all(0.06 < share < 0.14 for share in shares)  # one person of 320 x 107 pixels in 640 x 360
    assert run('segment').returncode == 2
    done = run('segment', 'none.mp4', tmp_path / 'none.mkv')
    assert done.returncode == 1 and b'none.mp4' in done.stderr
    assert not (tmp_path / 'none.mkv').exists()


def test_opencv_compiles():
    """Against the public headers alone, with a stand-in for OpenCV."""
    done = subprocess.run(['c++', '-std=c++17', '-fsyntax-only', '-Wall', '-Wextra', '-Werror', f'-I{ROOT}/include',
                           f'-I{ROOT}/tests/pipeline/opencv_stub', EXAMPLES_SOURCE / 'opencv.cpp'],
                          capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr


def constant_boxes(path):
    """A network that sees two boxes in every picture: rows of centre, size, score, class."""
    rows = np.array([[[0.5, 0.5, 0.25, 0.5, 0.9, 0], [0.1, 0.2, 0.1, 0.1, 0.02, 0]]], np.float32)
    node = onnx.helper.make_node
    graph = onnx.helper.make_graph(
        [node('ReduceMean', ['x'], ['mean'], axes=[1, 2, 3], keepdims=0),
         node('Mul', ['mean', 'zero'], ['nothing']),
         node('Add', ['nothing', 'rows'], ['y'])],
        'constant', [onnx.helper.make_tensor_value_info('x', onnx.TensorProto.FLOAT, [1, 3, 64, 64])],
        [onnx.helper.make_tensor_value_info('y', onnx.TensorProto.FLOAT, [1, 2, 6])],
        [onnx.numpy_helper.from_array(rows, 'rows'),
         onnx.numpy_helper.from_array(np.zeros(1, np.float32), 'zero')])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid('', 13)])
    model.ir_version = 8
    onnx.save(model, path)


def test_head_plugin(saccade, tmp_path):
    constant_boxes(tmp_path / 'm.onnx')
    for i in range(8):
        (tmp_path / f'{i}.pgm').write_bytes(b'P5 320 200 255\n' + bytes([i]) * 320 * 200)
    lines = tmp_path / 'out.jsonl'
    done = saccade('track', tmp_path / '%d.pgm', '--detector', tmp_path / 'm.onnx', '--head',
                   EXAMPLES / 'head_plugin.so', '--jsonl', lines, '--tracker', 'sort')
    assert done.returncode == 0, done.stderr
    header, *frames = [json.loads(line) for line in lines.read_text().splitlines()]
    assert header['head'] == 'centre-shares'
    tracks = frames[-1]['tracks']
    assert len(tracks) == 1  # the other is under the least score
    assert tracks[0]['box'] == pytest.approx([120, 50, 200, 150], abs=0.5)
    assert tracks[0]['score'] == pytest.approx(0.9, abs=1e-3)
