"""Predefined networks."""

from ..._public_names import dir_of
from . import model_store, vision

__dir__ = dir_of(__name__)
