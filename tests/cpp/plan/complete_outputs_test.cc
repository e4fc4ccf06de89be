// A plan announces each output once, when the rest of the run neither reads nor writes it.
#include <algorithm>
#include <vector>

#include "graph/build_graph.h"
#include "hybridnet/runtime.h"
#include "plan/plan.h"

namespace hybridnet::graph_testing {
namespace {

// Notes when outputs are complete, and what they contain then. Overwrites them as a reader that runs at once may do.
class Notes final : public Plan::OutputListener {
 public:
  explicit Notes(std::vector<std::vector<float>>& outputs) : outputs_(outputs) {}
  void complete(size_t fresh) override {
    order.push_back(fresh);
    seen.resize(std::max(seen.size(), fresh + 1));
    seen[fresh] = outputs_[fresh];
    std::fill(outputs_[fresh].begin(), outputs_[fresh].end(), -1000.0f);
  }
  std::vector<size_t> order;
  std::vector<std::vector<float>> seen;

 private:
  std::vector<std::vector<float>>& outputs_;
};

struct Buffers {
  explicit Buffers(const Plan& plan) {
    for (const TensorSpec& spec : plan.fresh_outputs()) outputs.emplace_back(static_cast<size_t>(spec.shape.size()));
  }
  void run(Plan& plan, std::vector<std::vector<float>> inputs, Plan::OutputListener* listener) {
    std::vector<Plan::InputBinding> bindings;
    for (std::vector<float>& input : inputs) bindings.push_back({input.data(), nullptr});
    std::vector<void*> places;
    for (std::vector<float>& output : outputs) places.push_back(output.data());
    Plan::Call call;
    call.inputs = bindings;
    call.outputs = places;
    call.listener = listener;
    plan.run(call);
  }
  std::vector<std::vector<float>> outputs;
};

TEST(CompleteOutputs, AreAnnouncedOnceInTheOrderOfTheirLastUses) {
  Runtime::get();
  const NodeEntry x = var("x"), w = var("w");
  const NodeEntry first = use("dot", {x, w}), second = use("relu", {first}), third = use("dot", {second, w}),
                  last = use("elemwise_add", {third, first});  // reads the first output late
  const Graph graph =
      make_graph({x, w}, {float32({8, 8}), float32({8, 8})}, {first, second, third, last}, /*train=*/false);
  const Ref<Plan> plan = Plan::compile(graph, {});
  std::vector<float> a(64), b(64);
  for (size_t i = 0; i < 64; ++i) a[i] = static_cast<float>(i % 7) - 3, b[i] = static_cast<float>(i % 5) - 2;

  Buffers expected(*plan), listened(*plan);
  expected.run(*plan, {a, b}, nullptr);
  Notes notes(listened.outputs);
  listened.run(*plan, {a, b}, &notes);

  ASSERT_EQ(notes.order.size(), plan->fresh_outputs().size());
  for (size_t i = 0; i < expected.outputs.size(); ++i) EXPECT_EQ(notes.seen[i], expected.outputs[i]) << "output " << i;
  const auto place_of = [&](int output) {
    const auto fresh = static_cast<size_t>(plan->outputs()[static_cast<size_t>(output)].fresh);
    return std::find(notes.order.begin(), notes.order.end(), fresh) - notes.order.begin();
  };
  EXPECT_LT(place_of(1), place_of(0));  // the first output is read by the last instruction
}

}  // namespace
}  // namespace hybridnet::graph_testing
