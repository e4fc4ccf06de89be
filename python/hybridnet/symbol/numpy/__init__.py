"""``mx.sym.np``: Symbols with NumPy's interface.

The functions are those of ``mx.np``; calls without inputs create nodes here.
"""

from ..._public_names import dir_of
from .._mirror import mirror
from ._symbol import _Symbol

__all__ = ["_Symbol"]

__getattr__, __dir__ = mirror(__name__, "hybridnet.numpy", modules="linalg random")
__dir__ = dir_of(__name__, __dir__)
