"""Operators whose names begin with an underscore, which other functions are built on."""

from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "_internal", symbolic=False)
