"""Tables of cases for the sweeps: functions that move, cut, sort, search and summarize."""

from __future__ import annotations

from typing import Any

import numpy as onp
from numpy_cases import FLOATS, NUMBERS, Case

_FEW = ("bool", "int32", "int64", "float16", "float32")
_BOTH = ("int32", "float32", "float64")


def _rows(name: str, shape: tuple[int, ...], *kwargs: dict[str, Any], **options: Any) -> list[Case]:
    return [Case(name, (shape,), k, dtypes=options.get("dtypes", (*_FEW, "float64")), **_rest(options)) for k in kwargs]


def _rest(options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != "dtypes"}


MOVES = [
    *_rows("roll", (2, 3, 4), {"shift": 1}, {"shift": -5}, {"shift": 2, "axis": 1}, {"shift": (1, -3), "axis": (0, 2)}),
    *_rows("roll", (2, 3, 4), {"shift": 1, "axis": (0, 1)}, {"shift": 0}, {"shift": (2**62, 2**62 + 5, -3)}),
    *_rows("roll", (0, 3), {"shift": 2}, {"shift": 1, "axis": 0}),
    *_rows("moveaxis", (2, 3, 4), {"source": 0, "destination": -1}, {"source": (0, 1), "destination": (-1, 0)}),
    *_rows("rollaxis", (2, 3, 4), {"axis": 2}, {"axis": 0, "start": 3}, {"axis": -1, "start": 1}),
    *_rows("flip", (2, 3, 4), {}, {"axis": 1}, {"axis": (0, -1)}, {"axis": ()}),
    *_rows("flipud", (2, 3), {}),
    *_rows("fliplr", (2, 3), {}),
    *_rows("rot90", (2, 3, 4), *({"k": k} for k in (-1, 0, 1, 2, 3, 6)), {"k": 1, "axes": (2, 0)}),
    *_rows("ravel", (2, 3), {}),
    *_rows("ravel", (), {}),
    *(
        Case("pad", ((3, 2),), {"pad_width": width, "mode": mode}, dtypes=_BOTH)
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap", "maximum", "minimum")
        for width in (((1, 2), (0, 1)), 1, (2, 1), ((9, 4), (7, 12)), 0)
    ),
    Case("pad", ((0, 2),), {"pad_width": 1, "constant_values": 3}, dtypes=_BOTH),
    *(
        Case(name, (shape,), dtypes=("bool", "int32", "float32", "float64"))
        for name in ("atleast_1d", "atleast_2d", "atleast_3d")
        for shape in ((), (3,), (2, 3), (2, 3, 4), (0, 2))
    ),
    Case("atleast_2d", ((), (3,), (2, 2)), dtypes=_BOTH),
    *(
        Case(name, shapes, of_sequence=True, dtypes=("bool", "int32", "float32", "float64"))
        for name in ("vstack", "hstack", "dstack", "column_stack")
        for shapes in (((2, 3), (2, 3)), ((3,), (3,)), ((), ()))
    ),
    Case("hstack", ((2, 1, 3), (2, 4, 3)), of_sequence=True),
    Case("column_stack", ((3,), (3, 2)), of_sequence=True),
    Case("append", ((2, 3), (4,)), dtypes=_BOTH),
    Case("append", ((2, 3), (1, 3)), {"axis": 0}, dtypes=_BOTH),
    Case("broadcast_arrays", ((2, 1), (3,), ()), dtypes=_BOTH),
    *_rows("split", (6, 4), {"indices_or_sections": 3}, {"indices_or_sections": (1, 4)}),
    *_rows("split", (6, 4), {"indices_or_sections": 2, "axis": -1}, {"indices_or_sections": (4, 2, 9, -1)}),
    *_rows("array_split", (5, 3), {"indices_or_sections": 3}, {"indices_or_sections": 2, "axis": 1}),
    *_rows("vsplit", (4, 3), {"indices_or_sections": 2}, {"indices_or_sections": (1,)}),
    *_rows("hsplit", (4, 6), {"indices_or_sections": 2}, {"indices_or_sections": (1, 2)}),
    *_rows("hsplit", (6,), {"indices_or_sections": 3}),
    *_rows("dsplit", (2, 3, 4), {"indices_or_sections": 2}, {"indices_or_sections": (1,)}),
    *_rows("tile", (2, 3), {"reps": 2}, {"reps": (2, 1)}, {"reps": (2, 1, 3)}, {"reps": (0, 2)}, {"reps": ()}),
    *_rows("tile", (), {"reps": (2, 2)}),
    *_rows("repeat", (2, 3), {"repeats": 2}, {"repeats": 3, "axis": 0}, {"repeats": (2, 0, 1), "axis": 1}),
    *_rows("repeat", (2, 3), {"repeats": 0, "axis": -1}),
    *_rows("resize", (2, 3), {"new_shape": (4, 4)}, {"new_shape": 5}, {"new_shape": (0, 2)}),
    *_rows("diff", (3, 5), {}, {"n": 2}, {"axis": 0, "n": 3}, {"n": 0}),
    *_rows("diff", (3, 5), {"prepend": 1}, {"axis": 0, "append": 2}, dtypes=NUMBERS),
    *_rows("ediff1d", (2, 3), {}, {"to_end": 2}, {"to_begin": (1, 2), "to_end": (3,)}, dtypes=NUMBERS),
]

