// _linalg_gemm and _linalg_gemm2: scaled matrix products over stacks of matrices.
#include "kernels/product/gemm.h"

#include "device/stream.h"
#include "hybridnet/declare.h"
#include "kernels/memory/strided_copy.h"
#include "kernels/product/device_product.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

const OpRef kGemm2{"_linalg_gemm2"};

struct GemmParams {
  bool transpose_a = false, transpose_b = false;
  double alpha = 1.0, beta = 0.0;
  int32_t axis = -2;
};

struct Gemm2Schema : GemmParams {
  static void describe(ParamSchema<Gemm2Schema>& schema);
};
struct Gemm3Schema : GemmParams {
  static void describe(ParamSchema<Gemm3Schema>& schema);
};

template <typename P>
void describe_gemm(ParamSchema<P>& schema, bool with_beta) {
  const auto field = [&]<typename M>(const char* name, M GemmParams::*member) {
    return schema.field(name, static_cast<M P::*>(member));
  };
  field("transpose_a", &GemmParams::transpose_a).default_value(false).doc("Whether to transpose the matrices of A.");
  field("transpose_b", &GemmParams::transpose_b).default_value(false).doc("Whether to transpose the matrices of B.");
  field("alpha", &GemmParams::alpha).default_value(1.0).doc("Factor of the product.");
  if (with_beta) field("beta", &GemmParams::beta).default_value(1.0).doc("Factor of C.");
  field("axis", &GemmParams::axis).default_value(-2).doc("Axis of the matrix rows; the columns are the last axis.");
}
void Gemm2Schema::describe(ParamSchema<Gemm2Schema>& schema) { describe_gemm(schema, false); }
void Gemm3Schema::describe(ParamSchema<Gemm3Schema>& schema) { describe_gemm(schema, true); }

void infer_gemm(const GemmParams& p, InferContext& c) {
  c.unify_dtypes();
  int ndim = kUnknownNdim;
  for (int i = 0; i < c.num_in(); ++i)
    if (c.in_shape(i).rank_known()) ndim = c.in_shape(i).ndim();
  if (c.out_shape(0).rank_known()) ndim = c.out_shape(0).ndim();
  if (ndim == kUnknownNdim) return;
  if (ndim < 2) {
    throw ShapeError(
        {.input = c.input_name(0), .expected = "at least 2 dimensions", .given = "shape " + c.in_shape(0).str()});
  }
  const int row = normalize_axis(p.axis, ndim), column = ndim - 1;
  if (row == column) {
    throw ParamError({.input = "axis",
                      .expected = "an axis other than the last, which holds the columns",
                      .given = std::to_string(p.axis)});
  }
  for (int i = 0; i < c.num_in(); ++i) c.set_in_shape(i, Shape::unknown(ndim));
  c.set_out_shape(0, Shape::unknown(ndim));
  if (c.num_in() == 3) c.set_out_shape(0, c.in_shape(2));
  const int a_m = p.transpose_a ? column : row, a_k = p.transpose_a ? row : column;
  const int b_k = p.transpose_b ? column : row, b_n = p.transpose_b ? row : column;
  const auto known = [](int64_t first, int64_t second) { return first != kUnknownDim ? first : second; };
  Shape a = Shape::unknown(ndim), b = a, out = a;
  for (int i = 0; i < column; ++i) {
    if (i == row) continue;
    a[i] = b[i] = out[i] = known(known(c.in_shape(0)[i], c.in_shape(1)[i]), c.out_shape(0)[i]);
  }
  a[a_m] = out[row] = known(c.in_shape(0)[a_m], c.out_shape(0)[row]);
  b[b_n] = out[column] = known(c.in_shape(1)[b_n], c.out_shape(0)[column]);
  a[a_k] = b[b_k] = known(c.in_shape(0)[a_k], c.in_shape(1)[b_k]);
  c.set_in_shape(0, a);
  c.set_in_shape(1, b);
  c.set_out_shape(0, out);
  if (c.num_in() == 3) c.set_in_shape(2, out);
}

