"""Additional convolutions beside those of gluon.nn."""

from ...._public_names import dir_of
from .conv_layers import *

__dir__ = dir_of(__name__)
