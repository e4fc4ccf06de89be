"""``mx.sym.np.linalg``: the functions of ``mx.np.linalg`` for Symbols; calls without inputs create nodes too."""

from .._mirror import mirror

__all__: list[str] = []

__getattr__, __dir__ = mirror(__name__, "hybridnet.numpy.linalg")
