"""Operators with parameters from sizes or values: they give the results of the operator that they run."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core, autograd, nd
from hybridnet.errors import HybridNetError, ParamError

SIZES = [(2, 3), (5, 3), (7, 4), (1, 1), (6, 2)]


def _sized(name: str, op: str, attrs: str, *inputs: Any, num_data: int = 1, **more: Any) -> Any:
    space = mx.sym if isinstance(inputs[0], mx.sym.Symbol) else nd
    return getattr(space._internal, name)(*inputs, op=op, attrs=attrs, num_data=num_data, **more)


def _repeated(x: Any, like: Any) -> Any:
    return _sized("_with_sizes", "broadcast_to", "shape=({#1.0},{#0.1})", x, like)


def _folded(x: Any, like: Any) -> Any:
    return _sized("_view_with_sizes", "_np_reshape", "newshape=({#1.1},-1)", x, like)


def _cut(x: Any, like: Any) -> Any:
    return _sized("_with_sizes", "slice", "begin=(0,{#1.1 1 -});end=({#0.0 1 + 2 //},{#1.1})", x, like)


CASES = {
    "broadcast_to": (_repeated, lambda x, y: np.broadcast_to(x, (y.shape[0], x.shape[1])), lambda m, n: (1, n)),
    "reshape": (_folded, lambda x, y: x.reshape(y.shape[1], -1), lambda m, n: (n, m)),
    "slice": (_cut, lambda x, y: x[: (x.shape[0] + 1) // 2, y.shape[1] - 1 : y.shape[1]], lambda m, n: (m, n + 2)),
}


def _inputs(case: str, m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(m * 10 + n)
    return draw.standard_normal(CASES[case][2](m, n)).astype("float32"), np.zeros((m, n), "float32")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("how", ["arrays", "hybridized", "static", "exported"])
def test_one_graph_has_the_results_of_the_operator_for_all_sizes(case: str, how: str, tmp_path: Any) -> None:
    function, expected, _ = CASES[case]
    x, y = mx.sym.var("x"), mx.sym.var("y")
    run: Any = function
    if how != "arrays":
        run = mx.gluon.SymbolBlock(function(x, y), [x, y])
        run.hybridize(static_alloc=how == "static")
    if how == "exported":
        function(x, y).save(str(tmp_path / "m-symbol.json"))
        run = mx.gluon.SymbolBlock.imports(str(tmp_path / "m-symbol.json"), ["x", "y"])
        run.hybridize()
    for m, n in SIZES:
        values = _inputs(case, m, n)
        np.testing.assert_array_equal(run(*map(nd.array, values)).asnumpy(), expected(*values))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("hybridize", [False, True])
def test_gradients_are_those_of_the_operator(case: str, hybridize: bool) -> None:
    function, expected, _ = CASES[case]
    x, y = mx.sym.var("x"), mx.sym.var("y")
    run: Any = mx.gluon.SymbolBlock(function(x, y), [x, y]) if hybridize else function
    if hybridize:
        run.hybridize()
    for m, n in SIZES:
        data, like = map(nd.array, _inputs(case, m, n))
        data.attach_grad()
        with autograd.record():
            (run(data, like) * 3).sum().backward()
        places = np.arange(data.size).reshape(data.shape)
        reads = np.bincount(expected(places, like.asnumpy()).reshape(-1), minlength=data.size)
        np.testing.assert_array_equal(data.grad.asnumpy(), 3 * reads.reshape(data.shape))


def test_more_than_two_sizes_are_served_without_rewriting_the_graph_again() -> None:
    x, y = mx.sym.var("x"), mx.sym.var("y")
    graph = _core.CachedOp(_repeated(x, y) * 2)
    rewritten = []
    for m in (3, 5, 7, 8, 9, 12, 13):
        out = graph(*map(nd.array, _inputs("broadcast_to", m, 4)))
        assert (out[0] if isinstance(out, list) else out).shape == (m, 4)
        rewritten.append(graph.num_rewritten)
    assert rewritten[-1] == rewritten[2]


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("hybridize", [False, True])
def test_parameters_that_are_values_follow_them_in_each_call(dtype: str, hybridize: bool) -> None:
    x, s = mx.sym.var("x"), mx.sym.var("s", dtype=dtype)
    function = mx.sym._internal._with_values(x, s, op="_npx_reshape", attrs="newshape=({@1})")
    run: Any = mx.gluon.SymbolBlock(function, [x, s])
    if hybridize:
        run.hybridize()
    data = np.arange(12, dtype="float32")
    for shape in ((3, 4), (12, 1), (2, -1), (4, 3)):
        array = nd.array(data)
        array.attach_grad()
        with autograd.record():
            out = run(array, nd.array(np.array(shape, dtype), dtype=dtype))
            (out * out).sum().backward()
        np.testing.assert_array_equal(out.asnumpy(), data.reshape(shape))
        np.testing.assert_array_equal(array.grad.asnumpy(), 2 * data)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("#0.0 #0.1 * 2 +", 8), ("#0.-1", 3), ("#0", 2), ("#0.0 #0.1 min", 2), ("#0.0 #0.1 max", 3), ("7 2 //", 3),
        ("#0.0 5 - 3 //", -1), ("#0.0 5 - 3 %", 0), ("7 3 %", 1), ("5 2 / floor", 2), ("5 2 / ceil", 3),
        ("5 2 / round", 2), ("7 2 / round", 4), ("-5 2 / trunc", -2), ("-4 abs", 4), ("4 neg abs", 4),
        ("#0.0 2 == 9 4 ?", 9), ("#0.0 3 == 9 4 ?", 4), ("1 2 < 5 6 ?", 5), ("2 2 <= 5 6 ?", 5),
    ],
)  # fmt: skip
def test_expressions_have_pythons_values(expression: str, value: int) -> None:
    row = nd.arange(40).reshape((1, 40))
    replaced = expression.replace("#0", "#1")
    start = _sized("_with_sizes", "slice", f"begin=(0,{{{replaced} 10 +}});end=(None,None)", row, nd.zeros((2, 3)))
    assert start.asnumpy()[0, 0] == value + 10


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: _sized("_with_sizes", "slice", "begin=({#0.0);end=(1,)", x), "a } for each {"),
        (lambda x: _sized("_with_sizes", "slice", "begin", x), "name=value"),
        (lambda x: _sized("_with_sizes", "slice", "begin=({#0.0 +});end=(1,)", x), "an operand is missing"),
        (lambda x: _sized("_with_sizes", "slice", "begin=({1 2});end=(1,)", x), "leaves 2 values"),
        (lambda x: _sized("_with_sizes", "slice", "begin=({1 0 //});end=(1,)", x), "divides by zero"),
        (lambda x: _sized("_with_sizes", "slice", "begin=({1 2 ^});end=(1,)", x), "is not an operator"),
        (lambda x: _sized("_with_sizes", "slice", "begin=({#3.0});end=(1,)", x), "numbers of inputs"),
        (lambda x: _sized("_with_sizes", "slice", "begin=({#0.5});end=(1,)", x), "has shape"),
        (lambda x: _sized("_with_sizes", "slice", "begin=({@0.0});end=(1,)", x), "sizes alone"),
        (lambda x: _sized("_with_sizes", "no_such_operator", "", x), "unknown operator"),
        (lambda x: _sized("_with_sizes", "Dropout", "p=0.5", x), "public operator"),
        (lambda x: _sized("_with_sizes", "sgd_mom_update", "lr=1", x, x, x, num_data=3), "public operator"),
        (lambda x: _sized("_with_sizes", "_foreach", "", x), "public operator"),
        (lambda x: _sized("_with_sizes", "_with_sizes", "op=relu;attrs=", x), "public operator"),
        (lambda x: _sized("_with_sizes", "_backward_take", "", x), "public operator"),
        (lambda x: _sized("_with_sizes", "_npi_sum", "", x), "unknown operator"),
        (lambda x: _sized("_with_sizes", "_np_sum", "", x), "with a kernel"),
        (lambda x: _sized("_with_sizes", "broadcast_add", "", x), "num_data"),
        (lambda x: _sized("_with_sizes", "relu", "", x, num_data=2), "num_data"),
        (lambda x: _sized("_with_sizes", "relu", "", x, num_outputs=3), "num_outputs"),
        (lambda x: _sized("_with_sizes", "SliceChannel", "num_outputs={#0.1}", x), "num_outputs"),
        (lambda x: _sized("_view_with_sizes", "transpose", "axes=(1,0)", x), "changes the shape alone"),
        (lambda x: _sized("_with_values", "relu", "", x, x, num_data=2), "num_data"),
        (lambda x: _sized("_with_values", "_np_reshape", "newshape=({@1.9},-1)", x, x), "has 6 values"),
        (lambda x: _sized("_with_values", "_np_reshape", "newshape=({@1 1 +},-1)", x, x), "stand alone"),
    ],
)
def test_templates_and_operators_that_do_not_fit_are_named(call: Any, said: str) -> None:
    with pytest.raises(HybridNetError, match=said.replace("{", r"\{").replace("}", r"\}")):
        call(nd.ones((2, 3))).wait_to_read()


def test_inference_of_one_use_tells_shapes_and_dtypes_of_its_outputs() -> None:
    assert _core.infer_use("dot", {}, [((2, 3), "float32"), ((3, 4), "float32")]) == [((2, 4), "float32")]
    assert _core.infer_use("relu", {}, [((-1, 3), "float16")]) == [((-1, 3), "float16")]
    assert _core.infer_use("relu", {}, [(None, "float16")]) == [(None, "float16")]
    with pytest.raises(ParamError, match="2 specs"):
        _core.infer_use("dot", {}, [((2, 3), "float32")])
