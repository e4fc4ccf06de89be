// _arange and _contrib_arange_like: evenly spaced values with a given step.
#include <algorithm>
#include <cmath>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/values_arguments.h"
#include "kernels/index/out_of_range.h"
#include "kernels/memory/fill.h"
#include "ops/device_launch.h"
#include "ops/shape_param.h"

namespace hybridnet::ops {
namespace {

struct ArangeParams {
  double start;
  std::optional<double> stop;
  double step;
  int32_t repeat;
  bool infer_range;
  std::string ctx;
  DType dtype;
  static void describe(ParamSchema<ArangeParams>& schema) {
    schema.field("start", &ArangeParams::start).doc("First value; if stop is None, the end, and the first value is 0.");
    schema.field("stop", &ArangeParams::stop).none_by_default().doc("End, exclusive.");
    schema.field("step", &ArangeParams::step).default_value(1.0).doc("Distance between values; not 0.");
    schema.field("repeat", &ArangeParams::repeat)
        .default_value(1)
        .at_least(1)
        .doc("Number of repetitions of each value.");
    schema.field("infer_range", &ArangeParams::infer_range)
        .default_value(false)
        .doc("Whether to infer the number of values from the use of the output.");
    describe_ctx<ArangeParams>(schema);
    schema.field("dtype", &ArangeParams::dtype).default_value("float32").doc("Dtype of the output.");
    schema.check([](const ArangeParams& p) {
      if (p.step == 0.0 || !std::isfinite(p.step)) {
        throw ParamError(
            {.input = "step", .expected = "a finite number that is not 0", .given = AttrValue(p.step).str()});
      }
    });
  }
};

struct ArangeLikeParams {
  double start, step;
  int32_t repeat;
  std::string ctx;
  std::optional<int32_t> axis;
  static void describe(ParamSchema<ArangeLikeParams>& schema) {
    schema.field("start", &ArangeLikeParams::start).default_value(0.0).doc("First value.");
    schema.field("step", &ArangeLikeParams::step).default_value(1.0).doc("Distance between values.");
    schema.field("repeat", &ArangeLikeParams::repeat)
        .default_value(1)
        .at_least(1)
        .doc("Number of repetitions of each value.");
    describe_ctx<ArangeLikeParams>(schema);
    schema.field("axis", &ArangeLikeParams::axis)
        .none_by_default()
        .doc("Axis of data to count along; None: all elements.");
  }
};

double first_value(const ArangeParams& p) { return p.stop || p.infer_range ? p.start : 0.0; }

int64_t number_of_values(const ArangeParams& p) {
  const double stop = p.stop ? *p.stop : p.start;
  const double count = std::ceil((stop - first_value(p)) / p.step);
  if (!(count < 0x1p62 / p.repeat)) {
    throw ParamError(
        {.input = "stop", .expected = "a finite range of fewer than 2**62 values", .given = AttrValue(stop).str()});
  }
  return count <= 0 ? 0 : static_cast<int64_t>(count) * p.repeat;
}

// Computes value i in double; exact for integers up to 2^53. Ranges of integer dtypes round start and step,
// which follows MXNet and NumPy: arange(1.5, 9, 1.5) of int32 is 1, 2, 3, ...
void fill_range(const TensorRef& out, double start, double step, int64_t repeat) {
  if (!is_floating(out.dtype)) {
    start = std::trunc(start);
    step = std::trunc(step);
  }
  if (device::current()) {
    return on_device::launch("values.cuh", "RangeArguments", on_device::with_dtype("range", out.dtype), out.size(),
                             device::RangeArguments{out.data, out.size(), start, step, 0, repeat, 0});
  }
  dispatch_dtype(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* data = out.as<T>();
    parallel_for(out.size(), 1.2, [&](int64_t begin, int64_t end) {
      if (repeat == 1) {
        for (int64_t i = begin; i < end; ++i) data[i] = kernels::element_from<T>(start + static_cast<double>(i) * step);
      } else {
        for (int64_t i = begin; i < end; ++i)
          data[i] = kernels::element_from<T>(start + static_cast<double>(i / repeat) * step);
      }
    });
  });
}

// The largest power of two that divides both integers; step is not 0.
double common_power_of_two(double start, double step) {
  double unit = 1;
  while (std::fmod(start, 2 * unit) == 0 && std::fmod(step, 2 * unit) == 0) unit *= 2;
  return unit;
}

// The non-negative integer that needs as many bits as the widest one of the range. Integer dtypes reach from -n-1 to n.
double widest_integer(DType dtype, double first, double last) {
  const double low = std::min(first, last), high = std::max(first, last);
  return std::max(high, is_floating(dtype) ? -low : -low - 1);
}

void warn_of_inexact_integers(const ArangeLikeParams& p, const TensorRef& out) {
  const bool has_integers = std::fmod(p.start, 1) == 0 && std::fmod(p.step, 1) == 0;  // not of infinities and NaN
  if (out.size() == 0 || !has_integers || p.step == 0) return;
  const double last = p.start + p.step * static_cast<double>((out.size() - 1) / p.repeat);
  const double unit = is_floating(out.dtype) ? common_power_of_two(p.start, p.step) : 1;
  if (unit > 0x1p62) return;
  const double widest = std::clamp(widest_integer(out.dtype, p.start, last), 0.0, 0x1p62);
  kernels::report_inexact_positions("_contrib_arange_like", out.dtype, static_cast<int64_t>(widest),
                                    "cast data to float32 or int32 before, and the result afterwards",
                                    static_cast<int64_t>(unit));
}

// Rows of positions in the dtype of a 16-bit network, such as those of attention masks.
void run_arange_like(const ArangeLikeParams& p, const KernelArgs& a) {
  const TensorRef& out = a.out[0];
  warn_of_inexact_integers(p, out);
  fill_range(out, p.start, p.step, p.repeat);
}

void infer_arange_like(const ArangeLikeParams& p, InferContext& c) {
  c.unify_dtypes();
  const Shape& in = c.in_shape(0);
  if (!p.axis) {
    c.unify_shapes();
  } else if (in.rank_known()) {
    const int axis = normalize_axis(*p.axis, in.ndim());
    c.set_out_shape(0, Shape({in[axis]}));
    Shape learned = Shape::unknown(in.ndim());
    learned[axis] = c.out_shape(0)[0];
    c.set_in_shape(0, learned);
  }
}

}  // namespace

