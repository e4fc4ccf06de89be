"""Optimizers: rules that update weights by gradients."""

from . import contrib
from ._adam import *
from ._adaptive import *
from ._sgd import *
from ._updater import *
from .optimizer import *
