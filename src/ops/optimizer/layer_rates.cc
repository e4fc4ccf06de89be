// Learning rates scaled by the norms of a weight and of its gradient, computed inside the update that uses them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "device/stream.h"
#include "hybridnet/declare.h"
#include "ops/optimizer/device_squares.h"
#include "ops/optimizer/sum_squares.h"

namespace hybridnet::ops {
namespace {

struct LayerRates {
  std::string method;
  double eta, eps;
  static void describe(ParamSchema<LayerRates>& schema) {
    schema.field("method", &LayerRates::method)
        .default_value("lars")
        .one_of({"lars", "lbsgd"})
        .doc(
            "lars: eta * |weight| / (rescale_grad * |grad| + wd * |weight| + eps), or 1 if a norm is 0; lbsgd: the "
            "root of |weight|^2 / (|grad|^2 + wd * |weight|^2), between 0.01 and 100.");
    schema.field("eta", &LayerRates::eta).default_value(0.001).doc("Trust coefficient of lars.");
    schema.field("eps", &LayerRates::eps).default_value(0.0).doc("Added to the denominator of lars.");
  }
};

double squares_of(const TensorRef& tensor) {
  double total = 0;
  dispatch_floating(tensor.dtype, [&](auto zero) {
    using T = decltype(zero);
    total = sum_squares(tensor.as<T>(), tensor.size());
  });
  return total;
}

double factor(const LayerRates& p, double weight, double grad, double wd, double rescale_grad) {
  if (p.method == "lbsgd") return std::clamp(std::sqrt(weight / (grad + wd * weight + 1e-18)), 0.01, 100.0);
  const double of_weight = std::sqrt(weight), of_grad = std::sqrt(grad) * rescale_grad;
  if (!(of_weight > 0.0 && of_grad > 0.0)) return 1.0;
  return p.eta * of_weight / (of_grad + wd * of_weight + p.eps);
}

void run(const LayerRates& p, const KernelArgs& a) {
  if (device::current()) return on_device::layer_rates(a, p.method == "lars", p.eta, p.eps);
  const TensorRef& rates = a.in[2];
  double* out = a.out[0].as<double>();
  std::memcpy(out, rates.data, static_cast<size_t>(rates.size()) * sizeof(double));
  out[0] *= factor(p, squares_of(a.in[0]), squares_of(a.in[1]), out[1], out[2]);
}

void infer(const LayerRates&, InferContext& c) {
  for (int i = 0; i < 2; ++i) c.require_dtype(i, kFloating);
  c.set_in_dtype(2, DType::kFloat64);
  c.set_out_dtype(0, DType::kFloat64);
  c.set_out_shape(0, c.in_shape(2));
  const Shape& rates = c.in_shape(2);
  if (rates.known() && (rates.ndim() != 2 || rates[0] != 1 || rates[1] < 3))
    throw ShapeError({.input = "rates", .expected = "(1, 3 or more)", .given = rates.str()});
}

}  // namespace

void register_layer_rates(OpRegistry& ops) {
  Sample lars;
  lars.inputs = {{3, 4}, {3, 4}, {1, 4}};
  lars.dtypes = {DType::kUnknown, DType::kUnknown, DType::kFloat64};
  lars.attrs = {{"eta", "0.1"}, {"eps", "0.001"}};
  lars.low = 0.1;
  Sample lbsgd = lars;
  lbsgd.attrs = {{"method", "lbsgd"}};
  ops.declare<LayerRates>("_layer_rates")
      .any_device()
      .doc("The numbers of a step with its learning rate scaled by the norms of a weight and its gradient.")
      .input("weight", "floating tensor, any shape")
      .input("grad", "floating tensor, any shape")
      .input("rates", "float64 (1, columns): learning rate, weight decay, rescale_grad, and others")
      .output("out", "shape and dtype of rates; the first element is scaled")
      .infer(infer)
      .cpu(run, kFloating)
      .cost([](const LayerRates&, auto in, auto) { return in[0].shape.size() + in[1].shape.size(); })
      .gradient(kNotDifferentiable)
      .internal()
      .allowed_in_files()
      .sample(lars)
      .sample(lbsgd);
}

}  // namespace hybridnet::ops
