// Every rule of the pipeline keeps values: its example, and further graphs of its kind, run before and after the rule
// with inputs of every dtype that inference accepts, also for sizes of zero and arrays without axes. Integers keep
// their bits, floats are as exact as the class of the rule promises. A rule without a graph fails here.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include "passes/attributes.h"
#include "passes/control/size_questions.h"
#include "passes/gradient/gradient.h"
#include "passes/gradient/remat.h"
#include "passes/rule_examples.h"
#include "passes/rule_graphs.h"
#include "plan/compilation.h"

namespace hybridnet::graph_testing {
namespace {

using Bytes = std::vector<char>;

constexpr DType kDTypes[] = {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kInt8,
                             DType::kUInt8,   DType::kInt32,    DType::kInt64,   DType::kBool};

// ---- values

template <typename T>
T at(const Bytes& bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

double number(const Bytes& bytes, DType dtype, size_t i) {
  switch (dtype) {
    case DType::kFloat64:
      return at<double>(bytes, i);
    case DType::kFloat32:
      return at<float>(bytes, i);
    case DType::kBFloat16:
      return static_cast<float>(at<bfloat16>(bytes, i));
    case DType::kFloat16:
      return static_cast<float>(at<float16>(bytes, i));
    case DType::kInt64:
      return static_cast<double>(at<int64_t>(bytes, i));
    case DType::kInt32:
      return at<int32_t>(bytes, i);
    case DType::kInt8:
      return at<int8_t>(bytes, i);
    default:
      return at<uint8_t>(bytes, i);
  }
}

template <typename T>
std::vector<double> integers() {
  return {static_cast<double>(std::numeric_limits<T>::lowest()),
          3,
          0,
          -7,
          1,
          static_cast<double>(std::numeric_limits<T>::max()),
          -1,
          2,
          100,
          -2,
          -100,
          static_cast<double>(std::numeric_limits<T>::max() / 2)};
}

enum class Kind { kUsual, kExtreme, kSmall };

// The values that an input repeats in turn.
std::vector<double> values_of(DType dtype, Kind kind) {
  if (kind == Kind::kSmall && dtype == DType::kInt8) return {1, 0, -1, 2, -3};
  if (dtype == DType::kInt8) return integers<int8_t>();
  if (dtype == DType::kInt32) return integers<int32_t>();
  if (dtype == DType::kInt64) return integers<int64_t>();
  if (dtype == DType::kUInt8) return {0, 255, 1, 2, 200, 3, 7, 100, 128, 127};
  if (dtype == DType::kBool) return {1, 0, 0, 1, 1};
  if (kind != Kind::kExtreme) return {0.75, -1.5, 2, 0.125, -0.625, 1, 1.25, -2, 0.5, -0.25, 1.75};
  const bool is_half = dtype == DType::kFloat16;
  return {0.0, 1, INFINITY, -2.5, NAN, is_half ? 65504 : 3e38, -0.0, -INFINITY, 0.5, is_half ? 1e-4 : 1e-38, -1, 300};
}

Bytes make_input(const TensorSpec& spec, Kind kind, size_t seed) {
  const std::vector<double> values = values_of(spec.dtype, kind);
  Bytes bytes(static_cast<size_t>(spec.bytes()));
  const auto size = static_cast<size_t>(spec.shape.size());
  for (size_t i = 0; i < size; ++i) {
    const double value = values[(seed * 3 + i) % values.size()];
    const auto write = [&](auto x) { std::memcpy(bytes.data() + i * sizeof(x), &x, sizeof(x)); };
    switch (spec.dtype) {
      case DType::kFloat64:
        write(value);
        break;
      case DType::kFloat32:
        write(static_cast<float>(value));
        break;
      case DType::kFloat16:
        write(float16(static_cast<float>(value)));
        break;
      case DType::kBFloat16:
        write(bfloat16(static_cast<float>(value)));
        break;
      case DType::kInt64:
        write(value >= 0x1p63 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(value));
        break;
      case DType::kInt32:
        write(static_cast<int32_t>(value));
        break;
      case DType::kInt8:
        write(static_cast<int8_t>(value));
        break;
      default:
        write(static_cast<uint8_t>(value));
    }
  }
  return bytes;
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 1e-9;
    case DType::kFloat32:
      return 2e-5;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 3e-2;
    default:
      return 0;
  }
}

// ---- graphs

// The same graph on inputs of other specs; nothing if an operator refuses them. Operators without inputs make `dtype`
// in place of float32.
std::optional<Graph> on_inputs(const Graph& graph, const std::vector<TensorSpec>& specs, DType dtype) {
  Graph made(graph.train());
  EntryMap map;
  for (size_t i = 0; i < specs.size(); ++i) {
    const NodePtr input = made.add_input(graph.inputs()[i]->name, specs[i]);
    input->attrs = graph.inputs()[i]->attrs;
    map[{graph.inputs()[i], 0}] = {input, 0};
  }
  try {
    for (Node* node : graph.order()) {
      if (node->is_variable()) {
        if (graph.input_index(node) < 0) return std::nullopt;
        continue;
      }
      std::vector<NodeEntry> inputs;
      for (const NodeEntry& input : node->inputs) inputs.push_back(map.at(input));
      ParamsPtr params = node->params;
      if (inputs.empty() && passes::text_attribute(*node, "dtype") == "float32")
        params = passes::make_params(*node->op, node, {{"dtype", std::string(dtype_name(dtype))}});
      const NodePtr copy = made.add(*node->op, params, std::move(inputs), node, node->subgraphs);
      copy->attrs = node->attrs;
      for (uint32_t i = 0; i < copy->specs.size(); ++i) map[{NodePtr(node), i}] = {copy, i};
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  for (const NodeEntry& output : graph.outputs()) made.add_output(map.at(output));
  return made;
}

using Outputs = std::vector<std::pair<TensorSpec, Bytes>>;

Outputs run(const Graph& graph, const std::vector<Bytes>& values) {
  const PipelineScope scope({.query = Query::parse("none")});
  Graph copy = copy_of(graph, true);
  expand_gradient_nodes(copy);
  run_rewrite(copy, current_pipeline()->at("expand_composed"));  // there is no plan without it
  const Ref<Plan> plan = Plan::compile(copy, {});
  std::vector<Plan::InputBinding> inputs;
  for (const Bytes& bytes : values) inputs.push_back({const_cast<char*>(bytes.data()), nullptr});
  std::vector<Bytes> fresh;
  std::vector<void*> places;
  for (const TensorSpec& spec : plan->fresh_outputs()) {
    fresh.emplace_back(static_cast<size_t>(spec.bytes()));
    places.push_back(fresh.back().data());
  }
  plan->run({.inputs = inputs, .outputs = places, .residuals = nullptr, .rng = {7, 11}, .prepared = {}});
  Outputs results;
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    results.emplace_back(graph.spec(graph.outputs()[i]), fresh[static_cast<size_t>(plan->outputs()[i].fresh)]);
  return results;
}

// Describes the first difference; empty if there is none. Zeros of both signs are equal, and so are all NaN.
// least: the tolerance of rules that round values in between to 16 bits.
std::string difference(const Outputs& before, const Outputs& after, bool exact, double least) {
  for (size_t o = 0; o < before.size(); ++o) {
    const auto& [spec, old] = before[o];
    const auto& [now_spec, now] = after[o];
    if (!(spec == now_spec)) return "output " + std::to_string(o) + " became " + now_spec.str();
    if (old == now) continue;
    double largest = 1;
    const auto size = static_cast<size_t>(spec.shape.size());
    for (size_t i = 0; i < size; ++i)
      if (const double x = std::abs(number(old, spec.dtype, i)); std::isfinite(x)) largest = std::max(largest, x);
    for (size_t i = 0; i < size; ++i) {
      const double a = number(old, spec.dtype, i), b = number(now, spec.dtype, i);
      const bool same = is_floating(spec.dtype)
                            ? a == b || (std::isnan(a) && std::isnan(b))
                            : std::memcmp(old.data() + i * dtype_size(spec.dtype),
                                          now.data() + i * dtype_size(spec.dtype), dtype_size(spec.dtype)) == 0;
      if (same || (!exact && std::abs(a - b) <= std::max(tolerance_of(spec.dtype), least) * largest)) continue;
      return "element " + std::to_string(i) + " of output " + std::to_string(o) + " (" + spec.str() +
             "): " + std::to_string(a) + " became " + std::to_string(b);
    }
  }
  return "";
}

// ---- attempts

using Make = std::function<Graph()>;

// Forms of a rule that its example does not show.
std::multimap<std::string, Make> further_graphs() {
  std::multimap<std::string, Make> all;
  const auto add = [&](const char* rule, std::function<NodeEntry(const NodeEntry&)> make,
                       const TensorSpec& spec = kVector) {
    all.emplace(rule, [make = std::move(make), spec] { return of_x(make, spec); });
  };
  const auto scalar = [&](const char* rule, const char* op, const char* number) {
    add(rule, [op, number](auto& x) { return use("tanh", {use(op, {x}, {{"scalar", number}})}); });
    add(rule, [op, number](auto& x) { return use("negative", {use(op, {x}, {{"scalar", number}})}); });
  };
  for (const auto& [op, number] : {std::pair{"_plus_scalar", "0"},
                                   {"_minus_scalar", "0"},
                                   {"_mul_scalar", "1"},
                                   {"_div_scalar", "1"},
                                   {"_power_scalar", "1"}})
    scalar("neutral_scalar", op, number);
  for (const char* op : {"elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "broadcast_add",
                         "broadcast_sub", "broadcast_mul", "broadcast_div"})
    for (const char* fill : {"zeros_like", "ones_like"})
      for (const bool left : {false, true})
        add("neutral_term", [=](auto& x) {
          const NodeEntry filled = use(fill, {x});
          return use("negative", {use(op, left ? std::vector{filled, x} : std::vector{x, filled})});
        });
  for (const char* op : {"broadcast_add", "broadcast_mul"})
    for (const char* fill : {"_zeros", "_ones"})
      add("neutral_term", [=](auto& x) { return use("negative", {use(op, {x, use(fill, {}, {{"shape", "(4,)"}})})}); });
  add("opposite", [](auto& x) { return use("negative", {use("negative", {x})}); });
  add("opposite", [](auto& x) { return use("tanh", {scaled(x, "-1")}); });
  for (const char* exponent : {"2", "3", "-1"}) add("small_power", [=](auto& x) { return power(x, exponent); });
  add("square_of_self", [](auto& x) { return use("broadcast_mul", {x, x}); });
  for (const char* op : {"elemwise_sub", "broadcast_sub", "elemwise_div", "broadcast_div"})
    for (const char* rule : {"absorb_integers", "absorb"}) add(rule, [=](auto& x) { return use(op, {x, x}); });
  for (const char* rule : {"absorb_integers", "absorb"}) {
    add(rule, [](auto& x) { return scaled(x, "0"); });
    add(rule, [](auto& x) { return use("_rdiv_scalar", {x}, {{"scalar", "0"}}); });
    for (const char* op : {"elemwise_mul", "broadcast_mul", "elemwise_div"})
      add(rule, [=](auto& x) { return use(op, {use("zeros_like", {x}), x}); });
  }
  add("reciprocal", [](auto& x) { return use("tanh", {use("_rdiv_scalar", {x}, {{"scalar", "1"}})}); });
  add("reciprocal_root", [](auto& x) { return use("reciprocal", {use("sqrt", {use("abs", {x})})}); });
  for (const char* a : {"3", "0.5", "-2"})
    for (const char* b : {"7", "2", "0.25"}) {
      add("join_factors", [=](auto& x) { return use("_div_scalar", {scaled(x, a)}, {{"scalar", b}}); });
      add("join_factors", [=](auto& x) { return scaled(use("_div_scalar", {x}, {{"scalar", b}}), a); });
    }
  add("cancel_factors", [](auto& x) { return use("elemwise_mul", {use("elemwise_div", {use("tanh", {x}), x}), x}); });
  const auto opposite_probability = [](const NodeEntry& p) { return use("_rminus_scalar", {p}, {{"scalar", "1"}}); };
  add("log_sigmoid", [=](auto& x) { return use("log", {opposite_probability(use("sigmoid", {x}))}); });
  add("softplus", [](auto& x) { return use("log1p", {use("exp", {x})}); });
  add("log1p", [](auto& x) { return use("log", {use("_minus_scalar", {use("square", {x})}, {{"scalar", "-1"}})}); });
  add("expm1", [](auto& x) { return use("_minus_scalar", {use("exp", {x})}, {{"scalar", "1"}}); });
  for (const char* keepdims : {"True", "False"})
    for (const char* axis : {"0", "(1, 2)", "()"})
      add(
          "log_sum_exp",
          [=](auto& x) {
            return use("log", {use("sum", {use("exp", {x})}, {{"axis", axis}, {"keepdims", keepdims}})});
          },
          kRows);
  add(
      "softmax",
      [](auto& x) {
        const NodeEntry largest = use("max", {x}, {{"axis", "2"}, {"keepdims", "True"}});
        const NodeEntry e = use("exp", {use("broadcast_sub", {x, largest})});
        return use("broadcast_div", {e, use("sum", {e}, {{"axis", "2"}, {"keepdims", "True"}})});
      },
      kRows);
  add("silu", [](auto& x) { return use("broadcast_mul", {use("Activation", {x}, {{"act_type", "sigmoid"}}), x}); });
  for (const char* act : {"leaky", "elu", "selu", "gelu"})
    add("plain_leaky_relu", [=](auto& x) { return use("LeakyReLU", {x}, {{"act_type", act}}); });
  for (const DType by : kDTypes)
    for (const DType to : kDTypes)
      add("join_casts", [=](auto& x) { return cast_to(cast_to(x, dtype_name(by)), dtype_name(to)); });
  const std::vector<std::vector<const char*>> chains{{"negative", "abs", "square"},
                                                     {"sign", "negative"},
                                                     {"square", "square", "negative"},
                                                     {"floor", "ceil", "abs"},
                                                     {"relu", "negative", "relu"},
                                                     {"exp", "log", "tanh"},
                                                     {"round", "abs"},
                                                     {"sqrt", "square"}};
  for (const auto& chain : chains)
    add("fuse_elementwise", [=](auto& x) {
      NodeEntry e = x;
      for (const char* op : chain) e = use(op, {e});
      return e;
    });
  for (const char* op : {"_plus_scalar", "_minus_scalar", "_rminus_scalar", "_mul_scalar", "_div_scalar",
                         "_rdiv_scalar", "_mod_scalar", "_rmod_scalar", "_power_scalar", "_rpower_scalar",
                         "_maximum_scalar", "_minimum_scalar", "_equal_scalar", "_greater_scalar", "_lesser_scalar"})
    for (const char* number : {"3", "-2", "2.5", "0"})
      add("fuse_elementwise", [=](auto& x) { return use("negative", {use(op, {x}, {{"scalar", number}})}); });
  for (const char* op :
       {"elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "broadcast_mod", "broadcast_power",
        "broadcast_maximum", "broadcast_minimum", "broadcast_equal", "broadcast_lesser", "broadcast_logical_and"})
    all.emplace("fuse_elementwise", [=] {
      const NodeEntry x = var("x"), y = var("y");
      return make_graph({x, y}, {kVector, kVector}, {use("negative", {use(op, {use("negative", {x}), y})})});
    });
  for (const char* number : {"3", "0.125", "-2"})
    all.emplace("scaled_product", [=] {
      const NodeEntry a = var("a"), b = var("b");
      return make_graph({a, b}, {kWeight, kWeight}, {scaled(use("dot", {a, b}), number)});
    });
  return all;
}

// The number of graphs that a rule was tried on, and of those on which it fired.
struct Tried {
  int graphs = 0, fired = 0;
};

// Runs the rule on the graph and, if it fires, compares results for usual and extreme values.
void try_rule(const Rewrite& row, Graph rewritten, const std::string& inputs, Tried& tried) {
  ++tried.graphs;
  const Graph graph = copy_of(rewritten);
  {
    const RematScope training({.policy = {RematPolicy::Kind::kBytes, 0}, .is_cut = true});
    const SizeQuestionScope one_size(nullptr, GraphSizes::kFixed);
    if (!run_rewrite(rewritten, row)) return;
  }
  ++tried.fired;
  const bool exact = row.exactness == Exactness::kBitwise;
  // Quantized layers clip large sums at 127 between each other; one kernel for several layers does not.
  const bool has_byte_layers = row.name.find("quantize") != std::string::npos;
  std::vector<Kind> kinds{has_byte_layers ? Kind::kSmall : Kind::kUsual};
  if (exact) kinds.push_back(Kind::kExtreme);
  for (const Kind kind : kinds) {
    std::vector<Bytes> values;
    for (size_t i = 0; i < graph.inputs().size(); ++i)
      values.push_back(make_input(graph.inputs()[i]->specs[0], kind, i));
    std::optional<Outputs> before, after;
    std::string what;
    try {
      before = run(graph, values);
    } catch (const Error&) {
      return;  // an operator has no kernel for these dtypes
    }
    try {
      after = run(rewritten, values);
      what = difference(*before, *after, exact, row.has_tag("mixed_precision") ? 3e-2 : 0);
    } catch (const Error& error) {
      what = error.what();
    }
    EXPECT_EQ(what, "") << row.name << " changes values on " << inputs
                        << (kind == Kind::kExtreme ? ", extreme values" : "") << "\n"
                        << graph.text() << "became\n"
                        << rewritten.text();
  }
}

std::vector<TensorSpec> specs_of(const Graph& graph) {
  std::vector<TensorSpec> specs;
  for (const NodePtr& input : graph.inputs()) specs.push_back(input->specs[0]);
  return specs;
}

void try_specs(const Rewrite& row, const Graph& graph, const std::vector<TensorSpec>& specs, DType dtype,
               Tried& tried) {
  std::string inputs;
  for (const TensorSpec& spec : specs) inputs += spec.str() + " ";
  if (std::optional<Graph> other = on_inputs(graph, specs, dtype)) try_rule(row, std::move(*other), inputs, tried);
}

// Tries every dtype, and every pair of dtypes: one for the first input, the other for the rest.
void try_dtypes(const Rewrite& row, const Graph& graph, Tried& tried) {
  const std::vector<TensorSpec> given = specs_of(graph);
  for (const DType first : kDTypes)
    for (const DType rest : kDTypes) {
      if (given.size() < 2 && first != rest) continue;
      std::vector<TensorSpec> specs = given;
      for (size_t i = 0; i < specs.size(); ++i) specs[i].dtype = i == 0 ? first : rest;
      try_specs(row, graph, specs, first, tried);
    }
}

// Sets each size to zero in all inputs; also tries arrays without axes.
void try_sizes(const Rewrite& row, const Graph& graph, Tried& tried) {
  const std::vector<TensorSpec> given = specs_of(graph);
  std::set<int64_t> sizes;
  for (const TensorSpec& spec : given)
    for (const int64_t size : spec.shape.dims()) sizes.insert(size);
  for (const DType dtype : {DType::kFloat32, DType::kInt32}) {
    for (const int64_t size : sizes) {
      std::vector<TensorSpec> specs = given;
      for (TensorSpec& spec : specs) {
        spec.dtype = dtype;
        for (int i = 0; i < spec.shape.ndim(); ++i)
          if (spec.shape[i] == size) spec.shape[i] = 0;
      }
      try_specs(row, graph, specs, dtype, tried);
    }
    std::vector<TensorSpec> specs(given.size(), TensorSpec{Shape::scalar(), dtype});
    try_specs(row, graph, specs, dtype, tried);
  }
}

TEST(RuleValues, StayForEveryDtypeThatTheGraphTakes) {
  const std::multimap<std::string, Make> further = further_graphs();
  for (const Rewrite& row : current_pipeline()->rows()) {
    const RuleExample* example = example_of(row);
    ASSERT_NE(example, nullptr) << row.name << " has no graph: add one to rule_examples()";
    std::vector<Make> graphs{example->fires, example->must_not_fire};
    for (auto [at, end] = further.equal_range(row.name); at != end; ++at) graphs.push_back(at->second);
    Tried tried;
    for (const Make& make : graphs) {
      const Graph graph = make();
      try_rule(row, make(), "its own inputs", tried);
      try_dtypes(row, graph, tried);
      try_sizes(row, graph, tried);
    }
    EXPECT_GT(tried.fired, 0) << row.name << " fired on none of " << tried.graphs << " graphs";
  }
}

}  // namespace
}  // namespace hybridnet::graph_testing
