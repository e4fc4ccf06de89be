"""Operators whose names begin with an underscore: what other functions are made of."""

from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "_internal", symbolic=False)
