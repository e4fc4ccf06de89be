"""``mx.function``: graphs as functions with inputs, outputs, shared variables and updates (docs/functions.md)."""

from ._function import Function, function
from ._shared import SharedVariable, shared
from ._specs import In, Out

__all__ = ["Function", "In", "Out", "SharedVariable", "function", "shared"]
