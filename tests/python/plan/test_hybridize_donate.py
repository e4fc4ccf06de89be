"""hybridize(donate=[...]): a step writes its results into the memory of donated arguments, which lose their values."""

from __future__ import annotations

import threading

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, nd

SHAPE = (2, 3, 8, 4)


class Step(gluon.HybridBlock):
    """One step of a decoder: writes a slice of each cache, and reads the caches."""

    def forward(self, i, x, *caches):
        new = [nd.contrib.index_copy(cache, i, x, axis=2) for cache in caches]
        return (x * 2, *new, sum(cache.sum() for cache in new))


class Nested(gluon.HybridBlock):
    def forward(self, caches, i, x):
        return {name: nd.contrib.index_copy(cache, i, x, axis=2) for name, cache in caches.items()}


def position(i):
    return nd.array([i], dtype="int64")


def address(array):
    array.wait_to_read()
    return np.from_dlpack(array).ctypes.data


def stepping(**options):
    block = Step()
    block.hybridize(strict=True, **options)
    return block


@pytest.mark.parametrize("options", [{}, {"static_alloc": True}])
def test_steps_write_into_the_memory_of_donated_caches_and_have_the_values_of_copies(options):
    block, plain = stepping(donate=["caches"], **options), Step()
    caches, want = [nd.zeros(SHAPE), nd.ones(SHAPE)], [nd.zeros(SHAPE), nd.ones(SHAPE)]
    places = [address(cache) for cache in caches]
    for i in range(SHAPE[2]):
        x = nd.random.normal(shape=(2, 3, 1, 4))
        _, *caches, total = block(position(i), x, *caches)
        _, *want, _ = plain(position(i), x, *want)
        assert [address(cache) for cache in caches] == places
        for one, two in zip(caches, want, strict=True):
            np.testing.assert_array_equal(one.asnumpy(), two.asnumpy())
        assert total.shape == (1,)


def test_a_program_that_runs_ahead_reuses_the_memory_too():
    block = stepping(donate=["caches"])
    caches, x = [nd.zeros(SHAPE)], nd.ones((2, 3, 1, 4))
    place = address(caches[0])
    for i in range(200):
        _, *caches, _ = block(position(i % SHAPE[2]), x, *caches)
    assert address(caches[0]) == place
    assert (caches[0].asnumpy() == 1).all()


def test_reading_a_donated_array_names_the_call():
    block, cache = stepping(donate=["caches"]), nd.zeros(SHAPE)
    block(position(0), nd.ones((2, 3, 1, 4)), cache)
    with pytest.raises(mx.errors.ValueError, match=r"(?s)donated to a call.*test_hybridize_donate.py:\d+.*x\.copy\(\)"):
        cache.asnumpy()


def test_a_call_that_fails_after_it_wrote_leaves_no_values():
    class Fails(gluon.HybridBlock):
        def forward(self, cache, x, i, j):
            new = nd.contrib.index_copy(cache, i, x)
            return new, nd.contrib.index_copy(x, j, new.sum(axis=0, keepdims=True))

    block = Fails()
    block.hybridize(strict=True, donate=["cache"])
    for _ in range(3):
        cache = nd.ones((4, 3))
        with pytest.raises(mx.errors.IndexError):
            nd.concat(*block(cache, nd.ones((1, 3)) * 7, position(1), position(9)), dim=0).asnumpy()
        with pytest.raises(mx.errors.ValueError, match="donated"):
            cache.asnumpy()


def test_a_call_that_is_refused_leaves_donated_arrays_as_they_were():
    block, cache = stepping(donate=["caches"]), nd.ones(SHAPE)
    block(position(0), nd.ones((2, 3, 1, 4)), nd.ones(SHAPE))
    with pytest.raises(mx.errors.ShapeError):
        block(position(0), nd.ones((2, 3, 1, 5)), cache)
    assert (cache.asnumpy() == 1).all()


def test_arrays_with_other_readers_keep_their_values():
    block = stepping(donate=["caches"])
    base = nd.zeros((2, *SHAPE))
    block(position(0), nd.ones((2, 3, 1, 4)), base[0])[1].wait_to_read()
    assert (base.asnumpy() == 0).all()
    layer = gluon.Parameter("cache", shape=SHAPE, init="zeros")
    layer.initialize()
    block(position(0), nd.ones((2, 3, 1, 4)), layer.data().detach())[1].wait_to_read()
    assert (layer.data().asnumpy() == 0).all()


def test_caches_in_a_dict_are_donated_with_it():
    block = Nested()
    block.hybridize(strict=True, donate=[0])
    caches = {"key": nd.zeros(SHAPE), "value": nd.ones(SHAPE)}
    places = {name: address(cache) for name, cache in caches.items()}
    new = block(caches, position(3), nd.ones((2, 3, 1, 4)) * 5)
    assert {name: address(cache) for name, cache in new.items()} == places
    assert (new["value"].asnumpy()[:, :, 3] == 5).all() and (new["value"].asnumpy()[:, :, :3] == 1).all()
    with pytest.raises(mx.errors.ValueError, match="donated"):
        caches["key"].asnumpy()


def test_forward_may_write_into_a_donated_argument():
    class Writes(gluon.HybridBlock):
        def forward(self, cache, i, x):
            cache[:, :, i] = x
            return cache, cache.sum()

    block, cache = Writes(), nd.zeros(SHAPE)
    block.hybridize(strict=True, donate=["cache"])
    place = address(cache)
    for i in range(4):
        cache, total = block(cache, position(i), nd.ones((2, 3, 1, 4)))
        assert address(cache) == place and total.asnumpy() == (i + 1) * 24
    assert " copy (" not in block.plan_text()


