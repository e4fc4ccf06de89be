"""Lengths and indices out of range are clipped and reported once per operator and line, in every mode."""

import os
import subprocess
import sys
import warnings

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, nd

TIME, BATCH = 4, 3
DATA = np.arange(TIME * BATCH * 2, dtype="float32").reshape(TIME, BATCH, 2) / 10
WORDS = 2  # length of the longest label

# Name -> (input that the report names, call, least and largest length that the operator accepts).
OPERATORS = {
    "SequenceMask": ("sequence_length", "F.SequenceMask(x, n, use_sequence_length=True, value=-1)", (0, TIME)),
    "SequenceLast": ("sequence_length", "F.SequenceLast(x, n, use_sequence_length=True)", (1, TIME)),
    "SequenceReverse": ("sequence_length", "F.SequenceReverse(x, n, use_sequence_length=True)", (0, TIME)),
    "RNN": (
        "sequence_length",
        "F.RNN(x, F.ones((12,)) / 5, F.zeros((1, 3, 2)), n, state_size=2, num_layers=1, mode='rnn_tanh', "
        "use_sequence_length=True)",
        (0, TIME),
    ),
    "softmax": ("length", "F.softmax(F.max(x, axis=2), F.cast(n, 'int32'), axis=0, use_length=True)", (0, TIME)),
    "CTCLoss data": ("data_lengths", "F.CTCLoss(x, F.ones((3, 2)), n, use_data_lengths=True)", (0, TIME)),
    "CTCLoss label": ("label_lengths", "F.CTCLoss(x, F.ones((3, 2)), n, use_label_lengths=True)", (0, WORDS)),
}
LENGTHS = {"9": 9.0, "-2": -2.0, "nan": np.nan}
USES = [(name, given) for name in OPERATORS for given in LENGTHS if (name, given) != ("softmax", "nan")]
MODES = ["imperative", "hybridized", "loop", "exported"]


class Apply(gluon.HybridBlock):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def hybrid_forward(self, F, x, n):
        return self.function(F, x, n)


def in_a_loop(function):
    def run(F, x, n):
        return F.contrib.foreach(lambda step, state: (function(F, step, n), state), F.stack(x, x), [F.zeros((1,))])[0]

    return run


def at_its_own_line(text, name):
    """Evaluates the text in a file of this name, because reports are given once per file and line."""
    return eval(compile(text, name, "eval"))


def make(text, mode, folder, file):
    function = at_its_own_line(f"lambda F, x, n: {text}", file)
    if mode == "imperative":
        return lambda x, n: function(nd, x, n)
    net = Apply(in_a_loop(function) if mode == "loop" else function)
    net.hybridize()
    if mode != "exported":
        return net
    net(nd.array(DATA), nd.ones((BATCH,)))
    net.export(str(folder / "net"))
    return gluon.SymbolBlock.imports(str(folder / "net-symbol.json"), ["data0", "data1"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "given"), USES)
