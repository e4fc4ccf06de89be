#include "op/fallback_kernel.h"

#include <mutex>
#include <set>

#include "base/front_end.h"
#include "base/origin.h"
#include "device/stream.h"
#include "hybridnet/env.h"
#include "op/host_tensors.h"

namespace hybridnet {
namespace {

class FallbackKernel final : public Kernel {
 public:
  FallbackKernel(std::string name, Ref<Kernel> kernel) : name_(std::move(name)), kernel_(std::move(kernel)) {}

  void run(const KernelArgs& args) override {
    device::Stream* const stream = device::current();
    if (stream == nullptr) return kernel_->run(args);
    note_fallback(name_);
    HostTensors in(args.in), out(args.out);
    in.copy_from(*stream, args.in);
    run_on_host(*kernel_, args, in.refs(), out.refs());
    out.copy_to(*stream, args.out);
  }
  bool waits_for_device() const override { return true; }
  std::string description() const override {
    const std::string inner = kernel_->description();
    return inner.empty() ? "on the CPU" : "on the CPU: " + inner;
  }

 private:
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

Ref<Kernel> link_fallback(const Op& op, const LinkContext& c) { return make_fallback(op.name, op.link(on_host(c))); }

}  // namespace hybridnet
