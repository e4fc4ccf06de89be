"""``mx.sym.npx.image``: the functions of ``mx.npx.image``, which take Symbols and make nodes without inputs too."""

from .._mirror import mirror

__all__: list[str] = []

__getattr__, __dir__ = mirror(__name__, "hybridnet.numpy_extension.image")
