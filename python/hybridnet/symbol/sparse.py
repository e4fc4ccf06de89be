"""Operators on sparse storage, making nodes; values are stored densely."""

from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "sparse", symbolic=True, fallback="")
