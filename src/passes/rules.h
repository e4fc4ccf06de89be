// The functions behind the rows of the pipeline; pipelines.cc says where each runs, on which nodes and why.
#pragma once

#include "hybridnet/pass.h"

namespace hybridnet::passes {

bool expand_composed(Graph& graph);
bool merge(Graph& graph);
bool trim_control(Graph& graph);

Replacement drop_identity(Graph& graph, Node& node);
Replacement drop_identity_joint(Graph& graph, Node& node);
Replacement drop_trivial_view(Graph& graph, Node& node);
Replacement neutral_scalar(Graph& graph, Node& node);
Replacement neutral_term(Graph& graph, Node& node);
Replacement shorten_views(Graph& graph, Node& node);
Replacement join_transposes(Graph& graph, Node& node);
Replacement plain_leaky_relu(Graph& graph, Node& node);

bool merge_loops(Graph& graph);
bool unchanged_carries(Graph& graph);
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

Replacement batch_norm_relu(Graph& graph, Node& node);
Replacement conv_bn_fold(Graph& graph, Node& node);
Replacement fuse_activation(Graph& graph, Node& node);
Replacement fuse_addend(Graph& graph, Node& node);
Replacement fuse_activation_of_sum(Graph& graph, Node& node);
Replacement fuse_requantize(Graph& graph, Node& node);
Replacement fuse_quantized_addend(Graph& graph, Node& node);
Replacement fuse_quantized_relu(Graph& graph, Node& node);
Replacement winograd(Graph& graph, Node& node);
bool fuse_elementwise(Graph& graph);

}  // namespace hybridnet::passes
