#include "op/agreement.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <string_view>

#include "device/library_call.h"
#include "hybridnet/env.h"
#include "op/pointwise_program.h"

namespace hybridnet {
namespace {

using Kind = Agreement::Kind;

// Elementwise operators that call the mathematical library for some dtype, argument or parameter.
constexpr std::string_view kOfMathLibrary[] = {"Activation",
                                               "LeakyReLU",
                                               "_backward_gelu",
                                               "_broadcast_arctan2",
                                               "_polygamma",
                                               "_power",
                                               "_power_scalar",
                                               "_rpower_scalar",
                                               "broadcast_power",
                                               "cbrt",
                                               "cos",
                                               "erf",
                                               "erfinv",
                                               "gamma",
                                               "gammaln",
                                               "rcbrt",
                                               "sin",
                                               "tan"};
constexpr std::string_view kDrawnAgain[] = {"gamma", "poisson", "binomial"};

bool calls_math_library(const Op& op) {
  return std::find(std::begin(kOfMathLibrary), std::end(kOfMathLibrary), op.name) != std::end(kOfMathLibrary);
}

bool may_draw_again(const Op& op) {
  return op.random && std::any_of(std::begin(kDrawnAgain), std::end(kDrawnAgain),
                                  [&](std::string_view part) { return op.name.find(part) != std::string::npos; });
}

bool only_moves(const Op& op, const LinkContext& c) { return op.flops(c.params, c.in, c.out) == 0.0; }

// A chain in which a difference of some ulp may grow agrees within rounding.
Kind kind_of_chain(const PointwiseProgram& program) {
  const bool exact = std::none_of(program.steps.begin(), program.steps.end(),
                                  [](const PointwiseProgram::Step& step) { return calls_math_library(*step.op); });
  return exact ? Kind::kSameBits : Kind::kRounding;
}

// The same bits need a CPU that multiplies and adds with one rounding (docs/numerics.md).
bool cpu_rounds_once() {
#if defined(__x86_64__)
  return max_isa_at_load() != kIsaWords[0] && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

Kind kind_of(const Op& op, const LinkContext& c) {
  static const bool rounds_once = cpu_rounds_once();
  if (may_draw_again(op)) return Kind::kRedrawn;
  if (op.name == "_fused_elementwise" && rounds_once)
    return kind_of_chain(*static_cast<const PointwiseProgram*>(c.params));
  if (only_moves(op, c)) return Kind::kSameBits;
  if (op.pointwise == nullptr || !rounds_once) return Kind::kRounding;
  return calls_math_library(op) ? Kind::kFewUlps : Kind::kSameBits;
}

// One rounding of a half, some of a wider type: float32 is summed in float64 except in products.
double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 1e-13;
    case DType::kFloat16:
      return 2e-3;
    case DType::kBFloat16:
      return 1.6e-2;
    default:
      return 2e-6;
  }
}

// The terms of each sum of a product. If that is not known, there are at most as many as an input has elements.
double terms_of_product(const Op& op, const LinkContext& c) {
  if (const std::optional<double> flops = op.flops(c.params, c.in, c.out))
    return *flops / 2 / static_cast<double>(std::max<int64_t>(1, c.out[0].shape.size()));
  int64_t most = 1;
  for (const TensorSpec& spec : c.in) most = std::max(most, spec.shape.size());
  return static_cast<double>(most);
}

// The errors of a sum of n rounded terms grow like the root of n: libraries for the CPU sum float32 in float32.
double growth_of_products(const Op& op, const LinkContext& c) {
  return op.heavy && !c.out.empty() ? std::max(1.0, std::sqrt(terms_of_product(op, c)) / 16) : 1.0;
}

template <typename T>
double step_beside(T value) {
  constexpr double kEpsilon = std::is_same_v<T, float16>    ? 0x1p-10
                              : std::is_same_v<T, bfloat16> ? 0x1p-7
                              : std::is_same_v<T, float>    ? 0x1p-23
                                                            : 0x1p-52;
  constexpr double kSmallest = std::is_same_v<T, float16> ? 0x1p-14 : std::is_same_v<T, double> ? 0x1p-1022 : 0x1p-126;
  return kEpsilon * std::max(std::abs(static_cast<double>(value)), kSmallest);
}

template <typename T>
bool agree(T found, T expected, const Agreement& agreement, double largest) {
  const auto a = static_cast<double>(found), b = static_cast<double>(expected);
  if (a == 0 && b == 0 && agreement.kind == Kind::kSameBits) return std::signbit(a) == std::signbit(b);
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  if (!std::isfinite(a) || !std::isfinite(b) || agreement.kind == Kind::kSameBits) return false;
  const double allowed = agreement.kind == Kind::kRounding ? agreement.share() * largest : 4 * step_beside(expected);
  return std::abs(a - b) <= allowed;
}

template <typename T>
std::string number_text(T value) {
  if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else {
    char text[40];
    std::snprintf(text, sizeof(text), "%.*g", std::is_same_v<T, double> ? 17 : 9, static_cast<double>(value));
    return text;
  }
}

template <typename T>
std::optional<Difference> first_of_type(const TensorRef& found, const TensorRef& expected, const Agreement& agreement,
                                        double largest) {
  const T *a = found.as<T>(), *b = expected.as<T>();
  int64_t tolerated = agreement.kind == Kind::kRedrawn ? 1 + expected.size() / 1000 : 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const bool same = is_floating(expected.dtype) ? agree(a[i], b[i], agreement, largest) : a[i] == b[i];
    if (!same && tolerated-- <= 0) return Difference{i, number_text(a[i]), number_text(b[i])};
  }
  return std::nullopt;
}

}  // namespace

