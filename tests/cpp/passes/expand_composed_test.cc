// Composed operators: the nodes that take their place in a graph, and the specs that their rules infer.
#include "passes/control_graphs.h"

namespace hybridnet::graph_testing {
namespace {

const Op& op_named(const char* name) { return Runtime::get().ops().at(name); }

std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node* node : graph.order())
    if (!node->is_variable()) names.push_back(node->op->name);
  return names;
}

Graph expanded(Graph graph) {
  run_rewrite(graph, RewriteDatabase::current()->at("expand_composed"));
  graph.check();
  return graph;
}

TEST(ExpandComposed, TakesTheOperatorThatItIsWhereNothingIsPromoted) {
  const NodeEntry x = var("x"), y = var("y");
  const Graph graph = expanded(make_graph({x, y}, {float32({2, 3}), float32({3})}, {use("_npi_add", {x, y})}));
  EXPECT_EQ(ops_of(graph), (std::vector<std::string>{"broadcast_add"}));
}

TEST(ExpandComposed, CastsInputsOfDifferentDtypes) {
  const NodeEntry x = var("x"), y = var("y");
  const TensorSpec whole{Shape{3}, DType::kInt32};
  const Graph graph = expanded(make_graph({x, y}, {float32({2, 3}), whole}, {use("_npi_add", {x, y})}));
  EXPECT_EQ(ops_of(graph), (std::vector<std::string>{"Cast", "broadcast_add"}));
  EXPECT_EQ(graph.spec(graph.outputs()[0]), float32({2, 3}));
}

TEST(ExpandComposed, KeepsNameAndBlock) {
  const NodeEntry x = var("x");
  const NodeEntry mean = use("_npi_mean", {x});
  mean.node->block = "net.body";
  const Graph graph = expanded(make_graph({x}, {float32({2, 3})}, {mean}));
  for (const Node* node : graph.order()) {
    if (node->is_variable()) continue;
    EXPECT_EQ(node->name, mean.node->name);
    EXPECT_EQ(node->block, "net.body");
  }
}

TEST(ExpandComposed, CopiesAnInputThatTheRuleGivesBack) {
  const NodeEntry x = var("x");
  const Graph graph =
      expanded(make_graph({x}, {float32({2, 3})}, {use("_npi_broadcast_to", {x}, {{"shape", "(2, 3)"}})}));
  EXPECT_EQ(ops_of(graph), (std::vector<std::string>{"_copy"}));
}

TEST(ExpandComposed, ReachesBodiesOfLoops) {
  const NodeEntry data = var("data"), state = var("state"), row = var("row"), carried = var("carried");
  LoopSpec spec;
  spec.num_seq = 1;
  spec.num_carry = 1;
  const NodeEntry sum = use("_npi_add", {row, carried});
  const NodeEntry loop = use_foreach(spec, {data, state}, {row, carried}, {use("_npi_exp", {sum}), sum});
  const Graph graph = expanded(make_graph({data, state}, {float32({5, 4}), float32({4})}, {loop, output(loop, 1)}));
  for (const Node* node : graph.order()) {
    if (node->subgraphs.empty()) continue;
    for (const Node* inner : topological_order(node->subgraphs[0]->outputs))
      EXPECT_TRUE(inner->is_variable() || !inner->op->composed()) << inner->op->name;
  }
}

TEST(ExpandComposed, RunsWhateverTheQuerySays) {
  for (const char* query : {"none", "fast_run,-expand_composed"}) {
    const NodeEntry x = var("x");
    Graph graph = make_graph({x}, {float32({2, 3})}, {use("_npi_exp", {x})});
    const PipelineScope scope({.query = Query::parse(query)});
    run_pipeline(graph, kForwardStages);
    EXPECT_EQ(ops_of(graph), (std::vector<std::string>{"exp"})) << query;
  }
}

TensorSpec inferred(const char* name, std::vector<TensorSpec> in, const TextAttrs& attrs = {}) {
  const Op& op = op_named(name);
  const ParamsPtr params = parse_params(op, attrs, in.size());
  TensorSpec out;
  InferContext context(op, in, {&out, 1});
  op.infer(params->data(), context);
  return out;
}

TEST(ComposedInference, TellsShapesWithoutDtypes) {
  const TensorSpec shape_only{Shape{2, 3}, DType::kUnknown};
  EXPECT_EQ(inferred("_npi_mean", {shape_only}, {{"axis", "0"}}), (TensorSpec{Shape{3}, DType::kUnknown}));
}

TEST(ComposedInference, TellsDtypesWithoutShapes) {
  const TensorSpec whole{Shape(), DType::kInt32}, real{Shape(), DType::kFloat64};
  EXPECT_EQ(inferred("_npi_add", {whole, real}).dtype, DType::kFloat64);
  EXPECT_EQ(inferred("_npi_mean", {whole}).dtype, DType::kFloat32);
  EXPECT_EQ(inferred("_np_transpose", {real}, {{"axes", "(2, 0, 1)"}}).dtype, DType::kFloat64);
}

TEST(ComposedInference, LeavesOpenWhatNothingTells) {
  EXPECT_FALSE(inferred("_np_sum", {TensorSpec{}}).known());
  EXPECT_EQ(inferred("_np_sum", {TensorSpec{}}).dtype, DType::kUnknown);
}

}  // namespace
}  // namespace hybridnet::graph_testing