// The stack as (before, rows, between, columns). With axis -2, `between` is 1; otherwise rows are strided.
struct Stack {
  int64_t before, between;
  kernels::GemmShape sizes;
  Stack(const GemmParams& p, const Shape& a, const Shape& b) {
    const int row = p.axis < 0 ? p.axis + a.ndim() : p.axis, column = a.ndim() - 1;
    before = a.size(0, row);
    between = a.size(row + 1, column);
    const int64_t m = p.transpose_a ? a[column] : a[row], k = p.transpose_a ? a[row] : a[column];
    const int64_t n = p.transpose_b ? b[row] : b[column];
    sizes = kernels::GemmShape::dense(p.transpose_a, p.transpose_b, m, n, k);
    sizes.lda *= between;
    sizes.ldb *= between;
    sizes.ldc *= between;
  }
  double multiplications() const {
    return static_cast<double>(before * between) * static_cast<double>(sizes.m * sizes.n) *
           static_cast<double>(sizes.k);
  }
};

// Matrices that lie one after the other are one batch; those whose rows alternate are a batch for each of `before`.
template <typename T>
void gemm_on_device(const Stack& s, double alpha, const T* a, const T* b, double beta, T* out) {
  if (s.between == 0) return;
  const kernels::GemmShape& z = s.sizes;
  const int64_t a_size = z.m * z.k, b_size = z.k * z.n, out_size = z.m * z.n;
  using Batch = kernels::on_device::ProductBatch;
  if (s.between == 1)
    return kernels::on_device::gemm(z, dtype_of<T>::value, alpha, a, b, beta, out,
                                    Batch{s.before, a_size, b_size, out_size});
  const Batch alternating{s.between, z.lda / s.between, z.ldb / s.between, z.ldc / s.between};
  for (int64_t x = 0; x < s.before; ++x)
    kernels::on_device::gemm(z, dtype_of<T>::value, alpha, a + x * a_size * s.between, b + x * b_size * s.between, beta,
                             out + x * out_size * s.between, alternating);
}

template <typename T>
void run_gemm(const GemmParams& p, const KernelArgs& args) {
  const Shape &a = *args.in[0].shape, &b = *args.in[1].shape;
  const Stack s(p, a, b);
  const int column = a.ndim() - 1;
  const int64_t a_row = a[column], b_row = b[column], out_row = s.sizes.n;
  const int64_t a_step = s.sizes.m * s.sizes.k, b_step = s.sizes.k * s.sizes.n, out_step = s.sizes.m * s.sizes.n;
  T* out = args.out[0].as<T>();
  const bool has_c = args.in.size() == 3 && p.beta != 0.0;
  if (has_c) kernels::copy_bytes(args.in[2].data, out, args.out[0].size() * static_cast<int64_t>(sizeof(T)));
  const int64_t work = std::max<int64_t>(a_step * s.sizes.n, 1);
  const auto products = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t x = i / s.between, y = i % s.between;
      kernels::gemm(s.sizes, static_cast<T>(p.alpha), args.in[0].as<T>() + x * a_step * s.between + y * a_row,
                    args.in[1].as<T>() + x * b_step * s.between + y * b_row, has_c ? static_cast<T>(p.beta) : T(0),
                    out + x * out_step * s.between + y * out_row);
    }
  };
  if (device::current())
    return gemm_on_device(s, p.alpha, args.in[0].as<T>(), args.in[1].as<T>(), has_c ? p.beta : 0, out);
  if (s.before * s.between <= 2) return products(0, s.before * s.between);  // each product uses all cores
  parallel_for(s.before * s.between, 0.04 * static_cast<double>(work), products);
}

