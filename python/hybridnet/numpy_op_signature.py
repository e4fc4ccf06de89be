"""Lookup of the public function of ``mx.np`` or ``mx.npx`` that calls an operator."""

from __future__ import annotations

import importlib
from typing import Any

from ._public_names import dir_of
from .errors import ValueError as HybridNetValueError

__all__: list[str] = []

_MODULES = {"_np_": ("numpy", ("random", "linalg")), "_npx_": ("numpy_extension", ("image", "random"))}


def _get_builtin_op(op_name: str) -> Any:
    """Returns the function of an operator ``_np_x`` or ``_npx_x``, None for other names. ValueError if missing."""
    for prefix, (root, submodules) in _MODULES.items():
        if op_name.startswith(prefix):
            name = op_name[len(prefix) :]
            section = next((s for s in submodules if name.startswith(f"_{s}_")), "")
            place = f"{root}.{section}" if section else root
            name = name[len(section) + 2 :] if section else name
            function = getattr(importlib.import_module(f".{place}", __package__), name, None)
            if function is None:
                raise HybridNetValueError(f"hybridnet.{place} has no function {name!r}", given=op_name)
            return function
    return None


__dir__ = dir_of(__name__)
