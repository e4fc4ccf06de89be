"""Pooling in one, two and three dimensions, and padding by reflection."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from ...errors import ParamError
from .._hybrid_block import HybridBlock
from ._arguments import one_of, sizes

__all__ = [
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalAvgPool3D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPool3D",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
    "ReflectionPad2D",
]

_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


class _Pooling(HybridBlock):
    """Base of all pooling layers. Shapes: see MaxPool2D."""

    _dimensions = 2

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: Any,
        ceil_mode: bool,
        global_pool: bool,
        pool_type: str,
        layout: str,
        count_include_pad: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        layer, n = type(self).__name__, self._dimensions
        one_of(f"{layer}.layout", layout, _LAYOUTS[n])
        kernel = sizes(f"{layer}.pool_size", pool_size, n, 1)
        self._kwargs: dict[str, Any] = {
            "kernel": kernel,
            "stride": kernel if strides is None else sizes(f"{layer}.strides", strides, n, 1),
            "pad": sizes(f"{layer}.padding", padding, n, 0),
            "global_pool": global_pool,
            "pool_type": pool_type,
            "layout": layout,
            "pooling_convention": "full" if ceil_mode else "valid",
        }
        if count_include_pad is not None:
            self._kwargs["count_include_pad"] = count_include_pad

    def _alias(self) -> str:
        return "pool"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.Pooling(x, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        text = "size={kernel}, stride={stride}, padding={pad}, ceil_mode={ceil_mode}, global_pool={global_pool}"
        text += ", pool_type={pool_type}, layout={layout}"
        ceil_mode = self._kwargs["pooling_convention"] == "full"
        return f"{type(self).__name__}({text.format(ceil_mode=ceil_mode, **self._kwargs)})"


class MaxPool1D(_Pooling):
    """Maximum of windows over one axis. Layouts NCW and NWC; arguments: see MaxPool2D."""

    _dimensions = 1

    def __init__(
        self,
        pool_size: int | Sequence[int] = 2,
        strides: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        layout: str = "NCW",
        ceil_mode: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, ceil_mode, False, "max", layout, **kwargs)


class MaxPool2D(_Pooling):
    """Maximum of windows over height and width.

    Shapes (layout NCHW): data (N, C, H, W); out (N, C, H', W') with H' = (H + 2 * padding - pool) / stride + 1, rounded
    down, or up with ceil_mode.

    Parameters
    ----------
    pool_size : int or 2 ints, default 2
    strides : int or 2 ints, optional
        Default: pool_size.
    padding : int or 2 ints, default 0
    layout : {'NCHW', 'NHWC'}
    ceil_mode : bool, default False

    Raises ParamError for values out of range, ShapeError if the input is smaller than a window.
    """

    def __init__(
        self,
        pool_size: int | Sequence[int] = (2, 2),
        strides: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        layout: str = "NCHW",
        ceil_mode: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, ceil_mode, False, "max", layout, **kwargs)


class MaxPool3D(_Pooling):
    """Maximum of windows over depth, height and width. Layouts NCDHW and NDHWC; arguments: see MaxPool2D."""

    _dimensions = 3

    def __init__(
        self,
        pool_size: int | Sequence[int] = (2, 2, 2),
        strides: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        layout: str = "NCDHW",
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, ceil_mode, False, "max", layout, **kwargs)


class AvgPool1D(_Pooling):
    """Mean of windows over one axis. Layouts NCW and NWC; arguments: see AvgPool2D."""

    _dimensions = 1

    def __init__(
        self,
        pool_size: int | Sequence[int] = 2,
        strides: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        layout: str = "NCW",
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs)


class AvgPool2D(_Pooling):
    """Mean of windows over height and width.

    Shapes and arguments: see MaxPool2D. count_include_pad (default True): whether the mean includes the zeros of the
    padding; otherwise windows are averaged over their values inside the input.
    """

    def __init__(
        self,
        pool_size: int | Sequence[int] = (2, 2),
        strides: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        layout: str = "NCHW",
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs)


class AvgPool3D(_Pooling):
    """Mean of windows over depth, height and width. Layouts NCDHW and NDHWC; arguments: see AvgPool2D."""

    _dimensions = 3

    def __init__(
        self,
        pool_size: int | Sequence[int] = (2, 2, 2),
        strides: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        layout: str = "NCDHW",
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs)


class GlobalMaxPool1D(_Pooling):
    """Maximum of each channel: (N, C, W) becomes (N, C, 1)."""

    _dimensions = 1

    def __init__(self, layout: str = "NCW", **kwargs: Any) -> None:
        super().__init__(1, None, 0, True, True, "max", layout, **kwargs)


class GlobalMaxPool2D(_Pooling):
    """Maximum of each channel: (N, C, H, W) becomes (N, C, 1, 1)."""

    def __init__(self, layout: str = "NCHW", **kwargs: Any) -> None:
        super().__init__(1, None, 0, True, True, "max", layout, **kwargs)


class GlobalMaxPool3D(_Pooling):
    """Maximum of each channel: (N, C, D, H, W) becomes (N, C, 1, 1, 1)."""

    _dimensions = 3

    def __init__(self, layout: str = "NCDHW", **kwargs: Any) -> None:
        super().__init__(1, None, 0, True, True, "max", layout, **kwargs)


class GlobalAvgPool1D(_Pooling):
    """Mean of each channel: (N, C, W) becomes (N, C, 1)."""

    _dimensions = 1

    def __init__(self, layout: str = "NCW", **kwargs: Any) -> None:
        super().__init__(1, None, 0, True, True, "avg", layout, **kwargs)


class GlobalAvgPool2D(_Pooling):
    """Mean of each channel: (N, C, H, W) becomes (N, C, 1, 1)."""

    def __init__(self, layout: str = "NCHW", **kwargs: Any) -> None:
        super().__init__(1, None, 0, True, True, "avg", layout, **kwargs)


class GlobalAvgPool3D(_Pooling):
    """Mean of each channel: (N, C, D, H, W) becomes (N, C, 1, 1, 1)."""

    _dimensions = 3

    def __init__(self, layout: str = "NCDHW", **kwargs: Any) -> None:
        super().__init__(1, None, 0, True, True, "avg", layout, **kwargs)


class ReflectionPad2D(HybridBlock):
    """Pads height and width of (N, C, H, W) with the values mirrored at the border.

    padding: one int, smaller than H and W, or 8 ints (begin, end for each axis). Raises ParamError.
    """

    def __init__(self, padding: int | Sequence[int] = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if isinstance(padding, (int, numbers.Integral)):
            padding = (0, 0, 0, 0) + (int(padding),) * 4
        if len(padding) != 8:
            raise ParamError("ReflectionPad2D.padding", expected="an int or 8 ints", given=repr(padding))
        self._padding = tuple(padding)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.pad(x, mode="reflect", pad_width=self._padding)
