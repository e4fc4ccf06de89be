// Concat, and _rnn_param_concat, which differs in shape inference only.
#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "kernels/memory/strided_copy.h"
#include "ops/emit.h"
#include "ops/shape/concat_params.h"

namespace hybridnet::ops {
namespace {

int known_ndim(const InferContext& c) {
  if (c.out_shape(0).rank_known()) return c.out_shape(0).ndim();
  for (int i = 0; i < c.num_in(); ++i) {
    if (c.in_shape(i).rank_known()) return c.in_shape(i).ndim();
  }
  return kUnknownNdim;
}

// The output's size along the axis is the sum of the inputs' sizes; an unknown input size is the difference. Up to
// max_unknowns input sizes may be unknown if they are equal.
void infer_joined_axis(InferContext& c, int axis, int64_t max_unknowns) {
  int64_t sum = 0;
  std::vector<int> unknowns;
  for (int i = 0; i < c.num_in(); ++i) {
    const int64_t size = c.in_shape(i)[axis];
    if (size >= 0) {
      sum = checked_plus(sum, size);
    } else {
      unknowns.push_back(i);
    }
  }
  Shape out = Shape::unknown(c.out_shape(0).ndim());
  const int64_t total = c.out_shape(0)[axis];
  const auto count = static_cast<int64_t>(unknowns.size());
  if (count == 0) {
    out[axis] = sum;
    c.set_out_shape(0, out);
  } else if (count <= max_unknowns && total >= sum && (total - sum) % count == 0) {
    out[axis] = (total - sum) / count;
    for (int i : unknowns) c.set_in_shape(i, out);
  }
}

void infer_joined(const ConcatParams& p, InferContext& c, int64_t max_unknowns) {
  c.unify_dtypes();
  const int ndim = known_ndim(c);
  if (ndim < 0) return;
  if (ndim == 0) {
    throw ShapeError({.input = c.input_name(0),
                      .expected = "at least 1 dimension",
                      .given = "()",
                      .fix = "stack joins scalars along a new axis"});
  }
  const int axis = normalize_axis(p.dim, ndim, "dim");
  Shape common = Shape::unknown(ndim);
  auto learn = [&](const Shape& s) {
    if (s.ndim() != ndim) return;  // reported by set_in_shape below
    for (int i = 0; i < ndim; ++i) {
      if (i != axis && common[i] < 0) common[i] = s[i];
    }
  };
  for (int i = 0; i < c.num_in(); ++i) learn(c.in_shape(i));
  learn(c.out_shape(0));
  for (int i = 0; i < c.num_in(); ++i) c.set_in_shape(i, common);
  c.set_out_shape(0, common);
  infer_joined_axis(c, axis, max_unknowns);
}

void infer_concat(const ConcatParams& p, InferContext& c) { infer_joined(p, c, 1); }

// The weights of the data may be unknown: one per direction.
void infer_rnn_parameters(const ConcatParams& p, InferContext& c) { infer_joined(p, c, 2); }

void run_concat(const ConcatParams& p, const KernelArgs& a) {
  const Shape& out = *a.out[0].shape;
  const int axis = normalize_axis(p.dim, out.ndim(), "dim");
  const int64_t bytes = dtype_size(a.out[0].dtype);
  const int64_t outer = out.size(0, axis), inner = out.size(axis + 1, out.ndim()), row = out[axis] * inner;
  char* to = a.out[0].as<char>();
  for (const TensorRef& in : a.in) {
    const int64_t n = (*in.shape)[axis] * inner;
    if (n > 0) {
      kernels::StridedCopy copy;
      copy.add_axis(outer, n, row);
      copy.add_axis(n, 1, 1);
      copy.run(in.data, to, bytes);
    }
    to += n * bytes;
  }
}

// Splits the gradient into the parts of the inputs: one split if all are requested, else single slices.
Values concat_gradient(const ConcatParams& p, const GradientContext& g) {
  static const OpRef kSplit{"_split_v2"};
  const int count = g.num_inputs();
  Values result(static_cast<size_t>(count));
  if (!g.output_grad(0)) return result;
  const int axis = normalize_axis(p.dim, g.output_spec(0).shape.ndim(), "dim");
  int wanted = 0;
  AttrValue::List begins;
  std::vector<int64_t> begin_of;
  int64_t at = 0;
  for (int i = 0; i < count; ++i) {
    wanted += g.wants(i);
    begins.emplace_back(at);
    begin_of.push_back(at);
    at += g.input_spec(i).shape[axis];
  }
  if (wanted == count && count > 1 && count <= kMaxDims) {
    return call_all(kSplit, Values{g.output_grad(0)}, {{"indices", AttrValue(begins)}, {"axis", axis}});
  }
  for (int i = 0; i < count; ++i) {
    if (!g.wants(i)) continue;
    const int64_t begin = begin_of[static_cast<size_t>(i)];
    result[static_cast<size_t>(i)] = slice_axis(g.output_grad(0), axis, begin, begin + g.input_spec(i).shape[axis]);
  }
  return result;
}

}  // namespace

void register_concat(OpRegistry& ops) {
  ops.declare<ConcatParams>("Concat")
      .alias("concat")
      .alias("_sparse_concat")
      .doc("Joins tensors along an existing axis.")
      .variadic_input("data", "num_args", "equal shapes except for the joined axis, one dtype")
      .output("output", "sizes of the inputs; their sum in the joined axis")
      .infer(infer_concat)
      .quantized({.op = "_contrib_quantized_concat"})
      .any_device()
      .cpu(run_concat)
      .renumbered_params([](ConcatParams p, std::span<const int> moved_to) {
        p.dim = moved_to[static_cast<size_t>(normalize_axis(p.dim, static_cast<int>(moved_to.size()), "dim"))];
        return std::optional(p);
      })
      .gradient(concat_gradient, Saves::nothing())
      .amp(AmpType::kWidest)
      .keeps_zeros()
      .sparse(SparseForm::kConcatRows)
      .sample({{2, 3}, {2, 1}, {2, 4}}, {{"num_args", "3"}})
      .sample({{2, 3}, {4, 3}}, {{"num_args", "2"}, {"dim", "0"}})
      .sample({{2, 3, 2}, {2, 3, 5}}, {{"num_args", "2"}, {"dim", "-1"}})
      .sample({{2, 3}}, {{"num_args", "1"}});
  ops.declare<ConcatParams>("_rnn_param_concat")
      .alias("_npi_rnn_param_concat")
      .doc("Joins flattened parameters of a recurrent layer; one or two unknown sizes are inferred from the output.")
      .variadic_input("data", "num_args", "equal shapes except for the joined axis, one dtype")
      .output("output", "sizes of the inputs; their sum in the joined axis")
      .infer(infer_rnn_parameters)
      .any_device()
      .cpu(run_concat)
      .gradient(concat_gradient, Saves::nothing())
      .sample({{3}, {5}}, {{"num_args", "2"}, {"dim", "0"}});
}

}  // namespace hybridnet::ops
