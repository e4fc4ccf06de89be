// Arithmetic of an array and a number.
#include <algorithm>

#include "device/stream.h"
#include "hybridnet/op.h"
#include "kernels/elementwise/device_map.h"
#include "ops/elementwise/scalar.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

const OpRef kDivGrad{"_backward_div_rhs"};

Values pass(const ScalarParams&, const GradientContext& g) { return {g.output_grad(0)}; }

}  // namespace

void ScalarParams::describe(ParamSchema<ScalarParams>& schema) {
  schema.field("scalar", &ScalarParams::scalar).default_value(1.0).doc("The number.");
  schema.field("is_int", &ScalarParams::is_int)
      .default_value(true)
      .doc("False: an integer array produces float64 instead of its dtype.");
}

void infer_scalar(const ScalarParams& p, InferContext& c) {
  c.unify_shapes();
  const DType in = c.in_dtype(0);
  if (is_integer(in) && !p.is_int) return c.set_out_dtype(0, DType::kFloat64);
  if (in == DType::kBool) return c.set_out_dtype(0, p.is_int ? DType::kInt64 : DType::kFloat64);
  c.unify_dtypes();
}

bool is_beyond(DType dtype, double number) {
  if (dtype == DType::kUInt8) return !(number > -1.0 && number < 256.0);
  if (dtype == DType::kInt8) return !(number > -129.0 && number < 128.0);
  return dtype == DType::kInt32 && !(number > -2147483649.0 && number < 2147483648.0);
}

void apply_in_int64(const kernels::SpanLoops& loops, double scalar, kernels::Repeat side, DType dtype, const void* data,
                    void* out, int64_t n) {
  if (device::current()) return kernels::number_on_device({loops, dtype, DType::kInt64}, scalar, side, data, out, n);
  constexpr int64_t kTile = 512;
  int64_t tile[kTile], number = 0;
  kernels::store_scalar(DType::kInt64, scalar, &number);
  const void* in[2] = {tile, tile};
  in[side == kernels::Repeat::kFirst ? 0 : 1] = &number;
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t count = std::min(kTile, n - i), offset = i * dtype_size(dtype);
    kernels::convert(dtype, static_cast<const char*>(data) + offset, DType::kInt64, tile, count);
    kernels::apply(loops, DType::kInt64, in, tile, count, nullptr, side);
    kernels::convert(DType::kInt64, tile, dtype, static_cast<char*>(out) + offset, count);
  }
}

void register_scalar_arithmetic(OpRegistry& ops) {
  scalar_op<Pointwise::kAdd, kScalarRight>(ops, "_plus_scalar", "data + scalar.")
      .alias("_PlusScalar")
      .alias("_scatter_plus_scalar")
      .identity_when([](const ScalarParams& p, bool) { return p.scalar == 0 && p.is_int; })
      .gradient(pass, Saves::nothing())
      .sample({{3, 4}}, {{"scalar", "1.5"}})
      .sample({Shape{0, 4}}, {{"scalar", "2"}});
  scalar_op<Pointwise::kSub, kScalarRight>(ops, "_minus_scalar", "data - scalar.")
      .alias("_MinusScalar")
      .alias("_scatter_minus_scalar")
      .gradient(pass, Saves::nothing())
      .sample({{3, 4}}, {{"scalar", "1.5"}});
  scalar_op<Pointwise::kSub, kScalarLeft>(ops, "_rminus_scalar", "scalar - data.")
      .alias("_RMinusScalar")
      .gradient([](const ScalarParams&, const GradientContext& g) -> Values { return {-g.output_grad(0)}; },
                Saves::nothing())
      .sample({{3, 4}}, {{"scalar", "1.5"}});
  scalar_op<Pointwise::kMul, kScalarRight>(ops, "_mul_scalar", "data * scalar.")
      .alias("_MulScalar")
      .gradient([](const ScalarParams& p, const GradientContext& g) -> Values { return {g.output_grad(0) * p.scalar}; },
                Saves::nothing())
      .sample({{3, 4}}, {{"scalar", "-2.5"}});
  scalar_op<Pointwise::kDiv, kScalarRight>(ops, "_div_scalar", "data / scalar. Integers: rounded toward zero.")
      .alias("_DivScalar")
      .gradient([](const ScalarParams& p, const GradientContext& g) -> Values { return {g.output_grad(0) / p.scalar}; },
                Saves::nothing())
      .sample({{3, 4}}, {{"scalar", "2.5"}});
  scalar_op<Pointwise::kDiv, kScalarLeft>(ops, "_rdiv_scalar",
                                          "scalar / data. Integers: rounded toward zero, 0 where data is 0.")
      .alias("_RDivScalar")
      .gradient(
          [](const ScalarParams&, const GradientContext& g) -> Values {
            return {call(kDivGrad, {g.output_grad(0), g.output(0), g.input(0)})};
          },
          Saves::all())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {{"scalar", "2.5"}}, 0.5, 2.0);
}

}  // namespace hybridnet::ops
