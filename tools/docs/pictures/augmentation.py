"""Random transforms of images for training: each call draws another crop, flip and color.

The picture is made here, so that nothing is downloaded: rings and a bright spot on a colored ground.
"""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx
import numpy as np
from hybridnet.gluon.data.vision import transforms
from plot import figure

TRANSFORMS = {
    "RandomResizedCrop": transforms.RandomResizedCrop(64, scale=(0.2, 0.6)),
    "RandomFlipLeftRight": transforms.RandomFlipLeftRight(),
    "RandomBrightness": transforms.RandomBrightness(0.6),
    "RandomSaturation": transforms.RandomSaturation(0.9),
    "RandomHue": transforms.RandomHue(0.5),
}


def picture() -> mx.nd.NDArray:
    """An image (96, 96, 3) of bytes."""
    y, x = np.mgrid[0:96, 0:96] / 96
    rings = 0.5 + 0.5 * np.sin(30 * np.hypot(x - 0.35, y - 0.6))
    spot = np.exp(-80 * ((x - 0.75) ** 2 + (y - 0.25) ** 2))
    image = np.stack([0.2 + 0.6 * rings * x + 0.5 * spot, 0.3 + 0.4 * rings + 0.5 * spot, 0.7 - 0.4 * y], axis=-1)
    return mx.nd.array(np.clip(image * 255, 0, 255), dtype="uint8")


def draw(folder: Path) -> None:
    mx.random.seed(4)
    np.random.seed(4)
    image = picture()
    with figure(folder / "augmentation.svg", columns=5, rows=len(TRANSFORMS), size=(1.4, 1.5)) as axes:
        for row, (name, transform) in zip(axes, TRANSFORMS.items()):
            row[0].imshow(image.asnumpy())
            for ax in row[1:]:
                ax.imshow(np.clip(transform(image).asnumpy(), 0, 255).astype("uint8"))
            for ax in row:
                ax.axis("off")
            row[2].set_title(name, fontsize=9)


if __name__ == "__main__":
    draw(Path())
