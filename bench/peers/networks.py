# SPDX-License-Identifier: Apache-2.0
"""The networks that saccade's engine is measured against, as PyTorch modules of our own with random weights.

They have the shapes of well-known ones: YOLOX-S and -nano (Ge et al., 2021), DeepLabV3 and V3+ on ResNet-50 (Chen
et al., 2017, 2018), ResNet-50 (He et al., 2015) as an embedding of persons, and those of yolo.py and persons.py. Those
of other people (OTHERS) come from torchvision, timm and transformers, as they are.

    python3 bench/peers/networks.py FOLDER [NAME ...]     writes NAME.onnx, float32, batch free
"""
import inspect
import math
import pathlib
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import nn

import persons
import yolo
from layers import Conv

# ---- YOLOX ----

def spatial(c_in, c_out, stride, depthwise):
    """A 3x3 convolution, or a depthwise one and one of 1x1."""
    if not depthwise:
        return Conv(c_in, c_out, 3, stride)
    return nn.Sequential(Conv(c_in, c_in, 3, stride, groups=c_in), Conv(c_in, c_out))


class Bottleneck(nn.Module):
    def __init__(self, c, shortcut, depthwise):
        super().__init__()
        self.body = nn.Sequential(Conv(c, c), spatial(c, c, 1, depthwise))
        self.shortcut = shortcut

    def forward(self, x):
        return x + self.body(x) if self.shortcut else self.body(x)


class CrossStage(nn.Module):
    def __init__(self, c_in, c_out, n, shortcut=True, depthwise=False):
        super().__init__()
        half = c_out // 2
        self.main, self.side, self.leave = Conv(c_in, half), Conv(c_in, half), Conv(2 * half, c_out)
        self.body = nn.Sequential(*(Bottleneck(half, shortcut, depthwise) for _ in range(n)))

    def forward(self, x):
        return self.leave(torch.cat((self.body(self.main(x)), self.side(x)), 1))


