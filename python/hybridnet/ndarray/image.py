"""Image operators: to_tensor, normalize, resize, crop, flips, random color changes."""

from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "image", symbolic=False)
