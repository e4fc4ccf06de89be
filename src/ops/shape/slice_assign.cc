// x[begin:end:step] = y as a function: the result is x with the slice replaced. It runs in place if x is not used
// afterwards.
#include "hybridnet/declare.h"
#include "kernels/memory/fill.h"
#include "kernels/memory/placed_number.h"
#include "kernels/memory/strided_copy.h"
#include "ops/emit.h"
#include "ops/shape/reshape_codes.h"
#include "ops/shape/slice_ranges.h"

namespace hybridnet::ops {
namespace {

struct SliceAssignParams {
  OptionalInts begin, end, step;
  static void describe(ParamSchema<SliceAssignParams>& schema) {
    schema.field("begin", &SliceAssignParams::begin)
        .doc("First index per axis; negative counts from the end; None: the start.");
    schema.field("end", &SliceAssignParams::end).doc("End per axis, exclusive; None: to the end.");
    schema.field("step", &SliceAssignParams::step).default_value(AttrValue::List{}).doc("Step per axis; None: 1.");
  }
};

struct SliceAssignScalarParams {
  double scalar;
  OptionalInts begin, end, step;
  static void describe(ParamSchema<SliceAssignScalarParams>& schema) {
    schema.field("scalar", &SliceAssignScalarParams::scalar).default_value(0.0).doc("The value to write.");
    schema.field("begin", &SliceAssignScalarParams::begin)
        .doc("First index per axis; negative counts from the end; None: the start.");
    schema.field("end", &SliceAssignScalarParams::end).doc("End per axis, exclusive; None: to the end.");
    schema.field("step", &SliceAssignScalarParams::step)
        .default_value(AttrValue::List{})
        .doc("Step per axis; None: 1.");
  }
};

template <typename P>
SliceRanges ranges_of(const P& p, const Shape& data) {
  return slice_ranges(p.begin, p.end, p.step, data);
}

void infer_slice_assign(const SliceAssignParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  if (c.in_shape(0).rank_known()) c.set_in_shape(1, sliced_shape(ranges_of(p, c.in_shape(0))));
}

void infer_slice_assign_scalar(const SliceAssignScalarParams& p, InferContext& c) {
  c.unify_dtypes();
  c.unify_shapes();
  if (c.in_shape(0).known()) ranges_of(p, c.in_shape(0));  // checks the bounds
}

// Uses a source whose strides are all zero: every selected element is set to the same value.
void fill_slice(const SliceRanges& ranges, double scalar, const TensorRef& whole) {
  const kernels::Strides to(*whole.shape);
  kernels::StridedCopy copy;
  int64_t offset = 0;
  for (int i = 0; i < static_cast<int>(ranges.size()); ++i) {
    if (ranges[i].count == 0) return;
    offset += ranges[i].begin * to[i];
    copy.add_axis(ranges[i].count, 0, ranges[i].step * to[i]);
  }
  dispatch_dtype(whole.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T value = kernels::element_from<T>(scalar);
    const kernels::PlacedNumber placed(&value, sizeof(T));
    copy.run(placed.data(), whole.as<T>() + offset, sizeof(T));
  });
}

template <typename P>
Value assign_zero(const P& p, const Value& whole) {
  static const OpRef kAssignScalar{"_slice_assign_scalar"};
  if (!whole) return {};
  SliceAssignScalarParams zero{0.0, p.begin, p.end, p.step};
  return call(kAssignScalar, {whole}, ParamSchema<SliceAssignScalarParams>::box(std::move(zero)));
}

Values slice_assign_gradient(const SliceAssignParams& p, const GradientContext& g) {
  const Value out = g.output_grad(0);
  return {g.wants(0) ? assign_zero(p, out) : Value{},
          g.wants(1) ? take_slice(out, ranges_of(p, g.input_spec(0).shape)) : Value{}};
}

}  // namespace

void register_slice_assign(OpRegistry& ops) {
  ops.declare<SliceAssignParams>("_slice_assign")
      .alias("_crop_assign")
      .alias("_npi_slice_assign")
      .doc("lhs with the slice selected by begin, end and step replaced by rhs.")
      .input("lhs", "any shape, any dtype")
      .input("rhs", "shape of the slice, dtype of lhs")
      .output("output", "shape and dtype of lhs")
      .infer(infer_slice_assign)
      .any_device()
      .cpu([](const SliceAssignParams& p, const KernelArgs& a) {
        copy_first_input(a);
        write_slice(ranges_of(p, *a.out[0].shape), a.in[1], a.out[0]);
      })
      .inplace(0, 0)
      .writes_input(1)
      .gradient(slice_assign_gradient, Saves::nothing())
      .sample({{4, 5}, {2, 3}}, {{"begin", "(1, 0)"}, {"end", "(3, 3)"}})
      .sample({{4, 5}, {2, 5}}, {{"begin", "(None,)"}, {"end", "(None,)"}, {"step", "(-2,)"}});
  ops.declare<SliceAssignScalarParams>("_slice_assign_scalar")
      .alias("_crop_assign_scalar")
      .alias("_npi_slice_assign_scalar")
      .doc("data with the slice selected by begin, end and step set to a scalar.")
      .input("data", "any shape, any dtype")
      .output("output", "shape and dtype of data")
      .infer(infer_slice_assign_scalar)
      .any_device()
      .cpu([](const SliceAssignScalarParams& p, const KernelArgs& a) {
        copy_first_input(a);
        fill_slice(ranges_of(p, *a.out[0].shape), p.scalar, a.out[0]);
      })
      .inplace(0, 0)
      .gradient([](const SliceAssignScalarParams& p,
                   const GradientContext& g) { return Values{assign_zero(p, g.output_grad(0))}; },
                Saves::nothing())
      .sample({{4, 5}}, {{"begin", "(1, 0)"}, {"end", "(3, 3)"}, {"scalar", "1.5"}})
      .sample({{4, 5}}, {{"begin", "(None, 1)"}, {"end", "(None, None)"}, {"step", "(1, 2)"}});
}

}  // namespace hybridnet::ops
