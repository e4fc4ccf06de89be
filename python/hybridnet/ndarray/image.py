"""Image operators: to_tensor, normalize, resize, crop, flips, random color changes."""

from .._public_names import dir_of
from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "image", symbolic=False)
__dir__ = dir_of(__name__, __dir__)
