// Mean and variance in one operator.

#include "device/stream.h"
#include "hybridnet/declare.h"
#include "hybridnet/storage.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/convert.h"
#include "ops/reduce/axes.h"

namespace hybridnet::ops {
namespace {

struct MomentsParams {
  std::optional<Tuple> axes;
  bool keepdims;
  static void describe(ParamSchema<MomentsParams>& schema) {
    schema.field("axes", &MomentsParams::axes).none_by_default().doc("Axes to reduce; None or (): all.");
    schema.field("keepdims", &MomentsParams::keepdims).default_value(false).doc("Keep reduced axes with size 1.");
  }
};

void infer_moments(const MomentsParams& p, InferContext& c) {
  c.unify_dtypes();
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  const Shape out = reduced_shape(in, reduced_axes(p.axes, false, in.ndim()), p.keepdims);
  for (int i = 0; i < 2; ++i) c.set_out_shape(i, out);
}

// 16-bit floats are reduced in float32: a mean rounded to 16 bits is too inaccurate for the differences from it.
void run_moments(const MomentsParams& p, const KernelArgs& a) {
  const TensorRef& data = a.in[0];
  const Shape& shape = *data.shape;
  const uint32_t axes = reduced_axes(p.axes, false, shape.ndim());
  const Shape kept = kept_shape(shape, axes);
  const DType dtype = data.dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const int64_t item = dtype_size(dtype);
  const Device device = device::current() ? device::current()->device() : Device{};
  const OwnedBlock mean(kept.size() * item, device), difference(shape.size() * item, device);
  const void* in = data.data;
  if (data.dtype != dtype) {
    kernels::convert_parallel(data.dtype, data.data, dtype, difference.data(), shape.size());
    in = difference.data();
  }
  kernels::reduce(kernels::Reduction::kSum, kernels::Finish::kDivide, dtype, in, shape, axes, dtype, mean.data());
  kernels::convert(dtype, mean.data(), a.out[0].dtype, a.out[0].data, kept.size());
  kernels::apply_broadcast(kernels::loops(kernels::Pointwise::kSub), dtype, in, shape, mean.data(), kept,
                           difference.data(), shape);
  kernels::reduce(kernels::Reduction::kSumSquares, kernels::Finish::kDivide, dtype, difference.data(), shape, axes,
                  a.out[1].dtype, a.out[1].data);
}

Values moments_gradient(const MomentsParams& p, const GradientContext& g) {
  const Shape& shape = g.input_spec(0).shape;
  const uint32_t axes = reduced_axes(p.axes, false, shape.ndim());
  const auto count = static_cast<double>(reduced_count(shape, axes));
  const Value to_mean = spread(g.output_grad(0), shape, axes), to_variance = spread(g.output_grad(1), shape, axes);
  Value slope;
  if (to_variance) slope = to_variance * (g.input(0) - spread(g.output(0), shape, axes)) * 2.0;
  return {add_all({to_mean, slope}) / count};
}

}  // namespace

void register_moments(OpRegistry& ops) {
  ops.declare<MomentsParams>("moments")
      .doc("Mean and variance (of the whole population: divided by the number of elements) over axes.")
      .input("data", "floating array of any shape")
      .names_its_input()
      .output("mean", "dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims)")
      .output("var", "shape and dtype of mean")
      .infer(infer_moments)
      .cpu(run_moments, kFloating)
      .any_device()
      .gradient(moments_gradient, Saves::of({0}, {0}))
      .cost([](const MomentsParams&, auto in, auto) { return in[0].shape.size(); })
      .amp(AmpType::kFloat)
      .output_names(OutputNames::kNumberedSeveral)
      .sample({{3, 4}}, {{"axes", "(0, 1)"}})
      .sample({{2, 3, 4}}, {{"axes", "(0, 2)"}})
      .sample({{2, 3, 4}}, {{"axes", "(-1,)"}, {"keepdims", "1"}});
}

}  // namespace hybridnet::ops
