// _linalg_trsm and _linalg_trmm: linear systems and products with triangular matrices.
#include "hybridnet/declare.h"
#include "hybridnet/storage.h"
#include "kernels/device/matrix_arguments.h"
#include "kernels/linalg/factorizations.h"
#include "kernels/product/device_product.h"
#include "kernels/product/gemm.h"
#include "ops/cost.h"
#include "ops/device_launch.h"
#include "ops/linalg/matrices.h"
#include "ops/linalg/matrix_rules.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

const OpRef kTrsm{"_linalg_trsm"}, kTrmm{"_linalg_trmm"};

void infer_triangular(const TriangleParams& p, InferContext& c) {
  c.unify_dtypes();
  require_matrices(c, 0, true);
  require_matrices(c, 1, false);
  c.set_out_shape(0, c.in_shape(1));
  c.set_in_shape(1, c.out_shape(0));
  const Shape& b = c.in_shape(1);
  if (!b.rank_known()) return;
  const int n = b.ndim();
  const int64_t size = p.rightside ? b[n - 1] : b[n - 2];
  Shape a = b;
  a[n - 1] = a[n - 2] = size;
  c.set_in_shape(0, a);
}

void keep_on_device(const KeepTriangleParams& p, const Matrices& m, DType dtype, const void* in, void* out) {
  const device::TriangleArguments a{.in = in,
                                    .out = out,
                                    .n = m.count * m.step(),
                                    .rows = m.rows,
                                    .columns = m.columns,
                                    .lower = p.lower,
                                    .diagonal = p.diagonal,
                                    .factor = p.factor};
  on_device::launch("matrices.cuh", "TriangleArguments", on_device::with_dtype("keep_triangle", dtype), a.n, a);
}

// A thread for each vector of B: a column, or a row if the triangle is on the right.
void solve_on_device(const TriangleParams& p, const KernelArgs& args, const Matrices& a, const Matrices& b) {
  const device::SolveArguments s{.triangles = args.in[0].data,
                                 .in = args.in[1].data,
                                 .out = args.out[0].data,
                                 .count = b.count,
                                 .n = a.rows,
                                 .vectors = p.rightside ? b.rows : b.columns,
                                 .step = b.step(),
                                 .vector_step = p.rightside ? b.columns : 1,
                                 .entry_step = p.rightside ? 1 : b.columns,
                                 .lower = p.lower,
                                 .transpose = p.transpose != p.rightside,
                                 .alpha = p.alpha};
  on_device::launch("matrices.cuh", "SolveArguments", on_device::with_dtype("solve_triangular", args.in[0].dtype),
                    s.count * s.vectors, s);
}

void multiply_on_device(const TriangleParams& p, const KernelArgs& args, const kernels::GemmShape& sizes) {
  const Matrices a(*args.in[0].shape), b(*args.in[1].shape);
  if (args.out[0].size() == 0) return;
  const DType dtype = args.in[0].dtype;
  const OwnedBlock triangles(args.in[0].size() * dtype_size(dtype), device::current()->device());
  keep_on_device({p.lower, 1.0, 1.0}, a, dtype, args.in[0].data, triangles.data());
  if (p.rightside)
    return kernels::on_device::gemm(sizes, dtype, p.alpha, args.in[1].data, triangles.data(), 0, args.out[0].data,
                                    {b.count, b.step(), a.step(), b.step()});
  kernels::on_device::gemm(sizes, dtype, p.alpha, triangles.data(), args.in[1].data, 0, args.out[0].data,
                           {b.count, a.step(), b.step(), b.step()});
}

void run_trsm(const TriangleParams& p, const KernelArgs& args) {
  const Matrices a(*args.in[0].shape), b(*args.in[1].shape);
  if (device::current()) return solve_on_device(p, args, a, b);
  copy_tensor(args.in[1], args.out[0]);
  dispatch_factor(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each_matrix(a.count, a.rows * b.step(), [&](int64_t i) {
      const T* triangle = args.in[0].as<T>() + i * a.step();
      T* x = args.out[0].as<T>() + i * b.step();
      if (p.alpha != 1.0) std::transform(x, x + b.step(), x, [&](T v) { return v * static_cast<T>(p.alpha); });
      kernels::solve_triangular({.lower = p.lower, .transpose = p.transpose, .right = p.rightside}, b.rows, b.columns,
                                triangle, a.rows, x, b.columns);
    });
  });
}

void run_trmm(const TriangleParams& p, const KernelArgs& args) {
  const Matrices a(*args.in[0].shape), b(*args.in[1].shape);
  const int64_t n = a.rows;
  const kernels::GemmShape sizes = p.rightside ? kernels::GemmShape::dense(false, p.transpose, b.rows, b.columns, n)
                                               : kernels::GemmShape::dense(p.transpose, false, b.rows, b.columns, n);
  if (device::current()) return multiply_on_device(p, args, sizes);
  dispatch_factor(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each_matrix(a.count, n * b.step(), [&](int64_t i) {
      Temporary<T> triangle(static_cast<size_t>(a.step()), T(0));
      const T* source = args.in[0].as<T>() + i * a.step();
      for (int64_t r = 0; r < n; ++r) {
        const int64_t begin = p.lower ? 0 : r, end = p.lower ? r + 1 : n;
        std::copy(source + r * n + begin, source + r * n + end, triangle.begin() + r * n + begin);
      }
      const T* other = args.in[1].as<T>() + i * b.step();
      kernels::gemm(sizes, static_cast<T>(p.alpha), p.rightside ? other : triangle.data(),
                    p.rightside ? triangle.data() : other, T(0), args.out[0].as<T>() + i * b.step());
    });
  });
}

