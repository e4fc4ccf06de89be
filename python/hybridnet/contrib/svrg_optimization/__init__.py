"""Stochastic variance reduced gradients (Johnson and Zhang, NIPS 2013) for modules."""

from ..._public_names import dir_of
from . import svrg_optimizer
from .svrg_module import SVRGModule

__all__ = ["SVRGModule", "svrg_optimizer"]

__dir__ = dir_of(__name__)
