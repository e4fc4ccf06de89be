"""Shared values that a scan updates: each step has a new value, and the last is written after the scan."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet.contrib import foreach, scan, until

from .blocks import flat

nd = mx.nd
BOTH = pytest.mark.parametrize("hybridized", [False, True])


class Counting(gluon.HybridBlock):
    """Calls a function of the block and its inputs; has two shared values."""

    def __init__(self, function, hybridized=False) -> None:
        super().__init__()
        self.function = function
        self.count = self.params.get("count", shape=(1,), init="zeros", grad_req="null")
        self.other = self.params.get("other", shape=(1,), init="ones", grad_req="null")
        self.initialize()
        if hybridized:
            self.hybridize(strict=True)

    def forward(self, *args):
        return self.function(self, *args)

    def read(self):
        return self.count.data().asscalar(), self.other.data().asscalar()


def calls(function, hybridized, times=2):
    """Returns results and shared values of each call with the input 0, 1, 2, 3."""
    block = Counting(function, hybridized)
    seen = []
    for _ in range(times):
        out = block(nd.arange(4))
        seen.append([*(a.asnumpy().ravel().tolist() for a in flat(out)), block.read()])
    return seen


@BOTH
class TestShared:
    def test_a_counter_grows_by_one_per_step(self, hybridized):
        def function(self, x):
            return scan(lambda a, s: (a + s + 100 * self.count.data(), {self.count: self.count.data() + 1}), x, 0)

        assert calls(function, hybridized) == [[[0, 101, 303, 606], (4, 1)], [[400, 901, 1503, 2206], (8, 1)]]

    def test_a_scan_may_do_nothing_but_update(self, hybridized):
        def function(self, x):
            scan(lambda: {self.count: self.count.data() + 1}, n_steps=10)
            return x

        assert [seen[1] for seen in calls(function, hybridized)] == [(10, 1), (20, 1)]

    def test_later_reads_see_the_new_value(self, hybridized):
        def function(self, x):
            def step(a):
                return a + self.count.data(), {self.count: self.count.data() + 1}

            return scan(step, x), scan(step, x), self.count.data() * 1

        assert calls(function, hybridized) == [
            [[0, 2, 4, 6], [4, 6, 8, 10], [8], (8, 1)],
            [[8, 10, 12, 14], [12, 14, 16, 18], [16], (16, 1)],
        ]

    def test_values_computed_before_keep_the_old_value(self, hybridized):
        def function(self, x):
            twice = self.count.data() * 2
            return scan(lambda a: (a + twice, {self.count: self.count.data() + 1}), x)

        assert calls(function, hybridized) == [[[0, 1, 2, 3], (4, 1)], [[8, 9, 10, 11], (8, 1)]]

    def test_all_updates_see_the_old_values(self, hybridized):
        def function(self, x):
            return scan(lambda a: (a, {self.count: self.other.data(), self.other: self.count.data()}), x, n_steps=3)

        assert [seen[-1] for seen in calls(function, hybridized)] == [(1, 0), (0, 1)]

    def test_until_may_read_it(self, hybridized):
        def function(self, x):
            return scan(lambda a: (a, {self.count: self.count.data() + 1}, until(self.count.data() >= 2)), x)

        assert calls(function, hybridized) == [[[0, 1, 2], (3, 1)], [[0], (4, 1)]]

    def test_without_steps_it_stays(self, hybridized):
        def function(self, x):
            return scan(lambda a: (a, {self.count: self.count.data() + 1}), x, n_steps=0)

        assert calls(function, hybridized, 1) == [[[], (0, 1)]]

    def test_a_number_as_the_new_value(self, hybridized):
        assert calls(lambda self, x: scan(lambda a: (a, {self.count: 7}), x), hybridized, 1)[0][1] == (7, 1)

    def test_gradients_do_not_pass_through(self, hybridized):
        """count is 0, w, w, ... and is read as a constant."""

        def function(self, x, w):
            return scan(lambda a, w: (a * w + self.count.data(), {self.count: w * 1}), x, non_sequences=w)

        block = Counting(function, hybridized)
        x, w = nd.array([1.0, 2.0, 3.0]), nd.array([5.0])
        w.attach_grad()
        with mx.autograd.record():
            rows = block(x, w)
        rows.backward()
        assert rows.asnumpy().ravel().tolist() == [5, 15, 20]
        assert w.grad.asscalar() == 6
        assert block.read() == (5, 1)

    def test_strict_with_the_value_as_an_argument(self, hybridized):
        def function(self, x):
            return scan(lambda a, count: (a + count, {self.count: count + 1}), x, non_sequences=self.count, strict=True)

        assert calls(function, hybridized, 1) == [[[0, 2, 4, 6], (4, 1)]]


def test_arrays_are_written_outside_of_graphs():
    count = nd.zeros((1,))
    assert scan(lambda: (count * 2, {count: count + 1}), n_steps=3).asnumpy().ravel().tolist() == [0, 2, 4]
    assert count.asscalar() == 3


def test_a_failing_step_of_a_graph_writes_nothing():
    def function(self, x):
        def step(a):
            F = mx.sym if isinstance(a, mx.sym.Symbol) else nd
            return F.boolean_mask(a, a), {self.count: self.count.data() + 1}

        return scan(step, x)

    block = Counting(function)
    block.hybridize()
    with pytest.raises(mx.errors.HybridNetError):
        block(nd.array([[1.0, 1.0], [1.0, 0.0]])).asnumpy()
    assert block.read() == (0, 1)


def test_files_write_their_own_copy(tmp_path):
    def function(self, x):
        return scan(lambda a: (a + self.count.data(), {self.count: self.count.data() + 1}), x)

    block = Counting(function, hybridized=True)
    block(nd.arange(3))
    symbol, params = block.export(str(tmp_path / "model"))
    loaded = gluon.SymbolBlock.imports(symbol, ["data"], params)
    assert loaded(nd.arange(3)).asnumpy().ravel().tolist() == [3, 5, 7]
    assert loaded(nd.arange(3)).asnumpy().ravel().tolist() == [6, 8, 10]


def test_symbols_write_their_auxiliary_states():
    x, count = mx.sym.var("x"), mx.sym.var("count")
    out = scan(lambda a: (a + count, {count: count + 1}), x)
    assert out.list_auxiliary_states() == ["count"]
    held = nd.zeros((1,))
    ex = out.bind(mx.cpu(), {"x": nd.arange(3)}, aux_states={"count": held})
    assert ex.forward()[0].asnumpy().ravel().tolist() == [0, 2, 4]
    assert held.asscalar() == 3


class TestMisuse:
    def test_a_trained_parameter(self):
        weight = gluon.Parameter("weight", shape=(1,))
        weight.initialize()
        with pytest.raises(mx.errors.ValueError, match=r"'weight' is updated: expected grad_req='null', got 'write'"):
            scan(lambda: (nd.ones((1,)), {weight: weight.data() + 1}), n_steps=2)

    def test_an_array_in_a_graph(self):
        held = nd.zeros((1,))
        block = Counting(lambda self, x: scan(lambda a: (a, {held: held + 1}), x), hybridized=True)
        with pytest.raises(mx.errors.TypeError, match="make it a Parameter with grad_req='null'"):
            block(nd.arange(2))

    @BOTH
    def test_another_shape(self, hybridized):
        block = Counting(lambda self, x: scan(lambda a: (a, {self.count: nd.zeros((2,))}), x), hybridized)
        with pytest.raises(mx.errors.ShapeError, match=r"the update of 'count\w*' .* float32\(1,\), got float32\(2,\)"):
            block(nd.arange(2))

    def test_inside_another_loop_of_a_graph(self):
        def function(self, x):
            def inner(a):
                return scan(lambda h: (h + 1, {self.count: self.count.data() + 1}), outputs_info=a, n_steps=3)

            return foreach(lambda a, s: (inner(a), s), x, [])[0]

        plain = Counting(function)
        plain(nd.arange(2))
        assert plain.read() == (6, 1)
        with pytest.raises(mx.errors.TraceError, match="updated inside the body of foreach"):
            Counting(function, hybridized=True)(nd.arange(2))

    def test_something_else(self):
        with pytest.raises(mx.errors.TypeError, match="expected a Parameter, an array, or in a graph a variable"):
            scan(lambda: (nd.ones((1,)), {3: 4}), n_steps=2)

    def test_symbols_without_an_output(self):
        count = mx.sym.var("count")
        with pytest.raises(mx.errors.ValueError, match="return an output from the function"):
            scan(lambda n: {count: count + n}, non_sequences=count, n_steps=2)


def test_running_statistics_advance_once_per_step():
    """This follows foreach: layers that update their own states need no explicit updates."""

    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.norm = gluon.nn.BatchNorm(in_channels=2)

        def forward(self, x):
            return scan(lambda a: self.norm(a), x)

    x = nd.array(np.random.default_rng(0).normal(size=(3, 4, 2)))
    means = []
    for hybridized in (False, True):
        net = Net()
        net.initialize()
        if hybridized:
            net.hybridize()
        with mx.autograd.record():
            net(x).wait_to_read()
        means.append(net.norm.running_mean.data().asnumpy())
    np.testing.assert_allclose(means[0], means[1], rtol=1e-5)
    assert abs(means[0]).max() > 0
