// Threads that call one GraphCallable concurrently: with different sizes, in training and in prediction, with a graph
// that is split into segments, and while its weights are overwritten. Useful with the thread sanitizer, too.
#include <atomic>
#include <map>
#include <thread>

#include "graph/build_graph.h"
#include "hybridnet/plan.h"
#include "plan/graph_callable.h"

namespace hybridnet::graph_testing {
namespace {

constexpr int kThreads = 4, kCalls = 40;

void on_threads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(body, t);
  for (std::thread& thread : threads) thread.join();
}

bool is_close(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) return false;
  for (size_t i = 0; i < found.size(); ++i)
    if (!(std::fabs(found[i] - expected[i]) <= 1e-4f * (1 + std::fabs(expected[i])))) return false;
  return true;
}

// Convolutions and dense layers, two of each with equal sizes, so that kernels are shared; predictions pack their
// weights.
struct ConvNet {
  NodeEntry data = var("data");
  std::map<std::string, NDArray> weights;
  Symbol symbol;

  ConvNet() {
    NodeEntry e = data;
    for (int i = 0; i < 2; ++i) {
      e = use("Convolution", {e, weight({8, 8, 3, 3}), weight({8})},
              {{"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"num_filter", "8"}});
      e = use("relu", {e});
    }
    e = use("Pooling", {e}, {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}, {"pool_type", "max"}});
    e = use("Flatten", {e});
    for (int i = 0; i < 2; ++i) {
      e = use("FullyConnected", {e, weight({72, 72}), weight({72})}, {{"num_hidden", "72"}});
      e = use("tanh", {use("_mul_scalar", {e}, {{"scalar", "0.1"}})});
    }
    symbol = {{e}};
  }
  NodeEntry weight(const Shape& shape) {
    const std::string name = "w" + std::to_string(weights.size());
    weights[name] = random_array(shape, 20 + static_cast<uint32_t>(weights.size()));
    return var(name);
  }
  static NDArray images(int64_t count) { return random_array({count, 8, 6, 6}, static_cast<uint32_t>(count)); }
  Ref<GraphCallable> compiled() const { return make_ref<GraphCallable>(symbol, CallOptions{}); }

  std::vector<NDArray> arguments(const NDArray& x) const {
    std::vector<NDArray> result;
    for (const NodePtr& node : symbol.list_inputs())
      result.push_back(node == data.node ? x : weights.at(node->name).detached());
    return result;
  }
  std::vector<float> predict(GraphCallable& op, int64_t count) const {
    return values_of(op.call(arguments(images(count)))[0]);
  }
  // The output, and the gradients of data and weights one after the other.
  std::vector<float> train(GraphCallable& op, int64_t count) const {
    const std::vector<NDArray> inputs = arguments(images(count));
    std::vector<NDArray> buffers;
    for (const NDArray& input : inputs) {
      buffers.push_back(NDArray::empty(input.spec()));
      mark_variable(input, buffers.back(), GradReq::kWrite);
    }
    std::vector<NDArray> outputs;
    {
      const Record record;
      outputs = op.call(inputs);
    }
    backward(outputs, {}, false, true);
    std::vector<float> all = values_of(outputs[0]);
    for (const NDArray& buffer : buffers) {
      const std::vector<float> values = values_of(buffer);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
};

TEST(ConcurrentCalls, OfAnySizesInTrainingAndPredictionGiveWhatTheyGiveAlone) {
  const ConvNet net;
  constexpr int kSizes = 6;
  std::vector<std::vector<float>> predicted, trained;
  const Ref<GraphCallable> alone = net.compiled(), op = net.compiled();
  for (int64_t count = 1; count <= kSizes; ++count) {
    predicted.push_back(net.predict(*alone, count));
    trained.push_back(net.train(*alone, count));
  }
  std::atomic<int> wrong{0};
  on_threads([&](int t) {
    for (int i = 0; i < kCalls; ++i) {
      const auto size = static_cast<size_t>((i * 7 + t * 5) % kSizes);
      const auto count = static_cast<int64_t>(size) + 1;
      wrong += (i + t) % 2 == 0 ? !is_close(net.predict(*op, count), predicted[size])
                                : !is_close(net.train(*op, count), trained[size]);
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(ConcurrentCalls, PredictionsWhileWeightsAreOverwrittenUseOneVersionOfEach) {
  const ConvNet net;
  const NDArray changing = net.weights.rbegin()->second, x = ConvNet::images(3);
  const Ref<GraphCallable> op = net.compiled();
  const std::vector<float> before = values_of(changing);
  std::vector<float> after = before;
  for (float& value : after) value *= -0.5f;
  const std::vector<float> of_before = net.predict(*op, 3);
  changing.copy_from(after.data());
  const std::vector<float> of_after = net.predict(*op, 3);
  ASSERT_FALSE(is_close(of_after, of_before));
  std::atomic<int> wrong{0};
  on_threads([&](int t) {
    for (int i = 0; i < kCalls; ++i) {
      if (t == 0) {
        changing.copy_from((i % 2 == 0 ? before : after).data());
        continue;
      }
      const std::vector<float> found = net.predict(*op, 3);
      wrong += !is_close(found, of_before) && !is_close(found, of_after);
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(ConcurrentCalls, OfAGraphInSegmentsHaveTheirOwnRowsAndGradients) {
  const NodeEntry x = var("x"), mask = var("mask"), w = var("w");
  const NodeEntry rows = use("_contrib_boolean_mask", {use("square", {x}), mask});
  const NodeEntry y = use("FullyConnected", {rows, w}, {{"num_hidden", "5"}, {"no_bias", "1"}});
  const auto op = make_ref<GraphCallable>(Symbol{{use("tanh", {y})}}, CallOptions{});
  const NDArray weight = random_array({5, 3}, 4);
  const auto run = [&](GraphCallable& called, int64_t count, bool gradient) {
    const NDArray data = random_array({count, 3}, static_cast<uint32_t>(count)), buffer = NDArray::empty(data.spec());
    std::vector<float> kept(static_cast<size_t>(count));
    for (size_t i = 0; i < kept.size(); i += 2) kept[i] = 1;
    const NDArray inputs[] = {data, make_array({count}, kept), weight.detached()};
    if (!gradient) return values_of(called.call(inputs)[0]);
    mark_variable(data, buffer, GradReq::kWrite);
    std::vector<NDArray> outputs;
    {
      const Record record;
      outputs = called.call(inputs);
    }
    backward(outputs, {}, false, true);
    return values_of(buffer);
  };
  const auto alone = make_ref<GraphCallable>(op->symbol(), CallOptions{});
  std::vector<std::vector<float>> results, gradients;
  for (int64_t count = 2; count < 8; ++count) {
    results.push_back(run(*alone, count, false));
    gradients.push_back(run(*alone, count, true));
  }
  std::atomic<int> wrong{0};
  on_threads([&](int t) {
    for (int i = 0; i < kCalls; ++i) {
      const auto size = static_cast<size_t>((i * 5 + t * 3) % 6);
      const bool gradient = (i + t) % 2 == 0;
      const std::vector<float> found = run(*op, static_cast<int64_t>(size) + 2, gradient);
      wrong += !is_close(found, gradient ? gradients[size] : results[size]);
    }
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace hybridnet::graph_testing
