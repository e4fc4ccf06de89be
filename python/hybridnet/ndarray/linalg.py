"""Linear algebra operators: gemm, gemm2, potrf, trsm, syrk, ..."""

from .._public_names import dir_of
from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "linalg", symbolic=False)
__dir__ = dir_of(__name__, __dir__)
