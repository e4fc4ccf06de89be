"""Tokens, vocabularies and token embeddings."""

from . import embedding, utils, vocab

__all__ = ["embedding", "utils", "vocab"]
