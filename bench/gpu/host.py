# SPDX-License-Identifier: Apache-2.0
"""The machine, and one run of a program on it: its output, its CPU time and the GPU's memory meanwhile."""
import contextlib
import ctypes
import glob
import json
import os
import pathlib
import re
import signal
import site
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parents[2]  # the source tree, or what scripts/gpu-pack made
TICKS = os.sysconf("SC_CLK_TCK")


def find(*places):
    """The first of these paths below the folder that is there."""
    return next((HERE / place for place in places if (HERE / place).exists()), None)


SACCADE = find("bin/saccade", "build/src/cli/saccade")
BENCH = find("bench/bench_kernels", "build/bench/bench_kernels")
CLIPS = find("data/clips", "build/gpu-clips", "build/bundle/gpu-clips")


def bench(name):
    return BENCH.parent / name


def commit():
    """Of the program; None: not known."""
    packed = HERE / "commit"
    if packed.exists():
        return packed.read_text().strip()
    run = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return run.stdout.strip() or None


def cuda_libraries():
    """Folders below which NVIDIA's Python packages put their libraries, as SACCADE_CUDA_LIBS wants them."""
    places = dict.fromkeys(sys.path + site.getsitepackages())
    roots = [os.path.join(place, "nvidia") for place in places if os.path.isdir(os.path.join(place, "nvidia"))]
    return ":".join(roots + [lib for root in roots for lib in sorted(glob.glob(root + "/*/lib"))])


def environment():
    env = dict(os.environ)
    env.setdefault("SACCADE_CUDA_LIBS", cuda_libraries())
    if not (HERE / "bin/saccade").exists():
        env.setdefault("SACCADE_PLUGIN_PATH", f"{HERE}/build/src/plugin:{HERE}/build/src/engine/onednn")
    return env


class Nvml:
    """What the driver says of GPU 0; every answer is None where there is none."""

    class Memory(ctypes.Structure):
        _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]

    class Load(ctypes.Structure):
        _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]

    def __init__(self):
        self.device = None
        try:
            self.lib = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        device = ctypes.c_void_p()
        if self.lib.nvmlInit_v2() == 0 and self.lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0:
            self.device = device

    def count(self):
        number = ctypes.c_uint()
        return number.value if self.device and self.lib.nvmlDeviceGetCount_v2(ctypes.byref(number)) == 0 else 0

    def text(self, call, *device):
        buf = ctypes.create_string_buffer(96)
        ok = self.device and getattr(self.lib, call)(*device, buf, ctypes.c_uint(96)) == 0
        return buf.value.decode() if ok else None

    def name(self):
        return self.text("nvmlDeviceGetName", self.device)

    def driver(self):
        return self.text("nvmlSystemGetDriverVersion")

    def memory(self):
        out = Nvml.Memory()
        if self.device and self.lib.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(out)) == 0:
            return out.used
        return None

    def load(self):
        """Share of the time that kernels ran, lately; the same of the decoders."""
        out, decoder, period = Nvml.Load(), ctypes.c_uint(), ctypes.c_uint()
        if not self.device or self.lib.nvmlDeviceGetUtilizationRates(self.device, ctypes.byref(out)) != 0:
            return None, None
        known = self.lib.nvmlDeviceGetDecoderUtilization(self.device, ctypes.byref(decoder), ctypes.byref(period)) == 0
        return out.gpu, decoder.value if known else None

    def pcie(self):
        """Bytes a second over the bus, from the card and to it, of the last 20 ms."""
        rates = []
        for counter in (0, 1):
            out = ctypes.c_uint()
            if not self.device or self.lib.nvmlDeviceGetPcieThroughput(self.device, counter, ctypes.byref(out)) != 0:
                return None, None
            rates.append(out.value * 1024)
        return tuple(rates)


NVML = Nvml()


def cpu_seconds(pid):
    """CPU time of a process so far, or None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS


def machine_cpu_seconds():
    """Time that all CPUs of the machine were busy so far."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, soft = map(int, file.readline().split()[1:8])
    return (user + nice + system + irq + soft) / TICKS


