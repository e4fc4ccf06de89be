"""Stochastic variance reduced gradients (Johnson and Zhang, NIPS 2013) for modules."""

from . import svrg_optimizer
from .svrg_module import SVRGModule

__all__ = ["SVRGModule", "svrg_optimizer"]
