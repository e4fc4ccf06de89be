// Every register_* function of the passes.
#pragma once

#include "hybridnet/pass.h"

namespace hybridnet::passes {

void register_all(RewriteDatabase& db);

void register_merge(RewriteDatabase& db);
void register_drop_identity(RewriteDatabase& db);
void register_remove_unused(RewriteDatabase& db);
void register_neutral_elements(RewriteDatabase& db);
void register_view_chains(RewriteDatabase& db);
void register_fold_constants(RewriteDatabase& db);
void register_choose_layout(RewriteDatabase& db);
void register_cond_hoist(RewriteDatabase& db);
void register_cond_sink(RewriteDatabase& db);
void register_merge_loops(RewriteDatabase& db);
void register_share_loop_slots(RewriteDatabase& db);
void register_unchanged_carries(RewriteDatabase& db);
void register_split_loops(RewriteDatabase& db);
void register_push_before_loop(RewriteDatabase& db);
void register_push_behind_loop(RewriteDatabase& db);
void register_keep_last_rows(RewriteDatabase& db);
void register_trim_control(RewriteDatabase& db);
void register_fold_batch_norm(RewriteDatabase& db);
void register_plain_leaky_relu(RewriteDatabase& db);
void register_fuse_activation(RewriteDatabase& db);
void register_use_winograd(RewriteDatabase& db);
void register_fuse_elementwise(RewriteDatabase& db);

}  // namespace hybridnet::passes
