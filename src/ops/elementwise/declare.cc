#include "ops/elementwise/declare.h"

namespace hybridnet::ops {

void infer_elementwise(InferContext& c) {
  const TensorSpec& first = c.in(0);
  bool alike = first.known();
  for (int i = 1; alike && i < c.num_in(); ++i) alike = c.in(i) == first;
  if (alike) {  // the common case, without a search for contradictions
    for (int i = 0; i < c.num_out(); ++i) {
      c.set_out_shape(i, first.shape);
      c.set_out_dtype(i, first.dtype);
    }
    return;
  }
  c.unify_shapes();
  c.unify_dtypes();
}

int64_t elementwise_cost(const kernels::SpanLoops& loops, std::span<const TensorSpec> in,
                         std::span<const TensorSpec> out) {
  constexpr double kNsPerByte = 0.0625;  // 0.25 ns per float32 element of each array
  double bytes = 0;
  for (const TensorSpec& s : in) bytes += static_cast<double>(s.bytes());
  for (const TensorSpec& s : out) bytes += static_cast<double>(s.bytes());
  const double wide = is_floating(out[0].dtype) && dtype_size(out[0].dtype) == 8 ? 2.5 : 1;
  const double work = static_cast<double>(out[0].shape.size()) * loops.cost_ns * wide;
  return static_cast<int64_t>(std::max(bytes * kNsPerByte, work));
}

}  // namespace hybridnet::ops
