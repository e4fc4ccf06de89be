"""In-place arithmetic and out= while recording: gradients use the values read; writes to leaves are errors."""

from __future__ import annotations

import operator
from collections.abc import Callable

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd
from hybridnet.errors import GradientError

nd = mx.nd
X, W = [1.5, 2.0, 3.0], [4.0, 0.5, 1.25]
FRONT_ENDS = {"nd": mx.nd, "np": mx.np}


@pytest.fixture(params=["nd", "np"])
def front(request: pytest.FixtureRequest):
    with mx.util.np_shape(request.param == "np"), mx.util.np_array(request.param == "np"):
        yield FRONT_ENDS[request.param]


FORMS = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv, "%=": operator.imod,
    "**=": operator.ipow, "//=": operator.ifloordiv,
}  # fmt: skip
PLAIN = {
    "+=": operator.add, "-=": operator.sub, "*=": operator.mul, "/=": operator.truediv, "%=": operator.mod,
    "**=": operator.pow, "//=": operator.floordiv,
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("other", ["array", "itself", "number", "row"])
def test_arithmetic_in_place_has_the_gradient_of_the_same_out_of_place(front, form, other):
    def run(apply) -> list[np.ndarray]:
        x, w = front.array([X, X], dtype="float64"), front.array([W, W], dtype="float64")
        x.attach_grad()
        w.attach_grad()
        with autograd.record():
            y = x * 1
            right = {"array": w, "itself": y, "number": 2, "row": w[0:1]}[other]
            y = apply(y, right)
            loss = (y * y * w).sum()
        loss.backward()
        return [y.asnumpy(), x.grad.asnumpy(), w.grad.asnumpy()]

    for got, want in zip(run(FORMS[form]), run(PLAIN[form]), strict=True):
        np.testing.assert_allclose(got, want)


INTO = {
    "square": lambda F, y, w, **k: F.square(y, **k),
    "log": lambda F, y, w, **k: F.log(y, **k),
    "maximum": lambda F, y, w, **k: F.broadcast_maximum(y, w, **k),
    "maximum, right": lambda F, y, w, **k: F.broadcast_maximum(w, y, **k),
    "hypot": lambda F, y, w, **k: F.broadcast_hypot(y, w, **k),
    "product with itself": lambda F, y, w, **k: F.elemwise_mul(y, y, **k),
    "exp": lambda F, y, w, **k: F.exp(y, **k),
    "softmax": lambda F, y, w, **k: F.softmax(y, **k),
    "LayerNorm": lambda F, y, w, **k: F.LayerNorm(y, w[0], w[1], **k),
    "FullyConnected": lambda F, y, w, **k: F.FullyConnected(y, w, no_bias=True, num_hidden=3, **k),
    "dot": lambda F, y, w, **k: F.dot(y, w, **k),
    "cumsum": lambda F, y, w, **k: F.cumsum(y, axis=0, **k),
    "where": lambda F, y, w, **k: F.where(w > 1, y, w, **k),
    "clip": lambda F, y, w, **k: F.clip(y, 1.6, 2.5, **k),
    "smooth_l1": lambda F, y, w, **k: F.smooth_l1(y, scalar=1.0, **k),
    "erfinv": lambda F, y, w, **k: F.erfinv(y / 10, **k),
    "linalg_gemm2": lambda F, y, w, **k: F.linalg_gemm2(y, w, **k),
    "khatri_rao": lambda F, y, w, **k: F.broadcast_power(y, w, **k),
}


@pytest.mark.parametrize("name", INTO)
def test_results_over_their_own_input_have_the_gradient_of_the_value_read(name):
    def run(over: bool) -> list[np.ndarray]:
        x, w = nd.array([X, X[::-1], W], dtype="float64"), nd.array([W, X, W[::-1]], dtype="float64")
        x.attach_grad()
        w.attach_grad()
        with autograd.record():
            y = x * 1
            z = INTO[name](nd, y, w, **({"out": y} if over else {}))
            loss = ((y if over else z) * w).sum()
        loss.backward()
        return [z.asnumpy(), x.grad.asnumpy(), w.grad.asnumpy()]

    for got, want in zip(run(True), run(False), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


def test_a_part_of_the_memory_of_the_input():
    def run(over: bool) -> np.ndarray:
        x = nd.array([1.0, 2.0, 3.0, 4.0], dtype="float64")
        x.attach_grad()
        with autograd.record():
            y = x * 1
            if over:
                nd.square(y[0:3], out=y[1:4])
                z = y
            else:
                z = nd.concat(y[0:1], nd.square(y[0:3]), dim=0)
            loss = (z * z).sum()
        loss.backward()
        return x.grad.asnumpy()

    np.testing.assert_allclose(run(True), run(False))


def test_second_order_of_a_product_in_place():
    x = nd.array(X, dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = x * 1
        y *= x
        y **= 2
        (first,) = autograd.grad([y.sum()], [x], create_graph=True)
        total = first.sum()
    total.backward()
    np.testing.assert_allclose(first.asnumpy(), 4 * np.array(X) ** 3)
    np.testing.assert_allclose(x.grad.asnumpy(), 12 * np.array(X) ** 2)


@pytest.mark.parametrize("kind", ["hybridized", "Function", "dynamic"])
def test_steps_of_every_kind_over_their_input(kind):
    class Cube(autograd.Function):
        def forward(self, x):
            self.save_for_backward(x)
            return x * x * x

        def backward(self, dy):
            (x,) = self.saved_tensors
            return 3 * x * x * dy

    cube = mx.gluon.nn.HybridLambda(lambda F, x: x * x * x)
    cube.hybridize()

    def apply(y):
        if kind == "hybridized":
            cube(y * 1).copyto(y)
        elif kind == "dynamic":
            z = y * 1
            nd.contrib.boolean_mask(z * z * z, y > 0, out=y)
        else:
            y[:] = Cube()(y * 1)

    x = nd.array(X, dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = x * 1
        apply(y)
        loss = y.sum()
    loss.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 3 * np.array(X) ** 2)


def test_a_compiled_call_with_out_over_its_input():
    data = mx.sym.var("data")
    call = nd.CachedOp(data * data * data)
    x = nd.array(X, dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = x * 1
        call(y, out=y)
        loss = y.sum()
    loss.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 3 * np.array(X) ** 2)


def test_sparse_arrays_over_themselves():
    x = nd.array([[0.0, 2.0], [0.0, 0.0], [3.0, 4.0]])
    x.attach_grad()
    with autograd.record():
        y = x.tostype("row_sparse")
        nd.square(y, out=y)
        loss = y.sum()
    loss.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [[0, 4], [0, 0], [6, 8]])


def test_saved_tensors_that_are_overwritten_name_the_line():
    class Square(autograd.Function):
        def forward(self, x):
            self.save_for_backward(x)
            return x * x

        def backward(self, dy):
            return 2 * self.saved_tensors[0] * dy

    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = x * 1
        z = Square()(y)
        y *= 3
    with pytest.raises(GradientError, match=r"saved_tensors\[0\] was overwritten(.|\n)*test_in_place.py:\d+"):
        z.backward()


def test_a_function_that_writes_into_its_argument_is_refused():
    class Doubles(autograd.Function):
        def forward(self, x):
            x *= 2
            return x

        def backward(self, dy):
            return 2 * dy

    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = x * 1
        with pytest.raises(GradientError, match=r"writes in place into its argument 0(.|\n)*test_in_place.py:\d+"):
            Doubles()(y)


def test_an_operator_in_python_over_its_input():
    @mx.operator.register("doubled_over_its_input")
    class Doubled(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            class Run(mx.operator.CustomOp):
                def forward(self, is_train, req, in_data, out_data, aux):
                    self.assign(out_data[0], req[0], in_data[0] * in_data[0])

                def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                    self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])

            return Run()

    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = x * 1
        nd.Custom(y, op_type="doubled_over_its_input", out=y)
        loss = (y * y).sum()
    loss.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 4 * np.array(X) ** 3, rtol=1e-6)


