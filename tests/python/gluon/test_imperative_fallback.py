"""Hybridized blocks that override forward and cannot be traced run imperatively with a warning.

Most tests hybridize with autograph=False: the source is then not converted, so that reading a value ends the trace.
"""

from __future__ import annotations

import inspect
import random
import sys
import warnings

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon


class Choosing(gluon.HybridBlock):
    """A block that reads a value, so that without conversion no graph is right for all inputs."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.dense = gluon.nn.Dense(2, use_bias=False)
        self.runs = 0

    def forward(self, x):
        self.runs += 1
        y = self.dense(x)
        if y.sum().asscalar() > 0:  # reads a value
            return y * 2
        return y * -3


class Reading(Choosing):
    """A block that reads a value in a way that cannot be converted."""

    def forward(self, x):
        y = self.dense(x)
        return y * 2 if y.asnumpy().sum() > 0 else y * -3  # reads a value


def _line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def _made(block_class=Choosing, **options):
    net = block_class()
    net.initialize(mx.init.One())
    net.hybridize(**{"autograph": False, **options})
    return net


def test_forward_runs_for_every_input():
    net = _made()
    with pytest.warns(UserWarning, match="Choosing is hybridized, but runs imperatively: asscalar"):
        assert net(mx.nd.ones((1, 3))).asnumpy().tolist() == [[6, 6]]
    assert net(-mx.nd.ones((1, 3))).asnumpy().tolist() == [[9, 9]]
    assert net(mx.nd.ones((2, 3))).shape == (2, 2)


def test_the_warning_names_the_line_and_comes_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for net in (_made(), _made()):
            for _ in range(3):
                net(mx.nd.ones((1, 3)))
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, _line_of(Choosing.forward, "reads a value"))]


@pytest.mark.filterwarnings("ignore:Choosing is hybridized")
def test_the_blocks_inside_are_hybridized():
    net = _made()
    net(mx.nd.ones((1, 3)))
    assert net._cached_graph == () and net.dense._cached_graph != ()
    runs = net.runs
    net(mx.nd.ones((1, 3)))
    assert net.runs == runs + 1


@pytest.mark.filterwarnings("ignore:Choosing is hybridized")
@pytest.mark.parametrize("autograph", [False, True])
def test_gradients_are_those_of_the_branch_that_ran(autograph):
    net = _made(autograph=autograph)
    for sign, factor in ((1, 2), (-1, -3)):
        x = mx.nd.full((1, 3), sign)
        x.attach_grad()
        with autograd.record():
            y = net(x)
        y.backward()
        assert x.grad.asnumpy().tolist() == [[2 * factor] * 3]
        assert net.dense.weight.grad().asnumpy().tolist() == [[sign * factor] * 3] * 2


@pytest.mark.parametrize(
    "use",
    [
        lambda net, folder: net.export(str(folder / "net")),
        lambda net, folder: net.plan_text(),
        lambda net, folder: net.optimize_for(mx.nd.ones((1, 3)), backend="ONEDNN"),
        lambda net, folder: net._get_graph(mx.nd.ones((1, 3))),
    ],
    ids=["export", "plan_text", "optimize_for", "graph"],
)
def test_methods_that_need_a_graph_are_errors_with_the_line(use, tmp_path):
    net = _made(Reading, autograph=True)  # optimize_for converts
    with pytest.warns(UserWarning, match="Reading is hybridized, but runs imperatively"):
        net(mx.nd.ones((1, 3)))
    with pytest.raises(mx.errors.TraceError, match=r"(?s)asnumpy\(\).*cond.*test_imperative_fallback.py:\d+"):
        use(net, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_strict_makes_it_an_error_at_every_call():
    net = _made(strict=True)
    for _ in range(2):
        with pytest.raises(mx.errors.TraceError, match=r"(?s)asscalar\(\).*cond"):
            net(mx.nd.ones((1, 3)))
    net.hybridize(False)
    assert net(mx.nd.ones((1, 3))).asnumpy().tolist() == [[6, 6]]


def test_hybridizing_again_tries_again():
    class Switched(gluon.HybridBlock):
        reads = True

        def forward(self, x):
            return x * (2 if not self.reads else float(x.sum().asscalar()))

    net = _made(Switched)
    with pytest.warns(UserWarning, match="runs imperatively"):
        net(mx.nd.ones((1,)))
    net.reads = False
    net.hybridize(autograph=False)
    assert net(mx.nd.ones((1,))).asscalar() == 2 and net._cached_graph != ()


def test_a_block_with_hybrid_forward_stays_strict():
    class Reading(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return x if x.sum().asscalar() > 0 else -x

    net = _made(Reading)
    with pytest.raises(mx.errors.TraceError, match="asscalar"):
        net(mx.nd.ones((1,)))


def test_outer_blocks_with_a_forward_of_their_own_run_imperatively_too():
    class Outer(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.inner = Choosing()
            self.last = gluon.nn.Dense(1, use_bias=False)

        def forward(self, x):
            return self.last(self.inner(x))

    net = _made(Outer)
    with pytest.warns(UserWarning, match="runs imperatively") as caught:
        assert net(mx.nd.ones((1, 3))).asscalar() == 12
    assert {w.lineno for w in caught} == {_line_of(Choosing.forward, "reads a value")}
    assert net.last._cached_graph != ()


# --- random numbers of Python and NumPy -------------------------------------------------------------------------------


class Drawing(gluon.HybridBlock):
    def __init__(self, draw):
        super().__init__()
        self.draw = draw

    def forward(self, x):
        y = x + 1
        factor = self.draw()
        return y * factor


def _drawing(draw):
    net = Drawing(draw)
    net.hybridize()
    return net


DRAWS = {
    "random.random": lambda: random.random(),
    "random.gauss": lambda: random.gauss(0, 1),
    "random.choice": lambda: random.choice([1.5, 2.5, 3.5]),
    "numpy.uniform": lambda: float(np.random.uniform()),
    "numpy.permutation": lambda: float(np.random.permutation(50)[0]),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_block_that_draws_from_python_or_numpy_draws_in_every_call(name):
    draw = DRAWS[name]
    random.seed(3)
    np.random.seed(3)
    expected = [np.float32(2 * draw()) for _ in range(4)]
    random.seed(3)
    np.random.seed(3)
    net = _drawing(draw)
    with pytest.warns(UserWarning, match="Drawing is hybridized, but runs imperatively: random numbers") as caught:
        found = [net(mx.nd.ones((1,))).asscalar() for _ in range(4)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)  # tracing consumed no random numbers
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, draw.__code__.co_firstlineno)]


def test_while_a_debugger_watches_the_warning_names_forward():
    net = _drawing(DRAWS["random.random"])
    before = sys.gettrace()
    sys.settrace(lambda *arguments: None)
    try:
        with pytest.warns(UserWarning, match="random numbers") as caught:
            net(mx.nd.ones((1,)))
        assert sys.gettrace() is not None
    finally:
        sys.settrace(before)
    assert caught[0].lineno == Drawing.forward.__code__.co_firstlineno


def test_draws_outside_of_forward_and_those_of_mx_leave_the_graph():
    random.seed(0)
    net = _drawing(lambda: mx.nd.random.uniform(shape=(1,)))
    random.random()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = (net(mx.nd.ones((1,))).asscalar() for _ in range(2))
    assert net._cached_graph != () and first != second


def test_drawing_is_an_error_where_strict():
    net = Drawing(DRAWS["random.random"])
    net.hybridize(strict=True)
    with pytest.raises(mx.errors.TraceError, match=r"(?s)drawn while the graph is being built.*mx\.nd\.random"):
        net(mx.nd.ones((1,)))


def test_the_first_call_initializes_deferred_parameters():
    net = Choosing()
    net.initialize()
    net.hybridize(autograph=False)
    with pytest.warns(UserWarning, match="runs imperatively"):
        net(mx.nd.ones((1, 7)))
    assert net.dense.weight.shape == (2, 7)


@pytest.mark.filterwarnings("ignore:Choosing is hybridized")
def test_it_keeps_no_arrays_of_the_failed_trace():
    net = _made()
    net(mx.nd.ones((1, 3)))
    assert net._untraceable.__traceback__ is None


# --- with the source converted ----------------------------------------------------------------------------------------


def test_by_default_the_block_becomes_a_graph_for_every_input(tmp_path):
    net = Choosing()
    net.initialize(mx.init.One())
    net.hybridize()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert net(mx.nd.ones((1, 3))).asnumpy().tolist() == [[6, 6]]
        runs = net.runs
        assert net(-mx.nd.ones((1, 3))).asnumpy().tolist() == [[9, 9]]
        assert net.runs == runs and net._cached_graph != ()
        assert net(mx.nd.ones((2, 3))).shape == (2, 2)
    symbol_file, params_file = net.export(str(tmp_path / "net"))
    again = gluon.SymbolBlock.imports(symbol_file, ["data"], params_file)
    assert again(-mx.nd.ones((1, 3))).asnumpy().tolist() == [[9, 9]]
    assert again(mx.nd.ones((1, 3))).asnumpy().tolist() == [[6, 6]]


def test_by_default_hybrid_forward_and_outer_blocks_become_a_graph():
    class Outer(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.inner = Choosing()

        def hybrid_forward(self, F, x):
            y = self.inner(x)
            return y + 1 if y.max().asscalar() > 7 else y

    net = _made(Outer, autograph=True)
    for sign, value in ((1, 6), (-1, 10), (1, 6)):
        assert net(mx.nd.full((1, 3), sign)).asnumpy().tolist() == [[value, value]]


def test_by_default_reads_that_cannot_be_converted_run_imperatively():
    net = _made(Reading, autograph=True)
    text = r"Reading is hybridized, but runs imperatively: \[HN100\] asnumpy\(\): it has no values"
    with pytest.warns(UserWarning, match=text) as caught:
        assert net(mx.nd.ones((1, 3))).asnumpy().tolist() == [[6, 6]]
    assert net(-mx.nd.ones((1, 3))).asnumpy().tolist() == [[9, 9]]
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, _line_of(Reading.forward, "reads a value"))]
    net.hybridize(strict=True)
    for _ in range(2):
        with pytest.raises(mx.errors.TraceError, match=r"(?s)^\[HN100\] asnumpy\(\).*reads a value\n.*cond"):
            net(mx.nd.ones((1, 3)))
