"""What operators there are and what they take."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _core

__all__ = ["OperatorArguments", "get_all_registered_operators", "get_operator_arguments"]


class OperatorArguments(NamedTuple):
    """Inputs and parameters of an operator, in the order of its signature."""

    narg: int
    names: list[str]
    types: list[str]


def get_all_registered_operators() -> list[str]:
    """Names of all operators, aliases included; helpers that only gradients use are left out."""
    return sorted(
        {name for primary, aliases, internal in _core.op_names() if not internal for name in (primary, *aliases)}
    )


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """Names and types of an operator's inputs and parameters. Raises ParamError for a name that nobody registered."""
    op = _core.describe_op(op_name)
    array = "NDArray-or-Symbol[]" if op["variadic"] else "NDArray-or-Symbol"
    pairs = [(item["name"], array) for item in op["inputs"]] + [
        (field["name"], _type_text(field)) for field in op["fields"]
    ]
    return OperatorArguments(len(pairs), [name for name, _ in pairs], [text for _, text in pairs])


def _type_text(field: dict[str, Any]) -> str:
    """Such as "float, optional, default=0.9", the form that MXNet prints."""
    kind = "{" + ", ".join(map(repr, field["choices"])) + "}" if field.get("choices") else field["kind"]
    return f"{kind}, required" if field["required"] else f"{kind}, optional, default={field['default']}"
