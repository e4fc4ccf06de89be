// _random_pdf_x: densities of samples, or their logarithms, for tensors of parameters.
#include "kernels/functors/densities.h"

#include <array>
#include <cmath>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/draw_arguments.h"
#include "ops/device_launch.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

struct DensityParams {
  bool is_log;
  static void describe(ParamSchema<DensityParams>& schema) {
    schema.field("is_log", &DensityParams::is_log)
        .default_value(false)
        .doc("Whether to return logarithms of densities.");
  }
};

const OpRef kLog{"log"}, kPolygamma{"_polygamma"};

Value log(const Value& v) { return call(kLog, {v}); }
Value digamma(const Value& v) { return call(kPolygamma, {v}, {{"order", 0}}); }

// Derivatives of the logarithm by the sample and by the parameters; null: zero.
struct Slopes {
  Value sample, first, second;
};

struct Uniform : kernels::DensityOfUniform {
  static constexpr const char* kDensity = "DensityOfUniform";
  static constexpr std::array kParameters = {"low", "high"};
  static Slopes slopes(const Value& x, const Value& low, const Value& high) {
    const Value inverse = ones_like(x) / (high - low);
    return {{}, inverse, -inverse};
  }
};

struct Normal : kernels::DensityOfNormal {
  static constexpr const char* kDensity = "DensityOfNormal";
  static constexpr std::array kParameters = {"mu", "sigma"};
  static Slopes slopes(const Value& x, const Value& mu, const Value& sigma) {
    const Value z = (x - mu) / sigma, by_mu = z / sigma;
    return {-by_mu, by_mu, (z * z - 1.0) / sigma};
  }
};

struct Gamma : kernels::DensityOfGamma {
  static constexpr const char* kDensity = "DensityOfGamma";
  static constexpr std::array kParameters = {"alpha", "beta"};
  static Slopes slopes(const Value& x, const Value& alpha, const Value& beta) {
    return {(alpha - 1.0) / x - beta, log(beta) + log(x) - digamma(alpha), alpha / beta - x};
  }
};

struct Exponential : kernels::DensityOfExponential {
  static constexpr const char* kDensity = "DensityOfExponential";
  static constexpr std::array kParameters = {"lam"};
  static Slopes slopes(const Value& x, const Value& lam, const Value&) {
    return {-lam * ones_like(x), 1.0 / lam - x, {}};
  }
};

struct Poisson : kernels::DensityOfPoisson {
  static constexpr const char* kDensity = "DensityOfPoisson";
  static constexpr std::array kParameters = {"lam"};
  static Slopes slopes(const Value& x, const Value& lam, const Value&) { return {{}, x / lam - 1.0, {}}; }
};

// p is the probability of failure, which follows MXNet.
struct NegativeBinomial : kernels::DensityOfNegativeBinomial {
  static constexpr const char* kDensity = "DensityOfNegativeBinomial";
  static constexpr std::array kParameters = {"k", "p"};
  static Slopes slopes(const Value& x, const Value& k, const Value& p) {
    return {{}, digamma(x + k) - digamma(k) + log(p), k / p - x / (1.0 - p)};
  }
};

// The negative binomial distribution with mean mu and dispersion alpha: k = 1 / alpha, p = 1 / (mu alpha + 1).
struct GeneralizedNegativeBinomial : kernels::DensityOfGeneralizedNegativeBinomial {
  static constexpr const char* kDensity = "DensityOfGeneralizedNegativeBinomial";
  static constexpr std::array kParameters = {"mu", "alpha"};
  static Slopes slopes(const Value& x, const Value& mu, const Value& alpha) {
    const Value p = 1.0 / (mu * alpha + 1.0);
    const Slopes s = NegativeBinomial::slopes(x, 1.0 / alpha, p);
    const Value by_p = s.second * p * p;
    return {{}, -by_p * alpha, -s.first / (alpha * alpha) - by_p * mu};
  }
};

// The shape of the sample is the shape of the parameters, followed by the shape drawn for each.
void infer_density(const DensityParams&, InferContext& c) {
  c.unify_dtypes();
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  for (int i = 2; i < c.num_in(); ++i) {
    c.set_in_shape(1, c.in_shape(i));
    c.set_in_shape(i, c.in_shape(1));
  }
  const Shape &sample = c.in_shape(0), &parameters = c.in_shape(1);
  if (!sample.rank_known() || !parameters.rank_known()) return;
  bool fits = parameters.ndim() <= sample.ndim();
  for (int i = 0; fits && i < parameters.ndim(); ++i)
    fits = sample[i] == kUnknownDim || parameters[i] == kUnknownDim || sample[i] == parameters[i];
  if (!fits) {
    throw ShapeError({.input = "sample",
                      .expected = "the axes of the parameters, " + parameters.str() + ", then those drawn for each",
                      .given = "shape " + sample.str()});
  }
}

