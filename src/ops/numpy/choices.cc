// _npi_choice and _npi_multinomial: random indices from a range, and the number of times that each outcome occurs.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "device/memory.h"
#include "hybridnet/declare.h"
#include "hybridnet/storage.h"
#include "hybridnet/threads.h"
#include "kernels/device/draw_arguments.h"
#include "kernels/elementwise/convert.h"
#include "kernels/random/rng.h"
#include "ops/device_launch.h"
#include "ops/device_table.h"
#include "ops/random/samplers.h"
#include "ops/shape_param.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

Temporary<double> as_doubles(const TensorRef& tensor) {
  Temporary<double> values(static_cast<size_t>(tensor.size()));
  if (device::current()) {  // waits: probabilities are checked
    const int64_t bytes = tensor.size() * static_cast<int64_t>(sizeof(double));
    const OwnedBlock converted(bytes, device::current()->device());
    kernels::convert_parallel(tensor.dtype, tensor.data, DType::kFloat64, converted.data(), tensor.size());
    device::copy_to_host(values.data(), converted.data(), bytes);
    return values;
  }
  kernels::convert_parallel(tensor.dtype, tensor.data, DType::kFloat64, values.data(), tensor.size());
  return values;
}

void require_probabilities(const Temporary<double>& p, const char* name) {
  for (const double value : p)
    if (!(value >= 0 && value <= 1))
      throw ValueError({.input = name, .expected = "probabilities in [0, 1]", .given = AttrValue(value).str()});
}

// Cumulative sums of the weights, in which outcomes are searched.
class Outcomes {
 public:
  explicit Outcomes(const Temporary<double>& weights) : sums_(weights.size()) {
    std::partial_sum(weights.begin(), weights.end(), sums_.begin());
  }
  const Temporary<double>& sums() const { return sums_; }
  int64_t at(double uniform) const {
    const auto found = std::upper_bound(sums_.begin(), sums_.end(), uniform * sums_.back());
    if (found != sums_.end()) return found - sums_.begin();
    return std::lower_bound(sums_.begin(), sums_.end(), sums_.back()) - sums_.begin();
  }

 private:
  Temporary<double> sums_;
};

// ------------------------------------------------------------------------------------------- choice
struct ChoiceParams {
  std::optional<int64_t> a;
  std::optional<Tuple> size;
  std::string ctx;
  bool replace, weighted;
  static void describe(ParamSchema<ChoiceParams>& schema) {
    schema.field("a", &ChoiceParams::a)
        .none_by_default()
        .doc("Exclusive upper bound of the indices; None: the length of the input array.");
    schema.field("size", &ChoiceParams::size).none_by_default().doc("Shape of the result; None: one index, ().");
    describe_ctx<ChoiceParams>(schema);
    schema.field("replace", &ChoiceParams::replace)
        .default_value(true)
        .doc("Whether an index may occur more than once.");
    schema.field("weighted", &ChoiceParams::weighted).default_value(false).doc("Whether probabilities are an input.");
  }
  int arrays() const { return int{!a} + int{weighted}; }
};

void infer_choice(const ChoiceParams& p, InferContext& c) {
  c.set_out_dtype(0, DType::kInt64);
  const Shape out = p.size.value_or(Tuple::scalar());
  c.set_out_shape(0, out);
  for (int i = 0; i < c.num_in(); ++i)
    if (c.in_shape(i).rank_known() && c.in_shape(i).ndim() != 1)
      throw ShapeError({.input = c.input_name(i), .expected = "one axis", .given = c.in_shape(i).str()});
  if (p.weighted && p.a) c.set_in_shape(c.num_in() - 1, Shape{*p.a});
  const bool array = c.num_in() > 0 && c.in_shape(0).known();
  if (!p.a && !array) return;
  const int64_t places = p.a ? *p.a : c.in_shape(0)[0];
  if (p.weighted && !p.a) c.set_in_shape(1, Shape{places});
  if (out.size() > 0 && places <= 0)
    throw ParamError({.input = "a", .expected = "at least one place", .given = std::to_string(places)});
  if (!p.replace && out.size() > places)
    throw ParamError({.input = "size",
                      .expected = "at most " + std::to_string(places) + " places",
                      .given = std::to_string(out.size()),
                      .because = "no place comes twice",
                      .fix = "pass replace=True"});
}

