// _linalg_syrk: products of matrices with their own transposes.
#include "device/stream.h"
#include "hybridnet/declare.h"
#include "kernels/product/device_product.h"
#include "kernels/product/gemm.h"
#include "ops/cost.h"
#include "ops/linalg/matrices.h"
#include "ops/linalg/matrix_rules.h"

namespace hybridnet::ops {
namespace {

struct SyrkParams {
  bool transpose;
  double alpha;
  static void describe(ParamSchema<SyrkParams>& schema) {
    schema.field("transpose", &SyrkParams::transpose)
        .default_value(false)
        .doc("Whether to compute A^T A instead of A A^T.");
    schema.field("alpha", &SyrkParams::alpha).default_value(1.0).doc("Factor of the product.");
  }
};

void infer_syrk(const SyrkParams& p, InferContext& c) {
  c.unify_dtypes();
  require_matrices(c, 0, false);
  const Shape& a = c.in_shape(0);
  if (!a.rank_known()) return;
  const int n = a.ndim();
  Shape out = a;
  out[n - 1] = out[n - 2] = p.transpose ? a[n - 1] : a[n - 2];
  c.set_out_shape(0, out);
}

void run_syrk(const SyrkParams& p, const KernelArgs& args) {
  const Matrices a(*args.in[0].shape), out(*args.out[0].shape);
  const int64_t inner = p.transpose ? a.rows : a.columns;
  const auto sizes = kernels::GemmShape::dense(p.transpose, !p.transpose, out.rows, out.rows, inner);
  if (device::current()) {
    if (args.out[0].size() == 0) return;
    const void* const matrix = args.in[0].data;
    return kernels::on_device::gemm(sizes, args.in[0].dtype, p.alpha, matrix, matrix, 0, args.out[0].data,
                                    {a.count, a.step(), a.step(), out.step()});
  }
  dispatch_factor(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each_matrix(a.count, out.rows * a.step(), [&](int64_t i) {
      const T* matrix = args.in[0].as<T>() + i * a.step();
      kernels::gemm(sizes, static_cast<T>(p.alpha), matrix, matrix, T(0), args.out[0].as<T>() + i * out.step());
    });
  });
}

Values syrk_gradient(const SyrkParams& p, const GradientContext& g) {
  const Value out = g.output_grad(0);
  if (!out) return {};
  const Value both = out + matrix_transpose(out);
  return {p.transpose ? matrix_product(g.input(0), both, false, false, p.alpha)
                      : matrix_product(both, g.input(0), false, false, p.alpha)};
}

}  // namespace

void register_syrk(OpRegistry& ops) {
  ops.declare<SyrkParams>("_linalg_syrk")
      .alias("linalg_syrk")
      .doc("alpha A A^T, or alpha A^T A, of every matrix.")
      .input("A", "stack of matrices (..., rows, columns)")
      .output("output", "(..., rows, rows), or (..., columns, columns) if transpose")
      .infer(infer_syrk)
      .cpu(run_syrk, kFactorDTypes)
      .any_device()
      .cost([](const SyrkParams&, auto in, auto out) {
        return 500 + elements(out[0]) * static_cast<double>(Matrices(in[0].shape).rows) / 5;
      })
      .gradient(syrk_gradient, Saves::of({0}))
      .amp(AmpType::kFloat)
      .sample({{2, 3}}, {{"alpha", "0.5"}})
      .sample({{2, 3, 2}}, {{"transpose", "True"}});
}

}  // namespace hybridnet::ops
