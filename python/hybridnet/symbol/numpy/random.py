"""``mx.sym.np.random``: the functions of ``mx.np.random``, which take Symbols and make nodes without inputs too."""

from .._mirror import mirror

__all__: list[str] = []

__getattr__, __dir__ = mirror(__name__, "hybridnet.numpy.random")
