# SPDX-License-Identifier: Apache-2.0
"""Each case of pass.txt as a test of its own; run.py does the work, once for all."""
import argparse
import os
import subprocess
import sys

import pytest

import run

BUILD = os.environ.get("SACCADE_BUILD", os.path.join(os.path.dirname(__file__), "../../build"))


def run_library(reference):
    pytest.importorskip("onnx")
    library = os.path.abspath(os.path.join(BUILD, "libsaccade.so"))
    if not os.path.exists(library):
        pytest.skip(f"no {library}")
    return run.run_all(argparse.Namespace(library=library, k="", plain=False, reference=reference))


@pytest.fixture(scope="module")
def results(request):
    results = run_library(reference=False)
    request.config.conformance_summary = run.summary(results)
    return results


@pytest.mark.parametrize("name", run.must_pass())
def test_case(results, name):
    if name not in results:
        pytest.skip("this version of onnx does not have the case")
    verdict, why = results[name]
    assert verdict == "pass", why


def test_reference_kernels():
    """The plain kernels pass what the fast ones pass."""
    results = run_library(reference=True)
    assert [n for n in run.must_pass() if n in results and results[n][0] != "pass"] == []


def test_a_device_whose_memory_is_not_the_hosts(tmp_path):
    """The cases on the device of the tests (tests/engine/far.h): planner and executor as for a GPU."""
    pytest.importorskip("onnx")
    program = os.path.abspath(os.path.join(BUILD, "tests/conformance/test_conformance_nodes"))
    if not os.path.exists(program):
        pytest.skip(f"no {program}")
    here, pack = os.path.dirname(os.path.abspath(__file__)), tmp_path / "nodes.bin"
    subprocess.run([sys.executable, os.path.join(here, "pack.py"), str(pack)], check=True)
    done = subprocess.run([program, str(pack), "far"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_crashes(results):
    """Cases that are not supported say so; none brings the program down."""
    assert [name for name, (verdict, _) in results.items() if verdict == "crash"] == []
