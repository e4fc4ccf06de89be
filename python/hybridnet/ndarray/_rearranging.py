"""Functions that move, join, split or count the elements of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ValueError as HybridNetValueError
from . import _internal
from ._operators import main_operator
from .ndarray import NDArray

__all__ = ["concatenate", "histogram", "imdecode", "moveaxis", "onehot_encode", "split_v2"]


def moveaxis(tensor: NDArray, source: int | Sequence[int], destination: int | Sequence[int]) -> NDArray:
    """Moves axes to other positions; the others keep their order. Raises ValueError for axes that do not fit."""
    sources = [source] if isinstance(source, (int, np.integer)) else list(source)
    targets = [destination] if isinstance(destination, (int, np.integer)) else list(destination)
    ndim = tensor.ndim

    def checked(axes: list[int], what: str) -> list[int]:
        for axis in axes:
            if not -ndim <= axis < ndim:
                raise HybridNetValueError("moveaxis", expected=f"a {what} in [{-ndim}, {ndim})", given=str(axis))
        normalized = [axis % ndim for axis in axes]
        if len(set(normalized)) != len(normalized):
            raise HybridNetValueError(f"moveaxis: an axis is repeated in {what} {tuple(axes)}")
        return normalized

    sources, targets = checked(sources, "source"), checked(targets, "destination")
    if len(sources) != len(targets):
        raise HybridNetValueError(
            "moveaxis", expected="as many destinations as sources", given=f"{len(targets)} for {len(sources)}"
        )
    order = [axis for axis in range(ndim) if axis not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return main_operator("transpose")(tensor, axes=order)


def concatenate(arrays: Sequence[NDArray], axis: int = 0, always_copy: bool = True) -> NDArray:
    """Joins arrays along an existing axis; with always_copy=False a single array is returned as it is."""
    if not isinstance(arrays, (list, tuple)) or not arrays:
        raise HybridNetValueError(
            "concatenate",
            expected="a list of at least one array",
            given=(
                f"{type(arrays).__name__} of length {(len(arrays) if isinstance(arrays, (list, tuple)) else 'unknown')}"
            ),
        )
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    return main_operator("Concat")(*arrays, dim=axis)


def split_v2(
    ary: NDArray, indices_or_sections: int | Sequence[int], axis: int = 0, squeeze_axis: bool = False
) -> NDArray | list[NDArray]:
    """Splits along axis into equal sections (int) or at the given positions (sequence).

    squeeze_axis: remove the axis, which has size 1 in the parts. Raises ParamError or ShapeError for sections
    that do not divide the axis and for an axis out of range.
    """
    if isinstance(indices_or_sections, (int, np.integer)):
        return _internal._split_v2(ary, indices=(), axis=axis, squeeze_axis=squeeze_axis, sections=indices_or_sections)
    indices = [0, *indices_or_sections]
    return _internal._split_v2(ary, indices=indices, axis=axis, squeeze_axis=squeeze_axis)


def histogram(a: NDArray, bins: int | NDArray = 10, range: tuple[float, float] | None = None) -> list[NDArray]:
    """Returns the counts of values per bin, and the bin edges. bins: their number (with range), or their edges."""
    if isinstance(bins, NDArray):
        return _internal._histogram(a, bins)
    if range is None:
        range = (float(a.min().asscalar()), float(a.max().asscalar()))
    return _internal._histogram(a, bin_cnt=bins, range=range)


def onehot_encode(indices: NDArray, out: NDArray) -> NDArray:
    """Writes one-hot rows of the indices into out."""
    depth = out.shape[-1]
    return main_operator("one_hot")(indices, depth=depth, dtype=np.dtype(out.dtype).name, out=out)


def imdecode(str_img: bytes, **kwargs: Any) -> NDArray:
    """Decodes an encoded image; see ``mx.image.imdecode``."""
    from ..image import imdecode as decode

    return decode(str_img, **kwargs)
