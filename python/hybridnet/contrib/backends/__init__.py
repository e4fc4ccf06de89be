"""Backends for mx.rewrite.partition: external compilers that run parts of graphs."""

from ..._public_names import dir_of

__dir__ = dir_of(__name__)
