# ruff: noqa: E501
"""while_loop in graphs without a fixed number of rows: limits of the run, no limit, on_limit, growing variables."""

from __future__ import annotations

import json
import signal
import threading
import warnings

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core, errors, gluon
from hybridnet.contrib import cond, foreach, while_loop

from . import c_model
from .blocks import Block, flat, wait_for

nd = mx.nd


@pytest.fixture(autouse=True)
def numpy_shapes():
    with mx.util.np_shape(True):
        yield


def values(scale=0.3, dtype="float64"):
    return nd.array(np.random.default_rng(0).normal(size=(3, 2)) * scale, dtype=dtype)


def number(value, dtype="float32"):
    return nd.array(np.full((), value), dtype=dtype)


def concat(*parts):
    return (mx.sym if isinstance(parts[0], mx.sym.Symbol) else nd).concat(*parts, dim=0)


def results(block, arrays, recorded=True):
    """Returns outputs, then gradients of the sum of their squares."""
    arrays = [a.copy() for a in arrays]
    floating = [a for a in arrays if a.ndim > 0]
    for a in floating:
        a.attach_grad()
    if not recorded:
        return [o.asnumpy() for o in flat(block(*arrays))]
    with mx.autograd.record():
        outs = flat(block(*arrays))
        total = sum((o.astype("float64") ** 2).sum() for o in outs)
    total.backward()
    return [a.asnumpy() for a in outs] + [a.grad.asnumpy() for a in floating]


def hybridized(function, *children):
    block = Block(function, *children)
    block.hybridize()
    return block


def step(i, v):
    return v * v + v, (i + 1, v * 0.9 + 0.1 * v.sin())


# Functions of x with shape (3, 2) and a number n.
FUNCTIONS = {
    "exact": lambda x, n: while_loop(lambda i, v: i < n, step, (0, x), exact=True),
    "exact with count": lambda x, n: while_loop(lambda i, v: i < n, step, (0, x), exact=True, return_count=True),
    "limit of the run": lambda x, n: while_loop(lambda i, v: i < 20, step, (0, x), n),
    "limit of the run, exact": lambda x, n: while_loop(lambda i, v: i < 9, step, (0, x), n, exact=True),
    "limit of the run, no outputs": lambda x, n: while_loop(lambda v: v.sum() < 1e9, lambda v: v * 0.9 + x * x, x, n, has_outputs=False),
    "no limit, no outputs": lambda x, n: while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v * 0.9 + x * x), (0, x), has_outputs=False)[1],
    "two variables that start alike": lambda x, n: while_loop(lambda i, a, b: i < n, lambda i, a, b: (a * b, (i + 1, b, a * 0.5)), (0, x, x), exact=True),
    "checkpoint": lambda x, n: while_loop(lambda i, v: i < n, step, (0, x), exact=True, checkpoint="sqrt"),
    "growing variable": lambda x, n: while_loop(lambda i, v: i < n, lambda i, v: (i + 1, concat(v, v[-1:] * 0.5)), (0, x), has_outputs=False, shape_invariants={1: (None, 2)})[1],
    "growing variable with outputs": lambda x, n: while_loop(lambda i, v: i < n, lambda i, v: (v.sum(axis=0), (i + 1, concat(v, v[-1:] * 0.5))), (0, x), exact=True, shape_invariants={1: (None, 2)}),
    "shrinking variable": lambda x, n: while_loop(lambda v: v.max() > -1e9, lambda v: (v[0] * 2, v[1:] + v[0]), concat(*[x] * 11), n, shape_invariants={0: (None, 2)}),
    "in a loop": lambda x, n: foreach(lambda d, s: (while_loop(lambda i, v: i < n, step, (0, d + s), exact=True)[0].sum(axis=0), s + d), x, x[0]),
    "no limit in a loop": lambda x, n: foreach(lambda d, s: (while_loop(lambda v: (v * v).sum() < n.astype("float64"), lambda v: v * 1.5 + 0.1, d, has_outputs=False), s * 0.5 + d), x, x[0], reverse=True),
    "in a branch": lambda x, n: cond(n > 2, lambda: while_loop(lambda i, v: i < n, step, (0, x), exact=True)[0].sum(axis=0), lambda: x * 2),
    "in a loop of its own kind": lambda x, n: while_loop(lambda i, v: i < n, lambda i, v: (while_loop(lambda j, w: j < i, step, (0, v), exact=True)[0].sum(axis=0), (i + 1, v * 0.7)), (0, x), exact=True),
}  # fmt: skip


