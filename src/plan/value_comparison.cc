#include "plan/value_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "base/hash.h"
#include "graph/control/control_flow.h"
#include "passes/gradient/gradient.h"
#include "plan/compilation.h"
#include "plan/plan.h"

namespace hybridnet {
namespace {

using Bytes = std::vector<char>;

// Outputs are compared as if they were at least this large, relative to the largest output: much smaller values may be
// the rounding noise of terms that cancel, such as the gradient of a bias in front of BatchNorm, whose terms are no
// output.
constexpr double kSmallestShare = 0.1;

// The tolerance relative to the largest value of an output, for sums in another order and other kernels for the same
// sum.
double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 1e-9;
    case DType::kFloat32:
      return 1e-4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 3e-2;
    default:
      return 0;
  }
}

float half_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31)
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  return sign * (exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                               : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25));
}

double element(const Bytes& bytes, DType dtype, size_t i) {
  const auto read = [&](auto zero) {
    std::memcpy(&zero, bytes.data() + i * sizeof(zero), sizeof(zero));
    return zero;
  };
  switch (dtype) {
    case DType::kFloat64:
      return read(double{});
    case DType::kFloat32:
      return read(float{});
    case DType::kFloat16:
      return half_value(read(uint16_t{}));
    case DType::kBFloat16: {
      const uint32_t bits = static_cast<uint32_t>(read(uint16_t{})) << 16;
      float value;
      std::memcpy(&value, &bits, sizeof(value));
      return value;
    }
    case DType::kInt64:
      return static_cast<double>(read(int64_t{}));
    case DType::kInt32:
      return read(int32_t{});
    case DType::kInt8:
      return read(int8_t{});
    default:
      return static_cast<double>(read(uint8_t{}));
  }
}

// Floating values between -1 and 1; integers 0 and 1, which are valid indices nearly everywhere.
Bytes random_values(const TensorSpec& spec, uint64_t seed) {
  Bytes bytes(static_cast<size_t>(spec.bytes()));
  const auto size = static_cast<size_t>(spec.shape.size());
  for (size_t i = 0; i < size; ++i) {
    const uint64_t bits = splitmix64(seed * 0x10001 + i);
    const double value = static_cast<double>(bits >> 11) * 0x1p-52 - 1;
    const auto write = [&](auto number) { std::memcpy(bytes.data() + i * sizeof(number), &number, sizeof(number)); };
    switch (spec.dtype) {
      case DType::kFloat64:
        write(value);
        break;
      case DType::kFloat32:
        write(static_cast<float>(value));
        break;
      case DType::kFloat16:  // between 1 and 2 in size: the exponent of 1, any fraction and sign
        write(static_cast<uint16_t>(0x3c00 | (bits & 0x83ff)));
        break;
      case DType::kBFloat16:
        write(static_cast<uint16_t>(0x3f80 | (bits & 0x807f)));
        break;
      case DType::kInt64:
        write(static_cast<int64_t>(bits & 1));
        break;
      case DType::kInt32:
        write(static_cast<int32_t>(bits & 1));
        break;
      default:
        write(static_cast<uint8_t>(bits & 1));
    }
  }
  return bytes;
}

class GraphWatch final : public RewriteObserver::Watch {
 public:
  GraphWatch(const Graph& graph, std::vector<Bytes> inputs)
      : graph_(graph), inputs_(std::move(inputs)), before_(run()) {
    for (size_t i = 0; i < before_.size(); ++i)
      if (is_floating(graph_.spec(result(i)).dtype)) largest_ = std::max(largest_, largest_value(i));
  }

  void changed(const Rewrite& rewrite) override {
    std::vector<Bytes> now = run();
    for (size_t i = 0; i < now.size(); ++i) compare(rewrite, i, now[i]);
    before_ = std::move(now);
  }

 private:
  double largest_value(size_t number) const {
    const DType dtype = graph_.spec(result(number)).dtype;
    const auto size = static_cast<size_t>(graph_.spec(result(number)).shape.size());
    double largest = 0;
    for (size_t i = 0; i < size; ++i)
      if (const double value = std::abs(element(before_[number], dtype, i)); std::isfinite(value))
        largest = std::max(largest, value);
    return largest;
  }

