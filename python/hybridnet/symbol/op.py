"""All public operators, creating nodes, without the functions that ``sym`` adds in Python."""

from .._public_names import dir_of
from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "", symbolic=True, fallback="_internal")
__dir__ = dir_of(__name__, __dir__)
