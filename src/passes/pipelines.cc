// The process' rewrite database: what is registered, in the order in which it runs (docs/graph-passes.md).
#include "hybridnet/pass.h"
#include "passes/register_all.h"

namespace hybridnet {

RewriteDatabase& rewrite_database() {
  static RewriteDatabase* database = [] {
    auto* db = new RewriteDatabase;
    passes::register_all(*db);
    return db;
  }();
  return *database;
}

}  // namespace hybridnet

namespace hybridnet::passes {

void register_all(RewriteDatabase& db) {
  register_merge(db);
  register_drop_identity(db);
  register_remove_unused(db);
  register_neutral_elements(db);
  register_view_chains(db);
  register_fold_constants(db);
  register_choose_layout(db);
  register_trim_control(db);
  register_merge_loops(db);
  register_unchanged_carries(db);
  register_share_loop_slots(db);
  register_split_loops(db);
  register_push_before_loop(db);
  register_push_behind_loop(db);
  register_keep_last_rows(db);
  register_cond_hoist(db);
  register_cond_sink(db);
  register_fold_batch_norm(db);
  register_plain_leaky_relu(db);
  register_fuse_activation(db);
  register_use_winograd(db);
  register_fuse_elementwise(db);
}

}  // namespace hybridnet::passes
