// Differences of neighbors, polynomials, and sequences computed from a formula, in NumPy's interface.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/values_arguments.h"
#include "kernels/memory/fill.h"
#include "ops/device_launch.h"
#include "ops/numpy/promote.h"
#include "ops/shape_param.h"

namespace hybridnet::ops {
namespace {

const OpRef kSliceAxis{"slice_axis"}, kNotEqual{"broadcast_not_equal"}, kMul{"broadcast_mul"}, kAdd{"broadcast_add"};

// --------------------------------------------------------------------------------------------------------- differences
struct DiffParams {
  int32_t n, axis;
  static void describe(ParamSchema<DiffParams>& schema) {
    schema.field("n", &DiffParams::n).default_value(1).at_least(0).doc("Number of times that differences are taken.");
    schema.field("axis", &DiffParams::axis).default_value(-1).doc("The axis of the differences.");
  }
};

constexpr int64_t kMaxDifferences = 4096;

// Each element minus the previous one; for bools, whether they differ.
Value difference(const Value& a, int axis) {
  if (spec_of(a).shape[axis] < 2) return slice_axis(a, axis, 0, 0);
  const Value later = call(kSliceAxis, {a}, {{"axis", axis}, {"begin", 1}, {"end", AttrValue()}});
  const Value earlier = call(kSliceAxis, {a}, {{"axis", axis}, {"begin", 0}, {"end", -1}});
  if (dtype_of(a) == DType::kBool) return cast(call(kNotEqual, {later, earlier}), DType::kBool);
  return later - earlier;
}

Values diff_rule(const DiffParams& p, const Values& in) {
  const Shape& shape = spec_of(in[0]).shape;
  if (shape.ndim() == 0) throw ShapeError({.input = "a", .expected = "at least one axis", .given = "a scalar"});
  const int axis = normalize_axis(p.axis, shape.ndim());
  Value a = in[0];
  const int64_t steps = std::min<int64_t>(p.n, shape[axis]);  // after that many steps the axis is empty
  if (steps > kMaxDifferences)
    throw ParamError({.input = "n",
                      .expected = "at most " + std::to_string(kMaxDifferences),
                      .given = std::to_string(p.n),
                      .because = "each time is an operator of its own"});
  for (int64_t i = 0; i < steps; ++i) a = difference(a, axis);
  return {a};
}

struct EdiffParams {
  bool to_begin_arr_given, to_end_arr_given;
  std::optional<double> to_begin_scalar, to_end_scalar;
  static void describe(ParamSchema<EdiffParams>& schema) {
    schema.field("to_begin_arr_given", &EdiffParams::to_begin_arr_given)
        .default_value(false)
        .doc("Whether an array of values is prepended.");
    schema.field("to_end_arr_given", &EdiffParams::to_end_arr_given)
        .default_value(false)
        .doc("Whether an array of values is appended.");
    schema.field("to_begin_scalar", &EdiffParams::to_begin_scalar).none_by_default().doc("Value to prepend.");
    schema.field("to_end_scalar", &EdiffParams::to_end_scalar).none_by_default().doc("Value to append.");
  }
};

Value flat(const Value& a) { return literal_reshape(a, Shape{-1}); }

Values ediff1d_rule(const EdiffParams& p, const Values& in) {
  const DType dtype = dtype_of(in[0]);
  size_t next = 1;
  Values parts;
  const auto add = [&](bool given, const std::optional<double>& scalar) {
    if (given) parts.push_back(cast(flat(in[next++]), dtype));
    if (!given && scalar) parts.push_back(cast(full(Shape{1}, DType::kFloat64, *scalar), dtype));
  };
  add(p.to_begin_arr_given, p.to_begin_scalar);
  parts.push_back(difference(flat(in[0]), 0));
  add(p.to_end_arr_given, p.to_end_scalar);
  return {parts.size() == 1 ? parts[0] : concat(parts, 0)};
}

// --------------------------------------------------------------------------------------------------------- polynomials
constexpr int64_t kMaxCoefficients = 4096;  // each adds a few operators

// Horner's scheme, from the coefficient of the highest power down.
Values polyval_rule(const NoParams&, const Values& in) {
  const Shape& coefficients = spec_of(in[0]).shape;
  if (coefficients.ndim() != 1)
    throw ShapeError({.input = "p", .expected = "a vector of coefficients", .given = coefficients.str()});
  if (coefficients[0] > kMaxCoefficients)
    throw ShapeError({.input = "p",
                      .expected = "at most " + std::to_string(kMaxCoefficients) + " coefficients",
                      .given = coefficients.str()});
  const DType dtype = promoted(in), inner = arithmetic(dtype);
  const Value p = cast(in[0], inner);
  const Shape shape = spec_of(in[1]).shape;
  const Value x = shape.ndim() == 0 ? literal_reshape(cast(in[1], inner), Shape{1}) : cast(in[1], inner);
  Value y = zeros_like(x);
  for (int64_t i = 0; i < coefficients[0]; ++i)
    y = call(kAdd, {i == 0 ? y : call(kMul, {y, x}), slice_axis(p, 0, i, i + 1)});
  return {cast(without_axes_left(y, shape.ndim()), dtype)};
}

// ---------------------------------------------------------------------------------------------------- windows, logspace
struct WindowParams {
  std::optional<int64_t> M;
  std::string ctx;
  DType dtype;
  static void describe(ParamSchema<WindowParams>& schema) {
    schema.field("M", &WindowParams::M).none_by_default().doc("Number of values; below 1: no values.");
    describe_ctx<WindowParams>(schema);
    schema.field("dtype", &WindowParams::dtype).default_value("float32").doc("Dtype of the output.");
  }
};

// a0 - a1 cos(2 pi i / (M - 1)) + a2 cos(4 pi i / (M - 1))
struct Cosines {
  double a0, a1, a2;
};

template <typename F>
void fill_with(const TensorRef& out, double nanoseconds, F value_at) {
  dispatch_dtype(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* data = out.as<T>();
    parallel_for(out.size(), nanoseconds, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) data[i] = kernels::element_from<T>(value_at(i));
    });
  });
}

