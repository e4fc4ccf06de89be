"""Observers of operator calls in Python, and of the lines and blocks that make them. No cost while nothing observes."""
