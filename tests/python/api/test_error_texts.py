"""Errors about wrong uses of the Python interface say how to write the call instead."""

from __future__ import annotations

import builtins
import math
import pickle
import re

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, errors, gluon
from hybridnet.gluon import nn

ARRAY = np.ones((2, 3), "float32")


def text_of(kind, run):
    with pytest.raises(errors.HybridNetError) as caught:
        run()
    assert isinstance(caught.value, kind)
    return str(caught.value)


class Applied(gluon.HybridBlock):
    """function(x) as a block."""

    def __init__(self, function):
        super().__init__()
        self._function = function

    def forward(self, *args):
        return self._function(*args)


def hybridized(function):
    block = Applied(function)
    block.hybridize(strict=True)
    return block


# ---------------------------------------- the classes
def test_one_constructor_writes_the_text():
    error = errors.ShapeError("subject", expected="(3,)", given="(4,)", because="of that", fix="do this", op="relu")
    assert str(error) == "subject: expected (3,), got (4,).\n  Because: of that.\n  Fix: do this."
    assert (error.op, error.expected, error.fix, error.node) == ("relu", "(3,)", "do this", None)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.fix == "do this"
    assert str(errors.KeyError("no key 'a'")) == "no key 'a'"
    with pytest.raises(TypeError, match="no part 'fx'"):
        errors.ShapeError("subject", fx="do this")


