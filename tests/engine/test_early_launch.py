# SPDX-License-Identifier: Apache-2.0
"""Kernels may be launched before the one before them is done (src/device/cuda/early.c), so each waits
for that first: every kernel's first statement is early_begin(), or early_prepare() and early_begin() behind it, and
every launch is one of launch.h."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = sorted(path for path in (ROOT / "src").rglob("*") if path.suffix in (".cu", ".cuh", ".c", ".h"))


def without_comments(text):
    """Comments as spaces, so that places and lines stay."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda found: re.sub(r"[^\n]", " ", found.group()), text, flags=re.DOTALL)


def body_of(text, at):
    """What follows the brace of the function whose declaration goes on at `at`; None: it has no body here."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0 and text[i] in "{;":
            return text[i + 1:] if text[i] == "{" else None
    return None


def faults(text):
    """Lines of kernels that begin with something else, and of launches that are none of launch.h."""
    text = without_comments(text)

    def line(at):
        return text.count("\n", 0, at) + 1
    begins = r"\s*early_begin\(\);"
    if len(re.findall(r"\bearly_begin\(\);", text)) > 1: # by those of its threads that wait
        begins += r"|\s*early_prepare\(\);"
    late = [line(found.start()) for found in re.finditer(r"\b__global__\b", text)
            if not re.match(begins, body_of(text, found.end()) or "early_begin();")]
    return late, [line(found.start()) for found in re.finditer(r"<<<|\bcudaLaunch(Cooperative)?Kernel\w*\s*\(", text)]


GOOD = "__global__ void __launch_bounds__(1)\n    k(int n)\n{\n    /* first */\n    early_begin();\n    f(n);\n}\n"


@pytest.mark.parametrize("text,late,launches", [
    (GOOD, [], []),
    (GOOD + GOOD.replace("early_begin();", "if (n) return; early_begin();"), [8], []),
    (GOOD.replace("early_begin();", "// early_begin();"), [1], []),
    (GOOD.replace("early_begin();", "early_prepare();"), [1], []),
    (GOOD.replace("early_begin();", "early_prepare(); if (ask) early_begin(); else early_begin();"), [], []),
    (GOOD.replace("early_begin();", "early_begins();"), [1], []),
    ("__global__ void k(int n);\n" + GOOD, [], []),
    ("void f()\n{\n    k<1><<<1, 2, 0, stream>>>(3);\n    cudaLaunchKernel(k, g, b, p, 0, s);\n}\n", [], [3, 4]),
    ("/* k<<<1, 2>>>(3) and cudaLaunchKernelExC(...) */\n", [], []),
])
def test_faults_are_found(text, late, launches):
    assert faults(text) == (late, launches)


def test_every_kernel_waits_first():
    found = {path: faults(path.read_text()) for path in SOURCES}
    assert sum(path.read_text().count("__global__") for path in SOURCES) > 50
    assert [f"{path}:{line}" for path in SOURCES for line in found[path][0]] == []
    assert [f"{path}:{line}" for path in SOURCES for line in found[path][1]
            if path != ROOT / "src/device/cuda/early.c"] == []
