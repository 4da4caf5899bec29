# SPDX-License-Identifier: Apache-2.0
"""ONNX export: opset 17, weights stored as FP16 behind a Cast, the model contract in metadata_props. As a command:
from any PyTorch module or checkpoint to an ONNX file, and to a plan with its latency and throughput.

    python3 -m saccade_train.export net.py:build --weights ckpt.pt --shape 3,224,224 -o net.onnx --plan net.plan
"""
import argparse
import importlib
import importlib.util
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ModuleNotFoundError:
    if __name__ != "__main__":
        raise
    raise SystemExit("onnx is not installed: python3 -m pip install onnx") from None

from . import faults


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


# ---- the command ----

def load_module(spec):
    """FILE.py:NAME or package.module:NAME, a function without arguments, a class or a module; or a file that
    torch.save or torch.jit.save wrote a whole module to. A pickled one runs the code that is in it."""
    if ":" not in spec or Path(spec).exists():
        return load_whole(spec)
    place, name = spec.rsplit(":", 1)
    if place.endswith(".py"):
        if not Path(place).exists():
            raise SystemExit(f"{place}: there is no such file")
        sys.path.insert(0, str(Path(place).resolve().parent))
        found = importlib.util.spec_from_file_location(Path(place).stem, place)
        source = importlib.util.module_from_spec(found)
        found.loader.exec_module(source)
    else:
        sys.path.insert(0, os.getcwd())
        source = importlib.import_module(place)
    if not hasattr(source, name):
        raise SystemExit(f"{place}: it has no '{name}'")
    made = getattr(source, name)
    if not callable(made):
        raise SystemExit(f"{spec}: it is a {type(made).__name__}; a function, a class or a torch.nn.Module is needed")
    made = made if isinstance(made, torch.nn.Module) else made()
    if not isinstance(made, torch.nn.Module):
        raise SystemExit(f"{spec}: it gave a {type(made).__name__}, and not a torch.nn.Module")
    return made


def load_pickled(path):
    more = {"weights_only": False} if "weights_only" in torch.load.__code__.co_varnames else {}
    return torch.load(path, map_location="cpu", **more)


def load_whole(path):
    if not Path(path).exists():
        raise SystemExit(f"{path}: there is no such file; what builds a module is named FILE.py:NAME")
    try:
        return torch.jit.load(path, map_location="cpu")
    except RuntimeError:
        made = load_pickled(path)
    if not isinstance(made, torch.nn.Module):
        raise SystemExit(f"{path}: it holds a {type(made).__name__}, not a module; if these are weights, name what "
                         "builds the module, as FILE.py:NAME, and give them with --weights")
    return made


def weights_of(path):
    """A state dictionary, alone or in a checkpoint, without what DataParallel and torch.compile put before names."""
    held = load_pickled(path)
    if isinstance(held, torch.nn.Module):
        return held.state_dict()
    for key in ("state_dict", "model_state_dict", "model", "ema", "weights"):
        if isinstance(held, dict) and isinstance(held.get(key), (dict, torch.nn.Module)):
            held = held[key].state_dict() if isinstance(held[key], torch.nn.Module) else held[key]
            break
    if not isinstance(held, dict) or not any(isinstance(v, torch.Tensor) for v in held.values()):
        raise SystemExit(f"{path}: it holds no weights: a state dictionary, alone or as 'state_dict', 'model' or "
                         "'model_state_dict'")
    for prefix in ("module.", "_orig_mod."):
        if all(name.startswith(prefix) for name in held):
            held = {name[len(prefix):]: value for name, value in held.items()}
    return held


def put_weights(module, path):
    given, own = weights_of(path), module.state_dict()
    for names, said in (([n for n in own if n not in given], "lacks"), ([n for n in given if n not in own], "has")):
        if names:
            raise SystemExit(f"{path}: it {said} '{names[0]}'{f' and {len(names) - 1} more' if names[1:] else ''}, "
                             f"which the module {'has' if said == 'lacks' else 'lacks'}")
    for name, value in own.items():
        if tuple(value.shape) != tuple(given[name].shape):
            raise SystemExit(f"{path}: '{name}' is {list(given[name].shape)}; the module has {list(value.shape)}")
    module.load_state_dict(given)


def shape_of(text):
    try:
        dims = [int(n) for n in text.split(",")]
    except ValueError:
        dims = []
    if not dims or min(dims) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no shape of one sample, such as 3,224,224")
    return tuple(dims)


