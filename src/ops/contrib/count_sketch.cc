// _contrib_count_sketch.
//   Pham and Pagh, Fast and scalable polynomial kernels via explicit feature maps, KDD 2013.
#include "hybridnet/declare.h"
#include "ops/emit.h"
#include "ops/index/row_gradient.h"
#include "ops/numpy/promote.h"

namespace hybridnet::ops {
namespace {

const OpRef kMul{"broadcast_mul"};

struct CountSketchParams {
  int64_t out_dim;
  int32_t processing_batch_size;
  static void describe(ParamSchema<CountSketchParams>& schema) {
    schema.field("out_dim", &CountSketchParams::out_dim).at_least(1).doc("Number of elements of a sketch.");
    schema.field("processing_batch_size", &CountSketchParams::processing_batch_size)
        .default_value(32)
        .at_least(1)
        .doc("Number of vectors that MXNet processes at a time; without effect.");
  }
};

Values sketch(const CountSketchParams& p, const Values& in) {
  const Shape& data = spec_of(in[0]).shape;
  const int last = data.ndim() - 1;
  if (last < 0 || spec_of(in[1]).shape.size() != data[last] || spec_of(in[2]).shape.size() != data[last])
    throw ShapeError({.input = "h, s",
                      .expected = "one number per element of the last axis of data",
                      .given = "shapes " + spec_of(in[1]).shape.str() + " and " + spec_of(in[2]).shape.str()});
  Shape sketches = data;
  sketches[last] = p.out_dim;
  const Shape vector{data[last]};
  const Value signs = cast(literal_reshape(in[2], vector), spec_of(in[0]).dtype);
  const Value places = stop_gradient(literal_reshape(in[1], vector));
  return {add_rows(call(kMul, {in[0], signs}), places, last, kernels::IndexMode::kRaise, sketches)};
}

}  // namespace

void register_count_sketch(OpRegistry& ops) {
  Sample sample;
  sample.inputs = {{2, 4}, {1, 4}, {1, 4}};
  sample.attrs = {{"out_dim", "5"}};
  sample.low = 0;
  sample.high = 4;
  ops.declare<CountSketchParams>("_contrib_count_sketch")
      .doc("Sketches of vectors: element i is multiplied by s[i] and added to element h[i] of the sketch.")
      .input("data", "(..., n)")
      .input("h", "n integers from 0 to out_dim - 1; has no gradient")
      .input("s", "n numbers, 1 or -1")
      .output("out", "(..., out_dim), dtype of data")
      .compose(sketch)
      .amp(AmpType::kFloat)
      .sample(sample);
}

}  // namespace hybridnet::ops
