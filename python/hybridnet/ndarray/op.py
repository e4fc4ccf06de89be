"""Every public operator, without the functions written in Python that ``nd`` adds."""

from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "", symbolic=False, fallback="_internal")