class Pooling(nn.Module):
    """The picture at four sizes of window."""

    def __init__(self, c):
        super().__init__()
        self.enter, self.leave = Conv(c, c // 2), Conv(c * 2, c)

    def forward(self, x):
        x = self.enter(x)
        return self.leave(torch.cat([x] + [F.max_pool2d(x, k, 1, k // 2) for k in (5, 9, 13)], 1))


class Focus(nn.Module):
    """Every second pixel to a channel of its own."""

    def __init__(self, c_out):
        super().__init__()
        self.conv = Conv(12, c_out, 3)

    def forward(self, x):
        return self.conv(torch.cat((x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]), 1))


class Yolox(nn.Module):
    """[N,3,S,S] pixels in 0..255 to [N,cells,5 + classes], boxes not decoded."""

    def __init__(self, width, depth, depthwise=False, classes=80):
        super().__init__()
        c = [round(width * channels) for channels in (64, 128, 256, 512, 1024)]
        n, dw = max(round(depth * 3), 1), depthwise
        self.stem = Focus(c[0])
        self.dark2 = nn.Sequential(spatial(c[0], c[1], 2, dw), CrossStage(c[1], c[1], n, depthwise=dw))
        self.dark3 = nn.Sequential(spatial(c[1], c[2], 2, dw), CrossStage(c[2], c[2], 3 * n, depthwise=dw))
        self.dark4 = nn.Sequential(spatial(c[2], c[3], 2, dw), CrossStage(c[3], c[3], 3 * n, depthwise=dw))
        self.dark5 = nn.Sequential(spatial(c[3], c[4], 2, dw), Pooling(c[4]),
                                   CrossStage(c[4], c[4], n, False, dw))
        self.lateral5, self.lateral4 = Conv(c[4], c[3]), Conv(c[3], c[2])
        self.up4 = CrossStage(2 * c[3], c[3], n, False, dw)
        self.up3 = CrossStage(2 * c[2], c[2], n, False, dw)
        self.down3, self.down4 = spatial(c[2], c[2], 2, dw), spatial(c[3], c[3], 2, dw)
        self.out4 = CrossStage(2 * c[2], c[3], n, False, dw)
        self.out5 = CrossStage(2 * c[3], c[4], n, False, dw)
        h = c[2]
        tower = lambda: nn.Sequential(spatial(h, h, 1, dw), spatial(h, h, 1, dw))
        self.stems = nn.ModuleList(Conv(channels, h) for channels in c[2:])
        self.class_towers, self.box_towers = (nn.ModuleList(tower() for _ in range(3)) for _ in range(2))
        self.classes = nn.ModuleList(nn.Conv2d(h, classes, 1) for _ in range(3))
        self.boxes = nn.ModuleList(nn.Conv2d(h, 4, 1) for _ in range(3))
        self.objects = nn.ModuleList(nn.Conv2d(h, 1, 1) for _ in range(3))
        for layer in [*self.classes, *self.objects]: # as before training: nothing is found
            nn.init.constant_(layer.bias, -math.log(0.99 / 0.01))

    def features(self, x):
        c3 = self.dark3(self.dark2(self.stem(x)))
        c4 = self.dark4(c3)
        l5 = self.lateral5(self.dark5(c4))
        l4 = self.lateral4(self.up4(torch.cat((F.interpolate(l5, scale_factor=2.0), c4), 1)))
        p3 = self.up3(torch.cat((F.interpolate(l4, scale_factor=2.0), c3), 1))
        p4 = self.out4(torch.cat((self.down3(p3), l4), 1))
        return p3, p4, self.out5(torch.cat((self.down4(p4), l5), 1))

    def forward(self, x):
        rows = []
        for i, feature in enumerate(self.features(x)):
            feature = self.stems[i](feature)
            box = self.box_towers[i](feature)
            out = torch.cat((self.boxes[i](box), self.objects[i](box).sigmoid(),
                             self.classes[i](self.class_towers[i](feature)).sigmoid()), 1)
            rows.append(out.flatten(2))
        return torch.cat(rows, 2).permute(0, 2, 1)


class Planted(nn.Module):
    """A YOLOX with random weights that finds `people` persons at fixed places of a 16:9 picture, each in several
    cells as a trained one would, and nothing else: what follows it has its usual work, from boxes on the GPU."""

    def __init__(self, net, size, people=10, classes=80):
        super().__init__()
        self.net = net
        grids = [size // stride for stride in (8, 16, 32)]
        cells = sum(grid * grid for grid in grids)
        keep, plant = torch.ones(1, cells, 5 + classes), torch.zeros(1, cells, 5 + classes)
        keep[..., 4] = 0.01 # what noise finds is no object
        first, grid, columns = grids[0] ** 2, grids[1], people // 2
        for i in range(people):
            x = 2 + i % columns * (grid - 4) // columns
            y = grid // 8 + i // columns * (grid // 4)
            for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)): # neighbours that mean the same person: work for NMS
                row = first + (y + dy) * grid + x + dx
                keep[0, row] = 0
                plant[0, row, :2] = torch.tensor((0.5 - dx, 0.5 - dy))
                plant[0, row, 2:4] = torch.tensor((size / 14 / 16, size / 5 / 16)).log()
                plant[0, row, 4], plant[0, row, 5] = 0.95 - 0.02 * (dx + dy), 0.95
        self.register_buffer("keep", keep)
        self.register_buffer("plant", plant)

    def forward(self, x):
        return self.net(x) * self.keep + self.plant


# ---- ResNet-50 and what stands on it ----

class Residual(nn.Module):
    def __init__(self, c_in, c, stride=1, dilation=1):
        super().__init__()
        relu = nn.ReLU
        self.body = nn.Sequential(Conv(c_in, c, act=relu), Conv(c, c, 3, stride, dilation, act=relu),
                                  Conv(c, 4 * c, act=None))
        self.skip = Conv(c_in, 4 * c, 1, stride, act=None) if stride > 1 or c_in != 4 * c else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def resnet50(strides=(1, 2, 2, 2), dilations=(1, 1, 1, 1)):
    layers = [Conv(3, 64, 7, 2, act=nn.ReLU), nn.MaxPool2d(3, 2, 1)]
    c_in = 64
    for c, n, stride, dilation in zip((64, 128, 256, 512), (3, 4, 6, 3), strides, dilations):
        for i in range(n):
            layers.append(Residual(c_in, c, stride if i == 0 else 1, dilation))
            c_in = 4 * c
    return nn.Sequential(*layers)


class Embedding(nn.Module):
    """[N,3,256,128] to [N,2048], the mean over the map."""

    def __init__(self):
        super().__init__()
        self.body = resnet50()

    def forward(self, x):
        return self.body(x).mean((2, 3))


class Aspp(nn.Module):
    def __init__(self, c_in, c=256, rates=(12, 24, 36)):
        super().__init__()
        relu = nn.ReLU
        self.parts = nn.ModuleList([Conv(c_in, c, act=relu)] + [Conv(c_in, c, 3, 1, r, act=relu) for r in rates])
        self.whole = Conv(c_in, c, act=relu)
        self.leave = Conv(5 * c, c, act=relu)

    def forward(self, x):
        whole = self.whole(x.mean((2, 3), keepdim=True))
        return self.leave(torch.cat([part(x) for part in self.parts] + [whole.expand(-1, -1, *x.shape[2:])], 1))


class DeepLab(nn.Module):
    """[N,3,512,512] to [N,21,512,512]."""

    def __init__(self, classes=21):
        super().__init__()
        self.body = resnet50(strides=(1, 2, 1, 1), dilations=(1, 1, 2, 4))
        self.head = nn.Sequential(Aspp(2048), Conv(256, 256, 3, act=nn.ReLU), nn.Conv2d(256, classes, 1))

    def forward(self, x):
        return F.interpolate(self.head(self.body(x)), size=x.shape[2:], mode="bilinear", align_corners=False)


class DeepLabPlus(nn.Module):
    """DeepLabV3+ (Chen et al., 2018), maps of a sixteenth: [N,3,512,512] to [N,21,512,512]."""

    def __init__(self, classes=21):
        super().__init__()
        relu, layers = nn.ReLU, resnet50(strides=(1, 2, 2, 1), dilations=(1, 1, 1, 2))
        self.early, self.late = layers[:5], layers[5:]
        self.aspp, self.narrow = Aspp(2048, rates=(6, 12, 18)), Conv(256, 48, act=relu)
        self.head = nn.Sequential(Conv(304, 256, 3, act=relu), Conv(256, 256, 3, act=relu), nn.Conv2d(256, classes, 1))

    def forward(self, x):
        size = lambda a, like: F.interpolate(a, size=like.shape[2:], mode="bilinear", align_corners=False)
        early = self.early(x)
        return size(self.head(torch.cat((size(self.aspp(self.late(early)), early), self.narrow(early)), 1)), x)


# ---- networks of other people, from their packages ----

class Outputs(nn.Module):
    """A module that returns an object, as one that returns what `take` reads from it."""

    def __init__(self, module, take):
        super().__init__()
        self.module, self.take = module, take

    def forward(self, x):
        return self.take(self.module(x))


def torchvision_model(name, take=None, **options):
    def make():
        import torchvision
        module = torchvision.models.get_model(name, weights=None, **options)
        return Outputs(module, take) if take else module
    return make


def timm_model(name):
    def make():
        import timm
        return timm.create_model(name)
    return make


def transformers_model(model, config, take, **options):
    def make():
        import transformers
        configuration = getattr(transformers, config)(**options)
        return Outputs(getattr(transformers, model)(configuration), take)
    return make


def detection(name, num_labels=80, **options):
    return transformers_model(name + "ForObjectDetection", name + "Config",
                              lambda o: torch.cat((o.logits, o.pred_boxes), -1), num_labels=num_labels, **options)


# ---- all of them ----

class Network:
    def __init__(self, make, shape, batches, metadata):
        self.make, self.shape, self.batches, self.metadata = make, shape, batches, metadata


YOLOX_METADATA = {"saccade.head": "yolox", "saccade.preprocess": "bgr,letterbox=topleft,mean=0,scale=1,fill=114"}
REID_METADATA = {"saccade.head": "embedding", "saccade.preprocess": "rgb,stretch,mean=123.7:116.3:103.5,std=58.4:57.1:57.4"}
NETWORKS = {
    "yolox_s": Network(lambda: Yolox(0.5, 0.33), (3, 640, 640), (1, 8, 32), YOLOX_METADATA),
    "yolox_nano": Network(lambda: Yolox(0.25, 0.33, True), (3, 416, 416), (1, 8, 32), YOLOX_METADATA),
    "yolox_s_people": Network(lambda: Planted(Yolox(0.5, 0.33), 640), (3, 640, 640), (1, 8, 32), YOLOX_METADATA),
    "yolox_nano_people": Network(lambda: Planted(Yolox(0.25, 0.33, True), 416), (3, 416, 416), (1, 8, 32),
                                 YOLOX_METADATA),
    "deeplabv3_r50": Network(DeepLab, (3, 512, 512), (1, 8, 32), {}),
    "deeplabv3plus_r50": Network(DeepLabPlus, (3, 512, 512), (1, 4, 8, 32), {}),
    "resnet50_reid": Network(Embedding, (3, 256, 128), (1, 32, 128), REID_METADATA),
    "osnet_x1": Network(persons.OsNet, (3, 256, 128), (1, 8, 32), REID_METADATA),
    "matting": Network(persons.Matting, (3, 512, 512), (1, 8, 32), {}),
    "yolov8_s": Network(yolo.yolov8_s, (3, 640, 640), (1, 8, 32), {}),
    "yolo11_s": Network(yolo.yolo11_s, (3, 640, 640), (1, 8, 32), {}),
    "yolo12_s": Network(yolo.yolo12_s, (3, 640, 640), (1, 8, 32), {}),
}
BACKBONE = {"use_timm_backbone": True, "use_pretrained_backbone": False, "backbone": "resnet50"}
OTHERS = { # name: how to make it, size of its square pictures
    "resnet18": (torchvision_model("resnet18"), 224),
    "wide_resnet50_2": (torchvision_model("wide_resnet50_2"), 224),
    "vgg16": (torchvision_model("vgg16"), 224),
    "fcn_resnet50": (torchvision_model("fcn_resnet50", lambda o: o["out"], weights_backbone=None), 512),
    "mobilenet_v3_l": (torchvision_model("mobilenet_v3_large"), 224),
    "efficientnet_b0": (torchvision_model("efficientnet_b0"), 224),
    "regnet_y_400mf": (torchvision_model("regnet_y_400mf"), 224),
    "convnext_t": (torchvision_model("convnext_tiny"), 224),
    "vit_b_16": (torchvision_model("vit_b_16"), 224),
    "vit_l_16": (torchvision_model("vit_l_16"), 224),
    "swin_t": (torchvision_model("swin_t"), 224),
    "lraspp": (torchvision_model("lraspp_mobilenet_v3_large", lambda o: o["out"], weights_backbone=None), 512),
    "deit_tiny": (timm_model("deit_tiny_patch16_224"), 224),
    "maxvit_rmlp_pico": (timm_model("maxvit_rmlp_pico_rw_256"), 256),
    "mobilevit_s": (timm_model("mobilevit_s"), 256),
    "segformer_b0": (transformers_model("SegformerForSemanticSegmentation", "SegformerConfig", lambda o: o.logits,
                                        num_labels=2), 512),
    "dinov2_s": (transformers_model("Dinov2Model", "Dinov2Config", lambda o: o.last_hidden_state, hidden_size=384,
                                    num_attention_heads=6, num_hidden_layers=12, image_size=224, patch_size=14), 224),
    "rtdetr_r50": (detection("RTDetr", freeze_backbone_batch_norms=False), 640),
    "dfine": (detection("DFine", freeze_backbone_batch_norms=False), 640),
    "detr_r50": (detection("Detr", num_labels=2, **BACKBONE), 640),
}
NETWORKS |= {name: Network(make, (3, size, size), (1, 8, 32), {}) for name, (make, size) in OTHERS.items()}


def pictures(shape, device):
    """Two of noise in 0..1 and six of smaller and larger areas, about normal, as pictures less their mean are."""
    areas = [F.interpolate(torch.randn((1, shape[0], *(side // cell + 1 for side in shape[1:])), device=device),
                           scale_factor=float(cell))[..., :shape[1], :shape[2]] for cell in (4, 16, 16, 16, 32, 64)]
    areas = torch.cat(areas) + 0.3 * torch.randn((6, *shape), device=device)
    return torch.cat((torch.rand((2, *shape), device=device), areas))


NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


@torch.no_grad()
def build(name, device="cpu"):
    """The network with random weights, the same each time. Its normalisations are set by a batch of pictures of several
    kinds: after noise alone, which looks the same everywhere, they would blow other pictures up beyond float16."""
    torch.manual_seed(0)
    network = NETWORKS[name]
    module = network.make().to(device)
    for m in module.modules():
        if isinstance(m, NORMS):
            m.momentum = 1.0
        if isinstance(m, nn.Linear) and not m.weight.any():  # a head that begins with zeros shows no error
            nn.init.normal_(m.weight, std=m.in_features ** -0.5)
    if any(isinstance(m, NORMS) for m in module.modules()):
        module.train()(pictures(network.shape, device) * (255 if name.startswith("yolox") else 1))
    return module.eval()


def export(name, path):
    network = NETWORKS[name]
    extra = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = build(name, "cuda" if torch.cuda.is_available() else "cpu").cpu()
        torch.onnx.export(module, torch.zeros((1, *network.shape)), str(path), opset_version=17,
                          input_names=["images"], output_names=["output"],
                          dynamic_axes={"images": {0: "n"}, "output": {0: "n"}}, **extra)
    append_metadata(path, network.metadata)


def append_metadata(path, metadata):
    """ModelProto's field 14, entries of key and value: a message may be continued at its end."""
    def field(number, payload):
        size, length = b"", len(payload)
        while length > 127:
            size, length = size + bytes([length & 127 | 128]), length >> 7
        return bytes([number << 3 | 2]) + size + bytes([length]) + payload
    with open(path, "ab") as file:
        for key, value in metadata.items():
            file.write(field(14, field(1, key.encode()) + field(2, value.encode())))


def main():
    if len(sys.argv) < 2 or any(name not in NETWORKS for name in sys.argv[2:]):
        sys.exit(__doc__ + "\nNAME: " + ", ".join(NETWORKS))
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or NETWORKS:
        export(name, folder / f"{name}.onnx")
        print(folder / f"{name}.onnx")


if __name__ == "__main__":
    main()
