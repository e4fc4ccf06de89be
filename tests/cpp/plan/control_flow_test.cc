// Loops and branches from files, run by several threads, and their gradients.
#include <gtest/gtest.h>

#include <thread>

#include "plan/control/control_kernel.h"
#include "plan/control_flow_models.h"

namespace hybridnet {
namespace {

TEST_F(ControlFlow, RunsALoopWithABranchFromAFile) {
  const Ref<GraphCallable> op = model();
  const NDArray inputs[] = {array({1, -1, 3, -1}), array({5})};
  const std::vector<NDArray> out = op->call(inputs);
  EXPECT_EQ(values(out[0]), (std::vector<float>{6, 12, 15, 30}));
  EXPECT_EQ(values(out[1]), (std::vector<float>{30}));
}

TEST_F(ControlFlow, GivesTheSameToManyThreads) {
  const Ref<GraphCallable> op = model();
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

// The model's states for initial state `start` over rows 1, -1, 1, -1 ...
std::vector<float> states_over(int64_t length, float start) {
  std::vector<float> states;
  for (int64_t row = 0; row < length; ++row) states.push_back(start = row % 2 == 0 ? start + 1 : start * 0.5f);
  return states;
}

TEST_F(ControlFlow, ThreadsThatCallWithDifferentLengthsShareOnePlanAndGetTheirOwnResults) {
  for (const bool keep : {false, true}) {
    std::string halves = kModel;  // so that the states stay small
    const std::string twice = R"("scalar": "2")";
    halves.replace(halves.find(twice), twice.size(), R"("scalar": "0.5")");
    CallOptions config;
    config.static_alloc = keep;
    const auto op = make_ref<GraphCallable>(Symbol::from_json(halves, "model"), config);
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 100; ++i) {
          const int64_t length = 2 + (i * 37 + t * 11) % 50;
          std::vector<float> rows;
          for (int64_t row = 0; row < length; ++row) rows.push_back(row % 2 == 0 ? 1.0f : -1.0f);
          const auto start = static_cast<float>(t * 100 + i);
          const NDArray inputs[] = {array(rows), array({start})};
          const std::vector<NDArray> out = op->call(inputs);
          const std::vector<float> expected = states_over(length, start);
          if (values(out[0]) != expected || values(out[1])[0] != expected.back()) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(op->counts().plans, 1u);
    EXPECT_EQ(op->counts().linked, 1u);
    EXPECT_GE(op->counts().layouts, 50u);
  }
}

TEST_F(ControlFlow, DifferentiatesThroughTheBranchesThatWereTaken) {
  const Ref<GraphCallable> op = model();
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

class LoopModes : public ControlFlow {
 protected:
  static constexpr int kRows = 64;
  LoopModes() : before_(set_loop_mode(LoopMode::kAhead)) {
    std::vector<float> x, picks;
    for (int row = 0; row < kRows; ++row) {
      x.insert(x.end(), {static_cast<float>(row + 1), 1});
      picks.push_back(static_cast<float>(row % 3));
    }
    x_ = array(x).reshaped(Shape{kRows, 2});
    picks_ = picks;
  }
  ~LoopModes() override { set_loop_mode(before_); }
  std::vector<NDArray> run() const {
    const NDArray inputs[] = {x_, array(picks_), array({5, 6, 7})};
    return op_->call(inputs);
  }

  const LoopMode before_;
  const Ref<GraphCallable> op_ = make_ref<GraphCallable>(Symbol::from_json(kMap, "map"), CallOptions{});
  NDArray x_;
  std::vector<float> picks_;
};

TEST_F(LoopModes, IterationsSideBySideGiveWhatTheyGiveOneAfterTheOther) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const std::vector<NDArray> out = run();
        const std::vector<float> grown = values(out[0]), chosen = values(out[1]);
        for (int row = 0; row < kRows; ++row) {
          float want = static_cast<float>(row + 1), other = 1;
          while (want + other < 100) want *= 2, other *= 2;
          const auto at = static_cast<size_t>(row);
          wrong += grown[2 * at] != want || grown[2 * at + 1] != other || chosen[at] != 5 + static_cast<float>(row % 3);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(LoopModes, TheErrorIsThatOfTheFirstIterationThatFails) {
  for (int row = 17; row < kRows; ++row) picks_[static_cast<size_t>(row)] = 9;
  for (int i = 0; i < 20; ++i) {
    try {
      values(run()[0]);
      FAIL() << "an index out of range was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIndex);
      EXPECT_NE(std::string(error.what()).find("map, iteration 17"), std::string::npos) << error.what();
    }
    try {
      engine().wait_all();
    } catch (const Error&) {  // the other output's error
    }
  }
}

TEST_F(ControlFlow, WritesTheFileItHasRead) {
  const Symbol symbol = Symbol::from_json(kModel, "model");
  const std::string text = symbol.tojson();
  EXPECT_EQ(Symbol::from_json(text, "again").tojson(), text);
}

// x doubles while it is less than 100; outputs: the intermediate values, one row each, and the last.
const char kDoubling[] = R"model({
 "nodes": [
  {"op": "null", "name": "x", "inputs": []},
  {"op": "_while_loop", "name": "loop",
   "attrs": {"num_args": "1", "num_outputs": "2", "num_out_data": "1", "max_iterations": "0", "unbounded": "True",
             "exact": "True", "cond_input_locs": "(0,)", "func_input_locs": "(0,)", "func_var_locs": "(0,)"},
   "inputs": [[0, 0, 0]],
   "subgraphs": [
    {"nodes": [{"op": "null", "name": "c", "inputs": []},
               {"op": "_lesser_scalar", "name": "small", "attrs": {"scalar": "100"}, "inputs": [[0, 0, 0]]}],
     "arg_nodes": [0], "heads": [[1, 0, 0]]},
    {"nodes": [{"op": "null", "name": "v", "inputs": []},
               {"op": "_copy", "name": "row", "inputs": [[0, 0, 0]]},
               {"op": "_mul_scalar", "name": "twice", "attrs": {"scalar": "2"}, "inputs": [[0, 0, 0]]}],
     "arg_nodes": [0], "heads": [[1, 0, 0], [2, 0, 0]]}]}],
 "arg_nodes": [0], "heads": [[1, 0, 0], [1, 1, 0]], "attrs": {"mxnet_version": ["int", 10901]}})model";

TEST_F(ControlFlow, ALoopWithoutALimitHasAsManyRowsAsItRuns) {
  const Ref<GraphCallable> op = make_ref<GraphCallable>(Symbol::from_json(kDoubling, "doubling"), CallOptions{});
  for (const auto& [start, rows] : {std::pair{64.0f, 1}, {200.0f, 0}, {1.0f, 7}, {100.0f / 4096, 12}}) {
    const NDArray inputs[] = {array({start})};
    const std::vector<NDArray> out = op->call(inputs);
    EXPECT_EQ(out[0].shape(), (Shape{rows, 1}));
    EXPECT_EQ(values(out[1])[0], start * static_cast<float>(1 << rows));
    if (rows > 0) {
      EXPECT_EQ(values(out[0]).back(), start * static_cast<float>(1 << (rows - 1)));
    }
  }
}

TEST_F(ControlFlow, ALoopWithoutALimitHasAGradient) {
  const Ref<GraphCallable> op = make_ref<GraphCallable>(Symbol::from_json(kDoubling, "doubling"), CallOptions{});
  const NDArray x = array({0.03f}), grad = array({0});  // 12 iterations: more than one chunk
  mark_variable(x, grad, GradReq::kWrite);
  autograd_state() = {true, true};
  const NDArray inputs[] = {x};
  const std::vector<NDArray> out = op->call(inputs);
  autograd_state() = {};
  backward(out, {}, false, true);
  EXPECT_EQ(values(grad), (std::vector<float>{4095 + 4096}));
}

TEST_F(ControlFlow, NamesWhatIsWrongWithAStateThatChanges) {
  std::string text = kModel;
  const std::string from = "\"_mul_scalar\", \"name\": \"twice\", \"attrs\": {\"scalar\": \"2\"}";
  text.replace(text.find(from), from.size(), "\"Cast\", \"name\": \"twice\", \"attrs\": {\"dtype\": \"int32\"}");
  const Ref<GraphCallable> op = make_ref<GraphCallable>(Symbol::from_json(text, "model"), CallOptions{});
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
