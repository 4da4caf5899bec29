#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""DeepLabV3 on ResNet-50 with two classes and random weights, as torchvision builds it, as an ONNX file.

    python3 bench/gpu/deeplab.py OUT.onnx [SIDE [dynamo|script]]

Input [N,3,SIDE,SIDE] (512) with a free batch, output [N,2,SIDE,SIDE]: logits of "background" and "person", which the file's
metadata names. Without a third argument both exporters of PyTorch are tried, the older one first: it asks for less.
"""
import pathlib
import sys
import warnings

import torch
from torchvision.models.segmentation import deeplabv3_resnet50

OPSET, CLASSES = 17, ("background", "person")
# As torchvision's weights want their pictures: RGB in 0..1, less ImageNet's mean, over its deviation.
PREPROCESS = "rgb,stretch,mean=123.675:116.28:103.53,std=58.395:57.12:57.375"


class Logits(torch.nn.Module):
    """Its normalisations are set by one random batch, so that numbers stay in float16's range through all layers."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body = deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=len(CLASSES), aux_loss=False)
        for module in self.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = 1.0
        with torch.no_grad():
            self.train()(torch.randn(2, 3, 256, 256))

    def forward(self, x):
        return self.body(x)["out"]


def export(path, side, exporter):
    picture, names = torch.zeros(2, 3, side, side), {"input_names": ["picture"], "output_names": ["out"], "opset_version": OPSET}
    model = Logits().eval()
    if exporter == "dynamo":
        batch = torch.export.Dim("n", min=1, max=256)
        torch.onnx.export(model, (picture,), str(path), dynamo=True, dynamic_shapes=({0: batch},), external_data=False, **names)
    else:
        torch.onnx.export(model, (picture,), str(path), dynamo=False, dynamic_axes={"picture": {0: "n"}, "out": {0: "n"}}, **names)


def describe(path):
    import onnx
    model = onnx.load(str(path))
    for key, value in {"saccade.preprocess": PREPROCESS, "saccade.classes": ",".join(CLASSES)}.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.save(model, str(path))


def main():
    if len(sys.argv) not in (2, 3, 4) or sys.argv[3:] not in ([], ["dynamo"], ["script"]) or not (sys.argv[2:] or ["1"])[0].isdigit():
        sys.exit(__doc__)
    path, side, why = pathlib.Path(sys.argv[1]), int((sys.argv[2:] or [512])[0]), None
    warnings.filterwarnings("ignore")
    for exporter in sys.argv[3:] or ("script", "dynamo"):
        try:
            export(path, side, exporter)
            describe(path)
            print(f"{path}: {path.stat().st_size / 1e6:.0f} MB, by the exporter '{exporter}' of PyTorch {torch.__version__}")
            return
        except Exception as fault: # what exporters raise is not documented
            why = fault
            print(f"the exporter '{exporter}': {type(fault).__name__}: {str(fault)[:300]}", file=sys.stderr)
    raise SystemExit(f"deeplab.py: no exporter worked: {why}")


if __name__ == "__main__":
    main()
