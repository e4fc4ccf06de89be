// batch_dot: the matrix product of each pair of matrices in two stacks.
#include "hybridnet/declare.h"
#include "ops/emit.h"
#include "ops/linalg/product.h"

namespace hybridnet::ops {
namespace {

struct BatchDotParams {
  bool transpose_a = false, transpose_b = false;
  std::optional<std::string> forward_stype;
  static void describe(ParamSchema<BatchDotParams>& schema) {
    schema.field("transpose_a", &BatchDotParams::transpose_a)
        .default_value(false)
        .doc("Whether to transpose the matrices of lhs.");
    schema.field("transpose_b", &BatchDotParams::transpose_b)
        .default_value(false)
        .doc("Whether to transpose the matrices of rhs.");
    schema.field("forward_stype", &BatchDotParams::forward_stype).none_by_default().hidden();
  }
};

kernels::GemmShape matrix_sizes(const BatchDotParams& p, const Shape& a, const Shape& b) {
  const int last = a.ndim() - 1;
  return kernels::GemmShape::dense(p.transpose_a, p.transpose_b, p.transpose_a ? a[last] : a[last - 1],
                                   p.transpose_b ? b[last - 1] : b[last], p.transpose_a ? a[last - 1] : a[last]);
}

void require_stack(const InferContext& c, int input) {
  const Shape& s = c.in_shape(input);
  if (!s.rank_known() || s.ndim() >= 3) return;
  throw ShapeError({.input = c.input_name(input),
                    .expected = "at least 3 dimensions: batch axes, then a matrix",
                    .given = "shape " + s.str(),
                    .fix = s.ndim() == 2 ? "use dot for two matrices" : ""});
}

void infer_batch_dot(const BatchDotParams& p, InferContext& c) {
  c.unify_dtypes();
  require_stack(c, 0);
  require_stack(c, 1);
  int ndim = kUnknownNdim;
  for (const Shape* s : {&c.out_shape(0), &c.in_shape(1), &c.in_shape(0)})  // the inputs come last and take precedence
    if (s->rank_known()) ndim = s->ndim();
  if (ndim < 3) return;
  const int row = ndim - 2, column = ndim - 1;
  for (int i : {0, 1}) c.set_in_shape(i, Shape::unknown(ndim));
  c.set_out_shape(0, Shape::unknown(ndim));
  const int a_m = p.transpose_a ? column : row, a_k = p.transpose_a ? row : column;
  const int b_k = p.transpose_b ? column : row, b_n = p.transpose_b ? row : column;
  Shape a = Shape::unknown(ndim), b = a, out = a;
  const auto known = [](int64_t first, int64_t second) { return first != kUnknownDim ? first : second; };
  for (int i = 0; i < row; ++i) {
    const int64_t size = known(known(c.in_shape(0)[i], c.in_shape(1)[i]), c.out_shape(0)[i]);
    a[i] = b[i] = out[i] = size;
  }
  a[a_m] = out[row] = known(c.in_shape(0)[a_m], c.out_shape(0)[row]);
  b[b_n] = out[column] = known(c.in_shape(1)[b_n], c.out_shape(0)[column]);
  a[a_k] = b[b_k] = known(c.in_shape(0)[a_k], c.in_shape(1)[b_k]);
  c.set_in_shape(0, a);
  c.set_in_shape(1, b);
  c.set_out_shape(0, out);
}

class PlainBatchDot final : public Kernel {
 public:
  explicit PlainBatchDot(const BatchDotParams& p) : p_(p) {}
  void run(const KernelArgs& args) override {
    const Shape& a = *args.in[0].shape;
    batched_product(args.out[0].dtype, a.size(0, a.ndim() - 2), matrix_sizes(p_, a, *args.in[1].shape), args.in[0].data,
                    args.in[1].data, args.out[0].data);
  }

 private:
  BatchDotParams p_;
};

Ref<Kernel> link_batch_dot(const BatchDotParams& p, const LinkContext& c) {
  const Shape& a = c.in[0].shape;
  const kernels::GemmShape s = matrix_sizes(p, a, c.in[1].shape);
  const int64_t batch = a.size(0, a.ndim() - 2);
  const DType dtype = c.in[0].dtype;
  if (pays_blocked_product(c.device, dtype, a.ndim(), batch, s)) return Ref<Kernel>(new DnnlProduct(dtype, batch, s));
  return Ref<Kernel>(new PlainBatchDot(p));
}

Values batch_dot_gradient(const BatchDotParams& p, const GradientContext& g) {
  const Value d = g.output_grad(0);
  if (!d) return {};
  Values grads(2);
  if (g.wants(0))
    grads[0] =
        p.transpose_a ? batch_dot(g.input(1), d, p.transpose_b, true) : batch_dot(d, g.input(1), false, !p.transpose_b);
  if (g.wants(1))
    grads[1] =
        p.transpose_b ? batch_dot(d, g.input(0), true, p.transpose_a) : batch_dot(g.input(0), d, !p.transpose_a, false);
  return grads;
}

}  // namespace

void register_batch_dot(OpRegistry& ops) {
  ops.declare<BatchDotParams>("batch_dot")
      .alias("_npx_batch_dot")
      .doc("Matrix products of two stacks of matrices: out[b...] = lhs[b...] rhs[b...].")
      .input("lhs", "(batch..., m, k), or (batch..., k, m) if transpose_a")
      .input("rhs", "(batch..., k, n), or (batch..., n, k) if transpose_b")
      .output("output", "(batch..., m, n)")
      .infer(infer_batch_dot)
      .link(link_batch_dot, kNumeric)
      .any_device()
      .gradient(batch_dot_gradient, Saves::of({0, 1}))
      .cost([](const BatchDotParams& p, auto in, auto out) {
        (void)out;
        const kernels::GemmShape s = matrix_sizes(p, in[0].shape, in[1].shape);
        return static_cast<double>(in[0].shape.size(0, in[0].shape.ndim() - 2)) *
               kernels::gemm_cost_ns(s.m, s.n, s.k, in[0].dtype);
      })
      .flops([](const BatchDotParams& p, auto in, auto) {
        const kernels::GemmShape s = matrix_sizes(p, in[0].shape, in[1].shape);
        return static_cast<double>(in[0].shape.size(0, in[0].shape.ndim() - 2)) * kernels::gemm_flops(s.m, s.n, s.k);
      })
      .amp(AmpType::kProduct)
      .sample({{2, 3, 4}, {2, 4, 5}})
      .sample({{2, 4, 3}, {2, 4, 5}}, {{"transpose_a", "True"}})
      .sample({{2, 3, 4}, {2, 5, 4}}, {{"transpose_b", "True"}})
      .sample({{2, 2, 4, 3}, {2, 2, 5, 4}}, {{"transpose_a", "True"}, {"transpose_b", "True"}})
      .sample({{3, 17, 9}, {3, 9, 16}});
}

}  // namespace hybridnet::ops
