"""``mx.sym.np.linalg``: the functions of ``mx.np.linalg`` for Symbols; calls without inputs create nodes too."""

from ..._public_names import dir_of
from .._mirror import mirror

__all__: list[str] = []

__getattr__, __dir__ = mirror(__name__, "hybridnet.numpy.linalg")
__dir__ = dir_of(__name__, __dir__)
