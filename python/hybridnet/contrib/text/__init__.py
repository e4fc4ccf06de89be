"""Tokens, vocabularies and vectors of tokens."""

from . import embedding, utils, vocab

__all__ = ["embedding", "utils", "vocab"]
