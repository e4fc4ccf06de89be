"""Linear algebra operators: gemm, gemm2, potrf, trsm, syrk, ..."""

from ..ops._namespace import lazy_functions

__getattr__, __dir__ = lazy_functions(globals(), "linalg", symbolic=False)
