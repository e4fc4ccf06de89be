// Pad: pads with constants, with repeated edges, or with mirrored data.
#include <algorithm>

#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/values_arguments.h"
#include "kernels/elementwise/integers.h"
#include "kernels/memory/fill.h"
#include "kernels/memory/strided_copy.h"
#include "ops/device_launch.h"
#include "ops/emit.h"
#include "ops/shape/slice_ranges.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

enum class PadMode : int32_t { kConstant, kEdge, kReflect };

struct PadParams {
  PadMode mode;
  Tuple pad_width;
  double constant_value;
  static void describe(ParamSchema<PadParams>& schema) {
    schema.field("mode", &PadParams::mode)
        .choice("constant", PadMode::kConstant)
        .choice("edge", PadMode::kEdge)
        .choice("reflect", PadMode::kReflect)
        .doc("The padding values: constant_value, the nearest element, or the data mirrored at its edge.");
    schema.field("pad_width", &PadParams::pad_width).doc("Widths before and after each axis: two numbers per axis.");
    schema.field("constant_value", &PadParams::constant_value)
        .default_value(0.0)
        .doc("Value of the padding in mode constant.");
    schema.check([](const PadParams& p) {
      bool good = p.pad_width.ndim() % 2 == 0;
      for (int64_t width : p.pad_width) good = good && width >= 0;
      if (!good) {
        throw ParamError({.input = "pad_width",
                          .expected = "two numbers that are not negative per axis",
                          .given = p.pad_width.str()});
      }
    });
  }
};

void check_width(const PadParams& p, const Shape& in) {
  if (p.pad_width.ndim() != 2 * in.ndim()) {
    throw ParamError({.input = "pad_width",
                      .expected = std::to_string(2 * in.ndim()) + " numbers, two per axis",
                      .given = p.pad_width.str(),
                      .because = "data has shape " + in.str()});
  }
  for (int i = 0; i < in.ndim(); ++i) {
    const int64_t widest = std::max(p.pad_width[2 * i], p.pad_width[2 * i + 1]);
    if (widest == 0 || in[i] < 0) continue;
    if ((p.mode == PadMode::kReflect && widest >= in[i]) || (p.mode == PadMode::kEdge && in[i] == 0)) {
      throw ShapeError({.input = "data",
                        .expected = "a size above " + std::to_string(p.mode == PadMode::kReflect ? widest : 0) +
                                    " in axis " + std::to_string(i) + ", for the frame is taken from the data",
                        .given = in.str()});
    }
  }
}

void infer_pad(const PadParams& p, InferContext& c) {
  c.unify_dtypes();
  if (c.in_shape(0).rank_known()) {
    const Shape& in = c.in_shape(0);
    check_width(p, in);
    Shape out = in;
    for (int i = 0; i < in.ndim(); ++i) {
      if (in[i] >= 0) out[i] = checked_plus(checked_plus(in[i], p.pad_width[2 * i]), p.pad_width[2 * i + 1]);
    }
    c.set_out_shape(0, out);
  }
  const Shape& out = c.out_shape(0);
  if (out.rank_known() && 2 * out.ndim() == p.pad_width.ndim()) {
    Shape in = out;
    for (int i = 0; i < out.ndim(); ++i) {
      if (out[i] >= 0) in[i] = out[i] - p.pad_width[2 * i] - p.pad_width[2 * i + 1];
    }
    c.set_in_shape(0, in);
  }
}

// The slice of the padded tensor that holds the data.
SliceRanges inside(const PadParams& p, const Shape& in) {
  SliceRanges ranges;
  for (int i = 0; i < in.ndim(); ++i) ranges.push_back({p.pad_width[2 * i], 1, in[i]});
  return ranges;
}

// source[i]: the index of the data element that element i of a padded axis repeats.
Temporary<int64_t> sources(PadMode mode, int64_t size, int64_t before, int64_t after) {
  Temporary<int64_t> source(static_cast<size_t>(before + size + after));
  for (int64_t i = 0; i < before + size + after; ++i) {
    int64_t at = i - before;
    if (mode == PadMode::kEdge)
      at = std::clamp<int64_t>(at, 0, size - 1);
    else if (at < 0)
      at = -at;
    else if (at >= size)
      at = 2 * (size - 1) - at;
    source[static_cast<size_t>(i)] = at;
  }
  return source;
}

