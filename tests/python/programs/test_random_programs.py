"""Random programs give the results of a small interpreter with explicit memory, in every way that they can run.

This is a small sample of the thousands of programs that prove.py runs.
"""

from __future__ import annotations

import random
from collections import Counter

import hybridnet as mx
import numpy as np
import pytest

from . import executors, generate, prove, shrink, source
from .instructions import Alias, Assign, Call, Index, InPlace, View
from .memory import Unclear
from .program import Array, Gradient, Program, Session

ONE_TWO_THREE = np.array([1.0, 2.0, 3.0])


def simple(body, outputs, record=False, **more):
    """Returns a program with one argument x0 = [1, 2, 3]."""
    inputs = [Array("a0", "float64", [ONE_TWO_THREE], gradient=record)]
    return Program(
        "test", False, "forward", inputs, [], record=record, arguments=["a0"], body=body, outputs=outputs, **more
    )


class TestTheReference:
    """The reference on memory written through views, with numbers that can be checked by hand."""

    def test_a_view_writes_into_its_base_and_gradients_follow(self):
        body = [
            Call("t1", "infix_mul", ("x0", 1), {}), Index("t2", "t1", slice(0, 2)), InPlace("t2", "mul", 5),
            Call("t3", "infix_mul", ("t1", "t1"), {}), Call("t4", "sum", ("t3",), {"axis": None, "keepdims": False}),
        ]  # fmt: skip
        program = simple(body, ["t4"], record=True)
        program.heads = [generate.Head(0)]
        found = dict(Session(program).run())
        assert found["round 0: y0"].data.tolist() == [134]
        assert found["round 0: gradient of a0, backward 1"].data.tolist() == [50, 100, 6]

    def test_an_alias_sees_a_write(self):
        body = [Call("t1", "infix_mul", ("x0", 1), {}), Alias("t2", "t1"), InPlace("t2", "add", 1)]
        found = dict(Session(simple(body, ["t1"])).run())
        assert found["round 0: y0"].data.tolist() == [2, 3, 4]

    def test_the_caller_sees_a_write_into_an_argument(self):
        found = dict(Session(simple([View("t1", "x0", "reshape", (1, 3)), Assign("t1", 0, 7)], ["t1"])).run())
        assert found["round 0: a0 after the call"].data.tolist() == [7, 7, 7]

    def test_overwritten_values_have_no_gradient(self):
        body = [Call("t1", "square", ("x0",), {}), Assign("t1", slice(1, None), 4)]
        program = simple(body, ["t1"], record=True)
        program.heads = [generate.Head(0)]
        found = dict(Session(program).run())
        assert found["round 0: gradient of a0, backward 1"].data.tolist() == [2, 0, 0]

    def test_a_jump_is_not_compared(self):
        body = [
            Call("t1", "exp", ("x0",), {}),
            Call("t2", "infix_sub", ("t1", "t1"), {}),
            Call("t3", "sign", ("t2",), {}),
        ]
        with pytest.raises(Unclear):
            Session(simple(body, ["t3"])).run()

    def test_its_gradients_are_those_of_differences(self):
        compared = 0
        for number in range(200):
            made = generate.make(900, number)
            if made is None or not smooth(made[0]):
                continue
            compared += compare_with_differences(*made)
        assert compared > 30


def smooth(program):
    """True if differences of the program's outputs equal its gradients: all float64, and no part stops gradients."""
    text = repr(program)
    return (
        program.heads
        and not program.retain
        and not any(word in text for word in ("detach", "BlockGrad", "float32", "float16", "int", "astype"))
        and not program.between
        and not program.before
    )


def compare_with_differences(program, expected):
    gradients = {label: g for label, g in expected if isinstance(g, Gradient) and label.startswith("round 0")}
    compared = 0
    for array in [*program.inputs, *program.parameters]:
        gradient = gradients.get(f"round 0: gradient of {array.name}, backward 1")
        for index in np.ndindex(array.values[0].shape) if gradient is not None else ():
            difference = moved(program, array, index, 1e-5) - moved(program, array, index, -1e-5)
            np.testing.assert_allclose(difference / 2e-5, gradient.data[index], rtol=1e-4, atol=1e-5)
            compared += 1
    return compared


