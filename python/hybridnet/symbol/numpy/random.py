"""``mx.sym.np.random``: the functions of ``mx.np.random`` for Symbols; calls without inputs create nodes too."""

from ..._public_names import dir_of
from .._mirror import mirror

__all__: list[str] = []

__getattr__, __dir__ = mirror(__name__, "hybridnet.numpy.random")
__dir__ = dir_of(__name__, __dir__)
