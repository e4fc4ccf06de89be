# ruff: noqa: E501
"""Wrong uses of loops and branches are errors that name the construct, the line, the reason and a fix.

The line that an error names must be the line marked with "# here".
"""

from __future__ import annotations

import linecache
import re

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors
from hybridnet.contrib import cond, foreach, while_loop

from .blocks import Block, flat, operators

nd = mx.nd


def message(function, hybridized: bool, kind: type[Exception], autograph: bool = True) -> str:
    """Returns the text of the error that the function raises on an array of shape (4, 3); its line must be marked."""
    block = Block(function)
    block.hybridize(hybridized, strict=True, autograph=autograph)
    with pytest.raises(kind) as caught:
        block(nd.array(np.arange(1, 13).reshape(4, 3)))
    text = str(caught.value)
    path, line = re.search(r"\n  At: (.*):(\d+)", text).groups()
    assert "# here" in linecache.getline(path, int(line)), text
    assert re.search(r"\n  Fix: \S", text), text
    return text


BOTH = {
    "states in a list": (
        lambda x: foreach(lambda d, s: (d, [s, s]), x, x[0]),  # here
        errors.TypeError, "foreach: states has another structure than the initial ones: expected an array, got a list of 2",
        "return states built as the initial ones",
    ),
    "states with other keys": (
        lambda x: foreach(lambda d, s: (d, {"b": s["a"]}), x, {"a": x[0]}),  # here
        errors.TypeError, "foreach: states has another structure than the initial ones: expected a dict with the keys ['a'], got a dict with the keys ['b']",
        "same lists, keys and lengths",
    ),
    "states with a shape that changes": (
        lambda x: foreach(lambda d, s: (d, s.sum()), x, x[0]),  # here
        errors.ShapeError, "foreach: states changes its shape in the loop: expected float32(3,), got float32(1,)",
        "reshape the value that the function returns",
    ),
    "states with a dtype that changes": (
        lambda x: foreach(lambda d, s: (d, [s[0], s[1].astype("int32")]), x, [x[0], x[1]]),  # here
        errors.DTypeError, "foreach: states[1] changes its dtype in the loop: expected float32(3,), got int32(3,)",
        "return states[1].astype('float32'), or start from int32",
    ),
    "no pair": (
        lambda x: foreach(lambda d, s: d, x, x[0]),  # here
        errors.TypeError, "foreach: the function must return a pair (outputs, states)", "return outs, states",
    ),
    "data of different lengths": (
        lambda x: foreach(lambda d, s: (d[0], s), [x, x[:2]], x[0]),  # here
        errors.ShapeError, "foreach: data[1] has another length than data[0]: expected 4, got float32(2, 3)",
        "cut the longer ones",
    ),
    "no number of iterations": (
        lambda x: foreach(lambda d, s: (s, s), [], x),  # here
        errors.ValueError, "foreach: the number of iterations is not known", "pass length=",
    ),
    "too few loop variables": (
        lambda x: while_loop(lambda a, b: a.sum() > 0, lambda a, b: (a, [a]), [x, x], 3),  # here
        errors.TypeError, "while_loop: loop_vars has another structure than the initial ones: expected a list of 2, got a list of 1",
        "return loop_vars built as the initial ones",
    ),
    "a loop variable that grows": (
        lambda x: while_loop(lambda a: a.sum() > 0, lambda a: (a, operators(a).concat(a, a, dim=0)), [x], 3),  # here
        errors.ShapeError, "while_loop: loop_vars[0] changes its shape in the loop: expected float32(4, 3), got float32(8, 3)",
        "allow it with shape_invariants",
    ),
    "a condition of two elements": (
        lambda x: while_loop(lambda a: a[0, :2] > 0, lambda a: (a, a), [x], 3),  # here
        errors.ShapeError, "while_loop: the condition must have one element, got float32(2,)", ".max() (any) or .min() (all)",
    ),
    "no limit": (
        lambda x: while_loop(lambda a: a.sum() > 0, lambda a: (a, a), [x]),  # here
        errors.ValueError, "while_loop: max_iterations should be specified", "give max_iterations, or exact=True, or has_outputs=False",
    ),
    "no loop variables": (
        lambda x: while_loop(lambda: x.sum() > 0, lambda: ([], []), [], 3),  # here
        errors.ValueError, "while_loop: loop_vars must hold at least one array", "carry a counter",
    ),
    "a predicate of two elements": (
        lambda x: cond(x[0, :2] > 0, lambda: x, lambda: x),  # here
        errors.ShapeError, "cond: the condition must have one element, got float32(2,)", ".max() (any) or .min() (all)",
    ),
}  # fmt: skip

