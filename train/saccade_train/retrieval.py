# SPDX-License-Identifier: Apache-2.0
"""Embedding models as files, and how well they find a person again in MOT sequences.

Protocol, with no random number in it. A sequence's frames are sampled every `every` seconds from the first on.
Each ground-truth box of such a frame is a crop when at least 90 % of it is inside the picture and at least the
share `visible` is not covered by boxes that reach lower (who stands lower is nearer). Crops are stretched to
256x128. Every crop is a query; its gallery is all crops of the sequence that are at least `gap` seconds away,
earlier or later; queries without a right answer there do not count. Rank-1 and mAP are means over queries.
Sequences are never mixed.

Two histograms stand beside the models. `RGB histogram`: 16 bins each of red, green and blue over the whole crop,
cosine; a minimum. `HSV histogram`: ten level stripes of the crop's inner 80 % of width, in each the hue of
coloured pixels (16 bins, weighted by saturation) and the brightness of all (8 bins), soft bins, square roots,
cosine; about as good as colour alone gets.
"""
import configparser
import shutil
import subprocess
from pathlib import Path

import numpy as np


class OnnxEmbedding:
    """Crops [n,3,256,128] RGB 0..255 to rows of length 1. Ours ([N,3,H,W]) take RGB in 0..1; a network with
    channels last (person_reid_0288) takes BGR in 0..255, one picture at a time where its batch is fixed."""

    def __init__(self, path):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        port = self.session.get_inputs()[0]
        self.name, shape = port.name, port.shape
        self.channels_last = shape[3] == 3
        self.height, self.width = shape[1:3] if self.channels_last else shape[2:4]
        self.batch = shape[0] if isinstance(shape[0], int) else 64
        ours = "saccade.preprocess" in self.session.get_modelmeta().custom_metadata_map
        if (self.height, self.width) != (256, 128) or not (ours or self.channels_last):
            raise SystemExit(f"{path}: input {shape}; this takes our own embedding models and such as "
                             "person_reid_0288 ([N,256,128,3])")

    def __call__(self, x):
        x = np.asarray(x, np.float32)
        x = x[:, ::-1].transpose(0, 2, 3, 1) if self.channels_last else x / 255
        rows = []
        for i in range(0, len(x), self.batch):
            part = np.ascontiguousarray(x[i:i + self.batch])
            rows.append(self.session.run(None, {self.name: part})[0].reshape(len(part), -1))
        rows = np.concatenate(rows)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def rgb_histogram(x, bins=16):
    """Crops [n,3,256,128] RGB 0..255 to rows of length 1."""
    x = np.asarray(x, np.int64).reshape(len(x), 3, -1) * bins // 256
    rows = np.stack([np.concatenate([np.bincount(c, minlength=bins) for c in crop]) for crop in x]).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def hsv_histogram(x, stripes=10, hues=16, levels=8):
    """Crops [n,3,256,128] RGB 0..255 to rows of length 1."""
    x = np.asarray(x, np.float32) / 255
    n, _, height, width = x.shape
    edge = width // 10
    x = x[..., edge:width - edge]
    top, low = x.max(1), x.min(1)
    spread = top - low
    r, g, b = x[:, 0], x[:, 1], x[:, 2]
    safe = np.maximum(spread, 1e-6)
    hue = np.where(top == r, (g - b) / safe % 6, np.where(top == g, (b - r) / safe + 2, (r - g) / safe + 4)) / 6
    saturation = spread / np.maximum(top, 1e-6)
    # neighbouring bins share a pixel, so that a little other light is a little difference
    rows = []
    for i in range(stripes):
        part = slice(i * height // stripes, (i + 1) * height // stripes)
        pixels = [v[:, part].reshape(n, -1) for v in (hue, saturation, top)]
        rows += [soft_bins(pixels[0], pixels[1], hues, True),
                 soft_bins(pixels[2], np.ones_like(pixels[2]), levels, False)]
    rows = np.sqrt(np.concatenate(rows, 1))
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def soft_bins(value, weight, bins, circular):
    """Histograms [n,bins] of values 0..1 [n,pixels]; each falls into the two nearest bins."""
    at = value * bins - 0.5
    left = np.floor(at).astype(np.int64)
    share = at - left
    out = np.zeros((len(value), bins), np.float32)
    row = np.arange(len(value))[:, None].repeat(value.shape[1], 1)
    for index, part in ((left, 1 - share), (left + 1, share)):
        index = index % bins if circular else index.clip(0, bins - 1)
        np.add.at(out, (row, index), part * weight)
    return out / value.shape[1]


def frames_of(folder, video, wanted):
    """PIL pictures of the frames `wanted` (from 1, rising), out of img1 or a video."""
    from PIL import Image
    pictures = folder / "img1"
    if video is None and pictures.is_dir():
        for number in wanted:
            yield number, Image.open(pictures / f"{number:06d}.jpg").convert("RGB")
        return
    videos = [p for p in sorted(folder.iterdir()) if p.suffix in (".mp4", ".avi", ".mkv", ".webm")]
    path = Path(video) if video else videos[0] if videos else None
    if path is None or not path.exists():
        raise SystemExit(f"{path or folder}: no video and no img1 for the sequence {folder.name}; "
                         f"--video {folder.name}=FILE names one (scripts/clip fetches vtest.avi, which is PETS09-S2L1)")
    some = set(wanted)
    for number, frame in enumerate(decoded(path), 1):
        if number in some:
            yield number, Image.fromarray(frame)


def decoded(path):
    """RGB frames of a video by the program ffmpeg, or by OpenCV where that is installed."""
    try:
        import cv2
    except ImportError:
        cv2 = None
    if cv2 is not None:
        capture = cv2.VideoCapture(str(path))
        while True:
            there, frame = capture.read()
            if not there:
                return
            yield frame[..., ::-1]
    if not shutil.which("ffmpeg") or not shutil.which("ffprobe"):
        raise SystemExit(f"{path}: to read it, install ffmpeg, or OpenCV for Python")
    probe = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "stream=width,height",
                            "-of", "csv=p=0", str(path)], capture_output=True, text=True)
    if probe.returncode:
        raise SystemExit(f"{path}: ffprobe cannot read it: {probe.stderr.strip()}")
    width, height = map(int, probe.stdout.strip().split(",")[:2])
    with subprocess.Popen(["ffmpeg", "-v", "error", "-i", str(path), "-fps_mode", "passthrough", "-f", "rawvideo",
                           "-pix_fmt", "rgb24", "-"], stdout=subprocess.PIPE) as program:
        while True:
            raw = program.stdout.read(width * height * 3)
            if len(raw) < width * height * 3:
                return
            yield np.frombuffer(raw, np.uint8).reshape(height, width, 3)


