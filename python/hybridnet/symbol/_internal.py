"""Operators whose names begin with an underscore, making nodes."""

from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "_internal", symbolic=True)
