#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes opencv.bin: a picture and what OpenCV's resize makes of it (opencv-python 5.0.0).

Little endian: for each case int32 width, height, out width, out height, filter (0 bilinear, 1 area),
then the RGB bytes in and the RGB bytes out.
"""
import os
import struct
import cv2
import numpy as np

rng = np.random.default_rng(7)
cases = [(37, 29, 20, 16, 0), (37, 29, 61, 50, 0), (64, 48, 13, 9, 1), (50, 40, 25, 20, 1),
         (33, 17, 1, 1, 0), (5, 3, 40, 30, 0), (1, 1, 7, 5, 0), (40, 30, 40, 30, 0)]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "opencv.bin"), "wb") as out:
    for w, h, ow, oh, kind in cases:
        image = rng.integers(0, 256, (h, w, 3), dtype=np.uint8)
        made = cv2.resize(image, (ow, oh), interpolation=cv2.INTER_AREA if kind else cv2.INTER_LINEAR)
        out.write(struct.pack("<5i", w, h, ow, oh, kind) + image.tobytes() + made.tobytes())
