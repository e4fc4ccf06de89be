// dot: contracts the last axis of lhs with the first axis of rhs (or, transposed, the first with the last).
#include "hybridnet/declare.h"
#include "ops/emit.h"
#include "ops/linalg/product.h"

namespace hybridnet::ops {
namespace {

struct DotParams {
  bool transpose_a = false, transpose_b = false;
  std::optional<std::string> forward_stype;
  static void describe(ParamSchema<DotParams>& schema) {
    schema.field("transpose_a", &DotParams::transpose_a)
        .default_value(false)
        .doc("Whether to contract the first axis of lhs instead of its last.");
    schema.field("transpose_b", &DotParams::transpose_b)
        .default_value(false)
        .doc("Whether to contract the last axis of rhs instead of its first.");
    schema.field("forward_stype", &DotParams::forward_stype).none_by_default().hidden();
  }
};

// A vector is a row on the left and a column on the right, independent of the flags, which only select the contracted
// axis.
struct DotSizes {
  kernels::GemmShape shape;
  DotSizes(const DotParams& p, const Shape& a, const Shape& b) {
    const int64_t a_inner = p.transpose_a ? a[0] : a[a.ndim() - 1];
    const int64_t a_outer = p.transpose_a ? a.size(1, a.ndim()) : a.size(0, a.ndim() - 1);
    const int64_t b_outer = p.transpose_b ? b.size(0, b.ndim() - 1) : b.size(1, b.ndim());
    shape = kernels::GemmShape::dense(p.transpose_a, p.transpose_b, a_outer, b_outer, a_inner);
  }
};

void require_axes(const InferContext& c, int input) {
  if (c.in_shape(input).ndim() != 0) return;
  throw ShapeError({.input = c.input_name(input),
                    .expected = "at least one axis",
                    .given = "a scalar",
                    .fix = "multiply scalars with *"});
}

void infer_dot(const DotParams& p, InferContext& c) {
  c.unify_dtypes();
  const Shape a = c.in_shape(0), b = c.in_shape(1);
  require_axes(c, 0);
  require_axes(c, 1);
  if (!a.rank_known() || !b.rank_known()) return;
  const int a_axis = p.transpose_a ? 0 : a.ndim() - 1, b_axis = p.transpose_b ? b.ndim() - 1 : 0;
  if (a[a_axis] != kUnknownDim && b[b_axis] != kUnknownDim && a[a_axis] != b[b_axis]) {
    throw ShapeError({.input = c.input_name(1),
                      .expected = std::to_string(a[a_axis]) + " elements along axis " + std::to_string(b_axis),
                      .given = "shape " + b.str(),
                      .because = "lhs has shape " + a.str() + ", contracted along axis " + std::to_string(a_axis)});
  }
  Shape a_learned = Shape::unknown(a.ndim()), b_learned = Shape::unknown(b.ndim());
  a_learned[a_axis] = b[b_axis];
  b_learned[b_axis] = a[a_axis];
  c.set_in_shape(0, a_learned);
  c.set_in_shape(1, b_learned);
  Shape out = Shape::scalar();
  for (int i = 0; i < a.ndim(); ++i)
    if (i != a_axis) out.push_back(a[i]);
  for (int i = 0; i < b.ndim(); ++i)
    if (i != b_axis) out.push_back(b[i]);
  if (out.ndim() == 0 && !is_np_shape()) out.push_back(1);
  c.set_out_shape(0, out);
}

void run_dot(const DotParams& p, const KernelArgs& args) {
  const DotSizes s(p, *args.in[0].shape, *args.in[1].shape);
  batched_product(args.out[0].dtype, 1, s.shape, args.in[0].data, args.in[1].data, args.out[0].data);
}

Ref<Kernel> link_dot(const DotParams& p, const LinkContext& c) {
  const kernels::GemmShape s = DotSizes(p, c.in[0].shape, c.in[1].shape).shape;
  if (pays_blocked_product(c.device, c.in[0].dtype, 2, 1, s)) return Ref<Kernel>(new DnnlProduct(c.in[0].dtype, 1, s));
  static const Ref<Kernel> plain = function_kernel<DotParams>(run_dot);
  return plain;
}

Shape matrix_shape(const Shape& s, bool vector_is_row, bool split_first) {
  if (s.ndim() == 1) return vector_is_row ? Shape{1, s[0]} : Shape{s[0], 1};
  return split_first ? Shape{s[0], s.size(1, s.ndim())} : Shape{s.size(0, s.ndim() - 1), s[s.ndim() - 1]};
}

Values dot_gradient(const DotParams& p, const GradientContext& g) {
  Value d = g.output_grad(0);
  if (!d) return {};
  const Shape a = g.input_spec(0).shape, b = g.input_spec(1).shape;
  const bool matrices = a.ndim() == 2 && b.ndim() == 2;
  Value left = g.input(0), right = g.input(1);
  if (!matrices) {  // rewrite as a product of matrices: a transposed vector on the left is a column, on the right a row
    left = reshape(left, matrix_shape(a, !p.transpose_a, p.transpose_a));
    right = reshape(right, matrix_shape(b, p.transpose_b, !p.transpose_b));
    const DotSizes s(p, a, b);
    d = reshape(d, Shape{s.shape.m, s.shape.n});
  }
  Values grads(2);
  if (g.wants(0)) {
    grads[0] = p.transpose_a ? dot(right, d, p.transpose_b, true) : dot(d, right, false, !p.transpose_b);
    if (!matrices) grads[0] = reshape(grads[0], a);
  }
  if (g.wants(1)) {
    grads[1] = p.transpose_b ? dot(d, left, true, p.transpose_a) : dot(left, d, !p.transpose_a, false);
    if (!matrices) grads[1] = reshape(grads[1], b);
  }
  return grads;
}

}  // namespace

void register_dot(OpRegistry& ops) {
  ops.declare<DotParams>("dot")
      .alias("_sparse_dot")
      .doc(
          "Product of two arrays: out[i..., j...] = sum over x of lhs[i..., x] * rhs[x, j...]. It is the matrix "
          "product of matrices and the inner product of vectors (shape (1,), under NumPy shapes ()).")
      .input("lhs", "one axis or more")
      .input("rhs", "one axis or more")
      .output("output", "the remaining axes of lhs, then those of rhs")
      .infer(infer_dot)
      .heavy()
      .row_wise_when([](const DotParams& p, int rank) { return rank == 2 && !p.transpose_a; })
      .link(link_dot, kNumeric)
      .any_device()
      .gradient(dot_gradient, Saves::of({0, 1}))
      .cost([](const DotParams& p, auto in, auto out) {
        (void)out;
        const DotSizes s(p, in[0].shape, in[1].shape);
        return kernels::gemm_cost_ns(s.shape.m, s.shape.n, s.shape.k, in[0].dtype);
      })
      .flops([](const DotParams& p, auto in, auto) {
        const DotSizes s(p, in[0].shape, in[1].shape);
        return kernels::gemm_flops(s.shape.m, s.shape.n, s.shape.k);
      })
      .amp(AmpType::kProduct)
      .sparse(SparseForm::kDot, SparseGradient::kOwn)
      .sample({{3, 4}, {4, 5}})
      .sample({{4, 3}, {4, 5}}, {{"transpose_a", "True"}})
      .sample({{3, 4}, {5, 4}}, {{"transpose_b", "True"}})
      .sample({{4, 3}, {5, 4}}, {{"transpose_a", "True"}, {"transpose_b", "True"}})
      .sample({{2, 3, 4}, {4, 2, 2}})
      .sample({{4, 2, 3}, {2, 2, 4}}, {{"transpose_a", "True"}, {"transpose_b", "True"}})
      .sample({Shape{4}, Shape{4}})
      .sample({Shape{3, 4}, Shape{4}})
      .sample({Shape{4}, Shape{4, 3}});
}

}  // namespace hybridnet::ops