// Selects the indices with the smallest exponential numbers divided by the weights, in order (Efraimidis and Spirakis:
// Weighted random sampling with a reservoir, 2006).
void draw_distinct(const KernelArgs& args, const Temporary<double>& weights) {
  struct Candidate {
    double time;
    int64_t place;
    bool operator<(const Candidate& other) const { return time < other.time; }
  };
  Temporary<Candidate> candidates;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    kernels::ElementBits bits(args.rng, i);
    candidates.push_back({-std::log(bits.uniform_positive()) / weights[i], static_cast<int64_t>(i)});
  }
  const int64_t wanted = args.out[0].size();
  if (static_cast<int64_t>(candidates.size()) < wanted)
    throw ValueError({.input = "p",
                      .expected = "at least " + std::to_string(wanted) + " probabilities that are not 0",
                      .given = std::to_string(candidates.size())});
  std::partial_sort(candidates.begin(), candidates.begin() + wanted, candidates.end());
  Temporary<int64_t> places(static_cast<size_t>(wanted));
  for (size_t i = 0; i < places.size(); ++i) places[i] = candidates[i].place;
  device::copy_from_host(args.out[0].data, places.data(), wanted * static_cast<int64_t>(sizeof(int64_t)));
}

void run_choice(const ChoiceParams& p, const KernelArgs& args) {
  const int64_t places = p.a ? *p.a : args.in[0].size();
  Temporary<double> weights;
  if (p.weighted) {
    weights = as_doubles(args.in.back());
    require_probabilities(weights, "p");
  }
  if (!p.replace) return draw_distinct(args, p.weighted ? weights : Temporary<double>(static_cast<size_t>(places), 1));
  const Outcomes outcomes(weights);
  if (device::current()) {
    const DeviceTable<double> sums(outcomes.sums());
    const device::ChoiceArguments drawn{.out = args.out[0].as<int64_t>(),
                                        .n = args.out[0].size(),
                                        .places = places,
                                        .sums = p.weighted ? sums.data() : nullptr,
                                        .seed = args.rng.seed,
                                        .stream = args.rng.stream};
    return on_device::launch("draw.cuh", "ChoiceArguments", "choose", drawn.n, drawn);
  }
  parallel_for(args.out[0].size(), 20.0, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double u = kernels::ElementBits(args.rng, static_cast<uint64_t>(i)).uniform();
      args.out[0].as<int64_t>()[i] =
          p.weighted ? outcomes.at(u) : static_cast<int64_t>(u * static_cast<double>(places));
    }
  });
}

// ------------------------------------------------------------------------------------------- multinomial
struct MultinomialParams {
  int64_t n;
  std::vector<double> pvals;
  std::optional<Tuple> size;
  static void describe(ParamSchema<MultinomialParams>& schema) {
    schema.field("n", &MultinomialParams::n).at_least(0).doc("Number of experiments.");
    schema.field("pvals", &MultinomialParams::pvals)
        .default_value(AttrValue::List{})
        .doc(
            "Probabilities of the outcomes; the last outcome gets the remainder to 1. Empty: the probabilities are an "
            "input array.");
    schema.field("size", &MultinomialParams::size).none_by_default().doc("Shape of independent repetitions.");
  }
};

void infer_counts(const MultinomialParams& p, InferContext& c) {
  c.set_out_dtype(0, DType::kInt64);
  if (p.pvals.empty() && c.in_shape(0).rank_known() && c.in_shape(0).ndim() != 1)
    throw ShapeError({.input = "a", .expected = "one axis: probabilities", .given = c.in_shape(0).str()});
  if (p.pvals.empty() && !c.in_shape(0).known()) return;
  Shape out = p.size.value_or(Tuple::scalar());
  out.push_back(!p.pvals.empty() ? static_cast<int64_t>(p.pvals.size()) : c.in_shape(0)[0]);
  c.set_out_shape(0, out);
}

