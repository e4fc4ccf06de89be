"""Image operators that create nodes."""

from .._public_names import dir_of
from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "image", symbolic=True)
__dir__ = dir_of(__name__, __dir__)
