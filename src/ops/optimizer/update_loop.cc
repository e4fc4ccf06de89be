#include "ops/optimizer/update_loop.h"

namespace hybridnet::ops {
namespace {

void unify_update_shapes(InferContext& c, const UpdateLayout& layout, int i) {
  const int in = i * layout.stride();
  Shape known = c.out_shape(i);
  for (int k = 0; k < layout.stride(); ++k) {
    c.set_in_shape(in + k, known);
    known = c.in_shape(in + k);
  }
  for (int k = 0; k < layout.stride(); ++k) c.set_in_shape(in + k, known);
  for (int k = 0; k < layout.num_outputs() / layout.count; ++k) c.set_out_shape(i + k * layout.count, known);
}

}  // namespace

void infer_updates(InferContext& c, const UpdateLayout& layout, bool float_states) {
  if (c.num_in() < layout.num_inputs()) {
    throw ParamError(
        {.expected = std::to_string(layout.num_inputs()) + " inputs for " + std::to_string(layout.count) + " tensors",
         .given = std::to_string(c.num_in())});
  }
  DType weight = DType::kUnknown;
  for (int i = 0; i < layout.count && weight == DType::kUnknown; ++i) {
    weight = c.in_dtype(i * layout.stride());
    if (weight == DType::kUnknown) weight = c.in_dtype(i * layout.stride() + 1);
    if (weight == DType::kUnknown) weight = c.out_dtype(i);
  }
  const DType state = float_states || layout.master ? DType::kFloat32 : weight;
  for (int i = 0; i < layout.count; ++i) {
    unify_update_shapes(c, layout, i);
    const int in = i * layout.stride();
    c.set_in_dtype(in, weight);
    c.set_in_dtype(in + 1, weight);
    c.set_out_dtype(i, weight);
    for (int k = 0; k < layout.states; ++k) {
      c.set_in_dtype(in + 2 + k, state);
      c.set_out_dtype(i + (1 + k) * layout.count, state);
    }
    if (layout.master) {
      c.set_in_dtype(in + 2 + layout.states, DType::kFloat32);
      c.set_out_dtype(i + (1 + layout.states) * layout.count, DType::kFloat32);
    }
  }
}

void check_per_tensor(const char* name, size_t given, int expected) {
  if (given == static_cast<size_t>(expected)) return;
  throw ParamError({.input = name,
                    .expected = "one number per tensor, " + std::to_string(expected),
                    .given = std::to_string(given)});
}

}  // namespace hybridnet::ops