# ------------------------------------------------------------------------------------------------------------ leaves
def adds(x):
    x += 1


def multiplies(x):
    x *= x


def writes_out(x):
    mx.nd.sin(x.as_nd_ndarray(), out=x.as_nd_ndarray())


def writes_through_a_view(x):
    v = x[0:2]
    v *= 2


def writes_through_a_row(x):
    v = x[1]
    v[:] = 2


def writes_through_a_view_of_a_reshape(x):
    x.reshape((3, 2))[0] = x[0, 1:3]


def assigns_a_result(x):
    x[:] = x * 2


def assigns_a_number(x):
    x[:] = 9


def assigns_numbers(x):
    x[:] = np.ones((2, 3))


def assigns_a_part(x):
    x[:, ::2] = 9


def assigns_by_positions(x):
    x[np.array([0, 1])] = 9


def copies(x):
    (x * 2).copyto(x)


def draws(x):
    mx.nd.random.normal(shape=(2, 3), out=x.as_nd_ndarray())


WRITES: list[Callable] = [
    adds,
    multiplies,
    writes_out,
    writes_through_a_view,
    writes_through_a_row,
    writes_through_a_view_of_a_reshape,
    assigns_a_result,
    assigns_a_number,
    assigns_numbers,
    assigns_a_part,
    assigns_by_positions,
    copies,
    draws,
]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("req", ["write", "add"])
def test_a_leaf_written_while_recording_names_both_lines(front, write, req):
    x = front.array([X, W])
    x.attach_grad(req)
    before = x.asnumpy()
    with (
        autograd.record(),
        pytest.raises(GradientError, match=r"attach_grad\) at .*test_in_place.py:\d+ and is written at .*in_place.py:"),
    ):
        write(x)
    np.testing.assert_array_equal(x.asnumpy(), before)


