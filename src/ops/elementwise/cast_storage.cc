// cast_storage. In graphs, whose values are dense, it is the identity; for arrays it makes sparse ones
// (sparse/operators.cc).
#include "hybridnet/declare.h"
#include "kernels/elementwise/convert.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {

enum class StorageType { kDefault, kRowSparse, kCsr };

struct CastStorageParams {
  StorageType stype;
  static void describe(ParamSchema<CastStorageParams>& schema) {
    schema.field("stype", &CastStorageParams::stype)
        .choice("default", StorageType::kDefault)
        .choice("row_sparse", StorageType::kRowSparse)
        .choice("csr", StorageType::kCsr)
        .doc("Storage of the result; in graphs all values are dense.");
  }
};

void infer(const CastStorageParams& p, InferContext& c) {
  infer_elementwise(c);
  const Shape& shape = c.in_shape(0);
  if (p.stype == StorageType::kCsr && shape.rank_known() && shape.ndim() != 2)
    throw ShapeError({.input = "data", .expected = "a matrix for csr", .given = shape.str()});
}

void run(const CastStorageParams&, const KernelArgs& a) {
  if (a.out[0].data == a.in[0].data) return;
  kernels::convert_parallel(a.in[0].dtype, a.in[0].data, a.out[0].dtype, a.out[0].data, a.out[0].size());
}

}  // namespace

void register_cast_storage(OpRegistry& ops) {
  ops.declare<CastStorageParams>("cast_storage")
      .alias("_sparse_cast_storage")
      .doc("The same values in another storage type: default, row_sparse or csr.")
      .input("data", "array of any shape; a matrix for csr")
      .output("output", "shape and dtype of data")
      .infer(infer)
      .cpu(run)
      .gradient([](const CastStorageParams&, const GradientContext& g) -> Values { return {g.output_grad(0)}; },
                Saves::nothing())
      .inplace(0, 0)
      .identity_when([](const CastStorageParams&, bool) { return true; })
      .sparse(SparseForm::kCast, SparseGradient::kOwn)
      .sample({{3, 4}}, {{"stype", "csr"}})
      .sample({{2, 3, 2}}, {{"stype", "row_sparse"}})
      .sample({Shape{0, 4}}, {{"stype", "default"}});
}

}  // namespace hybridnet::ops