// The padded tensor as (outer, rows of the padded axes): leading axes without padding are merged into one.
struct FramedAxes {
  int64_t outer = 1, in_inner = 1, out_inner = 1;
  Temporary<Temporary<int64_t>> source;  // per padded axis
  Temporary<int64_t> in_stride, out_size;
  FramedAxes(const PadParams& p, const Shape& in) {
    int first = 0;
    while (first < in.ndim() - 1 && p.pad_width[2 * first] == 0 && p.pad_width[2 * first + 1] == 0)
      outer *= in[first++];
    const kernels::Strides strides(in);
    for (int i = first; i < in.ndim(); ++i) {
      source.push_back(sources(p.mode, in[i], p.pad_width[2 * i], p.pad_width[2 * i + 1]));
      in_stride.push_back(strides[i]);
      out_size.push_back(static_cast<int64_t>(source.back().size()));
      in_inner *= in[i];
      out_inner *= out_size.back();
    }
  }
  // Calls f(out offset, in offset of the row's start) for every row of the last axis of one outer slice.
  template <typename F>
  void each_row(F&& f) const {
    const size_t last = source.size() - 1;
    const int64_t rows = out_size[last] == 0 ? 0 : out_inner / out_size[last];
    for (int64_t row = 0; row < rows; ++row) {
      int64_t rest = row, from = 0;
      for (size_t k = last; k-- > 0;) {
        from += source[k][static_cast<size_t>(rest % out_size[k])] * in_stride[k];
        rest /= out_size[k];
      }
      f(row * out_size[last], from);
    }
  }
};

device::PadArguments pad_arguments(PadMode mode, const Tuple& width, const Shape& data, const Shape& padded,
                                   const KernelArgs& a) {
  device::PadArguments arguments{.in = a.in[0].data,
                                 .out = a.out[0].data,
                                 .n = a.out[0].size(),
                                 .ndim = data.ndim(),
                                 .reflects = mode == PadMode::kReflect};
  for (int i = 0; i < data.ndim(); ++i) {
    arguments.in_size[i] = data[i];
    arguments.out_size[i] = padded[i];
    arguments.before[i] = width[2 * i];
  }
  return arguments;
}

void run_pad(const PadParams& p, const KernelArgs& a) {
  const Shape& in = *a.in[0].shape;
  if (p.mode == PadMode::kConstant) {
    if (a.in[0].size() != a.out[0].size()) kernels::fill(a.out[0], p.constant_value);
    return write_slice(inside(p, in), a.in[0], a.out[0]);
  }
  if (a.out[0].size() == 0) return;
  if (in.ndim() == 0) return kernels::copy_bytes(a.in[0].data, a.out[0].data, dtype_size(a.in[0].dtype));
  if (device::current()) {
    return on_device::launch("windows.cuh", "PadArguments", on_device::with_bits("pad", a.in[0].dtype), a.out[0].size(),
                             pad_arguments(p.mode, p.pad_width, in, *a.out[0].shape, a));
  }
  const FramedAxes axes(p, in);
  dispatch_dtype(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(axes.outer, 0.3 * static_cast<double>(axes.out_inner), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const T* from = a.in[0].as<T>() + o * axes.in_inner;
        T* to = a.out[0].as<T>() + o * axes.out_inner;
        const Temporary<int64_t>& columns = axes.source.back();
        axes.each_row([&](int64_t out_row, int64_t in_row) {
          for (size_t i = 0; i < columns.size(); ++i) to[out_row + static_cast<int64_t>(i)] = from[in_row + columns[i]];
        });
      }
    });
  });
}

struct PadGradParams {
  PadMode mode;
  Tuple pad_width;
  static void describe(ParamSchema<PadGradParams>& schema) {
    schema.field("mode", &PadGradParams::mode)
        .choice("edge", PadMode::kEdge)
        .choice("reflect", PadMode::kReflect)
        .doc("Same as in Pad.");
    schema.field("pad_width", &PadGradParams::pad_width).doc("Same as in Pad.");
  }
};

Shape unpadded(const Tuple& width, const Shape& out) {
  Shape in = out;
  for (int i = 0; i < out.ndim(); ++i) {
    if (out[i] >= 0) in[i] = out[i] - width[2 * i] - width[2 * i + 1];
  }
  return in;
}

