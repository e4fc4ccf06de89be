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
                                         {"fast_math", true, true, true},
                                         {"fast_math,-fusion", true, false, true},
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

StageInfo described(Stage stage, bool equilibrium = false) {
  return {.stage = stage, .name = "stage", .graph = "forward", .equilibrium = equilibrium, .what = ""};
}

Rewrite pass_row(std::string name, Stage stage, std::vector<std::string> after = {}) {
  Rewrite row = named(std::move(name), {"fast_run"});
  row.stages = {stage};
  row.pass = [](Graph&) { return false; };
  row.after = std::move(after);
  return row;
}

// Returns the text of the error from making a pipeline of these rows in two stages; "" if they are valid.
std::string error_of(std::vector<Rewrite> rows, bool equilibrium = false) {
  try {
    Pipeline({described(Stage::kClean, equilibrium), described(Stage::kLoops)}, std::move(rows));
    return "";
  } catch (const ParamError& error) {
    return error.what();
  }
}

TEST(Pipeline, AcceptsRowsInTheOrderThatTheyAskFor) {
  EXPECT_EQ(error_of({pass_row("a", Stage::kClean), pass_row("b", Stage::kClean, {"a"}), pass_row("c", Stage::kLoops)}),
            "");
}

TEST(Pipeline, NamesTheRowThatIsWrongAndWhy) {
  const auto says = [](const std::string& error, const std::string& part) {
    EXPECT_NE(error.find(part), std::string::npos) << "'" << error << "' does not say '" << part << "'";
  };
  says(error_of({pass_row("a", Stage::kClean), pass_row("a", Stage::kLoops)}), "row 'a'");
  says(error_of({pass_row("a", Stage::kClean), pass_row("fast_run", Stage::kClean)}), "taken");
  says(error_of({pass_row("b", Stage::kClean, {"a"}), pass_row("a", Stage::kClean)}), "'a' to stand before it");
  says(error_of({pass_row("a", Stage::kClean, {"nothing"})}), "'nothing'");
  says(error_of({pass_row("b", Stage::kLoops), pass_row("a", Stage::kClean)}), "later stage");
  says(error_of({pass_row("a", Stage::kLayout)}), "not described");
  Rewrite final = pass_row("a", Stage::kLoops);
  final.phase = Phase::kFinal;
  says(error_of({final}), "one after the other");
  Rewrite in_place = pass_row("a", Stage::kOwn);
  in_place.in_place = true;
  in_place.position = 49;
  says(error_of({in_place}), "50 or more");
  in_place.position = 50;
  EXPECT_EQ(error_of({in_place}), "");
  in_place.position = 100;
  says(error_of({in_place}), "up to 100");
  Rewrite empty = pass_row("empty", Stage::kClean);
  empty.pass = nullptr;
  says(error_of({empty}), "local rule or a pass");
}

TEST(Pipeline, SuggestsTheNearestOfItsWords) {
  const Pipeline table({described(Stage::kClean)}, {pass_row("merge", Stage::kClean)});
  table.check(Query::parse("fast_run,-merge,debug"), "passes");
  for (const auto& [text, wanted] :
       std::vector<std::pair<const char*, const char*>>{{"fast_runs", "did you mean 'fast_run'"},
                                                        {"fast_run,-mege", "did you mean 'merge'"},
                                                        {"&zzzzzzzz", "graph-passes.md"}}) {
    try {
      table.check(Query::parse(text), "passes");
      ADD_FAILURE() << text;
    } catch (const ParamError& error) {
      EXPECT_NE(std::string(error.what()).find(wanted), std::string::npos) << error.what();
    }
  }
}

// Returns the names of the rows of a stage in their order.
std::vector<std::string> names_in(const Pipeline& pipeline, Stage stage) {
  std::vector<std::string> names;
  for (const Rewrite& row : pipeline.rows())
    if (row.stage() == stage) names.push_back(row.name);
  return names;
}

TEST(Pipeline, ARowOfSeveralStagesStandsInEachInTheOrderOfTheTable) {
  using Names = std::vector<std::string>;
  Rewrite both = pass_row("both", Stage::kClean), moved = pass_row("moved", Stage::kClean, {"both"});
  both.stages = moved.stages = {Stage::kClean, Stage::kLoops};
  both.why = "for the first stage";
  moved.tags = {"fast_run", "early"};
  moved.differences = {{Stage::kLoops, {.without = {"early"}, .after = {"a"}, .why = "for the second"}}};
  const Pipeline table({described(Stage::kClean), described(Stage::kLoops)},
                       {both, moved, pass_row("a", Stage::kLoops), pass_row("b", Stage::kLoops)});
  EXPECT_EQ(names_in(table, Stage::kClean), (Names{"both", "moved"}));
  EXPECT_EQ(names_in(table, Stage::kLoops), (Names{"both", "a", "moved", "b"}));
  EXPECT_EQ(table.at("both").why, "for the first stage");
  EXPECT_EQ(table.at("both", Stage::kLoops).why, "");
  EXPECT_TRUE(table.at("moved").has_tag("early"));
  EXPECT_FALSE(table.at("moved", Stage::kLoops).has_tag("early"));
  EXPECT_EQ(table.at("moved", Stage::kLoops).why, "for the second");
}

