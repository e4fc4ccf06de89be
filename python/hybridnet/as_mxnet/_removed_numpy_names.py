"""Names that NumPy has removed since MXNet 1.9.1, for programs that still use ``np.int``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._lazy_names import no_attribute
from .._user_line import warn

__all__ = ["restore_removed_numpy_names"]

# name: (the old value, the replacement to write)
_REMOVED: dict[str, tuple[Any, str]] = {
    "bool": (bool, "bool"),
    "int": (int, "int"),
    "float": (float, "float"),
    "complex": (complex, "complex"),
    "object": (object, "object"),
    "str": (str, "str"),
    "long": (int, "int"),
    "unicode": (str, "str"),
    "float_": (np.float64, "np.float64"),
    "complex_": (np.complex128, "np.complex128"),
    "unicode_": (np.str_, "np.str_"),
    "string_": (np.bytes_, "np.bytes_"),
    "Inf": (np.inf, "np.inf"),
    "Infinity": (np.inf, "np.inf"),
    "infty": (np.inf, "np.inf"),
    "PINF": (np.inf, "np.inf"),
    "NINF": (-np.inf, "-np.inf"),
    "NaN": (np.nan, "np.nan"),
    "NAN": (np.nan, "np.nan"),
    "PZERO": (0.0, "0.0"),
    "NZERO": (-0.0, "-0.0"),
    "product": (np.prod, "np.prod"),
    "cumproduct": (np.cumprod, "np.cumprod"),
    "sometrue": (np.any, "np.any"),
    "alltrue": (np.all, "np.all"),
    "round_": (np.round, "np.round"),
    "row_stack": (np.vstack, "np.vstack"),
    "asscalar": (lambda array: array.item(), "array.item()"),
    "in1d": (lambda a, b, **options: np.isin(np.ravel(a), b, **options), "np.isin"),
    "trapz": (getattr(np, "trapezoid", None) or getattr(np, "trapz", None), "np.trapezoid"),
}


def restore_removed_numpy_names() -> None:
    """Adds removed names to this NumPy: the first use of each warns and names the line."""
    present = vars(np)
    restored = {name: old for name, old in _REMOVED.items() if name not in present}
    before = present.get("__getattr__")

    def __getattr__(name: str) -> Any:
        if name in restored:
            value, modern = restored[name]
            warn(
                f"NumPy {np.__version__} has no np.{name}; hybridnet.as_mxnet brings it back. Fix: write {modern}.",
                FutureWarning,
            )
            setattr(np, name, value)  # later uses find it directly, without a warning
            return value
        if before is not None:
            return before(name)
        raise no_attribute("numpy", name)

    np.__getattr__ = __getattr__  # type: ignore[method-assign]
