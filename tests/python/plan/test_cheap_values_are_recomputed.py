"""remat: cheap values are computed again in the backward run instead of being kept."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, nd
from hybridnet.gluon import nn

ROWS, UNITS = 64, 256


def kept_bytes(net: Any) -> int:
    """The bytes that the forward plan of the latest training call keeps for the backward plan."""
    found = re.findall(r"kept for backward (\d+) bytes", str(net._cached_op.summary()))
    return int(found[0])


def trained(make: Callable[[], Any], remat: str | int, *, calls: int = 2, **flags: Any) -> tuple[list[np.ndarray], Any]:
    """Returns outputs, gradients and states after some calls from the same seeds, and the network."""
    mx.random.seed(7)
    np.random.seed(7)
    net = make()
    net.initialize(mx.init.Xavier())
    net.hybridize(remat=remat, **flags)
    data = nd.array(np.random.RandomState(3).randn(ROWS, UNITS).astype("float32"))
    data.attach_grad()
    mx.random.seed(11)
    seen = []
    for _ in range(calls):
        with autograd.record():
            out = net(data)
        out.backward()
        seen += [out.asnumpy(), data.grad.asnumpy()]
    for param in net.collect_params().values():
        seen.append(param.data().asnumpy())
        if param.grad_req != "null":
            seen.append(param.grad().asnumpy())
    return seen, net


def layers(*blocks: Callable[[], Any]) -> Callable[[], Any]:
    def make() -> Any:
        net = nn.HybridSequential(prefix="net_")
        with net.name_scope():
            net.add(*(block() for block in blocks))
        return net

    return make


class Twice(gluon.HybridBlock):
    """A loop over the rows, in halves, with a layer and dropout inside."""

    def __init__(self) -> None:
        super().__init__(prefix="twice_")
        with self.name_scope():
            self.layer = nn.Dense(UNITS, in_units=UNITS)
            self.drop = nn.Dropout(0.5)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        def body(row: Any, state: Any) -> tuple[Any, Any]:
            new = F.tanh(self.layer(row) + state)
            return self.drop(new), new

        halves = F.reshape(x, shape=(2, ROWS // 2, UNITS))
        out, _ = F.contrib.foreach(body, halves, F.zeros_like(F.slice_axis(x, axis=0, begin=0, end=ROWS // 2)))
        return F.LeakyReLU(F.reshape(out, shape=(ROWS, UNITS)), act_type="gelu") * 2


NETS = {
    "dropout": layers(lambda: nn.Dense(UNITS), lambda: nn.Dropout(0.5), lambda: nn.Dense(UNITS)),
    "shared_mask": layers(lambda: nn.Dense(UNITS), lambda: nn.Dropout(0.5, axes=(0,)), lambda: nn.Dense(UNITS)),
    "gelu": layers(
        lambda: nn.Dense(1024), nn.GELU, lambda: nn.Dropout(0.1), lambda: nn.Dense(UNITS), lambda: nn.Dropout(0.1)
    ),
    "layer_norm": layers(lambda: nn.Dense(UNITS), nn.LayerNorm, lambda: nn.Dense(UNITS)),
    "batch_norm": layers(
        lambda: nn.Dense(UNITS),
        nn.BatchNorm,
        lambda: nn.Activation("relu"),
        lambda: nn.Dropout(0.2),
        lambda: nn.Dense(8),
    ),
    "images": layers(
        lambda: nn.Dense(UNITS),
        lambda: nn.HybridLambda(lambda F, x: F.reshape(x, shape=(0, 4, 8, 8))),
        lambda: nn.Conv2D(8, 3, padding=1),
        nn.BatchNorm,
        lambda: nn.Activation("relu"),
        lambda: nn.Conv2D(8, 3, padding=1, use_bias=False),
        lambda: nn.BatchNorm(scale=False),
        lambda: nn.Activation("relu"),
        lambda: nn.Conv2D(8, 3, strides=2),
        lambda: nn.BatchNorm(axis=1, use_global_stats=True),
        lambda: nn.Dense(8),
    ),
    "loop": Twice,
}


def test_dropout_and_gelu_by_formula_keep_nothing_of_their_own() -> None:
    wide = 512
    make = layers(lambda: nn.Dense(wide), nn.GELU, lambda: nn.Dropout(0.1), lambda: nn.Dense(wide))
    first_product = 4 * ROWS * wide
    _, net = trained(make, "none")
    assert kept_bytes(net) == 2 * first_product + ROWS * wide  # the output of dropout, and its mask
    _, net = trained(make, first_product)
    assert kept_bytes(net) == first_product  # 0 bytes for gelu and dropout


def test_auto_draws_a_mask_again_that_costs_next_to_nothing_beside_the_products() -> None:
    wide = lambda: nn.Dense(8192)  # noqa: E731
    make = layers(wide, lambda: nn.Dense(512), lambda: nn.Dropout(0.1), wide)
    _, net = trained(make, "none")
    before = kept_bytes(net)
    _, net = trained(make, "auto")
    assert kept_bytes(net) == before - ROWS * 512


@pytest.mark.parametrize("name", list(NETS))
def test_recomputed_values_have_the_same_bits(name: str) -> None:
    plain, net = trained(NETS[name], "none")
    before = kept_bytes(net)
    for remat in ("auto",) if name == "loop" else ("auto", before * 3 // 4):  # loops keep values of all iterations
        again, net = trained(NETS[name], remat)
        for a, b in zip(plain, again, strict=True):
            np.testing.assert_array_equal(a, b)
        assert kept_bytes(net) <= (before if remat == "auto" else remat)


def test_batch_norms_are_applied_again_with_the_statistics_of_the_forward_run() -> None:
    make = layers(
        lambda: nn.Dense(512),
        nn.BatchNorm,
        lambda: nn.Activation("relu"),
        lambda: nn.Dense(512),
        lambda: nn.BatchNorm(),
    )
    first_product, vector = 4 * ROWS * 512, 4 * 512
    _, net = trained(make, "none")
    assert kept_bytes(net) == 3 * first_product + 4 * vector  # 2 products, 1 norm; means and deviations
    _, net = trained(make, 2 * first_product + 4 * vector)
    assert kept_bytes(net) == 2 * first_product + 4 * vector
    text = net.plan_text()
    assert text.count("_batch_norm_apply") == 1


LENGTH, BATCH = 6, 32
LOOPS: dict[str, dict[str, Any]] = {
    "foreach": {},
    "truncated": {"truncate_gradient": 4},
    "detached": {"detach_every": 2},
    "while_loop": {},
}


class Steps(gluon.HybridBlock):
    """A loop whose body is mostly products, with dropout, gelu and tanh between them."""

    def __init__(self, way: str) -> None:
        super().__init__(prefix="steps_")
        self.way = way
        with self.name_scope():
            self.up = nn.Dense(4096, in_units=UNITS)
            self.down = nn.Dense(UNITS, in_units=4096)
            self.drop = nn.Dropout(0.5)
            self.gelu = nn.GELU()

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        def body(row: Any, state: Any) -> tuple[Any, Any]:
            new = self.drop(F.tanh(self.down(self.gelu(self.up(row + state)))))
            return F.square(new) + state, new

        rows = F.reshape(x, shape=(LENGTH, BATCH, UNITS))
        begin = F.zeros_like(F.slice_axis(x, axis=0, begin=0, end=BATCH))
        if self.way != "while_loop":
            return F.contrib.foreach(body, rows, begin, **LOOPS[self.way])[0]

        def step(i: Any, state: Any) -> tuple[Any, Any]:
            row = F.reshape(F.take(rows, i, axis=0), shape=(BATCH, UNITS))
            out, state = body(row, state)
            return out, (i + 1, state)

        condition = lambda i, state: i < LENGTH  # noqa: E731
        return F.contrib.while_loop(condition, step, (F.zeros((1,)), begin), max_iterations=LENGTH)[0]


def trained_loop(way: str, remat: str | int) -> tuple[list[np.ndarray], int]:
    """Results, gradients and second gradients of a loop, and the bytes that it keeps."""
    mx.random.seed(7)
    net = Steps(way)
    net.initialize(mx.init.Xavier())
    net.hybridize(remat=remat)
    data = nd.array(np.random.RandomState(3).randn(LENGTH * BATCH, UNITS))
    data.attach_grad()
    mx.random.seed(11)
    seen = []
    for _ in range(2):
        with autograd.record():
            out = net(data)
        out.backward()
        seen += [out.asnumpy(), data.grad.asnumpy()]
    seen += [param.grad().asnumpy() for param in net.collect_params().values()]
    return seen, kept_bytes(net)


@pytest.mark.parametrize("way", LOOPS)
def test_loops_make_cheap_values_of_their_iterations_again(way: str) -> None:
    plain, before = trained_loop(way, "none")
    mask = LENGTH * BATCH * UNITS  # drawn again in its iteration
    for remat in ("auto", before - mask):
        again, after = trained_loop(way, remat)
        for a, b in zip(plain, again, strict=True):
            np.testing.assert_array_equal(a, b)
        assert after <= (before if remat == "auto" else remat)


def test_second_derivatives_through_loops_have_the_same_bits() -> None:
    found = []
    for remat in ("none", "auto"):
        mx.random.seed(7)
        net = Steps("foreach")
        net.initialize(mx.init.Xavier())
        net.hybridize(remat=remat)
        data = nd.array(np.random.RandomState(3).randn(LENGTH * BATCH, UNITS))
        data.attach_grad()
        mx.random.seed(11)
        with autograd.record():
            (first,) = autograd.grad(net(data), [data], create_graph=True)
            square = nd.sum(first * first)
        square.backward()
        found.append([first.asnumpy(), data.grad.asnumpy()])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("checkpoint", [None, "sqrt", 2])
def test_an_lstm_computes_its_cell_again_for_a_bound(checkpoint: Any) -> None:
    class Recurrent(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__(prefix="recurrent_")
            with self.name_scope():
                self.cell = gluon.rnn.LSTMCell(UNITS, input_size=UNITS)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            rows = F.reshape(x, shape=(4, ROWS // 4, UNITS))
            begin = F.zeros_like(F.slice_axis(x, axis=0, begin=0, end=ROWS // 4))
            return F.contrib.foreach(self.cell, rows, [begin, begin], checkpoint=checkpoint)[0]

    plain, net = trained(Recurrent, "none")
    before = kept_bytes(net)
    bound = before if checkpoint else before - 4 * ROWS * UNITS  # tanh of the cell, computed again from the kept gates
    for remat in ("auto", bound):
        again, net = trained(Recurrent, remat)
        for a, b in zip(plain, again, strict=True):
            np.testing.assert_array_equal(a, b)
    assert kept_bytes(net) <= bound


def test_a_number_of_bytes_is_kept_at_most_products_made_again_at_last() -> None:
    make = layers(lambda: nn.Dense(512), nn.GELU, lambda: nn.Dropout(0.1), lambda: nn.Dense(512), nn.GELU)
    plain, net = trained(make, "none")
    first_product = 4 * ROWS * 512
    for limit in (2 * first_product, first_product, 0):
        again, net = trained(make, limit)
        for a, b in zip(plain, again, strict=True):
            np.testing.assert_array_equal(a, b)
        assert kept_bytes(net) <= limit


def test_too_small_a_bound_is_an_error_that_names_the_smallest() -> None:
    with pytest.raises(mx.errors.ParamError, match=r"remat.*can be reached, \d+ or more"):
        trained(Twice, 16)


def graph() -> Any:
    hidden = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=512, name="layer"), "softrelu")
    return mx.sym.FullyConnected(mx.sym.Dropout(hidden, p=0.5), num_hidden=8, name="out")


def by_bind(remat: Any, arrays: dict[str, Any]) -> tuple[Any, str]:
    grads = {name: nd.zeros_like(array) for name, array in arrays.items()}
    executor = graph().bind(mx.cpu(), arrays, grads, remat=remat)
    executor.forward(is_train=True)
    executor.backward(nd.ones((ROWS, 8)))
    return grads["data"], executor.plan_text()


def by_simple_bind(remat: Any, arrays: dict[str, Any]) -> tuple[Any, str]:
    executor = graph().simple_bind(mx.cpu(), data=(ROWS, UNITS), remat=remat)
    executor = executor.reshape(data=(ROWS, UNITS))  # reshape keeps the choice of remat
    executor.copy_params_from(arrays)
    executor.forward(is_train=True)
    executor.backward(nd.ones((ROWS, 8)))
    return executor.grad_dict["data"], executor.plan_text()


def by_module(remat: Any, arrays: dict[str, Any]) -> tuple[Any, str]:
    module = mx.mod.Module(graph(), label_names=None, remat=remat)
    module.bind([("data", (ROWS, UNITS))], inputs_need_grad=True)
    module.init_params(arg_params={name: array for name, array in arrays.items() if name != "data"}, initializer=None)
    module.forward(mx.io.DataBatch([arrays["data"]]), is_train=True)
    module.backward([nd.ones((ROWS, 8))])
    return module.get_input_grads()[0], module._exec_group.execs[0].plan_text()


def by_function(remat: Any, arrays: dict[str, Any]) -> tuple[Any, str]:
    symbol = graph()
    internals = symbol.get_internals()
    variables = [internals[name] for name in symbol.list_inputs()]
    function = mx.function(variables, symbol, remat=remat)
    for array in arrays.values():
        array.attach_grad()
    with autograd.record():
        out = function(*(arrays[name] for name in symbol.list_inputs()))
    out.backward()
    return arrays["data"].grad, function.plan_text()


@pytest.mark.parametrize("way", [by_bind, by_simple_bind, by_module, by_function])
def test_every_way_to_compile_a_graph_takes_remat(way: Callable[..., tuple[Any, str]]) -> None:
    symbol = graph()
    rng = np.random.RandomState(2)
    shapes = dict(zip(symbol.list_arguments(), symbol.infer_shape(data=(ROWS, UNITS))[0], strict=True))
    arrays = {name: nd.array(0.1 * rng.randn(*shape)) for name, shape in shapes.items()}
    found = {}
    for remat in ("none", 0):
        mx.random.seed(5)
        found[remat] = way(remat, arrays)
    np.testing.assert_array_equal(found["none"][0].asnumpy(), found[0][0].asnumpy())
    repeated = [text.count("FullyConnected") + text.count("Dropout") for _, text in found.values()]
    assert repeated[0] < repeated[1]  # the mask is drawn again, the layer runs again
    with pytest.raises(mx.errors.ParamError, match="'auto', 'none' or a number of bytes"):
        way("much", arrays)


@pytest.mark.parametrize("remat", ["much", "", "-1", -1, 0.5, None, True])
def test_other_values_are_refused(remat: Any) -> None:
    net = nn.HybridSequential()
    with pytest.raises(mx.errors.ParamError, match="'auto', 'none' or a number of bytes"):
        net.hybridize(remat=remat)
    with pytest.raises(mx.errors.ParamError, match="'auto', 'none' or a number of bytes"):
        mx.jit.train_step(net, None, gluon.Trainer(net.collect_params(), "sgd"), remat=remat)


def test_gradients_that_add_up_and_second_backward_runs_have_the_same_bits() -> None:
    def run(remat: str) -> list[np.ndarray]:
        mx.random.seed(1)
        net = NETS["gelu"]()
        net.initialize(mx.init.Xavier())
        net.hybridize(remat=remat)
        data = nd.array(np.random.RandomState(3).randn(ROWS, UNITS).astype("float32"))
        net(data)
        net.collect_params().setattr("grad_req", "add")
        net.collect_params().zero_grad()
        mx.random.seed(2)
        for _ in range(2):
            with autograd.record():
                out = net(data)
            out.backward(retain_graph=True)
            out.backward()
        return [param.grad().asnumpy() for param in net.collect_params().values()]

    for a, b in zip(run("none"), run("auto"), strict=True):
        np.testing.assert_array_equal(a, b)


def test_second_derivatives_have_the_same_bits() -> None:
    def run(remat: str) -> np.ndarray:
        mx.random.seed(1)
        net = NETS["gelu"]()
        net.initialize(mx.init.Xavier())
        net.hybridize(remat=remat)
        data = nd.array(np.random.RandomState(3).randn(ROWS, UNITS).astype("float32"))
        net(data)
        data.attach_grad()
        mx.random.seed(2)
        with autograd.record():
            first = autograd.grad(net(data), data, create_graph=True, retain_graph=True)[0]
            total = nd.sum(first * first)
        total.backward()
        return np.asarray(data.grad.asnumpy())

    np.testing.assert_array_equal(run("none"), run("auto"))


def test_running_statistics_are_updated_once() -> None:
    def statistics(remat: str | int) -> list[np.ndarray]:
        _, net = trained(NETS["batch_norm"], remat, calls=1)
        return [p.data().asnumpy() for n, p in net.collect_params().items() if "running" in n]

    for a, b in zip(statistics("none"), statistics(ROWS * UNITS * 5), strict=True):
        np.testing.assert_array_equal(a, b)


def test_data_may_be_written_over_before_the_backward_run() -> None:
    """Without remat it is the same: only values that the gradient reads anyway must stay."""
    net = layers(lambda: nn.Activation("relu"), lambda: nn.Dense(UNITS))()
    net.initialize()
    net.hybridize()
    data = nd.ones((ROWS, UNITS))
    with autograd.record():
        out = net(data)
    data[:] = 5
    out.backward()
    np.testing.assert_array_equal(net[1].weight.grad().asnumpy(), np.full((UNITS, UNITS), ROWS, "float32"))


@pytest.mark.parametrize("name", ["gelu", "layer_norm", "batch_norm", "loop"])
def test_training_steps_give_the_same_bits(name: str) -> None:
    def run(remat: str) -> list[np.ndarray]:
        mx.random.seed(1)
        net = NETS[name]()
        net.initialize(mx.init.Xavier())
        data = nd.array(np.random.RandomState(3).randn(ROWS, UNITS).astype("float32"))
        net(data)
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
        step = mx.jit.train_step(net, None, trainer, remat=remat)
        mx.random.seed(2)
        losses = [step(data).asnumpy() for _ in range(3)]
        return [*losses, *(param.data().asnumpy() for param in net.collect_params().values())]

    for a, b in zip(run("none"), run("auto"), strict=True):
        np.testing.assert_array_equal(a, b)
