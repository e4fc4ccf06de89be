#include "passes/register_all.h"

namespace hybridnet::passes {

void register_remove_unused(RewriteDatabase& db) {
  // Again behind differentiation: gradient rules make values that turn out not to be wanted.
  for (const double position : {0.3, 20.2}) {
    db.pass(position > 10 ? "remove_unused_joint" : "remove_unused",
            [](Graph& graph) { return graph.remove_unused() > 0; })
        .at(position)
        .tags({"fast_compile", "fast_run", "none"});
  }
}

}  // namespace hybridnet::passes
