# SPDX-License-Identifier: Apache-2.0


def pytest_terminal_summary(terminalreporter, config):
    """One line at the end: how many of the ONNX project's cases pass."""
    line = getattr(config, "conformance_summary", None)
    if line:
        terminalreporter.write_line(line)
