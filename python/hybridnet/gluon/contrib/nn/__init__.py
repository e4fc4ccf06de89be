"""Further layers."""

from ...._public_names import dir_of
from .basic_layers import *

__dir__ = dir_of(__name__)
