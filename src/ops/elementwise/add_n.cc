// Sum of any number of arrays.
#include "kernels/elementwise/add_n.h"

#include "hybridnet/declare.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {

struct AddNParams {
  int32_t num_args;
  static void describe(ParamSchema<AddNParams>& schema) {
    schema.field("num_args", &AddNParams::num_args).at_least(1).doc("Number of arrays.");
  }
};

void run_add_n(const AddNParams&, const KernelArgs& a) {
  constexpr size_t kFew = 32;
  const void* few[kFew];
  std::vector<const void*> many(a.in.size() > kFew ? a.in.size() : 0);
  const void** in = a.in.size() > kFew ? many.data() : few;
  for (size_t i = 0; i < a.in.size(); ++i) in[i] = a.in[i].data;
  kernels::add_n(a.out[0].dtype, {in, a.in.size()}, a.out[0].data, a.out[0].size());
}

}  // namespace

void register_add_n(OpRegistry& ops) {
  ops.declare<AddNParams>("add_n")
      .alias("ElementWiseSum")
      .alias("_sparse_add_n")
      .alias("_sparse_ElementWiseSum")
      .doc("Sum of several arrays of equal shape and dtype, in one pass over memory.")
      .variadic_input("args", "num_args", "arrays of equal shape and dtype")
      .output("out", "shape and dtype of the inputs")
      .num_inputs([](const AddNParams& p) { return p.num_args; })
      .infer([](const AddNParams&, InferContext& c) { infer_elementwise(c); })
      .any_device()
      .cpu(run_add_n)
      .format_agnostic()
      .inplace(0, 0)
      .gradient([](const AddNParams&,
                   const GradientContext& g) { return Values(static_cast<size_t>(g.num_inputs()), g.output_grad(0)); },
                Saves::nothing())
      .amp(AmpType::kWidest)
      .sparse(SparseForm::kRowSums, SparseGradient::kOnSparse)
      .sample({{3, 4}, {3, 4}, {3, 4}}, {{"num_args", "3"}})
      .sample({Shape{2, 3}}, {{"num_args", "1"}});
}

}  // namespace hybridnet::ops
