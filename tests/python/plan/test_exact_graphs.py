"""hybridize(exact=True): graphs compute the bits of the single operators."""

import warnings

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon, nd
from plan.chain_programs import Chain


def results(block, arrays):
    """Values of block and gradients of its inputs."""
    for array in arrays:
        array.attach_grad()
    with mx.autograd.record():
        outputs = block(*arrays)
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        mx.autograd.backward(outputs, [nd.ones_like(output) for output in outputs])
    return [output.asnumpy() for output in outputs], [array.grad.asnumpy() for array in arrays]


def equal(one, other):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


FLOAT_CHAINS = [seed for seed in range(1, 90) if seed % 20 and "float" in Chain(seed).dtype]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", FLOAT_CHAINS)
def test_exact_graphs_of_elementwise_operators_have_the_imperative_bits(seed):
    block = Chain(seed)
    arrays = block.inputs()
    try:
        values, gradients = results(block, arrays)
    except mx.MXNetError:
        pytest.skip("the outputs of this program do not depend on its inputs")
    block.hybridize(exact=True)
    exact = results(block, arrays)
    assert equal(exact[0], values)
    # Without any rewrite, a graph may still add three or more gradients of one array in another order.
    block.hybridize(passes="none")
    if equal(results(block, arrays)[1], gradients):
        assert equal(exact[1], gradients)


def test_an_exact_loop_has_the_imperative_bits():
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.cell = gluon.rnn.LSTMCell(8, input_size=5)

        def forward(self, x):
            outputs, state = [], [nd.zeros((3, 8), dtype="float64"), nd.zeros((3, 8), dtype="float64")]
            for row in x:
                output, state = self.cell(row, state)
                outputs.append(output)
            return nd.stack(*outputs)

    net = Net()
    net.initialize()
    net.cast("float64")
    x = nd.array(np.random.default_rng(0).normal(size=(7, 3, 5)), dtype="float64")
    expected = results(net, [x])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net.hybridize(strict=True, exact=True)
        found = results(net, [x])
    assert equal(found[0], expected[0])
    assert equal(found[1], expected[1])


def test_the_word_rounding_names_the_rewrites_that_round():
    block = gluon.nn.Dense(3, in_units=2)
    block.initialize()
    block.hybridize(passes="fast_run,-rounding")
    assert block(nd.ones((1, 2))).shape == (1, 3)
    rounding = [row for row in mx.rewrite.rows() if row["values"] == "rounding"]
    assert len(rounding) > 20
    assert all("rounding" in row["tags"] for row in rounding)
