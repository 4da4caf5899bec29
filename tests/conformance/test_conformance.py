# SPDX-License-Identifier: Apache-2.0
"""Each case of pass.txt as a test of its own; run.py does the work, once for all."""
import argparse
import os

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


def test_crashes(results):
    """Cases that are not supported say so; none brings the program down."""
    assert [name for name, (verdict, _) in results.items() if verdict == "crash"] == []
