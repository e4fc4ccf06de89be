"""Sizes that values decide, in plain Python: masks, nonzero, unique, boxes, ragged batches, in branches and loops."""

from __future__ import annotations

import warnings

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon, nd

np_ = mx.np
NPX = mx.npx


def a(*values, dtype="float64"):
    return np.array(values, dtype)


class Function(gluon.HybridBlock):
    """Calls a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def where(condition):
    """Returns a mask: comparisons of mx.nd give floating numbers, which as an index are positions."""
    return condition.astype("bool")


CASES = {}


def case(*inputs, gradient=True, numpy=False):
    """Registers a program with the inputs of its calls, the first of which is traced."""

    def note(function):
        CASES[function.__name__] = (function, inputs, gradient, numpy)
        return function

    return note


MIXED = (a(1, -2, 3, -4, 5),), (a(-1, -2, 3),), (a(2, 1, 4, 7),), (a(1, -1),)


# --------------------------------------------------------------------------------------------------------------- masks
@case(*MIXED)
def masked_rows(x):
    return nd.contrib.boolean_mask(x, x > 0) * 2


@case(*MIXED)
def index_by_mask(x):
    kept = x[where(x > 0)]
    return kept * kept, kept.sum()


@case(*MIXED)
def masks_of_masks(x):
    kept = x[where(x > 0)]
    return kept[where(kept < 4)] + 1


@case(*MIXED)
def mask_in_a_branch(x):
    if x.sum() > 2:
        y = x[where(x > 1)].sum() * 3
    else:
        y = (x * x)[where(x < 0)].sum()
    return y + x[0]


@case(*MIXED)
def mask_that_leaves_a_branch(x):
    if x[0] > 0:
        y = x[where(x > 0)]
    else:
        y = x * 2
    return y + 1


@case(*MIXED)
def branch_by_the_number_of_rows(x):
    kept = x[where(x > 0)]
    if kept.shape[0] > 2:
        return kept.sum() * 10
    return kept.sum()


@case(*MIXED)
def branch_by_len(x):
    kept = x[where(x > 0)]
    y = x
    if len(kept) > 1 and kept[0] < 2:
        y = x - kept[1]
    return y * len(kept)


@case(*MIXED)
def loop_over_masked_rows(x):
    total = x[0] * 0
    for v in x[where(x > 0)]:
        total = total * 2 + v
    return total


@case(*MIXED)
def mask_in_a_for(x):
    total = x.sum() * 0
    for v in x:
        total = total + (x[where(x >= v)] * v).sum()
    return total


@case(*MIXED)
def mask_in_a_while(x):
    i = 0
    total = x.sum() * 0
    while x[where(x > 0)].sum() > 4:
        total = total + x[where(x > 0)].max()
        x = x - 1
        i += 1
    return total + i, x


@case(*MIXED)
def rows_shrink_in_a_while(x):
    rest = x
    rounds = 0
    mx.autograph.shape_invariants(rest=(None,))
    while rest.sum() > 6:
        rest = rest[where(nd.broadcast_lesser(rest, rest.max()))]
        rounds += 1
    return rest * 2, rounds


@case(*MIXED)
def rows_shrink_by_a_comparison(x):
    rest = x
    mx.autograph.shape_invariants(rest=(None,))
    while rest.sum() > 6:
        rest = rest[where(rest < rest.max())]
    return rest * 2


@case((a([1, 2], [-3, 4], [5, -6], [0, 1]),), (a([-1, 2], [3, 4]),))
def mask_of_rows_of_a_matrix(x):
    kept = x[where(x.sum(axis=1) > 0)]
    return nd.dot(kept, x, transpose_b=True)


@case((a([1, 2], [-3, 4], [5, -6], [0, 1]), a(1, 2, 3, 4)), (a([-1, 2], [3, 4]), a(1, -1)))
def two_arrays_by_one_mask(x, y):
    chosen = where(x[:, 0] > 0)
    return x[chosen] * y[chosen].expand_dims(axis=1)


# ---------------------------------------------------------------------------------------------------- nonzero, unique
@case(*MIXED, numpy=True)
def numpy_boolean_index(x):
    return x[x > 0] * 2


@case(*MIXED, numpy=True)
def numpy_boolean_index_in_a_branch(x):
    if (x > 2).sum() > 1:
        return x[x > 2].sum()
    return x[x < 0].sum() * 5


@case(*MIXED, gradient=False, numpy=True)
def numpy_nonzero(x):
    places = np_.nonzero(x > 0)[0]
    return places * 3, places.sum()


@case(*MIXED, numpy=True)
def take_of_nonzero(x):
    places = np_.nonzero(x > 0)[0]
    return x[places] * 2


@case(*MIXED, gradient=False)
def npx_nonzero_in_a_loop(x):
    total = x.sum() * 0
    for v in x:
        total = total + nd.contrib.boolean_mask(nd.contrib.arange_like(x, axis=0), x > v).sum()
    return total


@case((a(3, 1, 3, 2, 1),), (a(1, 1, 1),), (a(5, 4),), gradient=False, numpy=True)
def numpy_unique(x):
    return np_.unique(x) * 2


@case((a(3, 1, 3, 2, 1),), (a(1, 1, 1),), (a(5, 4),), gradient=False, numpy=True)
def unique_with_counts(x):
    values, counts = np_.unique(x, return_counts=True)
    best = values[np_.argmax(counts)]
    if counts.max() > 1:
        return best * 1.0
    return best - 100


@case((a(3, 1, 3, 2, 1),), (a(1, 1, 1),), (a(5, 4),), gradient=False, numpy=True)
def loop_over_unique_values(x):
    total = x.sum() * 0
    for value in np_.unique(x):
        total = total * 10 + x[x == value].sum() * value
    return total


# --------------------------------------------------------------------------------------------------------------- boxes
BOXES = a(
    [0, 0.9, 0.1, 0.1, 0.4, 0.4], [0, 0.8, 0.12, 0.1, 0.42, 0.4], [1, 0.7, 0.5, 0.5, 0.9, 0.9],
    [0, 0.02, 0.0, 0.0, 1.0, 1.0], [1, 0.6, 0.52, 0.5, 0.9, 0.92], [0, 0.5, 0.1, 0.6, 0.3, 0.9],
)  # fmt: skip


@case((BOXES,), (BOXES[:3],), (BOXES[3:4],), gradient=False)
def true_number_of_boxes(boxes):
    kept = nd.contrib.box_nms(boxes, overlap_thresh=0.5, valid_thresh=0.05, coord_start=2, score_index=1, id_index=0)
    valid = nd.contrib.boolean_mask(kept, kept[:, 0] >= 0)
    return valid, valid.shape[0]


@case((BOXES,), (BOXES[:3],), (BOXES[3:4],), gradient=False)
def loop_over_true_boxes(boxes):
    kept = nd.contrib.box_nms(boxes, overlap_thresh=0.5, valid_thresh=0.05, coord_start=2, score_index=1, id_index=0)
    area = nd.zeros((1,), dtype="float64")
    best = nd.full((1,), -1, dtype="float64")
    for box in kept[where(kept[:, 0] >= 0)]:
        size = (box[4] - box[2]) * (box[5] - box[3])
        if size > area:
            area, best = size, box[1]
    return area, best


@case((BOXES, a(0.5)), (BOXES, a(0.95)), (BOXES[:3], a(0.1)), (BOXES[3:4], a(0.5)), gradient=False)
def own_nms(boxes, limit):
    """Suppression as a loop that takes the best box of the rest until none is left."""
    rest = boxes[where(boxes[:, 1] > 0.05)]
    chosen = boxes[:1] * 0
    mx.autograph.shape_invariants(rest=(None, 6), chosen=(None, 6))
    while rest.shape[0] > 0:
        best = rest[nd.argmax(rest[:, 1], axis=0).astype("int64")].reshape((1, 6))
        chosen = nd.concat(chosen, best, dim=0)
        overlap = nd.contrib.box_iou(rest[:, 2:], best[:, 2:])[:, 0]
        rest = rest[where(nd.broadcast_lesser(overlap, limit) * nd.broadcast_lesser(rest[:, 1], best[:, 1]))]
    return chosen[1:]


# -------------------------------------------------------------------------------------------------------------- ragged
BATCH = np.arange(24, dtype="float64").reshape(3, 4, 2) - 10
LENGTHS = (BATCH, a(4, 1, 2, dtype="int64")), (BATCH[:2], a(3, 4, dtype="int64")), (BATCH, a(1, 1, 1, dtype="int64"))


@case(*LENGTHS)
def sequence_mask_of_lengths(x, lengths):
    masked = nd.SequenceMask(x, sequence_length=lengths, use_sequence_length=True, axis=1)
    return masked.sum(axis=1) / lengths.astype("float64").expand_dims(axis=1)


@case(*LENGTHS)
def loop_over_each_length(x, lengths):
    means = []
    for rows, length in zip(x, lengths):
        total = x[0, 0] * 0
        for t in range(length):
            total = total * 0.5 + rows[t]
        means.append(total)
    return nd.stack(*means)


@case(*LENGTHS)
def skips_padding(x, lengths):
    sums = []
    for rows, length in zip(x, lengths):
        total = x[0, 0] * 0
        for t, row in enumerate(rows):
            if t >= length:
                break
            total = total + row * (t + 1)
        sums.append(total)
    return nd.stack(*sums)


@case(*LENGTHS)
def rows_below_each_length(x, lengths):
    sums = []
    for rows, length in zip(x, lengths):
        places = nd.arange(4, dtype="int64")
        sums.append(rows[where(places < length)].max(axis=0))
    return nd.stack(*sums)


@case(*LENGTHS)
def all_steps_of_a_ragged_batch(x, lengths):
    """Only the true rows, as one array: mean over them."""
    places = nd.arange(4, dtype="int64").reshape((1, 4))
    valid = nd.broadcast_lesser(places, lengths.expand_dims(axis=1)).reshape((-1,))
    flat = x.reshape((-1, 2))
    kept = nd.contrib.boolean_mask(flat, valid)
    return kept.mean(axis=0), kept


# Programs that do not run yet, and why.
UNKNOWN_SIZES_DO_NOT_BROADCAST = "arithmetic of an array whose size is known at run time does not broadcast"
FAILS = {
    "mask_in_a_for": UNKNOWN_SIZES_DO_NOT_BROADCAST,
    "branch_by_len": "a branch that is not taken raises the errors of its shapes",
}
FILES_FAIL = {
    **FAILS,
}


def cases(fails):
    return [
        pytest.param(name, marks=pytest.mark.xfail(reason=fails[name], strict=True)) if name in fails else name
        for name in CASES
    ]


# --------------------------------------------------------------------------------------------------------------- tests
def flat(value):
    return [one for item in value for one in flat(item)] if isinstance(value, (list, tuple)) else [value]


def values_of(outs):
    return [one.asnumpy() if hasattr(one, "asnumpy") else np.asarray(one) for one in flat(outs)]


def interface(numpy):
    stack = mx.util.np_shape(numpy)
    return stack, mx.util.np_array(numpy)


def arrays_of(values, numpy):
    return [(np_ if numpy else nd).array(value, dtype=value.dtype) for value in values]


def results(function, values, gradient, numpy):
    inputs = arrays_of(values, numpy)
    if not gradient:
        return values_of(function(*inputs))
    floating = [one for one in inputs if one.dtype == np.float64]
    for one in floating:
        one.attach_grad()
    with mx.autograd.record():
        outs = flat(function(*inputs))
        loss = sum((one * one).sum() for one in outs if getattr(one, "dtype", None) == np.float64)
        loss = loss + sum((one * 0).sum() for one in floating)
    loss.backward()
    return values_of(outs) + [one.grad.asnumpy() for one in floating]


def assert_equal(given, wanted):
    assert len(given) == len(wanted)
    for one, other in zip(given, wanted, strict=True):
        assert one.shape == other.shape or {one.shape, other.shape} == {(), (1,)}
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", cases(FAILS))
def test_values_and_gradients_equal_the_imperative_program(name):
    function, inputs, gradient, numpy = CASES[name]
    shape, array = interface(numpy)
    with shape, array:
        net = Function(function)
        net.hybridize(strict=True)
        for values in (*inputs, inputs[0]):
            assert_equal(results(net, values, gradient, numpy), results(function, values, gradient, numpy))


@pytest.mark.parametrize("name", cases(FILES_FAIL))
def test_files_run_for_other_sizes(name, tmp_path):
    function, inputs, _, numpy = CASES[name]
    shape, array = interface(numpy)
    with shape, array, warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        net = Function(function)
        net.hybridize(strict=True)
        net(*arrays_of(inputs[0], numpy))
        files = net.export(str(tmp_path / "net"))
        names = ["data"] if len(inputs[0]) == 1 else [f"data{i}" for i in range(len(inputs[0]))]
        loaded = gluon.SymbolBlock.imports(files[0], names, files[1])
        for values in inputs:
            given, wanted = loaded(*arrays_of(values, numpy)), function(*arrays_of(values, numpy))
            assert_equal(values_of(given), values_of(wanted))
