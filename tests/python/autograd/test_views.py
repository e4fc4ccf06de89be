"""Views share memory also while gradients are recorded: a write through one changes values and gradients of all."""

from __future__ import annotations

import threading
from collections.abc import Callable

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd
from hybridnet.errors import GradientError
from view_programs import COLUMNS, ROWS, Dual, Program

nd = mx.nd
X = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
FRONT_ENDS = {"nd": mx.nd, "np": mx.np}


@pytest.fixture(params=["nd", "np"])
def front(request: pytest.FixtureRequest):
    with mx.util.np_shape(request.param == "np"), mx.util.np_array(request.param == "np"):
        yield FRONT_ENDS[request.param]


def gradient(front, function: Callable, values=X) -> np.ndarray:
    x = front.array(values, dtype="float64")
    x.attach_grad()
    with autograd.record():
        loss = function(x)
    loss.backward()
    return x.grad.asnumpy()


def times_five_by_rows(x):
    y = x * 1
    v = y[0:2]
    v *= 5
    return (y * y).sum()


def times_five_by_row_numbers(x):
    y = x * 1
    for i in range(2):
        v = y[i]
        v *= 5
    return (y * y).sum()


def times_five_by_a_reshape(x):
    y = x * 1
    v = y.reshape((-1,))
    w = v[0:4]
    w *= 5
    return (y * y).sum()


def times_five_by_an_augmented_assignment(x):
    y = x * 1
    y[0:2] *= 5
    return (y * y).sum()


def read_through_a_view_of_the_written_base(x):
    y = x * 1
    v = y[0:2]
    last = y[2]
    y *= 5
    return (v * v).sum() + (last * last).sum() / 25


def read_through_another_view(x):
    y = x * 1
    one, other = y.reshape((6,)), y[0:2]
    other *= 5
    return (one * one).sum()


WRITTEN = [
    times_five_by_rows,
    times_five_by_row_numbers,
    times_five_by_a_reshape,
    times_five_by_an_augmented_assignment,
    read_through_a_view_of_the_written_base,
    read_through_another_view,
]


@pytest.mark.parametrize("function", WRITTEN)
def test_writes_through_views_pass_gradients_to_the_written_value(front, function):
    expected = 2 * np.array(X)
    expected[:2] *= 25
    np.testing.assert_allclose(gradient(front, function), expected)


@pytest.mark.parametrize("function", WRITTEN)
def test_recording_does_not_change_values(front, function):
    plain = front.array(X, dtype="float64")
    marked = front.array(X, dtype="float64")
    marked.attach_grad()
    with autograd.record():
        recorded = function(marked)
    np.testing.assert_array_equal(recorded.asnumpy(), function(plain).asnumpy())


@pytest.mark.parametrize("write", ["number", "array", "numpy", "detached", "paused", "fill"])
def test_values_overwritten_by_constants_have_no_gradient(front, write):
    def function(x):
        y = x * 1
        v = y[0:2]
        if write == "number":
            v[:] = 9
        elif write == "array":
            v[:] = front.ones((2, 2), dtype="float64") * 9
        elif write == "numpy":
            v[:] = np.full((2, 2), 9.0)
        elif write == "detached":
            y.detach()[0:2] = 9
        elif write == "paused":
            with autograd.pause():
                y[0:2] = 9
        else:
            v._full(9)
        return (y * y).sum() + (v * v).sum()

    np.testing.assert_allclose(gradient(front, function), [[0, 0], [0, 0], [10, 12]])


@pytest.mark.parametrize("where", [np.s_[:, ::2], np.s_[::2], np.s_[1:3, 1], np.s_[[0, 2]], np.s_[..., 0]])
@pytest.mark.parametrize("paused", [False, True])
def test_a_part_that_is_no_piece_of_memory_becomes_constant_alone(front, where, paused):
    def function(x):
        y = x * 1
        v = y.reshape((6,))
        with autograd.pause() if paused else autograd.record():
            y[where] = 9
        return (v * v).sum()

    expected = 2 * np.array(X)
    expected[where] = 0
    np.testing.assert_allclose(gradient(front, function), expected)


def test_arrays_that_need_gradients_are_assigned_to_parts(front):
    def function(x):
        y = front.zeros((4, 2), dtype="float64")
        v = y[1:3]
        y[0] = x[0] * 2
        v[:] = x[1:3] * 3
        y[3:4] = x[0:1]
        return (y * y).sum()

    expected = 2 * np.array(X) * np.array([[5.0], [9.0], [9.0]])
    np.testing.assert_allclose(gradient(front, function), expected)


