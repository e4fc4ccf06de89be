"""group2ctxs chooses the context of a module on which the parameters of a group are stored."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest

X = np.random.RandomState(0).rand(8, 5).astype("float32")
Y = np.array([0, 1, 2, 0, 1, 2, 0, 1], dtype="float32")


def network() -> mx.sym.Symbol:
    with mx.AttrScope(ctx_group="a"):
        hidden = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="fc1")
    with mx.AttrScope(ctx_group="b"):
        return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(hidden, num_hidden=3, name="fc2"), name="softmax")


def trained(contexts, groups) -> mx.mod.Module:
    module = mx.mod.Module(network(), context=contexts, group2ctxs=groups)
    iterator = mx.io.NDArrayIter(X, Y, batch_size=4)
    module.fit(
        iterator, num_epoch=2, initializer=mx.init.One(), optimizer_params={"learning_rate": 0.1, "momentum": 0.9}
    )
    return module


@pytest.mark.parametrize(
    ("contexts", "groups", "places"),
    [
        ([0], {"a": [mx.cpu(1)], "b": mx.cpu(2)}, [[1], [2]]),
        ([0], [{"a": mx.cpu(1), "b": mx.cpu(2)}], [[1], [2]]),
        ([0, 1], {"a": [mx.cpu(1), mx.cpu(2)], "b": [mx.cpu(3), mx.cpu(4)]}, [[1, 2], [3, 4]]),
        ([0, 1], {"a": mx.cpu(1), "b": [mx.cpu(3)]}, [[1, 1], [3, 3]]),
        ([0, 1], {"b": mx.cpu(2)}, [[0, 1], [2, 2]]),
    ],
)
def test_parameters_live_where_their_group_says_and_train_the_same(contexts, groups, places):
    contexts = [mx.cpu(i) for i in contexts]
    module = trained(contexts, groups)
    found = dict(zip(module._exec_group.param_names, module._exec_group.param_arrays, strict=True))
    assert [a.context.device_id for a in found["fc1_weight"]] == places[0]
    assert [a.context.device_id for a in found["fc2_weight"]] == places[1]
    plain, _ = trained(contexts, None).get_params()
    for name, value in module.get_params()[0].items():
        np.testing.assert_allclose(value.asnumpy(), plain[name].asnumpy(), rtol=1e-5)


@pytest.mark.parametrize("groups", [[{}, {}, {}], {"a": [mx.cpu(0), mx.cpu(1), mx.cpu(2)]}])
def test_another_number_of_contexts_is_refused(groups):
    with pytest.raises(mx.MXNetError, match="group2ctxs"):
        mx.mod.Module(network(), context=[mx.cpu(0), mx.cpu(1)], group2ctxs=groups)
