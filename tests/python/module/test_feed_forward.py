"""FeedForward: training and prediction on arrays, files, buckets. Modules written in Python, buckets from files."""

from __future__ import annotations

import logging

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.model import FeedForward


def classifier():
    hidden = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=16, name="fc1"), act_type="relu")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(hidden, num_hidden=3, name="fc2"), name="softmax")


def clusters(rng, count=120):
    labels = rng.integers(0, 3, size=count)
    return np.array([[2.0, 0], [-2, 1], [0, -2]])[labels] + 0.3 * rng.normal(size=(count, 2)), labels


def made(**kwargs):
    settings = {"num_epoch": 6, "learning_rate": 0.5, "numpy_batch_size": 20, **kwargs}
    return FeedForward(classifier(), mx.cpu(), initializer=mx.init.Xavier(), **settings)


def test_a_network_learns_from_arrays_and_predicts(rng, tmp_path):
    data, labels = clusters(rng)
    model = made(momentum=0.9)
    model.fit(data, labels, eval_data=(data, labels))
    seen = model.predict(data)
    assert isinstance(seen, np.ndarray) and seen.shape == (120, 3)
    assert (seen.argmax(1) == labels).mean() > 0.95
    assert model.score(mx.io.NDArrayIter(data, labels, 20)) > 0.95
    outputs, inputs, again = model.predict(mx.io.NDArrayIter(data, labels, 50), return_data=True)
    np.testing.assert_allclose(outputs, seen, rtol=1e-4, atol=1e-6)  # predicted in batches of 50 and of 20 rows
    np.testing.assert_allclose(inputs, data.astype("float32"))
    assert again.tolist() == labels.tolist()
    model.save(str(tmp_path / "model"))
    loaded = FeedForward.load(str(tmp_path / "model"), 6, numpy_batch_size=20)
    assert loaded.begin_epoch == 6
    np.testing.assert_array_equal(loaded.predict(data), seen)
    larger_batches = FeedForward.load(str(tmp_path / "model"), 6)
    np.testing.assert_allclose(larger_batches.predict(data), seen, rtol=1e-4, atol=1e-6)


def test_training_goes_on_from_given_parameters(rng):
    data, labels = clusters(rng)
    first = made()
    first.fit(data, labels)
    extra = {**first.arg_params, "other": mx.nd.zeros(1)}
    kept = made(num_epoch=1, learning_rate=0.0, arg_params=extra, aux_params={}, allow_extra_params=True)
    kept.fit(data, labels)
    np.testing.assert_array_equal(kept.predict(data), first.predict(data))
    with pytest.raises(mx.MXNetError, match="other"):
        made(num_epoch=1, arg_params=extra, aux_params={}).fit(data, labels)


def test_epochs_of_a_given_size_go_on_where_the_one_before_ended(rng):
    data, labels = clusters(rng, 60)
    seen = []
    model = made(num_epoch=2, epoch_size=2)
    model.fit(
        mx.io.NDArrayIter(np.arange(120.0).reshape(60, 2), labels, 20),
        batch_end_callback=lambda p: seen.append((p.epoch, p.locals["batch"].data[0][0, 0].asscalar())),
    )
    assert seen == [(0, 0.0), (0, 40.0), (1, 80.0), (1, 0.0)]
    created = FeedForward.create(classifier(), data, labels, num_epoch=1, numpy_batch_size=20)
    assert created.predict(data).shape == (60, 3)


def test_a_function_gives_the_graph_of_each_bucket(rng):
    def graph(length):
        data = mx.sym.Embedding(mx.sym.var("data"), input_dim=10, output_dim=4, name="embed")
        return mx.sym.SoftmaxOutput(
            mx.sym.FullyConnected(mx.sym.mean(data, axis=1), num_hidden=2, name="fc"), name="softmax"
        )

    class Buckets(mx.io.DataIter):
        batch_size, default_bucket_key = 2, 5
        provide_data = [mx.io.DataDesc("data", (2, 5))]
        provide_label = [mx.io.DataDesc("softmax_label", (2,))]

        def __iter__(self):
            for length in (5, 3):
                shapes = [mx.io.DataDesc("data", (2, length))]
                yield mx.io.DataBatch(
                    [mx.nd.ones((2, length))], [mx.nd.zeros(2)], 0, None, length, shapes, self.provide_label
                )

        def reset(self):
            pass

    model = FeedForward(graph, num_epoch=1)
    model.fit(Buckets())
    assert set(model.arg_params) >= {"embed_weight"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([1, 2], None), "must be a DataIter"),
        ((np.zeros((4, 2)), None), "y must be given"),
        ((np.zeros((4, 2)), np.zeros(3)), "4 samples, y has 3"),
        ((np.zeros((4, 2)), np.zeros((4, 2))), r"\(4, 2\)"),
    ],
)
def test_data_that_do_not_fit_are_named(arguments, text):
    with pytest.raises(mx.MXNetError, match=text):
        made().fit(*arguments)


