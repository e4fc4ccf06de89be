// transpose and SwapAxis.
#include "hybridnet/declare.h"
#include "kernels/memory/strided_copy.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

struct TransposeParams {
  Tuple axes;
  static void describe(ParamSchema<TransposeParams>& schema) {
    schema.field("axes", &TransposeParams::axes)
        .default_value(AttrValue(Tuple::scalar()))
        .doc("Axis i of the output is axis axes[i] of data; empty: reversed order.");
  }
};

struct SwapAxisParams {
  int32_t dim1, dim2;
  static void describe(ParamSchema<SwapAxisParams>& schema) {
    schema.field("dim1", &SwapAxisParams::dim1).default_value(0).doc("One axis.");
    schema.field("dim2", &SwapAxisParams::dim2).default_value(0).doc("The other axis.");
  }
};

// source[i]: the input axis that becomes output axis i.
struct Permutation {
  int source[kMaxDims];
};

Permutation permutation_of(const TransposeParams& p, int ndim) {
  Permutation result;
  if (p.axes.ndim() == 0) {
    for (int i = 0; i < ndim; ++i) result.source[i] = ndim - 1 - i;
    return result;
  }
  uint32_t seen = 0;
  if (p.axes.ndim() == ndim) {
    for (int i = 0; i < ndim; ++i) {
      result.source[i] = normalize_axis(p.axes[i], ndim, "axes");
      seen |= 1u << result.source[i];
    }
  }
  if (p.axes.ndim() != ndim || seen != (1u << ndim) - 1) {
    throw ParamError({.input = "axes",
                      .expected = "every axis of the data once",
                      .given = p.axes.str(),
                      .because = "the data has " + std::to_string(ndim) + " dimensions"});
  }
  return result;
}

Permutation permutation_of(const SwapAxisParams& p, int ndim) {
  Permutation result;
  for (int i = 0; i < ndim; ++i) result.source[i] = i;
  std::swap(result.source[normalize_axis(p.dim1, ndim, "dim1")], result.source[normalize_axis(p.dim2, ndim, "dim2")]);
  return result;
}

template <typename P>
void infer_permuted(const P& p, InferContext& c) {
  c.unify_dtypes();
  const int ndim = c.in_shape(0).rank_known() ? c.in_shape(0).ndim() : c.out_shape(0).ndim();
  if (ndim < 0) return;
  const Permutation perm = permutation_of(p, ndim);
  if (c.in_shape(0).rank_known()) {
    Shape out = Shape::unknown(ndim);
    for (int i = 0; i < ndim; ++i) out[i] = c.in_shape(0)[perm.source[i]];
    c.set_out_shape(0, out);
  }
  Shape in = Shape::unknown(ndim);
  for (int i = 0; i < ndim; ++i) in[perm.source[i]] = c.out_shape(0)[i];
  c.set_in_shape(0, in);
}

template <typename P>
void run_permuted(const P& p, const KernelArgs& a) {
  const Shape& in = *a.in[0].shape;
  const Permutation perm = permutation_of(p, in.ndim());
  const kernels::Strides strides(in), out_strides(*a.out[0].shape);
  kernels::StridedCopy copy;
  for (int i = 0; i < in.ndim(); ++i) copy.add_axis(in[perm.source[i]], strides[perm.source[i]], out_strides[i]);
  copy.run(a.in[0].data, a.out[0].data, dtype_size(a.in[0].dtype));
}

Values transpose_gradient(const TransposeParams& p, const GradientContext& g) {
  const int ndim = g.input_spec(0).shape.ndim();
  if (p.axes.ndim() == 0) return {transpose(g.output_grad(0), Tuple::scalar())};
  const Permutation perm = permutation_of(p, ndim);
  Tuple inverse = Tuple::unknown(ndim);
  for (int i = 0; i < ndim; ++i) inverse[perm.source[i]] = i;
  return {transpose(g.output_grad(0), inverse)};
}

Values swap_axis_gradient(const SwapAxisParams& p, const GradientContext& g) {
  static const OpRef kSwapAxis{"SwapAxis"};
  return {g.output_grad(0) ? call(kSwapAxis, {g.output_grad(0)}, {{"dim1", p.dim1}, {"dim2", p.dim2}}) : Value{}};
}

}  // namespace

void register_transpose(OpRegistry& ops) {
  ops.declare<TransposeParams>("transpose")
      .doc("Permutes the axes.")
      .input("data", "any shape, any dtype")
      .output("output", "shape of data with its sizes permuted")
      .infer(infer_permuted<TransposeParams>)
      .takes_part_of_input()
      .any_device()
      .cpu(run_permuted<TransposeParams>)
      .gradient(transpose_gradient, Saves::nothing())
      .sample({{2, 3}}, {})
      .sample({{2, 3, 4}}, {})
      .sample({{2, 3, 4, 5}}, {{"axes", "(0, 2, 3, 1)"}})
      .sample({{2, 3, 4}}, {{"axes", "(1, 0, 2)"}})
      .sample({{19, 5, 21}}, {{"axes", "(2, 1, 0)"}});
  ops.declare<SwapAxisParams>("SwapAxis")
      .alias("swapaxes")
      .alias("_npi_swapaxes")
      .doc("Exchanges two axes.")
      .input("data", "any shape, any dtype")
      .names_its_input()
      .output("output", "shape of data with two sizes exchanged")
      .infer(infer_permuted<SwapAxisParams>)
      .takes_part_of_input()
      .any_device()
      .cpu(run_permuted<SwapAxisParams>)
      .gradient(swap_axis_gradient, Saves::nothing())
      .sample({{2, 3, 4}}, {{"dim1", "0"}, {"dim2", "2"}})
      .sample({{2, 3, 4}}, {{"dim1", "-1"}, {"dim2", "1"}});
}

}  // namespace hybridnet::ops