@pytest.mark.parametrize("count", [0, 1, 3, 8, 9, 30])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_equal_arrays(name, count):
    arrays = (values(), number(count))
    want = results(Block(FUNCTIONS[name]), arrays)
    block = hybridized(FUNCTIONS[name])
    for recorded in (True, False, True):
        for one, other in zip(results(block, arrays, recorded), want, strict=False):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("count", [0, 2, 11])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_exported_files_give_the_same(name, count, tmp_path):
    block, arrays = hybridized(FUNCTIONS[name]), (values(), number(count))
    want = results(block, arrays)
    files = block.export(str(tmp_path / "m"))
    loaded = gluon.SymbolBlock.imports(files[0], ["data0", "data1"], files[1])
    for one, other in zip(results(loaded, arrays), want, strict=True):
        assert one.shape == other.shape
        np.testing.assert_array_equal(one, other)
    outs = c_model.run(*files, {"data0": arrays[0].asnumpy(), "data1": arrays[1].asnumpy()})
    for one, other in zip(outs, want, strict=False):
        assert one.shape == other.shape
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_central_differences(name):
    block, n, h = hybridized(FUNCTIONS[name]), number(4), 1e-6
    x = values()
    gradient = results(block, (x, n))[-1]

    def total(array):
        return sum(float((o.astype("float64") ** 2).sum().asscalar()) for o in flat(block(array, n)))

    for at in np.ndindex(x.shape):
        shift = np.zeros(x.shape)
        shift[at] = h
        difference = (total(x + nd.array(shift, dtype="float64")) - total(x - nd.array(shift, dtype="float64"))) / (
            2 * h
        )
        assert abs(gradient[at] - difference) <= 1e-6 + 1e-5 * abs(difference)


@pytest.mark.parametrize("name", ["exact", "limit of the run", "no limit, no outputs", "growing variable", "in a loop"])
def test_second_order_gradients(name):
    found = []
    for block in (Block(FUNCTIONS[name]), hybridized(FUNCTIONS[name])):
        x = values()
        x.attach_grad()
        with mx.autograd.record():
            total = sum((o.astype("float64") ** 3).sum() for o in flat(block(x, number(11))))
            (first,) = mx.autograd.grad(total, [x], create_graph=True)
            (first * first).sum().backward()
        found.append(x.grad.asnumpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-8)


ON_SYMBOLS = {
    "exact": lambda x, n: while_loop(lambda i, v: i < n, step, (n * 0, x), exact=True)[0],
    "no limit, no outputs": lambda x, n: while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v * 0.9 + x * x), (n * 0, x), has_outputs=False)[1],
    "growing variable": lambda x, n: while_loop(lambda i, v: i < n, lambda i, v: (i + 1, concat(v, v * 0.5)), (n * 0, x), has_outputs=False, shape_invariants={1: (None, 2)})[1],
}  # fmt: skip


@pytest.mark.parametrize("name", ON_SYMBOLS)
def test_symbols_bound_to_arrays(name):
    symbol = ON_SYMBOLS[name](mx.sym.var("x"), mx.sym.var("n"))
    symbol = mx.sym.load_json(symbol.tojson())
    want = results(Block(ON_SYMBOLS[name]), (values(), number(5)))
    gradient = nd.zeros((3, 2), dtype="float64")
    bound = symbol.bind(mx.cpu(), {"x": values(), "n": number(5)}, {"x": gradient}, {"x": "write", "n": "null"})
    for train in (True, False):  # backward after a run in prediction mode runs forward again
        (out,) = bound.forward(is_train=train)
        np.testing.assert_allclose(out.asnumpy(), want[0], rtol=1e-9)
        bound.backward([out * 2])
        np.testing.assert_allclose(gradient.asnumpy(), want[-1], rtol=1e-9)
        gradient[:] = 0


