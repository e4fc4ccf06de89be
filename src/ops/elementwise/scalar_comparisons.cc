// Comparisons of an array with a number: 1 or 0 in the dtype of the array.
#include <cmath>

#include "device/stream.h"
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/device_map.h"
#include "ops/elementwise/scalar.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

// True if the dtype represents the number exactly. An integer array compared with 2.5 must not be compared with 2:
// numbers that are not exact are compared in float64.
bool is_exact_in(DType dtype, double scalar) {
  if (!is_integer(dtype)) return true;
  int64_t stored = 0;
  double back = 0;
  kernels::store_scalar(dtype, scalar, &stored);
  kernels::convert_fn(dtype, DType::kFloat64)(&stored, &back, 1);
  return back == scalar;
}

// Compares in double, tile by tile, and converts the result back: the result fits any dtype, the number does not.
template <Pointwise F>
void compare_wide(double scalar, DType from, const void* in, DType to, void* out, int64_t n) {
  if (device::current()) {
    if (from != to) kernels::convert(from, in, to, out, n);
    return kernels::number_on_device({span_loops<F>(), to, DType::kFloat64}, scalar, kScalarRight,
                                     from == to ? in : out, out, n);
  }
  constexpr int64_t kTile = 512;
  double tile[kTile];
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t m = std::min(kTile, n - i);
    kernels::convert(from, static_cast<const char*>(in) + i * dtype_size(from), DType::kFloat64, tile, m);
    apply_scalar<F, kScalarRight>(scalar, DType::kFloat64, tile, tile, m, false);
    kernels::convert(DType::kFloat64, tile, to, static_cast<char*>(out) + i * dtype_size(to), m);
  }
}

template <Pointwise F>
void compare_span(const void* params, DType dtype, const void* const* in, void* out, int64_t n) {
  const double scalar = static_cast<const ScalarParams*>(params)->scalar;
  if (is_exact_in(dtype, scalar)) return apply_scalar<F, kScalarRight>(scalar, dtype, in[0], out, n, false);
  compare_wide<F>(scalar, dtype, in[0], dtype, out, n);
}

template <Pointwise F>
void run_compare(const ScalarParams& p, const KernelArgs& a) {
  const TensorRef& in = a.in[0];
  const TensorRef& out = a.out[0];
  if (is_exact_in(out.dtype, p.scalar)) return run_scalar<F, kScalarRight>(p, a);
  if (device::current()) return compare_wide<F>(p.scalar, in.dtype, in.data, out.dtype, out.data, out.size());
  parallel_for(out.size(), 1.0, [&](int64_t begin, int64_t end) {
    compare_wide<F>(p.scalar, in.dtype, in.as<char>() + begin * dtype_size(in.dtype), out.dtype,
                    out.as<char>() + begin * dtype_size(out.dtype), end - begin);
  });
}

template <Pointwise F>
void comparison(OpRegistry& ops, const char* name, const char* alias, const char* doc) {
  auto op = scalar_op<F, kScalarRight>(ops, name, doc);
  op.alias(alias)
      .cpu(run_compare<F>)
      .pointwise(&compare_span<F>)
      .gradient([](const ScalarParams&, const GradientContext&) { return Values(1); }, Saves::nothing())
      .sample({.inputs = {{3, 4}},
               .attrs = {{"scalar", "1"}},
               .integer_valued = true,
               .check_gradient = false,
               .note = "steps at equal values"})
      .sample({{3, 4}}, {{"scalar", "0.5"}});
}

// The same with a bool output, which is NumPy's comparison. A bool array, too, is compared by its numeric value.
template <Pointwise F>
void run_predicate(const ScalarParams& p, const KernelArgs& a) {
  const TensorRef& in = a.in[0];
  const DType through = is_exact_in(in.dtype, p.scalar) && in.dtype != DType::kBool ? in.dtype : DType::kFloat64;
  if (device::current()) {
    const DType wide = through == in.dtype ? DType::kUnknown : through;
    return kernels::number_on_device({span_loops<F>(), in.dtype, wide, true}, p.scalar, kScalarRight, in.data,
                                     a.out[0].data, in.size());
  }
  const kernels::ConvertFn widen = kernels::convert_fn(in.dtype, through),
                           narrow = kernels::convert_fn(through, DType::kBool);
  constexpr int64_t kTile = 512;
  parallel_for(in.size(), 1.0, [&](int64_t begin, int64_t end) {
    double given[kTile], found[kTile];
    for (int64_t i = begin; i < end; i += kTile) {
      const int64_t m = std::min(kTile, end - i);
      const void* data = in.as<char>() + i * dtype_size(in.dtype);
      if (through != in.dtype) {
        widen(data, given, m);
        data = given;
      }
      apply_scalar<F, kScalarRight>(p.scalar, through, data, found, m, false);
      narrow(found, a.out[0].as<bool>() + i, m);
    }
  });
}

