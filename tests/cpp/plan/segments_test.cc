// Graphs that are split after operators whose output shapes are known only at run time.
#include "plan/segments.h"

#include "engine/engine_fixture.h"
#include "graph/build_graph.h"
#include "hybridnet/plan.h"
#include "plan/graph_callable.h"

namespace hybridnet::graph_testing {
namespace {

// While this object lives, tasks pushed for the array wait.
class BusyArray {
 public:
  explicit BusyArray(const NDArray& array) {
    engine().push([gate = gate_](TaskContext&) { gate->pass(); }, {{}, std::array<Var*, 1>{&array.var()}}, {});
  }
  void free() {
    if (!std::exchange(is_free_, true)) gate_->open();
  }
  ~BusyArray() { free(); }

 private:
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  bool is_free_ = false;
};

NodeEntry masked(const NodeEntry& x, const NodeEntry& mask) { return use("_contrib_boolean_mask", {x, mask}); }

NDArray masked(const NDArray& x, const NDArray& mask) {
  const Op& op = Runtime::get().ops().at("_contrib_boolean_mask");
  const NDArray inputs[] = {x, mask};
  return invoke_one(op, op.default_params, inputs);
}

NDArray apply(const char* name, const NDArray& x) {
  const Op& op = Runtime::get().ops().at(name);
  return invoke_one(op, op.default_params, {&x, 1});
}

// relu and exp before the mask, tanh and square after it.
struct MaskedModel {
  const NodeEntry x = var("x"), mask = var("mask");
  const NodeEntry y = use("square", {use("tanh", {masked(use("relu", {use("exp", {x})}), mask)})});
  const Ref<GraphCallable> op = make_ref<GraphCallable>(Symbol{{y}}, CallOptions{.name = "net"});