class Watch(threading.Thread):
    """Samples of a process and the GPU, five a second."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.rows, self.done = pid, [], threading.Event()
        self.start()

    def run(self):
        while not self.done.wait(0.2):
            cpu = cpu_seconds(self.pid)
            if cpu is None:
                return
            gpu, decoder = NVML.load()
            self.rows.append({"t": time.monotonic(), "cpu": cpu, "machine": machine_cpu_seconds(),
                              "memory": NVML.memory(), "gpu": gpu, "decoder": decoder, "pcie": NVML.pcie()})

    def end(self):
        self.done.set()
        self.join()

    def peak_memory(self):
        return max((row["memory"] for row in self.rows if row["memory"] is not None), default=None)

    def steady(self, seconds):
        """Medians over the middle half of the last `seconds` of the process: neither start nor end."""
        if len(self.rows) < 4 or not seconds:
            return {}
        end = self.rows[-1]["t"]
        rows = [row for row in self.rows if end - 0.75 * seconds <= row["t"] <= end - 0.25 * seconds]
        if len(rows) < 3:
            return {}
        pairs = list(zip(rows, rows[1:]))
        rate = lambda key: statistics.median((b[key] - a[key]) / (b["t"] - a["t"]) for a, b in pairs)
        middle = lambda values: statistics.median(values) if values else None
        known = lambda key: [row[key] for row in rows if row[key] is not None]
        return {"cpu_cores": round(rate("cpu"), 3), "machine_cpu_cores": round(rate("machine"), 3),
                "gpu_percent": middle(known("gpu")), "decoder_percent": middle(known("decoder")),
                "pcie_from_gpu_mb_s": middle([row["pcie"][0] / 1e6 for row in rows if row["pcie"][0] is not None]),
                "pcie_to_gpu_mb_s": middle([row["pcie"][1] / 1e6 for row in rows if row["pcie"][1] is not None]),
                "samples": len(rows)}


class Failed(Exception):
    """A program that did not do its work: the sentence that it ended with, and its output."""

    def __init__(self, why, text=""):
        super().__init__(why)
        self.text = text


def execute(command, timeout, env=None, folder=None):
    """Run it: standard output, standard error, the watch. Failed when it fails or takes too long."""
    with tempfile.TemporaryFile("w+") as errors, tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([str(word) for word in command], stdout=output, stderr=errors,
                                   stdin=subprocess.DEVNULL, env=env or environment(), cwd=folder, start_new_session=True)
        watch = Watch(process.pid)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            status = f"more than {timeout:.0f} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)  # a test then shows where its threads are (tests/test.h)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                with contextlib.suppress(ProcessLookupError):  # what it began may be there still
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        watch.end()
        errors.seek(0), output.seek(0)
        said, text = errors.read(), output.read()
    if status != 0:
        lines = [line for line in said.splitlines() if line.strip()] or ["nothing was said"]
        told = next((at for at, line in enumerate(lines) if "of its threads" in line or "saccade: crashed" in line), len(lines) - 1)
        last = "; ".join(lines[told:])[:8000]  # stacks, else the last line
        raise Failed(f"{pathlib.Path(str(command[0])).name} ended with {status}: {last}", text)
    return text, said, watch


def inputs(clip, streams, folder):
    """The same clip under so many names: outputs and reports tell streams apart by name."""
    names = []
    for i in range(streams):
        names.append(pathlib.Path(folder) / f"s{i:02d}_{pathlib.Path(clip).name}")
        names[-1].unlink(missing_ok=True)
        names[-1].symlink_to(clip)
    return names


def track(inputs, *options, timeout=90, folder, verb="track"):
    """Run `saccade track`, or another verb: its statistics, with what was watched meanwhile under "watch"."""
    stats = pathlib.Path(folder) / "stats.json"
    stats.unlink(missing_ok=True)
    base = NVML.memory()
    command = [SACCADE, verb, *inputs, "--stats", stats, "--no-progress", *options]
    _, said, watch = execute(command, timeout)
    result = json.loads(stats.read_text())
    peak = watch.peak_memory()
    result["watch"] = watch.steady(result["elapsed_s"])
    result["watch"]["memory_peak"] = peak - base if peak is not None and base is not None else None
    result["said"] = [line for line in said.splitlines() if "warn" in line.lower()][:5]
    return result


def quantised(path, precision, device, folder, timeout=120, env=None):
    """The network in int8 or fp8, as a file in the folder, and what that loses of float32's numbers. Ranges are those of
    random input, which is what networks with random weights are timed with; nothing is refused."""
    out = pathlib.Path(folder) / f"{pathlib.Path(path).stem}-{precision}.onnx"
    text, _, _ = execute([SACCADE, "build", path, "--precision", precision, "--device", device, "--max-loss", "1",
                          "--calibration-method", "min-max", "-o", out], timeout, env)
    return out, float(re.search(r"it loses (\S+)", text)[1])
