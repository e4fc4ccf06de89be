"""Layers and loops beside the main ones. Submodules are imported when they are first used."""

from ..._lazy_names import names_from

__getattr__, __dir__ = names_from(__name__, modules="cnn data estimator nn rnn")