template <typename D>
void run_density(const DensityParams& p, const KernelArgs& a) {
  const int64_t parameters = a.in[1].size(), draws = parameters > 0 ? a.in[0].size() / parameters : 0;
  if (device::current()) {
    const device::DensityArguments density{.out = a.out[0].data,
                                           .n = parameters * draws,
                                           .draws = draws,
                                           .sample = a.in[0].data,
                                           .first = a.in[1].data,
                                           .second = a.in.size() > 2 ? a.in[2].data : nullptr,
                                           .is_log = p.is_log};
    return on_device::launch(
        "draw.cuh", "DensityArguments",
        std::string("density<hybridnet::kernels::") + D::kDensity + ", " + on_device::element_name(a.in[0].dtype) + ">",
        density.n, density);
  }
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(parameters * draws, 40.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double first = static_cast<double>(a.in[1].as<T>()[i / draws]);
        const double second = a.in.size() > 2 ? static_cast<double>(a.in[2].as<T>()[i / draws]) : 0.0;
        const double density = D::log_density(static_cast<double>(a.in[0].as<T>()[i]), first, second);
        a.out[0].as<T>()[i] = static_cast<T>(static_cast<accumulator_t<T>>(p.is_log ? density : std::exp(density)));
      }
    });
  });
}

// All tensors are viewed as (parameters, draws).
template <typename D>
Values density_gradient(const DensityParams& p, const GradientContext& g) {
  if (!g.output_grad(0)) return {};
  const Shape &sample = g.input_spec(0).shape, &parameter = g.input_spec(1).shape;
  const int64_t count = parameter.size(), draws = count > 0 ? sample.size() / count : 0;
  const Shape rows({count, draws}), columns({count, 1});
  const Value second = g.num_inputs() > 2 ? reshape(g.input(2), columns) : Value{};
  const Slopes slopes = D::slopes(reshape(g.input(0), rows), reshape(g.input(1), columns), second);
  Value arriving = reshape(g.output_grad(0), rows);
  if (!p.is_log) arriving = arriving * reshape(g.output(0), rows);
  const auto summed = [&](const Value& slope) {
    return slope ? reshape(sum(arriving * slope, Tuple({1}), false), parameter) : Value{};
  };
  Values grads(static_cast<size_t>(g.num_inputs()));
  if (slopes.sample) grads[0] = reshape(arriving * slopes.sample, sample);
  if (g.wants(1)) grads[1] = summed(slopes.first);
  if (g.num_inputs() > 2 && g.wants(2)) grads[2] = summed(slopes.second);
  return grads;
}

template <typename D>
void declare_density(OpRegistry& ops, const std::string& name, const char* doc, std::array<double, 2> range,
                     bool smooth = true) {
  auto builder = ops.declare<DensityParams>("_random_pdf_" + name);
  builder.alias("random_pdf_" + name)
      .doc(doc)
      .input("sample", "floating: the axes of the parameters, then the axes drawn for each");
  for (const char* parameter : D::kParameters) builder.input(parameter, "floating tensor, any shape");
  builder.output("output", "shape and dtype of sample")
      .infer(infer_density)
      .cpu(run_density<D>, kFloating)
      .any_device()
      .cost([](const DensityParams&, auto in, auto) { return 300 + in[0].shape.size() * 30; })
      .gradient(density_gradient<D>, Saves::all());
  for (const char* is_log : {"False", "True"}) {
    Sample s;
    s.inputs = {{3, 4}, {3}};
    if (D::kParameters.size() > 1) s.inputs.push_back(Shape({3}));
    s.attrs = {{"is_log", is_log}};
    s.low = range[0];
    s.high = range[1];
    s.check_gradient = smooth;
    if (!smooth) s.note = "samples are integers: they have no gradient";
    builder.sample(s);
  }
}

}  // namespace

void register_densities(OpRegistry& ops) {
  declare_density<Uniform>(ops, "uniform", "Density of uniform distributions between low and high.", {0.1, 0.9});
  declare_density<Normal>(ops, "normal", "Density of normal distributions.", {0.5, 1.5});
  declare_density<Gamma>(ops, "gamma", "Density of gamma distributions with shape alpha and rate beta.", {0.5, 1.5});
  declare_density<Exponential>(ops, "exponential", "Density of exponential distributions with rate lam.", {0.5, 1.5});
  declare_density<Poisson>(ops, "poisson", "Probabilities of Poisson distributions with mean lam.", {0.5, 1.9}, false);
  declare_density<NegativeBinomial>(
      ops, "negative_binomial",
      "Probabilities of negative binomial distributions with k and the probability p of failure.", {0.2, 0.9}, false);
  declare_density<GeneralizedNegativeBinomial>(
      ops, "generalized_negative_binomial",
      "Probabilities of negative binomial distributions with mean mu and dispersion alpha.", {0.5, 1.9}, false);
}

}  // namespace hybridnet::ops
