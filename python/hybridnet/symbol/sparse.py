"""Operators on sparse storage that create nodes; values are stored densely."""

from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "sparse", symbolic=True, fallback="")
