// Models with loops and branches in their file format, and helpers of the tests that run them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "hybridnet/imperative.h"
#include "hybridnet/plan.h"
#include "hybridnet/runtime.h"
#include "plan/graph_callable.h"

namespace hybridnet {

// state += x if x > 0, else state *= 2; outputs: the states, and the last one.
inline const char kModel[] = R"model({
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

// Per row: x * 2 while its sum is below 100; and row `pick` of `table`. A body's inputs are numbered in the order in
// which its outputs reach them: d, t, pick.
inline const char kMap[] = R"model({
 "nodes": [
  {"op": "null", "name": "x", "inputs": []},
  {"op": "null", "name": "picks", "inputs": []},
  {"op": "null", "name": "table", "inputs": []},
  {"op": "_foreach", "name": "map",
   "attrs": {"num_args": "3", "num_outputs": "2", "num_out_data": "2", "in_data_locs": "(0, 2)", "in_state_locs": "()",
             "remain_locs": "(1,)"},
   "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]],
   "subgraphs": [{
    "nodes": [
     {"op": "null", "name": "d", "inputs": []},
     {"op": "null", "name": "pick", "inputs": []},
     {"op": "null", "name": "t", "inputs": []},
     {"op": "_while_loop", "name": "grow",
      "attrs": {"num_args": "1", "num_outputs": "1", "num_out_data": "0", "max_iterations": "20",
                "cond_input_locs": "(0,)", "func_input_locs": "(0,)", "func_var_locs": "(0,)"},
      "inputs": [[0, 0, 0]],
      "subgraphs": [
       {"nodes": [{"op": "null", "name": "v", "inputs": []}, {"op": "sum", "name": "s", "inputs": [[0, 0, 0]]},
                  {"op": "_lesser_scalar", "name": "l", "attrs": {"scalar": "100"}, "inputs": [[1, 0, 0]]}],
        "arg_nodes": [0], "heads": [[2, 0, 0]]},
       {"nodes": [{"op": "null", "name": "v", "inputs": []},
                  {"op": "_mul_scalar", "name": "m", "attrs": {"scalar": "2"}, "inputs": [[0, 0, 0]]}],
        "arg_nodes": [0], "heads": [[1, 0, 0]]}]},
     {"op": "take", "name": "chosen", "attrs": {"mode": "raise"}, "inputs": [[2, 0, 0], [1, 0, 0]]}],
    "arg_nodes": [0, 1, 2], "heads": [[3, 0, 0], [4, 0, 0]]}]}],
 "arg_nodes": [0, 1, 2], "heads": [[3, 0, 0], [3, 1, 0]], "attrs": {"mxnet_version": ["int", 10901]}})model";

class ControlFlow : public ::testing::Test {
 protected:
  ControlFlow() { Runtime::get(); }

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
  static Ref<GraphCallable> model() {
    return make_ref<GraphCallable>(Symbol::from_json(kModel, "model"), CallOptions{});
  }
};

}  // namespace hybridnet
