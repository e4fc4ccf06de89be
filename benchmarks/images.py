"""Image operations of data loaders compared with OpenCV: python benchmarks/images.py [--rounds N]

Resizing, affine maps and color changes of images of 32 x 32 and 375 x 500 pixels, one thread on both sides;
microseconds, minima over the rounds (disturbances only add time), and their ratio. Then the time of ImageRecordIter for
an image of 32 x 32 with all augmentations.
"""

from __future__ import annotations

import argparse
import pathlib
import tempfile
import time
from collections.abc import Callable

import cv2
import hybridnet as mx
import numpy as np
from hybridnet import recordio
from hybridnet.io import _pixels, _warping

SIZES = [((32, 32), (28, 28)), ((375, 500), (256, 341))]
MATRIX = np.array([[0.9, 0.3, 1.5], [-0.2, 1.1, 2.0]])
METHODS = {"nearest": 0, "linear": 1, "cubic": 2, "area": 3, "Lanczos": 4}
AUGMENTATIONS = {
    "rand_crop": True, "rand_mirror": True, "max_random_scale": 1.3, "max_rotate_angle": 10, "max_shear_ratio": 2,
    "random_h": 10, "random_s": 40, "random_l": 50, "max_random_illumination": 3,
}  # fmt: skip
ROUND_SECONDS = 0.02


def microseconds(call: Callable[[], object], rounds: int) -> float:
    call()
    best = float("inf")
    for _ in range(rounds):
        calls, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < ROUND_SECONDS:
            call()
            calls += 1
        best = min(best, (time.perf_counter() - begin) / calls)
    return best * 1e6


def hls_with_opencv(image: np.ndarray) -> np.ndarray:
    values = cv2.cvtColor(image, cv2.COLOR_RGB2HLS).astype(np.int16) + np.array([10, -20, 30], np.int16)
    return cv2.cvtColor(np.clip(values, 0, [180, 255, 255]).astype(np.uint8), cv2.COLOR_HLS2RGB)


def pairs(image: np.ndarray, small: tuple[int, int]) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """Our operation and OpenCV's, by name."""
    (rows, columns), (height, width) = small, image.shape[:2]
    found = {}
    for name, method in METHODS.items():
        found[f"resize, {name}"] = (
            lambda method=method: _pixels.resize(image, columns, rows, method),
            lambda method=method: cv2.resize(image, (columns, rows), interpolation=method),
        )
    for name, method in METHODS.items():
        if name != "area":  # not available for maps
            found[f"warp, {name}"] = (
                lambda method=method: _warping.warp(image, MATRIX, width, height, method),
                lambda method=method: cv2.warpAffine(image, MATRIX, (width, height), flags=method),
            )
    found["hue, lightness, saturation"] = (
        lambda: _warping.shift_hls(image, 10, -20, 30),
        lambda: hls_with_opencv(image),
    )
    found["brightness"] = (
        lambda: _pixels.adjust_brightness(image, 1.2),
        lambda: cv2.convertScaleAbs(image, alpha=1.2),
    )
    return found


def record_iterator(images: int = 3000, batch: int = 3) -> float:
    """Microseconds per augmented image."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "images.rec")
        with recordio.MXRecordIO(path, "w") as records:
            for number in range(images):
                picture = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
                records.write(recordio.pack_img(recordio.IRHeader(0, 0.0, number, 0), picture))
        batches = mx.io.ImageRecordIter(path, (3, 28, 28), batch, seed_aug=3, **AUGMENTATIONS)
        begin = time.perf_counter()
        for one in batches:
            one.data[0].wait_to_read()
        return (time.perf_counter() - begin) / images * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    cv2.setNumThreads(1)
    rng = np.random.default_rng(0)
    for size, small in SIZES:
        image = rng.integers(0, 256, (*size, 3), dtype=np.uint8)
        for name, (ours, theirs) in pairs(image, small).items():
            mine, other = microseconds(ours, rounds), microseconds(theirs, rounds)
            print(f"{size[0]} x {size[1]}: {name:28} {mine:8.0f} {other:8.0f}   {mine / other:.2f}")
    print(f"ImageRecordIter, all augmentations: {record_iterator():.0f} us per image")


if __name__ == "__main__":
    main()
