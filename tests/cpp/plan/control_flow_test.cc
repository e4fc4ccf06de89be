// Loops and branches from files, run by several threads, and their gradients.
#include <gtest/gtest.h>

#include <thread>

#include "hybridnet/imperative.h"
#include "hybridnet/plan.h"
#include "hybridnet/runtime.h"

namespace hybridnet {
namespace {

// state += x if x > 0, else state *= 2; outputs: the states, and the last one.
const char kModel[] = R"model({
 "nodes": [
  {"op": "null", "name": "x", "inputs": []},
  {"op": "null", "name": "start", "inputs": []},
  {"op": "_foreach", "name": "loop",
   "attrs": {"num_args": "2", "num_outputs": "2", "num_out_data": "1", "in_data_locs": "(0,)", "in_state_locs": "(1,)",
             "remain_locs": "()"},
   "inputs": [[0, 0, 0], [1, 0, 0]],
   "subgraphs": [{
    "nodes": [
     {"op": "null", "name": "d", "inputs": []},
     {"op": "null", "name": "s", "inputs": []},
     {"op": "_cond", "name": "choice",
      "attrs": {"num_args": "2", "num_outputs": "1", "cond_input_locs": "(0,)", "then_input_locs": "(0, 1)",
                "else_input_locs": "(1,)"},
      "inputs": [[0, 0, 0], [1, 0, 0]],
      "subgraphs": [
       {"nodes": [{"op": "null", "name": "p", "inputs": []},
                  {"op": "_greater_scalar", "name": "positive", "attrs": {"scalar": "0"}, "inputs": [[0, 0, 0]]}],
        "arg_nodes": [0], "heads": [[1, 0, 0]]},
       {"nodes": [{"op": "null", "name": "a", "inputs": []}, {"op": "null", "name": "b", "inputs": []},
                  {"op": "elemwise_add", "name": "sum", "inputs": [[0, 0, 0], [1, 0, 0]]}],
        "arg_nodes": [0, 1], "heads": [[2, 0, 0]]},
       {"nodes": [{"op": "null", "name": "b", "inputs": []},
                  {"op": "_mul_scalar", "name": "twice", "attrs": {"scalar": "2"}, "inputs": [[0, 0, 0]]}],
        "arg_nodes": [0], "heads": [[1, 0, 0]]}]}],
    "arg_nodes": [0, 1], "heads": [[2, 0, 0], [2, 0, 0]]}]}],
 "arg_nodes": [0, 1], "heads": [[2, 0, 0], [2, 1, 0]], "attrs": {"mxnet_version": ["int", 10901]}})model";

class ControlFlow : public ::testing::Test {
 protected:
  void SetUp() override { Runtime::get(); }

  static NDArray array(std::vector<float> values) {
    NDArray result = NDArray::empty(Shape{static_cast<int64_t>(values.size())}, DType::kFloat32);
    std::copy(values.begin(), values.end(), static_cast<float*>(result.data()));
    return result;
  }
  static std::vector<float> values(const NDArray& array) {
    array.wait_to_read();
    const auto* data = static_cast<const float*>(array.data());
    return {data, data + array.size()};
  }
  static Ref<CachedOp> model() { return make_ref<CachedOp>(Symbol::from_json(kModel, "model"), CachedOpConfig{}); }
};

TEST_F(ControlFlow, RunsALoopWithABranchFromAFile) {
  const Ref<CachedOp> op = model();
  const NDArray inputs[] = {array({1, -1, 3, -1}), array({5})};
  const std::vector<NDArray> out = op->call(inputs);
  EXPECT_EQ(values(out[0]), (std::vector<float>{6, 12, 15, 30}));
  EXPECT_EQ(values(out[1]), (std::vector<float>{30}));
}

TEST_F(ControlFlow, GivesTheSameToManyThreads) {
  const Ref<CachedOp> op = model();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto start = static_cast<float>(t * 100 + i);
        const NDArray inputs[] = {array({1, -1, 3}), array({start})};
        if (values(op->call(inputs)[1])[0] != (start + 1) * 2 + 3) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ControlFlow, DifferentiatesThroughTheBranchesThatWereTaken) {
  const Ref<CachedOp> op = model();
  const NDArray x = array({1, -1, 3}), start = array({5}), grad_x = array({0, 0, 0}), grad_start = array({0});
  mark_variable(x, grad_x, GradReq::kWrite);
  mark_variable(start, grad_start, GradReq::kWrite);
  autograd_state() = {true, true};
  const NDArray inputs[] = {x, start};
  const std::vector<NDArray> out = op->call(inputs);
  autograd_state() = {};
  const NDArray heads[] = {out[1]};
  backward(heads, {}, false, true);
  EXPECT_EQ(values(grad_x), (std::vector<float>{2, 0, 1}));
  EXPECT_EQ(values(grad_start), (std::vector<float>{2}));
}

TEST_F(ControlFlow, WritesTheFileItHasRead) {
  const Symbol symbol = Symbol::from_json(kModel, "model");
  const std::string text = symbol.tojson();
  EXPECT_EQ(Symbol::from_json(text, "again").tojson(), text);
}

TEST_F(ControlFlow, NamesWhatIsWrongWithAStateThatChanges) {
  std::string text = kModel;
  const std::string from = "\"_mul_scalar\", \"name\": \"twice\", \"attrs\": {\"scalar\": \"2\"}";
  text.replace(text.find(from), from.size(), "\"Cast\", \"name\": \"twice\", \"attrs\": {\"dtype\": \"int32\"}");
  const Ref<CachedOp> op = make_ref<CachedOp>(Symbol::from_json(text, "model"), CachedOpConfig{});
  const NDArray inputs[] = {array({1, -1}), array({5})};
  try {
    op->call(inputs);
    FAIL() << "branches of two dtypes were accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDType);
    EXPECT_NE(std::string(error.what()).find("else branch"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace hybridnet
