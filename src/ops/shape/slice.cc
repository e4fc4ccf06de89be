// slice, and _backward_slice, which writes its input into a tensor of zeros.
#include "hybridnet/declare.h"
#include "kernels/memory/strided_copy.h"
#include "ops/emit.h"
#include "ops/shape/slice_ranges.h"

namespace hybridnet::ops {
namespace {

struct SliceParams {
  OptionalInts begin, end, step;
  static void describe(ParamSchema<SliceParams>& schema) {
    schema.field("begin", &SliceParams::begin)
        .doc("First index per axis; negative counts from the end; None: the start.");
    schema.field("end", &SliceParams::end).doc("End per axis, exclusive; None: to the end.");
    schema.field("step", &SliceParams::step)
        .default_value(AttrValue::List{})
        .doc("Step per axis, negative to walk backwards; None: 1.");
  }
};

void infer_slice(const SliceParams& p, InferContext& c) {
  c.unify_dtypes();
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  c.set_out_shape(0, sliced_shape(slice_ranges(p.begin, p.end, p.step, in)));
  // Axes without bounds have the output's size.
  Shape whole = Shape::unknown(in.ndim());
  for (int i = static_cast<int>(std::max(p.begin.size(), p.step.size())); i < in.ndim(); ++i)
    whole[i] = c.out_shape(0)[i];
  c.set_in_shape(0, whole);
}

void run_slice(const SliceParams& p, const KernelArgs& a) {
  read_slice(slice_ranges(p.begin, p.end, p.step, *a.in[0].shape), a.in[0], a.out[0]);
}

Values slice_gradient(const SliceParams& p, const GradientContext& g) {
  const Shape& whole = g.input_spec(0).shape;
  return {place_slice(g.output_grad(0), slice_ranges(p.begin, p.end, p.step, whole), whole)};
}

SliceRanges ranges_of(const SlicePlaceParams& p, const Shape& part) {
  SliceRanges ranges;
  for (int i = 0; i < part.ndim(); ++i) ranges.push_back({p.begin[i], p.step[i], part[i]});
  return ranges;
}

void infer_place(const SlicePlaceParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_out_shape(0, p.shape);
  const Shape& part = c.in_shape(0);
  if (!part.known()) return;
  bool fits = part.ndim() == p.shape.ndim() && p.begin.ndim() == part.ndim() && p.step.ndim() == part.ndim();
  for (int i = 0; fits && i < part.ndim(); ++i) {
    if (part[i] == 0) continue;
    const int64_t last = p.begin[i] + p.step[i] * (part[i] - 1);
    fits = p.step[i] != 0 && std::min(p.begin[i], last) >= 0 && std::max(p.begin[i], last) < p.shape[i];
  }
  if (!fits) {
    throw ShapeError(
        {.input = "data",
         .expected = "a slice of shape " + p.shape.str() + " at begin=" + p.begin.str() + " with step=" + p.step.str(),
         .given = part.str()});
  }
}

void run_place(const SlicePlaceParams& p, const KernelArgs& a) {
  if (a.in[0].size() != a.out[0].size())
    kernels::zero_bytes(a.out[0].data, a.out[0].size() * dtype_size(a.out[0].dtype));
  write_slice(ranges_of(p, *a.in[0].shape), a.in[0], a.out[0]);
}

Values place_gradient(const SlicePlaceParams& p, const GradientContext& g) {
  return {take_slice(g.output_grad(0), ranges_of(p, g.input_spec(0).shape))};
}

}  // namespace

void register_slice(OpRegistry& ops) {
  ops.declare<SliceParams>("slice")
      .alias("crop")
      .alias("_npi_slice")
      .alias("_npx_slice")
      .alias("_sparse_slice")
      .doc("Copies the elements selected by begin, end and step, axis by axis.")
      .input("data", "any shape, any dtype")
      .output("output", "one size per axis: the number of selected indices")
      .infer(infer_slice)
      .takes_part_of_input()
      .any_device()
      .cpu(run_slice)
      .gradient(slice_gradient, Saves::nothing())
      .sparse(SparseForm::kSlice)
      .sample({{4, 5}}, {{"begin", "(1, 0)"}, {"end", "(3, 4)"}})
      .sample({{4, 5, 3}}, {{"begin", "(None, -1)"}, {"end", "(3, None)"}, {"step", "(2, -2)"}})
      .sample({{7}}, {{"begin", "(1,)"}, {"end", "(None,)"}, {"step", "(3,)"}});
  ops.declare<SlicePlaceParams>("_backward_slice")
      .doc("Zeros with the input's elements at begin, begin + step, ... of every axis: the gradient of slicing.")
      .input("data", "as many axes as shape")
      .output("output", "shape given by the parameter")
      .infer(infer_place)
      .any_device()
      .cpu(run_place)
      .gradient(place_gradient, Saves::nothing())
      .internal()
      .sample({{2, 3}}, {{"shape", "(4, 7)"}, {"begin", "(1, 6)"}, {"step", "(2, -3)"}});
}

}  // namespace hybridnet::ops