def visible_share(box, others, width, height):
    """Share of a box inside the picture, and share of that which no box that reaches lower covers."""
    x0, y0, x1, y1 = box
    area = (x1 - x0) * (y1 - y0)
    c0, r0, c1, r1 = (int(round(v)) for v in (max(0, x0), max(0, y0), min(width, x1), min(height, y1)))
    if c1 <= c0 or r1 <= r0:
        return 0.0, 0.0
    free = np.ones((r1 - r0, c1 - c0), bool)
    for o in others:
        if o[3] > y1:
            a, b = (max(0, int(round(v)) - c0) for v in (o[0], o[2]))
            c, d = (max(0, int(round(v)) - r0) for v in (o[1], o[3]))
            free[c:d, a:b] = False
    return free.size / area, float(free.mean())


def sequence_crops(folder, video=None, every=0.5, visible=0.5):
    """Crops [n,3,256,128] uint8, identities [n], times [n] in seconds of a MOT sequence."""
    from PIL import Image
    ini = configparser.ConfigParser()
    if not ini.read(folder / "seqinfo.ini"):
        raise SystemExit(f"{folder}: no seqinfo.ini in it: is it a MOT sequence?")
    rate = float(ini["Sequence"]["frameRate"])
    truth = next((p for p in (folder / "gt.txt", folder / "gt/gt.txt") if p.exists()), None)
    if truth is None:
        raise SystemExit(f"{folder}: no gt.txt in it")
    rows = np.loadtxt(truth, delimiter=",", ndmin=2)
    rows = rows[rows[:, 6] > 0]
    boxes = np.concatenate([rows[:, 2:4], rows[:, 2:4] + rows[:, 4:6]], 1)
    step = max(1, round(every * rate))
    wanted = [int(f) for f in np.unique(rows[:, 0]) if (int(f) - 1) % step == 0]
    crops, who, when = [], [], []
    for number, frame in frames_of(folder, video, wanted):
        here = np.flatnonzero(rows[:, 0] == number)
        for i in here:
            inside, free = visible_share(boxes[i], boxes[here[here != i]], frame.width, frame.height)
            if inside < 0.9 or free < visible:
                continue
            x0, y0, x1, y1 = boxes[i]
            inner = max(0, x0), max(0, y0), min(frame.width, x1), min(frame.height, y1)
            part = frame.crop(tuple(int(round(v)) for v in inner))
            crops.append(np.asarray(part.resize((128, 256), Image.BILINEAR)).transpose(2, 0, 1))
            who.append(int(rows[i, 1]))
            when.append(number / rate)
    if not crops:
        raise SystemExit(f"{folder}: no crop is left of {len(rows)} boxes")
    return np.stack(crops), np.array(who), np.array(when)


