#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A typical detection pipeline in Python: frames a second, to compare with `saccade track` on the same clip.

    bench/peers/pipeline.py [--streams 1,8,16] [--seconds S] [--batch 32] [--folder DIR] [--hold]

PyNvVideoCodec decodes (a thread a stream), torch preprocesses, torch.compile runs YOLOX-S at 640 in float16, ten
persons a frame, torchvision's NMS; no appearance, no tracker. Prints a line of JSON per number of
streams. Without PyNvVideoCodec the frames are on the GPU from the start: decoding then costs nothing,
and the output says so.
--hold: when all is compiled print "# ready", and continue at a line on standard input, as
`bench/gpu --only python` does, which also runs saccade.
"""
import argparse
import json
import os
import pathlib
import queue
import sys
import threading
import time

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "gpu"), str(HERE.parent)]
import host  # noqa: E402
import networks  # noqa: E402
import time_kernels as steps  # noqa: E402
from loop import loop  # noqa: E402

try:
    import PyNvVideoCodec as nvc
    DECODER = f"PyNvVideoCodec {nvc.__version__}"
except Exception as fault:  # of the package, or of what it loads: it has several
    nvc = None
    DECODER = f"none, frames lie ready on the GPU ({type(fault).__name__}: {str(fault).splitlines()[0][:120]})"


ROWS = steps.HEIGHT * 3 // 2  # of NV12: luma, then chroma


# ---- decoding, a thread a stream ----

class Streams:
    """So many decoders of one clip, whose pictures go into one queue."""

    def __init__(self, clip, count, room):
        self.clip, self.frames, self.stop, self.fault = clip, queue.Queue(room), threading.Event(), None
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def work(self):
        try:
            while not self.stop.is_set():
                self.decode() if nvc else self.ready()
        except Exception as fault:  # what a thread dies of is told where its pictures are missed
            self.fault = fault

    def decode(self):
        """The clip once: each picture a tensor of its own, since the decoder reuses its memory."""
        demuxer = nvc.CreateDemuxer(filename=str(self.clip))
        decoder = nvc.CreateDecoder(gpuid=0, codec=demuxer.GetNvCodecId(), usedevicememory=True)
        for packet in demuxer:
            for picture in decoder.Decode(packet):
                self.put(torch.from_dlpack(picture).reshape(ROWS, steps.WIDTH).clone())
            if self.stop.is_set():
                return

    def ready(self):
        self.put(torch.randint(16, 235, (ROWS, steps.WIDTH), device="cuda", dtype=torch.uint8))

    def put(self, picture):
        while not self.stop.is_set():
            try:
                return self.frames.put(picture, timeout=0.2)
            except queue.Full:
                pass

    def take(self, count):
        pictures, end = [], time.monotonic() + 20
        while len(pictures) < count:
            try:
                pictures.append(self.frames.get(timeout=0.2))
            except queue.Empty:
                if self.fault or time.monotonic() > end:
                    raise self.fault or TimeoutError("no picture in 20 s")
        return pictures

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(5)


# ---- the rest ----


class Peer:
    def __init__(self, batch):
        import torch._inductor.config
        torch._inductor.config.freezing = True
        torch.backends.cudnn.benchmark = True
        self.batch = batch
        module = networks.build("yolox_s_people", "cuda").half().to(memory_format=torch.channels_last)
        self.network = torch.compile(module, mode="reduce-overhead", dynamic=False)
        from torchvision.ops import batched_nms
        self.nms = batched_nms
        for _ in range(4):  # compile, record, replay
            self.detect([torch.zeros((ROWS, steps.WIDTH), device="cuda", dtype=torch.uint8)] * batch)
        torch.cuda.synchronize()

    def detect(self, pictures):
        x = steps.preprocess(torch.stack(pictures)).contiguous(memory_format=torch.channels_last)
        return steps.boxes(decoded(self.network(x)), self.nms)

    def run(self, clip, count, seconds):
        streams = Streams(clip, count, 2 * self.batch)
        try:
            for _ in range(4):  # until all decode
                self.detect(streams.take(self.batch))
            torch.cuda.synchronize()
            return self.timed(streams, seconds)
        finally:
            streams.end()

    def timed(self, streams, seconds):
        done, boxes, begun, cpu = 0, 0, time.monotonic(), time.process_time()
        while time.monotonic() - begun < seconds:
            found = self.detect(streams.take(self.batch))
            boxes += sum(len(scores) for _, scores, _ in found)
            done += self.batch
        torch.cuda.synchronize()
        wall = time.monotonic() - begun
        return {"fps": round(done / wall, 1), "detections_per_frame": round(boxes / done, 2),
                "cpu_cores": round((time.process_time() - cpu) / wall, 2)}


def decoded(out):
    """Offsets and logarithms of YOLOX's cells to pixels."""
    if not hasattr(decoded, "grid"):
        points = [(x, y, s) for s in (8, 16, 32) for y in range(steps.SIDE // s) for x in range(steps.SIDE // s)]
        decoded.grid = torch.tensor(points, device="cuda", dtype=torch.half)
    stride = decoded.grid[:, 2:]
    return torch.cat(((out[..., :2] + decoded.grid[:, :2]) * stride, out[..., 2:4].exp() * stride, out[..., 4:]), -1)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--streams", default="1,8,16")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/tmp/saccade-peers"))
    parser.add_argument("--hold", action="store_true")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("pipeline.py: PyTorch finds no GPU")
    torch.set_grad_enabled(False)
    os.makedirs(options.folder, exist_ok=True)
    peer = Peer(options.batch)
    if options.hold:
        print("# ready", flush=True)
        sys.stdin.readline()
    for streams in map(int, options.streams.split(",")):
        clip = options.folder / f"clip_{streams}.mp4"
        loop(host.CLIPS / "h264_1080p.mp4", clip, max(180, int(2500 * options.seconds / streams)))
        row = {"what": "pipeline in Python", "streams": streams, "clip": "h264_1080p", "torch": torch.__version__,
               "decoder": DECODER}
        try:
            row |= peer.run(clip, streams, options.seconds)
        except Exception as fault:  # of a decoder that is not ours: what it says is the result
            row["fault"] = f"{type(fault).__name__}: {fault}"
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
