"""Predefined networks."""

from . import model_store, vision
