// Every rule of the pipeline fires on its example and does not fire on its counterexample. A rule without both fails
// here.
#include <iterator>
#include <limits>

#include "passes/control/size_questions.h"
#include "passes/gradient/remat.h"
#include "passes/rule_examples.h"
#include "passes/rule_graphs.h"
#include "plan/value_comparison.h"

namespace hybridnet::graph_testing {
namespace {

TEST(Rules, EachHasAGraphOnWhichItFires) {
  for (const Rewrite& row : current_pipeline()->rows()) {
    const RuleExample* example = example_of(row);
    ASSERT_NE(example, nullptr) << row.name << " has no example: add one to rule_examples()";
    Graph graph = example->fires();
    const std::string before = graph.text();
    const RematScope training({.policy = {RematPolicy::Kind::kBytes, 0}, .is_cut = true});
    const SizeQuestionScope one_size(nullptr, GraphSizes::kFixed);
    EXPECT_TRUE(run_rewrite(graph, row)) << row.name << " did not fire on\n" << before;
    graph.check();
  }
}

TEST(Rules, EachHasAGraphThatItMustLeave) {
  for (const Rewrite& row : current_pipeline()->rows()) {
    const RuleExample* example = example_of(row);
    ASSERT_NE(example, nullptr) << row.name << " has no example: add one to rule_examples()";
    Graph graph = example->must_not_fire();
    const std::string before = graph.text();
    const uint64_t structure = graph.fingerprint();
    const RematScope training({.policy = {RematPolicy::Kind::kBytes, 0}, .is_cut = true});
    EXPECT_FALSE(run_rewrite(graph, row)) << row.name << " fired on\n" << before;
    EXPECT_EQ(graph.fingerprint(), structure) << row.name << " changed\n" << before;
    graph.check();
  }
}

// `spec` filled with small numbers; every fifth element is one of `special`, chosen by the seed.
NDArray special_array(const TensorSpec& spec, const std::vector<float>& special, uint32_t seed) {
  NDArray array = random_array(spec.shape, seed);
  std::vector<float> values = values_of(array);
  for (size_t i = 0; i < values.size(); ++i)
    if ((i + seed) % 5 == 0) values[i] = special[(i / 5 + seed) % special.size()];
  array.copy_from(values.data());
  return array;
}

// Special inputs for the example of a rule. Rules with the tag "stable" change results that overflow: at most NaN in a
// whole row stays. The sum of one-hot rows multiplies elements by 0 that the pick in its place does not read.
std::vector<float> special_values_for(const Rewrite& row) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  if (row.name == "one_hot_pick") return {};
  if (row.tags.count("stable") != 0) return {kNan};
  // 1e30 overflows in float16; in bfloat16 its products overflow one by one, in float32 within the sum.
  if (row.has_tag("mixed_precision")) return {kNan, kInfinity, -kInfinity, -0.0f};
  return {kNan, kInfinity, -kInfinity, -0.0f, 1e-41f, 1e30f};
}

// Runs the whole example before and after the rule.
void expect_same_values(const Rewrite& row, const RuleExample& example, const std::vector<float>& special,
                        uint32_t seed) {
  Graph graph = example.fires();
  std::vector<NodePtr> inputs;
  std::vector<NDArray> samples;
  for (const NodePtr& input : graph.inputs()) {
    const TensorSpec& spec = input->specs[0];
    const bool takes = spec.dtype == DType::kFloat32 && spec.shape.size() > 0;
    inputs.push_back(input);
    samples.push_back(takes ? special_array(spec, special, seed + static_cast<uint32_t>(samples.size())) : NDArray());
  }
  ValueComparison comparison(inputs, samples);
  const RematScope training({.policy = {RematPolicy::Kind::kBytes, 0}, .is_cut = true});
  try {
    const std::unique_ptr<RewriteObserver::Watch> watch = comparison.watch(graph);
    run_rewrite(graph, row);
    if (watch) watch->changed(row);
  } catch (const Error& error) {
    ADD_FAILURE() << row.name << ", seed " << seed << ": " << error.what() << "\n" << graph.text();
  }
}

// NaN and infinities stay in place (docs/numerics.md).
TEST(Rules, EachKeepsNanAndInfinities) {
  for (const Rewrite& row : current_pipeline()->rows()) {
    if (row.exactness == Exactness::kUnsafe) continue;
    if (row.name == "expand_composed") continue;  // nothing runs before it
    const RuleExample* example = example_of(row);
    ASSERT_NE(example, nullptr) << row.name << " has no example: add one to rule_examples()";
    const std::vector<float> special = special_values_for(row);
    for (uint32_t seed = 0; seed < 6 && !special.empty(); ++seed) expect_same_values(row, *example, special, seed);
  }
}

int64_t count_of(const Graph& graph, std::string_view op) {
  const std::vector<Node*> nodes = graph.order();
  return std::count_if(nodes.begin(), nodes.end(), [&](const Node* n) { return n->op && n->op->name == op; });
}

TEST(Rules, ShapesAndSizesAreConstantsInOneSizeOnly) {
  for (const char* name : {"constant_shape", "constant_sizes"}) {
    const Rewrite& row = current_pipeline()->at(name);
    for (const GraphSizes sizes : {GraphSizes::kMayVary, GraphSizes::kFixed}) {
      Graph graph = rule_examples().at(name).fires();
      SizeQuestions questions;
      const SizeQuestionScope asked(&questions, sizes);
      EXPECT_EQ(run_rewrite(graph, row), sizes == GraphSizes::kFixed) << name;
      EXPECT_EQ(questions.size(), sizes == GraphSizes::kFixed ? 1u : 0u) << name;
    }
    Graph graph = rule_examples().at(name).fires();
    const PipelineScope body({.place = "body of 'loop'"});
    EXPECT_TRUE(run_rewrite(graph, row)) << name;
  }
}

TEST(RnnCell, LeavesWhatElseTheStepDoesInTheLoop) {
  const Rewrite& row = current_pipeline()->at("rnn_cell");
  Graph whole = lstm_loop({});
  run_rewrite(whole, row);
  run_rewrite(whole, current_pipeline()->at("copied_rows"));
  EXPECT_EQ(count_of(whole, "_foreach"), 0) << whole.text();
  EXPECT_EQ(count_of(whole, "RNN"), 1) << whole.text();
  Graph part = lstm_loop({.output = "half"});
  EXPECT_TRUE(run_rewrite(part, row));
  EXPECT_EQ(count_of(part, "_foreach"), 1) << part.text();
  EXPECT_EQ(count_of(part, "RNN"), 1) << part.text();
}

TEST(RnnCell, LeavesCellsWhoseMemoryIsReadOrChangedOtherwise) {
  const Rewrite& row = current_pipeline()->at("rnn_cell");
  for (const LstmLoop& how : {LstmLoop{.output = "c"}, LstmLoop{.output = "gates.0"}, LstmLoop{.output = "mixed"},
                              LstmLoop{.next_memory = "mixed"}, LstmLoop{.output = "s"}}) {
    Graph graph = lstm_loop(how);
    EXPECT_FALSE(run_rewrite(graph, row)) << graph.text();
  }
}

TEST(Rules, NoExampleIsLeftOver) {
  for (const auto& [name, example] : rule_examples()) {
    const auto& rows = current_pipeline()->rows();
    const auto is_of = [&example = example](const Rewrite& row) { return example_of(row) == &example; };
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), is_of)) << name;
  }
}