def test_a_view_made_before_recording_sees_recorded_writes(front):
    y = front.zeros((3, 2), dtype="float64")
    v = y[1:3]

    def function(x):
        y[:] = x * 3
        return (v * v).sum()

    np.testing.assert_allclose(gradient(front, function), 18 * np.array(X) * [[0], [1], [1]])


def test_writes_to_a_view_made_before_recording_are_recorded(front):
    y = front.zeros((3, 2), dtype="float64")
    v = y[1:3]

    def function(x):
        v[:] = x[1:3] * 3
        return (y * y).sum()

    np.testing.assert_allclose(gradient(front, function), 18 * np.array(X) * [[0], [1], [1]])


def test_a_detached_array_stays_constant_and_shares_memory(front):
    def function(x):
        y = x * 1
        d = y.detach()
        y *= 3
        return (d * y).sum()

    np.testing.assert_allclose(gradient(front, function), 9 * np.array(X))


def test_rows_written_one_after_the_other_are_read_by_the_next(front):
    w = front.array([0.5, 2.0], dtype="float64")
    w.attach_grad()
    x = front.array(X, dtype="float64")
    with autograd.record():
        h = front.zeros((40, 2), dtype="float64")
        h[0] = x[0]
        for i in range(39):
            h[i + 1] = h[i] * w * 0.9
        loss = h.sum()
    loss.backward()
    n = np.arange(40)
    expected = (np.array([[1.0, 2.0]]) * n[:, None] * 0.9 ** n[:, None] * [[0.5, 2.0]] ** (n[:, None] - 1.0)).sum(0)
    np.testing.assert_allclose(w.grad.asnumpy(), expected)


def test_second_order_through_writes(front):
    x = front.array([1.0, 2.0, 3.0], dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = x * 1
        v = y[0:2]
        v *= x[0:2] ** 2 * x[1:3]
        (first,) = autograd.grad([(y * y).sum()], [x], create_graph=True)
        total = (first * first).sum()
    total.backward()

    def first_order(x):
        a, b, c = x
        # y = (a^3 b, b^3 c, c)
        return np.array([6 * a**5 * b**2, 2 * a**6 * b + 6 * b**5 * c**2, 2 * b**6 * c + 2 * c])

    at, step = np.array([1.0, 2.0, 3.0]), 1e-6
    np.testing.assert_allclose(first.asnumpy(), first_order(at))
    numeric = [
        ((first_order(at + step * e) ** 2).sum() - (first_order(at - step * e) ** 2).sum()) / (2 * step)
        for e in np.eye(3)
    ]
    np.testing.assert_allclose(x.grad.asnumpy(), numeric, rtol=1e-6)


def test_writes_between_two_recordings_make_constants(front):
    x = front.array(X, dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = x * 1
        v = y[0:1]
    v[:] = 7
    with autograd.record():
        loss = (y * y).sum()
    loss.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * np.array(X) * [[0], [1], [1]])


def test_a_head_that_was_written_through_a_view_before_backward(front):
    x = front.array(X, dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = x * 1
        v = y[0:1]
        v *= 4
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [[4, 4], [1, 1], [1, 1]])


def test_values_saved_in_other_parts_of_the_memory_are_still_there(front):
    def function(x):
        y = x * 1
        z = y[0:1] * y[0:1]
        y[1:3] *= 2
        return z.sum() + y.sum()

    np.testing.assert_allclose(gradient(front, function), [[3, 5], [2, 2], [2, 2]])


def test_a_saved_value_that_is_overwritten_through_a_view_names_both_lines(front):
    def function(x):
        y = x * 1
        z = y * y
        v = y[0:1]
        v *= 2
        y[1:2].copy()
        return z.sum()

    with pytest.raises(GradientError, match=r"recorded at .*test_views.py:\d+ and overwritten at .*test_views.py:\d+"):
        gradient(front, function)


def test_gradients_are_added(front):
    x = front.array(X, dtype="float64")
    x.attach_grad("add")
    for _ in range(2):
        with autograd.record():
            y = x * 1
            y[0:2] *= 5
            loss = y.sum()
        loss.backward(retain_graph=True)
    np.testing.assert_allclose(x.grad.asnumpy(), [[10, 10], [10, 10], [2, 2]])


def test_the_graph_may_be_used_twice(front):
    x = front.array(X, dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = x * 1
        y[0:2] *= x[0:2]
        loss = (y * y).sum()
    loss.backward(retain_graph=True)
    first = x.grad.asnumpy()
    loss.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), first)
    np.testing.assert_allclose(first, 4 * np.array(X) ** [[3], [3], [1]] * [[1], [1], [0.5]])


