"""Names of operator inputs for monitors and hooks, by MXNet's rule.

Operators that list the names of their inputs use these: ``fc_weight``. The inputs of others are numbered:
``relu_input0``. All operators with several inputs list their names, and so do some with one input, which declare it.
"""

from __future__ import annotations

from . import _core

__all__ = ["names_of_inputs"]


def names_of_inputs(op: str, count: int) -> list[str]:
    """Returns the input names of a use of op with this number of inputs, without the node's name as prefix."""
    described = _core.describe_op(op)
    if described["variadic"]:
        return [f"arg{i}" for i in range(count)]
    names = [info["name"] for info in described["inputs"]]
    if len(names) < count or (len(names) == 1 and not described["names_its_input"]):
        return [f"input{i}" for i in range(count)]
    return names
