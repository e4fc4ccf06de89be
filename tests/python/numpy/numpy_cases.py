"""Tables of cases for the sweeps of this folder: functions of mx.np with arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as onp

FLOATS = ("float16", "float32", "float64")
WHOLE = ("bool", "uint8", "int8", "int32", "int64")
NUMBERS = ("int32", "int64", *FLOATS)
ALL = (*WHOLE, *FLOATS)


@dataclass(frozen=True)
class Case:
    """A call: ``getattr(np, name)(*arrays, **kwargs)``, or ``call(np, *arrays)``.

    whole: dtype of the result for integer inputs: "keep" for the dtype of the inputs, "float" for float32, or a dtype.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    low: float = -3
    high: float = 3
    dtypes: tuple[str, ...] = ALL
    whole: str = "keep"
    result: str = ""  # dtype of the result for all inputs, if any
    smooth: bool = True  # central differences at random points agree with the gradients
    call: Callable[..., Any] | None = None
    of_sequence: bool = False  # the arrays are passed as one list

    def __str__(self) -> str:
        kwargs = ",".join(f"{k}={v}" for k, v in self.kwargs.items())
        return f"{self.name}{'x'.join(str(s).replace(' ', '') for s in self.shapes)}{kwargs}"

    def run(self, np: Any, arrays: list[Any]) -> Any:
        if self.call is not None:
            return self.call(np, *arrays)
        function = getattr(np, self.name)
        return function(arrays, **self.kwargs) if self.of_sequence else function(*arrays, **self.kwargs)

    def inputs(self, dtype: str, seed: int = 7) -> list[onp.ndarray]:
        rng = onp.random.default_rng(seed)
        if dtype == "bool":
            return [onp.asarray(rng.random(s) < 0.5) for s in self.shapes]
        if dtype in FLOATS:
            return [onp.asarray(rng.uniform(self.low, self.high, s)).astype(dtype) for s in self.shapes]
        low = int(onp.ceil(max(self.low, 0) if dtype == "uint8" else self.low))
        return [onp.asarray(rng.integers(low, int(self.high) + 1, s)).astype(dtype) for s in self.shapes]

    def expected_dtype(self, dtypes: list[str], numpy_result: onp.ndarray) -> onp.dtype:
        """MXNet's rules, if not NumPy's: floats win over integers, real functions of integers are float32."""
        if self.result:
            return onp.dtype(self.result)
        if numpy_result.dtype == bool:
            return numpy_result.dtype
        floats = [onp.dtype(d) for d in dtypes if d in FLOATS]
        if floats:
            return onp.result_type(*floats)
        if self.whole == "float":
            return onp.dtype("float32")
        if self.whole != "keep":
            return onp.dtype(self.whole)
        if {*dtypes} == {"int8", "uint8"}:
            return onp.dtype("int32")
        return onp.result_type(*[onp.dtype(d) for d in dtypes])


BROADCASTS = [((2, 3), (2, 3)), ((2, 1, 4), (3, 1)), ((), (2, 3)), ((0, 3), (1, 3)), ((), ())]

BINARY = [
    Case(name, shapes, **options)
    for name, options in {
        "add": {},
        "subtract": {"dtypes": NUMBERS},
        "multiply": {},
        "divide": {"low": 1, "whole": "float", "dtypes": NUMBERS},
        "true_divide": {"low": 1, "whole": "float", "dtypes": NUMBERS},
        "mod": {"low": 1, "dtypes": NUMBERS, "smooth": False},
        "remainder": {"low": 1, "dtypes": NUMBERS, "smooth": False},
        "power": {"low": 1, "dtypes": NUMBERS},
        "maximum": {},
        "minimum": {},
        "hypot": {"low": 1, "whole": "float", "dtypes": NUMBERS},
        "arctan2": {"low": 1, "whole": "float", "dtypes": NUMBERS},
        "copysign": {"low": 1, "whole": "float", "dtypes": NUMBERS},
        "lcm": {"dtypes": ("int32", "int64", "int8", "uint8"), "smooth": False},
        "gcd": {"dtypes": ("int32", "int64", "int8", "uint8"), "smooth": False},
        "bitwise_and": {"dtypes": WHOLE, "smooth": False},
        "bitwise_or": {"dtypes": WHOLE, "smooth": False},
        "bitwise_xor": {"dtypes": WHOLE, "smooth": False},
        "logical_and": {"smooth": False},
        "logical_or": {"smooth": False},
        "logical_xor": {"smooth": False},
        "floor_divide": {"low": 1, "dtypes": NUMBERS, "smooth": False},
        "equal": {"smooth": False},
        "not_equal": {"smooth": False},
        "greater": {"smooth": False},
        "greater_equal": {"smooth": False},
        "less": {"smooth": False},
        "less_equal": {"smooth": False},
    }.items()
    for shapes in BROADCASTS
]