_PLACES: list[dict[str, Any]] = [
    {"obj": 1},
    {"obj": -1, "axis": 0},
    {"obj": slice(1, None, 2), "axis": 1},
    {"obj": slice(4, None, -3)},
    {"obj": slice(3, 1)},
    {"obj": [0, 2, 0], "axis": 1},
]
INSERTION = [
    *_rows("delete", (3, 5), *_PLACES),
    *(Case("delete", ((4,),), {"obj": obj}) for obj in ([], [True, False, True, False], onp.array([1, 3]))),
    *_rows("insert", (3, 5), *({**place, "values": 2} for place in _PLACES), dtypes=NUMBERS),
    *(
        Case("insert", shapes, {"to": str(obj), "axis": axis}, dtypes=_BOTH,
             call=lambda np, a, v, obj=obj, axis=axis: np.insert(a, obj, v, axis))
        for shapes, obj, axis in (
            (((3, 5), (5,)), 1, 0), (((3, 5), (3,)), 2, 1), (((3, 5), (2, 3)), 5, 1), (((5,), (2,)), [1, 1], None),
            (((3, 5), (3, 2)), [4, 0], 1), (((3, 5), (3, 1)), [2], 1), (((5,), (3,)), [2], 0), (((2, 2), ()), 1, 1),
            (((3, 5), (2, 5)), slice(0, 2), 0), (((3, 5), (5,)), slice(2, 3), 0),
        )
    ),
]  # fmt: skip

