"""The target of ``import horovod`` if Horovod is not installed. ``horovod.mxnet`` is ``hybridnet.horovod``."""

import hybridnet.as_mxnet  # noqa: F401

__version__ = "0.28.1"  # the API of horovod.mxnet is that of this version
__path__: list[str] = []  # makes this a package; hybridnet.as_mxnet finds its modules
