"""All samples of the registry have the CPU's values and gradients on gpu(0): half 1 of the operators."""

import operator_sweep
import pytest


@pytest.mark.parametrize("name", operator_sweep.names()[0::2])
def test_operator_agrees_with_the_cpu(name: str) -> None:
    operator_sweep.check(name)
