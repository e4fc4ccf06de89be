"""SVRGModule reduces the variance of gradients and accepts batches without labels."""

from __future__ import annotations

from collections import namedtuple

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.contrib.svrg_optimization import SVRGModule
from hybridnet.contrib.svrg_optimization.svrg_module import SVRGModule as FromItsFile


def _line():
    out = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc")
    return mx.sym.LinearRegressionOutput(out, mx.sym.var("label"), name="out")


def _data(rng, count=64, batch_size=8):
    x = rng.normal(size=(count, 3)).astype("float32")
    y = (x @ np.array([[1.0], [-2.0], [3.0]]) + 0.5).astype("float32")
    return mx.io.NDArrayIter(x, y, batch_size, label_name="label")


def _module(data, update_freq=2):
    module = SVRGModule(_line(), label_names=["label"], update_freq=update_freq)
    module.bind(data.provide_data, data.provide_label)
    module.init_params(mx.init.Uniform(0.1))
    return module


def _gradient(module):
    return [per[0].asnumpy().copy() for per in module._exec_group.grad_arrays if per[0] is not None]


def test_it_learns(rng):
    data = _data(rng)
    module = SVRGModule(_line(), label_names=["label"], update_freq=2)
    module.fit(
        data, eval_metric="mse", optimizer="sgd", optimizer_params={"learning_rate": 0.2}, num_epoch=30,
        initializer=mx.init.Uniform(0.1),
    )  # fmt: skip
    weight = module.get_params()[0]["fc_weight"].asnumpy()
    np.testing.assert_allclose(weight, [[1, -2, 3]], atol=1e-3)
    assert FromItsFile is SVRGModule


def test_at_the_snapshot_every_batch_has_the_gradient_of_all_data(rng):
    data = _data(rng)
    module = _module(data)
    module.init_optimizer(optimizer_params={"learning_rate": 0.0})
    module.update_full_grads(data)
    means = [sum(per) / 8 for per in zip(*(_batch_gradient(module, batch) for batch in data), strict=True)]
    data.reset()
    for batch in data:
        module.forward_backward(batch)
        module.update()
        for found, expected in zip(_gradient(module), means, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def _batch_gradient(module, batch):
    mx.mod.Module.forward(module, batch, True)
    mx.mod.Module.backward(module)
    return _gradient(module)


def test_gradients_are_those_of_a_module_until_there_is_a_snapshot(rng):
    data = _data(rng)
    module = _module(data)
    module.init_optimizer()
    batch = data.next()
    expected = _batch_gradient(module, batch)
    module.forward_backward(batch)
    for found, plain in zip(_gradient(module), expected, strict=True):
        np.testing.assert_array_equal(found, plain)


def test_snapshots_are_taken_every_update_freq_epochs(rng):
    data = _data(rng)
    module = _module(data, update_freq=3)
    taken = []
    take = module.update_full_grads
    module.update_full_grads = lambda batches: (taken.append(module.epoch), take(batches))
    fit_epoch = module._fit_epoch

    def noting(epoch, *arguments):
        module.epoch = epoch
        fit_epoch(epoch, *arguments)

    module._fit_epoch = noting
    module.fit(data, eval_metric="mse", num_epoch=7)
    assert taken == [0, 3, 6]


@pytest.mark.parametrize("update_freq", [None, 0, 1.5])
def test_a_frequency_that_is_no_number_of_epochs_is_refused(update_freq):
    with pytest.raises(ValueError, match="SVRGModule: update_freq: expected a positive number of epochs"):
        SVRGModule(_line(), update_freq=update_freq)


def test_a_batch_of_data_alone_predicts_also_with_another_size(rng):
    Batch = namedtuple("Batch", ["data"])
    data = _data(rng)
    module = mx.mod.Module(_line(), label_names=["label"])
    module.bind(data.provide_data, data.provide_label, for_training=False)
    module.init_params()
    for count in (8, 3, 12, 8):
        x = mx.nd.ones((count, 3))
        module.forward(Batch([x]))
        assert module.get_outputs()[0].shape == (count, 1)
