// khatri_rao: the column-wise outer (Kronecker) product of several matrices (Kolda and Bader, SIAM Review 2009, section
// 2.6).
#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/matrix_arguments.h"
#include "kernels/elementwise/integers.h"
#include "ops/device_launch.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

struct KhatriRaoParams {
  int32_t num_args;
  static void describe(ParamSchema<KhatriRaoParams>& schema) {
    schema.field("num_args", &KhatriRaoParams::num_args).at_least(1).doc("Number of matrices.");
  }
};

void infer_khatri_rao(const KhatriRaoParams&, InferContext& c) {
  DType dtype = c.out_dtype(0);
  int64_t columns = kUnknownDim, rows = 1;
  for (int i = 0; i < c.num_in(); ++i) {
    c.set_in_shape(i, Shape::unknown(2));
    if (dtype == DType::kUnknown) dtype = c.in_dtype(i);
    if (columns == kUnknownDim) columns = c.in_shape(i)[1];
  }
  for (int i = 0; i < c.num_in(); ++i) {
    c.set_in_dtype(i, dtype);
    c.set_in_shape(i, Shape({kUnknownDim, columns}));
    rows = rows == kUnknownDim || c.in_shape(i)[0] == kUnknownDim ? kUnknownDim : checked_times(rows, c.in_shape(i)[0]);
  }
  c.set_out_dtype(0, dtype);
  c.set_out_shape(0, Shape({rows, columns}));
}

// A launch for each matrix: the last one is copied, the others multiply it.
void multiply_on_device(const KernelArgs& a, int64_t rows, int64_t columns) {
  int64_t divisor = 1;
  for (size_t k = a.in.size(); k-- > 0;) {
    const int64_t size = (*a.in[k].shape)[0];
    const device::KhatriRaoArguments product{.in = a.in[k].data,
                                             .out = a.out[0].data,
                                             .n = rows * columns,
                                             .columns = columns,
                                             .size = size,
                                             .divisor = divisor,
                                             .first = k + 1 == a.in.size()};
    on_device::launch("matrices.cuh", "KhatriRaoArguments", on_device::with_dtype("khatri_rao", a.out[0].dtype),
                      product.n, product);
    divisor *= size;
  }
}

void run_khatri_rao(const KhatriRaoParams&, const KernelArgs& a) {
  const int64_t rows = (*a.out[0].shape)[0], columns = (*a.out[0].shape)[1];
  if (device::current()) return multiply_on_device(a, rows, columns);
  kernels::dispatch_wrapping(a.out[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(rows, 5.0 * static_cast<double>(columns), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        T* out = a.out[0].as<T>() + row * columns;
        int64_t rest = row;  // the rows of the last matrix are consecutive
        for (size_t k = a.in.size(); k-- > 0;) {
          const int64_t size = (*a.in[k].shape)[0];
          const T* line = a.in[k].as<T>() + rest % size * columns;
          rest /= size;
          if (k + 1 == a.in.size())
            std::copy_n(line, columns, out);
          else
            for (int64_t j = 0; j < columns; ++j) out[j] = static_cast<T>(out[j] * line[j]);
        }
      }
    });
  });
}

// With the output viewed as (rows of matrix 0, rows of matrix 1, ..., columns), the gradient of one matrix is the sum,
// over the axes of the others, of the output's gradient times the others.
Values khatri_rao_gradient(const KhatriRaoParams&, const GradientContext& g) {
  if (!g.output_grad(0)) return {};
  const int n = g.num_inputs();
  Shape all = Shape::scalar();
  for (int i = 0; i < n; ++i) all.push_back(g.input_spec(i).shape[0]);
  all.push_back(g.output_spec(0).shape[1]);
  const Value out = reshape(g.output_grad(0), all);
  const auto spread = [&](int i) {
    Shape s = Shape::unknown(n + 1);
    for (int k = 0; k <= n; ++k) s[k] = k == i || k == n ? all[k] : 1;
    return reshape(g.input(i), s);
  };
  Values grads(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) {
    if (!g.wants(i)) continue;
    Value product = out;
    Tuple others = Shape::scalar();
    for (int k = 0; k < n; ++k) {
      if (k == i) continue;
      product = product * spread(k);
      others.push_back(k);
    }
    grads[static_cast<size_t>(i)] = others.ndim() > 0 ? sum(product, others, false) : product;
  }
  return grads;
}

}  // namespace

void register_khatri_rao(OpRegistry& ops) {
  ops.declare<KhatriRaoParams>("khatri_rao")
      .doc("The matrix whose columns are the outer products of the matrices' columns.")
      .variadic_input("args", "num_args", "matrices with the same number of columns")
      .output("output", "(product of the numbers of rows, columns)")
      .num_inputs([](const KhatriRaoParams& p) { return p.num_args; })
      .infer(infer_khatri_rao)
      .cpu(run_khatri_rao, kNumeric)
      .any_device()
      .gradient(khatri_rao_gradient, Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sample({{2, 2}, {3, 2}}, {{"num_args", "2"}})
      .sample({{2, 3}, {1, 3}, {2, 3}}, {{"num_args", "3"}})
      .sample({{2, 3}}, {{"num_args", "1"}});
}

}  // namespace hybridnet::ops