@pytest.mark.parametrize("write", WRITES)
def test_a_leaf_is_written_where_nothing_is_recorded(front, write):
    x = front.array([X, W])
    x.attach_grad()
    with autograd.record(), autograd.pause():
        write(x)
    with autograd.record():
        loss = (x * x).sum()
    loss.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * x.asnumpy())


def test_a_leaf_without_a_gradient_is_written():
    x, w = nd.array(X), nd.array(W)
    x.attach_grad("null")
    w.attach_grad()
    with autograd.record():
        x += w
        loss = (x * x).sum()
    loss.backward()
    np.testing.assert_allclose(w.grad.asnumpy(), 2 * (np.array(X) + W))


def test_optimizers_update_leaves_while_recording():
    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        nd.sgd_update(x, nd.ones(3), lr=0.5, out=x)
        loss = (x * x).sum()
    loss.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * np.array(X) - 1)


def test_a_leaf_written_through_a_view_that_was_made_before_it_was_one():
    x, w = nd.array(X), nd.array(W)
    v = x[0:2]
    x.attach_grad()
    w.attach_grad()
    with autograd.record():
        v[:] = w[0:2]
        with pytest.raises(GradientError, match=r"test_in_place.py:\d+ and is written at .*test_in_place.py:\d+"):
            x * x


def test_an_intermediate_array_that_became_a_leaf():
    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = x * 2
        y.attach_grad()
        with pytest.raises(GradientError, match="written in place while recording"):
            y *= 3
        loss = (y * y).sum()
    loss.backward()
    np.testing.assert_allclose(y.grad.asnumpy(), 4 * np.array(X))


def test_gradient_buffers_are_written_while_recording():
    x = nd.array(X)
    x.attach_grad("add")
    with autograd.record():
        x.grad[:] = 0
        x.grad[0:1] = 1
        loss = (x * x).sum()
    loss.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * np.array(X) + [1, 0, 0])
