"""Backends for mx.rewrite.partition: external compilers that run parts of graphs."""
