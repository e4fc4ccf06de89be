// _image_resize: resizes images. Along each axis a new pixel is a weighted sum of old ones, so each axis has one table
// of taps. Pixel centers are half-integers and kernels are not widened when shrinking, which follows OpenCV.
#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/image_arguments.h"
#include "kernels/image/image_resize.h"
#include "ops/device_launch.h"
#include "ops/device_table.h"
#include "ops/emit.h"
#include "ops/image/image_size.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct ResizeParams {
  Tuple size;
  bool keep_ratio;
  int32_t interp;
  static void describe(ParamSchema<ResizeParams>& schema) {
    schema.field("size", &ResizeParams::size)
        .default_value(AttrValue(Tuple::scalar()))
        .doc("(width, height), or one number for both.");
    schema.field("keep_ratio", &ResizeParams::keep_ratio)
        .default_value(false)
        .doc("Whether one number is the size of the shorter side; the other side keeps the aspect ratio.");
    schema.field("interp", &ResizeParams::interp)
        .default_value(1)
        .range(0, 4)
        .doc("0: nearest, 1: bilinear, 2: bicubic, 3: area, 4: Lanczos over 8x8 pixels.");
    schema.check([](const ResizeParams& p) {
      bool good = p.size.ndim() == 1 || p.size.ndim() == 2;
      for (int64_t s : p.size) good = good && s > 0;
      if (!good)
        throw ParamError(
            {.input = "size", .expected = "one or two positive numbers: width, height", .given = p.size.str()});
    });
  }
};

struct UnresizeParams {
  Tuple shape;
  int32_t interp;
  static void describe(ParamSchema<UnresizeParams>& schema) {
    schema.field("shape", &UnresizeParams::shape).doc("Shape of the image.");
    schema.field("interp", &UnresizeParams::interp).default_value(1).range(0, 4).doc("Same as in _image_resize.");
  }
};

// (height, width) of the result.
std::pair<int64_t, int64_t> new_size(const ResizeParams& p, int64_t height, int64_t width) {
  if (p.size.ndim() == 2) return {p.size[1], p.size[0]};
  const int64_t size = p.size[0];
  if (!p.keep_ratio || height == 0 || width == 0) return {size, size};
  if (height > width) return {checked_times(height, size, "size") / width, size};
  return {size, checked_times(width, size, "size") / height};
}

void infer_resize(const ResizeParams& p, InferContext& c) {
  c.unify_dtypes();
  require_image(c);
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  const int n = in.ndim();
  Shape out = in;
  out[n - 3] = out[n - 2] = kUnknownDim;
  if (in[n - 3] == 0 || in[n - 2] == 0) {
    throw ShapeError({.input = "data", .expected = "images with at least one pixel", .given = "shape " + in.str()});
  }
  if ((in[n - 3] != kUnknownDim && in[n - 2] != kUnknownDim) || !p.keep_ratio || p.size.ndim() == 2) {
    std::tie(out[n - 3], out[n - 2]) = new_size(p, in[n - 3], in[n - 2]);
  }
  c.set_out_shape(0, out);
}

template <typename T>
using sum_t = std::conditional_t<std::is_same_v<T, double>, double, float>;

ImageShape plane_shape(const ImageSize& size) { return {size.height, size.width, size.channels}; }

kernels::ImageResizing resizing(const ImageSize& from, const ImageSize& to, int32_t method) {
  return {plane_shape(from), to.height, to.width, static_cast<Interpolation>(method)};
}

// Launches a kernel over the elements of `out`, the new images or, for the adjoint, the old ones.
void resize_on_device(const char* function, const KernelArgs& a, const kernels::ImageResizing& r, int64_t batch) {
  const DeviceTable<int64_t> rows(r.rows.index), columns(r.columns.index);
  const DeviceTable<double> row_weights(r.rows.weight), column_weights(r.columns.weight);
  const device::ImageAxis down{rows.data(), row_weights.data(), r.rows.count, r.from.height, r.to.height};
  const device::ImageAxis across{columns.data(), column_weights.data(), r.columns.count, r.from.width, r.to.width};
  const device::ResizeArguments resized{.in = a.in[0].data,
                                        .out = a.out[0].data,
                                        .n = a.out[0].size(),
                                        .batch = batch,
                                        .channels = r.from.channels,
                                        .rows = down,
                                        .columns = across};
  on_device::launch("image.cuh", "ResizeArguments", on_device::with_dtype(function, a.in[0].dtype), resized.n, resized);
}

void run_resize(const ResizeParams& p, const KernelArgs& a) {
  const ImageSize from(*a.in[0].shape), to(*a.out[0].shape);
  const kernels::ImageResizing resize = resizing(from, to, p.interp);
  if (device::current()) return resize_on_device("resize_images", a, resize, to.batch);
  const DType dtype = a.in[0].dtype;
  const int64_t old_bytes = from.elements() * dtype_size(dtype), bytes = to.elements() * dtype_size(dtype);
  parallel_for(to.batch * to.height, 1.0 * static_cast<double>(to.width * to.channels),
               [&](int64_t begin, int64_t end) {
                 while (begin < end) {  // rows of one image per pass
                   const int64_t image = begin / to.height, first = image * to.height;
                   const int64_t last = std::min(end, first + to.height);
                   resize.run(dtype, a.in[0].as<char>() + image * old_bytes, a.out[0].as<char>() + image * bytes,
                              begin - first, last - first);
                   begin = last;
                 }
               });
}

