"""Additional layers and loops. Submodules are imported on first use."""

from ..._lazy_names import names_from
from ..._public_names import dir_of

__getattr__, __dir__ = names_from(__name__, modules="cnn data estimator nn rnn")
__dir__ = dir_of(__name__, __dir__)
