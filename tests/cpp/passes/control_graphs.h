// Short notation for loops and branches in tests of rewrites: graph files in MXNet's format.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/build_graph.h"

namespace hybridnet::graph_testing {

// A graph file under construction: nodes by name, in the order in which they are added.
class FileGraph {
 public:
  FileGraph& input(const std::string& name, const TensorSpec& spec = {}) {
    specs_[name] = spec;
    return node("null", name, {});
  }
  // inputs: names of nodes, "loop.1" for the second output; attrs: as in the file.
  FileGraph& node(const std::string& op, const std::string& name, const std::vector<std::string>& inputs,
                  const std::vector<std::pair<std::string, std::string>>& attrs = {},
                  const std::vector<FileGraph>& bodies = {}) {
    std::string text = R"({"op": ")" + op + R"(", "name": ")" + name + R"(", "attrs": {)";
    for (size_t i = 0; i < attrs.size(); ++i)
      text += (i > 0 ? ", \"" : "\"") + attrs[i].first + "\": \"" + attrs[i].second + "\"";
    text += "}, \"inputs\": " + entries(inputs);
    if (!bodies.empty()) {
      text += ", \"subgraphs\": [";
      for (size_t i = 0; i < bodies.size(); ++i) text += (i > 0 ? ", " : "") + bodies[i].text();
      text += "]";
    }
    names_.push_back(name);
    reads_.push_back(inputs);
    if (op == "null") arguments_ += (arguments_.empty() ? "" : ", ") + std::to_string(names_.size() - 1);
    nodes_ += (nodes_.empty() ? "" : ", ") + text + "}";
    return *this;
  }
  FileGraph& outputs(std::vector<std::string> names) {
    outputs_ = std::move(names);
    return *this;
  }

  // Inputs in the order in which the outputs reach them: a file numbers the inputs of a body in this order.
  std::vector<std::string> reached_inputs() const {
    std::vector<std::string> reached;
    for (const std::string& output : outputs_) reach(output, reached);
    return reached;
  }
  std::string text() const {
    return "{\"nodes\": [" + nodes_ + "], \"arg_nodes\": [" + arguments_ + "], \"heads\": " + entries(outputs_) +
           ", \"attrs\": {\"mxnet_version\": [\"int\", 10901]}}";
  }

  Graph graph(bool train = false) const {
    Runtime::get();
    const Symbol symbol = Symbol::from_json(text(), "test");
    std::vector<NodeEntry> inputs;
    std::vector<TensorSpec> specs;
    for (const NodePtr& input : symbol.list_inputs()) {
      inputs.push_back({input, 0});
      specs.push_back(specs_.at(input->name));
    }
    return make_graph(inputs, specs, symbol.outputs, train);
  }

 private:
  size_t number_of(const std::string& entry) const {
    const auto found = std::find(names_.begin(), names_.end(), entry.substr(0, entry.find('.')));
    EXPECT_NE(found, names_.end()) << entry;
    return static_cast<size_t>(found - names_.begin());
  }

  void reach(const std::string& entry, std::vector<std::string>& reached) const {
    const size_t number = number_of(entry);
    if (specs_.count(names_[number]) != 0) {
      if (std::find(reached.begin(), reached.end(), names_[number]) == reached.end()) reached.push_back(names_[number]);
      return;
    }
    for (const std::string& read : reads_[number]) reach(read, reached);
  }

  std::string entries(const std::vector<std::string>& names) const {
    std::string text = "[";
    for (const std::string& entry : names) {
      const size_t dot = entry.find('.');
      text += (text.size() > 1 ? ", [" : "[") + std::to_string(number_of(entry)) + ", " +
              (dot == std::string::npos ? "0" : entry.substr(dot + 1)) + ", 0]";
    }
    return text + "]";
  }

  std::vector<std::string> names_, outputs_;
  std::vector<std::vector<std::string>> reads_;  // per node
  std::map<std::string, TensorSpec> specs_;      // specs of inputs
  std::string nodes_, arguments_;
};

// The positions of the inputs of a body among those that its outputs reach, such as "(0, 1, 2)".
inline std::string places(const FileGraph& body, const std::vector<std::string>& inputs) {
  const std::vector<std::string> reached = body.reached_inputs();
  std::string text = "(";
  for (const std::string& input : inputs)
    text += std::to_string(std::find(reached.begin(), reached.end(), input) - reached.begin()) + ",";
  return text + ")";
}

// One input of a loop or branch: the value that the node reads, and the input of the body that receives it.
struct Slot {
  std::string outer, inner;
};

// Adds a foreach. Its outputs are num_out stacked outputs, then the states.
inline void add_foreach(FileGraph& graph, const std::string& name, const std::vector<Slot>& data,
                        const std::vector<Slot>& states, const std::vector<Slot>& captured, size_t num_out,
                        const FileGraph& body) {
  std::vector<std::string> inputs;
  std::string locs[3];
  const std::vector<Slot>* const kinds[] = {&data, &states, &captured};
  for (size_t kind = 0; kind < 3; ++kind) {
    std::vector<std::string> inner;
    for (const Slot& slot : *kinds[kind]) {
      inputs.push_back(slot.outer);
      inner.push_back(slot.inner);
    }
    locs[kind] = places(body, inner);
  }
  graph.node("_foreach", name, inputs,
             {{"num_args", std::to_string(inputs.size() + 1)},
              {"num_outputs", std::to_string(num_out + states.size())},
              {"num_out_data", std::to_string(num_out)},
              {"in_data_locs", locs[0]},
              {"in_state_locs", locs[1]},
              {"remain_locs", locs[2]}},
             {body});
}

// Adds a cond with one output. Inputs of its bodies have the names of the values that they receive.
inline void add_cond(FileGraph& graph, const std::string& name, const std::vector<std::string>& inputs,
                     const FileGraph& predicate, const FileGraph& then_branch, const FileGraph& else_branch) {
  const auto locs = [&](const FileGraph& body) {
    std::string text = "(";
    for (const std::string& input : body.reached_inputs())
      text += std::to_string(std::find(inputs.begin(), inputs.end(), input) - inputs.begin()) + ",";
    return text + ")";
  };
  graph.node("_cond", name, inputs,
             {{"num_args", std::to_string(inputs.size() + 3)},
              {"num_outputs", "1"},
              {"cond_input_locs", locs(predicate)},
              {"then_input_locs", locs(then_branch)},
              {"else_input_locs", locs(else_branch)}},
             {predicate, then_branch, else_branch});
}

}  // namespace hybridnet::graph_testing