_REAL = {
    "exp": (-2, 2), "expm1": (-2, 2), "log": (1, 3), "log2": (1, 3), "log10": (1, 3), "log1p": (0, 3), "sqrt": (1, 4),
    "cbrt": (1, 4), "sin": (-3, 3), "cos": (-3, 3), "tan": (-1, 1), "arcsin": (-0.9, 0.9), "arccos": (-0.9, 0.9),
    "arctan": (-3, 3), "sinh": (-2, 2), "cosh": (-2, 2), "tanh": (-2, 2), "arcsinh": (-3, 3), "arccosh": (2, 4),
    "arctanh": (-0.9, 0.9), "degrees": (-3, 3), "radians": (-90, 90), "rad2deg": (-3, 3), "deg2rad": (-90, 90),
}  # fmt: skip
_KEEPING = {
    "negative": True, "abs": True, "absolute": True, "sign": False, "square": True, "floor": False, "ceil": False,
    "trunc": False, "fix": False, "rint": False,
}  # fmt: skip
UNARY = [
    *(
        Case(name, (shape,), low=low, high=high, whole="float", dtypes=NUMBERS)
        for name, (low, high) in _REAL.items()
        for shape in ((2, 3), (), (0, 2))
    ),
    *(
        Case(name, (shape,), smooth=smooth, dtypes=NUMBERS)
        for name, smooth in _KEEPING.items()
        for shape in ((2, 3), (), (0, 2))
    ),
    Case("reciprocal", ((2, 3),), low=1, dtypes=FLOATS),
    Case("fabs", ((2, 3),), dtypes=FLOATS),
    Case("logical_not", ((2, 3),), smooth=False),
    Case("bitwise_not", ((2, 3),), dtypes=WHOLE, smooth=False),
    Case("invert", ((),), dtypes=WHOLE, smooth=False),
    *(
        Case(name, ((7,),), dtypes=FLOATS, smooth=False, call=lambda np, x, name=name: getattr(np, name)(x / (x - x)))
        for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf")
    ),
    *(Case(name, ((2, 3),), smooth=False) for name in ("isnan", "isfinite", "isposinf")),
    Case("nan_to_num", ((2, 3),), dtypes=NUMBERS),
    Case(
        "nan_to_num",
        ((7,),),
        {"nan": 2},
        dtypes=FLOATS,
        smooth=False,
        call=lambda np, x: np.nan_to_num(x / (x - x), nan=2.0, posinf=1.0, neginf=-1.0),
    ),
    Case("around", ((2, 3),), dtypes=NUMBERS, smooth=False),
    Case("around", ((2, 3),), {"decimals": 1}, dtypes=("float32", "float64"), smooth=False),
    Case("around", ((2, 3),), {"decimals": -1}, low=-100, high=100, dtypes=("int32", "int64", "float32"), smooth=False),
    Case(
        "round", ((4,),), {"halves": True}, dtypes=FLOATS, smooth=False, call=lambda np, x: np.round(np.rint(x) + 0.5)
    ),
    Case("clip", ((2, 3),), {"a_min": -1, "a_max": 1}, dtypes=NUMBERS),
    Case("clip", ((2, 3),), {"a_min": None, "a_max": 1}, dtypes=NUMBERS),
    Case("clip", ((2, 3), (3,)), dtypes=NUMBERS, call=lambda np, x, low: np.clip(x, low, None)),
]

CHOICES = [
    *(
        Case("where", shapes, call=lambda np, c, x, y: np.where(c > 0, x, y))
        for shapes in (((2, 3), (2, 3), (2, 3)), ((2, 1), (3,), ()), ((0, 3), (1, 3), (3,)))
    ),
    Case("where", ((2, 3), (2, 3)), {"y": 0}, dtypes=NUMBERS, call=lambda np, c, x: np.where(c > 0, x, 0)),
    Case("where", ((2, 3), (2, 3)), {"x": 1}, dtypes=NUMBERS, call=lambda np, c, y: np.where(c > 0, 1, y)),
    Case(
        "where", ((2, 3),), {"x": 1, "y": 2}, result="float32", smooth=False, call=lambda np, c: np.where(c > 0, 1, 2)
    ),
]

