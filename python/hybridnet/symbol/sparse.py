"""Operators on sparse storage that create nodes; values are stored densely."""

from .._public_names import dir_of
from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "sparse", symbolic=True, fallback="")
__dir__ = dir_of(__name__, __dir__)
