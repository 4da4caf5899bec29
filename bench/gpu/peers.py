# SPDX-License-Identifier: Apache-2.0
"""Parts beside PyTorch on the same card, by the scripts of bench/peers.

Some compile for minutes. They are started early, while parts without timing run; then they wait, and
each is timed in its turn, while nothing else runs.
"""
import importlib.util
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time

import host
from host import Failed

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "peers"
SCRIPTS = {"engine": "time_networks.py", "python": "pipeline.py"}


def have_torch():
    return importlib.util.find_spec("torch") is not None


class Script:
    """A script of bench/peers at work: rows of JSON on its output, and "# ready" when it holds."""

    def __init__(self, name, *options):
        self.name, self.ready, self.rows = name, threading.Event(), queue.Queue()
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([sys.executable, str(FOLDER / name), *map(str, options)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True, env=host.environment(),
                                        start_new_session=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            if line.startswith("# ready"):
                self.ready.set()
            elif line.startswith("{"):
                self.rows.put(json.loads(line))
        self.ready.set()
        self.rows.put(None)

    def go(self, seconds):
        """Its rows, as they come."""
        end = time.monotonic() + seconds
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended: what it said is told below
        while True:
            try:
                row = self.rows.get(timeout=max(0.1, end - time.monotonic()))
            except queue.Empty:
                self.end()
                raise Failed(f"{self.name}: more than {seconds:.0f} s") from None
            if row is None:
                break
            yield row
        if self.process.wait() != 0:
            raise Failed(f"{self.name}: {self.fault()}")

    def fault(self):
        self.errors.seek(0)
        lines = [line for line in self.errors.read().splitlines() if line.strip()]
        return lines[-1][:300] if lines else "nothing was said"

    def end(self):
        """With its children."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Peers:
    """The scripts that the chosen parts want, begun once."""

    def __init__(self, folder, wanted, budget, on_gpu=True):
        self.folder, self.budget, self.begun = folder, budget, None
        self.side = 512 if on_gpu else 64
        self.wanted = [name for name in wanted if name in SCRIPTS] if have_torch() else []
        self.exported = ["yolox_s_people", "yolox_nano_people"] if {"networks", "python"} & set(wanted) and have_torch() else []
        self.segments = bool({"segment", "vr"} & set(wanted)) and have_torch()
        self.scripts = {}

    def begin(self):
        if self.begun is not None:
            return
        self.begun = time.monotonic()
        if self.exported:
            self.scripts["export"] = Script("networks.py", self.folder, *self.exported)
        if self.segments:
            self.scripts["deeplab"] = Script("../gpu/deeplab.py", self.folder / "deeplab.onnx", self.side)
        options = {"engine": ["--budget", self.budget, "--seconds", 0.4], "python": ["--seconds", 3]}
        for name in self.wanted:
            self.scripts[name] = Script(SCRIPTS[name], "--hold", "--folder", self.folder, *options[name])

    def quiet(self):
        """Wait until none of them computes."""
        self.begin()
        for name, script in self.scripts.items():
            if not script.ready.wait(max(0, self.begun + self.budget - time.monotonic())):
                script.end()
                print(f"{script.name}: not ready after {self.budget:.0f} s, and ended", flush=True)

    def end(self):
        for script in self.scripts.values():
            script.end()

    def exported_path(self, name):
        """A network with random weights."""
        script = self.scripts.get(name if name == "deeplab" else "export")
        if not script:
            raise Failed("its network is exported by PyTorch, which is not here")
        if script.process.wait() != 0:
            raise Failed(f"{script.name}: {script.fault()}")
        return self.folder / f"{name}.onnx"

    def rows(self, name, seconds):
        if name not in self.scripts:
            raise Failed("left out: PyTorch is not here")
        yield from self.scripts[name].go(seconds)


# ---- the parts ----

def kernels(bench):
    """Preprocessing and NMS against PyTorch's sequence of operations."""
    text, _, _ = host.execute([sys.executable, FOLDER / "time_kernels.py"], 120)
    for line in text.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def engine(bench):
    """Networks in float16 against torch.compile, frozen."""
    for row in bench.peers.rows("engine", 200):
        yield {"what": f"{row['network']}, batch {row['batch']}"} | row


def python(bench):
    """A pipeline in Python with YOLOX-S at 640, neither ReID nor tracker; then ours, which has both."""
    theirs = {}
    for row in bench.peers.rows("python", 100):
        theirs[row["streams"]] = row.get("fps")
        yield row
    path = bench.planned("yolox_s_people")
    for streams, fps in theirs.items():
        row = bench.pipeline("yolox_s_people + ReID + tracker", "h264_1080p", streams, "--detector", path)
        yield row | {"over_python": round(row["fps"] / fps, 2) if fps and row.get("fps") else None}
