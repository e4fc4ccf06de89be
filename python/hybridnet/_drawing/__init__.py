"""Pictures: SVG of our own, and plots by matplotlib."""