def find_program(given):
    built = Path(__file__).resolve().parents[2] / "build/src/cli/saccade"
    program = given or os.environ.get("SACCADE_BIN") or shutil.which("saccade") or (built.exists() and str(built))
    if not program:
        raise SystemExit("no program 'saccade' on PATH: --program says where it is")
    return program


def run(command):
    """Its standard output; what it has to say goes to the terminal, and a failure is ours."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    except OSError as why:
        raise SystemExit(f"{command[0]}: {why.strerror}")
    if done.returncode:
        sys.stdout.write(done.stdout)
        raise SystemExit(f"failed with status {done.returncode}: {shlex.join(command)}")
    return done.stdout


def make_plan(args, program):
    command = [program, "build", str(args.output), "-o", str(args.plan), "--batch", args.batch.replace(",", ":"),
               *(["--device", args.device] if args.device else []),
               *(["--precision", args.precision] if args.precision else []), *args.build]
    sys.stdout.write(run(command))


def time_it(args, program, path):
    """A line for each batch: the median of its runs and how many items that is in a second."""
    sizes = sorted({int(n) for n in args.batch.replace(":", ",").split(",")})
    text = run([program, "bench", str(path), "--json", "--batch", ",".join(map(str, sizes)), "--seconds",
                str(args.seconds), *(["--device", args.device] if args.device else []),
                *(["--precision", args.precision] if args.precision and path == args.output else [])])
    found = json.loads(text)
    for row in found["batches"]:
        print(f"{path}: {found['precision']} on {found['device']}, batch {row['batch']}: latency "
              f"{row['median_ms']:.3f} ms, throughput {row['items_per_s']:.1f} items/s")


def export(args):
    module = load_module(args.module)
    if args.weights:
        put_weights(module, args.weights)
    entries = contract(args.head, args.preprocess or "", args.classes.split(",") if args.classes else ()) \
        if args.head else {"saccade.preprocess": args.preprocess} if args.preprocess else {}
    model = to_onnx(module, (1, *args.shape), args.output_name, entries)
    if args.half:
        store_half(model)
    args.output.write_bytes(model.SerializeToString())
    print(f"{args.output}: {args.output.stat().st_size / 1e6:.1f} MB, images [n,{','.join(map(str, args.shape))}]")
    if args.plan or args.time:
        program = find_program(args.program)
        if args.plan:
            make_plan(args, program)
        time_it(args, program, args.plan or args.output)


def main():
    parser = argparse.ArgumentParser(prog="saccade_train.export", description=__doc__.split("\n\n")[0],
                                     epilog="What follows -- goes to saccade build: -- --calibrate DIR")
    parser.add_argument("module", help="FILE.py:NAME or package.module:NAME, what builds the module; or a file with a "
                                       "whole one (torch.save, torch.jit.save)")
    parser.add_argument("--weights", help="a checkpoint: a state dictionary, alone or among other things")
    parser.add_argument("--shape", type=shape_of, required=True, help="of one sample: 3,224,224")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the ONNX file")
    parser.add_argument("--output-name", default="output", help="of the network's output (default output)")
    parser.add_argument("--half", action="store_true", help="keep weights in half precision: half the file")
    parser.add_argument("--head", help="what the outputs are (docs/models.md); for the file's metadata")
    parser.add_argument("--preprocess", help="how pixels become its input, as --preprocess of saccade")
    parser.add_argument("--classes", help="names, with commas")
    parser.add_argument("--plan", type=Path, help="build a plan, too, and time it")
    parser.add_argument("--time", action="store_true", help="without a plan: time the ONNX file")
    parser.add_argument("--precision", help="as of saccade build: fp32, tf32, fp16, int8, fp8")
    parser.add_argument("--device", help="as of saccade: cpu, cuda, cuda:N")
    parser.add_argument("--batch", default="1", help="batches to plan for and to time: 1, or 1:8:32 (default 1)")
    parser.add_argument("--seconds", type=float, default=1, help="that each batch is timed (default 1)")
    parser.add_argument("--program", help="saccade; default: SACCADE_BIN, the one on PATH, or build/")
    arguments = sys.argv[1:]
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    args = parser.parse_args(arguments[:cut])
    args.build = arguments[cut + 1:]
    with faults.as_sentences():
        export(args)


if __name__ == "__main__":
    main()
