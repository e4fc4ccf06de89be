// _contrib_getnnz and _contrib_edge_id: queries on sparse matrices. The matrices are kept densely; a zero is not
// stored.
#include "hybridnet/declare.h"
#include "kernels/index/indices.h"
#include "kernels/memory/fill.h"

namespace hybridnet::ops {
namespace {

struct GetNnzParams {
  std::optional<int32_t> axis;
  static void describe(ParamSchema<GetNnzParams>& schema) {
    schema.field("axis", &GetNnzParams::axis)
        .none_by_default()
        .doc("None: count in the whole matrix, 0: per column, 1: per row.");
    schema.check([](const GetNnzParams& p) {
      if (p.axis && *p.axis != 0 && *p.axis != 1)
        throw ParamError({.input = "axis", .expected = "None, 0 or 1", .given = std::to_string(*p.axis)});
    });
  }
};

void run_getnnz(const GetNnzParams& p, const KernelArgs& a) {
  const int64_t rows = (*a.in[0].shape)[0], columns = (*a.in[0].shape)[1];
  int64_t* out = a.out[0].as<int64_t>();
  std::fill_n(out, a.out[0].size(), int64_t{0});
  if (a.in[0].size() == 0) return;  // the other size may be huge
  dispatch_dtype(a.in[0].dtype, [&](auto zero) {
    const auto* data = a.in[0].as<decltype(zero)>();
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        if (static_cast<double>(data[i * columns + j]) != 0.0) ++out[!p.axis ? 0 : *p.axis == 0 ? j : i];
  });
}

void run_edge_id(const NoParams&, const KernelArgs& a) {
  const int64_t rows = (*a.in[0].shape)[0], columns = (*a.in[0].shape)[1];
  kernels::Indices from(a.in[1]), to(a.in[2]);
  if (from.size() > 0) {
    from.resolve(kernels::IndexMode::kRaise, rows);
    to.resolve(kernels::IndexMode::kRaise, columns);
  }
  dispatch_dtype(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < from.size(); ++i) {
      const T stored = a.in[0].as<T>()[from[i] * columns + to[i]];
      a.out[0].as<T>()[i] = static_cast<double>(stored) == 0.0 ? kernels::element_from<T>(-1) : stored;
    }
  });
}

}  // namespace

void register_getnnz(OpRegistry& ops) {
  ops.declare<GetNnzParams>("_contrib_getnnz")
      .doc("The number of stored values of a sparse matrix, which are the nonzero values.")
      .input("data", "(rows, columns)")
      .output("output", "int64 (1,), (columns,) or (rows,)")
      .infer([](const GetNnzParams& p, InferContext& c) {
        c.set_in_shape(0, Shape::unknown(2));
        c.set_out_dtype(0, DType::kInt64);
        c.set_out_shape(0, Shape({!p.axis ? 1 : c.in_shape(0)[1 - *p.axis]}));
      })
      .cpu(run_getnnz)
      .gradient(kNotDifferentiable)
      .sample({{3, 4}})
      .sample({{3, 4}}, {{"axis", "0"}})
      .sample({{3, 4}}, {{"axis", "1"}});
}

void register_edge_id(OpRegistry& ops) {
  Sample s;
  s.inputs = {{4, 4}, {3}, {3}};
  s.low = 0.0;
  s.high = 3.4;
  ops.declare("_contrib_edge_id")
      .doc("The values of a sparse matrix at (u[i], v[i]), -1 if none is stored.")
      .input("data", "(rows, columns): numbers of edges, from 1")
      .input("u", "(edges,): rows")
      .input("v", "(edges,): columns")
      .output("output", "(edges,), dtype of data")
      .infer([](const NoParams&, InferContext& c) {
        c.unify_dtypes({0}, {0});
        c.set_in_shape(0, Shape::unknown(2));
        c.set_in_shape(1, c.in_shape(2));
        c.set_in_shape(2, c.in_shape(1));
        c.set_out_shape(0, c.in_shape(1));
      })
      .cpu(run_edge_id, kNumeric)
      .may_raise()
      .gradient(kNotDifferentiable)
      .sample(s);
}

}  // namespace hybridnet::ops
