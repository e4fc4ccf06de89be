"""Test helpers for models and operators, under MXNet's names.

Comparison (:mod:`._compare`), random inputs (:mod:`._random_inputs`), checks of symbols against numbers and finite
differences (:mod:`._symbol_checks`), of blocks and optimizers (:mod:`._training_checks`), of random generators
(:mod:`._statistics`), data sets (:mod:`._data_sets`), execution counts of graph nodes (:mod:`._execution_counts`), and
contexts, environment variables and files of a test (:mod:`._environment`).
"""

import logging
import os
import sys

import numpy as np
import numpy.random as rnd

import hybridnet as mx  # MXNet's tests import this and the modules above with ``import *``

from .._public_names import dir_of
from ..context import Context, current_context
from ..ndarray import array
from ..util import use_np
from ._bisect_passes import bisect_passes
from ._compare import (
    almost_equal,
    assert_allclose,
    assert_almost_equal,
    assert_almost_equal_ignore_nan,
    assert_almost_equal_with_err,
    assert_exception,
    checkShapes,
    collapse_sum_like,
    compare_ndarray_tuple,
    default_atols,
    default_dtype,
    default_numeric_eps,
    default_rtols,
    effective_dtype,
    find_max_violation,
    get_atol,
    get_etol,
    get_rtol,
    get_tolerance,
    get_tols,
    np_reduce,
    same,
    same_array,
)
from ._data_sets import (
    get_bz2_data,
    get_cifar10,
    get_mnist,
    get_mnist_iterator,
    get_mnist_ubyte,
    get_zip_data,
)
from ._environment import (
    default_context,
    discard_stderr,
    download,
    environment,
    has_tvm_ops,
    is_aarch64_run,
    is_cd_run,
    is_op_runnable,
    list_gpus,
    retry,
    set_default_context,
)
from ._execution_counts import exec_counts
from ._random_inputs import (
    assign_each,
    assign_each2,
    create_2d_tensor,
    create_sparse_array,
    create_sparse_array_zd,
    create_vector,
    get_identity_mat,
    get_identity_mat_batch,
    new_matrix_with_real_eigvals_2d,
    new_matrix_with_real_eigvals_nd,
    new_orthonormal_matrix_2d,
    new_sym_matrix_with_real_eigvals_2d,
    new_sym_matrix_with_real_eigvals_nd,
    rand_coord_2d,
    rand_ndarray,
    rand_shape_2d,
    rand_shape_3d,
    rand_shape_nd,
    rand_sparse_ndarray,
    random_arrays,
    random_sample,
    random_uniform_arrays,
)
from ._statistics import chi_square_check, gen_buckets_probs_with_ppf, mean_check, var_check, verify_generator
from ._symbol_checks import (
    check_consistency,
    check_numeric_gradient,
    check_speed,
    check_symbolic_backward,
    check_symbolic_forward,
    numeric_grad,
    same_symbol_structure,
    simple_forward,
)
from ._training_checks import DummyIter, check_gluon_hybridize_consistency, compare_optimizer

__dir__ = dir_of(__name__)
