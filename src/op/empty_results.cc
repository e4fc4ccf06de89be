#include "op/empty_results.h"

#include <algorithm>

namespace hybridnet {
namespace {

class EmptyKernel final : public Kernel {
 public:
  void run(const KernelArgs&) override {}
  std::string description() const override { return "empty"; }
};

bool is_empty(const TensorSpec& spec) {
  return std::any_of(spec.shape.begin(), spec.shape.end(), [](int64_t size) { return size == 0; });
}

}  // namespace

bool computes_nothing(const Op& op, std::span<const TensorSpec> out) {
  return !out.empty() && is_empty(out[0]) && op.total && !op.opaque && op.subgraph_names.empty() &&
         std::all_of(out.begin() + 1, out.end(), is_empty);
}

Ref<Kernel> make_empty_kernel() { return Ref<Kernel>(new EmptyKernel); }

}  // namespace hybridnet
