#include "op/fallback_kernel.h"

#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "base/front_end.h"
#include "base/origin.h"
#include "device/stream.h"
#include "hybridnet/env.h"
#include "hybridnet/storage.h"

namespace hybridnet {
namespace {

// The tensors of a call in memory of the CPU.
class HostTensors {
 public:
  explicit HostTensors(std::span<const TensorRef> tensors) : refs_(tensors.begin(), tensors.end()) {
    for (size_t i = 0; i < refs_.size(); ++i) {
      refs_[i].derived = nullptr;  // the copy is new each time
      refs_[i].last_copy = nullptr;
      const int64_t bytes = bytes_of(i);
      if (refs_[i].data == nullptr || bytes == 0) continue;
      refs_[i].data = blocks_.emplace_back(std::make_unique<OwnedBlock>(bytes))->data();
    }
  }
  int64_t bytes_of(size_t i) const { return refs_[i].size() * dtype_size(refs_[i].dtype); }
  std::span<TensorRef> refs() { return refs_; }

 private:
  std::vector<TensorRef> refs_;
  std::vector<std::unique_ptr<OwnedBlock>> blocks_;
};

class FallbackKernel final : public Kernel {
 public:
  FallbackKernel(std::string name, Ref<Kernel> kernel) : name_(std::move(name)), kernel_(std::move(kernel)) {}

  void run(const KernelArgs& args) override {
    device::Stream* const stream = device::current();
    if (stream == nullptr) return kernel_->run(args);
    note_fallback(name_);
    HostTensors in(args.in), out(args.out);
    for (size_t i = 0; i < args.in.size(); ++i)
      if (args.in[i].data != nullptr) stream->copy_out(in.refs()[i].data, args.in[i].data, in.bytes_of(i));
    run_on_cpu(args, in.refs(), out.refs());
    for (size_t i = 0; i < args.out.size(); ++i)
      if (args.out[i].data != nullptr) stream->copy_in(args.out[i].data, out.refs()[i].data, out.bytes_of(i));
  }
  bool waits_for_device() const override { return true; }
  std::string description() const override {
    const std::string inner = kernel_->description();
    return inner.empty() ? "on the CPU" : "on the CPU: " + inner;
  }

 private:
  void run_on_cpu(const KernelArgs& args, std::span<const TensorRef> in, std::span<const TensorRef> out) {
    const device::Scope on_cpu(nullptr);
    KernelArgs host = args;
    host.in = in;
    host.out = out;
    std::optional<OwnedBlock> workspace;
    if (const int64_t bytes = kernel_->workspace_bytes(); bytes > 0) host.workspace = workspace.emplace(bytes).data();
    kernel_->run(host);
  }

  const std::string name_;
  const Ref<Kernel> kernel_;
};

}  // namespace

void note_fallback(const std::string& name) {
  const std::string& choice = environment().gpu_fallback;
  if (choice == "ignore") return;
  if (choice == "error") {
    throw UnsupportedError({.op = name,
                            .message = "the operator has no form for GPUs, and HYBRIDNET_GPU_FALLBACK is 'error'",
                            .fix = "move its inputs to the CPU: x.as_in_context(mx.cpu())"});
  }
  static std::mutex mutex;
  static auto* const said = new std::set<std::string>;
  {
    const std::lock_guard lock(mutex);
    if (!said->insert(name).second) return;
  }
  warn(name + " has no form for GPUs: it runs on the CPU, and its inputs and outputs are copied" +
           " (HYBRIDNET_GPU_FALLBACK=error makes this an error, =ignore silences it)",
       OriginScope::current().where, WarningKind::kGpuFallback);
}

Ref<Kernel> make_fallback(const std::string& name, Ref<Kernel> kernel) {
  return Ref<Kernel>(new FallbackKernel(name, std::move(kernel)));
}

Ref<Kernel> link_fallback(const Op& op, const LinkContext& c) {
  LinkContext on_cpu = c;
  on_cpu.device = {};
  on_cpu.frozen_weights = false;  // they are copied in each run, so packing them would serve only that run
  return make_fallback(op.name, op.link(on_cpu));
}

}  // namespace hybridnet