// Sums in the order of the padded tensor within each outer slice; 16-bit floats accumulate in float.
void run_pad_grad(const PadGradParams& p, const KernelArgs& a) {
  const Shape& in = *a.out[0].shape;
  if (in.ndim() == 0) return kernels::copy_bytes(a.in[0].data, a.out[0].data, dtype_size(a.in[0].dtype));
  if (device::current()) {
    return on_device::launch("windows.cuh", "PadArguments", on_device::with_dtype("pad_gradient", a.out[0].dtype),
                             a.out[0].size(), pad_arguments(p.mode, p.pad_width, in, *a.in[0].shape, a));
  }
  const FramedAxes axes({p.mode, p.pad_width, 0.0}, in);
  dispatch_dtype(a.out[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = kernels::wrapping_t<accumulator_t<T>>;
    parallel_for(axes.outer, 0.6 * static_cast<double>(axes.out_inner), [&](int64_t begin, int64_t end) {
      Temporary<A> sums(static_cast<size_t>(axes.in_inner));
      const Temporary<int64_t>& columns = axes.source.back();
      for (int64_t o = begin; o < end; ++o) {
        const T* from = a.in[0].as<T>() + o * axes.out_inner;
        std::fill(sums.begin(), sums.end(), A(0));
        axes.each_row([&](int64_t out_row, int64_t in_row) {
          for (size_t i = 0; i < columns.size(); ++i) {
            sums[static_cast<size_t>(in_row + columns[i])] += static_cast<A>(from[out_row + static_cast<int64_t>(i)]);
          }
        });
        T* to = a.out[0].as<T>() + o * axes.in_inner;
        for (int64_t i = 0; i < axes.in_inner; ++i) to[i] = static_cast<T>(sums[static_cast<size_t>(i)]);
      }
    });
  });
}

Values pad_gradient(const PadParams& p, const GradientContext& g) {
  static const OpRef kGrad{"_backward_pad"};
  if (!g.output_grad(0)) return {};
  if (p.mode == PadMode::kConstant) return {take_slice(g.output_grad(0), inside(p, g.input_spec(0).shape))};
  return {call(kGrad, {g.output_grad(0)}, ParamSchema<PadGradParams>::box({p.mode, p.pad_width}))};
}

Values pad_grad_gradient(const PadGradParams& p, const GradientContext& g) {
  static const OpRef kPad{"Pad"};
  if (!g.output_grad(0)) return {};
  return {call(kPad, {g.output_grad(0)}, ParamSchema<PadParams>::box({p.mode, p.pad_width, 0.0}))};
}

}  // namespace

void register_pad(OpRegistry& ops) {
  ops.declare<PadParams>("Pad")
      .alias("pad")
      .doc("Pads data with constants, with its edge values, or with its mirror image.")
      .input("data", "any shape, any dtype")
      .names_its_input()
      .output("output", "sizes of data plus the widths before and after")
      .infer(infer_pad)
      .any_device()
      .cpu(run_pad)
      .gradient(pad_gradient, Saves::nothing())
      .sample({{1, 2, 3, 2}},
              {{"mode", "constant"}, {"pad_width", "(0, 0, 0, 0, 1, 2, 0, 1)"}, {"constant_value", "1.5"}})
      .sample({{1, 2, 3, 2}}, {{"mode", "edge"}, {"pad_width", "(0, 0, 0, 0, 1, 2, 3, 1)"}})
      .sample({{1, 2, 3, 4}}, {{"mode", "reflect"}, {"pad_width", "(0, 0, 0, 0, 1, 2, 3, 1)"}})
      .sample({{3}}, {{"mode", "reflect"}, {"pad_width", "(2, 2)"}});
  ops.declare<PadGradParams>("_backward_pad")
      .doc("Adds the padding to the elements that it repeats: the gradient of Pad in modes edge and reflect.")
      .input("output_grad", "shape of the padded tensor")
      .output("output", "shape of output_grad minus the widths before and after")
      .infer([](const PadGradParams& p, InferContext& c) {
        c.unify_dtypes();
        if (c.in_shape(0).rank_known() && 2 * c.in_shape(0).ndim() == p.pad_width.ndim()) {
          c.set_out_shape(0, unpadded(p.pad_width, c.in_shape(0)));
        }
      })
      .any_device()
      .cpu(run_pad_grad)
      .gradient(pad_grad_gradient, Saves::nothing())
      .internal()
      .sample({{2, 5, 6}}, {{"mode", "reflect"}, {"pad_width", "(0, 0, 1, 1, 2, 1)"}});
}

}  // namespace hybridnet::ops
