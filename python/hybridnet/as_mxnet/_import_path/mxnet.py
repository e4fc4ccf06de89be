"""What ``import mxnet`` finds when this folder is on ``sys.path``; the import below puts HybridNet in its place."""

import hybridnet.as_mxnet  # noqa: F401
