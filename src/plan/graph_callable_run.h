// The data that a run of a graph function keeps for its gradient.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "imperative/saved_array.h"
#include "ndarray/overlap.h"
#include "plan/graph_callable.h"

namespace hybridnet {

// A run of a plan.
class GraphCallable::PlanRun final : public GraphRun {
 public:
  PlanRun(Ref<GraphCallable> graph, Ref<Compilation> call) : function(std::move(graph)), compiled(std::move(call)) {}

  bool reads_head(size_t output) const override {
    return std::any_of(compiled->sources.begin(), compiled->sources.end(), [&](const BackwardInput& source) {
      return source.kind == BackwardInput::Kind::kHead && static_cast<size_t>(source.index) == output;
    });
  }
  Heads compare(std::span<const NDArray> heads) override {
    const bool repeats_code = kept != nullptr;  // user code, which runs once per call
    return repeats_code ? Heads::kSame : function->compare_heads(*compiled, heads);
  }
  std::vector<NDArray> backward(std::span<const NDArray> heads, std::span<const NDArray> into) override {
    return function->run_backward(*this, heads, into);
  }
  std::vector<NDArray> differentiable_backward(std::span<const NDArray> inputs,
                                               std::span<const NDArray> heads) override {
    return function->run_differentiable_backward(*this, inputs, heads);
  }
  void visit_saved(const std::function<void(NDArray&)>& visit) override {
    for (SavedArray& source : sources) visit(source.array);
  }

  const Ref<GraphCallable> function;
  const Ref<Compilation> compiled;
  std::vector<SavedArray> sources;  // parallel to compiled->sources; heads are empty
  NDArray residuals;
  std::shared_ptr<KeptObjects> kept;  // null: the plans have no opaque instruction
  RngKey key;
};

// Gradients for one signature, themselves callable and differentiable.
struct GraphCallable::GradientFunction {
  GradientDefinition definition;
  Ref<GraphCallable> function;
};

// True if a plan may write directly into `target` while it reads `inputs`.
inline bool may_write(const NDArray& target, const TensorSpec& spec, std::span<const NDArray> inputs,
                      const std::vector<NDArray>& others) {
  auto shared = [&](const NDArray& other) { return other && overlap(other, target); };
  return target.spec() == spec && !target.is_sparse() && std::none_of(inputs.begin(), inputs.end(), shared) &&
         std::none_of(others.begin(), others.end(), shared);
}

}  // namespace hybridnet
