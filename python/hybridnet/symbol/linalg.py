"""Linear algebra operators, making nodes."""

from ..ops.namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "linalg", symbolic=True)
