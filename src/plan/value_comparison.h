// The debug profile: runs graphs before and after each rewrite; a rewrite that changes a value is undone and reported.
#pragma once

#include <span>
#include <vector>

#include "hybridnet/ndarray.h"
#include "hybridnet/pass.h"

namespace hybridnet {

// Runs every graph that is rewritten on sample values: the call's arrays for inputs of the call, random values for
// others. Throws Error from Watch::changed when outputs differ by more than the rewrite promises.
// Graphs with operators that have effects (written in Python) are not compared.
class ValueComparison final : public RewriteObserver {
 public:
  // inputs: variables of the call; samples: their values, ready to be read. Both live as long as this object.
  ValueComparison(const std::vector<NodePtr>& inputs, std::span<const NDArray> samples)
      : inputs_(inputs), samples_(samples) {}
  std::unique_ptr<Watch> watch(const Graph& graph) override;

 private:
  const std::vector<NodePtr>& inputs_;
  const std::span<const NDArray> samples_;
};

}  // namespace hybridnet
