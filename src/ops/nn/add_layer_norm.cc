// LayerNorm of a residual sum, which is the second output: layer_norm(dropout(data) + addend), in one pass over memory
// forward and one backward.
#include <cstring>

#include "device/stream.h"
#include "hybridnet/declare.h"
#include "ops/nn/row_norm.h"

namespace hybridnet::ops {
namespace {

using kernels::NormRows;

const OpRef kBackward{"_add_layer_norm_backward"}, kKept{"_dropout_kept"};

struct AddNormParams {
  double eps = 1e-5;
  double p = 0;  // dropout probability of data
  static void describe(ParamSchema<AddNormParams>& schema) {
    schema.field("eps", &AddNormParams::eps).default_value(1e-5).at_least(0).doc("Added to the variance.");
    schema.field("p", &AddNormParams::p)
        .default_value(0.0)
        .range(0, 1)
        .doc("Probability that an element of data becomes 0.");
  }
};

struct BackwardParams {
  bool with_sum = false;
  double p = 0;
  int num_inputs() const { return 5 + (with_sum ? 1 : 0) + (p > 0 ? 1 : 0); }
  static void describe(ParamSchema<BackwardParams>& schema) {
    schema.field("with_sum", &BackwardParams::with_sum)
        .default_value(false)
        .doc("Whether the sum has a gradient, too.");
    schema.field("p", &BackwardParams::p).default_value(0.0).range(0, 1).doc("Probability of the dropout.");
  }
};

// ---- shapes
void infer_add_norm(const AddNormParams&, InferContext& c) {
  c.unify_dtypes({0, 1, 2, 3}, {0, 1, 2, 3});
  for (int i = 0; i < 2; ++i) {
    c.set_in_shape(i, c.out_shape(i));
    c.set_in_shape(1 - i, c.in_shape(i));
  }
  if (c.num_out() > 4) {
    c.set_out_dtype(4, DType::kInt64);
    c.set_out_shape(4, Shape{2});
  }
  const Shape data = c.in_shape(0).rank_known() ? c.in_shape(0) : c.in_shape(1);
  if (!data.rank_known()) return;
  if (data.ndim() == 0) throw ShapeError({.input = "data", .expected = "at least one axis", .given = "a scalar"});
  for (int i = 0; i < 2; ++i) {
    c.set_in_shape(i, data);
    c.set_out_shape(i, data);
    c.set_in_shape(2 + i, Shape{data[data.ndim() - 1]});
  }
  Shape moments = data;
  moments[data.ndim() - 1] = 1;
  for (int i = 2; i < 4; ++i) c.set_out_shape(i, moments);
}

void infer_backward(const BackwardParams& p, InferContext& c) {
  c.unify_dtypes({0, 1, 2, 3, 4}, {0, 1, 2});
  if (p.with_sum) c.unify_dtypes({0, 5}, {});
  if (p.p > 0) c.unify_dtypes({0}, {3});
  const auto tensors = [&](const Shape& shape) {
    for (const int i : {0, 1}) c.set_in_shape(i, shape);
    if (p.with_sum) c.set_in_shape(5, shape);
    c.set_out_shape(0, shape);
    if (p.p > 0) c.set_out_shape(3, shape);
  };
  tensors(c.in_shape(1));
  tensors(c.in_shape(0));
  for (int i = 1; i < 3; ++i) c.set_out_shape(i, c.in_shape(2));
  if (p.p == 0) return;
  c.set_in_dtype(p.num_inputs() - 1, DType::kInt64);
  c.set_in_shape(p.num_inputs() - 1, Shape{2});
}

// ---- kernels
template <typename T>
class ForwardKernel final : public Kernel {
 public:
  ForwardKernel(const AddNormParams& p, const LinkContext& c) : p_(p), rows_(rows_of(c.in[0].shape)) {}
  void run(const KernelArgs& a) override {
    kernels::ResidualSum<T> x{a.in[0].as<T>(), a.in[1].as<T>(), a.out[1].as<T>()};
    if (p_.p > 0 && a.train) {
      x.keep = 1 - p_.p;
      x.rng = a.rng;
    }
    if (a.out.size() > 4 && a.out[4].data) {
      if (device::Stream* const stream = device::current())
        stream->copy_in(a.out[4].data, &a.rng, sizeof(a.rng));
      else
        std::memcpy(a.out[4].data, &a.rng, sizeof(a.rng));
    }
    kernels::add_layer_norm<T>(rows_, x, a.in[2].as<T>(), a.in[3].as<T>(), p_.eps, a.out[0].as<T>(), a.out[2].as<T>(),
                               a.out[3].as<T>());
  }

