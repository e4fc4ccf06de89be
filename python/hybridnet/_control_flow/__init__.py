"""Loops and branches on arrays and in graphs. ``mx.contrib.control_flow`` is what programs import."""
