"""Checkpoints of recurrent networks, under MXNet's module name."""

from ._checkpoint import do_rnn_checkpoint, load_rnn_checkpoint, save_rnn_checkpoint

__all__ = ["do_rnn_checkpoint", "load_rnn_checkpoint", "save_rnn_checkpoint"]
