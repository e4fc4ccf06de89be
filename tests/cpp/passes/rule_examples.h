// For every rule of the pipeline, a graph on which it fires and one on which it must not.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "passes/control_graphs.h"

namespace hybridnet::graph_testing {

struct RuleExample {
  std::function<Graph()> fires, must_not_fire;
};

// One entry per rule. A row with another function in a later stage has an entry "NAME in STAGE", too.
const std::map<std::string, RuleExample>& rule_examples();
const RuleExample* example_of(const Rewrite& row);  // null if there is none

// A loop that steps an LSTM cell of 4 units: its gates in the order i, f, g, o or another one; `output` is its stacked
// output.
struct LstmLoop {
  const char* forget = "gates.1";
  const char* output = "h";
  const char* next_memory = "c";
  std::vector<Slot> carries{{"h0", "s"}, {"c0", "t"}};
};
Graph lstm_loop(const LstmLoop& how, bool train = false);

}  // namespace hybridnet::graph_testing
