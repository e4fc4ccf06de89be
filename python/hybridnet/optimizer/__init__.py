"""Optimizers: rules that update weights by gradients."""

from .._lazy_names import refusing
from .._public_names import dir_of
from . import contrib
from ._adam import *
from ._adaptive import *
from ._sgd import *
from ._updater import *
from .optimizer import *

__getattr__, __dir__ = refusing(__name__), dir_of(__name__)