void register_arange(OpRegistry& ops) {
  ops.declare<ArangeParams>("_arange")
      .alias("_npi_arange")
      .doc("Evenly spaced values from start, inclusive, to stop, exclusive.")
      .output("output", "shape (ceil((stop - start) / step) * repeat,)")
      .infer([](const ArangeParams& p, InferContext& c) {
        c.set_out_dtype(0, p.dtype);
        const bool counted = !p.infer_range || p.stop;
        c.set_out_shape(0, counted ? Shape({number_of_values(p)}) : Shape::unknown(1));
      })
      .any_device()
      .cpu([](const ArangeParams& p, const KernelArgs& a) { fill_range(a.out[0], first_value(p), p.step, p.repeat); })
      .gradient(kNotDifferentiable)
      .sample({}, {{"start", "5"}})
      .sample({}, {{"start", "1"}, {"stop", "2"}, {"step", "0.3"}})
      .sample({}, {{"start", "7"}, {"stop", "0"}, {"step", "-2"}, {"dtype", "int64"}})
      .sample({}, {{"start", "1.5"}, {"stop", "9"}, {"step", "1.5"}, {"dtype", "int32"}})
      .sample({}, {{"start", "0"}, {"stop", "3"}, {"repeat", "2"}});
  ops.declare<ArangeLikeParams>("_contrib_arange_like")
      .alias("_npx_arange_like")
      .doc(
          "Evenly spaced values, one per element of data or per position along one of its axes. Integers that the "
          "dtype of data cannot hold (bfloat16: above 256) are rounded, with a warning.")
      .input("data", "defines sizes and dtype only")
      .output("output", "shape of data, or one axis of it; dtype of data")
      .infer(infer_arange_like)
      .any_device()
      .cpu(run_arange_like)
      .gradient(kNotDifferentiable)
      .sample({{2, 3}}, {})
      .sample({{2, 3}}, {{"axis", "-1"}, {"start", "1"}, {"step", "0.5"}})
      .sample({{2, 4}}, {{"repeat", "2"}});
}

}  // namespace hybridnet::ops