def test_a_loop_runs_in_the_memory_of_a_donated_cache():
    class Loop(gluon.HybridBlock):
        def forward(self, cache, x):
            def body(i, cache):
                return [], (i + 1, nd.contrib.index_copy(cache, i, x + cache.sum() * 0, axis=2))

            return mx.contrib.while_loop(lambda i, _: i < 6, body, (nd.zeros((1,), dtype="int64"), cache), 6)[1][1]

    block, cache = Loop(), nd.zeros(SHAPE)
    block.hybridize(strict=True, donate=["cache"])
    place = address(cache)
    block(nd.zeros(SHAPE), nd.ones((2, 3, 1, 4)))
    with mx.test_utils.exec_counts() as counts:
        made = block(cache, nd.ones((2, 3, 1, 4)))
        made.wait_to_read()
    assert address(made) == place
    assert (made.asnumpy()[:, :, :6] == 1).all() and (made.asnumpy()[:, :, 6:] == 0).all()
    assert sum(count for (operator, _), count in counts.items() if operator == "copy") <= 2  # the counter


def test_a_branch_reads_all_of_a_donated_argument_before_its_memory_is_written():
    class Branch(gluon.HybridBlock):
        def forward(self, cache, i, row):
            def then():
                new = nd.contrib.index_copy(cache, i, row)
                return new + cache.sum(axis=0, keepdims=True)

            return mx.contrib.cond(row.sum() > 0, then, lambda: nd.contrib.index_copy(cache, i, row))

    value = np.arange(12.0, dtype="float32").reshape(4, 3)
    block = Branch()
    block.hybridize(strict=True, donate=["cache"])
    for number in (5, -5):
        want = value.copy()
        want[1] = number
        want = want + value.sum(axis=0, keepdims=True) if number > 0 else want
        for _ in range(2):
            got = block(nd.array(value), position(1), nd.ones((1, 3)) * number)
            np.testing.assert_array_equal(got.asnumpy(), want)


def test_recorded_calls_have_their_gradients_and_copy():
    block, cache, x = stepping(donate=["caches"]), nd.ones(SHAPE), nd.ones((2, 3, 1, 4))
    for array in (cache, x):
        array.attach_grad()
    gradient = cache.grad
    with autograd.record():
        _, new, total = block(position(1), x, cache)
        loss = (new * new).sum() + total.sum()
    loss.backward()
    want = np.full(SHAPE, 3.0)
    want[:, :, 1] = 0
    np.testing.assert_array_equal(gradient.asnumpy(), want)
    np.testing.assert_array_equal(x.grad.asnumpy(), np.full((2, 3, 1, 4), 3.0))


@pytest.mark.parametrize("given", [["cache"], [-1], [True], [1.5]])
def test_donating_what_forward_does_not_take_is_an_error(given):
    with pytest.raises(mx.errors.ParamError, match="donate"):
        Step().hybridize(donate=given)


def test_donation_ends_with_the_next_hybridize():
    block, cache = stepping(donate=["caches"]), nd.ones(SHAPE)
    block.hybridize(strict=True)
    block(position(0), nd.ones((2, 3, 1, 4)), cache)
    assert (cache.asnumpy() == 1).all()


def test_inputs_of_an_imported_block_are_donated_by_name(tmp_path):
    block = stepping()
    block(position(0), nd.ones((2, 3, 1, 4)), nd.zeros(SHAPE))
    symbol, params = block.export(str(tmp_path / "step"))
    loaded = gluon.SymbolBlock.imports(symbol, ["data0", "data1", "data2"], params)
    loaded.hybridize(donate=["data2"])
    cache = nd.zeros(SHAPE)
    place = address(cache)
    made = loaded(position(2), nd.ones((2, 3, 1, 4)), cache)[1]
    assert address(made) == place and made.asnumpy().sum() == 24
    with pytest.raises(mx.errors.ValueError, match="donated"):
        cache.asnumpy()


class AddsOne(gluon.HybridBlock):
    def forward(self, x):
        return x + 1


def function_that_adds_one():
    x = mx.sym.var("x")
    return mx.function([mx.In(x, donate=True)], x + 1)


def block_that_adds_one():
    block = AddsOne()
    block.hybridize(donate=["x"])
    return block


@pytest.mark.parametrize("make", [block_that_adds_one, function_that_adds_one])
def test_only_one_of_two_threads_can_donate_an_array(make):
    add = make()
    add(nd.ones((300, 300)))
    for _ in range(100):
        array, together, results = nd.ones((300, 300)), threading.Barrier(2), []

        def donate(array=array, together=together, results=results):
            together.wait()
            try:
                results.append(add(array).asnumpy()[0, 0])
            except mx.errors.ValueError as error:
                results.append(error)

        threads = [threading.Thread(target=donate) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        errors = [result for result in results if isinstance(result, mx.errors.ValueError)]
        assert len(errors) == 1 and "was donated" in str(errors[0])
        assert sum(result == 2 for result in results if not isinstance(result, Exception)) == 1


def test_a_refused_call_leaves_a_donated_array_as_it_was():
    block, cache = stepping(donate=["caches"]), nd.ones(SHAPE)
    block(position(0), nd.ones((2, 3, 1, 4)), nd.ones(SHAPE))
    with pytest.raises(mx.errors.HybridNetError):
        block(position(0), nd.ones((2, 5, 1, 4)), cache)
    assert (cache.asnumpy() == 1).all()
