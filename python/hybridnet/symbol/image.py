"""Image operators that create nodes."""

from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "image", symbolic=True)