def moved(program, array, index, distance):
    """Returns the weighted sum of the outputs after a change of one element."""
    kept = array.values[0]
    array.values[0] = kept.copy()
    array.values[0][index] += distance
    try:
        found = dict(Session(program).run())
    finally:
        array.values[0] = kept
    heads = [(found[f"round 0: y{head.output}"].data, head.values) for head in program.heads]
    return sum(float(np.sum(data * (1 if values is None else values))) for data, values in heads)


class TestSample:
    """Fixed programs in all executors."""

    PROGRAMS = 150

    @pytest.fixture(scope="class")
    @classmethod
    def report(cls):
        pytest.importorskip("torch", reason="some programs share memory with PyTorch")
        report = prove.Report()
        for number in range(cls.PROGRAMS):
            made = generate.make(20, number)
            if made is not None:
                report.add(number, executors.run(*made))
        return report

    def test_nothing_differs(self, report):
        for number, failures in report.failures.items():
            program, _ = generate.make(20, number)
            pytest.fail(prove.describe(program, *failures[0], f"seed 20, program {number}"))

    def test_all_checks_compare_values(self, report):
        assert report.programs > 0.95 * self.PROGRAMS
        assert report.ran["compared"] > 4 * self.PROGRAMS

    def test_programs_have_all_constructs(self):
        kinds: Counter[str] = Counter()
        for program in [made[0] for number in range(self.PROGRAMS) if (made := generate.make(20, number))]:
            kinds.update({i.kind for part in program.lists() for i in part})
        rare = {"MaskIndex", "MaskAssign"}
        names = {cls.__name__ for cls in generate.Instruction.__subclasses__()} - rare
        assert not [name for name in names if kinds[name] < 2], kinds


class TestTheProgramItself:
    """The comparison finds wrong results; a check that cannot fail proves nothing."""

    BODY = [Call("t1", "square", ("x0",), {}), Call("t2", "infix_add", ("t1", 1), {})]

    def test_another_value_is_found_and_made_small(self, monkeypatch):
        program = simple([*self.BODY, Call("t3", "infix_mul", ("x0", 2), {})], ["t3", "t2"])
        expected = Session(program).run()
        assert not executors.run(program, expected, "imperative").failures
        real = mx.nd.square
        monkeypatch.setattr(mx.nd, "square", lambda x: real(x) * 1.0000001)
        outcome = executors.run(program, expected, "imperative")
        assert "y1" in outcome.failures[0][1]

        def ask(candidate):
            made = generate.complete(candidate)
            return made and executors.run(*made, "imperative")

        small, _ = shrink.smallest(program, outcome.failures[0], ask)
        assert len(small.body) == 2 and small.outputs == ["t2"]
        text = prove.describe(small, "imperative", "round 0: y0: 1", "seed 0")
        assert "t1 = F.square(x0)" in text
        compile(text, "text", "exec")

    def test_the_sign_of_zero_counts(self, monkeypatch):
        program = simple([Call("t1", "infix_mul", ("x0", 0), {}), Call("t2", "negative", ("t1",), {})], ["t2"])
        expected = Session(program).run()
        monkeypatch.setattr(mx.nd, "negative", lambda x: x + 0.0)
        assert executors.run(program, expected, "imperative").failures

    def test_a_refusal_is_counted_by_kind(self, monkeypatch):
        def refuse(x):
            raise mx.errors.TraceError("operator 'square': not here.\n  At: line 3")

        program = simple(self.BODY, ["t2"])
        monkeypatch.setattr(mx.nd, "square", refuse)
        outcome = executors.run(program, Session(program).run(), "imperative")
        assert outcome.refused == {("imperative", "TraceError: operator '*' (block '*'): not here."): 1}

    def test_programs_repeat_and_can_be_read(self):
        one, two = generate.make(3, 4), generate.make(3, 4)
        assert source.make(one[0]).text() == source.make(two[0]).text()
        assert random.Random(1).random() == random.Random(1).random()
        compile(source.make(one[0]).text(), "text", "exec")
