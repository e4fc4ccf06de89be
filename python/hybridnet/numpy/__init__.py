"""``mx.np``: arrays and functions with NumPy's interface, on the operators of ``mx.nd``.

Functions take arrays of this module and, while a block is traced or a graph is built, Symbols of ``mx.sym.np``. An
integer and a floating array give the floating dtype, scalars have shape (), and sizes of 0 are valid, independent of
``npx.set_np``; that switch only selects the arrays that Gluon creates.
"""

from __future__ import annotations

import numpy as _onp

from .._lazy_names import names_from
from .._public_names import dir_of
from . import _internal
from ._array_standard import *
from ._contractions import *
from ._creation import *
from ._elementwise import *
from ._fallback import FALLBACKS as _FALLBACKS
from ._grids import *
from ._manipulation import *
from ._rearranging import *
from ._reductions import *
from ._searching import *
from ._statistics import *
from ._tools import *
from .multiarray import ndarray

pi = _onp.pi
e = _onp.e
euler_gamma = _onp.euler_gamma
inf = _onp.inf
nan = _onp.nan
PINF, NINF, PZERO, NZERO = _onp.inf, -_onp.inf, 0.0, -0.0
NAN = NaN = _onp.nan
newaxis = None
__array_api_version__ = "2025.12"

float16, float32, float64 = _onp.float16, _onp.float32, _onp.float64
uint8, int8, int32, int64 = _onp.uint8, _onp.int8, _onp.int32, _onp.int64
bool = bool_ = _onp.bool_
dtype = _onp.dtype

# NumPy computes the functions that are not defined above.
__getattr__, __dir__ = names_from(
    __name__, {"_fallback": " ".join(n for n in _FALLBACKS if n not in globals())}, modules="linalg random"
)
_NUMPY_OBJECTS = (
    *("bool", "bool_", "dtype", "float16", "float32", "float64", "int32", "int64", "int8", "newaxis", "uint8"),
)
__dir__ = dir_of(__name__, __dir__, also=_NUMPY_OBJECTS)
