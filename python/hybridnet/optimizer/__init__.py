"""Optimizers: rules that change weights by gradients."""

from . import contrib
from .adam import *
from .adaptive import *
from .optimizer import *
from .sgd import *
from .updater import *
