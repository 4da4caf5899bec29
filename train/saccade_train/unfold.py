# SPDX-License-Identifier: Apache-2.0
"""The weights of an exported matte network as those that a training goes on from.

An export keeps one convolution of the branches that a training has, with the normalisations folded in (nets.fuse).
Here each gets its branches and normalisations back, so that the network computes what the file does, in training and
in evaluation: a normalisation's statistics are those of real pictures, and its weight and bias undo them.
"""
import onnx
import torch
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from . import nets


def read_folded(path):
    """Name of a parameter of a fused PersonSeg -> its numbers, of a file that `matte export` or `segment export` made."""
    try:
        graph = onnx.load(path).graph
    except DecodeError:
        raise SystemExit(f"{path}: not an ONNX model") from None
    values = {t.name[:-len(".fp16")] if t.name.endswith(".fp16") else t.name: t for t in graph.initializer}
    return {name[len("net."):]: torch.from_numpy(numpy_helper.to_array(t).copy()).float()
            for name, t in values.items() if name.startswith("net.")}


def folded_net(path, config):
    """The network of the file in its inference form."""
    net, folded = nets.fuse(nets.PersonSeg(**config)), read_folded(path)
    mine = {k: tuple(v.shape) for k, v in net.state_dict().items()}
    if mine != {k: tuple(v.shape) for k, v in folded.items()}:
        raise SystemExit(f"{path}: holds another network than one of widths {config['widths']}, neck {config['neck']}")
    net.load_state_dict(folded)
    return net


@torch.no_grad()
def unfold(net, folded, x):
    """Give the PersonSeg `net`, as it is trained, the weights of the fused one; x: pictures [n,3,h,w] in 0..1 as the
    training will show them, of which the normalisations take their statistics."""
    fused = dict(folded.named_modules())
    hooks = [layer.register_forward_pre_hook(lambda mine, ins, theirs=fused[name].fused: settle(mine, theirs, ins[0]))
             for name, layer in net.named_modules() if isinstance(layer, nets.Conv)]
    net.out.load_state_dict(folded.out.state_dict())
    was = net.training
    net.eval()(x)
    net.train(was)
    for hook in hooks:
        hook.remove()


def settle(layer, fused, x):
    """A layer's branches: a 3x3 kernel's middle is shared with the 1x1 one, and the identity begins at 0."""
    weight, bias = fused.weight.clone(), fused.bias
    if layer.point is not None:
        middle = weight[:, :, 1:2, 1:2] / 2
        weight[:, :, 1:2, 1:2] -= middle
        undo(layer.point, layer.point_bn, middle, torch.zeros_like(bias), x)
    if layer.skip_bn is not None:
        layer.skip_bn.weight.zero_()
        layer.skip_bn.bias.zero_()
        observe(layer.skip_bn, x)
    undo(layer.conv, layer.bn, weight, bias, x)


def undo(conv, bn, weight, bias, x):
    """A convolution of weights as large as fresh ones, for the learning rate is made for those, and a normalisation
    that makes weight * x + bias of what comes out."""
    fresh = (3 * weight[0].numel()) ** -0.5
    size = weight.square().mean((1, 2, 3)).sqrt()
    scale = torch.where(size > 1e-8, fresh / size.clamp(min=1e-8), torch.ones_like(size))
    conv.weight.copy_(weight * scale[:, None, None, None])
    observe(bn, conv(x))
    bn.weight.copy_(torch.sqrt(bn.running_var + bn.eps) / scale)
    bn.bias.copy_(bn.running_mean / scale + bias)


def observe(bn, y):
    var, mean = torch.var_mean(y.float(), (0, 2, 3), unbiased=False)
    bn.running_mean.copy_(mean)
    bn.running_var.copy_(var)


@torch.no_grad()
def apart(net, folded, x):
    """How far the mattes of both are apart at most, in evaluation and in training (whose statistics are put back)."""
    kept = {k: v.clone() for k, v in net.state_dict().items()}
    was, want = net.training, torch.sigmoid(folded(x).float())
    out = [float((torch.sigmoid(net.train(mode)(x).float()) - want).abs().max()) for mode in (False, True)]
    net.train(was).load_state_dict(kept)
    return out


def mix(paths, shares, out):
    """The file whose every weight is the weighted mean of those of the files: networks that were trained from the same
    weights (Wortsman et al., Robust fine-tuning, CVPR 2022)."""
    models = [onnx.load(path) for path in paths]
    tables = [{t.name: numpy_helper.to_array(t) for t in m.graph.initializer} for m in models]
    shapes = [{k: v.shape for k, v in table.items()} for table in tables]
    if any(s != shapes[0] for s in shapes):
        raise SystemExit(f"{', '.join(map(str, paths))}: networks of different shapes")
    for t in models[0].graph.initializer:
        if t.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16):
            mean = sum(share * table[t.name].astype("float64") for share, table in zip(shares, tables)) / sum(shares)
            t.CopyFrom(numpy_helper.from_array(mean.astype(tables[0][t.name].dtype), t.name))
    onnx.save(models[0], out)
