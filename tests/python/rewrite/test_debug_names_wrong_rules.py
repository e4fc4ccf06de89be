"""The debug profile catches a wrong rule and names it."""

import re

import hybridnet as mx
import numpy as np
from hybridnet import rewrite as rw


def test_a_wrong_rule_is_caught_and_named_in_a_body_too() -> None:
    @rw.local(tracks=["relu"], db="canonicalize")
    def wrong(graph, node):
        return graph.full(0.0, like=node[0])

    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.contrib.foreach(lambda row, s: (F.relu(row) + s, s), x, F.ones((2,)))[0]

    net = Net()
    net.hybridize(passes="debug")
    assert net(mx.nd.ones((3, 2))).asnumpy().tolist() == [[2, 2]] * 3
    report = net.pass_report()
    assert "rewrite 'wrong' failed" in report
    assert "it changed element" in report


class TwoFactors(mx.gluon.HybridBlock):
    """A loop whose body multiplies twice, forward and backward."""

    def hybrid_forward(self, F, x, h):
        def step(row, state):
            state = F.tanh(row + state) * 0.5 * 1.5
            return state, state

        return F.contrib.foreach(step, x, h)[0]


def results(net: mx.gluon.HybridBlock, passes: str) -> list[np.ndarray]:
    net.hybridize(passes=passes)
    x, h = mx.nd.array(np.linspace(-1, 1, 12).reshape((4, 3))), mx.nd.ones((3,))
    x.attach_grad()
    with mx.autograd.record():
        out = net(x, h)
    out.backward()
    return [out.asnumpy(), x.grad.asnumpy()]


TWICE = ("mul", ("mul", "x", rw.P.const(name="a")), rw.P.const(name="b"))


def test_a_rule_of_a_few_lines_fuses_two_operators_of_a_body_forward_and_backward() -> None:
    @rw.local(pattern=TWICE, position=21.5, values="rounding")
    def one_factor(graph, node, names):
        """Rewrites x * a * b to x * (a * b)."""
        return graph.add("_mul_scalar", names["x"], scalar=names["a"] * names["b"])

    net = TwoFactors()
    expected = results(net, "none")
    for got, want in zip(results(net, "fast_run"), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    lines = iter(net.pass_report().splitlines())
    assert any(re.match(r" *one_factor +fired +2 ", line) for line in lines)
    bodies = [next(lines).strip() for _ in range(2)]
    assert re.fullmatch(r"1 in the body of '\w+_foreach0'", bodies[0])
    assert re.fullmatch(r"1 in the body of '\w+_foreach0_backward'", bodies[1])


def test_the_same_rule_made_wrong_is_named() -> None:
    @rw.local(pattern=TWICE, position=21.5, values="rounding")
    def wrong_factor(graph, node, names):
        """Rewrites x * a * b to x * (a + b), which is wrong."""
        return graph.add("_mul_scalar", names["x"], scalar=names["a"] + names["b"])

    net = TwoFactors()
    expected = results(net, "none")
    for got, want in zip(results(net, "debug"), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    report = net.pass_report()
    assert "rewrite 'wrong_factor' failed" in report
    assert "(body of" in report