def confusions(crops, rows, who, allowed, count=8):
    """A sheet of the worst mistakes, one a person at most, side by side: above the query, in the middle who the
    model takes for the same person, below the nearest right answer."""
    from PIL import Image
    alike = np.where(allowed, rows @ rows.T, -np.inf)
    same = who[:, None] == who[None]
    right, wrong = np.where(same, alike, -np.inf), np.where(same, -np.inf, alike)
    margin = np.where(np.isfinite(right.max(1)), wrong.max(1) - right.max(1), -np.inf)
    queries, seen = [], set()
    for q in np.argsort(-margin, kind="mergesort"):
        if who[q] not in seen and margin[q] > 0:
            queries.append(q)
            seen.add(who[q])
    queries = queries[:count]
    sheet = Image.new("RGB", (max(1, len(queries)) * 134 + 6, 3 * 262 + 6), (24, 24, 24))
    for column, q in enumerate(queries):
        for row, i in enumerate((q, wrong[q].argmax(), right[q].argmax())):
            sheet.paste(Image.fromarray(np.ascontiguousarray(crops[i].transpose(1, 2, 0))),
                        (6 + column * 134, 6 + row * 262))
    return sheet


def score(root, models, gap=None, visible=0.5, every=0.5, videos=None, wrong=None):
    """{model: {column: value}} over all sequences of a folder; wrong: (sequence, PNG) to draw what the first model
    confuses there."""
    from . import metrics
    root, videos = Path(root), videos or {}
    folders = sorted(p.parent for p in root.glob("*/seqinfo.ini"))
    if not folders:
        raise SystemExit(f"{root}: no folder with a seqinfo.ini in it")
    runs = {"RGB histogram": rgb_histogram, "HSV histogram": hsv_histogram}
    runs.update({str(path): OnnxEmbedding(path) for path in models})
    clip = Path(__file__).resolve().parents[2] / "build/clips/vtest.avi"
    rows = {name: {} for name in runs}
    for folder in folders:
        video = videos.get(folder.name) or (clip if folder.name == "PETS09-S2L1" and clip.exists() else None)
        crops, who, when = sequence_crops(folder, video, every, visible)
        apart = gap or (5.0 if when.max() - when.min() >= 20 else 3.0)
        allowed = np.abs(when[:, None] - when[None]) >= apart
        for name, run in runs.items():
            rows_of = np.concatenate([run(crops[i:i + 64]) for i in range(0, len(crops), 64)])
            got = metrics.retrieval(rows_of, rows_of, who, who, allowed)
            head = f"{folder.name}, {apart:g} s, {got['queries']} queries"
            rows[name][head + ": rank-1"] = round(got["rank1"], 1)
            rows[name][f"{folder.name}: mAP"] = round(got["mAP"], 1)
            if wrong and wrong[0] == folder.name and models and name == str(models[0]):
                confusions(crops, rows_of, who, allowed).save(wrong[1])
    return rows
