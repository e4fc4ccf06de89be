"""Operators that ONNX cannot express, or that files for prediction do not need."""

from __future__ import annotations

from .._export_table import no_form

no_form("it runs Python code of the program", "Custom")
no_form("it writes a state that the next call reads; ONNX models have no states", "_write_state")
no_form("it writes into arrays in place", "reset_arrays")
no_form("it reads the storage of a sparse matrix, not its values", "_contrib_edge_id")
no_form("a loss, for training", "CTCLoss _contrib_hawkesll")
no_form(
    "a step of an optimizer, for training",
    """_sparse_adagrad_update _contrib_group_adagrad_update adam_update _adamw_update _mp_adamw_update
    _multi_adamw_update _multi_mp_adamw_update lamb_update_phase1 mp_lamb_update_phase1 lamb_update_phase2
    mp_lamb_update_phase2 ftrl_update ftml_update multi_sum_sq multi_lars _multi_lamb_update _multi_mp_lamb_update
    nag_mom_update mp_nag_mom_update rmsprop_update rmspropalex_update sgd_update sgd_mom_update mp_sgd_update
    mp_sgd_mom_update multi_sgd_update multi_sgd_mom_update multi_mp_sgd_update multi_mp_sgd_mom_update
    preloaded_multi_sgd_update preloaded_multi_sgd_mom_update preloaded_multi_mp_sgd_update
    preloaded_multi_mp_sgd_mom_update signsgd_update signum_update""",
)