def test_parameters_get_gradients():
    dense = gluon.nn.Dense(2, in_units=2)

    def function(x):
        return while_loop(lambda v: (v * v).sum() > 1e-8, lambda v: (dense(v), dense(v) * 0.7), x, exact=True)[0]

    found = []
    for make in (Block, hybridized):
        block, x = make(function, dense), values(dtype="float32")
        with mx.autograd.record():
            (block(x) ** 2).sum().backward()
        found.append([p.grad().asnumpy() for p in (dense.weight, dense.bias)])
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


def test_running_statistics_advance_once_per_iteration():
    found = []
    for make in (Block, hybridized):
        norm = gluon.nn.BatchNorm(in_channels=2)
        block = make(
            lambda x, n=norm: while_loop(
                lambda i, v: i < 11, lambda i, v: (n(v), (i + 1, v * 0.9)), (0, x), exact=True
            )[0],
            norm,
        )
        x = values(dtype="float32")
        x.attach_grad()
        with mx.autograd.record():
            (block(x) ** 3).sum().backward()
        found.append((norm.running_mean.data().asnumpy(), norm.running_var.data().asnumpy(), x.grad.asnumpy()))
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


def test_each_iteration_draws_anew_and_backward_sees_the_same_mask():
    drop = gluon.nn.Dropout(0.5)
    block = hybridized(
        lambda x: while_loop(lambda i, v: i < 20, lambda i, v: (drop(v), (i + 1, v)), (0, x), exact=True)[0], drop
    )
    x = nd.ones((500,))
    x.attach_grad()
    with mx.autograd.record():
        out = block(x)
        out.sum().backward()
    kept = out.asnumpy() > 0
    np.testing.assert_allclose(x.grad.asnumpy(), out.asnumpy().sum(axis=0))
    assert all(0.35 < (kept[a] == kept[b]).mean() < 0.65 for a in range(20) for b in range(a))


