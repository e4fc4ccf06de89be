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

bool computes_nothing(const Op& op, std::span<const TensorSpec> in, std::span<const TensorSpec> out) {
  if (out.empty() || !std::all_of(out.begin(), out.end(), is_empty)) return false;
  if (op.opaque || !op.subgraph_names.empty()) return false;
  return op.total || (!in.empty() && std::all_of(in.begin(), in.end(), is_empty));
}

Ref<Kernel> make_empty_kernel() { return Ref<Kernel>(new EmptyKernel); }

}  // namespace hybridnet