class GemmKernel final : public Kernel {
 public:
  explicit GemmKernel(const GemmParams& p) : p_(p) {}
  void run(const KernelArgs& args) override {
    args.out[0].dtype == DType::kFloat64 ? run_gemm<double>(p_, args) : run_gemm<float>(p_, args);
  }

 private:
  GemmParams p_;
};

Value product(const Value& a, const Value& b, bool transpose_a, bool transpose_b, const GemmParams& p) {
  Gemm2Schema q;
  q.transpose_a = transpose_a;
  q.transpose_b = transpose_b;
  q.alpha = p.alpha;
  q.axis = p.axis;
  return call(kGemm2, {a, b}, ParamSchema<Gemm2Schema>::box(q));
}

Values gemm_gradient(const GemmParams& p, const GradientContext& g) {
  const Value d = g.output_grad(0);
  Values grads(static_cast<size_t>(g.num_inputs()));
  if (!d) return grads;
  if (g.wants(0))
    grads[0] = p.transpose_a ? product(g.input(1), d, p.transpose_b, true, p)
                             : product(d, g.input(1), false, !p.transpose_b, p);
  if (g.wants(1))
    grads[1] = p.transpose_b ? product(d, g.input(0), true, p.transpose_a, p)
                             : product(g.input(0), d, !p.transpose_a, false, p);
  if (g.num_inputs() == 3 && g.wants(2)) grads[2] = d * p.beta;
  return grads;
}

template <typename P>
OpBuilder<P> declare_gemm(OpRegistry& ops, const char* name) {
  return ops.declare<P>(name)
      .input("A", "stack of matrices (..., m, k), or (..., k, m) if transpose_a")
      .input("B", "stack of matrices (..., k, n), or (..., n, k) if transpose_b")
      .output("output", "(..., m, n)")
      .infer([](const P& p, InferContext& c) { infer_gemm(p, c); })
      .link([](const P& p, const LinkContext&) { return Ref<Kernel>(new GemmKernel(p)); })
      .halves_through_float()
      .any_device()
      .gradient([](const P& p, const GradientContext& g) { return gemm_gradient(p, g); }, Saves::of({0, 1}))
      .cost([](const P& p, auto in, auto out) {
        (void)out;
        const double count = Stack(p, in[0].shape, in[1].shape).multiplications();
        return static_cast<int64_t>(2.0 * count / (in[0].dtype == DType::kFloat64 ? 20.0 : 50.0)) + 300;
      })
      .flops([](const P& p, auto in, auto) { return 2 * Stack(p, in[0].shape, in[1].shape).multiplications(); });
}

}  // namespace

void register_gemm(OpRegistry& ops) {
  declare_gemm<Gemm2Schema>(ops, "_linalg_gemm2")
      .alias("linalg_gemm2")
      .doc("Matrix products of two stacks of matrices: alpha * op(A) op(B).")
      .amp(AmpType::kFloat)
      .sample({{3, 4}, {4, 2}}, {{"alpha", "1.5"}})
      .sample({{2, 4, 3}, {2, 5, 4}}, {{"transpose_a", "True"}, {"transpose_b", "True"}})
      .sample({{3, 2, 4}, {4, 2, 5}}, {{"axis", "0"}});
  declare_gemm<Gemm3Schema>(ops, "_linalg_gemm")
      .alias("linalg_gemm")
      .doc("Matrix products of two stacks of matrices plus a third stack: alpha * op(A) op(B) + beta * C.")
      .input("C", "(..., m, n)")
      .amp(AmpType::kFloat)
      .sample({{3, 4}, {4, 2}, {3, 2}}, {{"alpha", "1.5"}, {"beta", "0.5"}})
      .sample({{2, 4, 3}, {2, 5, 4}, {2, 3, 5}}, {{"transpose_a", "True"}, {"transpose_b", "True"}})
      .sample({{3, 2, 4}, {4, 2, 5}, {3, 2, 5}}, {{"axis", "0"}, {"beta", "0"}});
}

}  // namespace hybridnet::ops
