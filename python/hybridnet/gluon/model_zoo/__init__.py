"""Networks that are ready to use."""

from . import model_store, vision
