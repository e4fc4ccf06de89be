// _subgraph and _native_subgraph: a part of a graph compiled by a backend, as one instruction. A part that calls Python
// runs on the caller's thread, like an operator written in Python; native code runs on any thread of the plan.
#include <cstring>
#include <optional>

#include "hybridnet/declare.h"
#include "hybridnet/engine.h"
#include "op/backend_part.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

const OpRef kSubgraph{"_subgraph"}, kNativeSubgraph{"_native_subgraph"};

class PartKernel final : public Kernel {
 public:
  explicit PartKernel(BackendUse use) : use_(std::move(use)) {}

  void run(const KernelArgs& args) override {
    if (!use_.part) return give_back(args);
    std::optional<UserCodeScope> user_code;
    if (!use_.part->facts().native) user_code.emplace();
    if (use_.gradient)
      use_.part->run_gradient(args.in, args.out, args.train);
    else
      use_.part->run(args.in, args.out, args.train);
  }
  std::string description() const override { return use_.backend + "[" + use_.holds + "]"; }

 private:
  static void give_back(const KernelArgs& args) {
    for (size_t i = 0; i < args.out.size(); ++i)
      if (const int64_t bytes = args.out[i].size() * dtype_size(args.out[i].dtype); bytes > 0)
        std::memcpy(args.out[i].data, args.in[i].data, static_cast<size_t>(bytes));
  }

  const BackendUse use_;
};

void set_in(InferContext& c, size_t i, const TensorSpec& spec) {
  c.set_in_shape(static_cast<int>(i), spec.shape);
  c.set_in_dtype(static_cast<int>(i), spec.dtype);
}

void set_out(InferContext& c, size_t i, const TensorSpec& spec) {
  c.set_out_shape(static_cast<int>(i), spec.shape);
  c.set_out_dtype(static_cast<int>(i), spec.dtype);
}

// A part is valid only for the sizes that it was compiled for.
void infer_part(const BackendUse& use, InferContext& c) {
  if (!use.part) {
    for (int i = 0; i < c.num_out(); ++i) set_out(c, static_cast<size_t>(i), c.in(i));
    return;
  }
  const auto &in = use.part->facts().in, &out = use.part->facts().out;
  size_t at = 0;
  if (use.gradient)
    for (const TensorSpec& spec : out) set_in(c, at++, spec);
  for (const TensorSpec& spec : in) set_in(c, at++, spec);
  if (use.gradient)
    for (const TensorSpec& spec : out) set_in(c, at++, spec);
  const auto& results = use.gradient ? in : out;
  for (size_t i = 0; i < results.size(); ++i) set_out(c, i, results[i]);
}

Values part_gradient(const BackendUse& use, const GradientContext& g) {
  if (use.gradient)
    throw GradientError({.op = "_subgraph",
                         .message = "backend '" + use.backend + "' has no gradient of its gradient",
                         .fix = "leave the backend out for this graph: hybridize(exclude=['" + use.backend + "'])"});
  Values inputs;
  for (int i = 0; i < g.num_outputs(); ++i)
    inputs.push_back(g.output_grad(i) ? g.output_grad(i) : zeros_like(g.output(i)));
  if (!use.part) return inputs;
  if (!use.part->facts().has_gradient)
    throw GradientError({.op = "_subgraph",
                         .message = "backend '" + use.backend + "' has no gradient",
                         .fix = "give partition() a position behind differentiation, or let make() give a backward"});
  for (int i = 0; i < g.num_inputs(); ++i) inputs.push_back(g.input(i));
  for (int i = 0; i < g.num_outputs(); ++i) inputs.push_back(g.output(i));
  const OpRef& op = use.part->facts().native ? kNativeSubgraph : kSubgraph;
  return call_all(op, inputs, ParamSchema<BackendUse>::box(BackendUse::of(use.part, true)));
}

double part_cost(const BackendUse& use, std::span<const TensorSpec> in, std::span<const TensorSpec>) {
  if (use.part) return static_cast<double>(use.part->facts().cost_ns) * (use.gradient ? 2 : 1);
  return in.empty() ? 0 : static_cast<double>(in[0].bytes()) / 16;
}

OpBuilder<BackendUse>& describe_part(OpBuilder<BackendUse>& op) {
  return op.internal()
      .variadic_input("data", "num_args",
                      "the inputs of the part; for a gradient: gradients of outputs, inputs, outputs")
      .output("output", "shape and dtype declared by the backend")
      .num_outputs([](const BackendUse& use) { return use.num_outputs(); })
      .infer(infer_part)
      .link([](const BackendUse& use, const LinkContext&) { return Ref<Kernel>(new PartKernel(use)); }, kAllDTypes)
      .gradient(part_gradient, Saves::all())
      .cost(part_cost)
      .may_raise()
      .sample({{2, 3}, {4}}, {{"num_args", "2"}});
}

}  // namespace

void register_subgraph(OpRegistry& ops) {
  auto subgraph = ops.declare<BackendUse>("_subgraph");
  describe_part(subgraph).opaque().doc("A part of a graph that a backend written in Python runs.");
  auto native = ops.declare<BackendUse>("_native_subgraph");
  describe_part(native).doc("A part of a graph that a backend has compiled to machine code.");
}

}  // namespace hybridnet::ops
