"""Executors: gradients, monitors, and memory of runs."""

from __future__ import annotations

import re

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import nd, sym


def two_outputs():
    data = sym.var("data")
    return sym.Group([data * 3, sym.shape_array(data), sym.BlockGrad(data) * 2])


def test_gradients_at_outputs_that_nothing_depends_on_are_not_looked_at():
    executor = two_outputs().bind(mx.cpu(), [nd.ones((2, 3))], args_grad=[nd.zeros((2, 3))])
    executor.forward(is_train=True)
    executor.backward([nd.full((2, 3), 2), nd.ones((7,)), nd.ones((9, 9))])
    np.testing.assert_array_equal(executor.grad_dict["data"].asnumpy(), np.full((2, 3), 6))
    executor.backward([nd.full((2, 3), 5)])
    np.testing.assert_array_equal(executor.grad_dict["data"].asnumpy(), np.full((2, 3), 15))


def test_backward_names_the_gradient_that_is_missing_or_has_another_shape():
    data = sym.var("data")
    executor = sym.Group([data * 3, data * 4]).bind(mx.cpu(), [nd.ones((2,))], args_grad=[nd.zeros((2,))])
    executor.forward(is_train=True)
    with pytest.raises(mx.MXNetError, match="expected 2 arrays, got 1"):
        executor.backward([nd.ones((2,))])
    with pytest.raises(mx.MXNetError, match=r"out_grads\[1\].*\(2,\).*\(3,\)"):
        executor.backward([nd.ones((2,)), nd.ones((3,))])


def test_gradient_buffers_of_null_requests_stay_visible_and_untouched():
    a, b = sym.var("a"), sym.var("b")
    grads = {"a": nd.full((2,), 7), "b": nd.full((2,), 7)}
    executor = (a * b).bind(
        mx.cpu(), {"a": nd.ones((2,)), "b": nd.full((2,), 4)}, grads, grad_req={"a": "write", "b": "null"}
    )
    executor.forward(is_train=True)
    executor.backward()
    np.testing.assert_array_equal(executor.grad_dict["a"].asnumpy(), [4, 4])
    np.testing.assert_array_equal(executor.grad_dict["b"].asnumpy(), [7, 7])


def monitored_network():
    hidden = sym.Activation(sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc"), act_type="tanh", name="act")
    return sym.FullyConnected(hidden, num_hidden=1, no_bias=True, name="last")


def filled(executor):
    for number, name in enumerate(sorted(executor.arg_dict)):
        executor.arg_dict[name][:] = 0.1 * (number + 1)
    return executor


def test_a_monitor_receives_every_operator_and_changes_no_result():
    plain = filled(monitored_network().simple_bind(mx.cpu(), data=(2, 4)))
    watched = filled(monitored_network().simple_bind(mx.cpu(), data=(2, 4)))
    received = {}
    watched.set_monitor_callback(lambda name, array: received.setdefault(name, array.asnumpy()))
    for executor in (plain, watched):
        executor.forward(is_train=True)
        executor.backward()
    assert list(received) == ["fc_output", "act_output", "last_output"]
    np.testing.assert_allclose(received["act_output"], np.tanh(received["fc_output"]), rtol=1e-6)
    assert len(watched.outputs) == 1
    np.testing.assert_array_equal(received["last_output"], plain.outputs[0].asnumpy())
    for name, grad in plain.grad_dict.items():
        np.testing.assert_allclose(watched.grad_dict[name].asnumpy(), grad.asnumpy(), rtol=1e-6)


def test_monitor_all_reports_inputs_too_also_after_reshape():
    executor = monitored_network().simple_bind(mx.cpu(), data=(2, 4))
    received = []
    executor.set_monitor_callback(lambda name, array: received.append((name, array.shape)), monitor_all=True)
    executor.reshape(data=(1, 4)).forward()
    assert received == [
        ("data", (1, 4)),
        ("fc_data", (1, 4)),
        ("fc_weight", (3, 4)),
        ("fc_weight", (3, 4)),
        ("fc_bias", (3,)),
        ("fc_bias", (3,)),
        ("fc_output", (1, 3)),
        ("act_input0", (1, 3)),
        ("act_output", (1, 3)),
        ("last_data", (1, 3)),
        ("last_weight", (1, 3)),
        ("last_weight", (1, 3)),
        ("last_output", (1, 1)),
    ]


def test_a_monitored_executor_takes_gradients_of_its_outputs_alone():
    executor = filled(monitored_network().simple_bind(mx.cpu(), data=(2, 4)))
    executor.set_monitor_callback(lambda name, array: None)
    executor.forward(is_train=True)
    executor.backward([nd.zeros((2, 1))])
    assert not executor.grad_dict["fc_weight"].asnumpy().any()


def total_megabytes(executor):
    return int(re.search(r"Total (\d+) MB allocated", executor.debug_str()).group(1))


def test_debug_str_shows_the_memory_of_runs():
    chain = sym.var("data")
    for _ in range(6):
        chain = sym.exp(chain) * chain
    shape = (4, 1024, 256)  # 4 MB
    training = chain.simple_bind(mx.cpu(), data=shape)
    inference = chain.simple_bind(mx.cpu(), grad_req="null", data=shape)
    blocked = sym.BlockGrad(chain).simple_bind(mx.cpu(), data=shape)
    assert total_megabytes(inference) >= 4
    assert total_megabytes(training) > total_megabytes(inference) == total_megabytes(blocked)


def test_plan_text_shows_the_last_run_and_its_gradient():
    executor = filled(monitored_network().simple_bind(mx.cpu(), data=(2, 4)))
    assert executor.plan_text() == ""
    executor.forward()
    assert "prediction: " in executor.plan_text() and "backward: " not in executor.plan_text()
    executor.forward(is_train=True)
    text = executor.plan_text()
    assert "training: data float32(2, 4)" in text and "backward: " in text
    assert "fully_connected" in text and "test_executor.py" in text


def test_lr_mult_of_an_operator_goes_to_the_variables_made_with_it():
    bias = sym.var("fc_bias", lr_mult=3.0)
    attributes = sym.FullyConnected(
        sym.var("data"), bias=bias, num_hidden=2, name="fc", lr_mult=0.5, weight_wd_mult=0.25
    ).attr_dict()
    assert attributes["fc_weight"]["__lr_mult__"] == "0.5"
    assert attributes["fc_weight"]["__wd_mult__"] == "0.25"
    assert attributes["fc_bias"]["__lr_mult__"] == "3.0"
    assert "data" not in attributes