// The adjoint: adds the gradient of each new pixel to the old pixels that it was computed from.
template <typename T>
void unresize_image(const kernels::ImageResizing& t, const ImageSize& from, const ImageSize& to, const T* grad,
                    T* out) {
  using A = sum_t<T>;
  Temporary<A> sums(static_cast<size_t>(from.elements()), A(0));
  for (int64_t y = 0; y < to.height; ++y) {
    for (int64_t j = 0; j < t.rows.count; ++j) {
      const size_t row = static_cast<size_t>(y * t.rows.count + j);
      A* target = sums.data() + t.rows.index[row] * from.width * from.channels;
      for (int64_t x = 0; x < to.width; ++x) {
        for (int64_t k = 0; k < t.columns.count; ++k) {
          const size_t column = static_cast<size_t>(x * t.columns.count + k);
          const A weight = static_cast<A>(t.rows.weight[row]) * static_cast<A>(t.columns.weight[column]);
          for (int64_t c = 0; c < to.channels; ++c) {
            target[t.columns.index[column] * from.channels + c] +=
                weight * static_cast<A>(grad[(y * to.width + x) * to.channels + c]);
          }
        }
      }
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) out[i] = static_cast<T>(sums[i]);
}

void run_unresize(const UnresizeParams& p, const KernelArgs& a) {
  const ImageSize from(*a.out[0].shape), to(*a.in[0].shape);
  const kernels::ImageResizing tables = resizing(from, to, p.interp);
  if (device::current()) return resize_on_device("unresize_images", a, tables, from.batch);
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(from.batch, 5.0 * static_cast<double>(to.elements()), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        unresize_image(tables, from, to, a.in[0].as<T>() + i * to.elements(), a.out[0].as<T>() + i * from.elements());
    });
  });
}

Values resize_gradient(const ResizeParams& p, const GradientContext& g) {
  static const OpRef kUnresize{"_backward_image_resize"};
  if (!g.output_grad(0) || !is_floating(g.input_spec(0).dtype)) return {};
  return {call(kUnresize, {g.output_grad(0)}, ParamSchema<UnresizeParams>::box({g.input_spec(0).shape, p.interp}))};
}

Values unresize_gradient(const UnresizeParams& p, const GradientContext& g) {
  static const OpRef kResize{"_image_resize"};
  if (!g.output_grad(0)) return {};
  const ImageSize to(g.input_spec(0).shape);
  return {call(kResize, {g.output_grad(0)},
               ParamSchema<ResizeParams>::box({Tuple({to.width, to.height}), false, p.interp}))};
}

}  // namespace

void register_image_resize(OpRegistry& ops) {
  ops.declare<ResizeParams>("_image_resize")
      .alias("_npx__image_resize")
      .doc("Images resized to another height and width.")
      .input("data", "(height, width, channels), or a batch of those")
      .output("output", "data with the new height and width; integers are rounded")
      .infer(infer_resize)
      .cpu(run_resize, kNumeric)
      .any_device()
      .cost(
          [](const ResizeParams&, auto in, auto out) { return 500 + in[0].shape.size() * 2 + out[0].shape.size() * 4; })
      .gradient(resize_gradient, Saves::nothing())
      .sample({{4, 5, 3}}, {{"size", "(3, 6)"}})
      .sample({{2, 3, 4, 1}}, {{"size", "5"}, {"keep_ratio", "True"}, {"interp", "0"}})
      .sample({{5, 4, 1}}, {{"size", "(7, 3)"}, {"interp", "2"}})
      .sample({{7, 5, 2}}, {{"size", "(3, 3)"}, {"interp", "3"}})
      .sample({{6, 6, 1}}, {{"size", "9"}, {"interp", "4"}});
  ops.declare<UnresizeParams>("_backward_image_resize")
      .doc("The gradient of _image_resize: its adjoint.")
      .input("output_grad", "gradient of the resized images")
      .output("output", "shape given by the parameter")
      .infer([](const UnresizeParams& p, InferContext& c) {
        c.unify_dtypes();
        require_image(c);
        c.set_out_shape(0, p.shape);
      })
      .cpu(run_unresize, kFloating)
      .any_device()
      .gradient(unresize_gradient, Saves::nothing())
      .internal()
      .sample({{6, 3, 3}}, {{"shape", "(4, 5, 3)"}})
      .sample({{2, 3, 3, 1}}, {{"shape", "(2, 7, 5, 1)"}, {"interp", "3"}});
}

}  // namespace hybridnet::ops