def test_without_parameters_there_is_no_prediction():
    with pytest.raises(mx.MXNetError, match="call fit"):
        made().predict(np.zeros((2, 2)))
    with pytest.raises(mx.MXNetError, match="needs an epoch"):
        made().save("nowhere")


def test_a_loss_in_python_trains_a_row_of_modules(rng):
    data, labels = clusters(rng)

    def gradient(scores, label):
        """Gradient of the multiclass hinge loss of Crammer and Singer."""
        margins = scores.asnumpy()
        rows, truth = np.arange(len(margins)), label.asnumpy().astype(int)
        margins = margins + 1
        margins[rows, truth] -= 1
        grad = np.zeros_like(margins)
        grad[rows, margins.argmax(1)] += 1
        grad[rows, truth] -= 1
        return grad

    scores = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    row = mx.mod.SequentialModule().add(mx.mod.Module(scores, label_names=[]))
    loss = mx.mod.PythonLossModule(grad_func=gradient, data_names=["fc_output"])
    row.add(loss, take_labels=True, auto_wiring=True)
    row.fit(mx.io.NDArrayIter(data, labels, 20), num_epoch=5, optimizer_params={"learning_rate": 0.1})
    assert dict(row.score(mx.io.NDArrayIter(data, labels, 20), "acc"))["accuracy"] > 0.9
    assert loss.output_shapes == [("pyloss_output", (20, 3))]
    assert loss.get_input_grads()[0].shape == (20, 3)


def test_errors_of_modules_in_python_name_the_fault():
    with pytest.raises(mx.MXNetError, match="one label"):
        mx.mod.PythonLossModule(label_names=["a", "b"])
    loss = mx.mod.PythonLossModule()
    with pytest.raises(mx.MXNetError, match=r"data_shapes must be of \['data'\], got \['x'\]"):
        loss.bind([("x", (2, 3))])
    with pytest.raises(mx.MXNetError, match="grad_req"):
        loss.bind([("data", (2, 3))], grad_req="add")
    loss.bind([("data", (2, 3))], [("softmax_label", (2,))])
    loss.forward(mx.io.DataBatch([mx.nd.zeros((2, 3))], [mx.nd.zeros(2)]))
    with pytest.raises(NotImplementedError, match="grad_func"):
        loss.backward()


def test_buckets_come_back_from_files_and_dicts(rng, tmp_path):
    def graph(length):
        data = mx.sym.Embedding(mx.sym.var("data"), input_dim=10, output_dim=4, name="embed")
        out = mx.sym.FullyConnected(mx.sym.mean(data, axis=1), num_hidden=2, name="fc")
        return mx.sym.SoftmaxOutput(out, name="softmax"), ["data"], ["softmax_label"]

    shapes = [("data", (2, 5))], [("softmax_label", (2,))]
    first = mx.mod.BucketingModule(graph, 5, logger=logging.getLogger("buckets"))
    first.bind(*shapes)
    first.init_params(mx.init.Normal(1))
    first.save_checkpoint(str(tmp_path / "b"), 3)
    loaded = mx.mod.BucketingModule.load(str(tmp_path / "b"), 3, sym_gen=graph, default_bucket_key=5)
    params = dict(zip(("arg_params", "aux_params"), first.get_params(), strict=True))
    given = mx.mod.BucketingModule.load_dict({5: graph(5)[0]}, graph, 5, **params)
    batch = mx.io.DataBatch([mx.nd.array([[1, 2, 3], [4, 5, 6]])], None, bucket_key=3, provide_data=[("data", (2, 3))])
    answers = []
    for module in (first, loaded, given):
        if module is not first:
            module.bind(*shapes, for_training=False)
        module.forward(batch, is_train=False)
        answers.append(module.get_outputs()[0].asnumpy())
    np.testing.assert_array_equal(answers[1], answers[0])
    np.testing.assert_array_equal(answers[2], answers[0])
    with pytest.raises(mx.MXNetError, match="sym_gen is missing"):
        mx.mod.BucketingModule.load(str(tmp_path / "b"), 3, default_bucket_key=5)
    with pytest.raises(mx.MXNetError, match="arg_params is missing"):
        mx.mod.BucketingModule.load_dict({}, graph, 5)
