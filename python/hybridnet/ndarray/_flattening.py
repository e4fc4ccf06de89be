"""The error for ``x.flatten(0)`` and ``x.flatten(start_dim=1)``: flatten takes no axes here."""

from __future__ import annotations

from typing import Any

from ..errors import ParamError

__all__ = ["takes_no_axes"]


def takes_no_axes(array: Any, axes: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Returns the flag inplace if it is the only positional argument, as in MXNet. Raises ParamError for axes, with the
    call of reshape() that does the same."""
    if len(axes) == 1 and isinstance(axes[0], bool) and not keywords:
        return axes[0]
    given = ", ".join([*map(repr, axes), *(f"{name}={value!r}" for name, value in keywords.items())])
    raise ParamError(
        "flatten",
        expected="no axes",
        given=given,
        because="it always keeps the first axis and merges the others",
        fix=_fix(getattr(array, "shape", None), axes, keywords),
    )


def _fix(shape: tuple[int, ...] | None, axes: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    start, end = ([*axes, None, None])[:2]
    start = keywords.get("start_dim", start) if start is None else start
    end = keywords.get("end_dim", end)
    start = 0 if start is None else start
    rank = len(shape) if shape else 0
    if not isinstance(start, int) or not isinstance(end, (int, type(None))) or not -rank <= start < max(rank, 1):
        return "give all sizes: x.reshape((2, -1)), where -1 is computed"
    start = start % rank if rank else start
    last = rank - 1 if end is None else end % max(rank, 1)
    if start == 1 and last == rank - 1:
        return "write x.flatten()"
    kept = () if shape is None else shape[last + 1 :]
    sizes = ", ".join(map(str, (*[0] * start, -1, *kept)))
    return f"write x.reshape(({sizes}{',' if ',' not in sizes else ''}))"
