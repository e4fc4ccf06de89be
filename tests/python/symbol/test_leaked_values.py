"""Symbols made inside a body of a loop or branch are undefined outside of it. Reading them there is an error that names
the value, the body and the line; no input of the same name is read instead."""

from __future__ import annotations

import linecache
import re

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import errors

SYM = mx.sym
foreach, while_loop, cond = SYM.contrib.foreach, SYM.contrib.while_loop, SYM.contrib.cond
X, S = SYM.var("x"), SYM.var("s")
PLUS = X + 1


def kept_in_foreach(kept):
    return foreach(lambda d, s: (kept.append(d * 2) or d + s, s), X, S)[0]  # made


def kept_parameter_of_foreach(kept):
    return foreach(lambda d, s: (kept.append(d) or d + s, s), X, S)[0]  # made


def kept_state_of_while_loop(kept):
    return while_loop(lambda v: v.sum() < 9, lambda v: (v, kept.append(v) or v + 1), [S], 5)[0]  # made


def kept_in_condition(kept):
    return while_loop(lambda v: (kept.append(v * 3) or v.sum()) < 9, lambda v: (v, v + 1), [S], 5)[0]  # made


def kept_in_branch(kept):
    return cond(S.sum() > 0, lambda: kept.append(X * 2) or X, lambda: X - 1)  # made


def kept_in_inner_loop(kept):
    def outer(d, s):
        inner, _ = foreach(lambda e, t: (kept.append(e + t) or e, t), d, s)  # made
        return inner, s

    return foreach(outer, X, S)[0]


PROGRAMS = [
    (kept_in_foreach, "the body of foreach"),
    (kept_parameter_of_foreach, "the body of foreach"),
    (kept_state_of_while_loop, "the body of while_loop"),
    (kept_in_condition, "the condition of while_loop"),
    (kept_in_branch, "the then branch of cond"),
    (kept_in_inner_loop, "the body of foreach"),
]
USES = {
    "an operator": lambda out, kept: out + SYM.sum(kept),  # here
    "arithmetic": lambda out, kept: kept * 2,  # here
    "a group": lambda out, kept: SYM.Group([out, kept]),  # here
    "its arguments": lambda out, kept: kept.list_arguments(),  # here
    "its shape": lambda out, kept: kept.infer_shape(x=(3, 2)),  # here
    "a file": lambda out, kept: kept.tojson(),  # here
    "a bound graph": lambda out, kept: kept.bind(mx.cpu(), {"x": mx.nd.ones((3, 2))}),  # here
    "a function": lambda out, kept: mx.function([X], [kept]),  # here
    "a composition": lambda out, kept: PLUS(x=kept),  # here
    "a body": lambda out, kept: foreach(lambda d, s: (d + SYM.sum(kept), s), X, S),  # here
    "a branch": lambda out, kept: cond(S.sum() > 0, lambda: X, lambda: X - SYM.sum(kept)),  # here
    "the start of a loop": lambda out, kept: foreach(lambda d, s: (d, s), X, kept),  # here
}


def check_message(caught, body):
    text = str(caught.value)
    assert f"a value made inside {body} (" in text and "is read outside of it" in text
    name, path, line = re.search(r"the value '(\S+)' is made at (\S+):(\d+)", text).groups()
    assert name
    assert "# made" in linecache.getline(path, int(line))
    path, line = re.search(r"At: (\S+):(\d+)", text).groups()
    assert "# here" in linecache.getline(path, int(line))
    assert "Fix: return it as an output or a state" in text


@pytest.mark.parametrize(("program", "body"), PROGRAMS, ids=lambda p: getattr(p, "__name__", None))
@pytest.mark.parametrize("use", USES)
def test_a_value_of_a_body_that_is_used_outside_is_refused_with_its_name_body_and_line(program, body, use):
    kept = []
    out = program(kept)
    with pytest.raises(errors.TraceError) as caught:
        USES[use](out, kept[-1])
    check_message(caught, body)


def test_a_value_of_one_branch_is_no_value_of_the_other():
    kept = []
    with pytest.raises(errors.TraceError) as caught:
        cond(S.sum() > 0, lambda: kept.append(X * 2) or X,  # made
             lambda: kept[-1] + 1)  # here  # fmt: skip
    check_message(caught, "the then branch of cond")


def test_a_value_of_the_condition_is_no_value_of_the_body():
    kept = []
    with pytest.raises(errors.TraceError) as caught:
        while_loop(lambda v: (kept.append(v * 3) or v.sum()) < 9,  # made
                   lambda v: (v, v + kept[-1]), [S], 5)  # here  # fmt: skip
    check_message(caught, "the condition of while_loop")


def test_a_value_of_an_inner_body_is_no_value_of_the_outer_one():
    kept = []

    def outer(d, s):
        inner, _ = foreach(lambda e, t: (kept.append(e + t) or e, t), d, s)  # made
        return inner + kept[-1], s  # here

    with pytest.raises(errors.TraceError) as caught:
        foreach(outer, X, S)
    check_message(caught, "the body of foreach")


def test_no_input_of_the_same_name_is_read_in_its_place():
    kept = []
    foreach(lambda d, s: (kept.append(d) or d + s, s), X, S)
    with pytest.raises(errors.TraceError):
        kept[0].eval(**{kept[0].name: mx.nd.ones((2,))})


def test_values_of_the_surrounding_graph_and_of_an_outer_body_may_be_read():
    add, outside, kept = SYM.broadcast_add, X * 3, []

    def outer(d, s):
        doubled = d * 2
        kept.append(X.sum())  # reads no value of the loop, so it is computed in front of it
        inner, _ = foreach(lambda e, t: (add(add(e, doubled), add(outside.sum(), kept[-1])), t), d, s)
        return add(inner, doubled), s

    rows, _ = foreach(outer, X, S)
    x = np.arange(6, dtype="float32").reshape(3, 2)
    got = (rows.sum() + kept[-1] + outside.sum()).eval(x=mx.nd.array(x), s=mx.nd.ones((1,)))[0].asscalar()
    total = x.sum()
    want = sum((row[:, None] + 2 * row + 4 * total + 2 * row).sum() for row in x) + 4 * total
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_variable_that_is_first_named_in_a_body_is_an_input_everywhere():
    kept = []

    def body(d, s):
        kept.append(SYM.var("weight"))
        return d * kept[-1], s

    rows, _ = foreach(body, X, S)
    out = rows.sum() + kept[-1].sum()
    assert set(out.list_arguments()) == {"x", "s", "weight"}
    got = out.eval(x=mx.nd.ones((3, 2)), s=mx.nd.ones((1,)), weight=mx.nd.array([2.0, 3.0]))[0].asscalar()
    assert got == 3 * 5 + 5