IN_GRAPHS = {
    "branches built differently": (
        lambda x: cond(x.sum() > 0, lambda: x, lambda: [x, x]),  # here
        errors.TypeError, "cond: outputs has another structure than those of then_func", "same lists, keys and lengths",
    ),
    "branches with other keys": (
        lambda x: cond(x.sum() > 0, lambda: {"a": x}, lambda: {"b": x}),  # here
        errors.TypeError, "expected a dict with the keys ['a'], got a dict with the keys ['b']", "same lists, keys and lengths",
    ),
    "branches of different ranks": (
        lambda x: cond(x.sum() > 0, lambda: x, lambda: x[0]),  # here
        errors.ShapeError, "cond: outputs differs between the branches: expected float32(4, 3) from then_func", "cast or reshape in one of the branches",
    ),
    "branches of different dtypes": (
        lambda x: cond(x.sum() > 0, lambda: x, lambda: x.astype("int32")),  # here
        errors.DTypeError, "cond: outputs differs between the branches", "cast or reshape in one of the branches",
    ),
}  # fmt: skip


@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize("name", BOTH)
def test_the_same_on_arrays_and_in_graphs(name, hybridized):
    function, kind, start, fix = BOTH[name]
    text = message(function, hybridized, kind)
    assert start in text
    assert fix in text.split("\n  Fix: ")[1]


@pytest.mark.parametrize("name", IN_GRAPHS)
def test_errors_found_in_graphs_only(name):
    function, kind, start, fix = IN_GRAPHS[name]
    text = message(function, True, kind)
    assert start in text
    assert fix in text.split("\n  Fix: ")[1]


def test_outputs_whose_shape_changes_between_iterations_on_arrays():
    def body(i, d, s):  # here
        return d[: int(i.asscalar()) + 1], s

    text = message(lambda x: foreach(body, x, [], with_index=True), False, errors.ShapeError)
    assert "foreach: outputs differs between iterations: expected float32(1,), got float32(2,)" in text
    assert "Because: the outputs of all iterations are stacked." in text

    def step(i, a):  # here
        return a[: 1 + int(i.asscalar())], [i + 1, a]

    text = message(lambda x: while_loop(lambda i, a: i < 3, step, [0, x], 5), False, errors.ShapeError)
    assert "while_loop: outputs differs between iterations: expected float32(1, 3), got float32(2, 3)" in text


def test_outputs_whose_structure_changes_between_iterations_on_arrays():
    def body(i, d, s):  # here
        return (d if i.asscalar() < 2 else [d, d]), s

    text = message(lambda x: foreach(body, x, [], with_index=True), False, errors.TypeError)
    assert "foreach: outputs has another structure than those of the first iteration" in text


# ------------------------------------------------------------------------------------------------------- leaked values
def leaks_from_foreach(x):
    kept = []
    foreach(lambda d, s: (kept.append(d * 2) or d, s), x, x[0])  # made
    return kept[-1] + 1  # here


def leaks_from_while_loop(x):
    kept = {}

    def body(a):
        kept["last"] = a * 2  # made
        return a, a * 0.5

    while_loop(lambda a: a.sum() > 1, body, x, 3)
    return x + kept["last"]  # here


def leaks_from_a_condition(x):
    kept = []

    def test(a):
        kept.append(a * 2)  # made
        return a.sum() > 1

    while_loop(test, lambda a: a * 0.5, x, 3, has_outputs=False)
    return x + kept[-1]  # here


def leaks_from_a_branch(x):
    kept = []
    cond(x.sum() > 0, lambda: kept.append(x * 2) or x, lambda: x)  # made
    return kept[-1] + 1  # here


def leaks_into_another_body(x):
    kept = []
    foreach(lambda d, s: (kept.append(d * 2) or d, s), x, x[0])  # made
    return foreach(lambda d, s: (kept[-1] + d, s), x, x[0])[0]  # here


def leaks_from_an_inner_loop(x):
    kept = []

    def body(d, s):
        foreach(lambda e, t: (kept.append(e * 2) or e, t), d, d[:1])  # made
        return d + kept[-1], s  # here

    return foreach(body, x, x[0])[0]


LEAKS = {
    leaks_from_foreach: "foreach", leaks_from_while_loop: "while_loop", leaks_from_a_condition: "while_loop",
    leaks_from_a_branch: "cond", leaks_into_another_body: "foreach", leaks_from_an_inner_loop: "foreach",
}  # fmt: skip


@pytest.mark.parametrize("function", LEAKS, ids=lambda f: f.__name__)
def test_a_value_that_leaves_its_body_is_named_with_both_lines(function):
    text = message(function, True, errors.TraceError)
    assert re.match(
        rf"operator '{LEAKS[function]}' .*: a value made inside the .* of {LEAKS[function]} .*is read outside", text
    )
    path, line = re.search(r"is made at (\S+):(\d+), and exists only while that runs", text).groups()
    assert "# made" in linecache.getline(path, int(line))
    assert "Fix: return it as an output or a state" in text


def test_a_leaked_value_that_is_returned():
    kept = []
    block = Block(lambda x: (foreach(lambda d, s: (kept.append(d * 2) or d, s), x, x[0]), kept[-1])[1])
    block.hybridize(strict=True)
    with pytest.raises(errors.TraceError, match=r"the body of foreach .* is read outside of it"):
        block(nd.ones((4, 3)))


