#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the ONNX project's own node tests against libsaccade.

Takes every case whose inputs and outputs are tensors of dtypes that saccade has, runs its model, and
compares with the expected outputs by the case's own tolerances, as onnx.backend.test does. pass.txt
lists the cases that must pass: one of them failing is a regression, exit status 1.

    run.py --library build/libsaccade.so            compare with pass.txt
    run.py --library build/libsaccade.so --update   rewrite pass.txt
    run.py --library build/libsaccade.so -k resize  only cases whose name contains it, with reasons

The cases run in a child process, so that a crash costs one case and not the rest.
"""
import argparse
import collections
import ctypes as C
import os
import subprocess
import sys
import warnings

import numpy as np

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))
from structs import structure  # noqa: E402

PASS_LIST = os.path.join(FOLDER, "pass.txt")
Desc, Params = structure("sac_tensor_desc"), structure("sac_model_params")
# enum sac_dtype in order; bfloat16 is ml_dtypes', which onnx brings along.
DTYPES = [None, "float32", "float16", "float64", "bfloat16", "int8", "uint8", "int16", "uint16",
          "int32", "uint32", "int64", "uint64", "bool"]


class Unsupported(Exception):
    """The engine says that it does not have something; the case is not counted as wrong."""


class Engine:
    """The few calls of the public interface that a model run needs."""

    def __init__(self, path, reference, optimise):
        self.lib = C.CDLL(path)
        self.lib.sac_tensor_data.restype = C.c_void_p
        self.lib.sac_tensor_describe.restype = C.POINTER(Desc)
        self.lib.sac_model_params_default.restype = Params
        self.lib.sac_context_last_error.restype = C.c_size_t
        self.params = self.lib.sac_model_params_default()
        self.params.reference = reference
        self.params.optimise = optimise
        self.params.free_batch = 0
        self.ctx, self.dev = C.c_void_p(), C.c_void_p()
        if self.lib.sac_context_create(None, C.byref(self.ctx)) != 0:
            raise RuntimeError("no context")
        self.check(self.lib.sac_device_open(self.ctx, b"cpu", None, C.byref(self.dev)))

    def check(self, result):
        if result == 0:
            return
        text = C.create_string_buffer(512)
        self.lib.sac_context_last_error(self.ctx, text, C.c_size_t(len(text)))
        self.lib.sac_result_name.restype = C.c_char_p
        kind = self.lib.sac_result_name(result).decode()
        error = Unsupported if kind == "not supported" else RuntimeError
        raise error(f"{kind}: {text.value.decode(errors='replace')}")

    def wrap(self, array):
        desc = Desc(DTYPES.index(array.dtype.name), array.ndim)
        desc.shape[:array.ndim] = array.shape
        tensor = C.c_void_p()
        self.check(self.lib.sac_tensor_wrap(self.dev, C.byref(desc), C.c_void_p(array.ctypes.data),
                                            None, None, C.byref(tensor)))
        return tensor

    def fetch(self, tensor):
        desc = self.lib.sac_tensor_describe(tensor).contents
        shape = tuple(desc.shape[:desc.rank])
        dtype = numpy_dtype(DTYPES[desc.dtype])
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        data = C.string_at(self.lib.sac_tensor_data(tensor), size) if size else b""
        return np.frombuffer(data, dtype).reshape(shape)

    def load(self, blob, name):
        """blob must stay until the model is released: the engine maps it."""
        model = C.c_void_p()
        self.check(self.lib.sac_model_load_memory(self.dev, blob, C.c_size_t(len(blob)),
                                                  name.encode(), C.byref(self.params),
                                                  C.byref(model)))
        return model

    def run(self, model, inputs):
        arrays = [np.array(x, order="C", copy=True) for x in inputs]  # read-only sources, scalars
        tensors = (C.c_void_p * max(1, len(arrays)))(*[self.wrap(x) for x in arrays])
        count = self.lib.sac_model_output_count(model)
        outputs = (C.c_void_p * max(1, count))()
        try:
            self.check(self.lib.sac_model_run(model, tensors, outputs))
            return [self.fetch(C.c_void_p(outputs[i])) for i in range(count)]
        finally:
            for slots, n in ((tensors, len(arrays)), (outputs, count)):
                for i in range(n):
                    if slots[i]:
                        self.lib.sac_tensor_unref(C.byref(C.c_void_p(slots[i])))


def numpy_dtype(name):
    if name == "bfloat16":
        import ml_dtypes
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def collect():
    """Cases that use plain tensors of our dtypes, in the order in which onnx lists them."""
    warnings.simplefilter("ignore")
    from onnx import TensorProto
    from onnx.backend.test.case.node import collect_testcases
    ours = {getattr(TensorProto, name) for name in
            ("FLOAT FLOAT16 DOUBLE BFLOAT16 INT8 UINT8 INT16 UINT16 INT32 UINT32 INT64 UINT64 "
             "BOOL").split()}

    def plain(case):
        ports = list(case.model.graph.input) + list(case.model.graph.output)
        return all(p.type.HasField("tensor_type") and p.type.tensor_type.elem_type in ours
                   for p in ports)
    return [case for case in collect_testcases(None) if plain(case)]


def as_array(value, port):
    """Expected data as a NumPy array; onnx keeps some as protobufs."""
    from onnx import TensorProto, helper, numpy_helper
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    array = np.asarray(value)
    if array.dtype == object:
        array = array.astype(helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type))
    return array


def compare(got, want, rtol, atol):
    if got.dtype != want.dtype:
        raise AssertionError(f"dtype {got.dtype}, expected {want.dtype}")
    if got.shape != want.shape:
        raise AssertionError(f"shape {got.shape}, expected {want.shape}")
    if got.dtype.name == "bfloat16":  # two steps of it, as the onnx runner allows
        got, want, rtol = got.astype(np.float32), want.astype(np.float32), max(rtol, 2 ** -6)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def run_case(engine, case):
    blob = case.model.SerializeToString()
    model = engine.load(blob, case.name)
    try:
        graph = case.model.graph
        for inputs, expected in case.data_sets:
            outputs = engine.run(model, [as_array(x, p) for x, p in zip(inputs, graph.input)])
            for got, want, port in zip(outputs, expected, graph.output):
                compare(got, as_array(want, port), case.rtol, case.atol)
    finally:
        engine.lib.sac_model_unref(C.byref(model))


def worker(args):
    """Run cases from args.first on; one line each before and after, so that a crash has a name."""
    engine = Engine(args.library, args.reference, not args.plain)
    for i, case in enumerate(select(collect(), args.k)):
        if i < args.first:
            continue
        print(f"start\t{case.name}", flush=True)
        try:
            run_case(engine, case)
            verdict, why = "pass", ""
        except Unsupported as error:
            verdict, why = "unsupported", str(error)
        except Exception as error:
            verdict, why = "fail", str(error)
        print(f"{verdict}\t{case.name}\t{' '.join(why.split())[:300]}", flush=True)


def select(cases, pattern):
    return [case for case in cases if pattern in case.name]


def run_all(args):
    """name -> (verdict, why), restarting the child after the case that broke it."""
    results = {}
    while True:
        command = [sys.executable, os.path.abspath(__file__), "--library", args.library, "--first",
                   str(len(results)), "-k", args.k, "--worker"]
        command += ["--reference"] * args.reference + ["--plain"] * args.plain
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        current = None
        for line in child.stdout:
            verdict, name, *why = line.rstrip("\n").split("\t")
            if verdict == "start":
                current = name
            else:
                results[name] = (verdict, why[0])
                current = None
        status = child.wait()
        if current is None:
            if status:
                sys.exit(f"the child process ended with status {status}")
            return results
        results[current] = ("crash", f"status {status}")


def summary(results):
    counts = collections.Counter(verdict for verdict, _ in results.values())
    return (f"conformance: {counts['pass']} of {len(results)} cases pass, {counts['fail']} differ, "
            f"{counts['unsupported']} are not supported, {counts['crash']} crash")


def must_pass():
    if not os.path.exists(PASS_LIST):
        return []
    with open(PASS_LIST) as f:
        return [line.strip() for line in f if line.strip() and not line.startswith("#")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True, help="libsaccade.so")
    parser.add_argument("--update", action="store_true", help="rewrite pass.txt")
    parser.add_argument("--reference", action="store_true", help="plain C kernels only")
    parser.add_argument("--plain", action="store_true", help="node by node, nothing optimised")
    parser.add_argument("-k", default="", metavar="TEXT", help="only cases whose name contains it")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.library = os.path.abspath(args.library)
    if args.worker:
        return worker(args)
    results = run_all(args)
    passed = {name for name, (verdict, _) in results.items() if verdict == "pass"}
    regressions = [name for name in must_pass() if name in results and name not in passed]
    for name, (verdict, why) in sorted(results.items()):
        if verdict in ("fail", "crash") or name in regressions or (args.k and verdict != "pass"):
            print(f"{verdict}: {name}: {why}")
    if args.update:
        with open(PASS_LIST, "w") as f:
            f.write("# ONNX node tests that must pass; written by run.py --update\n")
            f.writelines(f"{name}\n" for name in sorted(passed))
    print(summary(results) + f"; {len(regressions)} regressions")
    return 1 if regressions and not args.update else 0


if __name__ == "__main__":
    sys.exit(main())