def test_a_length_out_of_range_is_said_once_and_the_nearest_is_used(mode, name, given, tmp_path):
    reported_input, text, (low, high) = OPERATORS[name]
    file = f"<{name} {given} {mode}>"
    net = make(text, mode, tmp_path, file)
    call = at_its_own_line("lambda net, x, n: net(x, n).asnumpy()", file + " call")
    x, nearest = nd.array(DATA), high if given == "9" else low
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = call(net, x, nd.array([2, 1, nearest]))
    message = rf"'{name.split()[0]}'.*input '{reported_input}': expected an integer from {low} to {high}, got {given} "
    with pytest.warns(UserWarning, match=message + rf"at position 2(.|\n)*{nearest} is used for it") as seen:
        value = call(net, x, nd.array([2, 1, LENGTHS[given]]))
    np.testing.assert_array_equal(value, expected)
    assert [warning.filename in (file, file + " call") for warning in seen] == [True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(net, x, nd.array([2, 1, LENGTHS[given]]))


@pytest.mark.parametrize("name", [name for name in OPERATORS if name != "softmax"])
def test_gradients_do_not_say_it_again(name):
    text, (_, high) = OPERATORS[name][1:]
    function = at_its_own_line(f"lambda F, x, n: {text}", f"<gradient of {name}>")
    gradients = []
    for length in (9, high):
        x = nd.array(DATA)
        x.attach_grad()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with autograd.record():
                y = function(nd, x, nd.array([2, 1, length])).square()
            y.wait_to_read()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            y.backward()
            gradients.append(x.grad.asnumpy())
    np.testing.assert_array_equal(*gradients)


def test_zero_steps_have_no_last_one():
    with pytest.warns(UserWarning, match="'SequenceLast'.*from 1 to 4, got 0 at position 1(.|\n)*1 is used"):
        last = nd.SequenceLast(nd.array(DATA), nd.array([4, 0, 1]), use_sequence_length=True).asnumpy()
    np.testing.assert_array_equal(last, [DATA[3, 0], DATA[0, 1], DATA[0, 2]])


# Layers and functions that pass lengths on to operators.
WRAPPERS = {
    "npx.sequence_mask": (
        lambda n: mx.npx.sequence_mask(mx.np.array(DATA), mx.np.array(n), use_sequence_length=True),
        "'SequenceMask'.*'sequence_length'",
    ),
    "npx.softmax": (
        lambda n: mx.npx.softmax(mx.np.array(DATA[:, :, 0].T), mx.np.array(n, dtype="int32"), use_length=True),
        "'softmax'.*'length'",
    ),
    "gluon.loss.CTCLoss": (
        lambda n: gluon.loss.CTCLoss("TNC", "NT")(nd.array(DATA), nd.zeros((3, 2)), nd.array(n)),
        "'CTCLoss'.*'data_lengths'",
    ),
    "gluon.loss.CTCLoss labels": (
        lambda n: gluon.loss.CTCLoss("TNC", "NT")(nd.array(DATA), nd.zeros((3, 2)), None, nd.array(n)),
        "'CTCLoss'.*'label_lengths'",
    ),
    "gluon.rnn.LSTM": (lambda n: lstm()(nd.array(DATA), sequence_length=nd.array(n)), "'RNN'.*'sequence_length'"),
    "unroll": (
        lambda n: cell().unroll(TIME, nd.array(DATA), layout="TNC", valid_length=nd.array(n))[0],
        "'SequenceMask'.*'sequence_length'",
    ),
    "hybridized unroll": (lambda n: Unrolled()(nd.array(DATA), nd.array(n)), "'SequenceMask'.*'sequence_length'"),
}


def lstm():
    layer = gluon.rnn.LSTM(2, input_size=2, use_sequence_length=True)
    layer.initialize()
    return layer


def cell():
    made = gluon.rnn.GRUCell(2, input_size=2)
    made.initialize()
    return made


class Unrolled(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.cell = cell()
        self.hybridize()

    def hybrid_forward(self, F, x, n):
        return self.cell.unroll(TIME, x, layout="TNC", valid_length=n)[0]


@pytest.mark.parametrize(("run", "names"), WRAPPERS.values(), ids=WRAPPERS)
def test_layers_report_the_lengths_that_they_pass_on(run, names):
    with pytest.warns(UserWarning, match=f"{names}.*got 7 at position 2") as seen:
        run([2, 1, 7])
        nd.waitall()
    assert all(warning.filename == __file__ for warning in seen)


def test_attention_reports_the_length_of_its_softmax():
    class Attend(gluon.HybridBlock):
        def hybrid_forward(self, F, scores, values, n):
            return F.batch_dot(F.softmax(scores, n, use_length=True), values)

    scores, values = nd.random.normal(shape=(2, 3, 5)), nd.random.normal(shape=(2, 5, 4))
    net = Attend()
    expected = net(scores, values, nd.full((2, 3), 5, dtype="int32")).asnumpy()
    net.hybridize()
    with pytest.warns(UserWarning, match="input '(length|mask)': expected .* from 0 to 5, got 6 at position 0"):
        value = net(scores, values, nd.full((2, 3), 6, dtype="int32")).asnumpy()
    np.testing.assert_allclose(value, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_flash_attention_reports_lengths(dtype):
    attention = at_its_own_line(
        "lambda *inputs: nd.contrib.flash_attention(*inputs, mask_type='lengths')", f"<flash attention of {dtype}>"
    )
    query, key = nd.random.normal(shape=(2, 3, 4)), nd.random.normal(shape=(2, 5, 4))
    with pytest.warns(UserWarning, match="'_contrib_flash_attention'.*'mask': expected .* 0 to 5, got 6 at position 1"):
        value = attention(query, key, key, nd.array([[5], [6]], dtype=dtype)).asnumpy()
    np.testing.assert_array_equal(value, attention(query, key, key, nd.array([[5], [5]], dtype=dtype)).asnumpy())


# --------------------------------------------------------------------------------------------- image numbers of regions
def regions(image):
    return nd.array([[0, 0, 0, 3, 3], [1, 0, 0, 3, 3], [image, 0, 0, 3, 3]])


@pytest.mark.parametrize("image", [2, np.nan, -1])
def test_a_region_of_no_image_is_said_and_gives_zeros(image):
    pool = at_its_own_line("lambda *inputs: nd.ROIPooling(*inputs, pooled_size=(2, 2), spatial_scale=1)", f"<{image}>")
    with pytest.warns(UserWarning, match=f"'ROIPooling'.*'rois': expected .* 0 to 1, got {image:g}.* at position 10"):
        value = pool(nd.ones((2, 1, 4, 4)), regions(image)).asnumpy()
    np.testing.assert_array_equal(value[2], np.zeros((1, 2, 2)))


def test_negative_images_leave_regions_of_roi_align_out():
    align = {"pooled_size": (2, 2), "spatial_scale": 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = nd.contrib.ROIAlign(nd.ones((2, 1, 4, 4)), regions(-1), **align).asnumpy()
    np.testing.assert_array_equal(value[2], np.zeros((1, 2, 2)))
    with pytest.warns(UserWarning, match="'_contrib_ROIAlign'.*'rois'.*got 2.* at position 10"):
        nd.contrib.ROIAlign(nd.ones((2, 1, 4, 4)), regions(2), **align).wait_to_read()


# ------------------------------------------------------------------------------------------- positions in other tensors
def test_tuples_and_places_outside_of_a_shape_are_said():
    with pytest.warns(UserWarning, match="'_ravel_multi_index'.*'data': expected .* 0 to 4, got 7 at position 3"):
        nd.ravel_multi_index(nd.array([[0, 1], [2, 7]]), shape=(3, 5)).wait_to_read()
    with pytest.warns(UserWarning, match="'_unravel_index'.*'data': expected .* 0 to 14, got 15 at position 1"):
        nd.unravel_index(nd.array([14, 15]), shape=(3, 5)).wait_to_read()
    with pytest.warns(UserWarning, match="'_npi_unravel_index'.*'indices'.*got -1 at position 0"):
        mx.np.unravel_index(mx.np.array([-1, 3]), (3, 5))[0].wait_to_read()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nd.ravel_multi_index(nd.array([[9, 1], [2, 4]]), shape=(-1, 5)).wait_to_read()
        nd.unravel_index(nd.array([14, 99]), shape=(-1, 5)).wait_to_read()


class Insert(gluon.HybridBlock):
    def hybrid_forward(self, F, x, places):
        return F.np.insert(x, places, F.np.ones((2,)))


@pytest.mark.parametrize("place", [4, -4])
def test_insertion_into_a_traced_array_refuses_places_outside(place):
    net = Insert()
    net.hybridize()
    x = mx.np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(net(x, mx.np.array([3, -3])).asnumpy(), np.insert([1.0, 2, 3], [3, -3], 1.0))
    with pytest.raises(IndexError, match=rf"expected an index in \[-3, 3\], got {place}"):
        net(x, mx.np.array([0, place])).asnumpy()


def test_labels_of_ctc_that_are_no_number_are_refused():
    with pytest.raises(mx.errors.ParamError, match=r"label\[1, 0\].*got nan"):
        nd.CTCLoss(nd.array(DATA), nd.array([[1, 1], [np.nan, 1], [1, 1]])).wait_to_read()


# --------------------------------------------------------------------------------------------------------------- strict
STRICT = """
import sys
sys.path.insert(0, {folder!r})
import pathlib, tempfile
from test_lengths_out_of_range import BATCH, DATA, MODES, OPERATORS, make, nd
for name, (reported_input, text, bounds) in OPERATORS.items():
    for mode in MODES:
        net = make(text, mode, pathlib.Path(tempfile.mkdtemp()), "<case>")
        try:
            net(nd.array(DATA), nd.array([2, 1, 9])).asnumpy()
            print(name, mode, "passed")
        except IndexError as error:
            print(name, mode, error.op, error.input, error.given)
"""


def test_strict_refuses_lengths_in_every_mode():
    folder = os.path.dirname(__file__)
    environment = {**os.environ, "HYBRIDNET_STRICT": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", STRICT.format(folder=folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    expected = [
        f"{name} {mode} {name.split()[0]} {reported_input} 9 at position 2"
        for name, (reported_input, _, _) in OPERATORS.items()
        for mode in MODES
    ]
    assert ran.stdout.splitlines() == expected, ran.stderr