 private:
  AddNormParams p_;
  NormRows rows_;
};

template <typename T>
class BackwardKernel final : public Kernel {
 public:
  BackwardKernel(const BackwardParams& p, const LinkContext& c) : p_(p), rows_(rows_of(c.in[1].shape)) {}
  int64_t workspace_bytes() const override { return kernels::layer_norm_gradient_workspace(rows_, sizeof(T)); }
  void run(const KernelArgs& a) override {
    kernels::ResidualGradient<T> residual;
    if (p_.with_sum) residual.of_sum = a.in[5].as<T>();
    if (p_.p > 0) {
      residual.of_data = a.out[3].as<T>();
      residual.keep = 1 - p_.p;
      if (device::current())
        residual.key = a.in.back().as<uint64_t>();
      else
        std::memcpy(&residual.rng, a.in.back().data, sizeof(residual.rng));
    }
    kernels::add_layer_norm_gradient<T>(rows_, residual, a.in[0].as<T>(), a.in[1].as<T>(), a.in[2].as<T>(),
                                        a.in[3].as<T>(), a.in[4].as<T>(), a.out[0].as<T>(), a.out[1].as<T>(),
                                        a.out[2].as<T>(), a.workspace);
  }

 private:
  BackwardParams p_;
  NormRows rows_;
};

template <template <typename> class K, typename P>
Ref<Kernel> link(const P& p, const LinkContext& c) {
  return make_float_kernel<K>(c.in[0].dtype, p, c);
}

// ---- gradients
// Applies the dropout with key rng to v.
Value kept(const Value& v, const Value& rng, double p) {
  if (!v || p == 0) return v;
  const TensorSpec spec = spec_of(v);
  const DType drawn = spec.dtype == DType::kFloat64 ? spec.dtype : DType::kFloat32;
  const Value factors = call(kKept, {rng}, {{"shape", AttrValue(spec.shape)}, {"p", p}, {"dtype", dtype_name(drawn)}});
  return v * cast(factors, spec.dtype);
}

Values add_norm_gradient(const AddNormParams& params, const GradientContext& g) {
  const Shape& shape = g.input_spec(0).shape;
  const double p = g.train() ? params.p : 0, count = static_cast<double>(shape[shape.ndim() - 1]);
  const Value dy = g.output_grad(0), rng = p > 0 ? g.output(4) : Value{};
  Value of_sum = g.output_grad(1);
  if (const Value d = g.output_grad(2)) of_sum = of_sum + broadcast_to(d / count, shape);
  if (const Value d = g.output_grad(3)) of_sum = of_sum + (g.output(1) - g.output(2)) * (d / (g.output(3) * count));
  if (!dy) return {kept(of_sum, rng, p), of_sum, Value{}, Value{}};
  Values inputs{dy, g.output(1), g.input(2), g.output(2), g.output(3)};
  if (of_sum) inputs.push_back(of_sum);
  if (p > 0) inputs.push_back(rng);
  const Values grads = call_all(kBackward, inputs, {{"with_sum", static_cast<bool>(of_sum)}, {"p", p}});
  return {p > 0 ? grads[3] : grads[0], grads[0], grads[1], grads[2]};
}

Values backward_gradient(const BackwardParams& p, const GradientContext& g) {
  const int last = g.num_inputs() - 1;
  Value of_addend = g.output_grad(0);
  if (p.p > 0) of_addend = of_addend + kept(g.output_grad(3), g.input(last), p.p);
  Values inputs;
  for (int i = 0; i < 5; ++i) inputs.push_back(g.input(i));
  Values grads = row_norm_second_gradient(inputs, {of_addend, g.output_grad(1), g.output_grad(2)});
  if (p.with_sum) grads.push_back(of_addend);
  if (p.p > 0) grads.push_back(Value{});
  return grads;
}

int64_t cost_of(const TensorSpec& data, double p) {
  return layer_norm_cost_ns(data) + data.shape.size() / (p > 0 ? 1 : 4);
}

OpBuilder<AddNormParams> declare(OpRegistry& ops, const char* name) {
  return ops.declare<AddNormParams>(name)
      .internal()
      .amp(AmpType::kFloat)
      .input("data", "at least one axis")
      .input("addend", "shape and dtype of data")
      .input("gamma", "(size of the last axis,): factor after normalization")
      .input("beta", "(size of the last axis,): summand after normalization")
      .output("output", "shape of data")
      .output("sum", "shape of data: the normalized sum")
      .output("mean", "shape of data with 1 for the last axis")
      .output("std", "shape of mean: sqrt(variance + eps)")
      .infer(infer_add_norm)
      .any_device()
      .link(link<ForwardKernel, AddNormParams>)
      .halves_through_float()
      .skips_unwanted_outputs()
      .inplace(0, 0)
      .inplace(1, 1)
      .repeated_by({.op = "LayerNorm", .inputs = {{.output = 1}, {.input = 2}, {.input = 3}}})
      .cost([](const AddNormParams& p, auto in, auto) { return cost_of(in[0], p.p); })
      .flops([](const AddNormParams&, auto in, auto) { return 9.0 * static_cast<double>(in[0].shape.size()); });
}

}  // namespace

void register_add_layer_norm(OpRegistry& ops) {
  declare(ops, "_add_layer_norm")
      .doc("LayerNorm of data + addend along the last axis, and the sum.")
      .gradient(add_norm_gradient, Saves::of({2}, {1, 2, 3}))
      .sample({{3, 5}, {3, 5}, Shape{5}, Shape{5}})
      .sample({{2, 3, 17}, {2, 3, 17}, Shape{17}, Shape{17}}, {{"eps", "0.01"}})
      .sample({{0, 3}, {0, 3}, Shape{3}, Shape{3}});
  Sample dropped;
  dropped.inputs = {{3, 5}, {3, 5}, Shape{5}, Shape{5}};
  dropped.attrs = {{"p", "0.25"}};
  dropped.check_gradient = false;
  dropped.note = "every run drops other elements";
  declare(ops, "_dropout_add_layer_norm")
      .doc("_add_layer_norm of Dropout(data).")
      .output("rng", "(2,): key of the random numbers")
      .random()
      .train_sensitive()
      .prediction_params([](AddNormParams p) {
        p.p = 0;
        return p;
      })
      .gradient(add_norm_gradient, Saves::of({2}, {1, 2, 3, 4}))
      .sample(dropped);
  ops.declare<BackwardParams>("_add_layer_norm_backward")
      .internal()
      .doc("Gradient of _add_layer_norm and _dropout_add_layer_norm, given the sum and its moments.")
      .input("output_grad", "shape of data")
      .input("sum", "shape of data")
      .input("gamma", "(width,)")
      .input("mean", "mean of each row")
      .input("std", "standard deviation of each row")
      .optional_input("sum_grad", "shape of data: gradient of the output sum; if with_sum")
      .optional_input("rng", "(2,): key of the random numbers; if p > 0")
      .num_inputs([](const BackwardParams& p) { return p.num_inputs(); })
      .output("addend_grad", "shape of data")
      .output("gamma_grad", "(width,)")
      .output("beta_grad", "(width,)")
      .output("data_grad", "shape of data: addend_grad after the dropout; if p > 0")
      .num_outputs([](const BackwardParams& p) { return p.p > 0 ? 4 : 3; })
      .infer(infer_backward)
      .any_device()
      .link(link<BackwardKernel, BackwardParams>)
      .halves_through_float()
      .gradient(backward_gradient, Saves::all_inputs())
      .inplace(0, 0)
      .skips_unwanted_outputs()
      .cost([](const BackwardParams& p, auto in, auto) { return 2 * cost_of(in[1], p.p); })
      .sample(Sample{.inputs = {{3, 5}, {3, 5}, Shape{5}, {3, 1}, {3, 1}}, .low = 0.5})
      .sample(Sample{
          .inputs = {{3, 5}, {3, 5}, Shape{5}, {3, 1}, {3, 1}, {3, 5}}, .attrs = {{"with_sum", "True"}}, .low = 0.5});
}

}  // namespace hybridnet::ops