@pytest.mark.parametrize("hybridize", [False, True])
def test_blocks_are_called_on_views_and_their_results_written(hybridize):
    square = mx.gluon.nn.HybridLambda(lambda F, x: F.sin(x) * x)
    square.hybridize(hybridize)

    def function(x):
        y = x * 1
        y[0:1] = square(y[1:2])
        return (y * y).sum()

    at = np.array(X)
    value, slope = np.sin(at[1]) * at[1], np.cos(at[1]) * at[1] + np.sin(at[1])
    expected = 2 * at * [[0], [1], [1]]
    expected[1] += 2 * value * slope
    np.testing.assert_allclose(gradient(nd, function), expected)


def test_expand_dims_flatten_and_squeeze_in_place_are_views():
    def function(x):
        y = x * 1
        for v in (y.expand_dims(0, inplace=True), y.flatten(inplace=True), y.reshape((1, 6)).squeeze(inplace=True)):
            v *= 2
        return y.sum()

    np.testing.assert_allclose(gradient(nd, function), np.full((3, 2), 8.0))


def test_integers_keep_no_gradient():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = nd.zeros((2, 2), dtype="int32")
        y[0] = x.astype("int32")
        loss = (x * y[0].astype("float32")).sum()
    loss.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [1, 2])


def test_threads_record_views_of_one_array():
    shared = nd.array(np.arange(12.0).reshape(4, 3))
    found: list[np.ndarray | None] = [None] * 4

    def work(i: int) -> None:
        x = nd.array([1.0, 2.0, 3.0])
        x.attach_grad()
        for _ in range(50):
            with autograd.record():
                y = nd.zeros((2, 3))
                y[0] = x * shared[i]
                y[1] = y[0] * 2
                loss = y.sum()
            loss.backward()
        found[i] = x.grad.asnumpy()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, grad in enumerate(found):
        np.testing.assert_array_equal(grad, 3 * np.arange(12.0).reshape(4, 3)[i])


def test_symbols_are_made_of_views():
    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = (x * 2)[1:3].reshape((4,))
    graph = autograd.get_symbol(y)
    (name,) = graph.list_arguments()
    np.testing.assert_array_equal(graph.eval(**{name: x})[0].asnumpy(), y.asnumpy())


# --------------------------------------------------------------------------------------------------- random programs
def run_random_program(seed: int) -> bool:
    """Compares values and the derivative along one direction. False: an error that names both lines."""
    rng = np.random.default_rng(seed)
    values, direction = rng.uniform(-1, 1, (ROWS, COLUMNS)), rng.normal(size=(ROWS, COLUMNS))
    x = nd.array(values, dtype="float64")
    x.attach_grad()
    program = Program(rng, [x], [Dual(values.copy(), direction.copy(), of_leaf=True)], nd)
    with autograd.record(), np.errstate(all="ignore"):
        first = x * 1
        program.add("a0 * 1", first, Dual(values.copy(), direction.copy()))
        for _ in range(int(rng.integers(4, 20))):
            program.step()
        weights = [rng.normal(size=d.shape) for d in program.duals]
        terms = [(a * nd.array(w, dtype="float64")).sum() for a, w in zip(program.arrays, weights, strict=True)]
        loss = nd.add_n(*terms)
    text = f"seed {seed}\n" + "\n".join(program.lines)
    for i, (array, dual) in enumerate(zip(program.arrays, program.duals, strict=True)):
        np.testing.assert_allclose(array.asnumpy(), dual.value, rtol=1e-9, err_msg=f"a{i} of {text}")
    try:
        loss.backward()
    except GradientError as error:
        assert "overwritten at" in str(error), text
        return False
    parts = [w * d.tangents() for w, d in zip(weights, program.duals, strict=True)]
    scale = sum(np.abs(part).sum() for part in parts)
    expected = sum(part.sum() for part in parts)
    if np.isfinite(scale) and scale < 1e12:
        got = float((x.grad.asnumpy() * direction).sum())
        assert abs(got - expected) <= 1e-9 * max(scale, 1.0), f"{got} for {expected}: {text}"
    return True