_AXES: list[dict[str, Any]] = [
    {},
    {"axis": 0},
    {"axis": -1},
    {"axis": (0, 2)},
    {"axis": ()},
    {"axis": 1, "keepdims": True},
    {"keepdims": True},
]
REDUCTIONS = [
    Case(name, ((2, 3, 4),), kwargs, **options)
    for name, options in {
        "sum": {"dtypes": ("int32", "int64", *FLOATS)},
        "prod": {"dtypes": ("int32", "int64", "float32", "float64"), "low": 1, "high": 2},
        "mean": {"whole": "float"},
        "std": {"whole": "float", "dtypes": NUMBERS},
        "var": {"whole": "float", "dtypes": NUMBERS},
        "max": {},
        "min": {},
        "amax": {},
        "amin": {},
    }.items()
    for kwargs in _AXES
    if kwargs.get("axis") != () or name not in ("std", "var")
] + [
    Case("sum", ((),), dtypes=NUMBERS),
    Case("sum", ((2, 3),), {"axis": 0, "initial": 2}, dtypes=NUMBERS),
    Case("sum", ((2, 3),), {"dtype": "float64"}, result="float64"),
    Case("sum", ((2, 3),), dtypes=("bool",), whole="int64"),
    Case("sum", ((0, 3),), {"axis": 0}, dtypes=FLOATS),
    Case("prod", ((0,),), dtypes=FLOATS),
    Case("mean", ((2, 3),), {"dtype": "float64"}, result="float64"),
    Case("var", ((4, 3),), {"ddof": 1, "axis": 0}, whole="float", dtypes=NUMBERS),
    Case("std", ((4, 3),), {"ddof": 1}, whole="float", dtypes=NUMBERS),
    Case("max", ((),)),
    *(
        Case(name, (shape,), kwargs, result="int64", smooth=False)
        for name in ("argmax", "argmin")
        for shape, kwargs in (
            ((2, 3), {}),
            ((2, 3), {"axis": 0}),
            ((2, 3, 4), {"axis": -1}),
            ((), {}),
            ((), {"axis": 0}),
            ((), {"axis": -1}),
        )
    ),
]

SHAPES = [
    Case("reshape", ((2, 3, 4),), {"newshape": (4, 6)}, call=lambda np, x: np.reshape(x, (4, 6))),
    Case("reshape", ((2, 3, 4),), {"to": -1}, call=lambda np, x: np.reshape(x, -1)),
    Case("reshape", ((2, 3, 4),), {"to": (2, -1)}, call=lambda np, x: np.reshape(x, (2, -1))),
    Case("reshape", ((1, 1),), {"to": ()}, call=lambda np, x: np.reshape(x, ())),
    Case("reshape", ((0, 4),), {"to": (2, 0, 3)}, call=lambda np, x: np.reshape(x, (2, 0, 3))),
    Case("transpose", ((2, 3, 4),)),
    Case("transpose", ((2, 3, 4),), {"axes": (1, 2, 0)}),
    Case("transpose", ((),)),
    Case("swapaxes", ((2, 3, 4),), {"axis1": 0, "axis2": -1}),
    Case("expand_dims", ((2, 3),), {"axis": 1}),
    Case("expand_dims", ((),), {"axis": -1}),
    Case("squeeze", ((1, 3, 1),)),
    Case("squeeze", ((1, 3, 1),), {"axis": 0}),
    Case("squeeze", ((1, 1),)),
    Case("broadcast_to", ((3, 1),), {"shape": (2, 3, 4)}),
    Case("broadcast_to", ((),), {"shape": (2, 2)}),
    Case("broadcast_to", ((1, 3),), {"shape": (0, 3)}),
    *(
        Case("concatenate", shapes, kwargs, of_sequence=True)
        for shapes, kwargs in (
            (((2, 3), (4, 3)), {}),
            (((2, 3), (2, 1), (2, 2)), {"axis": -1}),
            (((2, 3), (4,)), {"axis": None}),
            (((0, 3), (2, 3)), {}),
        )
    ),
    Case("stack", ((2, 3), (2, 3)), of_sequence=True),
    Case("stack", ((2, 3), (2, 3), (2, 3)), {"axis": -1}, of_sequence=True),
    Case("stack", ((), ()), of_sequence=True),
    Case("zeros_like", ((2, 3),), smooth=False),
    Case("ones_like", ((2, 3),), smooth=False),
    Case("full_like", ((2, 3),), {"fill_value": 1}, smooth=False),
    Case("copy", ((2, 3),)),
]

_SMALL = ("bool", "int32", "int64", "float32", "float64")
PRODUCTS = [
    *(
        Case("dot", shapes, dtypes=_SMALL)
        for shapes in (
            ((3, 4), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 3)), ((2, 3, 4), (4,)), ((2, 3), (2, 3, 4)),
            ((2, 3, 4), (2, 4, 3)), ((), (2, 3)), ((), ()),
        )
    ),
    *(
        Case("matmul", shapes, dtypes=_SMALL)
        for shapes in (
            ((3, 4), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 3)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)),
            ((2, 1, 3, 4), (5, 4, 2)), ((4,), (2, 4, 3)), ((2, 3, 4), (4,)), ((0, 3, 4), (0, 4, 2)),
        )
    ),
]  # fmt: skip

CASES = [*BINARY, *UNARY, *CHOICES, *REDUCTIONS, *SHAPES, *PRODUCTS]
