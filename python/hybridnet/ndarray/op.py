"""All public operators, without the functions that ``nd`` adds in Python."""

from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "", symbolic=False, fallback="_internal")
