#include "passes/register_all.h"

namespace hybridnet::passes {

void register_remove_unused(RewriteDatabase& db) {
  db.pass("remove_unused", [](Graph& graph) { return graph.remove_unused() > 0; })
      .at(0.3)
      .tags({"fast_compile", "fast_run", "none"});
}

}  // namespace hybridnet::passes