def test_on_arrays_a_value_may_leave():
    for function in LEAKS:
        assert Block(function)(nd.ones((4, 3))).shape == (4, 3) or function is leaks_from_foreach


# ------------------------------------------------------------------------------------------------------ values read early
READS = {
    "asnumpy()": lambda v: v.asnumpy(),  # here
    "asscalar()": lambda v: v.asscalar(),  # here
    "tolist()": lambda v: v.tolist(),  # here
    "float()": lambda v: float(v),  # here
    "int()": lambda v: int(v),  # here
    "The truth value": lambda v: 1 if v > 0 else 2,  # here
    "Using the value as an index": lambda v: [0, 1][v],  # here
    "Iterating": lambda v: list(v),  # here
    "Conversion to a NumPy array": lambda v: np.asarray(v),  # here
    "'in' on the elements": lambda v: 1 in v,  # here
    "Formatting as '.3f'": lambda v: f"{v:.3f}",  # here
    "wait_to_read()": lambda v: v.wait_to_read(),  # here
}

PLACES = {
    "the block": lambda read, x: (read(x.sum()), x)[1],
    "the body of foreach": lambda read, x: foreach(lambda d, s: (read(d.sum()), (d, s))[1], x, x[0])[0],
    "the body of while_loop": lambda read, x: while_loop(
        lambda a: a.sum() > 1, lambda a: (read(a.sum()), (a, a))[1], x, 3
    )[0],
    "the condition of while_loop": lambda read, x: while_loop(
        lambda a: (read(a.sum()), a.sum() > 1)[1], lambda a: (a, a), x, 3
    )[0],
    "the then branch of cond": lambda read, x: cond(x.sum() > 0, lambda: (read(x.sum()), x)[1], lambda: x),
    "the else branch of cond": lambda read, x: cond(x.sum() > 0, lambda: x, lambda: (read(x.sum()), x)[1]),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("what", READS)
def test_reading_a_traced_value(what, place):
    text = message(lambda x: PLACES[place](READS[what], x), True, errors.TraceError, autograph=False)
    assert text.startswith(f"{what} of Symbol ")
    where = re.escape(place) + (r" \(\S*test_misuse\.py:\d+\)" if place != "the block" else "")
    assert re.search(rf"Because: {where} is traced once and run many times", text), text


# With the source converted, these read nothing: they become part of the graph.
USES = {
    "asscalar()": lambda v: v.asscalar() * 2,
    "float()": lambda v: float(v) + 1,
    "The truth value": lambda v: 2 if v > 0 else 3,
    "Iterating": lambda v: sum(list(v)) * 2 + len(list(v)),
    "'in' on the elements": lambda v: 2 if 6 in v else 3,
}
PLACES_OF_USES = {
    "the block": lambda use, x: x * use(x.sum()),
    "the body of foreach": lambda use, x: foreach(lambda d, s: (d * use(d.sum()), s + use(s.sum())), x, x[0]),
    "the body of while_loop": lambda use, x: while_loop(
        lambda i, a: i < 3, lambda i, a: (a * use(a.sum()), [i + 1, a * -0.5]), [x[0, :1] * 0, x], 3
    )[1],
    "the condition of while_loop": lambda use, x: while_loop(
        lambda i, a: i < use(a.sum()), lambda i, a: [i + 1, a * -0.5], [x[0, :1] * 0, x], 5, has_outputs=False
    ),
    "the then branch of cond": lambda use, x: cond(x[0, :1] > 0, lambda: x * use(x.sum()), lambda: x),
    "the else branch of cond": lambda use, x: cond(x[0, :1] > 0, lambda: x, lambda: x * use(x.sum())),
}


@pytest.mark.parametrize("place", PLACES_OF_USES)
@pytest.mark.parametrize("what", USES)
def test_by_default_some_reads_become_part_of_the_graph(what, place):
    def function(x):
        return PLACES_OF_USES[place](USES[what], x)

    block = Block(function)
    block.hybridize(strict=True)
    for values in ([1, 2, 3], [-1, -2, -3], [4, 2, -6], [-4, 2, 3]):
        x = nd.array([values, [0.5, 0.25, 1]])
        for found, wanted in zip(flat(block(x)), flat(function(x)), strict=True):
            np.testing.assert_array_equal(found.asnumpy(), wanted.asnumpy())
    assert block._cached_graph != ()


@pytest.mark.parametrize("what", [what for what in READS if what not in USES])
def test_by_default_other_reads_are_errors_with_a_code_and_the_line(what):
    text = message(lambda x: PLACES["the body of foreach"](READS[what], x), True, errors.TraceError)
    start = "[HN108] int() of a value " if what == "int()" else f"[HN100] {what} of Symbol "
    assert text.startswith(start), text
    assert re.search(rf'\n +\d+ \| "{re.escape(what)}": lambda v: .*# here\n +\| +\^\n  Because: ', text), text


def test_reading_is_fine_on_arrays():
    x = nd.array(np.arange(1, 13).reshape(4, 3))
    for what, read in READS.items():
        if what not in ("Using the value as an index", "Formatting as '.3f'"):
            for place in PLACES.values():
                place(read, x)