TEST(Pipeline, NamesTheRowWhoseStagesAreWrong) {
  const auto with_stages = [](std::vector<Stage> stages) {
    Rewrite row = pass_row("a", Stage::kClean);
    row.stages = std::move(stages);
    return row;
  };
  EXPECT_NE(error_of({with_stages({})}).find("row 'a'"), std::string::npos);
  EXPECT_NE(error_of({with_stages({Stage::kLoops, Stage::kClean})}).find("out of order"), std::string::npos);
  EXPECT_NE(error_of({with_stages({Stage::kClean, Stage::kClean})}).find("out of order"), std::string::npos);
  Rewrite other = pass_row("a", Stage::kClean);
  other.differences = {{Stage::kLoops, {}}};
  EXPECT_NE(error_of({other}).find("none of its later stages"), std::string::npos);
}

TEST(Pipeline, OneWordSwitchesARuleOffInEveryStage) {
  const std::shared_ptr<const Pipeline> pipeline = current_pipeline();
  const Query everywhere = Query::parse("fast_run,-merge"), once = Query::parse("fast_run,clean_joint:-merge");
  for (const Stage stage : {Stage::kClean, Stage::kCleanJoint, Stage::kSpecialize}) {
    const Rewrite& row = pipeline->at("merge", stage);
    EXPECT_FALSE(everywhere.in(pipeline->info(stage).name).accepts(row));
    EXPECT_EQ(once.in(pipeline->info(stage).name).accepts(row), stage != Stage::kCleanJoint);
  }
  EXPECT_TRUE(everywhere.accepts(pipeline->at("merge_loops")));
}

TEST(Pipeline, KnowsNoNamesOfSingleStages) {
  try {
    current_pipeline()->check(Query::parse("fast_run,-trim_control_j"), "passes");
    ADD_FAILURE() << "no error";
  } catch (const ParamError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'trim_control'"), std::string::npos) << error.what();
  }
  EXPECT_THROW(current_pipeline()->check(Query::parse("-merge_joint"), "passes"), ParamError);
}

TEST(PassReport, ListsWhatFiredWithItsBodiesAndCountsTheRest) {
  PassReport report;
  report.add("quick", "", "", {.fired = 1, .microseconds = 5});
  report.add("slow", "clean", "", {.fired = 1, .microseconds = 20});
  report.add("slow", "clean", "body of 'loop0'", {.fired = 2, .microseconds = 20});
  report.add("slow", "clean_joint", "", {.fired = 1, .microseconds = 1});
  for (const char* name : {"a", "b", "c"}) report.add(name, "clean", "", {.microseconds = 1});
  const std::string text = report.text();
  EXPECT_LT(text.find("slow"), text.find("quick"));
  EXPECT_NE(text.find("2 in the body of 'loop0'"), std::string::npos) << text;
  EXPECT_NE(text.find("us in clean, tried"), std::string::npos) << text;
  EXPECT_NE(text.find("us in clean_joint, tried"), std::string::npos) << text;
  EXPECT_EQ(report.lines().size(), 6u);
  EXPECT_NE(text.find("3 rules did not fire"), std::string::npos) << text;
  EXPECT_EQ(text.find("    a "), std::string::npos) << text;
}

Graph tanh_of_x() {
  const NodeEntry x = var("x");
  return make_graph({x}, {float32({4})}, {use("tanh", {x})});
}

Rewrite exchange(std::string name, std::string from, std::string to) {
  Rewrite rewrite = named(std::move(name), {});
  rewrite.ops = {std::move(from)};
  rewrite.local = [to](Graph& graph, Node& node) {
    const Op& op = Runtime::get().ops().at(to);
    return replace_with({graph.add(op, op.default_params, node.inputs, &node), 0});
  };
  return rewrite;
}

TEST(PassReport, CountsReplacementsThatWereUndone) {
  Graph graph = tanh_of_x();
  Rewrite rule = named("wider", {});
  rule.ops = {"tanh"};
  rule.local = [](Graph& g, Node& node) {
    const Op& cast = Runtime::get().ops().at("Cast");
    const ParamsPtr params = cast.schema->parse(TextAttrs{{"dtype", "float64"}}, cast.name, false);
    return replace_with({g.add(cast, params, node.inputs, &node), 0});
  };
  Rewrite pass = named("tries_twice", {});
  pass.pass = [](Graph& g) {
    const NodeEntry x{g.inputs()[0], 0}, y = g.outputs()[0];
    for (int i = 0; i < 2; ++i) g.replace_validate({{y, x}}, {g.inputs()[0].get()});
    return false;
  };
  PassReport report;
  const PipelineScope scope({.query = Query::parse(""), .report = &report});
  EXPECT_FALSE(run_rewrite(graph, rule));
  EXPECT_FALSE(run_rewrite(graph, pass));
  ASSERT_EQ(report.lines().size(), 2u);
  EXPECT_EQ(report.lines()[0].rejected, 1);
  EXPECT_EQ(report.lines()[1].rejected, 2);
  EXPECT_EQ(report.lines()[0].fired + report.lines()[1].fired, 0);
  EXPECT_NE(report.text().find("2 undone"), std::string::npos) << report.text();
  EXPECT_EQ(count_ops(graph, "tanh"), 1);
  graph.check();
}

