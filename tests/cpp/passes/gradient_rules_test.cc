// Gradient rules that run alone make the same nodes as within a graph.
#include "graph/build_graph.h"
#include "passes/gradient/gradient.h"
#include "plan/shared_kernels.h"

namespace hybridnet::graph_testing {
namespace {

Graph small_network() {
  const NodeEntry x = var("x"), w = var("w"), b = var("b");
  const NodeEntry dense = use("FullyConnected", {x, w, b}, {{"num_hidden", "6"}});
  const NodeEntry rows = use("Reshape", {use("relu", {dense})}, {{"shape", "(-1, 2, 3)"}});
  const NodeEntry centered = use("broadcast_sub", {rows, use("mean", {rows}, {{"axis", "1"}, {"keepdims", "1"}})});
  const NodeEntry square = use("elemwise_mul", {centered, centered});
  return make_graph({x, w, b}, {float32({5, 4}), float32({6, 4}), float32({6})},
                    {use("softmax", {centered}), use("sum", {square}, {{"axis", "(1, 2)"}})});
}

TEST(GradientRules, AskedAloneMakeTheSameNodes) {
  const Graph graph = small_network();
  for (const std::vector<int>& wanted : {std::vector<int>{0, 1, 2}, {1}, {0}}) {
    Graph joint = small_network();
    const size_t before = joint.order().size();
    std::vector<AskedRule> asked;
    add_gradients(joint, wanted, nullptr, &asked);
    size_t made = 0;
    for (const AskedRule& rule : asked) {
      const std::vector<RuleNode> alone = ask_gradient_rule(joint, *rule.node, rule.arrives, rule.wanted);
      ASSERT_EQ(alone.size(), rule.made.size()) << rule.node->op->name;
      for (size_t i = 0; i < alone.size(); ++i) {
        EXPECT_EQ(alone[i].op, rule.made[i]->op) << rule.node->op->name;
        EXPECT_TRUE(same_params(*alone[i].op, alone[i].params, rule.made[i]->params)) << alone[i].op->name;
      }
      made += rule.made.size();
    }
    EXPECT_GT(made, 4u);
    EXPECT_LE(before + made, joint.order().size());
  }
}

}  // namespace
}  // namespace hybridnet::graph_testing
