// Operators that change the physical order of a value. Only passes use them (passes/layers/choose_layout.cc). Without a
// given order, as for arrays, they copy.
#include "hybridnet/declare.h"
#include "kernels/memory/strided_copy.h"

namespace hybridnet::ops {
namespace {

void infer(const NoParams&, InferContext& c) {
  c.unify_dtypes();
  c.unify_shapes();
}

// Exchanges the channels with the axes after them; both orders are dense.
void run(const NoParams&, const KernelArgs& args) {
  const TensorRef &in = args.in[0], &out = args.out[0];
  const int64_t bytes = dtype_size(in.dtype);
  if (in.format == out.format) return kernels::copy_bytes(in.data, out.data, in.size() * bytes);
  const Shape& shape = *in.shape;
  const int64_t batch = shape[0], channels = shape[1], space = shape.size(2, shape.ndim());
  const bool last = out.format == Format::kChannelsLast;
  kernels::StridedCopy copy;
  copy.add_axis(batch, channels * space, channels * space);
  copy.add_axis(channels, last ? space : 1, last ? 1 : space);
  copy.add_axis(space, last ? 1 : channels, last ? channels : 1);
  copy.run(in.data, out.data, bytes);
}

int64_t cost(const NoParams&, std::span<const TensorSpec> in, std::span<const TensorSpec>) {
  return in[0].bytes() / 4 + 500;
}

Values pass(const NoParams&, const GradientContext& g) { return {g.output_grad(0)}; }

}  // namespace

void register_format_changes(OpRegistry& ops) {
  ops.declare("_to_channels_last")
      .internal()
      .doc("The same value with the channels as the last axis in memory.")
      .input("data", "(batch, channels, spatial...)")
      .output("output", "shape and dtype of data")
      .infer(infer)
      .cpu(run)
      .gradient(pass, Saves::nothing())
      .image({}, {0})
      .cost(cost)
      .sample({{2, 3, 4, 5}})
      .sample({Shape{2, 0, 3}});
  ops.declare("_to_plain")
      .internal()
      .doc("The same value with all axes in their order in memory.")
      .input("data", "(batch, channels, spatial...)")
      .output("output", "shape and dtype of data")
      .infer(infer)
      .cpu(run)
      .gradient(pass, Saves::nothing())
      .image({0}, {})
      .cost(cost)
      .sample({{2, 3, 4, 5}})
      .sample({Shape{2, 0, 3}});
}

}  // namespace hybridnet::ops
