"""Loops and branches on arrays and in graphs. Programs import ``mx.contrib.control_flow``."""
