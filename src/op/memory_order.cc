#include "op/memory_order.h"

#include <algorithm>
#include <memory>

namespace hybridnet {
namespace {

struct Use {
  const TensorSpec& spec;
  Format format;
};

// Specs and formats of the inputs, then of the outputs.
std::vector<Use> uses_of(const LinkContext& c) {
  std::vector<Use> uses;
  const auto add = [&](std::span<const TensorSpec> specs, std::span<const Format> formats) {
    for (size_t i = 0; i < specs.size(); ++i) uses.push_back({specs[i], formats.empty() ? Format::kPlain : formats[i]});
  };
  add(c.in, c.in_format);
  add(c.out, c.out_format);
  return uses;
}

Shape in_memory_order(const Shape& shape) {
  Shape result = shape;
  const std::vector<int> moved_to = channels_last_axes(shape.ndim());
  for (int i = 0; i < shape.ndim(); ++i) result[moved_to[static_cast<size_t>(i)]] = shape[i];
  return result;
}

[[noreturn]] void throw_misplaced(const Op& op, std::string message) {
  throw Error(ErrorKind::kError, {.op = op.name,
                                  .message = std::move(message),
                                  .fix = "report this; HYBRIDNET_PASSES=fast_run,-channels_last goes around it"});
}

// The specs of inputs and outputs with their axes in memory order.
std::vector<TensorSpec> reordered_specs(const Op& op, const std::vector<Use>& uses, int ndim) {
  std::vector<TensorSpec> specs;
  for (const Use& use : uses) {
    TensorSpec spec = use.spec;
    if (spec.shape.ndim() == ndim) {
      if (use.format == Format::kPlain && spec.shape.size(2, ndim) != 1)
        throw_misplaced(op, "a plain image " + spec.shape.str() + " meets channels-last ones");
      spec.shape = in_memory_order(spec.shape);
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

class ReorderedKernel final : public Kernel {
 public:
  ReorderedKernel(const Op& op, ParamsPtr params, const std::vector<TensorSpec>& specs, const LinkContext& c)
      : params_(std::move(params)) {
    for (const TensorSpec& spec : specs) shapes_.push_back(spec.shape);
    LinkContext inner = c;
    if (params_) inner.params = params_->data();
    inner.in = std::span(specs).first(c.in.size());
    inner.out = std::span(specs).subspan(c.in.size());
    inner.in_format = inner.out_format = {};
    kernel_ = op.link(inner);
  }
  int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  std::string description() const override { return kernel_->description(); }

  void run(const KernelArgs& args) override {
    TensorRef few[kFew];
    std::unique_ptr<TensorRef[]> many;
    TensorRef* refs = few;
    if (shapes_.size() > kFew) refs = (many = std::make_unique<TensorRef[]>(shapes_.size())).get();
    std::copy(args.in.begin(), args.in.end(), refs);
    std::copy(args.out.begin(), args.out.end(), refs + args.in.size());
    for (size_t i = 0; i < shapes_.size(); ++i) {
      refs[i].shape = &shapes_[i];
      refs[i].format = Format::kPlain;
    }
    KernelArgs inner = args;
    if (params_) inner.params = params_->data();
    inner.in = {refs, args.in.size()};
    inner.out = {refs + args.in.size(), args.out.size()};
    kernel_->run(inner);
  }

 private:
  static constexpr size_t kFew = 12;

  const ParamsPtr params_;  // null: the parameters of the call, which number no axes
  Ref<Kernel> kernel_;
  std::vector<Shape> shapes_;  // shapes of inputs, then of outputs
};

// False if all shapes are equal, or a single number: then the order of axes makes no difference to elementwise work.
bool broadcasts(const LinkContext& c) {
  return std::any_of(c.in.begin(), c.in.end(),
                     [&](const TensorSpec& spec) { return !(spec.shape == c.out[0].shape) && spec.shape.size() != 1; });
}

int image_rank(const std::vector<Use>& uses) {
  for (const Use& use : uses)
    if (use.format == Format::kChannelsLast) return use.spec.shape.ndim();
  return 0;
}

}  // namespace

std::vector<int> channels_last_axes(int ndim) {
  std::vector<int> moved_to(static_cast<size_t>(ndim));
  for (int i = 0; i < ndim; ++i) moved_to[static_cast<size_t>(i)] = i < 1 ? i : i == 1 ? ndim - 1 : i - 1;
  return moved_to;
}

bool needs_memory_order(const Op& op, const LinkContext& c) {
  if (!op.renumbered_params && !op.pointwise) return false;
  if (op.pointwise && !broadcasts(c)) return false;
  return image_rank(uses_of(c)) > 0;
}

Ref<Kernel> link_in_memory_order(const Op& op, const LinkContext& c) {
  const std::vector<Use> uses = uses_of(c);
  const int ndim = image_rank(uses);
  ParamsPtr params;
  if (op.renumbered_params) params = op.renumbered_params(c.params, channels_last_axes(ndim));
  if (op.renumbered_params && !params)
    throw_misplaced(op, "its parameters cannot number axes in the order of channels-last memory");
  return Ref<Kernel>(new ReorderedKernel(op, std::move(params), reordered_specs(op, uses, ndim), c));
}

}  // namespace hybridnet
