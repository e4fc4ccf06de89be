"""The target of ``import byteps`` if BytePS is not installed. ``byteps.mxnet`` is ``hybridnet.byteps``."""

import hybridnet.as_mxnet  # noqa: F401

__version__ = "0.2.5"  # the API of byteps.mxnet is that of this version
__path__: list[str] = []  # makes this a package; hybridnet.as_mxnet finds its modules
