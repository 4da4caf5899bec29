# SPDX-License-Identifier: Apache-2.0
"""Embedding models as files, through ONNX Runtime."""
import numpy as np


class OnnxEmbedding:
    """Crops [n,3,256,128] RGB 0..255 to rows of length 1. Ours ([N,3,H,W]) take RGB in 0..1; a network with
    channels last (person_reid_0288) takes BGR in 0..255, one picture at a time where its batch is fixed."""

    def __init__(self, path):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        port = self.session.get_inputs()[0]
        self.name, shape = port.name, port.shape
        self.channels_last = shape[3] == 3
        self.height, self.width = shape[1:3] if self.channels_last else shape[2:4]
        self.batch = shape[0] if isinstance(shape[0], int) else 64
        ours = "saccade.preprocess" in self.session.get_modelmeta().custom_metadata_map
        if (self.height, self.width) != (256, 128) or not (ours or self.channels_last):
            raise SystemExit(f"{path}: input {shape}; this takes our own embedding models and such as "
                             "person_reid_0288 ([N,256,128,3])")

    def __call__(self, x):
        x = np.asarray(x, np.float32)
        x = x[:, ::-1].transpose(0, 2, 3, 1) if self.channels_last else x / 255
        rows = []
        for i in range(0, len(x), self.batch):
            part = np.ascontiguousarray(x[i:i + self.batch])
            rows.append(self.session.run(None, {self.name: part})[0].reshape(len(part), -1))
        rows = np.concatenate(rows)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