TEST(Equilibrium, ReachesTheEndOfAChainOfRules) {
  Graph graph = tanh_of_x();
  const Rewrite first = exchange("first", "tanh", "sigmoid"), second = exchange("second", "sigmoid", "relu");
  PassReport report;
  const PipelineScope scope({.query = Query::parse(""), .report = &report});
  EXPECT_TRUE(run_to_equilibrium(graph, {&first, &second}));
  EXPECT_EQ(count_ops(graph, "relu"), 1);
  EXPECT_TRUE(report.warnings().empty());
  graph.check();
}

TEST(Equilibrium, StopsRulesThatUndoEachOtherAndNamesBoth) {
  Graph graph = tanh_of_x();
  const Rewrite there = exchange("there", "tanh", "sigmoid"), back = exchange("back", "sigmoid", "tanh");
  PassReport report;
  const PipelineScope scope({.query = Query::parse(""), .report = &report});
  run_to_equilibrium(graph, {&there, &back});
  ASSERT_EQ(report.warnings().size(), 1u);
  EXPECT_NE(report.warnings()[0].find("there"), std::string::npos);
  EXPECT_NE(report.warnings()[0].find("back"), std::string::npos);
  EXPECT_EQ(count_ops(graph, "tanh"), 1);  // stops as soon as the first state comes back
  graph.check();
}

TEST(Equilibrium, StopsARuleThatNeverEnds) {
  Graph graph = tanh_of_x();
  Rewrite grow = named("grow", {});
  grow.ops = {"tanh"};
  grow.local = [](Graph& g, Node& node) {
    const Op& relu = Runtime::get().ops().at("relu");
    const NodeEntry inner{g.add(relu, relu.default_params, {node.inputs[0]}), 0};
    return replace_with({g.add(*node.op, node.params, {inner}, &node), 0});
  };
  PassReport report;
  const PipelineScope scope({.query = Query::parse(""), .report = &report});
  run_to_equilibrium(graph, {&grow});
  ASSERT_EQ(report.warnings().size(), 1u);
  EXPECT_NE(report.warnings()[0].find("grow"), std::string::npos);
  graph.check();
}

TEST(Equilibrium, ARuleThatThrowsChangesNothing) {
  Graph graph = tanh_of_x();
  const uint64_t before = graph.fingerprint();
  Rewrite bad = named("bad", {});
  bad.local = [](Graph& g, Node& node) -> Replacement {
    const Op& relu = Runtime::get().ops().at("relu");
    g.add(relu, relu.default_params, {node.inputs[0]});
    throw Error(ErrorKind::kError, {.message = "no"});
  };
  PassReport report;
  const PipelineScope scope({.query = Query::parse(""), .report = &report});
  run_to_equilibrium(graph, {&bad});
  EXPECT_EQ(graph.fingerprint(), before);
  EXPECT_EQ(graph.num_nodes(), 2u);
  ASSERT_EQ(report.warnings().size(), 1u);
  EXPECT_NE(report.warnings()[0].find("bad"), std::string::npos);
}

TEST(Equilibrium, RefusesNothingForAnOutputThatIsRead) {
  Graph graph = tanh_of_x();
  Rewrite bad = named("nothing", {});
  bad.local = [](Graph&, Node&) { return Replacement{{NodeEntry{}}, {}, {}}; };
  PassReport report;
  const PipelineScope scope({.query = Query::parse(""), .report = &report});
  run_to_equilibrium(graph, {&bad});
  EXPECT_EQ(count_ops(graph, "tanh"), 1);
  EXPECT_EQ(report.warnings().size(), 1u);
}

TEST(Equilibrium, VisitsOnlyWhatARuleTracks) {
  const NodeEntry x = var("x");
  Graph graph = make_graph({x}, {float32({4})}, {use("tanh", {use("sigmoid", {x})})});
  Rewrite watch = named("watch", {});
  watch.ops = {"sigmoid"};
  std::vector<std::string> seen;
  watch.local = [&](Graph&, Node& node) {
    seen.push_back(node.op->name);
    return no_change();
  };
  run_to_equilibrium(graph, {&watch});
  EXPECT_EQ(seen, (std::vector<std::string>{"sigmoid"}));
}

}  // namespace
}  // namespace hybridnet::graph_testing
