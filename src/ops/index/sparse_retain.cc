// _sparse_retain: keeps some rows of a matrix and sets the others to zero.
#include <vector>

#include "hybridnet/declare.h"
#include "kernels/index/gather.h"
#include "kernels/index/indices.h"
#include "kernels/memory/strided_copy.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

void run_retain(const NoParams&, const KernelArgs& a) {
  const Shape& data = *a.in[0].shape;
  const int64_t bytes = dtype_size(a.in[0].dtype), row = data.size(1, data.ndim()) * bytes;
  kernels::Indices rows(a.in[1]);
  if (rows.size() > 0) rows.resolve(kernels::IndexMode::kRaise, data[0]);
  kernels::zero_bytes(a.out[0].data, a.out[0].size() * bytes);
  for (int64_t i = 0; i < rows.size(); ++i)
    kernels::copy_bytes(a.in[0].as<char>() + rows[i] * row, a.out[0].as<char>() + rows[i] * row, row);
}

}  // namespace

void register_sparse_retain(OpRegistry& ops) {
  Sample s;
  s.inputs = {{4, 3}, {2}};
  s.low = 0.0;
  s.high = 3.4;
  Sample deep = s;
  deep.inputs = {{4, 2, 2}, {3}};
  ops.declare("_sparse_retain")
      .doc("data with the rows in indices; all other rows are zero.")
      .input("data", "(rows, ...), any dtype")
      .input("indices", "(count,): rows, integers; negative ones count from the end")
      .output("output", "shape and dtype of data")
      .infer([](const NoParams&, InferContext& c) {
        c.unify_dtypes({0}, {0});
        c.set_out_shape(0, c.in_shape(0));
        c.set_in_shape(0, c.out_shape(0));
        c.set_in_shape(1, Shape::unknown(1));
        if (c.in_shape(0).rank_known() && c.in_shape(0).ndim() < 1)
          throw ShapeError({.input = "data", .expected = "at least 1 dimension", .given = "shape ()"});
      })
      .cpu(run_retain)
      .may_raise()
      .gradient(
          [](const NoParams&, const GradientContext& g) {
            static const OpRef kRetain{"_sparse_retain"};
            return g.output_grad(0) ? Values{call(kRetain, {g.output_grad(0), g.input(1)}), Value{}} : Values{};
          },
          Saves::of({1}))
      .sparse(SparseForm::kRetainedRows)
      .sample(s)
      .sample(deep);
}

}  // namespace hybridnet::ops
