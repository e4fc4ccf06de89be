"""Every public operator, making nodes, without the functions written in Python that ``sym`` adds."""

from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "", symbolic=True, fallback="_internal")
