"""Models of the libraries written for MXNet 1.9.1, each small and made without downloads.

Each library has a module with MODELS: a dictionary from the name of a model to a function that makes its ``Subject``.
"""