@pytest.mark.filterwarnings("ignore:The 1-th input")
class TestLimits:
    def test_the_limit_of_each_run_counts(self):
        block = hybridized(lambda x, n: while_loop(lambda v: v < 5, lambda v: (v, v + 1), x, n))
        for limit in (7, 0, 2, 5):
            outs, last = block(number(0, "float32"), number(limit))
            np.testing.assert_array_equal(outs.asnumpy(), [i if i < 5 else 0 for i in range(limit)])
            assert float(last.asscalar()) == min(limit, 5)

    @pytest.mark.parametrize("has_outputs", [True, False])
    @pytest.mark.parametrize("limit", [-1, 2.5])
    def test_a_limit_that_is_none(self, limit, has_outputs):
        body = (lambda v: (v, v + 1)) if has_outputs else (lambda v: v + 1)
        block = hybridized(lambda x, n: while_loop(lambda v: v < 5, body, x, n, has_outputs=has_outputs))
        with pytest.raises(errors.ParamError, match="an integer of at least 0") as caught:
            flat(block(number(0, "float32"), number(limit, "float32")))[-1].asnumpy()
        assert "max_iterations" in str(caught.value)
        assert "test_unbounded.py:" in str(caught.value)

    OPTIONS = {
        "compiled": {"max_iterations": 3},
        "compiled, no outputs": {"max_iterations": 3, "has_outputs": False},
        "exact": {"max_iterations": 3, "exact": True},
        "of the run": {},
        "growing": {"shape_invariants": {0: (None,)}, "max_iterations": 3},
    }  # fmt: skip

    def block(self, name, on_limit):
        options = self.OPTIONS[name]

        def function(x, n):
            body = (lambda v: (v.sum(), concat(v, v))) if "shape_invariants" in options else (lambda v: (v, v * 2))
            if not options.get("has_outputs", True):
                body = lambda v: v * 2  # noqa: E731
            return while_loop(lambda v: v.sum() < 7, body, x, **{"max_iterations": n, **options}, on_limit=on_limit)

        return hybridized(function)

    @pytest.mark.parametrize("start", [[1.0], [2.0]])
    @pytest.mark.parametrize("name", OPTIONS)
    def test_raise_and_warn_only_while_the_condition_holds(self, name, start, recwarn):
        """The condition ends [1] after three iterations, which is the limit; the limit stops [0.5]."""
        for on_limit in ("raise", "warn"):
            flat(self.block(name, on_limit)(nd.array(start), number(3)))[-1].asnumpy()
        assert not [w for w in recwarn if "max_iterations" in str(w.message)]

    @pytest.mark.parametrize("name", OPTIONS)
    def test_raise(self, name, tmp_path):
        block = self.block(name, "raise")
        with pytest.raises(errors.ValueError, match="still holds after max_iterations=3") as caught:
            flat(block(nd.array([0.5]), number(3)))[-1].asnumpy()
        assert "test_unbounded.py:" in str(caught.value)
        assert "Fix: " in str(caught.value)
        files = block.export(str(tmp_path / "m"))
        one = np.float32([0.5])
        with pytest.raises(RuntimeError, match="still holds after max_iterations=3"):
            c_model.run(*files, {"data": one, "data0": one, "data1": np.float32([3])})

    @pytest.mark.parametrize("name", OPTIONS)
    def test_warn(self, name):
        block = self.block(name, "warn")
        with pytest.warns(UserWarning, match="max_iterations=3"):
            got = flat(block(nd.array([0.5]), number(3)))[-1].asnumpy()
        assert got.sum() == 4

    def test_arrays_and_graphs_say_the_same(self):
        """The texts are equal up to the line, which on arrays is the line of the call."""
        block = self.block("of the run", "warn")
        texts = []
        for run in (block.forward, block):
            with pytest.warns(UserWarning, match="max_iterations=3") as caught:
                flat(run(nd.array([0.5]), number(3)))[-1].asnumpy()
            texts.append(str(caught[0].message).split(" (")[0])
        assert texts[0] == texts[1] == "while_loop: the condition still holds after max_iterations=3 iterations"

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64"])
    def test_a_limit_of_any_dtype(self, dtype):
        block = hybridized(lambda x, n: while_loop(lambda v: v.sum() < 1e9, lambda v: (v, v * 2), x, n)[1])
        for run in (block.forward, block):
            assert run(nd.array([1.0]), nd.array([5]).astype(dtype)).asnumpy() == [32]

    def test_a_warning_that_is_an_error(self):
        block = self.block("of the run", "warn")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(errors.ValueError, match="max_iterations=3"):
                flat(block(nd.array([0.5]), number(3)))[-1].asnumpy()


class TestFiles:
    def model(self):
        block = hybridized(FUNCTIONS["growing variable with outputs"])
        block(values(), number(2))
        return json.loads(block._cached_graph[1].tojson())

    def test_attributes_with_defaults_are_left_out(self):
        block = hybridized(lambda x: while_loop(lambda v: v.sum() < 9, lambda v: (v, v + 1), x, 4))
        block(values().abs())
        (loop,) = [n for n in json.loads(block._cached_graph[1].tojson())["nodes"] if n["op"] == "_while_loop"]
        assert not {"on_limit", "free_axes", "unbounded", "exact"} & set(loop["attrs"])

    @pytest.mark.parametrize("axes", ["(1,)", "(9, 0)", "(0, -1)", "(None, 0)", "(0, 99)"])
    def test_wrong_axes(self, axes):
        graph = self.model()
        (loop,) = [n for n in graph["nodes"] if n["op"] == "_while_loop"]
        assert loop["attrs"]["free_axes"] == "(1, 0)"
        loop["attrs"]["free_axes"] = axes
        with pytest.raises(errors.FormatError, match="free_axes"):
            mx.sym.load_json(json.dumps(graph))

    def test_stacked_outputs_without_any_limit(self):
        graph = self.model()
        (loop,) = [n for n in graph["nodes"] if n["op"] == "_while_loop"]
        del loop["attrs"]["exact"]
        with pytest.raises(errors.FormatError, match="max_iterations, or is exact"):
            mx.sym.load_json(json.dumps(graph))


