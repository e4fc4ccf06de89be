// Loops and branches taken apart and put together again, and iteration over them during rewrites.
#include "graph/control/loop_view.h"

#include <gtest/gtest.h>

#include "graph/build_graph.h"
#include "graph/control/rules.h"

namespace hybridnet {
namespace {

using namespace graph_testing;

// Returns the output of a loop over `data` that adds each row, and `extra`, to its state, and stacks the states.
NodeEntry loop_over(const NodeEntry& data, const NodeEntry& start, const NodeEntry& extra) {
  const NodeEntry row = var("row"), state = var("state"), other = var("other");
  const NodeEntry next = use("elemwise_add", {use("elemwise_add", {row, state}), other});
  return use_foreach({.num_seq = 1, .num_carry = 1}, {data, start, extra}, {row, state, other}, {next, next});
}

class Loops : public ::testing::Test {
 protected:
  Loops() { Runtime::get(); }
  // Two loops, the second over the stacked output of the first.
  static Graph two_loops() {
    const NodeEntry x = var("x"), start = var("start"), extra = var("extra");
    return make_graph({x, start, extra}, {float32({5, 3}), float32({3}), float32({3})},
                      {loop_over(loop_over(x, start, extra), start, extra)});
  }
};

TEST_F(Loops, AWalkSkipsWhatARewriteHasFreedEvenIfANewNodeTakesItsAddress) {
  Graph graph = two_loops();
  std::vector<std::string> seen;
  for_each_node(
      graph, {ControlKind::kForeach},
      [&](Node& node) {
        seen.push_back(node.name);
        move_readers(graph, node, {{graph.inputs()[0], 0}, {}});  // removes both loops: the first had no other reader
        const Op& copy = OpRef("_copy").op();
        for (int i = 0; i < 64; ++i) graph.add(copy, copy.default_params, {{graph.inputs()[0], 0}});
      },
      Walk::kReadersFirst);
  EXPECT_EQ(seen, std::vector<std::string>{"loop"});
  EXPECT_EQ(count_ops(graph, "_foreach"), 0);
}

TEST_F(Loops, TakingALoopApartAndPuttingItTogetherChangesNothing) {
  Graph graph = two_loops();
  std::string texts[2];  // the first pass infers the specs of the bodies
  for (std::string& text : texts) {
    for_each_node(graph, {ControlKind::kForeach}, [&](Node& node) {
      const LoopView view(graph, node);
      EXPECT_EQ(view.data.size(), 1u);
      EXPECT_EQ(view.carries.size(), 1u);
      EXPECT_EQ(view.captured.size(), 1u);
      EXPECT_EQ(view.rows(), 5);
      view.replace(graph, node, view.put_together(graph, node));
    });
    graph.check();
    text = graph.text();
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST_F(Loops, SlotsThatNoBodyReadsAreLeftOut) {
  Graph graph = two_loops();
  for_each_node(graph, {ControlKind::kForeach}, [&](Node& node) {
    LoopView view(graph, node);
    // The next state is the old state: neither the row nor the captured value is read any more.
    for (LoopView::Carry& carry : view.carries) carry.next = view.output_of({carry.slot.inner, 0});
    for (LoopView::Out& out : view.outs) out.value = view.carries[0].next;
    const NodePtr made = view.put_together(graph, node);
    EXPECT_EQ(loop_of(*made).num_args, 1);
    EXPECT_EQ(loop_of(*made).length, 5);
    view.replace(graph, node, made);
  });
  graph.check();
}

TEST_F(Loops, ABodyHasAnInputForEachInputOfTheNode) {
  const NodeEntry pred = var("pred"), a = var("a"), b = var("b");
  auto branch = [&](std::vector<NodeEntry> read) {
    auto body = make_ref<Subgraph>();
    NodeEntry sum;
    for (const NodeEntry& value : read) {
      const NodeEntry inner = var(value.node->name);
      body->inputs.push_back(inner.node);
      sum = sum.node ? use("elemwise_add", {sum, inner}) : inner;
    }
    body->outputs = {use("_copy", {sum})};
    return BoundBody{body, read};
  };
  std::vector<NodeEntry> inputs{pred};
  BoundBody bodies[] = {predicate_of(pred, {}), branch({b, a}), branch({b, b})};
  bind_bodies(inputs, bodies);
  ASSERT_EQ(inputs, (std::vector<NodeEntry>{pred, b, a, b}));
  for (const BoundBody& bound : bodies) EXPECT_EQ(bound.body->inputs.size(), inputs.size());
  EXPECT_EQ(read_inputs(*bodies[0].body), (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(read_inputs(*bodies[1].body), (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(read_inputs(*bodies[2].body), (std::vector<bool>{false, true, false, true}));
}

TEST_F(Loops, NumbersAreReadInEveryDtype) {
  const Shape one{1};
  auto number = [&](auto value, DType dtype) { return read_number({&value, &one, dtype}); };
  EXPECT_EQ(number(float16(5.0f), DType::kFloat16), 5);
  EXPECT_EQ(number(bfloat16(-3.0f), DType::kBFloat16), -3);
  EXPECT_EQ(number(7.0f, DType::kFloat32), 7);
  EXPECT_EQ(number(7.5, DType::kFloat64), 7.5);
  EXPECT_EQ(number(int8_t{-4}, DType::kInt8), -4);
  EXPECT_EQ(number(uint8_t{200}, DType::kUInt8), 200);
  EXPECT_EQ(number(int32_t{-70000}, DType::kInt32), -70000);
  EXPECT_EQ(number(int64_t{1} << 40, DType::kInt64), 1099511627776.0);
}

}  // namespace
}  // namespace hybridnet
