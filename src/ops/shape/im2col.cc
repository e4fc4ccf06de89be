// im2col and col2im: copy the pixels under a kernel to the columns of a matrix, and add columns back to their pixels.
#include <algorithm>

#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/values_arguments.h"
#include "kernels/elementwise/integers.h"
#include "kernels/memory/strided_copy.h"
#include "ops/device_launch.h"
#include "ops/emit.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

const OpRef kIm2col{"im2col"}, kCol2im{"col2im"};

struct WindowParams {
  Tuple kernel, stride, dilate, pad, output_size;
};
struct Im2colParams : WindowParams {
  static void describe(ParamSchema<Im2colParams>& schema);
};
struct Col2imParams : WindowParams {
  static void describe(ParamSchema<Col2imParams>& schema);
};

void check_tuple(const char* field, const Tuple& t, int axes, int64_t least) {
  bool good = axes >= 1 && axes <= 3 && (t.ndim() == axes || t.ndim() == 0);
  for (int64_t v : t) good = good && v >= least && v <= INT32_MAX;  // keeps sums and products far below 2**63
  if (good) return;
  throw ParamError({.input = field,
                    .expected = "1 to 3 numbers of at least " + std::to_string(least) + ", one per axis of the image",
                    .given = t.str()});
}

template <typename P>
void describe_window(ParamSchema<P>& schema) {
  const auto field = [&](const char* name, Tuple WindowParams::*member) {
    return schema.field(name, static_cast<Tuple P::*>(member));
  };
  field("kernel", &WindowParams::kernel).doc("Size of the kernel along every axis of the image, for 1 to 3 axes.");
  field("stride", &WindowParams::stride)
      .default_value(AttrValue(Tuple::scalar()))
      .doc("Strides of the kernel; () is 1.");
  field("dilate", &WindowParams::dilate)
      .default_value(AttrValue(Tuple::scalar()))
      .doc("Distances between kernel points; () is 1.");
  field("pad", &WindowParams::pad)
      .default_value(AttrValue(Tuple::scalar()))
      .doc("Width of the zero padding on each side of the image; () is 0.");
  schema.check([](const P& p) {
    check_tuple("kernel", p.kernel, p.kernel.ndim(), 1);
    check_tuple("stride", p.stride, p.kernel.ndim(), 1);
    check_tuple("dilate", p.dilate, p.kernel.ndim(), 1);
    check_tuple("pad", p.pad, p.kernel.ndim(), 0);
    if constexpr (std::is_same_v<P, Col2imParams>) check_tuple("output_size", p.output_size, p.kernel.ndim(), 0);
  });
}
void Im2colParams::describe(ParamSchema<Im2colParams>& schema) { describe_window(schema); }
void Col2imParams::describe(ParamSchema<Col2imParams>& schema) {
  schema.field("output_size", static_cast<Tuple Col2imParams::*>(&WindowParams::output_size)).doc("Size of the image.");
  describe_window(schema);
}

// Sizes for three axes; missing axes have size 1.
struct Windows {
  int64_t image[3], kernel[3], stride[3], dilate[3], pad[3], steps[3];
  Windows(const WindowParams& p, std::span<const int64_t> size) {
    const int missing = 3 - p.kernel.ndim();
    for (int i = 0; i < 3; ++i) {
      const int k = i - missing;
      const auto of = [k](const Tuple& t, int64_t otherwise) { return k >= 0 && t.ndim() > 0 ? t[k] : otherwise; };
      image[i] = k >= 0 ? size[static_cast<size_t>(k)] : 1;
      kernel[i] = of(p.kernel, 1);
      stride[i] = of(p.stride, 1);
      dilate[i] = of(p.dilate, 1);
      pad[i] = of(p.pad, 0);
      const int64_t room = checked_plus(image[i], checked_times(2, pad[i], "pad"), "pad"),
                    span = checked_plus(checked_times(dilate[i], kernel[i] - 1, "kernel"), 1, "kernel");
      steps[i] = (room - span) / stride[i] + 1;
      if (room < span) {
        throw ShapeError({.input = "data",
                          .expected = "images of at least the kernel's size",
                          .given = "size " + std::to_string(image[i]) + " along axis " + std::to_string(k),
                          .because = "the kernel covers " + std::to_string(span) + ", the border is " +
                                     std::to_string(pad[i]) + " wide"});
      }
    }
  }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t positions() const { return checked_times(checked_times(steps[0], steps[1]), steps[2]); }
  int64_t pixels() const { return image[0] * image[1] * image[2]; }