class TestMisuse:
    @pytest.mark.parametrize("make", [Block, hybridized])
    @pytest.mark.parametrize(("invariants", "kind", "parts"), [
        ({3: (None, 2)}, errors.ParamError, ("positions from 0 to 0", "3")),
        ({0: (None,)}, errors.ShapeError, ("a shape that (3, 2) fits", "(None,)")),
        ({0: (None, 5)}, errors.ShapeError, ("a shape that (3, 2) fits", "(None, 5)")),
        ({0: "none"}, errors.ParamError, ("a tuple of sizes and None", "none")),
        ({0: (None, 2)}, errors.ShapeError, (", 2)", ", 4)")),
        ({}, errors.ShapeError, ("loop_vars", "shape_invariants")),
    ])  # fmt: skip
    def test_sizes_that_may_not_change(self, make, invariants, kind, parts):
        def function(x):
            return while_loop(
                lambda v: v.sum() < 99, lambda v: v.repeat(2, axis=1), x, has_outputs=False, shape_invariants=invariants
            )

        with pytest.raises(kind) as caught:
            make(function)(values().abs() + 1).asnumpy()
        for part in ("test_unbounded.py:", *parts):
            assert part in str(caught.value)

    def test_outputs_that_differ(self):
        block = hybridized(
            lambda x: while_loop(
                lambda v: v.sum() < 9, lambda v: (v * 1, concat(v, v)), x, exact=True, shape_invariants={0: (None, 2)}
            )
        )
        with pytest.raises(errors.ShapeError, match=r"outputs\[0\] differs between iterations") as caught:
            wait_for(block(values().abs() + 0.1))
        assert "test_unbounded.py:" in str(caught.value)

    @pytest.mark.parametrize("iteration", [2, 8, 25])
    @pytest.mark.parametrize("grows", [False, True])
    def test_an_error_names_the_iteration(self, grows, iteration):
        def body(i, v):
            row = mx.sym.take(v, i + (40 - iteration) * 1.0, mode="raise", axis=0)
            return row, (i + 1, v * 1)

        options = {"shape_invariants": {1: (None,)}} if grows else {}
        block = hybridized(lambda x: while_loop(lambda i, v: i < 99, body, (0, x), exact=True, **options))
        with pytest.raises(errors.HybridNetError, match=rf"while_loop0, iteration {iteration}: .*take"):
            wait_for(block(nd.ones((40,))))


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread")
@pytest.mark.parametrize("options", [{}, {"shape_invariants": {0: (None,)}}])
def test_a_loop_that_never_ends_can_be_interrupted(options):
    block = hybridized(
        lambda x: while_loop(lambda v: v.sum() > 0, lambda v: (v.sum(), v * 1), x, exact=True, **options)
    )
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore SIGINT by default
    try:
        result = block(nd.ones((2,)))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            wait_for(result)
        with pytest.raises(errors.EngineError, match="the loop was stopped"):
            wait_for(result)
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert float(nd.ones((2,)).sum().asscalar()) == 2


@pytest.mark.parametrize("limit", [None, 10**9, "of the run"])
def test_memory_follows_the_iterations_that_run(limit):
    """A bound of a billion rows takes no memory if the loop runs ten iterations."""

    def function(x, n):
        bound = n if limit == "of the run" else limit
        return while_loop(lambda i, v: i < n / 1e8, lambda i, v: (v, (i + 1, v * 2)), (0, x), bound, exact=True)[0]

    block, x = hybridized(function), nd.ones((1000,))
    x.attach_grad()
    nd.waitall()
    before = _core.memory_statistics(1, 0)["in_use"]
    _core.reset_peak_memory(1, 0)
    with mx.autograd.record():
        outs = block(x, number(10**9))
        outs.sum().backward()
    assert outs.shape == (10, 1000)
    np.testing.assert_array_equal(x.grad.asnumpy(), 2.0**10 - 1)
    assert _core.memory_statistics(1, 0)["peak_in_use"] - before < 100 * 1000 * 4
