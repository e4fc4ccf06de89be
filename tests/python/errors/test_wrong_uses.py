"""Parameters, methods and layers that are used as if they were something else have an error with the fix."""

from __future__ import annotations

import hybridnet as mx
import pytest
from hybridnet import gluon
from hybridnet.gluon import nn


def failing(code: str, **names) -> Exception:
    with pytest.raises(mx.MXNetError) as caught:
        exec(code, {"mx": mx, **names})
    return caught.value


def test_attributes_of_parameters_that_mxnet_lets_programs_set_can_be_set():
    param = gluon.Parameter("w", shape=(2, 3))
    param.initialize()
    param.lr_mult, param.wd_mult, param.grad_req, param.dtype = 0.5, 0.0, "add", "float64"
    param.init, param.shape, param.note = "zeros", (2, 3), "own"
    param.data = lambda ctx=None: "replaced"  # a method in place of a method
    assert (param.lr_mult, param.grad_req, param.note, param.data()) == (0.5, "add", "own", "replaced")


def test_a_method_of_a_parameter_or_block_cannot_be_set_to_a_value():
    net = nn.Dense(2, in_units=2)
    for code in ("p.data = 1", "p.grad = None", "p.set_data = 1"):
        assert "is a method" in str(failing(code, p=net.weight))
    assert failing("net.hybridize = True", net=net).fix == "call net.hybridize()"
    net.hybridize = lambda active=True: "replaced"
    assert net.hybridize() == "replaced"


def test_every_operator_of_a_parameter_names_its_array():
    param = gluon.Parameter("w", shape=(2, 2))
    param.initialize()
    x = mx.nd.ones((2, 2))
    for code in ("x + p", "p - x", "2 / p", "p ** 2", "-p", "x @ p", "p @ x", "p[0]", "p[:] = 0"):
        assert "'w': used as an array" in str(failing(code, p=param, x=x))
    assert param in [param]
    assert {param: 1}[param] == 1


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        ("flatten(0)", "write x.reshape((-1,))"),
        ("flatten(-1)", "write x.reshape((0, 0, -1))"),
        ("flatten(0, 1)", "write x.reshape((-1, 4))"),
        ("flatten(start_dim=1, end_dim=-1)", "write x.flatten()"),
        ("flatten(end_dim=1)", "write x.reshape((-1, 4))"),
        ("flatten('C')", "give all sizes: x.reshape((2, -1)), where -1 is computed"),
    ],
)
def test_axes_for_flatten_have_the_call_of_reshape(call, fix):
    x = mx.nd.ones((2, 3, 4))
    assert failing(f"x.{call}", x=x).fix == fix

    class Net(gluon.HybridBlock):
        def forward(self, x):
            return eval(f"x.{call}")

    net = Net()
    net.hybridize()
    with pytest.raises(mx.errors.ParamError, match="expected no axes"):
        net(x)
    assert x.flatten().shape == x.flatten(inplace=True).shape == x.flatten(True).shape == (2, 12)


def test_a_name_of_a_container_is_in_the_error_of_its_layers():
    class Net(gluon.Block):
        def __init__(self):
            super().__init__()
            self.parts = {"first": nn.Dense(2)}

        def forward(self, x):
            return self.parts["first"](x)

    error = failing("net(x)", net=Net(), x=mx.nd.ones((2, 3)))
    assert "self.parts, a dict" in error.fix
    assert "self.register_child(layer)" in error.fix
    registered = nn.HybridSequential()
    registered.add(nn.Dense(2))
    assert error.fix != failing("net(x)", net=registered, x=mx.nd.ones((2, 3))).fix
