"""Modules whose batch axis is not the first, buckets that generate names again, and invalid shapes."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest


@pytest.mark.parametrize("contexts", [1, 2])
def test_outputs_are_joined_along_the_axis_that_their_layout_names(contexts):
    symbol = mx.sym.Activation(mx.sym.var("data") * 1, act_type="relu", __layout__="TNC")
    module = mx.mod.Module(symbol, ("data",), None, context=[mx.cpu(i) for i in range(contexts)])
    shape = (3, 8, 7)
    module.bind([mx.io.DataDesc("data", shape, layout="TNC")], inputs_need_grad=True)
    module.init_params()
    data = np.random.RandomState(0).uniform(-1, 1, shape).astype("float32")
    head = np.random.RandomState(1).uniform(-1, 1, shape).astype("float32")
    module.forward(mx.io.DataBatch([mx.nd.array(data)], None))
    module.backward([mx.nd.array(head)])
    np.testing.assert_array_equal(module.get_outputs()[0].asnumpy(), np.maximum(data, 0))
    parts = module.get_outputs(merge_multi_context=False)[0]
    assert [part.shape for part in parts] == [(3, 8 // contexts, 7)] * contexts
    np.testing.assert_array_equal(module.get_input_grads()[0].asnumpy(), head * (data > 0))


def test_names_that_buckets_make_count_from_the_start():
    def generate(key):
        hidden = mx.sym.Embedding(mx.sym.var("data"), input_dim=10, output_dim=4)
        output = mx.sym.FullyConnected(mx.sym.mean(hidden, axis=1), num_hidden=3)
        return mx.sym.SoftmaxOutput(output, name="softmax"), ("data",), ("softmax_label",)

    module = mx.mod.BucketingModule(generate, default_bucket_key=6)
    module.bind([("data", (2, 6))], [("softmax_label", (2,))])
    module.init_params()
    names = ["data", "embedding0_weight", "fullyconnected0_weight", "fullyconnected0_bias", "softmax_label"]
    assert module.symbol.list_arguments() == names
    before = module._buckets[6]._total_exec_bytes
    module.switch_bucket(3, [("data", (2, 3))], [("softmax_label", (2,))])
    assert module.symbol.list_arguments() == names
    assert module._buckets[6]._total_exec_bytes == before > 0


def test_a_shape_that_is_an_array_is_a_type_error():
    module = mx.mod.Module(mx.sym.relu(mx.sym.var("data")), ("data",), None)
    with pytest.raises(TypeError, match=r"data_shapes: 'data'.*a tuple of int.*NDArray"):
        module.bind([("data", mx.nd.array([10, 10]))])
    assert not module.binded
    module.bind([("data", [10, 10])])
    assert module.binded


def test_labels_beyond_the_data_are_left_out_with_a_warning():
    data, label = np.arange(8.0).reshape(4, 2), np.arange(6.0)
    with pytest.warns(UserWarning, match="'softmax_label' has more samples than the data, 4"):
        iterator = mx.io.NDArrayIter(data, label, batch_size=2)
    assert [batch.label[0].asnumpy().tolist() for batch in iterator] == [[0, 1], [2, 3]]
    with pytest.raises(mx.MXNetError, match="the same number of samples"):
        mx.io.NDArrayIter(data, np.arange(3.0), batch_size=2)
