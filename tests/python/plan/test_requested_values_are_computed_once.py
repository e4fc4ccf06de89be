"""Values that lazy operators request are computed once and freed after their last reader: if another reader writes
over such a value, nothing is computed again, and nothing is copied to be kept."""

from __future__ import annotations

import re

import hybridnet as mx
import numpy as np
from hybridnet import test_utils

RAN = []


class Counted(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        RAN.append(1)
        self.assign(out_data[0], req[0], in_data[0] + 1)


@mx.operator.register("row9_counted")
class CountedProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Counted()


class Asks(mx.operator.CustomOp):
    """Requests its second input in two steps, after the first."""

    def lazy_step(self, is_train, req, in_data, out_data, aux):
        for k in (0, 1):
            if in_data[k] is None:
                return [k]
        self.assign(out_data[0], req[0], in_data[0] + in_data[1])
        return []


@mx.operator.register("row9_asks")
class AsksProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(lazy=True)

    def list_arguments(self):
        return ["a", "b"]

    def create_operator(self, ctx, shapes, dtypes):
        return Asks()


def test_a_value_with_a_reader_that_writes_over_it_is_computed_once():
    x = mx.sym.var("x")
    counted = mx.sym.Custom(x, op_type="row9_counted")
    over = mx.sym.relu(counted * 2 - 1)  # elementwise: its result may take the memory of counted
    asked = mx.sym.Custom(over, counted, op_type="row9_asks")
    twice = mx.sym.Custom(counted, over, op_type="row9_asks")
    f = mx.function([x], [asked, twice + over])
    value = np.array([0.0, 1.0, -3.0], "float32")
    RAN.clear()
    first, second = (out.asnumpy() for out in f(mx.nd.array(value)))
    assert len(RAN) == 1
    inner = value + 1
    np.testing.assert_array_equal(first, inner + np.maximum(inner * 2 - 1, 0))
    np.testing.assert_array_equal(second, inner + 2 * np.maximum(inner * 2 - 1, 0))
    with test_utils.exec_counts() as ran:
        f(mx.nd.array(value))
    assert len(RAN) == 2
    assert {op: count for (op, node), count in ran.items() if node} == {
        "Custom": 1, "_fused_elementwise": 1, "elemwise_add": 1,
    }  # fmt: skip


def test_an_operator_that_is_the_last_reader_writes_over_its_input_and_nothing_is_copied():
    x = mx.sym.var("x")
    counted = mx.sym.Custom(x, op_type="row9_counted")
    over = mx.sym.softmax(counted)
    f = mx.function([x], [over], passes="fast_run,-fusion")
    value = mx.nd.array([0.0, 1.0, -3.0])
    f(value)
    assert re.search(r"softmax .*\(o0\) -> o0", f.plan_text())
    RAN.clear()
    with test_utils.exec_counts() as ran:
        f(value)
    assert len(RAN) == 1
    in_graph = {key: count for key, count in ran.items() if key[1]}
    assert in_graph == {("Custom", counted.name): 1, ("softmax", over.name): 1}
