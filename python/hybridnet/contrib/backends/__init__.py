"""Backends for mx.rewrite.partition: compilers outside the library that take over parts of graphs."""
