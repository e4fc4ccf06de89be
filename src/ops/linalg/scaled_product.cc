// _scaled_product: alpha * op(lhs) op(rhs) + addend, the fusion of dot or batch_dot with a scaling and an addition.
#include <algorithm>

#include "device/stream.h"
#include "hybridnet/declare.h"
#include "kernels/memory/strided_copy.h"
#include "kernels/product/device_product.h"
#include "ops/emit.h"
#include "ops/float_kernel.h"
#include "ops/linalg/product.h"

namespace hybridnet::ops {
namespace {

struct ScaledProductParams {
  bool transpose_a = false, transpose_b = false, with_addend = false;
  double alpha = 1;
  static void describe(ParamSchema<ScaledProductParams>& schema) {
    using P = ScaledProductParams;
    schema.field("transpose_a", &P::transpose_a).default_value(false).doc("Whether to transpose the matrices of lhs.");
    schema.field("transpose_b", &P::transpose_b).default_value(false).doc("Whether to transpose the matrices of rhs.");
    schema.field("alpha", &P::alpha).default_value(1.0).doc("Factor of the product.");
    schema.field("with_addend", &P::with_addend).default_value(false).doc("Whether a third input is added.");
  }
};

// Sizes of matrices, or of stacks of matrices, in the order of memory.
struct Sizes {
  int64_t batch;
  kernels::GemmShape shape;
  Sizes(const ScaledProductParams& p, const Shape& a, const Shape& b) : batch(a.size(0, a.ndim() - 2)) {
    const int row = a.ndim() - 2, column = a.ndim() - 1;
    shape = kernels::GemmShape::dense(p.transpose_a, p.transpose_b, p.transpose_a ? a[column] : a[row],
                                      p.transpose_b ? b[row] : b[column], p.transpose_a ? a[row] : a[column]);
  }
  int64_t work() const { return batch * shape.m * shape.n * shape.k; }
};

void infer(const ScaledProductParams& p, InferContext& c) {
  c.unify_dtypes();
  const Shape a = c.in_shape(0), b = c.in_shape(1);
  if (!a.rank_known() || !b.rank_known()) return;
  const int ndim = a.ndim(), row = ndim - 2, column = ndim - 1;
  if (ndim < 2 || b.ndim() != ndim) {
    throw ShapeError({.input = "rhs",
                      .expected = "as many axes as lhs, two at least",
                      .given = b.str(),
                      .because = "lhs has shape " + a.str()});
  }
  Shape out = a, right = Shape::unknown(ndim);
  for (int i = 0; i < row; ++i) right[i] = a[i];
  right[p.transpose_b ? column : row] = a[p.transpose_a ? row : column];
  c.set_in_shape(1, right);
  out[row] = a[p.transpose_a ? column : row];
  out[column] = b[p.transpose_b ? row : column];
  c.set_out_shape(0, out);
  if (p.with_addend) c.set_in_shape(2, out);
}

template <typename T>
class PlainKernel final : public Kernel {
 public:
  PlainKernel(const ScaledProductParams& p, const Sizes& sizes) : p_(p), sizes_(sizes) {}
  std::string description() const override { return "gemm"; }
  void run(const KernelArgs& args) override {
    const kernels::GemmShape& s = sizes_.shape;
    T* out = args.out[0].as<T>();
    const int64_t size = sizes_.batch * s.m * s.n;
    if (size == 0) return;
    if (device::current()) return run_on_device(args, size);
    if (p_.with_addend) {
      const T* addend = args.in[2].as<T>();
      parallel_for(size, 0.3,
                   [=](int64_t begin, int64_t end) { std::copy(addend + begin, addend + end, out + begin); });
    }
    const T *a = args.in[0].as<T>(), *b = args.in[1].as<T>();
    const auto products = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        kernels::gemm(s, static_cast<T>(p_.alpha), a + i * s.m * s.k, b + i * s.k * s.n, T(p_.with_addend ? 1 : 0),
                      out + i * s.m * s.n);
      }
    };
    if (sizes_.batch == 1) return products(0, 1);  // the single product uses all cores
    constexpr double kMultiplicationNs = 0.04;
    parallel_for(sizes_.batch, kMultiplicationNs * static_cast<double>(s.m * s.n * s.k), products);
  }

