// The text form of plans, and graphs whose values are compared during rewrites.
#include "hybridnet/plan.h"
#include "passes/control_graphs.h"
#include "plan/graph_callable.h"
#include "plan/plan.h"
#include "plan/value_comparison.h"

namespace hybridnet::graph_testing {
namespace {

std::string text_of(const Graph& graph) { return Plan::compile(graph, {})->text(); }

size_t count(const std::string& text, const std::string& part) {
  size_t times = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in\n" << text;
}

TEST(PlanText, NamesOperatorsImplementationsAndWhatSharesMemory) {
  const NodeEntry x = var("data"), w = var("weight");
  const NodeEntry dense = use("FullyConnected", {x, w}, {{"num_hidden", "8"}, {"no_bias", "True"}});
  const NodeEntry rows = use("softmax", {use("tanh", {dense})});
  const Graph graph = make_graph({x, w}, {float32({4, 16}), float32({8, 16})}, {use("sum", {rows})});
  const std::string text = text_of(graph);
  expect_says(text, "i0 = data  float32(4, 16)");
  expect_says(text, "[0] FullyConnected <gemm> (i0, i1) -> t0@0");  // the implementation that linking chose
  expect_says(text, "(in place)");                                  // tanh reuses the memory of its input
  expect_says(text, "output 0 = o0");
  expect_says(text, "arena:");
  EXPECT_EQ(count(text, "\n  ["), 4u) << text;
}

TEST(PlanText, ShowsChainsAsOneInstructionWithTheirOperators) {
  const NodeEntry x = var("x");
  Graph graph = make_graph({x}, {float32({64})}, {use("tanh", {use("sigmoid", {x})})});
  run_rewrite(graph, RewriteDatabase::current()->at("fuse_elementwise"));
  expect_says(text_of(graph), "<pointwise[2 ops: sigmoid tanh]>");
}

TEST(PlanText, ShowsBodiesBelowTheirInstruction) {
  FileGraph graph = FileGraph().input("x", float32({5, 4})).input("h", float32({4}));
  add_foreach(graph, "loop", {{"x", "d"}}, {{"h", "s"}}, {}, 1,
              FileGraph().input("d").input("s").node("elemwise_add", "n", {"d", "s"}).outputs({"n", "n"}));
  const std::string text = text_of(graph.outputs({"loop.0", "loop.1"}).graph());
  expect_says(text, "[0] _foreach");
  expect_says(text, "    body:\n        1 instruction");
  expect_says(text, "          [0] elemwise_add");
}

TEST(PlanText, OfACachedOpIsThatOfItsLastSignature) {
  const NodeEntry x = var("x");
  const Ref<GraphCallable> op = make_ref<GraphCallable>(Symbol{{use("tanh", {x})}}, CallOptions{.name = "net"});
  EXPECT_EQ(op->plan_text(), "");
  op->call(std::vector<NDArray>{make_array(Shape{2}, {1, 2})});
  expect_says(op->plan_text(), "net, prediction: x float32(2,)");
  op->call(std::vector<NDArray>{make_array(Shape{3}, {1, 2, 3})});
  expect_says(op->plan_text(), "x float32(3,)");
}

TEST(GraphCallable, RefusesWordsThatNoRewriteKnows) {
  try {
    make_ref<GraphCallable>(Symbol{{use("tanh", {var("x")})}}, CallOptions{.passes = "fast_run,-winogrd"});
    FAIL() << "no error";
  } catch (const ParamError& error) {
    expect_says(error.what(), "did you mean 'winograd'?");
  }
}

// ---- the debug profile
Rewrite row(Exactness exactness) {
  Rewrite rewrite;
  rewrite.name = "tested";
  rewrite.exactness = exactness;
  return rewrite;
}

struct Watched {
  Graph graph;
  std::vector<NodePtr> no_inputs;
  ValueComparison comparison{no_inputs, {}};
  std::unique_ptr<RewriteObserver::Watch> watch;
  explicit Watched(Graph g) : graph(std::move(g)), watch(comparison.watch(graph)) {}
  void replace(const char* op) {
    const Node& node = *graph.outputs()[0].node;
    const Op& other = Runtime::get().ops().at(op);
    graph.replace(graph.outputs()[0], {graph.add(other, other.default_params, node.inputs, &node), 0});
  }
};

TEST(ValueComparison, NamesTheValueThatARewriteChanges) {
  const NodeEntry x = var("x");
  for (const Exactness exactness : {Exactness::kBitwise, Exactness::kRounding}) {
    Watched watched(make_graph({x}, {float32({16})}, {use("tanh", {x})}));
    watched.replace("tanh");
    EXPECT_NO_THROW(watched.watch->changed(row(exactness)));
    watched.replace("sigmoid");
    try {
      watched.watch->changed(row(exactness));
      ADD_FAILURE() << "tanh became sigmoid, and nothing was said";
    } catch (const Error& error) {
      expect_says(error.what(), "changed element 0 of output 0");
      expect_says(error.what(), "fast_run,-tested");
    }
  }
}

TEST(ValueComparison, FindsNothingWrongInThePipeline) {
  const NodeEntry x = var("x"), w = var("w"), b = var("b");
  const NodeEntry dense =
      use("FullyConnected", {use("_mul_scalar", {x}, {{"scalar", "1"}}), w, b}, {{"num_hidden", "8"}});
  Graph graph = make_graph({x, w, b}, {float32({4, 16}), float32({8, 16}), float32({8})},
                           {use("softmax", {use("relu", {dense})})});
  const std::vector<NodePtr> none;
  ValueComparison comparison(none, {});
  PassReport report;
  const PipelineScope scope({.query = Query::parse("debug"), .report = &report, .observer = &comparison});
  run_pipeline(graph, kAllStages);
  EXPECT_EQ(report.warnings(), std::vector<std::string>());
  EXPECT_EQ(count_ops(graph, "_fused_fully_connected"), 1);
}

}  // namespace
}  // namespace hybridnet::graph_testing
