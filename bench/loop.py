#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make a long MP4 of a short one without more video data: its index repeats the same samples.

A reader sees one long file with growing times; each round begins with the clip's first key frame.
One video track, as FFmpeg writes it.

    bench/loop.py IN.mp4 OUT.mp4 FRAMES
"""
import struct
import sys

CONTAINERS = {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts"}


def boxes(data, start, end):
    """(kind, where the body begins, where it ends) of each box."""
    while start + 8 <= end:
        size, kind = struct.unpack_from(">I4s", data, start)
        head = 8
        if size == 1:
            size, head = struct.unpack_from(">Q", data, start + 8)[0], 16
        elif size == 0:
            size = end - start
        if size < head or start + size > end:
            raise ValueError(f"a broken box at byte {start}")
        yield kind, start + head, start + size
        start += size


def box(kind, body):
    return struct.pack(">I4s", 8 + len(body), kind) + body


class Loop:
    """The index of `rounds` times the clip."""

    def __init__(self, data, rounds, shift):
        self.data, self.rounds, self.shift = data, rounds, shift
        self.samples = self.chunks = 0

    def table(self, begin, end, width):
        """Version and flags, then rows of `width` numbers."""
        count = struct.unpack_from(">I", self.data, begin + 4)[0]
        rows = struct.unpack_from(f">{count * width}I", self.data, begin + 8)
        return self.data[begin:begin + 4], [rows[i:i + width] for i in range(0, len(rows), width)]

    def repeat(self, begin, end, width, step=0):
        """Rows over and over; `step`: how much the first number of each grows by a round."""
        head, rows = self.table(begin, end, width)
        every = [(row[0] + turn * step,) + row[1:] for turn in range(self.rounds) for row in rows]
        return head + struct.pack(">I", len(every)) + b"".join(struct.pack(f">{width}I", *row) for row in every)

    def sizes(self, begin, end):
        head = self.data[begin:begin + 4]
        size, count = struct.unpack_from(">II", self.data, begin + 4)
        return head + struct.pack(">II", size, count * self.rounds) + self.data[begin + 12:end] * self.rounds

    def offsets(self, begin, end, code):
        width = struct.calcsize(code)
        count = struct.unpack_from(">I", self.data, begin + 4)[0]
        offsets = struct.unpack_from(f">{count}{code}", self.data, begin + 8)
        moved = [offset + self.shift for offset in offsets] * self.rounds
        assert width in (4, 8)
        return self.data[begin:begin + 4] + struct.pack(f">I{len(moved)}{code}", len(moved), *moved)

    def duration(self, begin, end, at32, at64):
        """A header whose duration lies at one of two places, by its version."""
        body = bytearray(self.data[begin:end])
        code, at = (">Q", at64) if body[0] == 1 else (">I", at32)
        value = struct.unpack_from(code, body, at)[0] * self.rounds
        struct.pack_into(code, body, at, value)
        return bytes(body)

    def count(self, begin, end):
        for kind, first, last in boxes(self.data, begin, end):
            if kind == b"stsz":
                self.samples = struct.unpack_from(">I", self.data, first + 8)[0]
            elif kind in (b"stco", b"co64"):
                self.chunks = struct.unpack_from(">I", self.data, first + 4)[0]
            elif kind in CONTAINERS:
                self.count(first, last)

    def body(self, kind, begin, end):
        if kind in CONTAINERS:
            return b"".join(box(k, self.body(k, b, e)) for k, b, e in boxes(self.data, begin, end))
        if kind in (b"stts", b"ctts"):
            return self.repeat(begin, end, 2)
        if kind == b"stss":
            return self.repeat(begin, end, 1, self.samples)
        if kind == b"stsc":
            return self.repeat(begin, end, 3, self.chunks)
        if kind == b"stsz":
            return self.sizes(begin, end)
        if kind == b"sdtp":
            return self.data[begin:begin + 4] + self.data[begin + 4:end] * self.rounds
        if kind in (b"stco", b"co64"):
            return self.offsets(begin, end, "I" if kind == b"stco" else "Q")
        if kind == b"mvhd" or kind == b"mdhd":
            return self.duration(begin, end, 16, 24)
        if kind == b"tkhd":
            return self.duration(begin, end, 20, 28)
        if kind == b"elst":
            return self.duration(begin, end, 8, 8)  # that of the first edit
        return self.data[begin:end]


def loop(source, target, frames):
    """Write it; how many frames it has: whole rounds, so `frames` or a few more."""
    with open(source, "rb") as file:
        data = file.read()
    top = list(boxes(data, 0, len(data)))
    kinds = [kind for kind, _, _ in top]
    if b"moov" not in kinds or b"mdat" not in kinds:
        raise ValueError(f"'{source}' is no MP4 file with an index")
    index = next((b, e) for k, b, e in top if k == b"moov")
    before = kinds.index(b"moov") < kinds.index(b"mdat")  # the index goes to the end
    made = Loop(data, 1, -(index[1] - index[0] + 8) if before else 0)
    made.count(*index)
    if not made.samples:
        raise ValueError(f"'{source}' has no frames")
    made.rounds = max(1, -(-frames // made.samples))
    with open(target, "wb") as file:
        for kind, begin, end in top:
            if kind != b"moov":
                file.write(box(kind, data[begin:end]))
        file.write(box(b"moov", made.body(b"moov", *index)))
    return made.rounds * made.samples


def main():
    if len(sys.argv) != 4 or not sys.argv[3].isdigit():
        sys.exit(__doc__)
    try:
        print(loop(sys.argv[1], sys.argv[2], int(sys.argv[3])))
    except (OSError, ValueError) as error:
        sys.exit(f"bench/loop.py: {error}")


if __name__ == "__main__":
    main()