// The functions of the device's library: the last digits differ from those of the CPU's.
void draw_curve(const TensorRef& out, device::CurveArguments a) {
  a.out = out.data;
  a.n = out.size();
  on_device::launch("values.cuh", "CurveArguments", on_device::with_dtype("curve", out.dtype), a.n, a);
}

void run_window(const Cosines& c, const TensorRef& out) {
  const int64_t count = out.size();
  const double step = count > 1 ? 2.0 * std::numbers::pi / static_cast<double>(count - 1) : 0.0;
  if (device::current()) return draw_curve(out, {.a0 = c.a0, .a1 = c.a1, .a2 = c.a2, .step = step});
  fill_with(out, 40.0, [&](int64_t i) {
    if (count == 1) return 1.0;
    const double angle = step * static_cast<double>(i);
    return c.a0 - c.a1 * std::cos(angle) + c.a2 * std::cos(2 * angle);
  });
}

void declare_window(OpRegistry& ops, const char* name, const char* doc, const Cosines& cosines) {
  ops.declare<WindowParams>(name)
      .doc(doc)
      .output("out", "shape (M,)")
      .infer([](const WindowParams& p, InferContext& c) {
        c.set_out_dtype(0, p.dtype);
        c.set_out_shape(0, Shape({std::max<int64_t>(p.M.value_or(0), 0)}));
      })
      .any_device()
      .cpu([cosines](const WindowParams&, const KernelArgs& a) { run_window(cosines, a.out[0]); })
      .gradient(kNotDifferentiable)
      .sample({}, {{"M", "5"}})
      .sample({}, {{"M", "4"}, {"dtype", "float64"}})
      .sample({}, {{"M", "1"}});
}

struct LogspaceParams {
  double start, stop, base;
  int32_t num;
  bool endpoint;
  std::string ctx;
  DType dtype;
  static void describe(ParamSchema<LogspaceParams>& schema) {
    schema.field("start", &LogspaceParams::start).doc("Exponent of the first value.");
    schema.field("stop", &LogspaceParams::stop)
        .doc("Exponent of the last value; without endpoint, of the value after the last.");
    schema.field("num", &LogspaceParams::num).at_least(0).doc("Number of values.");
    schema.field("endpoint", &LogspaceParams::endpoint).default_value(true).doc("Whether stop is the last exponent.");
    schema.field("base", &LogspaceParams::base).default_value(10.0).doc("Base of the exponents.");
    describe_ctx<LogspaceParams>(schema);
    schema.field("dtype", &LogspaceParams::dtype).default_value("float32").doc("Dtype of the output.");
  }
};