CLASSES = [item for item in vars(errors).values() if isinstance(item, type) and issubclass(item, errors.HybridNetError)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_each_class_takes_a_text_and_parts_and_derives_from_the_builtin_of_its_name(kind):
    assert str(kind("text")) == "text"
    assert str(kind("text", fix="do it")) == "text.\n  Fix: do it."
    builtin = getattr(builtins, kind.__name__, None)
    assert builtin is None or issubclass(kind, builtin)


def test_suggestions_name_the_nearest_word_or_all():
    words = ["learning_rate", "momentum", "wd"]
    assert errors.suggestion("lr", words) == errors.suggestion("learnin_rate", words) == "did you mean 'learning_rate'?"
    assert errors.suggestion("Momentum", words) == "did you mean 'momentum'?"
    assert errors.suggestion("xyz", words) == "use one of 'learning_rate', 'momentum', 'wd'"


# ---------------------------------------- NumPy arrays in blocks
@pytest.mark.parametrize("hybridize", [False, True])
def test_a_numpy_array_given_to_a_layer(hybridize):
    net = nn.HybridSequential()
    net.add(nn.Dense(4))
    net.initialize()
    net.hybridize(hybridize, strict=True)
    text = text_of(TypeError, lambda: net(ARRAY))
    assert "argument 0: expected an NDArray, got a numpy.ndarray of shape (2, 3).\n  Fix: pass mx.nd.array(x)." in text
    assert "Block: hybridsequential" in text


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_numpy_array_given_to_a_block_with_plain_forward(hybridize):
    block = Applied(mx.nd.relu)
    block.hybridize(hybridize, strict=True)
    text = text_of(TypeError, lambda: block(ARRAY))
    assert "expected an NDArray" in text and "Fix: " in text and "mx.nd.array(" in text


def test_a_numpy_array_inside_an_argument_or_result_is_named_by_its_place():
    array = mx.nd.array(ARRAY)
    text = text_of(TypeError, lambda: hybridized(lambda pair: pair[0])({"a": [array, ARRAY]}))
    assert "argument 0['a'][1]: expected an NDArray" in text
    text = text_of(TypeError, lambda: hybridized(lambda x: (x, ARRAY))(array))
    assert "output[1] of forward: expected an NDArray, got a numpy.ndarray" in text
    text = text_of(TypeError, lambda: hybridized(lambda x, options: x)(array, {1, 2}))
    assert "argument 1: expected an NDArray, None, a number or text, or a list" in text and "got a set" in text


# ---------------------------------------- unknown keywords
LAYERS = [
    (lambda: nn.Conv2D(3, kernal_size=3), "Conv2D: unknown keyword 'kernal_size'.\n  Fix: did you mean 'kernel_size'?"),
    (lambda: nn.Dense(unit=3), "Dense: unknown keyword 'unit'.\n  Fix: did you mean 'units'?"),
    (lambda: nn.Dense(3, in_unit=3), "Dense: unknown keyword 'in_unit'.\n  Fix: did you mean 'in_units'?"),
    (lambda: gluon.rnn.LSTM(3, num_layer=2), "LSTM: unknown keyword 'num_layer'.\n  Fix: did you mean 'num_layers'?"),
    (lambda: gluon.rnn.LSTMCell(hiden_size=3), "unknown keyword 'hiden_size'.\n  Fix: did you mean 'hidden_size'?"),
    (lambda: gluon.loss.L2Loss(wieght=2), "L2Loss: unknown keyword 'wieght'.\n  Fix: did you mean 'weight'?"),
    (lambda: mx.optimizer.create("adam", beta_1=0.9), "Adam: unknown keyword 'beta_1'.\n  Fix: write beta1=..."),
    (lambda: gluon.Trainer({}, "sgd", {"lr": 1}), "SGD: unknown keyword 'lr'.\n  Fix: write learning_rate=..."),
]  # fmt: skip


@pytest.mark.parametrize(("make", "expected"), LAYERS, ids=range(len(LAYERS)))
def test_unknown_keywords_of_layers_and_optimizers_suggest_the_nearest(make, expected):
    assert expected in text_of(TypeError, make)


def test_keywords_that_a_constructor_takes_itself_are_not_checked():
    class Named(nn.Dense):
        def __init__(self, units, **kwargs):
            self.title = kwargs.pop("title")
            super().__init__(units, **kwargs)

    assert Named(3, title="first", in_units=2).title == "first"
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        nn.Dense(in_units=3)  # no unknown keyword: Python's own error

    class Passing(gluon.HybridBlock):
        def __init__(self, size, **kwargs):
            super().__init__(size=size, **kwargs)

    assert "Passing: unknown keyword 'size'" in text_of(TypeError, lambda: Passing(3))


# ---------------------------------------- NumPy on traced values
TRACED = {
    "a universal function": (np.exp, "numpy.exp of Symbol data", "call mx.nd.exp"),
    "of another name": (np.abs, "numpy.absolute of Symbol data", "call mx.nd.abs"),
    "a reduction": (lambda x: np.mean(x), "numpy.mean of Symbol data", "call mx.nd.mean"),
    "a join": (lambda x: np.concatenate([x, x]), "numpy.concatenate of Symbol data", "call mx.nd.concat"),
    "one that mx.nd lacks": (lambda x: np.median(x), "numpy.median of Symbol data", "use the operators of mx.nd"),
    "arithmetic with a NumPy array": (lambda x: ARRAY * x, "numpy.multiply of Symbol data", "mx.nd.array(x)"),
    "its mirror": (lambda x: x * ARRAY, "numpy.multiply of Symbol data", "mx.nd.array(x)"),
    "conversion": (lambda x: np.asarray(x), "Conversion to a NumPy array of Symbol data", "use the operators of mx.nd"),
    "a function of math": (math.exp, "float() of Symbol data", "compute with operators"),
    "autograd.grad": (lambda x: autograd.grad(x * x, x), "autograd.grad of Symbol", "outside of the block"),
    "autograd.backward": (lambda x: autograd.backward([x]), "autograd.backward of Symbol data", "outside of the block"),
    "attach_grad": (lambda x: x.attach_grad(), "attach_grad() of Symbol data", "on the arrays that are given"),
}  # fmt: skip


@pytest.mark.parametrize("case", TRACED)
def test_reading_values_of_traced_arrays_is_an_error_that_names_a_replacement(case):
    function, asked, fix = TRACED[case]
    text = text_of(errors.TraceError, lambda: hybridized(function)(mx.nd.array(ARRAY)))
    assert text.startswith(f"[HN100] {asked}")
    # The line that asks, with a caret, follows the first sentence.
    assert re.search(r"it has no values while the graph is being built\.\n +\d+ \| \S.*\n +\| +\^\n  Because: ", text)
    assert fix in text.split("\n  Fix: ")[1]
    assert "test_error_texts.py:" in text.split("\n  At: ")[1] or "numpy" in text.split("\n  At: ")[1]


def test_numbers_of_numpy_meet_traced_arrays_on_either_side():
    def forward(x):
        return np.float32(2) * x + np.float64(1) - np.int64(3) / (x + 4)

    plain, traced = Applied(forward), hybridized(forward)
    np.testing.assert_array_equal(plain(mx.nd.array(ARRAY)).asnumpy(), traced(mx.nd.array(ARRAY)).asnumpy())
    assert hybridized(np.sum)(mx.nd.array(ARRAY)).asscalar() == 6  # calls the method of that name


def test_gradients_of_objects_that_are_not_arrays():
    text = text_of(TypeError, lambda: autograd.backward(3.0))
    assert text == "autograd.backward: heads: expected an NDArray or a list of them, got a float."


# ---------------------------------------------- missing names
@pytest.mark.parametrize("name", ["tvmop"])
def test_modules_that_do_not_exist_yet_say_so(name):
    assert name not in dir(mx)
    text = text_of(AttributeError, lambda: getattr(mx, name))
    assert f"HybridNet has no mx.{name} yet.\n  Fix: " in text
    with pytest.raises(ImportError, match=f"HybridNet has no mx.{name} yet"):
        __import__(f"hybridnet.{name}")


def test_numpy_shapes_can():
    mx.util.set_np(array=False)
    assert mx.is_np_shape()
    mx.util.reset_np()
    assert not mx.is_np_shape()


# ---------------------------------------- tab completion
COMPLETIONS = {
    "nd.contrib": "foreach while_loop cond isinf box_nms",
    "sym.contrib": "foreach while_loop cond isnan",
    "contrib": "foreach while_loop cond amp text nd sym",
    "gluon": "model_zoo contrib nn Trainer",
    "gluon.data": "vision DataLoader",
    "gluon.contrib": "cnn estimator",
    "gluon.block": "HybridBlock SymbolBlock Block",
    "gluon.rnn.rnn_cell": "ZoneoutCell LSTMCell",
    "nd": "zeros relu contrib random Custom",
    "operator": "NDArrayOp CustomOp",
    "model": "FeedForward save_checkpoint",
}


@pytest.mark.parametrize("place", COMPLETIONS)
def test_dir_lists_the_available_names(place):
    module = mx
    for part in place.split("."):
        module = getattr(module, part)
    names = dir(module)
    for name in COMPLETIONS[place].split():
        assert name in names
        getattr(module, name)


def test_everything_that_dir_lists_exists():
    for module in (mx, mx.contrib, mx.gluon, mx.gluon.data, mx.gluon.contrib, mx.nd.contrib, mx.sym.contrib):
        for name in dir(module):
            getattr(module, name)
