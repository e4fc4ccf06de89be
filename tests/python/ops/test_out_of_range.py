"""Labels and indices out of range: MXNet's result and a warning with the line, IndexError if HYBRIDNET_STRICT=1."""

import os
import subprocess
import sys
import warnings

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, nd

DATA = np.arange(12, dtype="float32").reshape(4, 3)


def reference_pick(index):
    return DATA[np.arange(4), np.clip(index, 0, 2)]


# Calls with an index out of range at position 2, with the operator and input and the value that the warning names.
CASES = {
    "pick": (lambda: nd.pick(nd.array(DATA), nd.array([0, 1, 3, 2])), "'pick', input 'index'", "3"),
    "pick negative": (lambda: nd.pick(nd.array(DATA), nd.array([0, 1, -1, 2])), "'pick', input 'index'", "-1"),
    "batch_take": (
        lambda: nd.batch_take(nd.array(DATA), nd.array([0, 1, 3, 2], dtype="int32")),
        "'batch_take', input 'indices'",
        "3",
    ),
    "take": (lambda: nd.take(nd.array(DATA), nd.array([0, 1, 9])), "'take', input 'indices'", "9"),
    "np.take": (
        lambda: mx.np.take(mx.np.array(DATA), mx.np.array([0, 1, 9]), axis=0, mode="clip"),
        "'take', input 'indices'",
        "9",
    ),
    "Embedding": (
        lambda: nd.Embedding(nd.array([0, 1, 7]), nd.array(DATA), input_dim=4, output_dim=3),
        "'Embedding', input 'data'",
        "7",
    ),
    "npx.embedding": (
        lambda: mx.npx.embedding(mx.np.array([0, 1, 7]), mx.np.array(DATA), input_dim=4, output_dim=3),
        "'Embedding', input 'data'",
        "7",
    ),
    "one_hot": (lambda: nd.one_hot(nd.array([0, 1, 5]), depth=3), "'one_hot', input 'indices'", "5"),
    "softmax_cross_entropy": (
        lambda: nd.softmax_cross_entropy(nd.array(DATA), nd.array([0, 1, 3, 2])),
        "'softmax_cross_entropy', input 'label'",
        "3",
    ),
    "sparse take": (
        lambda: nd.take(nd.array(DATA).tostype("csr"), nd.array([0, 1, 9])),
        "'take', input 'indices'",
        "9",
    ),
    "nan": (lambda: nd.take(nd.array(DATA), nd.array([0, 1, np.nan])), "'take', input 'indices'", "nan"),
}


@pytest.mark.parametrize(("run", "names", "value"), CASES.values(), ids=CASES)
def test_an_index_out_of_range_is_said_with_the_line(run, names, value):
    with pytest.warns(UserWarning, match=f"{names}.*got {value} at position 2") as seen:
        run().wait_to_read()
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # each line warns once
        run().wait_to_read()


def test_the_results_are_those_of_mxnet():
    index = np.array([-5, 1, 3, 100])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(nd.pick(nd.array(DATA), nd.array(index)).asnumpy(), reference_pick(index))
        taken = nd.take(nd.array(DATA), nd.array(index)).asnumpy()
        np.testing.assert_array_equal(taken, DATA[np.clip(index, 0, 3)])


@pytest.mark.parametrize("mode", ["wrap", "raise"])
def test_other_modes_do_not_warn(mode):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nd.take(nd.array(DATA), nd.array([-1, 1]), mode=mode).wait_to_read()
        nd.pick(nd.array(DATA), nd.array([0, 1, 3, -1]), mode="wrap").wait_to_read()


@pytest.mark.parametrize("hybridize", [False, True])
def test_losses_say_which_label_is_no_class(hybridize):
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    if hybridize:
        loss.hybridize()
    message = "'pick'.*input 'index': expected an integer from 0 to 2, got 3"
    with pytest.warns(UserWarning, match=message) as seen:
        if hybridize:
            value = loss(nd.array(DATA), nd.array([1, 2, 3, 1])).asnumpy()
        else:  # another line, which warns again
            value = loss(nd.array(DATA), nd.array([1, 2, 3, 1])).asnumpy()
    assert seen[0].filename == __file__
    assert np.isfinite(value).all()


