#include "passes/change_format.h"

#include <memory>

#include "kernels/strided_copy.h"

namespace hybridnet::passes {
namespace {

// Exchanges the channels with the axes behind them; both orders are dense.
template <Format kTo>
void run(const NoParams&, const KernelArgs& args) {
  const Shape& shape = *args.in[0].shape;
  const int64_t batch = shape[0], channels = shape[1], space = shape.size(2, shape.ndim());
  const bool last = kTo == Format::kChannelsLast;
  kernels::StridedCopy copy;
  copy.add_axis(batch, channels * space, channels * space);
  copy.add_axis(channels, last ? space : 1, last ? 1 : space);
  copy.add_axis(space, last ? 1 : channels, last ? channels : 1);
  copy.run(args.in[0].data, args.out[0].data, dtype_size(args.in[0].dtype));
}

template <Format kTo>
const Op* make_op(const char* name) {
  auto op = std::make_unique<Op>();
  op->name = name;
  op->schema = std::make_unique<ParamSchema<NoParams>>();
  OpBuilder<NoParams>(*op)
      .doc("The same value in another physical order.")
      .input("data", "(batch, channels, spatial...)")
      .output("output", "as data")
      .infer([](const NoParams&, InferContext& c) {
        c.unify_dtypes();
        c.unify_shapes();
      })
      .cpu(run<kTo>)
      .gradient(kNotDifferentiable)
      .internal()
      .cost([](const NoParams&, std::span<const TensorSpec> in, std::span<const TensorSpec>) {
        return in[0].bytes() / 4 + 500;
      });
  op->default_params = ParamSchema<NoParams>::box(NoParams{});
  return op.release();  // lives as long as plans may
}

}  // namespace

const Op& change_format_op(Format to) {
  static const Op& last = *make_op<Format::kChannelsLast>("_to_channels_last");
  static const Op& plain = *make_op<Format::kPlain>("_to_plain");
  return to == Format::kChannelsLast ? last : plain;
}

}  // namespace hybridnet::passes