SORTING = [
    *_rows("sort", (3, 4), {}, {"axis": 0}, {"axis": None}),
    *_rows("argsort", (3, 5), {"kind": "stable"}, {"axis": 0, "kind": "stable"}, {"axis": None, "kind": "stable"},
           dtypes=("int32", "float32"), result="int64", smooth=False),
    Case("lexsort", ((6,), (6,)), of_sequence=True, dtypes=("int32",), result="int64", smooth=False),
    Case("searchsorted", ((6,), (2, 3)), dtypes=NUMBERS, result="int64", smooth=False,
         call=lambda np, a, v: np.searchsorted(np.sort(a), v)),
    Case("searchsorted", ((6,), (2, 3)), {"side": "right"}, dtypes=NUMBERS, result="int64", smooth=False,
         call=lambda np, a, v: np.searchsorted(np.sort(a), v, side="right")),
    *_rows("nonzero", (3, 4), {}, result="int64", smooth=False),
    *_rows("argwhere", (3, 4), {}, result="int64", smooth=False),
    *_rows("flatnonzero", (3, 4), {}, result="int64", smooth=False),
    *_rows("count_nonzero", (3, 4), {}, {"axis": 1}, {"axis": 0, "keepdims": True}, result="int64", smooth=False),
    Case("isin", ((3, 4), (5,)), dtypes=("int32", "int64", "float32"), smooth=False),
    Case("isin", ((3, 4), (0,)), {"invert": True}, dtypes=("int32",), smooth=False),
    *_rows("unique", (3, 4), {}, dtypes=(*NUMBERS, "bool"), smooth=False),
    *_rows("unique", (4, 2), {"axis": 0}, {"axis": 1}, dtypes=("int32", "bool"), smooth=False),
    Case("unique", ((9,),), {"return_index": True, "return_inverse": True, "return_counts": True}, smooth=False,
         dtypes=("int64",)),
    Case("take_along_axis", ((3, 4),), dtypes=_BOTH,
         call=lambda np, a: np.take_along_axis(a, np.argsort(a, axis=1), axis=1)),
    Case("take", ((3, 4),), {"axis": 1}, dtypes=_BOTH, call=lambda np, a: np.take(a, np.array([[0, -1], [3, 1]]), 1)),
    Case("take", ((3, 4),), dtypes=_BOTH, call=lambda np, a: np.take(a, np.array([0, 15, -3]), mode="clip")),
    Case("take", ((3, 4),), {"mode": "wrap"}, dtypes=_BOTH, call=lambda np, a: np.take(a, 13, mode="wrap")),
    Case("compress", ((3, 4),), dtypes=_BOTH, call=lambda np, a: np.compress(np.array([0, 1, 1]) != 0, a, 1)),
    Case("extract", ((3, 4),), dtypes=_BOTH, call=lambda np, a: np.extract(a > 0, a)),
    Case("select", ((3, 4), (4,)), dtypes=_BOTH,
         call=lambda np, a, b: np.select([a > 1, a < -1], [a * 2, b], default=7)),
]  # fmt: skip

