// The debug profile: graphs run before and after each rewrite, and a rewrite that changes a value is undone by name.
#pragma once

#include <span>
#include <vector>

#include "hybridnet/ndarray.h"
#include "hybridnet/pass.h"

namespace hybridnet {

// Runs every graph that is rewritten on sample values: those of the call where an input is one of the call's, else
// random ones. Throws Error from Watch::changed when outputs differ by more than the rewrite promises.
// Graphs with operators that have effects (written in Python) are not compared.
class ValueComparison final : public RewriteObserver {
 public:
  // inputs: variables of the call; samples: what they hold, ready to be read. Both live as long as this.
  ValueComparison(const std::vector<NodePtr>& inputs, std::span<const NDArray> samples)
      : inputs_(inputs), samples_(samples) {}
  std::unique_ptr<Watch> watch(const Graph& graph) override;

 private:
  const std::vector<NodePtr>& inputs_;
  const std::span<const NDArray> samples_;
};

}  // namespace hybridnet
