# SPDX-License-Identifier: Apache-2.0
"""The first two models against ONNX Runtime: as planned, node by node, and with the plain C kernels;
one input, and a stack of three that the files, fixed to a batch of 1, do not know."""
import os
import subprocess

import numpy as np
import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(os.environ.get("SACCADE_BUILD", os.path.join(ROOT, "build")), "src", "cli",
                       "saccade")
MODELS = os.path.join(os.environ.get("SACCADE_SHARED", os.path.join(ROOT, "..", "shared")), "data",
                      "models")


@pytest.fixture(scope="module", params=["yolox_nano_416", "person_reid_0288"])
def case(request):
    """Path, a stack of three inputs, and what ONNX Runtime makes of each."""
    ort = pytest.importorskip("onnxruntime")
    path = os.path.join(MODELS, request.param + ".onnx")
    if not os.path.exists(path):
        pytest.skip(f"no {path}")
    if not os.path.exists(PROGRAM):
        pytest.skip(f"no {PROGRAM}: build first")
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    port = session.get_inputs()[0]
    rng = np.random.default_rng(1)
    stack = (rng.random([3] + port.shape[1:]) * 255).astype(np.float32)
    wants = np.concatenate([session.run(None, {port.name: stack[i:i + 1]})[0] for i in range(3)])
    return path, stack, wants


@pytest.mark.parametrize("options", [[], ["--no-optimize"], ["--reference"]], ids=" ".join)
@pytest.mark.parametrize("count", [1, 3])
def test_equals_onnx_runtime(case, count, options, tmp_path):
    path, stack, wants = case
    np.save(tmp_path / "in.npy", stack[:count])
    subprocess.run([PROGRAM, "infer", path, "--input", str(tmp_path / "in.npy"), "--output",
                    str(tmp_path / "out"), "--threads", "1", *options], check=True)
    written = list((tmp_path / "out").iterdir())
    assert len(written) == 1
    np.testing.assert_allclose(np.load(written[0]), wants[:count], rtol=1e-3,
                               atol=1e-4 * np.abs(wants).max())
