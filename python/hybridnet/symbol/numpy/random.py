"""``mx.sym.np.random``: the functions of ``mx.np.random`` for Symbols; calls without inputs create nodes too."""

from .._mirror import mirror

__all__: list[str] = []

__getattr__, __dir__ = mirror(__name__, "hybridnet.numpy.random")
