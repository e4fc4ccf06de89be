// _image_to_tensor: bytes in [0, 255], channels last, become floats in [0, 1], channels first.
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/image_arguments.h"
#include "ops/device_launch.h"
#include "ops/emit.h"
#include "ops/image/image_size.h"

namespace hybridnet::ops {
namespace {

void infer_to_tensor(const NoParams&, InferContext& c) {
  c.set_out_dtype(0, DType::kFloat32);
  require_image(c);
  const Shape& in = c.in_shape(0);
  if (in.rank_known()) {
    const int n = in.ndim();
    Shape out = in;
    out[n - 3] = in[n - 1];
    out[n - 2] = in[n - 3];
    out[n - 1] = in[n - 2];
    return c.set_out_shape(0, out);
  }
  const Shape& out = c.out_shape(0);
  if (!out.rank_known() || out.ndim() < 3) return;
  const int n = out.ndim();
  Shape data = out;
  data[n - 1] = out[n - 3];
  data[n - 3] = out[n - 2];
  data[n - 2] = out[n - 1];
  c.set_in_shape(0, data);
}

template <typename T>
struct Scale {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  float operator()(T value) const { return static_cast<float>(static_cast<Real>(value) / Real(255)); }
};
// A table of every byte divided by 255.
template <>
struct Scale<uint8_t> {
  float table[256];
  Scale() {
    for (int i = 0; i < 256; ++i) table[i] = static_cast<float>(i) / 255.0f;
  }
  float operator()(uint8_t value) const { return table[value]; }
};

void run_to_tensor(const NoParams&, const KernelArgs& a) {
  const ImageSize s(*a.in[0].shape);
  constexpr int64_t kPiece = 4096;  // pixels of one channel
  const int64_t pieces = (s.pixels() + kPiece - 1) / kPiece;
  if (device::current()) {
    const device::NormalizeArguments scaled{
        .in = a.in[0].data, .out = a.out[0].data, .n = a.in[0].size(), .pixels = s.pixels(), .channels = s.channels};
    return on_device::launch("image.cuh", "NormalizeArguments", on_device::with_dtype("channels_first", a.in[0].dtype),
                             scaled.n, scaled);
  }
  dispatch_dtype(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const Scale<T> scale;
    parallel_for(s.batch * pieces, 5000.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / pieces, first = i % pieces * kPiece, last = std::min(s.pixels(), first + kPiece);
        const T* in = a.in[0].as<T>() + image * s.elements();
        float* out = a.out[0].as<float>() + image * s.elements();
        for (int64_t c = 0; c < s.channels; ++c)
          for (int64_t p = first; p < last; ++p) out[c * s.pixels() + p] = scale(in[p * s.channels + c]);
      }
    });
  });
}

Values to_tensor_gradient(const NoParams&, const GradientContext& g) {
  const TensorSpec& data = g.input_spec(0);
  if (!g.output_grad(0) || !is_floating(data.dtype)) return {};
  const Tuple channels_last = data.shape.ndim() == 3 ? Tuple({1, 2, 0}) : Tuple({0, 2, 3, 1});
  const Value grad = transpose(g.output_grad(0), channels_last) / 255.0;
  return {data.dtype == DType::kFloat32 ? grad : cast(grad, data.dtype)};
}

}  // namespace

void register_to_tensor(OpRegistry& ops) {
  ops.declare("_image_to_tensor")
      .alias("_npx__image_to_tensor")
      .doc("Images with values in [0, 255] and channels last as tensors with values in [0, 1] and channels first.")
      .input("data", "(height, width, channels), or a batch of those, any dtype")
      .names_its_input()
      .output("output", "float32 (channels, height, width), or a batch of those")
      .infer(infer_to_tensor)
      .cpu(run_to_tensor, kNumeric)
      .any_device()
      .gradient(to_tensor_gradient, Saves::nothing())
      .sample({{3, 4, 3}}, {}, 0.0, 255.0)
      .sample({{2, 3, 2, 1}}, {}, 0.0, 255.0);
}

}  // namespace hybridnet::ops