template <Pointwise F>
void predicate(OpRegistry& ops, const char* name, const char* doc) {
  ops.declare<ScalarParams>(name)
      .doc(doc)
      .internal()
      .input("data", "array of any shape")
      .output("out", "bool, shape of data")
      .infer([](const ScalarParams&, InferContext& c) {
        c.unify_shapes();
        c.set_out_dtype(0, DType::kBool);
      })
      .any_device()
      .cpu(run_predicate<F>)
      .cost([](const ScalarParams&, auto in, auto out) { return elementwise_cost(span_loops<F>(), in, out); })
      .gradient(kNotDifferentiable)
      .sample({.inputs = {{3, 4}}, .attrs = {{"scalar", "1"}}, .integer_valued = true})
      .sample({{3, 4}}, {{"scalar", "0.5"}, {"is_int", "False"}});
}

template <typename T>
void mark_zeros(const T* in, int64_t n, bool* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] == T(0);
}

void declare_is_zero(OpRegistry& ops) {
  ops.declare("_is_zero")
      .doc("Whether data is 0.")
      .internal()
      .input("data", "array of any shape")
      .output("out", "bool, shape of data")
      .infer([](const NoParams&, InferContext& c) {
        c.unify_shapes();
        c.set_out_dtype(0, DType::kBool);
      })
      .any_device()
      .cpu([](const NoParams&, const KernelArgs& a) {
        if (device::current()) {
          return kernels::number_on_device({span_loops<Pointwise::kEqual>(), a.in[0].dtype, DType::kUnknown, true}, 0.0,
                                           kScalarRight, a.in[0].data, a.out[0].data, a.out[0].size());
        }
        dispatch_dtype(a.in[0].dtype, [&](auto zero) {
          const auto* in = a.in[0].as<decltype(zero)>();
          parallel_for(a.in[0].size(), 0.2, [&](int64_t begin, int64_t end) {
            mark_zeros(in + begin, end - begin, a.out[0].as<bool>() + begin);
          });
        });
      })
      .cost([](const NoParams&, auto in, auto out) {
        return elementwise_cost(span_loops<Pointwise::kLogicalNot>(), in, out);
      })
      .gradient(kNotDifferentiable)
      .sample({.inputs = {{3, 4}}, .low = -1, .high = 1, .integer_valued = true});
}

}  // namespace

void register_scalar_predicates(OpRegistry& ops) {
  declare_is_zero(ops);
  predicate<Pointwise::kEqual>(ops, "_is_equal_scalar", "Whether data == scalar.");
  predicate<Pointwise::kNotEqual>(ops, "_is_not_equal_scalar", "Whether data != scalar.");
  predicate<Pointwise::kGreater>(ops, "_is_greater_scalar", "Whether data > scalar.");
  predicate<Pointwise::kGreaterEqual>(ops, "_is_greater_equal_scalar", "Whether data >= scalar.");
  predicate<Pointwise::kLesser>(ops, "_is_less_scalar", "Whether data < scalar.");
  predicate<Pointwise::kLesserEqual>(ops, "_is_less_equal_scalar", "Whether data <= scalar.");
}

void register_scalar_comparisons(OpRegistry& ops) {
  comparison<Pointwise::kEqual>(ops, "_equal_scalar", "_EqualScalar", "1 where data == scalar, else 0.");
  comparison<Pointwise::kNotEqual>(ops, "_not_equal_scalar", "_NotEqualScalar", "1 where data != scalar, else 0.");
  comparison<Pointwise::kGreater>(ops, "_greater_scalar", "_GreaterScalar", "1 where data > scalar, else 0.");
  comparison<Pointwise::kGreaterEqual>(ops, "_greater_equal_scalar", "_GreaterEqualScalar",
                                       "1 where data >= scalar, else 0.");
  comparison<Pointwise::kLesser>(ops, "_lesser_scalar", "_LesserScalar", "1 where data < scalar, else 0.");
  comparison<Pointwise::kLesserEqual>(ops, "_lesser_equal_scalar", "_LesserEqualScalar",
                                      "1 where data <= scalar, else 0.");
  comparison<Pointwise::kLogicalAnd>(ops, "_logical_and_scalar", "_LogicalAndScalar",
                                     "1 where data and scalar are both not 0.");
  comparison<Pointwise::kLogicalOr>(ops, "_logical_or_scalar", "_LogicalOrScalar", "1 where data or scalar is not 0.");
  comparison<Pointwise::kLogicalXor>(ops, "_logical_xor_scalar", "_LogicalXorScalar",
                                     "1 where exactly one of data and scalar is not 0.");
}

}  // namespace hybridnet::ops
