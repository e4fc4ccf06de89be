// The declaration of `_gradient`. Differentiation removes the node from every graph that has losses
// (passes/gradient/gradient.cc).
#include "graph/gradient_node.h"

#include <cstring>

#include "hybridnet/declare.h"

namespace hybridnet::ops {
namespace {

void infer_gradient(const GradientSpec& p, InferContext& c) {
  if (p.num_losses > c.num_in()) {
    throw ParamError({.input = "num_losses",
                      .expected = "at most " + std::to_string(c.num_in()) + ", the number of inputs",
                      .given = std::to_string(p.num_losses)});
  }
  for (int i = 0; i < c.num_out(); ++i) {
    const int variable = p.num_losses + i;
    c.set_in_shape(variable, c.out_shape(i));
    c.set_in_dtype(variable, c.out_dtype(i));
    c.set_out_shape(i, c.in_shape(variable));
    c.set_out_dtype(i, c.in_dtype(variable));
  }
}

// Without losses the gradients are zeros.
void fill_zeros(const GradientSpec&, const KernelArgs& a) {
  for (const TensorRef& out : a.out)
    if (const int64_t bytes = out.size() * dtype_size(out.dtype); bytes > 0)
      std::memset(out.data, 0, static_cast<size_t>(bytes));
}

}  // namespace

void register_gradient_node(OpRegistry& ops) {
  ops.declare<GradientSpec>("_gradient")
      .doc("The gradients of the sum of all elements of the losses, one per variable; for graphs.")
      .variadic_input("data", "num_args", "num_losses losses, then variables of the graph")
      .output("gradient", "one per variable, with its shape and dtype")
      .num_outputs([](const GradientSpec& p) { return p.num_variables(); })
      .infer(infer_gradient)
      .link(
          [](const GradientSpec& p, const LinkContext&) -> Ref<Kernel> {
            if (p.num_losses == 0) return function_kernel<GradientSpec>(fill_zeros);
            throw UnsupportedError({.op = "_gradient",
                                    .message = "gradients of losses are nodes of whole graphs only",
                                    .because = "arrays have no record of their computation, and bodies of loops and "
                                               "branches do not see the graph around them",
                                    .fix = "use autograd.record() and backward() for arrays"});
          },
          kAllDTypes)
      .gradient(kNotDifferentiable)
      .internal()
      .allowed_in_files()
      .sample({{3, 4}, {2}}, {{"num_losses", "0"}});
}

}  // namespace hybridnet::ops
