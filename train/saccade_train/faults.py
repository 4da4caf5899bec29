# SPDX-License-Identifier: Apache-2.0
"""What a user can put right ends a program with one sentence that names the thing, not with a traceback."""
import contextlib


@contextlib.contextmanager
def as_sentences():
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except ModuleNotFoundError as fault:
        # exports, scores and curves need packages that a training does not
        raise SystemExit(f"{fault.name} is not installed: python3 -m pip install {fault.name}") from None
    except OSError as fault:
        raise SystemExit(f"{fault.filename}: {fault.strerror}" if fault.filename else str(fault)) from None
    except Exception as fault:
        # ONNX Runtime's exceptions have no common class; they name the file
        if not type(fault).__module__.startswith("onnxruntime"):
            raise
        raise SystemExit(str(fault).splitlines()[0]) from None
