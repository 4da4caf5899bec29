# SPDX-License-Identifier: Apache-2.0
"""The committed fixtures are what make.py makes, and their references are what ONNX Runtime says."""
import importlib.util
import os

import numpy as np
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
onnx = pytest.importorskip("onnx")
spec = importlib.util.spec_from_file_location("make_models", os.path.join(HERE, "make.py"))
make = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make)


@pytest.mark.parametrize("name", make.MODELS)
def test_fixture(name):
    pytest.importorskip("onnxruntime")
    net, outputs, options = make.MODELS[name]()
    model = net.model(outputs, **options)
    results = make.reference(model, np.load(os.path.join(HERE, "input.npy")))
    committed = onnx.load(os.path.join(HERE, name + ".onnx"))
    assert [n.op_type for n in committed.graph.node] == [n.op_type for n in model.graph.node]
    for ours, theirs in zip(model.graph.initializer, committed.graph.initializer):
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(ours),
                                      onnx.numpy_helper.to_array(theirs))
    for i, y in enumerate(results):
        want = np.load(os.path.join(HERE, f"{name}.out{i}.npy"))
        np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4 * max(1, np.abs(want).max()))
