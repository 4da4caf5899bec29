# SPDX-License-Identifier: Apache-2.0
"""ONNX export: opset 17, weights stored as FP16 behind a Cast, the model contract in metadata_props."""
import io
import warnings

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper


def contract(head, preprocess, classes=(), **more):
    """The metadata that saccade reads (docs/models.md): `preprocess` in the text form of --preprocess, class
    names in order. What else there is to tell about the training goes in as saccade.NAME."""
    entries = {"saccade.head": head, "saccade.preprocess": preprocess}
    if classes:
        entries["saccade.classes"] = ",".join(classes)
    return entries | {f"saccade.{key}": str(value) for key, value in more.items()}


def to_onnx(module, shape, output, contract):
    """module(x [N,C,H,W] float) as an ONNX model with a free batch; `contract` becomes metadata_props."""
    buffer = io.BytesIO()
    extra = {"dynamo": False} if "dynamo" in torch.onnx.export.__code__.co_varnames else {}
    with warnings.catch_warnings():
        # PyTorch 1.13 says it of every constant; nothing follows from it
        warnings.filterwarnings("ignore", message="The shape inference of prim::Constant type is missing")
        torch.onnx.export(module.eval().cpu().float(), torch.zeros(shape), buffer, opset_version=17,
                          input_names=["images"], output_names=[output],
                          dynamic_axes={"images": {0: "n"}, output: {0: "n"}}, **extra)
    model = onnx.load_from_string(buffer.getvalue())
    for key, value in contract.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, str(value)
    return model


def store_half(model, least=64):
    """Keep weights of at least `least` numbers as FP16, with a Cast to FP32 that the engine folds away."""
    graph, casts = model.graph, []
    for t in graph.initializer:
        if t.data_type == TensorProto.FLOAT and np.prod(t.dims) >= least:
            name, value = t.name, numpy_helper.to_array(t).astype(np.float16)
            t.CopyFrom(numpy_helper.from_array(value, name + ".fp16"))
            casts.append(helper.make_node("Cast", [name + ".fp16"], [name], to=TensorProto.FLOAT))
    for node in reversed(casts):
        graph.node.insert(0, node)
    onnx.checker.check_model(model)
    return model
