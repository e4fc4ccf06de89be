"""Additional convolutions beside those of gluon.nn."""

from .conv_layers import *