// The gradient of a matrix A used as op(A): `first second^T` is the gradient of op(A).
Value triangle_gradient(const TriangleParams& p, const Value& first, const Value& second, bool transpose_first,
                        double alpha) {
  const Value grad = p.transpose ? matrix_product(second, first, transpose_first, !transpose_first, alpha)
                                 : matrix_product(first, second, transpose_first, !transpose_first, alpha);
  return keep_triangle(grad, {p.lower, 1.0, 1.0});
}

Values trsm_gradient(const TriangleParams& p, const GradientContext& g) {
  if (!g.output_grad(0)) return {};
  TriangleParams transposed = p;
  transposed.transpose = !p.transpose;
  transposed.alpha = 1.0;
  const Value moved = triangular_solve(g.input(0), g.output_grad(0), transposed);  // the gradient of alpha * B
  Values grads(2);
  if (g.wants(0)) {
    // op(A) X = alpha B: -moved X^T. X op(A) = alpha B: -X^T moved.
    grads[0] = p.rightside ? triangle_gradient(p, g.output(0), moved, true, -1.0)
                           : triangle_gradient(p, moved, g.output(0), false, -1.0);
  }
  if (g.wants(1)) grads[1] = moved * p.alpha;
  return grads;
}

Values trmm_gradient(const TriangleParams& p, const GradientContext& g) {
  const Value out = g.output_grad(0);
  if (!out) return {};
  Values grads(2);
  if (g.wants(0)) {
    grads[0] = p.rightside ? triangle_gradient(p, g.input(1), out, true, p.alpha)
                           : triangle_gradient(p, out, g.input(1), false, p.alpha);
  }
  if (g.wants(1)) {
    TriangleParams transposed = p;
    transposed.transpose = !p.transpose;
    grads[1] = call(kTrmm, {g.input(0), out}, ParamSchema<TriangleParams>::box(transposed));
  }
  return grads;
}

OpBuilder<TriangleParams> declare_triangular(OpRegistry& ops, const std::string& name) {
  return ops.declare<TriangleParams>("_linalg_" + name)
      .alias("linalg_" + name)
      .input("A", "stack of triangular matrices (..., n, n)")
      .input("B", "stack of matrices (..., n, columns), or (..., rows, n) if rightside")
      .output("output", "shape and dtype of B")
      .infer(infer_triangular)
      .cost([](const TriangleParams&, auto in, auto out) {
        (void)out;
        return 500 + elements(in[1]) * static_cast<double>(Matrices(in[0].shape).rows) / 5;
      })
      .amp(AmpType::kFloat)
      .sample({{3, 3}, {3, 2}}, {{"alpha", "2"}}, 0.5, 1.5)
      .sample({{2, 3, 3}, {2, 2, 3}}, {{"rightside", "True"}, {"lower", "False"}}, 0.5, 1.5)
      .sample({{3, 3}, {3, 4}}, {{"transpose", "True"}}, 0.5, 1.5)
      .sample({{2, 2}, {3, 2}}, {{"transpose", "True"}, {"rightside", "True"}, {"alpha", "-1"}}, 0.5, 1.5);
}

void run_keep(const KeepTriangleParams& p, const KernelArgs& args) {
  const Matrices m(*args.in[0].shape);
  if (device::current()) return keep_on_device(p, m, args.in[0].dtype, args.in[0].data, args.out[0].data);
  dispatch_floating(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = accumulator_t<T>;
    const A diagonal = static_cast<A>(p.diagonal), factor = static_cast<A>(p.factor);
    parallel_for(m.count * m.rows, 2.5 * static_cast<double>(m.columns), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t i = row % m.rows;
        const T* in = args.in[0].as<T>() + row * m.columns;
        T* out = args.out[0].as<T>() + row * m.columns;
        for (int64_t j = 0; j < m.columns; ++j) {
          const bool kept = p.lower ? j < i : j > i;
          const A scale = j == i ? diagonal : kept ? factor : A(0);
          out[j] = scale == A(0) ? static_cast<T>(A(0)) : static_cast<T>(static_cast<A>(in[j]) * scale);
        }
      }
    });
  });
}

}  // namespace

void register_triangular(OpRegistry& ops) {
  declare_triangular(ops, "trsm")
      .doc("Solves op(A) X = alpha B, or with rightside X op(A) = alpha B, for X; A is triangular.")
      .cpu(run_trsm, kFactorDTypes)
      .any_device()
      .inplace(1, 0)
      .gradient(trsm_gradient, Saves::of({0}, {0}));
  declare_triangular(ops, "trmm")
      .doc("alpha op(A) B, or with rightside alpha B op(A), for triangular A.")
      .cpu(run_trmm, kFactorDTypes)
      .any_device()
      .gradient(trmm_gradient, Saves::of({0, 1}));
  ops.declare<KeepTriangleParams>("_linalg_keep_triangle")
      .doc("Keeps one triangle of every matrix and sets the other to zero.")
      .input("A", "stack of matrices")
      .output("output", "shape and dtype of A")
      .inplace(0, 0)
      .infer([](const KeepTriangleParams&, InferContext& c) {
        c.unify_dtypes();
        c.unify_shapes();
        require_matrices(c, 0, false);
      })
      .cpu(run_keep, kFloating)
      .any_device()
      .gradient(
          [](const KeepTriangleParams& p, const GradientContext& g) {
            return g.output_grad(0) ? Values{keep_triangle(g.output_grad(0), p)} : Values{};
          },
          Saves::nothing())
      .internal()
      .sample({{2, 3, 3}}, {{"diagonal", "0.5"}})
      .sample({{3, 2}}, {{"lower", "False"}, {"factor", "2"}});
}

}  // namespace hybridnet::ops
