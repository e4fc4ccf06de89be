#include "graph/build_graph.h"

namespace hybridnet::graph_testing {
namespace {

Rewrite named(std::string name, std::set<std::string> tags) {
  Rewrite rewrite;
  rewrite.name = std::move(name);
  rewrite.tags = std::move(tags);
  return rewrite;
}

TEST(Query, IsASetExpression) {
  const Rewrite merge = named("merge", {"fast_run", "fast_compile"});
  const Rewrite fuse = named("fuse", {"fast_run", "fusion", "stable"});
  const Rewrite risky = named("risky", {"fast_math"});
  struct Case {
    const char* query;
    bool merge, fuse, risky;
  };
  for (const Case& c : std::vector<Case>{{"", true, true, false},
                                         {"fast_run", true, true, false},
                                         {"fast_compile", true, false, false},
                                         {"fast_run,-fusion", true, false, false},
                                         {"fast_run,-fuse", true, false, false},
                                         {"fast_run,&stable", false, true, false},
                                         {"fast_run,fast_math", true, true, true},
                                         {"fast_run,+fast_math,-merge", false, true, true},
                                         {"merge", true, false, false},
                                         {"-merge", false, true, false},
                                         {"none", false, false, false},
                                         {" fast_run , -stable ", true, false, false}}) {
    const Query query = Query::parse(c.query);
    EXPECT_EQ(query.accepts(merge), c.merge) << c.query;
    EXPECT_EQ(query.accepts(fuse), c.fuse) << c.query;
    EXPECT_EQ(query.accepts(risky), c.risky) << c.query;
  }
  EXPECT_THROW(Query::parse("fast_run,-"), ParamError);
}

TEST(RewriteDatabase, OrdersByPositionAndRefusesTakenNames) {
  RewriteDatabase db;
  db.pass("b", [](Graph&) { return false; }).at(1.0).tags({"fast_run"});
  db.pass("a", [](Graph&) { return false; }).at(0.5).tags({"fast_run"});
  db.pass("c", [](Graph&) { return false; }).at(0.0).tags({"fast_run", "cleanup"});
  std::vector<std::string> names;
  for (const Rewrite* rewrite : db.select(Query::parse("fast_run"))) names.push_back(rewrite->name);
  EXPECT_EQ(names, (std::vector<std::string>{"c", "a", "b"}));
  EXPECT_THROW(db.pass("a", nullptr), ParamError);
  EXPECT_THROW(db.pass("cleanup", nullptr), ParamError);
}

Graph tanh_of_x() {
  const NodeEntry x = var("x");
  return make_graph({x}, {float32({4})}, {use("tanh", {x})});
}

Rewrite exchange(std::string name, std::string from, std::string to) {
  Rewrite rewrite = named(std::move(name), {});
  rewrite.ops = {std::move(from)};
  rewrite.rule = [to](Graph& graph, Node& node) {
    const Op& op = Runtime::get().ops().at(to);
    return replace_with({graph.add(op, op.default_params, node.inputs, &node), 0});
  };
  return rewrite;
}

TEST(Equilibrium, ReachesTheEndOfAChainOfRules) {
  Graph graph = tanh_of_x();
  const Rewrite first = exchange("first", "tanh", "sigmoid"), second = exchange("second", "sigmoid", "relu");
  PassReport report;
  EXPECT_TRUE(run_to_equilibrium(graph, {&first, &second}, &report));
  EXPECT_EQ(count_ops(graph, "relu"), 1);
  EXPECT_TRUE(report.warnings.empty());
  graph.check();
}

TEST(Equilibrium, StopsRulesThatUndoEachOtherAndNamesBoth) {
  Graph graph = tanh_of_x();
  const Rewrite there = exchange("there", "tanh", "sigmoid"), back = exchange("back", "sigmoid", "tanh");
  PassReport report;
  run_to_equilibrium(graph, {&there, &back}, &report);
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_NE(report.warnings[0].find("there"), std::string::npos);
  EXPECT_NE(report.warnings[0].find("back"), std::string::npos);
  graph.check();
}

TEST(Equilibrium, StopsARuleThatNeverEnds) {
  Graph graph = tanh_of_x();
  Rewrite grow = named("grow", {});
  grow.ops = {"tanh"};
  grow.rule = [](Graph& g, Node& node) {
    const Op& relu = Runtime::get().ops().at("relu");
    const NodeEntry inner{g.add(relu, relu.default_params, {node.inputs[0]}), 0};
    return replace_with({g.add(*node.op, node.params, {inner}, &node), 0});
  };
  PassReport report;
  run_to_equilibrium(graph, {&grow}, &report);
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_NE(report.warnings[0].find("grow"), std::string::npos);
  graph.check();
}

TEST(Equilibrium, ARuleThatThrowsChangesNothing) {
  Graph graph = tanh_of_x();
  const uint64_t before = graph.fingerprint();
  Rewrite bad = named("bad", {});
  bad.rule = [](Graph& g, Node& node) -> Replacement {
    const Op& relu = Runtime::get().ops().at("relu");
    g.add(relu, relu.default_params, {node.inputs[0]});
    throw Error(ErrorKind::kError, {.message = "no"});
  };
  PassReport report;
  run_to_equilibrium(graph, {&bad}, &report);
  EXPECT_EQ(graph.fingerprint(), before);
  EXPECT_EQ(graph.num_nodes(), 2u);
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_NE(report.warnings[0].find("bad"), std::string::npos);
}

TEST(Equilibrium, RefusesNothingForAnOutputThatIsRead) {
  Graph graph = tanh_of_x();
  Rewrite bad = named("nothing", {});
  bad.rule = [](Graph&, Node&) { return Replacement{{NodeEntry{}}, {}, {}}; };
  PassReport report;
  run_to_equilibrium(graph, {&bad}, &report);
  EXPECT_EQ(count_ops(graph, "tanh"), 1);
  EXPECT_EQ(report.warnings.size(), 1u);
}

TEST(Equilibrium, VisitsOnlyWhatARuleTracks) {
  const NodeEntry x = var("x");
  Graph graph = make_graph({x}, {float32({4})}, {use("tanh", {use("sigmoid", {x})})});
  Rewrite watch = named("watch", {});
  watch.ops = {"sigmoid"};
  std::vector<std::string> seen;
  watch.rule = [&](Graph&, Node& node) {
    seen.push_back(node.op->name);
    return no_change();
  };
  run_to_equilibrium(graph, {&watch}, nullptr);
  EXPECT_EQ(seen, (std::vector<std::string>{"sigmoid"}));
}

}  // namespace
}  // namespace hybridnet::graph_testing
