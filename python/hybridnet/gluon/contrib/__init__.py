"""Additional layers and loops. Submodules are imported on first use."""

from ..._lazy_names import names_from

__getattr__, __dir__ = names_from(__name__, modules="cnn data estimator nn rnn")
