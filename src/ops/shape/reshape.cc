// Reshape and Flatten: the same elements with another shape.
#include "hybridnet/declare.h"
#include "ops/emit.h"
#include "ops/shape/reshape_codes.h"

namespace hybridnet::ops {
namespace {

struct ReshapeParams {
  Tuple shape, target_shape;
  bool reverse, keep_highest;
  static void describe(ParamSchema<ReshapeParams>& schema) {
    schema.field("shape", &ReshapeParams::shape)
        .default_value(AttrValue(Tuple::scalar()))
        .doc(
            "Target shape; 0 copies a size, -1 is inferred, -2 copies all the rest, -3 merges two sizes, -4 splits "
            "one.");
    schema.field("reverse", &ReshapeParams::reverse)
        .default_value(false)
        .doc("Whether shape and data's shape are read from the right.");
    schema.field("target_shape", &ReshapeParams::target_shape)
        .default_value(AttrValue(Tuple::scalar()))
        .doc("Deprecated form of shape; one 0 is inferred.");
    schema.field("keep_highest", &ReshapeParams::keep_highest)
        .default_value(false)
        .doc("With target_shape: whether the first size is that of data.");
  }
};

// Converts the deprecated parameters to codes: a single 0 is the inferred size.
Tuple codes_of_target_shape(const ReshapeParams& p) {
  Tuple codes = p.target_shape;
  for (int i = 0; i < codes.ndim(); ++i) {
    if (codes[i] == 0) codes[i] = -1;
  }
  if (p.keep_highest && codes.ndim() > 0) codes[0] = 0;
  return codes;
}

Shape target_of(const ReshapeParams& p, const Shape& from) {
  if (p.shape.ndim() > 0) return apply_reshape_codes(from, p.shape, p.reverse);
  if (p.target_shape.ndim() > 0) return apply_reshape_codes(from, codes_of_target_shape(p), false);
  return apply_reshape_codes(from, Tuple::scalar(), false);
}

// A single unknown size of the input is inferred from the size of the output.
void complete_input_from_size(InferContext& c, const Shape& out) {
  Shape in = c.in_shape(0);
  int unknown = -1;
  int64_t others = 1;
  for (int i = 0; i < in.ndim(); ++i) {
    if (in[i] >= 0) {
      others *= in[i];
    } else if (unknown >= 0) {
      return;
    } else {
      unknown = i;
    }
  }
  if (unknown < 0 || others == 0 || out.size() % others != 0) return;
  in[unknown] = out.size() / others;
  c.set_in_shape(0, in);
}

void infer_reshape(const ReshapeParams& p, InferContext& c) {
  c.unify_dtypes();
  if (!c.in_shape(0).rank_known()) return;
  c.set_out_shape(0, target_of(p, c.in_shape(0)));
  if (!c.in_shape(0).known() && c.out_shape(0).known()) {
    complete_input_from_size(c, c.out_shape(0));
    c.set_out_shape(0, target_of(p, c.in_shape(0)));
  }
}

void infer_flatten(const NoParams&, InferContext& c) {
  c.unify_dtypes();
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  if (in.ndim() == 0) {
    throw ShapeError({.input = "data",
                      .expected = "at least 1 dimension",
                      .given = in.str(),
                      .because = "the first dimension, the batch, is kept"});
  }
  int64_t rest = 1;
  for (int i = 1; i < in.ndim(); ++i) rest = rest < 0 || in[i] < 0 ? kUnknownDim : rest * in[i];
  c.set_out_shape(0, Shape({in[0], rest}));
  Shape batch = Shape::unknown(in.ndim());
  batch[0] = c.out_shape(0)[0];
  c.set_in_shape(0, batch);
}

Values gradient_to_input_shape(const GradientContext& g) { return {reshape(g.output_grad(0), g.input_spec(0).shape)}; }

}  // namespace

void register_reshape(OpRegistry& ops) {
  ops.declare<ReshapeParams>("Reshape")
      .alias("reshape")
      .doc("The same elements, in the same order, with another shape.")
      .input("data", "any shape, any dtype")
      .output("output", "dtype of data; shape given by the parameter")
      .infer(infer_reshape)
      .any_device()
      .cpu([](const ReshapeParams&, const KernelArgs& a) { copy_first_input(a); })
      .view()
      .inplace(0, 0)
      .gradient([](const ReshapeParams&, const GradientContext& g) { return gradient_to_input_shape(g); },
                Saves::nothing())
      .sample({{2, 3, 4}}, {{"shape", "(4, 6)"}})
      .sample({{2, 3, 4}}, {{"shape", "(0, -1)"}})
      .sample({{2, 3, 4}}, {{"shape", "(-3, 0)"}})
      .sample({{6, 4}}, {{"shape", "(-4, 2, -1, -2)"}})
      .sample({{10, 5, 4}}, {{"shape", "(-1, 0)"}, {"reverse", "True"}})
      .sample({{2, 3, 4}}, {{"target_shape", "(2, 0)"}});
  ops.declare("Flatten")
      .alias("flatten")
      .alias("_npx_batch_flatten")
      .doc("Merges all dimensions except the first into one.")
      .input("data", "shape (N, ...), any dtype")
      .output("output", "shape (N, product of the rest)")
      .infer(infer_flatten)
      .quantized({.op = "_contrib_quantized_flatten"})
      .any_device()
      .cpu([](const NoParams&, const KernelArgs& a) { copy_first_input(a); })
      .view()
      .inplace(0, 0)
      .gradient([](const NoParams&, const GradientContext& g) { return gradient_to_input_shape(g); }, Saves::nothing())
      .sample({{2, 3, 4}}, {})
      .sample({{5}}, {});
}

}  // namespace hybridnet::ops