// Views, casts, slices, joins, powers and neutral numbers, nested in each other.
Graph tangle() {
  const NodeEntry x = var("x"), y = var("y");
  NodeEntry e = use("elemwise_add", {scaled(scaled(use("elemwise_mul", {x, x}), "-1"), "-1"), scaled(y, "1")});
  e = reshaped(reshaped(reshaped(e, "(3, 4)"), "(2, 6)"), "(-1, 2)");
  const NodeEntry root = use("_rdiv_scalar", {use("sqrt", {reshaped(plus(y, "0"), "(6, 2)")})}, {{"scalar", "1"}});
  e = use("elemwise_add", {power(e, "2"), root});
  const NodeEntry joined = use("Concat", {e, power(e, "3")}, {{"num_args", "2"}});
  const NodeEntry parts = use("SliceChannel", {joined}, {{"num_outputs", "2"}});
  e = use("elemwise_sub", {cast_to(cast_to(parts, "float64"), "float32"), output(parts, 1)});
  e = rows(rows(e, "1", "None"), "-3", "None");
  e = transposed(transposed(transposed(e, "(1, 0)"), "(1, 0)"), "(1, 0)");
  return make_graph({x, y}, {float32({12}), float32({12})}, {e});
}

TEST(Rules, AnyOrderOfNodesEndsInOneCanonicalGraph) {
  for (const Stage stage : {Stage::kCanonicalize, Stage::kCanonicalizeJoint}) {
    const std::shared_ptr<const Pipeline> pipeline = current_pipeline();
    std::vector<const Rewrite*> rules;
    for (const Rewrite& row : pipeline->rows())
      if (row.stage() == stage && row.exactness != Exactness::kUnsafe) rules.push_back(&row);
    const Rewrite& merge = pipeline->at("merge");
    Graph expected = tangle();
    EXPECT_TRUE(run_to_equilibrium(expected, rules));
    run_rewrite(expected, merge);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Graph graph = tangle();
      while (visit_once(graph, rules, {.order = VisitOrder::kRandom, .seed = seed})) {
      }
      run_rewrite(graph, merge);
      graph.check();
      EXPECT_EQ(graph.fingerprint(), expected.fingerprint()) << graph.text() << "instead of\n" << expected.text();
    }
  }
}

}  // namespace
}  // namespace hybridnet::graph_testing