Temporary<double> probabilities(const MultinomialParams& p, const KernelArgs& args) {
  constexpr double kRounding = 1e-5;  // rounding error of a sum of float32 probabilities that should be 1
  Temporary<double> pvals =
      p.pvals.empty() ? as_doubles(args.in[0]) : Temporary<double>(p.pvals.begin(), p.pvals.end());
  if (pvals.empty()) return pvals;
  require_probabilities(pvals, "pvals");
  const double others = std::accumulate(pvals.begin(), pvals.end() - 1, 0.0);
  if (others > 1 + kRounding)
    throw ValueError({.input = "pvals", .expected = "a sum of at most 1", .given = AttrValue(others).str()});
  pvals.back() = std::max(1 - others, 0.0);
  return pvals;
}

// Draws the count of one outcome after the other, from the experiments without an outcome so far.
void draw_counts(kernels::ElementBits& bits, int64_t n, const Temporary<double>& pvals,
                 const Temporary<double>& sums_from_here, int64_t* counts) {
  for (size_t k = 0; k < pvals.size(); ++k) {
    counts[k] = n > 0 && pvals[k] > 0 ? draw_binomial(bits, n, pvals[k] / sums_from_here[k]) : 0;
    n -= counts[k];
  }
}

void run_counts(const MultinomialParams& p, const KernelArgs& args) {
  const Temporary<double> pvals = probabilities(p, args);
  const auto kinds = static_cast<int64_t>(pvals.size());
  if (kinds == 0) return;
  Temporary<double> sums_from_here(pvals.size());
  std::partial_sum(pvals.rbegin(), pvals.rend(), sums_from_here.rbegin());
  if (device::current()) {
    const DeviceTable<double> probabilities(pvals), sums(sums_from_here);
    const device::ChoiceArguments drawn{.out = args.out[0].as<int64_t>(),
                                        .n = args.out[0].size() / kinds,
                                        .places = kinds,
                                        .probabilities = probabilities.data(),
                                        .sums = sums.data(),
                                        .experiments = p.n,
                                        .seed = args.rng.seed,
                                        .stream = args.rng.stream};
    return on_device::launch("draw.cuh", "ChoiceArguments", "count_outcomes", drawn.n, drawn);
  }
  parallel_for(args.out[0].size() / kinds, 500.0 * static_cast<double>(kinds), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      kernels::ElementBits bits(args.rng, static_cast<uint64_t>(i));
      draw_counts(bits, p.n, pvals, sums_from_here, args.out[0].as<int64_t>() + i * kinds);
    }
  });
}

}  // namespace

void register_numpy_random_choices(OpRegistry& ops) {
  ops.declare<ChoiceParams>("_npi_choice")
      .doc("Random indices from a range: uniformly distributed, or with given probabilities.")
      .optional_input("input1", "the array whose indices are drawn, if a is None; else the probabilities")
      .optional_input("input2", "the probabilities, if both are given")
      .num_inputs([](const ChoiceParams& p) { return p.arrays(); })
      .output("out", "int64")
      .infer(infer_choice)
      .cpu(run_choice)
      .any_device()
      .waits_on_gpu()
      .may_raise()
      .random()
      .gradient(kNotDifferentiable)
      .sample(std::vector<Shape>{}, {{"a", "5"}, {"size", "(2, 3)"}})
      .sample({Shape{4}}, {{"size", "(3,)"}, {"replace", "False"}})
      .sample({Shape{4}}, {{"a", "4"}, {"size", "(3,)"}, {"weighted", "True"}}, 0.1, 0.9);
  ops.declare<MultinomialParams>("_npi_multinomial")
      .doc("Number of times that every outcome occurs in n independent experiments.")
      .optional_input("a", "probabilities of the outcomes, one axis")
      .num_inputs([](const MultinomialParams& p) { return int{p.pvals.empty()}; })
      .output("out", "int64: size, then one number per outcome; these sum to n")
      .infer(infer_counts)
      .cpu(run_counts)
      .any_device()
      .waits_on_gpu()
      .may_raise()
      .random()
      .cost([](const MultinomialParams& p, auto, auto out) {
        return 300.0 + static_cast<double>(out[0].shape.size()) * static_cast<double>(p.n) * 20.0;
      })
      .gradient(kNotDifferentiable)
      .sample(std::vector<Shape>{}, {{"n", "6"}, {"pvals", "(0.2, 0.3, 0.5)"}, {"size", "(2,)"}})
      .sample({Shape{3}}, {{"n", "6"}}, 0.1, 0.3);
}

}  // namespace hybridnet::ops