def test_softmax_output_says_it_in_its_gradient():
    x = nd.array(DATA)
    x.attach_grad()
    with autograd.record():
        y = nd.SoftmaxOutput(x, nd.array([0, 1, 4, 2]))
    with pytest.warns(UserWarning, match="'SoftmaxOutput'.*got 4 at position 2"):
        y.backward()
        x.grad.wait_to_read()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with autograd.record():
            y = nd.SoftmaxOutput(x, nd.array([0, 1, 4, 2]), use_ignore=True, ignore_label=4)
        y.backward()
        x.grad.wait_to_read()


def test_a_worker_of_the_engine_says_it_too():
    big = nd.ones((3000, 3000))
    with pytest.warns(UserWarning, match="'take'") as seen:
        nd.take(nd.dot(big, big), nd.array([5000])).wait_to_read()
    assert seen[0].filename == __file__


STRICT = """
import hybridnet as mx
from hybridnet import nd, gluon
x = nd.ones((4, 3))
for run in (
    lambda: nd.pick(x, nd.array([0, 1, 3, 2])),
    lambda: nd.take(nd.dot(nd.ones((2000, 2000)), nd.ones((2000, 2000))), nd.array([0, 0, 2000])),
    lambda: nd.Embedding(nd.array([0, 1, 4]), x, input_dim=4, output_dim=3),
    lambda: loss(x, nd.array([0, 1, 3, 2])),
):
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    loss.hybridize()
    try:
        run().asnumpy()
    except IndexError as error:
        print(error.op, error.given, str(error.where).rpartition("/")[2])
"""


def test_strict_raises_also_at_the_wait(tmp_path):
    script = tmp_path / "strict.py"
    script.write_text(STRICT)
    environment = {**os.environ, "HYBRIDNET_STRICT": "1"}
    ran = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    lines = ran.stdout.splitlines()
    assert [line.split()[:4] for line in lines] == [
        ["pick", "3", "at", "position"],
        ["take", "2000", "at", "position"],
        ["Embedding", "4", "at", "position"],
        ["pick", "3", "at", "position"],
    ], ran.stdout + ran.stderr
    assert all(line.split()[4] == "2" and "strict.py:" in line for line in lines[:3])


def test_an_operator_without_python_prints_it():
    code = "from hybridnet import nd; nd.pick(nd.ones((2, 3)), nd.array([0, 7])).wait_to_read()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert "'pick'" in ran.stderr


# --------------------------------------------------------------------------------------------------------- ignore_label
@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("ignored", [-1, 1, 255])
@pytest.mark.parametrize("axis", [-1, 1])
def test_ignored_labels_have_no_loss_and_no_gradient(hybridize, ignored, axis):
    rng = np.random.default_rng(3)
    data = rng.standard_normal((2, 3, 4) if axis == -1 else (2, 4, 3)).astype("float32")
    labels = np.array([[0, ignored, 2], [ignored, 3, ignored]], dtype="float32")
    loss = gluon.loss.SoftmaxCrossEntropyLoss(axis=axis, ignore_label=ignored)
    if hybridize:
        loss.hybridize()
    x = nd.array(data)
    x.attach_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with autograd.record():
            value = loss(x, nd.array(labels))
        value.backward()
        gradient = x.grad.asnumpy()
    rows = np.moveaxis(data.astype("float64"), axis, -1)
    logarithms = rows - np.log(np.exp(rows).sum(-1, keepdims=True))
    kept = labels != ignored
    safe = np.where(kept, labels, 0).astype(int)
    each = np.where(kept, -np.take_along_axis(logarithms, safe[..., None], -1)[..., 0], 0)
    np.testing.assert_allclose(value.asnumpy(), each.mean(1), rtol=1e-5, atol=1e-6)
    expected = (np.exp(logarithms) - np.eye(4)[safe]) * kept[..., None] / 3
    np.testing.assert_allclose(np.moveaxis(gradient, axis, -1), expected, rtol=1e-4, atol=1e-6)


def test_ignore_label_needs_class_indices():
    with pytest.raises(mx.errors.ParamError, match="ignore_label"):
        gluon.loss.SoftmaxCrossEntropyLoss(sparse_label=False, ignore_label=0)
