// Conversions between dtypes.
#include "hybridnet/declare.h"
#include "kernels/elementwise/convert.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {

struct CastParams {
  DType dtype;
  static void describe(ParamSchema<CastParams>& schema) {
    schema.field("dtype", &CastParams::dtype).doc("Dtype of the output.");
  }
};

void infer_cast(const CastParams& p, InferContext& c) {
  c.unify_shapes();
  c.set_out_dtype(0, p.dtype);
}

void run_cast(const CastParams&, const KernelArgs& a) {
  kernels::convert_parallel(a.in[0].dtype, a.in[0].data, a.out[0].dtype, a.out[0].data, a.out[0].size());
}

// Called for integers only if their gradient was requested.
Values cast_gradient(const CastParams&, const GradientContext& g) {
  return {cast(g.output_grad(0), g.input_spec(0).dtype)};
}

}  // namespace

void register_cast(OpRegistry& ops) {
  ops.declare<CastParams>("Cast")
      .alias("cast")
      .alias("_npi_cast")
      .alias("_npx_cast")
      .doc(
          "Converts to another dtype. Floating to integer rounds toward zero; values that do not fit wrap around. "
          "Values beyond int64 are clamped to its limits first, and NaN becomes 0. To bool: anything but 0 is true.")
      .input("data", "array of any shape and dtype")
      .output("out", "shape of data, dtype given by the parameter")
      .infer(infer_cast)
      .any_device()
      .cpu(run_cast)
      .format_agnostic()
      .gradient(cast_gradient, Saves::nothing())
      .keeps_zeros()
      .sparse(SparseForm::kOnValues, SparseGradient::kOnSparse)
      .sample({{3, 4}}, {{"dtype", "float64"}})
      .sample({.inputs = {{3, 4}}, .attrs = {{"dtype", "float32"}}, .check_gradient = false, .note = "float32 rounds"})
      .sample({.inputs = {{3, 4}}, .attrs = {{"dtype", "int32"}}, .check_gradient = false, .note = "a step function"})
      .sample({.inputs = {{0, 4}}, .attrs = {{"dtype", "float16"}}, .check_gradient = false, .note = "float16 rounds"});
  ops.declare<CastParams>("amp_cast")
      .doc("Converts float32, float16 and bfloat16 for mixed precision; other inputs are returned unchanged.")
      .input("data", "array of any shape and dtype")
      .output("out", "shape of data")
      .infer([](const CastParams& p, InferContext& c) {
        c.unify_shapes();
        const DType from = c.in_dtype(0);
        const bool stays = !is_floating(from) || from == DType::kFloat64;
        if (from != DType::kUnknown) c.set_out_dtype(0, stays ? from : p.dtype);
      })
      .any_device()
      .cpu(run_cast)
      .format_agnostic()
      .gradient(cast_gradient, Saves::nothing())
      .sample({{3, 4}}, {{"dtype", "float64"}})
      .sample({.inputs = {{3, 4}}, .attrs = {{"dtype", "float32"}}, .check_gradient = false, .note = "float32 rounds"});
}

}  // namespace hybridnet::ops
