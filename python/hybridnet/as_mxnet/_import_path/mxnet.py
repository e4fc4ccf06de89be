"""The target of ``import mxnet`` if this folder is on ``sys.path``; the import below replaces it by HybridNet."""

import hybridnet.as_mxnet  # noqa: F401