double Agreement::share() const {
  return is_product && device::reduces(DType::kFloat32) ? std::max(tolerance, 0x1p-9) : tolerance;
}

std::string Agreement::text() const {
  switch (kind) {
    case Kind::kSameBits:
      return "the same bits";
    case Kind::kFewUlps:
      return "values within 4 units in the last place";
    case Kind::kRedrawn:
      return "values within 4 units in the last place, but for one of 1000 numbers";
    case Kind::kRounding:
      break;
  }
  char text[64];
  std::snprintf(text, sizeof(text), "values within %.2g of the largest magnitude", share());
  return text;
}

Agreement agreement_of(const Op& op, const LinkContext& c, DType dtype) {
  const Kind kind = kind_of(op, c);
  if (!is_floating(dtype)) return {.kind = kind == Kind::kRedrawn ? kind : Kind::kSameBits};
  if (kind != Kind::kRounding) return {.kind = kind};
  return {.kind = kind, .tolerance = tolerance_of(dtype) * growth_of_products(op, c), .is_product = op.heavy};
}

double largest_magnitude(const TensorRef& tensor) {
  if (!is_floating(tensor.dtype)) return 0;
  return dispatch_floating(tensor.dtype, [&](auto zero) {
    const auto* values = tensor.as<decltype(zero)>();
    double largest = 0;
    for (int64_t i = 0; i < tensor.size(); ++i)
      if (const double value = std::abs(static_cast<double>(values[i])); std::isfinite(value))
        largest = std::max(largest, value);
    return largest;
  });
}

double largest_change(const TensorRef& from, const TensorRef& to) {
  if (!is_floating(from.dtype)) return 0;
  return dispatch_floating(from.dtype, [&](auto zero) {
    const auto *a = from.as<decltype(zero)>(), *b = to.as<decltype(zero)>();
    double largest = 0;
    for (int64_t i = 0; i < from.size(); ++i)
      if (const double change = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])); std::isfinite(change))
        largest = std::max(largest, change);
    return largest;
  });
}

std::optional<Difference> first_difference(const TensorRef& found, const TensorRef& expected,
                                           const Agreement& agreement, double largest) {
  return dispatch_dtype(expected.dtype,
                        [&](auto zero) { return first_of_type<decltype(zero)>(found, expected, agreement, largest); });
}

}  // namespace hybridnet
