# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of a comparison, in a process of its own: it compiles beside the others, and is timed alone."""
import json
import pathlib
import subprocess
import sys
import threading
import time


class PeerProcess:
    """A program called with --child, which prints lines of JSON: {"ready": true} when all is compiled, and figures, for
    which it may wait until it is told to go on."""

    def __init__(self, program, arguments, log, heard=lambda line: None):
        """heard is called with each of its lines."""
        self.ready, self.ended, self.rows, self.heard = False, False, [], heard
        self.log = open(log, "w")
        self.process = subprocess.Popen([sys.executable, program, "--child", *map(str, arguments)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            if not line.startswith("{"): # a library of theirs talks
                continue
            row = json.loads(line)
            self.ready = self.ready or "ready" in row
            if "ready" not in row:
                self.rows.append(row)
            self.heard(line.strip())
        self.ended = True

    def tell(self, word):
        try:
            self.process.stdin.write(word + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass # it has ended; its log says why

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def fault(self):
        lines = pathlib.Path(self.log.name).read_text().strip().splitlines()
        return "torch: " + (lines[-1][:200] if lines else "not compiled in time")


def wait(peers, seconds, until):
    """Until that holds for each, or it has ended, or time is up."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not all(peer.ended or until(peer) for peer in peers):
        time.sleep(0.1)
