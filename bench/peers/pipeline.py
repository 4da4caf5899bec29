#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A detection pipeline as one writes it in Python, beside `saccade track` on the same clip in the same run.

    bench/peers/pipeline.py [--streams 1,8,16] [--seconds S] [--batch 32] [--folder DIR] [--only-peer]

Theirs: PyNvVideoCodec decodes (a thread a stream), torch preprocesses, torch.compile runs YOLOX-S at 640 in float16,
torchvision's NMS; no appearance, no tracker. Ours: the same network, ReID on its ten persons a frame, BoT-SORT.
Without PyNvVideoCodec their frames lie ready on the GPU: decoding then costs them nothing, and that is said.
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
except ImportError:
    nvc = None


# ---- theirs ----

def decode(path, frames, stop):
    """A stream's thread: decoded pictures, each a tensor of its own, since the decoder reuses its memory."""
    while not stop.is_set():
        demuxer = nvc.CreateDemuxer(filename=str(path))
        decoder = nvc.CreateDecoder(gpuid=0, codec=demuxer.GetNvCodecId(), usedevicememory=True)
        for packet in demuxer:
            for picture in decoder.Decode(packet):
                put(frames, torch.from_dlpack(picture).clone(), stop)
            if stop.is_set():
                return


def ready(frames, stop):
    picture = torch.randint(16, 235, (steps.HEIGHT * 3 // 2, steps.WIDTH), device="cuda", dtype=torch.uint8)
    while not stop.is_set():
        put(frames, picture, stop)


def put(frames, picture, stop):
    while not stop.is_set():
        try:
            return frames.put(picture, timeout=0.2)
        except queue.Full:
            pass


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
        for _ in range(4):
            self.detect([torch.zeros((steps.HEIGHT * 3 // 2, steps.WIDTH), device="cuda", dtype=torch.uint8)] * batch)
        torch.cuda.synchronize()

    def detect(self, pictures):
        x = steps.preprocess(torch.stack(pictures)).contiguous(memory_format=torch.channels_last)
        return steps.boxes(decoded(self.network(x)), self.nms)

    def run(self, clip, streams, seconds):
        frames, stop = queue.Queue(2 * self.batch), threading.Event()
        work = (lambda: decode(clip, frames, stop)) if nvc else (lambda: ready(frames, stop))
        threads = [threading.Thread(target=work, daemon=True) for _ in range(streams)]
        for thread in threads:
            thread.start()
        for _ in range(4): # until all decode
            self.detect([frames.get(timeout=20) for _ in range(self.batch)])
        torch.cuda.synchronize()
        done, boxes, begun, cpu = 0, 0, time.monotonic(), time.process_time()
        while time.monotonic() - begun < seconds:
            found = self.detect([frames.get(timeout=20) for _ in range(self.batch)])
            boxes += sum(len(scores) for _, scores, _ in found)
            done += self.batch
        torch.cuda.synchronize()
        wall = time.monotonic() - begun
        cores = (time.process_time() - cpu) / wall
        stop.set()
        for thread in threads:
            thread.join(5)
        return {"fps": round(done / wall, 1), "boxes_per_frame": round(boxes / done, 2), "cpu_cores": round(cores, 2)}


def decoded(out):
    """Offsets and logarithms of YOLOX's cells to pixels."""
    if not hasattr(decoded, "grid"):
        points = [(x, y, s) for s in (8, 16, 32) for y in range(steps.SIDE // s) for x in range(steps.SIDE // s)]
        decoded.grid = torch.tensor(points, device="cuda", dtype=torch.half)
    stride = decoded.grid[:, 2:]
    return torch.cat(((out[..., :2] + decoded.grid[:, :2]) * stride, out[..., 2:4].exp() * stride, out[..., 4:]), -1)


# ---- ours ----

def ours(clip, streams, folder):
    model = folder / "yolox_s_people.onnx"
    if not model.exists():
        networks.export("yolox_s_people", model)
    inputs = []
    for i in range(streams):
        inputs.append(folder / f"p{i:02d}.mp4")
        inputs[-1].unlink(missing_ok=True)
        inputs[-1].symlink_to(clip)
    options = ["--device", "cuda", "--detector", model]
    host.track(inputs, *options, folder=folder, timeout=200) # plans
    stats = host.track(inputs, *options, folder=folder, timeout=200)
    return {"fps": round(stats["fps"], 1), "boxes_per_frame": round(stats["detections"] / stats["frames"], 2),
            "cpu_cores": stats["watch"].get("cpu_cores"), "reid": stats["reid"], "tracker": stats["tracker"]}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--streams", default="1,8,16")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/tmp/saccade-peers"))
    parser.add_argument("--only-peer", action="store_true")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("pipeline.py: PyTorch finds no GPU")
    torch.set_grad_enabled(False)
    os.makedirs(options.folder, exist_ok=True)
    peer = Peer(options.batch)
    for streams in map(int, options.streams.split(",")):
        clip = options.folder / f"clip_{streams}.mp4"
        loop(host.CLIPS / "h264_1080p.mp4", clip, max(180, int(2500 * options.seconds / streams)))
        row = {"part": "python pipeline", "streams": streams, "clip": "h264_1080p", "torch": torch.__version__,
               "decoder": f"PyNvVideoCodec {nvc.__version__}" if nvc and hasattr(nvc, "__version__") else
               "PyNvVideoCodec" if nvc else "none: frames lie ready on the GPU",
               "theirs": None}
        try:
            row["theirs"] = peer.run(clip, streams, options.seconds)
        except Exception as fault:  # of a decoder that is not ours: what it says is the result
            row["fault"] = f"theirs: {type(fault).__name__}: {fault}"
        if not options.only_peer:
            try:
                row["ours"] = ours(clip, streams, options.folder)
                if row["theirs"]:
                    row["ours_over_theirs"] = round(row["ours"]["fps"] / row["theirs"]["fps"], 2)
            except host.Failed as failed:
                row["fault"] = str(failed)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
