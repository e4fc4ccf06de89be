// Operators for mixed precision training: common dtypes of several arrays, tests for overflow, zeroing of arrays.

#include "hybridnet/declare.h"
#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/finite.h"
#include "kernels/memory/fill.h"
#include "kernels/memory/strided_copy.h"
#include "ops/elementwise/declare.h"
#include "ops/optimizer/device_squares.h"

namespace hybridnet::ops {
namespace {

// ---- amp_multicast
struct MulticastParams {
  int32_t num_outputs;
  bool cast_narrow;
  static void describe(ParamSchema<MulticastParams>& schema) {
    schema.field("num_outputs", &MulticastParams::num_outputs).at_least(1).doc("Number of arrays.");
    schema.field("cast_narrow", &MulticastParams::cast_narrow)
        .default_value(false)
        .doc("Whether to convert to the narrowest dtype among the inputs instead of the widest.");
  }
};

bool is_converted(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

// Returns float32 if any input has it (for narrow: unless any input has not), else the 16-bit dtype of the first
// converted input.
DType common_dtype(const MulticastParams& p, const InferContext& c) {
  DType narrow = DType::kUnknown;
  bool any_wide = false;
  for (int i = 0; i < c.num_in(); ++i) {
    if (c.in_dtype(i) == DType::kFloat32) any_wide = true;
    if (c.in_dtype(i) != DType::kFloat32 && is_converted(c.in_dtype(i)) && narrow == DType::kUnknown)
      narrow = c.in_dtype(i);
  }
  if (narrow == DType::kUnknown || (any_wide && !p.cast_narrow)) return DType::kFloat32;
  return narrow;
}

void infer_multicast(const MulticastParams& p, InferContext& c) {
  bool known = true;
  for (int i = 0; i < c.num_in(); ++i) {
    c.set_out_shape(i, c.in_shape(i));
    c.set_in_shape(i, c.out_shape(i));
    known = known && c.in_dtype(i) != DType::kUnknown;
  }
  if (!known) return;
  const DType common = common_dtype(p, c);
  for (int i = 0; i < c.num_in(); ++i) c.set_out_dtype(i, is_converted(c.in_dtype(i)) ? common : c.in_dtype(i));
}

void run_multicast(const MulticastParams&, const KernelArgs& a) {
  for (size_t i = 0; i < a.in.size(); ++i) {
    if (a.in[i].data == a.out[i].data) continue;
    kernels::convert_parallel(a.in[i].dtype, a.in[i].data, a.out[i].dtype, a.out[i].data, a.in[i].size());
  }
}

Values multicast_gradient(const MulticastParams&, const GradientContext& g) {
  Values grads(static_cast<size_t>(g.num_inputs()));
  for (int i = 0; i < g.num_inputs(); ++i) {
    const DType from = g.input_spec(i).dtype;
    if (g.output_grad(i) && is_floating(from)) grads[static_cast<size_t>(i)] = cast(g.output_grad(i), from);
  }
  return grads;
}

// ---- _amp_cast_like
void infer_cast_like(InferContext& c) {
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  const DType from = c.in_dtype(0), like = c.in_dtype(1);
  if (from == DType::kUnknown || like == DType::kUnknown) return;
  c.set_out_dtype(0, is_converted(from) && is_converted(like) ? like : from);
}

void run_cast_like(const KernelArgs& a) {
  kernels::convert_parallel(a.in[0].dtype, a.in[0].data, a.out[0].dtype, a.out[0].data, a.in[0].size());
}

Values cast_like_gradient(const GradientContext& g) { return {cast(g.output_grad(0), g.input_spec(0).dtype), Value{}}; }

// ---- all_finite, multi_all_finite
struct FiniteParams {
  bool init_output;
  static void describe(ParamSchema<FiniteParams>& schema) {
    schema.field("init_output", &FiniteParams::init_output)
        .default_value(true)
        .doc(
            "Accepted for compatibility: the result always describes the given arrays, whatever the output held "
            "before.");
  }
};
struct MultiFiniteParams {
  int32_t num_arrays;
  bool init_output;
  static void describe(ParamSchema<MultiFiniteParams>& schema) {
    schema.field("num_arrays", &MultiFiniteParams::num_arrays).default_value(1).at_least(1).doc("Number of arrays.");
    schema.field("init_output", &MultiFiniteParams::init_output)
        .default_value(true)
        .doc(
            "Accepted for compatibility: the result always describes the given arrays, whatever the output held "
            "before.");
  }
};

void infer_finite(InferContext& c) {
  c.set_out_shape(0, Shape{1});
  c.set_out_dtype(0, DType::kFloat32);
}

void run_finite(const KernelArgs& a) {
  if (device::current()) {
    kernels::fill(a.out[0], 1.0);
    return on_device::all_finite(a.in, a.out[0].as<float>());
  }
  bool finite = true;
  for (const TensorRef& array : a.in) finite = finite && kernels::all_finite(array.dtype, array.data, array.size());
  *a.out[0].as<float>() = finite ? 1.0f : 0.0f;
}

// ---- reset_arrays
struct ResetParams {
  int32_t num_arrays;
  static void describe(ParamSchema<ResetParams>& schema) {
    schema.field("num_arrays", &ResetParams::num_arrays).at_least(1).doc("Number of arrays.");
  }
};

void infer_reset(const ResetParams&, InferContext& c) {
  for (int i = 0; i < c.num_in(); ++i) {
    c.unify_dtypes({i}, {i});
    c.set_out_shape(i, c.in_shape(i));
    c.set_in_shape(i, c.out_shape(i));
  }
}

void run_reset(const ResetParams&, const KernelArgs& a) {
  for (const TensorRef& out : a.out) {
    kernels::zero_bytes(out.data, out.size() * dtype_size(out.dtype));
  }
}

void register_finite(OpRegistry& ops) {
  const char* doc = "1 if no element is infinite or NaN, else 0.";
  ops.declare<FiniteParams>("all_finite")
      .doc(doc)
      .input("data", "array of any shape")
      .names_its_input()
      .output("out", "float32 (1,)")
      .infer([](const FiniteParams&, InferContext& c) { infer_finite(c); })
      .any_device()
      .cpu([](const FiniteParams&, const KernelArgs& a) { run_finite(a); })
      .gradient(kNotDifferentiable)
      .sample({{3, 4}});
  ops.declare<MultiFiniteParams>("multi_all_finite")
      .doc(doc)
      .variadic_input("data", "num_arrays", "arrays of any shapes and dtypes")
      .output("out", "float32 (1,)")
      .num_inputs([](const MultiFiniteParams& p) { return p.num_arrays; })
      .infer([](const MultiFiniteParams&, InferContext& c) { infer_finite(c); })
      .any_device()
      .cpu([](const MultiFiniteParams&, const KernelArgs& a) { run_finite(a); })
      .gradient(kNotDifferentiable)
      .sample({{3, 4}, {2}}, {{"num_arrays", "2"}});
}

}  // namespace

void register_mixed_precision(OpRegistry& ops) {
  ops.declare<MulticastParams>("amp_multicast")
      .doc(
          "Converts floating arrays of 32 and 16 bits to the widest dtype among them; other arrays are returned "
          "unchanged.")
      .variadic_input("data", "num_outputs", "arrays of any shapes")
      .output("out", "the inputs, converted")
      .num_inputs([](const MulticastParams& p) { return p.num_outputs; })
      .num_outputs([](const MulticastParams& p) { return p.num_outputs; })
      .infer(infer_multicast)
      .any_device()
      .cpu(run_multicast)
      .gradient(multicast_gradient, Saves::nothing())
      .sample({{3, 4}, {2, 3}}, {{"num_outputs", "2"}})
      .sample({.inputs = {{3, 4}, {3, 4}},
               .attrs = {{"num_outputs", "2"}},
               .dtypes = {DType::kFloat32, DType::kFloat16},
               .check_gradient = false,
               .note = "float16 rounds"})
      .sample({.inputs = {{3, 4}, {3, 4}},
               .attrs = {{"num_outputs", "2"}, {"cast_narrow", "1"}},
               .dtypes = {DType::kFloat32, DType::kFloat16},
               .check_gradient = false,
               .note = "float16 rounds"});
  ops.declare("_amp_cast_like")
      .doc(
          "Converts float32, float16 and bfloat16 to the dtype of another array of these dtypes; other arrays are "
          "returned unchanged.")
      .input("data", "array of any shape and dtype")
      .input("like", "array of any shape; only its dtype counts")
      .output("out", "shape of data")
      .infer([](const NoParams&, InferContext& c) { infer_cast_like(c); })
      .any_device()
      .cpu([](const NoParams&, const KernelArgs& a) { run_cast_like(a); })
      .internal()
      .allowed_in_files()
      .gradient([](const NoParams&, const GradientContext& g) { return cast_like_gradient(g); }, Saves::nothing())
      .sample({{3, 4}, {2}})
      .sample({.inputs = {{3, 4}, {2}},
               .attrs = {},
               .dtypes = {DType::kFloat32, DType::kBFloat16},
               .check_gradient = false,
               .note = "bfloat16 rounds"});
  register_finite(ops);
  ops.declare<ResetParams>("reset_arrays")
      .doc("Sets arrays to zero in place.")
      .variadic_input("data", "num_arrays", "arrays of any shapes and dtypes")
      .output("out", "the arrays")
      .num_inputs([](const ResetParams& p) { return p.num_arrays; })
      .num_outputs([](const ResetParams& p) { return p.num_arrays; })
      .num_visible_outputs([](const ResetParams& p) { return p.num_arrays; })
      .infer(infer_reset)
      .any_device()
      .cpu(run_reset)
      .variadic_inplace([](const ResetParams&, int output) { return output; })
      .variadic_writeback([](const ResetParams&, int output) { return output; })
      .gradient(kNotDifferentiable)
      .sample({{3, 4}, {2}}, {{"num_arrays", "2"}});
}

}  // namespace hybridnet::ops