  // The steps [first, last) along an axis for which kernel point `tap` is inside the image.
  void inside(int axis, int64_t tap, int64_t* first, int64_t* last) const {
    const int64_t at = tap * dilate[axis] - pad[axis];  // position of the point at step 0
    *first = at >= 0 ? 0 : std::min((-at + stride[axis] - 1) / stride[axis], steps[axis]);
    *last =
        at >= image[axis] ? *first : std::max(*first, std::min(steps[axis], (image[axis] - 1 - at) / stride[axis] + 1));
  }

  // Calls f(pixel, position, count) for runs along the last axis that kernel point `tap` reads: pixels are stride[2]
  // apart.
  template <typename F>
  void for_each_run(int64_t tap, F&& f) const {
    const int64_t points[3] = {tap / (kernel[1] * kernel[2]), tap / kernel[2] % kernel[1], tap % kernel[2]};
    int64_t first[3], last[3];
    for (int i = 0; i < 3; ++i) inside(i, points[i], &first[i], &last[i]);
    const auto pixel = [&](int axis, int64_t step) {
      return step * stride[axis] + points[axis] * dilate[axis] - pad[axis];
    };
    if (first[2] >= last[2]) return;
    for (int64_t z = first[0]; z < last[0]; ++z)
      for (int64_t y = first[1]; y < last[1]; ++y)
        f((pixel(0, z) * image[1] + pixel(1, y)) * image[2] + pixel(2, first[2]),
          (z * steps[1] + y) * steps[2] + first[2], last[2] - first[2]);
  }
};

void infer_im2col(const Im2colParams& p, InferContext& c) {
  c.unify_dtypes();
  const int axes = p.kernel.ndim();
  c.set_in_shape(0, Shape::unknown(axes + 2));
  const Shape& data = c.in_shape(0);
  int64_t taps = 1;
  for (int64_t k : p.kernel) taps = checked_times(taps, k, "kernel");
  const bool sized = std::all_of(data.begin() + 2, data.end(), [](int64_t s) { return s != kUnknownDim; });
  c.set_out_shape(0, Shape({data[0], data[1] == kUnknownDim ? kUnknownDim : checked_times(data[1], taps, "kernel"),
                            sized ? Windows(p, data.dims().subspan(2)).positions() : kUnknownDim}));
}

void infer_col2im(const Col2imParams& p, InferContext& c) {
  c.unify_dtypes();
  if (p.output_size.ndim() != p.kernel.ndim())
    throw ParamError({.input = "output_size",
                      .expected = "as many numbers as kernel " + p.kernel.str(),
                      .given = p.output_size.str()});
  const Windows w(p, p.output_size.dims());
  c.set_in_shape(0, Shape({kUnknownDim, kUnknownDim, w.positions()}));
  const Shape& columns = c.in_shape(0);
  if (columns[1] != kUnknownDim && columns[1] % w.taps() != 0)
    throw ShapeError({.input = "data",
                      .expected = "channels * " + std::to_string(w.taps()) + " rows",
                      .given = "shape " + columns.str()});
  Shape out({columns[0], columns[1] == kUnknownDim ? kUnknownDim : columns[1] / w.taps()});
  for (int64_t size : p.output_size) out.push_back(size);
  c.set_out_shape(0, out);
}

device::WindowArguments window_arguments(const Windows& w, int64_t planes, const KernelArgs& a) {
  device::WindowArguments arguments{.in = a.in[0].data, .out = a.out[0].data, .planes = planes};
  std::copy_n(w.image, 3, arguments.image);
  std::copy_n(w.kernel, 3, arguments.kernel);
  std::copy_n(w.stride, 3, arguments.stride);
  std::copy_n(w.dilate, 3, arguments.dilate);
  std::copy_n(w.pad, 3, arguments.pad);
  std::copy_n(w.steps, 3, arguments.steps);
  return arguments;
}

void run_im2col(const Im2colParams& p, const KernelArgs& a) {
  const Shape& data = *a.in[0].shape;
  const Windows w(p, data.dims().subspan(2));
  if (device::current()) {
    return on_device::launch("windows.cuh", "WindowArguments", on_device::with_bits("im2col", a.in[0].dtype),
                             a.out[0].size(), window_arguments(w, data[0] * data[1], a));
  }
  kernels::zero_bytes(a.out[0].data, a.out[0].size() * dtype_size(a.out[0].dtype));
  dispatch_dtype(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(data[0] * data[1] * w.taps(), 1.2 * static_cast<double>(w.positions()),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const T* image = a.in[0].as<T>() + i / w.taps() * w.pixels();
                     T* out = a.out[0].as<T>() + i * w.positions();
                     w.for_each_run(i % w.taps(), [&](int64_t pixel, int64_t position, int64_t count) {
                       for (int64_t x = 0; x < count; ++x) out[position + x] = image[pixel + x * w.stride[2]];
                     });
                   }
                 });
  });
}

