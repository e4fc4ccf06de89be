"""Models of the libraries that were written for MXNet 1.9.1, each made small and without downloads.

A module per library has MODELS: the name of a model to a function that makes its ``Subject``.
"""