  static NDArray imperative(const NDArray& x, const NDArray& mask) {
    return apply("square", apply("tanh", masked(apply("relu", apply("exp", x)), mask)));
  }
};

NDArray every_second(int64_t rows) {
  std::vector<float> values(static_cast<size_t>(rows));
  for (size_t i = 0; i < values.size(); i += 2) values[i] = 1;
  return make_array({rows}, values);
}

TEST(Segments, AMaskCutsAGraphInTwoAndTheCallReturnsBeforeTheyHaveRun) {
  const MaskedModel model;
  const NDArray x = random_array({6, 3}, 1), mask = every_second(6);
  const std::vector<float> expected = values_of(MaskedModel::imperative(x, mask));
  BusyArray busy(x);
  const NDArray inputs[] = {x, mask};
  const NDArray result = model.op->call(inputs)[0];
  EXPECT_TRUE(result.is_pending());
  EXPECT_EQ(model.op->counts().plans, 0u);  // nothing is compiled yet: the sizes are not known
  busy.free();
  EXPECT_EQ(result.shape(), Shape({3, 3}));  // waits
  EXPECT_EQ(values_of(result), expected);
  EXPECT_EQ(model.op->counts().plans, 2u);
  EXPECT_NE(model.op->summary().find("net: 2 segments"), std::string::npos) << model.op->summary();
}

TEST(Segments, PendingResultsArePassedOnWithoutWaiting) {
  const MaskedModel model;
  const NodeEntry z = var("z");
  const auto doubled = make_ref<GraphCallable>(Symbol{{use("elemwise_add", {z, z})}}, CallOptions{});
  const NDArray x = random_array({6, 3}, 1), mask = every_second(6);
  std::vector<float> expected = values_of(MaskedModel::imperative(x, mask));
  for (float& value : expected) value *= 2;
  BusyArray busy(x);
  const NDArray inputs[] = {x, mask};
  const std::vector<NDArray> first = model.op->call(inputs);
  const NDArray second = doubled->call(first)[0];
  EXPECT_TRUE(second.is_pending());
  busy.free();
  EXPECT_EQ(values_of(second), expected);
}

TEST(Segments, EachSegmentHasItsGradientAndOtherNumbersOfRowsMayFollow) {
  const MaskedModel model;
  for (const int64_t rows : {6, 9, 6}) {
    const NDArray mask = every_second(rows);
    std::vector<std::vector<float>> values, gradients;
    for (const bool compiled : {false, true}) {
      const NDArray x = random_array({rows, 3}, static_cast<uint32_t>(rows)), gradient = NDArray::empty(x.spec());
      mark_variable(x, gradient, GradReq::kWrite);
      autograd_state() = {.recording = true, .training = true};
      const NDArray inputs[] = {x, mask};
      const NDArray result = compiled ? model.op->call(inputs)[0] : MaskedModel::imperative(x, mask);
      autograd_state() = {};
      backward({&result, 1}, {}, false, true);
      values.push_back(values_of(result));
      gradients.push_back(values_of(gradient));
    }
    ASSERT_EQ(values[0].size(), values[1].size());
    for (size_t i = 0; i < values[0].size(); ++i) EXPECT_NEAR(values[1][i], values[0][i], 1e-6);
    for (size_t i = 0; i < gradients[0].size(); ++i) EXPECT_NEAR(gradients[1][i], gradients[0][i], 1e-6);
  }
}

TEST(Segments, GradientsOfGradientsGoThroughTheCut) {
  const MaskedModel model;
  const NDArray mask = every_second(4);
  std::vector<std::vector<float>> second;
  for (const bool compiled : {false, true}) {
    const NDArray x = random_array({4, 2}, 3), gradient = NDArray::empty(x.spec());
    mark_variable(x, gradient, GradReq::kWrite);
    autograd_state() = {.recording = true, .training = true};
    const NDArray inputs[] = {x, mask};
    const NDArray result = compiled ? model.op->call(inputs)[0] : MaskedModel::imperative(x, mask);
    const NDArray first = grad({&result, 1}, {}, {&x, 1}, true, true, true)[0];
    autograd_state() = {};
    backward({&first, 1}, {}, false, true);
    second.push_back(values_of(gradient));
  }
  for (size_t i = 0; i < second[0].size(); ++i) EXPECT_NEAR(second[1][i], second[0][i], 1e-5);
}

TEST(Segments, AnInputThatIsOverwrittenBeforeBackwardIsAnError) {
  const NodeEntry x = var("x"), mask = var("mask");
  const auto op = make_ref<GraphCallable>(Symbol{{use("square", {masked(use("square", {x}), mask)})}}, CallOptions{});
  const NDArray values = random_array({4, 2}, 3), gradient = NDArray::empty(values.spec());
  mark_variable(values, gradient, GradReq::kWrite);
  autograd_state() = {.recording = true, .training = true};
  const NDArray inputs[] = {values, every_second(4)};
  const NDArray result = op->call(inputs)[0];
  autograd_state() = {};
  note_overwrite(values);
  EXPECT_THROW(backward({&result, 1}, {}, false, true), GradientError);
}

TEST(Segments, AnErrorOfALaterSegmentNamesItsNodeWhereTheResultIsRead) {
  const NodeEntry x = var("x"), mask = var("mask"), w = var("w");
  const auto op = make_ref<GraphCallable>(Symbol{{use("elemwise_add", {masked(x, mask), w})}}, CallOptions{});
  const NDArray inputs[] = {random_array({6, 3}, 1), every_second(6), random_array({2, 3}, 2)};
  const NDArray result = op->call(inputs)[0];
  try {
    result.shape();
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_NE(std::string(error.what()).find("elemwise_add"), std::string::npos) << error.what();
  }
}

TEST(Segments, ResultsAreNeverTheArgumentsThemselves) {
  const NodeEntry x = var("x"), mask = var("mask");
  const auto op = make_ref<GraphCallable>(Symbol{{x, masked(x, mask)}}, CallOptions{});
  const NDArray values = random_array({6, 3}, 1);
  const NDArray inputs[] = {values, every_second(6)};
  const std::vector<NDArray> results = op->call(inputs);
  EXPECT_EQ(values_of(results[0]), values_of(values));
  EXPECT_NE(results[0].data(), values.data());
}

TEST(Segments, StatesOfASegmentAreThoseOfTheCallersArrays) {
  const NodeEntry x = var("x"), mask = var("mask"), gamma = var("gamma"), beta = var("beta"), mean = var("mean"),
                  variance = var("variance");
  const NodeEntry y = use("BatchNorm", {masked(x, mask), gamma, beta, mean, variance}, {{"momentum", "0.5"}});
  const auto op = make_ref<GraphCallable>(Symbol{{y}}, CallOptions{});
  const NDArray data = make_array({4, 1}, {1, 100, 3, 100}), running = make_array({1}, {0});
  const NDArray inputs[] = {data,    every_second(4),     make_array({1}, {1}), make_array({1}, {0}),
                            running, make_array({1}, {1})};
  autograd_state() = {.recording = false, .training = true};
  for (const float expected : {1.0f, 1.5f}) {  // moves toward the mean of 1 and 3
    op->call(inputs);
    EXPECT_FLOAT_EQ(values_of(running)[0], expected);  // waits for the call
  }
  autograd_state() = {};
}

}  // namespace
}  // namespace hybridnet::graph_testing
