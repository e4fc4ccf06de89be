"""``mx.npx.image``: the functions and augmenters of ``mx.image``, and its operators on arrays of ``mx.np``."""

from __future__ import annotations

import importlib
from typing import Any

from .._lazy_names import no_attribute
from .._public_names import dir_of
from ..numpy._operators import public_operator
from ..util import is_np_array

__all__ = ["is_np_array"]

_OPERATORS = {
    name: f"_npx__image_{name}"
    for name in (
        "adjust_lighting", "crop", "flip_left_right", "flip_top_bottom", "normalize", "random_brightness",
        "random_color_jitter", "random_contrast", "random_flip_left_right", "random_flip_top_bottom", "random_hue",
        "random_lighting", "random_saturation", "resize", "to_tensor",
    )
}  # fmt: skip


def _images() -> Any:
    return importlib.import_module("hybridnet.image")


def __getattr__(name: str) -> Any:
    if name in _OPERATORS:
        found = public_operator(name, _OPERATORS[name], module=__name__)
    elif name.startswith("_") or not hasattr(_images(), name):
        raise no_attribute(__name__, name)
    else:
        found = getattr(_images(), name)
    globals()[name] = found
    return found


def _listed() -> list[str]:
    return sorted({*__all__, *_OPERATORS, *(name for name in dir(_images()) if not name.startswith("_"))})


__dir__ = dir_of(__name__, _listed)