void run_col2im(const Col2imParams& p, const KernelArgs& a) {
  const Windows w(p, p.output_size.dims());
  const int64_t planes = w.pixels() > 0 ? a.out[0].size() / w.pixels() : 0;
  if (device::current()) {
    return on_device::launch("windows.cuh", "WindowArguments", on_device::with_dtype("col2im", a.in[0].dtype),
                             a.out[0].size(), window_arguments(w, planes, a));
  }
  dispatch_dtype(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = kernels::wrapping_t<accumulator_t<T>>;
    parallel_for(planes, 1.2 * static_cast<double>(w.positions() * w.taps()), [&](int64_t begin, int64_t end) {
      Temporary<A> sums(static_cast<size_t>(w.pixels()));
      for (int64_t plane = begin; plane < end; ++plane) {
        std::fill(sums.begin(), sums.end(), A(0));
        for (int64_t tap = 0; tap < w.taps(); ++tap) {
          const T* in = a.in[0].as<T>() + (plane * w.taps() + tap) * w.positions();
          w.for_each_run(tap, [&](int64_t pixel, int64_t position, int64_t count) {
            for (int64_t x = 0; x < count; ++x)
              sums[static_cast<size_t>(pixel + x * w.stride[2])] += static_cast<A>(in[position + x]);
          });
        }
        std::transform(sums.begin(), sums.end(), a.out[0].as<T>() + plane * w.pixels(),
                       [](A v) { return static_cast<T>(v); });
      }
    });
  });
}

template <typename To, typename From>
ParamsPtr as_params(const From& p, const Tuple& output_size) {
  To q;
  static_cast<WindowParams&>(q) = p;
  q.output_size = output_size;
  return ParamSchema<To>::box(q);
}

}  // namespace

void register_im2col(OpRegistry& ops) {
  ops.declare<Im2colParams>("im2col")
      .doc("The pixels that every point of a kernel reads, at every position of the kernel.")
      .input("data", "(batch, channels, image...), 1 to 3 axes of image")
      .names_its_input()
      .output("output", "(batch, channels * kernel points, positions)")
      .infer(infer_im2col)
      .any_device()
      .cpu(run_im2col, kNumeric)
      .gradient(
          [](const Im2colParams& p, const GradientContext& g) {
            if (!g.output_grad(0)) return Values{};
            const Tuple size{g.input_spec(0).shape.dims().subspan(2)};
            return Values{call(kCol2im, {g.output_grad(0)}, as_params<Col2imParams>(p, size))};
          },
          Saves::nothing())
      .sample({{2, 2, 4, 5}}, {{"kernel", "(2, 3)"}})
      .sample({{1, 3, 7}}, {{"kernel", "(3,)"}, {"stride", "(2,)"}, {"dilate", "(2,)"}, {"pad", "(2,)"}})
      .sample({{1, 1, 3, 4, 3}}, {{"kernel", "(2, 2, 2)"}, {"pad", "(1, 0, 1)"}, {"stride", "(2, 1, 2)"}});
  ops.declare<Col2imParams>("col2im")
      .doc("Images from the columns of im2col: values of the same pixel are added.")
      .input("data", "(batch, channels * kernel points, positions)")
      .names_its_input()
      .output("output", "(batch, channels, output_size...)")
      .infer(infer_col2im)
      .any_device()
      .cpu(run_col2im, kNumeric)
      .gradient(
          [](const Col2imParams& p, const GradientContext& g) {
            if (!g.output_grad(0)) return Values{};
            return Values{call(kIm2col, {g.output_grad(0)}, as_params<Im2colParams>(p, Tuple::scalar()))};
          },
          Saves::nothing())
      .sample({{2, 12, 9}}, {{"kernel", "(2, 3)"}, {"output_size", "(4, 5)"}})
      .sample({{1, 9, 4}},
              {{"kernel", "(3,)"}, {"stride", "(2,)"}, {"dilate", "(2,)"}, {"pad", "(2,)"}, {"output_size", "(7,)"}});
}

}  // namespace hybridnet::ops
