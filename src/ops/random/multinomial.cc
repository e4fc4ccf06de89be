// _sample_multinomial: random outcomes with given probabilities, and the logarithms of these for learning from rewards
// (Williams: Simple statistical gradient-following algorithms, Machine Learning 1992).
#include <algorithm>
#include <cmath>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/draw_arguments.h"
#include "kernels/random/rng.h"
#include "ops/device_launch.h"
#include "ops/emit.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

const OpRef kOneHot{"one_hot"};

struct MultinomialParams {
  Tuple shape;
  bool get_prob;
  DType dtype;
  static void describe(ParamSchema<MultinomialParams>& schema) {
    schema.field("shape", &MultinomialParams::shape)
        .default_value(AttrValue(Tuple::scalar()))
        .doc("Shape drawn from every distribution.");
    schema.field("get_prob", &MultinomialParams::get_prob)
        .default_value(false)
        .doc("Whether the logarithms of the outcomes' probabilities are a second output; its gradient flows to data.");
    schema.field("dtype", &MultinomialParams::dtype)
        .default_value("int32")
        .doc("uint8, int32, float16, float32 or float64.");
  }
};

void infer_multinomial(const MultinomialParams& p, InferContext& c) {
  c.set_out_dtype(0, p.dtype);
  if (p.get_prob) {
    c.set_in_dtype(0, c.out_dtype(1));
    c.set_out_dtype(1, c.in_dtype(0));
  }
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) return;
  if (data.ndim() < 1)
    throw ShapeError({.input = "data", .expected = "at least 1 dimension: probabilities", .given = "shape ()"});
  Shape out = Shape::scalar();
  for (int i = 0; i + 1 < data.ndim(); ++i) out.push_back(data[i]);
  for (int64_t size : p.shape) out.push_back(size);
  if (out.ndim() == 0 && !is_np_shape()) out.push_back(1);
  if (out.known() && out.size() > 0 && data[data.ndim() - 1] == 0)
    throw ShapeError(
        {.input = "data", .expected = "distributions with at least one outcome", .given = "shape " + data.str()});
  c.set_out_shape(0, out);
  if (p.get_prob) c.set_out_shape(1, out);
}

// Computes the cumulative probabilities of a distribution, in which outcomes are searched, in double for any dtype.
template <typename T>
void cumulate(const T* probabilities, Temporary<double>& sums) {
  double sum = 0;
  for (size_t k = 0; k < sums.size(); ++k) sums[k] = sum += std::max(static_cast<double>(probabilities[k]), 0.0);
}

// The first outcome whose cumulative sum exceeds the target. An outcome of probability zero is never returned while
// others are not zero.
int64_t outcome_of(const Temporary<double>& sums, double uniform) {
  const double target = uniform * sums.back();
  const auto found = std::upper_bound(sums.begin(), sums.end(), target);
  if (found != sums.end()) return found - sums.begin();
  return std::lower_bound(sums.begin(), sums.end(), sums.back()) - sums.begin();
}

void run_multinomial(const MultinomialParams& p, const KernelArgs& a) {
  const Shape& s = *a.in[0].shape;
  const int64_t outcomes = s[s.ndim() - 1], count = s.size(0, s.ndim() - 1);
  const int64_t draws = count > 0 ? a.out[0].size() / count : 0;
  if (draws == 0) return;
  if (device::current()) {
    const device::OutcomeArguments drawn{.probabilities = a.in[0].data,
                                         .out = a.out[0].data,
                                         .logarithms = p.get_prob ? a.out[1].data : nullptr,
                                         .count = count,
                                         .outcomes = outcomes,
                                         .draws = draws,
                                         .seed = a.rng.seed,
                                         .stream = a.rng.stream};
    const std::string types = on_device::element_name(a.in[0].dtype) + ", " + on_device::element_name(a.out[0].dtype);
    return on_device::launch("draw.cuh", "OutcomeArguments", on_device::with_type("outcomes", types), count * draws,
                             drawn);
  }
  dispatch_floating(a.in[0].dtype, [&](auto data_zero) {
    using T = decltype(data_zero);
    dispatch_dtype(a.out[0].dtype, [&](auto out_zero) {
      using O = decltype(out_zero);
      parallel_for(count, 5.0 * static_cast<double>(outcomes + draws), [&](int64_t begin, int64_t end) {
        Temporary<double> sums(static_cast<size_t>(outcomes));
        for (int64_t i = begin; i < end; ++i) {
          const T* probabilities = a.in[0].as<T>() + i * outcomes;
          cumulate(probabilities, sums);
          for (int64_t j = i * draws; j < (i + 1) * draws; ++j) {
            const int64_t outcome = outcome_of(sums, kernels::ElementBits(a.rng, static_cast<uint64_t>(j)).uniform());
            a.out[0].as<O>()[j] = static_cast<O>(static_cast<float>(outcome));
            if (p.get_prob)
              a.out[1].as<T>()[j] = static_cast<T>(std::log(static_cast<accumulator_t<T>>(probabilities[outcome])));
          }
        }
      });
    });
  });
}

// d log p[k] / d p[k] = 1 / p[k], for the drawn outcomes k.
Values multinomial_gradient(const MultinomialParams& p, const GradientContext& g) {
  if (!p.get_prob || !g.output_grad(1)) return {};
  const TensorSpec& data = g.input_spec(0);
  const int64_t outcomes = data.shape[data.shape.ndim() - 1], count = data.shape.size(0, data.shape.ndim() - 1);
  const int64_t draws = count > 0 ? g.output_spec(0).shape.size() / count : 0;
  const Value hits = call(kOneHot, {reshape(g.output(0), Shape({count, draws}))},
                          {{"depth", outcomes}, {"dtype", dtype_name(data.dtype)}});
  const Value drawn = sum(hits * reshape(g.output_grad(1), Shape({count, draws, 1})), Tuple({1}), false);
  return {reshape(drawn, data.shape) / g.input(0)};
}

}  // namespace

void register_multinomial(OpRegistry& ops) {
  ops.declare<MultinomialParams>("_sample_multinomial")
      .alias("sample_multinomial")
      .doc("Random outcomes of distributions over the last axis of data.")
      .input("data", "floating (..., outcomes): probabilities; each distribution is divided by its sum")
      .output("output", "outcomes in [0, outcomes): the axes of data before the last, then shape")
      .output("log_prob", "with get_prob: logarithms of the outcomes' probabilities")
      .num_outputs([](const MultinomialParams& p) { return p.get_prob ? 2 : 1; })
      .infer(infer_multinomial)
      .cpu(run_multinomial, kFloating)
      .any_device()
      .random()
      .gradient(multinomial_gradient, Saves::of({0}, {0}))
      .output_names(OutputNames::kNumberedSeveral)
      .sample({{4}}, {{"shape", "(5,)"}}, 0.1, 1.0)
      .sample({{2, 3}}, {{"shape", "(2, 2)"}, {"get_prob", "True"}, {"dtype", "float32"}}, 0.1, 1.0);
}

}  // namespace hybridnet::ops
