"""Hybridized blocks with sizes known only at run time are cut into segments that the engine runs, as on arrays."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, errors, gluon, nd
from hybridnet.gluon import nn
from threads import in_threads


class Masked(gluon.HybridBlock):
    """Dense layers in front of and behind a boolean mask."""

    def __init__(self):
        super().__init__()
        self.before, self.behind = nn.Dense(5, activation="relu"), nn.Dense(2, activation="tanh")
        self.norm = nn.BatchNorm()

    def hybrid_forward(self, F, x, mask):
        return self.behind(self.norm(F.contrib.boolean_mask(self.before(x), mask)))


def made(rng, hybridized):
    net = Masked()
    net.initialize(mx.init.Constant(0.1))
    net(nd.ones((2, 3)), nd.ones((2,)))
    for parameter in net.collect_params().values():
        parameter.set_data(nd.array(rng.normal(size=parameter.shape) ** 2))
    net.hybridize(hybridized)
    return net


def batch(rows, seed):
    rng = np.random.default_rng(seed)
    return nd.array(rng.normal(size=(rows, 3))), nd.array(rng.integers(0, 2, rows) | (np.arange(rows) < 2))


def test_a_net_with_a_mask_trains_as_on_arrays():
    found = []
    for hybridized in (False, True):
        net = made(np.random.default_rng(1), hybridized)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        values = []
        for step, rows in enumerate((6, 9, 6, 4)):  # all numbers of rows use the same segments
            with autograd.record():
                out = net(*batch(rows, step))
                loss = (out * out).sum()
            loss.backward()
            trainer.step(rows)
            values.append(out.asnumpy())
        values += [p.data().asnumpy() for p in net.collect_params().values()]  # weights and running statistics
        values.append(net(*batch(5, 9)).asnumpy())
        found.append(values)
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-6)


def test_it_has_two_segments_that_are_fused_and_listed():
    net = made(np.random.default_rng(1), True)
    net(*batch(6, 0)).wait_to_read()
    summary = net._cached_op.summary()
    assert "2 segments" in summary and "cut at _contrib_boolean_mask" in summary
    assert net._cached_op.num_plans == 2
    assert "_fused_fully_connected(" in net._cached_op.graph_text()


def test_summary_prints_segments_and_cuts(capsys):
    net = made(np.random.default_rng(1), True)
    net.summary(*batch(6, 0))
    printed = capsys.readouterr().out
    assert "2 segments" in printed and "cut at _contrib_boolean_mask" in printed
    whole = gluon.nn.Dense(2)
    whole.initialize()
    whole.hybridize()
    whole.summary(mx.nd.ones((2, 3)))
    assert "Total params: 8" in capsys.readouterr().out


def test_files_keep_the_cut(tmp_path):
    net = made(np.random.default_rng(1), True)
    arrays = batch(6, 0)
    expected = net(*arrays).asnumpy()
    symbol, params = net.export(str(tmp_path / "net"))
    loaded = gluon.SymbolBlock.imports(symbol, ["data0", "data1"], params)
    np.testing.assert_allclose(loaded(*arrays).asnumpy(), expected, rtol=1e-6)


def test_threads_share_it():
    net = made(np.random.default_rng(1), True)
    batches = [batch(rows, rows) for rows in (4, 6, 8)]
    expected = [net(*arrays).asnumpy() for arrays in batches]

    def calls(_):
        for k in range(30):
            np.testing.assert_allclose(net(*batches[k % 3]).asnumpy(), expected[k % 3], rtol=1e-5)

    in_threads(4, calls)


def hybrid(function):
    block = nn.HybridLambda(function)
    block.hybridize()
    return block


def test_errors_come_where_the_result_is_read_and_name_the_operator_and_the_line():
    block = hybrid(lambda F, x, mask: F.contrib.boolean_mask(x, mask) + F.ones((2, 3)))
    assert block(nd.ones((4, 3)), nd.array([1, 0, 1, 0])).shape == (2, 3)
    result = block(nd.ones((4, 3)), nd.ones((4,)))
    with pytest.raises(errors.ShapeError, match=r"\(4, 3\)") as caught:
        result.asnumpy()
    assert "test_segments.py" in str(caught.value)
    assert block(nd.ones((4, 3)), nd.array([1, 0, 1, 0])).shape == (2, 3)  # the graph still works


def test_pending_arrays_go_into_operators_other_blocks_and_lists():
    block, twice = hybrid(lambda F, x, mask: F.contrib.boolean_mask(x, mask)), hybrid(lambda F, x: x * 2)
    mask = nd.array([1, 0, 1, 1])
    x = nd.array(np.arange(8).reshape(4, 2))
    np.testing.assert_array_equal((block(x, mask) + 1).asnumpy(), [[1, 2], [5, 6], [7, 8]])
    np.testing.assert_array_equal(twice(twice(block(x, mask))).asnumpy(), [[0, 4], [16, 20], [24, 28]])
    assert len(block(x, mask)) == 3
    assert block(x, mask)[1, 1].asscalar() == 5
    out = nd.zeros((3, 2))
    block._cached_op(x, mask, out=out)
    np.testing.assert_array_equal(out.asnumpy(), [[0, 1], [4, 5], [6, 7]])


def test_gradients_reach_through_pending_arrays_to_the_leaves():
    block, twice = hybrid(lambda F, x, mask: F.contrib.boolean_mask(x * x, mask)), hybrid(lambda F, x: x * x)
    x = nd.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        out = twice(block(x, nd.array([1, 0, 1])))
    out.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [4, 0, 108])  # the gradient of x ** 4


def test_random_numbers_of_segments_differ_and_come_again_with_the_seed():
    def function(F, x, mask):
        return F.contrib.boolean_mask(x + F.random.uniform(shape=(64,)), mask) - F.random.uniform(shape=(64,))

    block, arrays = hybrid(function), (nd.zeros((64,)), nd.ones((64,)))
    draws = []
    for seed in (1, 1, 2):
        mx.random.seed(seed)
        draws.append(block(*arrays).asnumpy())
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0] != draws[2]).any()
    assert (draws[0] != 0).any()  # the two operators draw different numbers


def test_bound_graphs_with_a_mask():
    x, mask = mx.sym.var("x"), mx.sym.var("mask")
    out = mx.sym.contrib.boolean_mask(x * x, mask) * 3
    grads = {"x": nd.zeros((3,))}
    executor = out.bind(
        mx.cpu(), {"x": nd.array([1, 2, 3]), "mask": nd.array([0, 1, 1])}, grads, {"x": "write", "mask": "null"}
    )
    for train in (True, False):
        (result,) = executor.forward(is_train=train)
        np.testing.assert_array_equal(result.asnumpy(), [12, 27])
        executor.backward(nd.array([1.0, 10.0]))
        np.testing.assert_array_equal(grads["x"].asnumpy(), [0, 12, 180])
