"""``tools/dev gpu-check``: checks of a machine with a GPU, in at most nine minutes.

Each step (:mod:`.steps`) is a process of its own with a limit in seconds, so that a crash or a hang loses that step
only, and prints one line. Files: :mod:`.runner` runs steps, :mod:`.outcome` is what a step returns, the others are the
steps.
"""
