"""The corpus: programs whose control flow, written in plain Python, must become nodes of the graph."""

from __future__ import annotations

from . import corpus_constructs, corpus_large, corpus_names

MODULES = (corpus_constructs, corpus_names, corpus_large)
PROGRAMS = [program for module in MODULES for program in module.PROGRAMS]
# Programs that do not work yet; each says why. The tests expect them to fail.
BUGS = [program for module in MODULES for program in getattr(module, "BUGS", ())]
