#include "op/checked_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "device/stream.h"
#include "op/agreement.h"
#include "op/host_tensors.h"
#include "op/specs_text.h"

namespace hybridnet {
namespace {

void make_positive(std::span<const TensorRef> tensors) {
  for (const TensorRef& tensor : tensors) {
    if (tensor.data == nullptr || !is_floating(tensor.dtype)) continue;
    dispatch_floating(tensor.dtype, [&](auto zero) {
      using T = decltype(zero);
      for (T& value : std::span(tensor.as<T>(), static_cast<size_t>(tensor.size())))
        value = static_cast<T>(std::abs(static_cast<double>(value)));
    });
  }
}

// Moves each element by this share of itself, up or down as drawn. Whole numbers stay: they may be indices.
void nudge(std::span<const TensorRef> tensors, double share, uint32_t seed) {
  for (const TensorRef& tensor : tensors) {
    if (tensor.data == nullptr || !is_floating(tensor.dtype)) continue;
    dispatch_floating(tensor.dtype, [&](auto zero) {
      using T = decltype(zero);
      for (T& value : std::span(tensor.as<T>(), static_cast<size_t>(tensor.size()))) {
        seed = seed * 1664525U + 1013904223U;
        const auto number = static_cast<double>(value);
        if (number != std::trunc(number)) value = static_cast<T>(number * ((seed >> 31) != 0U ? 1 + share : 1 - share));
      }
    });
  }
}

void copy(std::span<const TensorRef> from, std::span<const TensorRef> to) {
  for (size_t k = 0; k < from.size(); ++k)
    if (from[k].data != nullptr && from[k].size() > 0)
      std::memcpy(to[k].data, from[k].data, static_cast<size_t>(from[k].size() * dtype_size(from[k].dtype)));
}

class CheckedKernel final : public Kernel {
 public:
  CheckedKernel(const Op& op, const LinkContext& c, Ref<Kernel> on_gpu)
      : op_(op), on_gpu_(std::move(on_gpu)), on_cpu_(op.link(on_host(c))) {
    for (const TensorSpec& spec : c.out) agreements_.push_back(agreement_of(op, c, spec.dtype));
  }

  void run(const KernelArgs& args) override {
    device::Stream* const stream = device::current();
    if (stream == nullptr) return on_gpu_->run(args);
    HostTensors in(args.in), expected(args.out), found(args.out);
    in.copy_from(*stream, args.in);         // before the kernel: outputs may lie in inputs
    expected.copy_from(*stream, args.out);  // elements that an operator leaves as they are agree
    on_gpu_->run(args);
    found.copy_from(*stream, args.out);
    run_on_host(*on_cpu_, args, in.refs(), expected.refs());
    for (size_t i = 0; i < args.out.size(); ++i)
      if (args.out[i].data != nullptr && args.out[i].size() > 0) compare(args, i, in, found.refs(), expected.refs());
  }
  int64_t workspace_bytes() const override { return on_gpu_->workspace_bytes(); }
  bool waits_for_device() const override { return true; }
  std::string description() const override { return on_gpu_->description(); }

 private:
  void compare(const KernelArgs& args, size_t i, HostTensors& in, std::span<const TensorRef> found,
               std::span<const TensorRef> expected) const {
    const Agreement& agreement = agreements_[i];
    const double largest = agreement.kind == Agreement::Kind::kRounding ? largest_magnitude(expected[i]) : 0;
    std::optional<Difference> difference = first_difference(found[i], expected[i], agreement, largest);
    if (difference && agreement.kind == Agreement::Kind::kRounding)
      difference = first_difference(found[i], expected[i], agreement,
                                    std::max(largest, magnitude_without_cancellation(args, i, in, expected)));
    if (difference && agreement.kind == Agreement::Kind::kRounding && agreement.share() > 0)
      difference = first_difference(found[i], expected[i], agreement,
                                    std::max(largest, change_by_rounding(args, i, in, expected) / agreement.share()));
    if (difference) fail(args, i, *difference);
  }

  // Rounding is relative to the terms of a sum, which may be much larger than the sum. Inputs without their signs give
  // the sum of the terms' magnitudes.
  double magnitude_without_cancellation(const KernelArgs& args, size_t i, HostTensors& in,
                                        std::span<const TensorRef> expected) const {
    HostTensors positive(args.in), out(args.out);
    copy(in.refs(), positive.refs());
    copy(expected, out.refs());  // elements that an operator leaves as they are
    make_positive(positive.refs());
    try {
      run_on_host(*on_cpu_, args, positive.refs(), out.refs());
    } catch (const Error&) {
      return 0;  // the operator does not allow such inputs
    }
    return largest_magnitude(out.refs()[i]);
  }

  // A function that follows a sum inside of the operator, or a difference of sums, may enlarge the rounding of terms:
  // the most that an element changes where the inputs change by the tolerance.
  double change_by_rounding(const KernelArgs& args, size_t i, HostTensors& in,
                            std::span<const TensorRef> expected) const {
    double most = 0;
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      HostTensors moved(args.in), out(args.out);
      copy(in.refs(), moved.refs());
      copy(expected, out.refs());  // elements that an operator leaves as they are
      nudge(moved.refs(), agreements_[i].share(), seed);
      try {
        run_on_host(*on_cpu_, args, moved.refs(), out.refs());
      } catch (const Error&) {
        return most;  // the operator does not allow such inputs
      }
      most = std::max(most, largest_change(out.refs()[i], expected[i]));
    }
    return most;
  }

  [[noreturn]] void fail(const KernelArgs& args, size_t i, const Difference& difference) const {
    const Device device = device::current()->device();
    throw EngineError({.op = op_.name,
                       .message = "HYBRIDNET_CUDA_CHECK: element " + std::to_string(difference.element) +
                                  " of output " + std::to_string(i) + " ('" +
                                  op_.output_name(args.params, static_cast<int>(i)) + "', " +
                                  specs_text(args.out.subspan(i, 1)) + ") is " + difference.found + " on " +
                                  device.str() + " and " + difference.expected + " on the CPU",
                       .because = "the inputs " + specs_text(args.in) + " promise " + agreements_[i].text(),
                       .fix = "report it with this text; the operator runs on the CPU with x.as_in_context(mx.cpu())"});
  }

  const Op& op_;
  const Ref<Kernel> on_gpu_, on_cpu_;
  std::vector<Agreement> agreements_;  // by output
};

}  // namespace

bool can_be_checked(const Op& op) { return !op.opaque; }

Ref<Kernel> link_checked(const Op& op, const LinkContext& c, Ref<Kernel> kernel) {
  return Ref<Kernel>(new CheckedKernel(op, c, std::move(kernel)));
}

}  // namespace hybridnet
