"""All public operators, creating nodes, without the functions that ``sym`` adds in Python."""

from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "", symbolic=True, fallback="_internal")
