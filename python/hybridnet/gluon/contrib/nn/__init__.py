"""Further layers."""

from .basic_layers import *
