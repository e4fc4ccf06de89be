// The functions behind the rows of the pipeline that are no patterns; pipelines.cc gives the place, the nodes and the
// reason of each.
#pragma once

#include "hybridnet/pass.h"

namespace hybridnet::passes {

bool expand_composed(Graph& graph);
bool mixed_bfloat16(Graph& graph);
bool mixed_float16(Graph& graph);
Replacement prepared_casts(Graph& graph, Node& node);
bool merge(Graph& graph);
bool trim_control(Graph& graph);

// Rows in front of differentiation keep every value that a gradient reaches: a gradient of zeros is written, the
// gradient of a value that nothing reads is not.
Replacement drop_identity(Graph& graph, Node& node);
Replacement drop_identity_joint(Graph& graph, Node& node);
Replacement drop_trivial_view(Graph& graph, Node& node);
Replacement neutral_scalar(Graph& graph, Node& node);
Replacement neutral_term(Graph& graph, Node& node);
Replacement shorten_views(Graph& graph, Node& node);
Replacement join_reshapes(Graph& graph, Node& node);
Replacement join_transposes(Graph& graph, Node& node);
Replacement transpose_of_ones(Graph& graph, Node& node);
Replacement join_casts(Graph& graph, Node& node);
Replacement join_slices(Graph& graph, Node& node);
Replacement split_of_join(Graph& graph, Node& node);
Replacement split_of_join_joint(Graph& graph, Node& node);
Replacement part_of_stack(Graph& graph, Node& node);
Replacement join_repeats(Graph& graph, Node& node);
Replacement join_repeats_joint(Graph& graph, Node& node);
Replacement repeat_in_place(Graph& graph, Node& node);
Replacement absorb_integers(Graph& graph, Node& node);
Replacement absorb(Graph& graph, Node& node);
Replacement cancel_factors(Graph& graph, Node& node);
Replacement join_factors(Graph& graph, Node& node);
Replacement shape_of_source(Graph& graph, Node& node);
Replacement constant_shape(Graph& graph, Node& node);
Replacement constant_sizes(Graph& graph, Node& node);
Replacement known_branch(Graph& graph, Node& node);
Replacement few_iterations(Graph& graph, Node& node);
Replacement few_iterations_joint(Graph& graph, Node& node);

Replacement log_sum_exp(Graph& graph, Node& node);
Replacement softmax_of_quotient(Graph& graph, Node& node);
Replacement plain_leaky_relu(Graph& graph, Node& node);
Replacement shared_keys(Graph& graph, Node& node);
Replacement plain_amp_casts(Graph& graph, Node& node);

bool rnn_cell(Graph& graph);
bool merge_loops(Graph& graph);
bool unchanged_carries(Graph& graph);
bool ordered_caches(Graph& graph);
bool share_loop_slots(Graph& graph);
bool loops_of_rows_first(Graph& graph);
bool split_loops(Graph& graph);
bool push_before_loop(Graph& graph);
bool push_behind_loop(Graph& graph);
bool copied_rows(Graph& graph);
bool keep_last_rows(Graph& graph);

bool cond_hoist_common(Graph& graph);
bool cond_hoist_common_joint(Graph& graph);
bool cond_sink(Graph& graph);

bool fold_constants(Graph& graph);
bool channels_last(Graph& graph);

Replacement layer_norm(Graph& graph, Node& node);
Replacement scale_layer_norm(Graph& graph, Node& node);
Replacement rms_norm(Graph& graph, Node& node);
Replacement scale_rms_norm(Graph& graph, Node& node);
Replacement add_layer_norm(Graph& graph, Node& node);
Replacement transposed_operands(Graph& graph, Node& node);
Replacement transposed_product(Graph& graph, Node& node);
Replacement scaled_product(Graph& graph, Node& node);
Replacement product_plus(Graph& graph, Node& node);
Replacement gelu(Graph& graph, Node& node);
Replacement gelu_tanh(Graph& graph, Node& node);
Replacement attention(Graph& graph, Node& node);
Replacement one_hot_pick(Graph& graph, Node& node);
Replacement heads_inside(Graph& graph, Node& node);
Replacement qkv_merge(Graph& graph, Node& node);
Replacement rnn_parameters(Graph& graph, Node& node);
Replacement softmax_pick(Graph& graph, Node& node);
Replacement batch_norm_relu(Graph& graph, Node& node);
Replacement conv_bn_fold(Graph& graph, Node& node);
Replacement fuse_activation(Graph& graph, Node& node);
Replacement fuse_addend(Graph& graph, Node& node);
Replacement fuse_activation_of_sum(Graph& graph, Node& node);
Replacement fuse_requantize(Graph& graph, Node& node);
Replacement fuse_quantized_addend(Graph& graph, Node& node);
Replacement fuse_quantized_relu(Graph& graph, Node& node);
Replacement winograd(Graph& graph, Node& node);
Replacement overwrite_reserve(Graph& graph, Node& node);
bool fuse_elementwise(Graph& graph);
bool native_loops(Graph& graph);
Replacement native_chains(Graph& graph, Node& node);

}  // namespace hybridnet::passes