_TRUTH: list[dict[str, Any]] = [{}, {"axis": 1}, {"axis": (0, 2), "keepdims": True}, {"axis": ()}]
STATISTICS = [
    *(case for name in ("any", "all") for case in _rows(name, (2, 3, 4), *_TRUTH, smooth=False)),
    *(case for name in ("any", "all") for case in _rows(name, (0, 3), {}, {"axis": 0}, {"axis": 1}, smooth=False)),
    *_rows("average", (2, 3), {}, {"axis": 0}, dtypes=NUMBERS, whole="float"),
    Case("average", ((2, 3), (3,)), {"axis": 1}, low=1, dtypes=NUMBERS, whole="float",
         call=lambda np, a, w: np.average(a, axis=1, weights=w)),
    Case("average", ((2, 3), (2, 3)), low=1, dtypes=NUMBERS, whole="float",
         call=lambda np, a, w: np.average(a, axis=(0, 1), weights=w, returned=True)),
    *_rows("median", (3, 4, 2), {}, {"axis": 1}, {"axis": (0, 2), "keepdims": True}, dtypes=NUMBERS, whole="float"),
    *_rows("ptp", (3, 4), {}, {"axis": 0}, {"axis": 1, "keepdims": True}, dtypes=NUMBERS),
    *(
        Case(name, ((3, 5),), {"q": q, "method": method, "axis": axis}, dtypes=("int32", "float32", "float64"),
             whole="float", call=lambda np, a, name=name, q=q, method=method, axis=axis: getattr(np, name)(
                 a, q, axis=axis, **{"method" if np is onp else "interpolation": method}))
        for name, q in (("percentile", 30), ("percentile", [[10, 90], [25, 40.5]]), ("quantile", 0.5),
                        ("nanpercentile", [20, 75]), ("nanquantile", 0.3))
        for method in ("linear", "lower", "higher", "nearest", "midpoint")
        for axis in (None, 1)
    ),
    *_rows("cumsum", (2, 3), {}, {"axis": 0}, dtypes=("float32", "float64")),
    Case("cumsum", ((2, 3),), {"axis": -1, "dtype": "float64"}, dtypes=("int32", "float32"), result="float64"),
    *_rows("cumprod", (3, 5), {}, {"axis": 0}, {"axis": 1}, dtypes=("int64", "float32", "float64"), low=1, high=2),
    *(
        case
        for name in ("nansum", "nanprod", "nancumsum", "nancumprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd",
                     "nanmedian")
        for case in _rows(name, (3, 4), {}, {"axis": 1}, dtypes=("float32", "float64"))
    ),
    *_rows("nanargmax", (3, 4), {}, {"axis": 1}, dtypes=("float32",), result="int64", smooth=False),
    *_rows("nanargmin", (3, 4), {}, {"axis": 0}, dtypes=("float32",), result="int64", smooth=False),
    Case("bincount", ((8,),), low=0, dtypes=("int32", "int64", "uint8"), result="int64"),
    Case("bincount", ((8,),), {"minlength": 9}, low=0, dtypes=("int64",), result="int64"),
    Case("bincount", ((4,),), {"weights": True}, dtypes=FLOATS,
         call=lambda np, w: np.bincount(np.array([0, 2, 2, 5], dtype="int64"), w)),
    *(
        Case("histogram", ((20,),), options, dtypes=("float32", "float64"), result=result, smooth=False,
             call=lambda np, a, options=options, i=i: np.histogram(a, **options)[i])
        for i, result, options in (
            (0, "int64", {"bins": 5, "range": (-2, 2)}),
            (1, "", {"bins": 5, "range": (-2, 2)}),
            (0, "int64", {"bins": [-3, -1, 0.5, 2]}),
            (1, "float32", {"bins": [-3, -1, 0.5, 2]}),
        )
    ),
    Case("cov", ((3, 5),), dtypes=("float32", "float64")),
    Case("cov", ((3, 5),), {"rowvar": False, "ddof": 0}, dtypes=("float32", "float64")),
    Case("corrcoef", ((3, 5),), dtypes=("float32", "float64")),
    Case("trapezoid", ((3, 5),), {"dx": 0.5}, dtypes=("float32", "float64")),
    Case("trapezoid", ((3, 5), (5,)), dtypes=("float32", "float64")),
    Case("polyval", ((3,), (2, 3))),
    Case("polyval", ((4,), ()), dtypes=NUMBERS),
    Case("interp", ((7,), (4,)), dtypes=("float32", "float64"), smooth=False,
         call=lambda np, x, fp: np.interp(x, np.array([-2.0, -1.0, 0.5, 2.0]), fp)),
    Case("interp", ((7,), (4,)), {"left": -9, "right": 9}, dtypes=("float32",), smooth=False,
         call=lambda np, x, fp: np.interp(x, np.array([-2.0, -1.0, 0.5, 2.0]), fp, left=-9, right=9)),
]  # fmt: skip

GRIDS = [
    *_rows("diag", (3, 4), {}, {"k": 1}, {"k": -2}, {"k": 9}),
    *_rows("diag", (3,), {}, {"k": -1}),
    *_rows("diagflat", (2, 2), {}, {"k": 1}),
    *_rows("diagonal", (2, 3, 4), {}, {"offset": 1, "axis1": 1, "axis2": 2}, {"offset": -7}),
    *(case for name in ("tril", "triu") for case in _rows(name, (2, 3, 4), {}, {"k": 1}, {"k": -2})),
    *(case for name in ("tril", "triu") for case in _rows(name, (3,), {}, {"k": 1})),
    Case("meshgrid", ((3,), (2,)), dtypes=_BOTH),
    Case("meshgrid", ((3,), (2,), (4,)), {"indexing": "ij"}, dtypes=_BOTH),
    Case("meshgrid", ((3,), (2,)), {"sparse": True}, dtypes=_BOTH),
    Case("vander", ((4,),), dtypes=("float32", "float64")),
    Case("vander", ((4,),), {"N": 3, "increasing": True}, dtypes=("float32", "float64")),
    Case("ix_", ((3,), (2,)), dtypes=("int64", "float32")),
    Case("diag_indices_from", ((3, 3),), dtypes=("float32",), result="int64", smooth=False),
]

CASES = [*MOVES, *INSERTION, *SORTING, *STATISTICS, *GRIDS]
