"""Tokens, vocabularies and token embeddings."""

from ..._public_names import dir_of
from . import embedding, utils, vocab

__all__ = ["embedding", "utils", "vocab"]

__dir__ = dir_of(__name__)
