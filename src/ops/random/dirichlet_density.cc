// _random_pdf_dirichlet: densities of samples of Dirichlet distributions.
#include <cmath>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/draw_arguments.h"
#include "ops/device_launch.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

struct DirichletParams {
  bool is_log;
  static void describe(ParamSchema<DirichletParams>& schema) {
    schema.field("is_log", &DirichletParams::is_log)
        .default_value(false)
        .doc("Whether to return logarithms of densities.");
  }
};

void infer_dirichlet(const DirichletParams&, InferContext& c) {
  c.unify_dtypes();
  const Shape &sample = c.in_shape(0), &alpha = c.in_shape(1);
  if (!sample.rank_known() || !alpha.rank_known()) return;
  const int n = sample.ndim(), m = alpha.ndim();
  bool fits = m >= 1 && m <= n &&
              (sample[n - 1] == alpha[m - 1] || sample[n - 1] == kUnknownDim || alpha[m - 1] == kUnknownDim);
  for (int i = 0; fits && i + 1 < m; ++i)
    fits = sample[i] == kUnknownDim || alpha[i] == kUnknownDim || sample[i] == alpha[i];
  if (!fits) {
    throw ShapeError({.input = "sample",
                      .expected = "the axes of alpha, " + alpha.str() + ", with those drawn for each before the last",
                      .given = "shape " + sample.str()});
  }
  Shape out = Shape::scalar();
  for (int i = 0; i + 1 < n; ++i) out.push_back(sample[i]);
  if (out.ndim() == 0 && !is_np_shape()) out.push_back(1);
  c.set_out_shape(0, out);
}

// (distributions, draws, categories)
struct Sizes {
  int64_t count, draws, categories;
  Sizes(const Shape& sample, const Shape& alpha)
      : count(alpha.size(0, alpha.ndim() - 1)),
        draws(sample.size(alpha.ndim() - 1, sample.ndim() - 1)),
        categories(alpha[alpha.ndim() - 1]) {}
};

void run_dirichlet(const DirichletParams& p, const KernelArgs& a) {
  const Sizes s(*a.in[0].shape, *a.in[1].shape);
  if (device::current()) {
    const device::DensityArguments density{.out = a.out[0].data,
                                           .n = s.count * s.draws,
                                           .draws = s.draws,
                                           .categories = s.categories,
                                           .sample = a.in[0].data,
                                           .first = a.in[1].data,
                                           .is_log = p.is_log};
    return on_device::launch("draw.cuh", "DensityArguments", on_device::with_dtype("dirichlet_density", a.in[0].dtype),
                             density.n, density);
  }
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(s.count * s.draws, 40.0 * static_cast<double>(s.categories), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T *x = a.in[0].as<T>() + i * s.categories, *alpha = a.in[1].as<T>() + i / s.draws * s.categories;
        double density = 0, total = 0;
        for (int64_t k = 0; k < s.categories; ++k) {
          const double weight = static_cast<double>(alpha[k]);
          density += (weight - 1) * std::log(static_cast<double>(x[k])) - std::lgamma(weight);
          total += weight;
        }
        density += std::lgamma(total);
        a.out[0].as<T>()[i] = static_cast<T>(static_cast<accumulator_t<T>>(p.is_log ? density : std::exp(density)));
      }
    });
  });
}

Values dirichlet_gradient(const DirichletParams& p, const GradientContext& g) {
  static const OpRef kLog{"log"}, kPolygamma{"_polygamma"};
  if (!g.output_grad(0)) return {};
  const Shape &sample = g.input_spec(0).shape, &alpha = g.input_spec(1).shape;
  const Sizes s(sample, alpha);
  const Shape rows({s.count, s.draws, 1});
  const Value x = reshape(g.input(0), Shape({s.count, s.draws, s.categories})),
              weights = reshape(g.input(1), Shape({s.count, 1, s.categories}));
  Value arriving = reshape(g.output_grad(0), rows);
  if (!p.is_log) arriving = arriving * reshape(g.output(0), rows);
  const auto digamma = [](const Value& v) { return call(kPolygamma, {v}, {{"order", 0}}); };
  Values grads(2);
  if (g.wants(0)) grads[0] = reshape(arriving * ((weights - 1.0) / x), sample);
  if (g.wants(1)) {
    const Value slope = call(kLog, {x}) - digamma(weights) + digamma(sum(weights, Tuple({2}), true));
    grads[1] = reshape(sum(arriving * slope, Tuple({1}), false), alpha);
  }
  return grads;
}

}  // namespace

void register_dirichlet_density(OpRegistry& ops) {
  ops.declare<DirichletParams>("_random_pdf_dirichlet")
      .alias("random_pdf_dirichlet")
      .doc("Density of Dirichlet distributions with concentrations alpha.")
      .input("sample",
             "floating: the axes of alpha, with the axes drawn for each before the last, which holds the categories")
      .input("alpha", "(..., categories): concentrations")
      .output("output", "shape of sample without the last axis")
      .infer(infer_dirichlet)
      .cpu(run_dirichlet, kFloating)
      .any_device()
      .cost([](const DirichletParams&, auto in, auto) { return 300 + in[0].shape.size() * 40; })
      .gradient(dirichlet_gradient, Saves::all())
      .sample({{2, 3, 4}, {2, 4}}, {}, 0.5, 1.5)
      .sample({{3, 4}, {4}}, {{"is_log", "True"}}, 0.5, 1.5);
}

}  // namespace hybridnet::ops