void run_logspace(const LogspaceParams& p, const KernelArgs& a) {
  const int64_t gaps = p.endpoint ? p.num - 1 : p.num;
  const double step = gaps > 0 ? (p.stop - p.start) / static_cast<double>(gaps) : 0.0;
  if (device::current()) {
    return draw_curve(
        a.out[0],
        {.is_power = 1, .has_last = p.endpoint, .step = step, .base = p.base, .start = p.start, .stop = p.stop});
  }
  fill_with(a.out[0], 60.0, [&](int64_t i) {
    const bool last = p.endpoint && i > 0 && i == gaps;  // exact, independent of the rounding of step
    return std::pow(p.base, last ? p.stop : p.start + static_cast<double>(i) * step);
  });
}

}  // namespace

void register_numpy_differences(OpRegistry& ops) {
  ops.declare<DiffParams>("_npi_diff")
      .doc("Differences of neighbors along an axis.")
      .input("a", "at least one axis")
      .output("out", "n elements fewer along the axis; dtype of a")
      .compose(diff_rule)
      .sample({{3, 4}})
      .sample({{4, 3}}, {{"n", "2"}, {"axis", "0"}})
      .sample({{2, 2}}, {{"n", "3"}});
  ops.declare<EdiffParams>("_npi_ediff1d")
      .doc("Differences of neighbors in row-major order, with values prepended and appended.")
      .input("input1", "array of numbers of any shape")
      .optional_input("input2", "values to prepend, or to append if none are prepended")
      .optional_input("input3", "values to append")
      .num_inputs([](const EdiffParams& p) { return 1 + int{p.to_begin_arr_given} + int{p.to_end_arr_given}; })
      .output("out", "vector, dtype of input1")
      .compose(ediff1d_rule)
      .sample({{2, 3}})
      .sample({{4}, {2}}, {{"to_end_arr_given", "True"}, {"to_begin_scalar", "1.5"}})
      .sample({{4}, {2}, {1, 2}}, {{"to_begin_arr_given", "True"}, {"to_end_arr_given", "True"}});
  ops.declare("_npi_polyval")
      .doc("The value at x of the polynomial with coefficients p, highest power first.")
      .input("p", "vector of coefficients")
      .input("x", "array of any shape")
      .output("out", "shape of x, the common dtype of the inputs")
      .compose(polyval_rule)
      .sample({{3}, {2, 3}})
      .sample({Shape{2}, Shape::scalar()});
}

void register_numpy_sequences(OpRegistry& ops) {
  declare_window(ops, "_npi_hanning", "The Hann window, 0.5 - 0.5 cos(2 pi i / (M - 1)).", {0.5, 0.5, 0.0});
  declare_window(ops, "_npi_hamming", "The Hamming window, 0.54 - 0.46 cos(2 pi i / (M - 1)).", {0.54, 0.46, 0.0});
  declare_window(ops, "_npi_blackman",
                 "The Blackman window, 0.42 - 0.5 cos(2 pi i / (M - 1)) + 0.08 cos(4 pi i / (M - 1)).",
                 {0.42, 0.5, 0.08});
  ops.declare<LogspaceParams>("_npi_logspace")
      .doc("num powers of base with evenly spaced exponents.")
      .output("out", "shape (num,)")
      .infer([](const LogspaceParams& p, InferContext& c) {
        c.set_out_dtype(0, p.dtype);
        c.set_out_shape(0, Shape({p.num}));
      })
      .any_device()
      .cpu(run_logspace)
      .gradient(kNotDifferentiable)
      .sample({}, {{"start", "0"}, {"stop", "2"}, {"num", "3"}})
      .sample({}, {{"start", "-1"}, {"stop", "1"}, {"num", "4"}, {"base", "2"}, {"endpoint", "False"}});
}

}  // namespace hybridnet::ops