@pytest.mark.parametrize("part", range(4))
def test_random_programs_agree_with_memory_of_numpy(part: int):
    differentiated = sum(run_random_program(1000 * part + i) for i in range(100))
    assert differentiated > 30


@pytest.mark.parametrize("form", ["row", "whole", "rows"])
@pytest.mark.parametrize("constant", [True, False])
def test_a_saved_value_that_was_written_through_a_view_stays_overwritten_when_its_arrays_die(form, constant):
    def program(w):
        y = nd.exp(w)  # the gradient of exp reads y
        view = {"row": lambda: y[0], "whole": lambda: y[:], "rows": lambda: y[0:1]}[form]()
        result = -y
        view[:] = 1 if constant else -view
        return result

    w = nd.array([1.0, 2.0])
    w.attach_grad()
    with autograd.record():
        result = program(w)
    with pytest.raises(GradientError, match="overwritten in place"):
        result.backward()


def test_rows_that_stem_from_the_row_before_have_gradients_when_the_array_died():
    def program(w):
        y = nd.ones((4, 2)) * w
        for t in range(3):
            y[t + 1] = y[t] * w
        return y[3].sum()

    w = nd.array([2.0, 3.0])
    w.attach_grad()
    with autograd.record():
        result = program(w)
    result.backward()
    np.testing.assert_allclose(w.grad.asnumpy(), [4 * 2.0**3, 4 * 3.0**3])


WRITES_BETWEEN = {
    "in place": lambda w: w.__iadd__(0.5),
    "assignment": lambda w: w.__setitem__(slice(None), w + 0.5),
    "part": lambda w: w[1].__iadd__(0.5),
    "view of a view": lambda w: w.reshape((1, 2, 2))[0].__setitem__(slice(None), 7),
    "out": lambda w: nd.sgd_update(w, nd.ones((2, 2)), lr=0.5, out=w),
    "copy": lambda w: nd.ones((2, 2)).copyto(w),
    "detached": lambda w: w.detach().__setitem__(slice(None), 7),
}


@pytest.mark.parametrize("write", WRITES_BETWEEN)
@pytest.mark.parametrize(
    "view", [lambda w: w[1:], lambda w: w[1], lambda w: w.reshape((1, 2, 2)).reshape((2, 2)), lambda w: w[0:2][1:][0:1]]
)
def test_views_of_a_leaf_have_gradients_after_each_update(write, view):
    w = nd.array([[1.0, 2.0], [3.0, 4.0]])
    w.attach_grad()
    for _ in range(3):
        with autograd.record():
            y = nd.square(view(w))
        y.backward()
        values, expected = w.asnumpy(), np.zeros((2, 2), "float32")
        expected[-y.size // 2 :] = 2 * values[-y.size // 2 :]
        np.testing.assert_array_equal(w.grad.asnumpy(), expected)
        WRITES_BETWEEN[write](w)
        assert not np.array_equal(w.asnumpy(), values) or write in ("copy", "detached", "view of a view")


@pytest.mark.parametrize("given", ["row", "all", "other view"])
def test_memory_that_is_given_out_keeps_its_gradient(given):
    w = nd.array([[2.0], [-3.0]])
    w.attach_grad()
    with autograd.record():
        t = w * w
        row, flat = t[-1], t.reshape((2,))
    {"row": row, "all": t, "other view": flat}[given].to_dlpack_for_write()
    flat.backward()
    np.testing.assert_array_equal(w.grad.asnumpy(), [[4.0], [-6.0]])


@pytest.mark.parametrize("part", [slice(0, 1), slice(1, 2)])
def test_saved_values_count_as_overwritten_once_their_memory_was_given_out(part):
    w = nd.array([1.0, 2.0])
    w.attach_grad()
    with autograd.record():
        y = nd.exp(w)  # the gradient of exp reads y
        view = y[part]
        results = [nd.sum(y[i : i + 1] * y[i : i + 1]) for i in range(2)]  # the gradient of each reads one element
    view.to_dlpack_for_write()
    with pytest.raises(GradientError, match="overwritten in place"):
        results[part.start].backward(retain_graph=True)
