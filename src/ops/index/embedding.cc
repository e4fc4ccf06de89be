// Embedding: rows of a weight matrix, selected by an index tensor.
#include "hybridnet/declare.h"
#include "kernels/index/gather.h"
#include "kernels/index/indices.h"
#include "ops/emit.h"
#include "ops/index/embedding_shapes.h"
#include "ops/index/row_gradient.h"

namespace hybridnet::ops {
namespace {

struct EmbeddingParams {
  int64_t input_dim, output_dim;
  DType dtype;
  bool sparse_grad, deterministic;
  static void describe(ParamSchema<EmbeddingParams>& schema) {
    schema.field("input_dim", &EmbeddingParams::input_dim).at_least(1).doc("Number of rows of weight.");
    schema.field("output_dim", &EmbeddingParams::output_dim).at_least(1).doc("Length of a row of weight.");
    schema.field("dtype", &EmbeddingParams::dtype)
        .default_value("float32")
        .doc("Dtype of weight if nothing else determines it.");
    schema.field("sparse_grad", &EmbeddingParams::sparse_grad)
        .default_value(false)
        .doc("Requests a row_sparse gradient of weight; the storage of its buffer decides.");
    schema.field("deterministic", &EmbeddingParams::deterministic).default_value(false).hidden();  // always on
  }
};

void infer_embedding(const EmbeddingParams& p, InferContext& c) {
  c.unify_dtypes({1}, {0});
  if (c.in_dtype(1) == DType::kUnknown) {
    c.set_in_dtype(1, p.dtype);
    c.set_out_dtype(0, p.dtype);
  }
  infer_embedding_shapes(c, p.input_dim, p.output_dim);
}

void run_embedding(const EmbeddingParams& p, const KernelArgs& a) {
  kernels::Indices ids(a.in[0]);
  ids.resolve(kernels::IndexMode::kClip, p.input_dim, {"Embedding", "data"});
  kernels::gather_rows(a.in[1].data, {1, p.input_dim, p.output_dim}, ids.data(), ids.size(), a.out[0].data,
                       dtype_size(a.out[0].dtype));
}

Values embedding_gradient(const EmbeddingParams& p, const GradientContext& g) {
  return {Value{},
          add_rows(g.output_grad(0), g.input(0), 0, kernels::IndexMode::kClip, Shape({p.input_dim, p.output_dim}))};
}

OpBuilder<EmbeddingParams> declare_embedding(OpRegistry& ops, const char* name) {
  Sample sample;
  sample.inputs = {{2, 3}, {5, 4}};
  sample.attrs = {{"input_dim", "5"}, {"output_dim", "4"}};
  sample.low = 0.0;
  sample.high = 4.4;
  return ops.declare<EmbeddingParams>(name)
      .doc("Rows of weight, selected by data; indices out of range select the nearest row.")
      .input("data", "any shape; integers of any dtype")
      .input("weight", "shape (input_dim, output_dim)")
      .output("output", "shape of data with output_dim appended; dtype of weight")
      .infer(infer_embedding)
      .any_device()
      .cpu(run_embedding)
      .gradient(embedding_gradient, Saves::of({0}))
      .sparse(SparseForm::kEmbedding, SparseGradient::kOwn)
      .sample(sample);
}

}  // namespace

void register_embedding(OpRegistry& ops) {
  declare_embedding(ops, "Embedding")
      .row_wise_when([](const EmbeddingParams&, int rank) { return rank >= 1; })
      .alias("_npx_embedding")
      .quantized({.op = "_contrib_quantized_embedding", .inputs = {1}})
      .alias("_sparse_Embedding");
  declare_embedding(ops, "_contrib_SparseEmbedding");
}

}  // namespace hybridnet::ops
