"""Positions of elements are exact, or the operator warns and says how to get exact ones."""

import os
import subprocess
import sys
import warnings

import hybridnet as mx
import numpy as np
import pytest

NARROW = ("float16", "bfloat16", "int8", "uint8", "bool")


def rows(dtype, length=5000, at=(4097, 2051)):
    data = np.zeros((2, length))
    data[(0, 1), at] = 1
    return mx.nd.array(data).astype(dtype)


class Extremes(mx.gluon.HybridBlock):
    def forward(self, x):
        return mx.nd.argmax(x, axis=1), mx.nd.argmax_channel(x), mx.nd.argmin(1 - x, axis=1)


@pytest.mark.parametrize("dtype", ("float32", "float64", "int32", "int64", *NARROW))
@pytest.mark.parametrize("hybrid", [False, True])
def test_positions_of_extremes_are_exact_in_every_dtype(dtype, hybrid):
    net = Extremes()
    if hybrid:
        net.hybridize()
    data = rows(dtype)
    found = net(data) if dtype != "bool" else (mx.nd.argmax(data, axis=1), mx.nd.argmax_channel(data))
    for positions in found:
        assert positions.asnumpy().tolist() == [4097, 2051]
        assert np.dtype(positions.dtype) == np.dtype("float32" if dtype in NARROW else dtype)


def test_the_symbol_infers_the_dtype_of_positions():
    x = mx.sym.var("x")
    for dtype, expected in (("float16", "float32"), ("float32", "float32"), ("int8", "float32"), ("int64", "int64")):
        _, outputs, _ = mx.sym.argmax(x, axis=1).infer_type(x=dtype)
        assert np.dtype(outputs[0]) == np.dtype(expected)


@pytest.mark.parametrize("op", [mx.sym.argmax, mx.sym.argmin, mx.sym.argmax_channel])
def test_the_dtype_of_positions_tells_that_of_data(op):
    positions = op(mx.sym.var("x"), **({} if op is mx.sym.argmax_channel else {"axis": 1}))
    for dtype in ("float32", "float64", "int32"):
        inputs, _, _ = mx.sym.broadcast_add(positions, mx.sym.var("y")).infer_type(y=dtype)
        assert [np.dtype(each) for each in inputs] == [np.dtype(dtype)] * 2


WARNINGS = {
    "argmax": (lambda: mx.nd.argmax(mx.nd.zeros((1, (1 << 24) + 2)), axis=1), "float32", "mx.np"),
    "topk": (lambda: mx.nd.topk(rows("float32"), k=2, dtype="float16"), "float16", "dtype='int32'"),
    "argsort": (lambda: mx.nd.argsort(mx.nd.ones((300,)), dtype="uint8"), "uint8", "dtype='int32'"),
    "_contrib_arange_like": (
        lambda: mx.nd.contrib.arange_like(mx.nd.ones((300,)).astype("bfloat16")),
        "bfloat16",
        "cast data",
    ),
}


@pytest.mark.parametrize(("run", "dtype", "fix"), WARNINGS.values(), ids=WARNINGS)
def test_positions_that_the_dtype_cannot_hold_warn_once(run, dtype, fix, request):
    op = request.node.callspec.id
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            run().wait_to_read()
    (message,) = [str(each.message) for each in caught]
    assert f"'{op}'" in message
    assert f"do not fit in {dtype}" in message
    assert fix in message


@pytest.mark.parametrize(
    "run",
    [
        lambda: mx.nd.contrib.arange_like(mx.nd.ones((257,)).astype("bfloat16")),
        lambda: mx.nd.contrib.arange_like(mx.nd.ones((2049,)).astype("float16")),
        lambda: mx.nd.contrib.arange_like(mx.nd.ones((300,)).astype("bfloat16"), step=0.5),
        lambda: mx.nd.contrib.arange_like(mx.nd.ones((2000,)).astype("float16"), start=-2, step=2),
        lambda: mx.nd.contrib.arange_like(mx.nd.ones((200,)).astype("int8"), start=-128),
        lambda: mx.nd.contrib.arange_like(mx.nd.ones((129,)).astype("int8"), step=-1),
        lambda: mx.nd.contrib.arange_like(mx.nd.ones((300,)).astype("bfloat16"), step=float("inf")),
        lambda: mx.nd.contrib.arange_like(mx.nd.ones((300,)).astype("bfloat16"), start=2.0**100, step=2.0**100),
        lambda: mx.nd.topk(rows("float32", 200, (3, 7)), k=2, dtype="uint8"),
    ],
)
def test_positions_that_fit_do_not_warn(run):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run().wait_to_read()


@pytest.mark.parametrize(("count", "dtype", "start", "step"), [
    (2050, "float16", 0, 1), (2053, "float16", 2, -1), (1030, "float16", 0, 3), (2051, "float16", 0, 2),
    (130, "int8", 0, -1), (129, "int8", 0, 1), (300, "uint8", 0, 1),
])  # fmt: skip
def test_ranges_that_do_not_fit_warn(count, dtype, start, step):
    exact = start + step * np.arange(count)
    names = {"mx": mx, "data": mx.nd.ones((count,)).astype(dtype), "start": start, "step": step}
    # A line of its own: it warns once for each line.
    line = compile("mx.nd.contrib.arange_like(data, start=start, step=step)", f"{count}{dtype}{start}{step}", "eval")
    with pytest.warns(UserWarning, match="'_contrib_arange_like'"):
        found = eval(line, names).asnumpy()
    assert not np.array_equal(found.astype("float64"), exact)


def test_strict_mode_makes_it_an_error():
    program = "import hybridnet as mx; mx.nd.argsort(mx.nd.ones((300,)), dtype='uint8').wait_to_read()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "HYBRIDNET_STRICT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "DTypeError: operator 'argsort': positions up to 299 do not fit in uint8" in done.stderr
