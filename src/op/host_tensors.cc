#include "op/host_tensors.h"

#include <optional>

namespace hybridnet {
namespace {

int64_t bytes_of(const TensorRef& tensor) { return tensor.size() * dtype_size(tensor.dtype); }

}  // namespace

HostTensors::HostTensors(std::span<const TensorRef> tensors) : refs_(tensors.begin(), tensors.end()) {
  for (TensorRef& ref : refs_) {
    ref.derived = nullptr;  // the copy is new each time
    ref.last_copy = nullptr;
    if (ref.data == nullptr || bytes_of(ref) == 0) continue;
    ref.data = blocks_.emplace_back(std::make_unique<OwnedBlock>(bytes_of(ref)))->data();
  }
}

void HostTensors::copy_from(device::Stream& stream, std::span<const TensorRef> tensors) {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].data != nullptr) stream.copy_out(refs_[i].data, tensors[i].data, bytes_of(tensors[i]));
}

void HostTensors::copy_to(device::Stream& stream, std::span<const TensorRef> tensors) const {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].data != nullptr) stream.copy_in(tensors[i].data, refs_[i].data, bytes_of(tensors[i]));
}

void run_on_host(Kernel& kernel, const KernelArgs& args, std::span<const TensorRef> in,
                 std::span<const TensorRef> out) {
  const device::Scope on_cpu(nullptr);
  KernelArgs host = args;
  host.in = in;
  host.out = out;
  host.workspace = nullptr;
  std::optional<OwnedBlock> workspace;
  if (const int64_t bytes = kernel.workspace_bytes(); bytes > 0) host.workspace = workspace.emplace(bytes).data();
  kernel.run(host);
}

LinkContext on_host(const LinkContext& c) {
  LinkContext host = c;
  host.device = {};
  host.frozen_weights = false;  // they are copied in each run, so packing them would serve only that run
  return host;
}

}  // namespace hybridnet