  NodeEntry result(size_t number) const {
    const size_t outputs = graph_.outputs().size();
    return number < outputs ? graph_.outputs()[number] : graph_.writebacks()[number - outputs].value;
  }

  std::vector<Bytes> run() const {
    const PipelineScope scope({.query = Query::parse("none")});  // bodies run as they are
    Graph copy = copy_of(graph_, true);
    expand_gradient_nodes(copy);
    Plan::Options options;
    options.name = "debug";
    const Ref<Plan> plan = Plan::compile(copy, options);
    std::vector<Plan::InputBinding> inputs;
    for (const Bytes& bytes : inputs_) inputs.push_back({const_cast<char*>(bytes.data()), nullptr});
    std::vector<Bytes> fresh;
    std::vector<void*> places;
    for (const TensorSpec& spec : plan->fresh_outputs()) {
      fresh.emplace_back(static_cast<size_t>(spec.bytes()));
      places.push_back(fresh.back().data());
    }
    plan->run({.inputs = inputs, .outputs = places, .residuals = nullptr, .rng = {7, 11}, .prepared = {}});
    std::vector<Bytes> results;
    for (const Plan::OutputInfo& output : plan->outputs()) results.push_back(fresh[static_cast<size_t>(output.fresh)]);
    return results;
  }

  // Values in between may be rounded to 16 bits in mixed precision, and stay in registers after a fusion.
  bool has_halves() const {
    const std::vector<Node*> nodes = graph_.order();
    return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) {
      return std::any_of(node->specs.begin(), node->specs.end(), [](const TensorSpec& s) { return is_half(s.dtype); });
    });
  }

  void compare(const Rewrite& rewrite, size_t number, const Bytes& now) const {
    const Bytes& before = before_[number];
    const NodeEntry entry = result(number);
    const DType dtype = graph_.spec(entry).dtype;
    const auto size = static_cast<size_t>(graph_.spec(entry).shape.size());
    // Gradients that are formed after a rewrite may round differently, though the values have the same bits.
    const bool exact = rewrite.exactness == Exactness::kBitwise && !has_gradient_nodes(graph_);
    if (now.size() == before.size() && std::equal(now.begin(), now.end(), before.begin())) return;
    const double largest = std::max(largest_value(number), kSmallestShare * largest_);
    const double tolerance = has_halves() && is_floating(dtype) ? tolerance_of(DType::kBFloat16) : tolerance_of(dtype);
    for (size_t i = 0; i < size; ++i) {
      const double a = element(before, dtype, i), b = element(now, dtype, i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      if (!exact && std::abs(a - b) <= tolerance * largest) continue;
      throw Error(ErrorKind::kError,
                  {.node = entry.node->name,
                   .message = "it changed element " + std::to_string(i) + " of output " + std::to_string(number) +
                              " from " + std::to_string(a) + " to " + std::to_string(b),
                   .because = exact ? "it promises the same bits" : "it promises to differ by rounding only",
                   .fix = "leave it out with passes='fast_run,-" + rewrite.name + "' and report it"});
    }
  }

  const Graph& graph_;
  const std::vector<Bytes> inputs_;
  std::vector<Bytes> before_;
  double largest_ = 0;  // the largest value of all floating outputs
};

}  // namespace

std::unique_ptr<RewriteObserver::Watch> ValueComparison::watch(const Graph& graph) {
  for (const Node* node : graph.order())
    if (!node->is_variable() && is_opaque(*node)) return nullptr;
  std::vector<Bytes> values;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Node& input = *graph.inputs()[i];
    const bool given =
        i < samples_.size() && samples_[i] && inputs_[i]->name == input.name && samples_[i].spec() == input.specs[0];
    if (given) {
      const char* data = static_cast<const char*>(samples_[i].data());
      values.emplace_back(data, data + input.specs[0].bytes());
    } else {
      values.push_back(random_values(input.specs[0], i + 1));
    }
  }
  return std::make_unique<GraphWatch>(graph, std::move(values));
}

}  // namespace hybridnet
