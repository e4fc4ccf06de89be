"""Bodies that write to arrays in place give the same results in graphs as on arrays, or are refused."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from hybridnet import autograd, gluon, nd
from hybridnet.contrib import cond, foreach, while_loop
from hybridnet.errors import TraceError

from . import c_model


class Block(gluon.HybridBlock):
    """Returns function(F, x, s)."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def hybrid_forward(self, F, x, s):
        return self.function(F, x, s)


def add_to_state(F, x, s):
    def body(d, h):
        h += d
        return h * 1, h

    return foreach(body, x, s)


def write_to_slices(F, x, s):
    def body(d, h):
        h[0:1] = d[1]
        d *= 2
        v = h[1:3]
        v += d[0:2]
        return d + h, h

    return foreach(body, x, s)


def views_of_states(F, x, s):
    def body(d, h):
        flat = h.reshape((-1, 1))
        flat[:] = flat * 0.5
        h[-1] = 3
        return flat.reshape((-1,)) + 0, h * d

    return foreach(body, x, s)


def output_and_state_are_one(F, x, s):
    def body(d, h):
        h *= d
        return h, h

    return foreach(body, x, s)


def in_while_loops(F, x, s):
    def body(i, h):
        h += x[0]
        i += 1
        return h * 2, (i, h)

    outs, (i, h) = while_loop(lambda i, h: i < 3, body, (F.zeros((1,)), s * 1), max_iterations=4)
    return outs, h, i


def values_made_in_branches(F, x, s):
    def then():
        t = x * 1
        t[0] = 9
        t += 1
        return t

    def otherwise():
        t = x * 1
        t[:, 1] = -9
        return t

    return cond(F.sum(x) > 0, then, otherwise), cond(F.sum(x) < 0, then, otherwise)


def written_before_and_after(F, x, s):
    t = s * 1
    v = t[0:1]
    t *= 3
    outs, h = foreach(lambda d, h: (d + t + v, h + t), x, t)
    t += 1
    v *= 2
    return outs + t, h


def nested(F, x, s):
    def outer(d, h):
        h += 1

        def inner(e, g):
            g += e
            return g * d, g

        outs, g = foreach(inner, d, h)
        h[:] = g
        return outs, h

    return foreach(outer, x, s)


def kept_in_the_graph(F, x, s):
    table = F.zeros((4, 3), dtype="float64")
    rows, _ = foreach(lambda d, h: (d * 2, h), x, s)
    table[1:3] = rows[0:2]
    table[0] = s
    return table * 1


FORMS = [
    add_to_state, write_to_slices, views_of_states, output_and_state_are_one, in_while_loops, values_made_in_branches,
    written_before_and_after, nested, kept_in_the_graph,
]  # fmt: skip


def flat(out):
    if isinstance(out, (list, tuple)):
        return [a for part in out for a in flat(part)]
    return [out]


def values(out):
    return [a.asnumpy() for a in flat(out)]


def numbers(rng):
    return rng.normal(size=(4, 3)), rng.normal(size=(3,))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("passes", ["", "fast_run,-loop"])
def test_bodies_that_write_agree_with_arrays_in_every_mode(form, passes, tmp_path, rng):
    x, s = (nd.array(a, dtype="float64") for a in numbers(rng))
    want = values(form(nd, x.copy(), s.copy()))
    for static_alloc in (False, True):
        net = Block(form)
        net.hybridize(static_alloc=static_alloc, passes=passes)
        for got, expected in zip(values(net(x, s)), want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12)
    files = net.export(str(tmp_path / "m"))
    text = pathlib.Path(files[0]).read_text(encoding="utf-8")
    used = [name for name in ("data0", "data1") if f'"{name}"' in text]
    given = dict(zip(("data0", "data1"), (x, s), strict=True))
    imported = gluon.SymbolBlock.imports(files[0], used, files[1])
    for got, expected in zip(values(imported(*[given[name] for name in used])), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    for got, expected in zip(c_model.run(*files, {name: given[name].asnumpy() for name in used}), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_gradients_of_bodies_that_write_agree_with_differences(form, rng):
    start = numbers(rng)
    shapes = [a.shape for a in values(form(nd, *(nd.array(a, dtype="float64") for a in start)))]
    weights = [rng.normal(size=shape) for shape in shapes]

    def value(*arrays):
        outs = values(form(nd, *(nd.array(a, dtype="float64") for a in arrays)))
        return sum((w * a).sum() for w, a in zip(weights, outs, strict=True))

    net = Block(form)
    net.hybridize()
    inputs = [nd.array(a, dtype="float64") for a in start]
    for array in inputs:
        array.attach_grad()
    with autograd.record():
        outs = flat(net(*inputs))
        loss = sum(
            (nd.array(w, dtype="float64") * a.astype("float64")).sum() for w, a in zip(weights, outs, strict=True)
        )
    loss.backward()
    for k, array in enumerate(inputs):
        for i in np.ndindex(*start[k].shape):
            there, back = [a.copy() for a in start], [a.copy() for a in start]
            there[k][i] += 1e-6
            back[k][i] -= 1e-6
            expected = (value(*there) - value(*back)) / 2e-6
            np.testing.assert_allclose(array.grad.asnumpy()[i], expected, rtol=1e-5, atol=1e-7)


# -------------------------------------------------------------------------------------------------------- refused
def captured(F, x, s):
    total = s * 1

    def body(d, h):
        total[:] = total + d
        return d * 1, h

    return foreach(body, x, s)[0] + total


def captured_in_place(F, x, s):
    total = s * 1

    def body(d, h):
        nonlocal total
        total += d
        return d * 1, h

    return foreach(body, x, s)[0] + total


def view_of_captured(F, x, s):
    total = s * 1
    part = total[0:1]

    def body(d, h):
        part[:] = 1
        return d * 1, h

    return foreach(body, x, s)[0] + total


def captured_in_branch(F, x, s):
    t = x * 1

    def then():
        t[:] = 0
        return t + 1

    return cond(F.sum(s) > 0, then, lambda: t * 2) + t


def argument_of_branch(F, x, s):
    def then(t):
        t += 1
        return t * 1

    return cond(F.sum(s) > 0, then, lambda t: t * 2, (x * 1,))


def captured_in_while(F, x, s):
    t = s * 1

    def body(i):
        F.square(t, out=t)
        return t * 1, (i + 1,)

    return while_loop(lambda i: i < 2, body, (F.zeros((1,)),), max_iterations=2)[0]


@pytest.mark.parametrize(
    "form",
    [captured, captured_in_place, view_of_captured, captured_in_branch, argument_of_branch, captured_in_while],
    ids=lambda form: form.__name__,
)
def test_a_write_to_an_array_from_outside_of_a_body_names_both_lines(form):
    net = Block(form)
    net.hybridize()
    line = r"test_writes_in_bodies.py:\d+"
    with pytest.raises(TraceError, match=rf"(?s){line}\).*is made at .*{line}.*At: .*:\d+"):
        net(nd.ones((4, 3)), nd.ones((3,)))