 private:
  void run_on_device(const KernelArgs& args, int64_t size) const {
    const kernels::GemmShape& s = sizes_.shape;
    void* out = args.out[0].data;
    if (p_.with_addend) kernels::copy_bytes(args.in[2].data, out, size * static_cast<int64_t>(sizeof(T)));
    kernels::on_device::gemm(s, dtype_of<T>::value, p_.alpha, args.in[0].data, args.in[1].data, p_.with_addend ? 1 : 0,
                             out, {sizes_.batch, s.m * s.k, s.k * s.n, s.m * s.n});
  }
  ScaledProductParams p_;
  Sizes sizes_;
};

Ref<Kernel> link(const ScaledProductParams& p, const LinkContext& c) {
  const DType dtype = c.in[0].dtype;
  const Sizes s(p, c.in[0].shape, c.in[1].shape);
  if (pays_blocked_product(c.device, dtype, c.in[0].shape.ndim(), s.batch, s.shape))
    return Ref<Kernel>(new DnnlProduct(dtype, s.batch, s.shape, static_cast<float>(p.alpha), p.with_addend));
  return make_float_kernel<PlainKernel>(dtype, p, s);
}

Values gradient(const ScaledProductParams& p, const GradientContext& g) {
  Values grads(static_cast<size_t>(g.num_inputs()));
  const Value given = g.output_grad(0);
  if (!given) return grads;
  const bool matrices = g.input_spec(0).shape.ndim() == 2;
  const auto product = [&](const Value& a, const Value& b, bool transpose_a, bool transpose_b) {
    return matrices ? dot(a, b, transpose_a, transpose_b) : batch_dot(a, b, transpose_a, transpose_b);
  };
  const Value d = given * p.alpha, lhs = g.input(0), rhs = g.input(1);
  if (g.wants(0))
    grads[0] = p.transpose_a ? product(rhs, d, p.transpose_b, true) : product(d, rhs, false, !p.transpose_b);
  if (g.wants(1))
    grads[1] = p.transpose_b ? product(d, lhs, true, p.transpose_a) : product(lhs, d, !p.transpose_a, false);
  if (p.with_addend) grads[2] = given;
  return grads;
}

}  // namespace

void register_scaled_product(OpRegistry& ops) {
  ops.declare<ScaledProductParams>("_scaled_product")
      .internal()
      .doc("alpha * lhs rhs + addend, of two matrices or of each pair in two stacks.")
      .input("lhs", "(..., m, k), or (..., k, m) if transpose_a")
      .input("rhs", "(..., k, n), or (..., n, k) if transpose_b")
      .optional_input("addend", "shape of the output, if with_addend")
      .output("output", "(..., m, n)")
      .num_inputs([](const ScaledProductParams& p) { return p.with_addend ? 3 : 2; })
      .infer(infer)
      .heavy()
      .link(link)
      .any_device()
      .halves_through_float()
      .gradient(gradient, Saves::of({0, 1}))
      .cost([](const ScaledProductParams& p, auto in, auto) {
        const Sizes s(p, in[0].shape, in[1].shape);
        return static_cast<double>(s.batch) * kernels::gemm_cost_ns(s.shape.m, s.shape.n, s.shape.k, in[0].dtype);
      })
      .flops([](const ScaledProductParams& p, auto in, auto) {
        const Sizes s(p, in[0].shape, in[1].shape);
        return static_cast<double>(s.batch) * kernels::gemm_flops(s.shape.m, s.shape.n, s.shape.k);
      })
      .sample({{3, 4}, {4, 5}}, {{"alpha", "0.5"}})
      .sample({{4, 3}, {5, 4}, {3, 5}}, {{"transpose_a", "True"}, {"transpose_b", "True"}, {"with_addend", "True"}})
      .sample({{2, 3, 4}, {2, 4, 5}, {2, 3, 5}}, {{"alpha", "-2"}, {"with_addend", "True"}})
      .sample({{40, 33}, {35, 33}}, {{"transpose_b", "True"}, {"alpha", "0.125"}})
      .sample({{40, 33}, {33, 35}, {40, 35}}, {{"alpha", "0.5"}, {"with_addend", "True"}})
      .sample({{2, 18, 17}, {2, 18, 19}, {2, 17, 19}},
              {{"transpose_a", "True"}, {"alpha", "3"}, {"with_addend", "True"}})
      .sample({{0, 4}, {4, 5}}, {{"alpha", "0.5"}})
      .sample({{3, 0}, {0, 5}, {3, 5}}, {{"alpha", "0.5"}, {"with_addend", "True"}});
}

}  // namespace hybridnet::ops
