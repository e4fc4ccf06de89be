#include "op/through_float.h"

#include <vector>

#include "device/convert.h"
#include "device/stream.h"
#include "hybridnet/threads.h"
#include "storage/temporary.h"

namespace hybridnet {
namespace {

constexpr double kElementNs = 1.2;
constexpr int64_t kAlignment = 64;

void to_float(const TensorRef& from, float* to) {
  if (device::current()) return device::convert(from.dtype, from.data, DType::kFloat32, to, from.size());
  dispatch_floating(from.dtype, [&](auto zero) {
    const auto* source = from.as<decltype(zero)>();
    parallel_for(from.size(), kElementNs, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<float>(source[i]);
    });
  });
}

void from_float(const float* from, const TensorRef& to) {
  if (device::current()) return device::convert(DType::kFloat32, from, to.dtype, to.data, to.size());
  dispatch_floating(to.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* target = to.as<T>();
    parallel_for(to.size(), kElementNs, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) target[i] = static_cast<T>(from[i]);
    });
  });
}

class ThroughFloatKernel final : public Kernel {
 public:
  ThroughFloatKernel(Ref<Kernel> inner, std::span<const TensorSpec> in, std::span<const TensorSpec> out)
      : inner_(std::move(inner)) {
    bytes_ = aligned(inner_->workspace_bytes());
    for (const TensorSpec& s : in) in_offset_.push_back(place(s));
    for (const TensorSpec& s : out) out_offset_.push_back(place(s));
  }

  int64_t workspace_bytes() const override { return bytes_; }

  void run(const KernelArgs& args) override {
    Temporary<TensorRef> in(args.in.begin(), args.in.end()), out(args.out.begin(), args.out.end());
    char* space = static_cast<char*>(args.workspace);
    for (size_t i = 0; i < in.size(); ++i) {
      if (in_offset_[i] < 0) continue;
      in[i].data = space + in_offset_[i];
      in[i].dtype = DType::kFloat32;
      in[i].derived = nullptr;  // the copy is new each time
      to_float(args.in[i], in[i].as<float>());
    }
    for (size_t i = 0; i < out.size(); ++i) {
      if (out_offset_[i] < 0 || !out[i].data) continue;
      out[i].data = space + out_offset_[i];
      out[i].dtype = DType::kFloat32;
    }
    KernelArgs inner = args;
    inner.in = in;
    inner.out = out;
    inner_->run(inner);
    for (size_t i = 0; i < out.size(); ++i)
      if (out_offset_[i] >= 0 && out[i].data) from_float(out[i].as<float>(), args.out[i]);
  }

 private:
  static int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
  int64_t place(const TensorSpec& spec) {
    if (!is_half(spec.dtype)) return -1;
    const int64_t offset = bytes_;
    bytes_ += aligned(std::max<int64_t>(spec.shape.size(), 1) * static_cast<int64_t>(sizeof(float)));
    return offset;
  }
  Ref<Kernel> inner_;
  std::vector<int64_t> in_offset_, out_offset_;  // offset of the converted copy in the workspace; -1: not converted
  int64_t bytes_ = 0;
};

std::vector<TensorSpec> widened(std::span<const TensorSpec> specs) {
  std::vector<TensorSpec> wide(specs.begin(), specs.end());
  for (TensorSpec& s : wide)
    if (is_half(s.dtype)) s.dtype = DType::kFloat32;
  return wide;
}

}  // namespace

Ref<Kernel> link_through_float(const LinkContext& c, const std::function<Ref<Kernel>(const LinkContext&)>& link) {
  const std::vector<TensorSpec> in = widened(c.in), out = widened(c.out);
  LinkContext inner = c;
  inner.in = in;
  inner.out = out;
  inner.frozen_weights = false;  // they are converted in each run, so packing them would serve only that run
  return Ref<Kernel>(new ThroughFloatKernel(link(inner), c.in, c.out));
}

}  // namespace hybridnet
