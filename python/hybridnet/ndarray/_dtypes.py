"""Conversion of the dtypes that users pass (names, types, dtypes) to NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import mx_real_t
from ..errors import DTypeError, suggestion

__all__ = ["dtype_name", "numpy_dtype"]


def numpy_dtype(dtype: Any) -> np.dtype:
    """Returns the NumPy dtype of a name, type or dtype; float32 for None. 'bfloat16': from ml_dtypes. DTypeError."""
    if dtype is None:
        return np.dtype(mx_real_t)
    if isinstance(dtype, str) and dtype == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    try:
        return np.dtype(dtype)
    except TypeError as error:
        names = "float32, float64, float16, bfloat16, int8, uint8, int32, int64 or bool"
        fix = suggestion(str(dtype), names.replace(" or ", ", ").split(", "))
        raise DTypeError("dtype", expected=names, given=repr(dtype), fix=fix) from error


_names: dict[Any, str] = {}


def dtype_name(dtype: Any) -> str:
    """Returns the name of a dtype that a user passes: 'float32'. Cached, as NumPy composes names anew each time."""
    try:
        return _names[dtype]
    except KeyError:
        return _names.setdefault(dtype, numpy_dtype(dtype).name)
    except TypeError:  # not hashable
        return numpy_dtype(dtype).name
