// Rows of the pipeline that are patterns: each side of the forms that they match, and the errors of wrong patterns.
#include "passes/pattern_rules.h"

#include "passes/rule_graphs.h"

namespace hybridnet::graph_testing {
namespace {

using Make = std::function<NodeEntry(const NodeEntry&)>;

NodeEntry filled(const char* value, const char* shape = "(4,)") {
  return use("_full", {}, {{"shape", shape}, {"value", value}});
}

NodeEntry with_number(const char* op, const NodeEntry& x, const char* number) {
  return use(op, {x}, {{"scalar", number}});
}

NodeEntry sum_of_exponentials(const NodeEntry& x, const TextAttrs& attrs) {
  return use("sum", {use("exp", {x})}, attrs);
}

// Runs a row of the pipeline on f(x); x is float32 of this shape.
struct Ran {
  Graph graph;
  bool fired;
  Ran(const char* row, const Make& f, const TensorSpec& spec = kVector)
      : graph(of_x(f, spec)), fired(run_rewrite(graph, *find(row))) {
    graph.check();
  }
  Ran(const Rewrite& row, Graph g) : graph(std::move(g)), fired(run_rewrite(graph, row)) { graph.check(); }
  static const Rewrite* find(const char* row) { return &current_pipeline()->at(row); }
  int count(const char* op) const { return count_ops(graph, op); }
};

// A row that is not in the pipeline.
Rewrite row_of(std::vector<std::string> patterns, bool shared = false) {
  Runtime::get();
  std::vector<Rewrite> rows(1);
  rows[0].name = "tested";
  rows[0].patterns = std::move(patterns);
  rows[0].shared = shared;
  passes::compile_patterns(rows);
  return rows[0];
}

std::string error_of(const char* pattern) {
  try {
    row_of({pattern});
    return "";
  } catch (const ParamError& error) {
    return error.what();
  }
}

TEST(PatternRules, MatchAllOperatorsOfAnArithmetic) {
  const std::vector<Make> sums{
      [](auto& e) { return plus(e, "1"); },
      [](auto& e) { return with_number("_minus_scalar", e, "-1"); },
      [](auto& e) {
        return use("elemwise_add", {use("ones_like", {e}), e});
      },
      [](auto& e) {
        return use("broadcast_add", {e, filled("1", "(1,)")});
      },
      [](auto& e) {
        return use("_grad_add", {e, filled("1")});
      },
  };
  for (const Make& sum : sums) {
    const Ran ran("softplus", [&](auto& x) { return use("log", {sum(use("exp", {x}))}); });
    EXPECT_TRUE(ran.fired) << ran.graph.text();
    EXPECT_EQ(ran.count("Activation"), 1);
    EXPECT_EQ(ran.count("exp"), 0);
  }
  const std::vector<Make> quotients{
      [](auto& x) { return with_number("_rdiv_scalar", x, "1"); },
      [](auto& x) {
        return use("elemwise_div", {filled("1"), x});
      },
      [](auto& x) {
        return use("broadcast_div", {filled("1", "(1,)"), x});
      },
  };
  for (const Make& quotient : quotients) EXPECT_EQ(Ran("reciprocal", quotient).count("reciprocal"), 1);
  EXPECT_EQ(Ran("small_power", [](auto& x) { return power(x, "3"); }).count("elemwise_mul"), 1);
  EXPECT_EQ(Ran("small_power", [](auto& x) { return use("broadcast_power", {x, filled("2")}); }).count("square"), 1);
  EXPECT_EQ(Ran("square_of_self", [](auto& x) { return use("broadcast_mul", {x, x}); }).count("square"), 1);
}

TEST(PatternRules, LeaveOtherNumbersAndTheOtherSide) {
  EXPECT_FALSE(Ran("softplus", [](auto& x) { return use("log", {plus(use("exp", {x}), "2")}); }).fired);
  EXPECT_FALSE(Ran("softplus", [](auto& x) {
                 return use("log", {use("elemwise_add", {use("exp", {x}), filled("2")})});
               }).fired);
  EXPECT_FALSE(Ran("expm1", [](auto& x) { return with_number("_rminus_scalar", use("exp", {x}), "1"); }).fired);
  EXPECT_FALSE(Ran("reciprocal", [](auto& x) { return with_number("_div_scalar", x, "1"); }).fired);
  EXPECT_FALSE(Ran("reciprocal", [](auto& x) { return use("elemwise_div", {x, filled("1")}); }).fired);
  EXPECT_FALSE(Ran("root_power", [](auto& x) { return with_number("_rpower_scalar", x, "0.5"); }).fired);
  EXPECT_FALSE(Ran("square_of_self", [](auto& x) { return use("elemwise_mul", {x, use("tanh", {x})}); }).fired);
}

TEST(PatternRules, LeaveReplacementsOfAnotherShape) {
  const Make repeats = [](auto& x) { return use("log", {use("broadcast_add", {filled("1", "(3, 4)"), x})}); };
  EXPECT_FALSE(Ran("log1p", repeats, float32({1, 4})).fired);
  EXPECT_TRUE(Ran("log1p", repeats, float32({3, 4})).fired);
}

TEST(PatternRules, LeaveValuesThatOthersReadUnlessTheyAreShared) {
  const auto twice = [](const char* row, const std::function<NodeEntry(const NodeEntry&)>& inner,
                        const std::function<NodeEntry(const NodeEntry&, const NodeEntry&)>& outer) {
    const NodeEntry x = var("x"), value = inner(x);
    return Ran(*Ran::find(row), make_graph({x}, {kVector}, {outer(x, value), use("tanh", {value})})).fired;
  };
  const auto sigmoid = [](const NodeEntry& x) { return use("sigmoid", {x}); };
  const auto root = [](const NodeEntry& x) { return use("sqrt", {x}); };
  const auto exponential = [](const NodeEntry& x) { return use("exp", {x}); };
  EXPECT_FALSE(twice("silu", sigmoid, [](auto& x, auto& y) { return use("elemwise_mul", {x, y}); }));
  EXPECT_FALSE(twice("reciprocal_root", root, [](auto&, auto& y) { return use("reciprocal", {y}); }));
  EXPECT_TRUE(twice("log_sigmoid", sigmoid, [](auto&, auto& y) { return use("log", {y}); }));
  EXPECT_TRUE(twice("expm1", exponential, [](auto&, auto& y) { return plus(y, "-1"); }));
  EXPECT_TRUE(Ran("silu", [](auto& x) { return use("elemwise_mul", {use("sigmoid", {x}), x}); }).fired);
  EXPECT_TRUE(Ran("silu", [](auto& x) {
                return use("elemwise_mul", {x, use("Activation", {x}, {{"act_type", "sigmoid"}})});
              }).fired);
  EXPECT_FALSE(Ran("silu", [](auto& x) {
                 return use("elemwise_mul", {x, use("Activation", {x}, {{"act_type", "tanh"}})});
               }).fired);
}

TEST(PatternRules, ReadTheAxisOfAReduction) {
  struct Case {
    TextAttrs sum;
    const char* axis;  // null: the rule must not fire
  };
  const std::vector<Case> cases{{{{"axis", "1"}, {"keepdims", "True"}}, "1"},
                                {{{"axis", "(-1,)"}, {"keepdims", "True"}}, "2"},
                                {{{"axis", "(0, 1)"}, {"exclude", "True"}, {"keepdims", "True"}}, "2"},
                                {{{"axis", "(1, 2)"}, {"keepdims", "True"}}, nullptr},
                                {{{"keepdims", "True"}}, nullptr},
                                {{{"axis", "1"}, {"keepdims", "False"}}, nullptr}};
  for (const Case& c : cases) {
    const Ran ran(
        "log_softmax",
        [&](auto& x) {
          return use("broadcast_sub", {x, use("log", {sum_of_exponentials(x, c.sum)})});
        },
        float32({2, 2, 2}));
    EXPECT_EQ(ran.fired, c.axis != nullptr) << ran.graph.text();
    if (!ran.fired) continue;
    const Node& made = *ran.graph.outputs()[0].node;
    EXPECT_EQ(made.op->name, "log_softmax");
    EXPECT_EQ(made.op->schema->get(made.params->data(), made.op->schema->find("axis")).str(), c.axis);
  }
}

TEST(PatternRules, TakeOverTheParametersOfAnOperator) {
  const NodeEntry x = var("x"), y = var("y");
  const NodeEntry softmax = use("softmax", {x}, {{"axis", "0"}, {"temperature", "2"}});
  const NodeEntry picked = use("pick", {softmax, y}, {{"axis", "0"}, {"keepdims", "True"}});
  const Ran ran(*Ran::find("log_of_softmax"),
                make_graph({x, y}, {float32({3, 4}), float32({4})}, {use("log", {picked})}));
  EXPECT_TRUE(ran.fired);
  const Node& pick = *ran.graph.outputs()[0].node;
  const Node& log_softmax = *pick.inputs[0].node;
  const auto text = [](const Node& node, const char* name) {
    return node.op->schema->get(node.params->data(), node.op->schema->find(name)).str();
  };
  EXPECT_EQ(text(pick, "axis") + text(pick, "keepdims"), "0True");
  EXPECT_EQ(log_softmax.op->name, "log_softmax");
  EXPECT_EQ(text(log_softmax, "axis"), "0");
  EXPECT_EQ(text(log_softmax, "temperature"), text(*softmax.node, "temperature"));
}

TEST(PatternRules, LeaveIntegersAndTruthsUnlessTheRowTakesThem) {
  const auto on = [](const char* row, const Make& f, DType dtype) { return Ran(row, f, {Shape{4}, dtype}).fired; };
  const Make squared = [](auto& x) { return use("elemwise_mul", {x, x}); };
  EXPECT_TRUE(on("square_of_self", squared, DType::kInt32));
  EXPECT_TRUE(on("square_of_self", squared, DType::kFloat16));
  EXPECT_FALSE(on("square_of_self", squared, DType::kBool));
  EXPECT_FALSE(on(
      "opposite", [](auto& x) { return scaled(x, "-1"); }, DType::kInt32));
  EXPECT_FALSE(on(
      "reciprocal", [](auto& x) { return with_number("_rdiv_scalar", x, "1"); }, DType::kInt32));
  EXPECT_FALSE(on(
      "small_power", [](auto& x) { return power(x, "2"); }, DType::kInt32));
}

TEST(PatternRules, KeepOutputsApartFromInputs) {
  EXPECT_FALSE(Ran("opposite", [](auto& x) { return use("negative", {use("negative", {x})}); }).fired);
  const Ran inside("opposite", [](auto& x) { return use("tanh", {use("negative", {use("negative", {x})})}); });
  EXPECT_TRUE(inside.fired);
  EXPECT_EQ(inside.count("negative"), 0);
}

TEST(PatternRules, ReplacementsUseTheOperatorThatFitsShapesAndNumbers) {
  const Rewrite row = row_of({"add(x, y) -> div(y, x)"});
  const auto made_of = [&](const std::vector<TensorSpec>& specs, const Make& f) {
    const NodeEntry x = var("x"), y = var("y");
    const std::vector<NodeEntry> inputs = specs.size() == 2 ? std::vector{x, y} : std::vector{x};
    const NodeEntry result = specs.size() == 2 ? use("broadcast_add", {x, y}) : f(x);
    return Ran(row, make_graph(inputs, specs, {result})).graph.outputs()[0].node->op->name;
  };
  EXPECT_EQ(made_of({kVector, kVector}, {}), "elemwise_div");
  EXPECT_EQ(made_of({kVector, float32({2, 4})}, {}), "broadcast_div");
  EXPECT_EQ(made_of({kVector}, [](auto& x) { return plus(x, "3"); }), "_rdiv_scalar");
  EXPECT_EQ(made_of({kVector}, [](auto& x) { return use("elemwise_add", {x, filled("3")}); }), "elemwise_div");
}

TEST(PatternRules, ANumberThatMustBeAnArrayIsNoMatch) {
  const Rewrite row = row_of({"mul(x, y) -> elemwise_div(x, y)"});
  EXPECT_FALSE(Ran(row, of_x([](auto& x) { return scaled(x, "3"); })).fired);
  EXPECT_TRUE(Ran(row, of_x([](auto& x) { return use("elemwise_mul", {x, filled("3")}); })).fired);
}

TEST(PatternRules, AWrongPatternIsAnErrorThatNamesTheRow) {
  for (const auto& [pattern, part] : std::vector<std::pair<const char*, const char*>>{
           {"lgo(x) -> x", "'lgo'"},
           {"log(x) -> lgo(x)", "'lgo'"},
           {"log(x, y) -> x", "1 inputs of log"},
           {"add(x, y, z) -> x", "2 inputs of add"},
           {"softmax(x, axes=1) -> x", "a parameter of softmax"},
           {"softmax(x, axis=first) -> x", "axis"},
           {"add(x, y, axis=1) -> x", "an operator with parameters"},
           {"log(x) -> exp(y)", "a name of the pattern, got 'y'"},
           {"log(x) -> softmax(x, like=x)", "a name of the pattern, got 'x'"},
           {"sum(x, over=x) -> x", "a name for an axis"},
           {"log(x) -> Activation(x)", "act_type"},
           {"log(x) exp(x)", "'->'"},
           {"log(x) -> exp(x) tanh(x)", "the end of the rule"},
           {"log(x -> exp(x)", "',' or ')'"},
           {"x -> exp(x)", "an operator with its inputs"},
           {"log(x) -> 1", "a value that takes the place of another"},
       }) {
    const std::string error = error_of(pattern);
    EXPECT_NE(error.find("row 'tested'"), std::string::npos) << pattern << ": " << error;
    EXPECT_NE(error.find(part), std::string::npos) << pattern << ": " << error;
  }
}

TEST(PatternRules, VisitTheOperatorsAtTheRootOnly) {
  const Rewrite row = row_of({"sub(exp(x), 1) -> expm1(x)", "log1p(x) -> x"});
  const auto tracks = [&](const char* op) { return row.tracks(Runtime::get().ops().at(op)); };
  for (const char* op : {"elemwise_sub", "broadcast_sub", "_minus_scalar", "_rminus_scalar", "log1p"})
    EXPECT_TRUE(tracks(op)) << op;
  for (const char* op : {"exp", "elemwise_add", "log"}) EXPECT_FALSE(tracks(op)) << op;
}

}  // namespace
}  // namespace hybridnet::graph_testing
