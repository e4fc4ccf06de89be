#include "plan/segments.h"

#include <algorithm>

#include "base/hash.h"
#include "graph/control/control_flow.h"
#include "graph/control/input_use.h"
#include "hybridnet/custom.h"
#include "hybridnet/imperative.h"
#include "hybridnet/sparse.h"
#include "ndarray/device_work.h"
#include "plan/control/control_kernel.h"
#include "plan/control/sized_loops.h"
#include "plan/graph_callable.h"
#include "plan/graph_position.h"
#include "plan/storages.h"
#include "sparse/operators.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"};

bool is_lazy_operator(const Node& node) { return node.op->is_lazy && node.op->is_lazy(node.params->data()); }

// Random nodes of different parts draw from different streams.
RngKey key_of_part(const RngKey& key, size_t part) {
  return {key.seed, key.stream ^ (kGoldenRatio * (static_cast<uint64_t>(part) + 1))};
}

}  // namespace

bool SegmentedGraph::cuts_at(const Node& node, bool for_gradient) {
  return has_dynamic_shape(node) || (for_gradient && (is_unbounded(node) || has_unbounded_body(node)));
}

bool SegmentedGraph::makes_sparse(const Node& node) {
  if (node.is_variable() || !node.subgraphs.empty()) return false;
  const std::vector<StorageType> dense(node.inputs.size(), StorageType::kDefault);
  return sparse_form(*node.op, node.params, dense).has_value();
}

bool SegmentedGraph::is_lazy(const Node& node, bool for_gradient) {
  if (node.is_variable() || !cuts_at(node, for_gradient)) return false;
  return is_lazy_operator(node) || control_kind(node) == ControlKind::kCond;
}

// ------------------------------------------------------------------------------------------------------------- cutting
struct SegmentedGraph::Cutter {
  explicit Cutter(SegmentedGraph& result) : graph(result), order(topological_order(result.definition_.outputs)) {}

  void run(std::span<const StorageType> storages) {
    if (!storages.empty())
      keep_storage = infer_storages(graph.definition_, storages, [this](const Node& node) {
                       return cuts_at(node, graph.for_gradient_);
                     }).have_form;
    for (const Node* node : order) {
      if (node->is_variable()) continue;
      if (cuts_at(*node, graph.for_gradient_) || keep_storage.count(node) != 0) cuts.insert(node);
      int level = 0;
      for (const NodeEntry& input : node->inputs) {
        const Node* from = input.node.get();
        if (!from->is_variable()) level = std::max(level, level_of.at(from) + static_cast<int>(cuts.count(from)));
      }
      level_of[node] = level;
    }
    find_requests();
    const std::vector<std::vector<const Node*>> members = group();
    find_writers();
    connect(members);
    for (size_t part = 0; part < members.size(); ++part)
      if (!graph.parts_[part].cut) make_segment(members[part], static_cast<int>(part));
  }

 private:
  void find_requests() {
    for (const NodeEntry& output : graph.definition_.outputs) always.insert(output.node.get());
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const Node& node = **it;
      if (node.is_variable()) continue;
      const bool lazy = is_lazy(node, graph.for_gradient_);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const Node* from = node.inputs[i].node.get();
        if (lazy)
          requests_of[from].insert({&node, i});
        else if (always.count(&node) != 0)
          always.insert(from);
        else
          requests_of[from].insert(requests_of[&node].begin(), requests_of[&node].end());
      }
    }
  }

  // Nodes of one level with the same requests form one segment. A cut comes after the segments of its level.
  std::vector<std::vector<const Node*>> group() {
    std::map<std::tuple<int, bool, Requests>, std::vector<const Node*>> segments;
    std::map<int, std::vector<const Node*>> cuts_of_level;
    for (const Node* node : order) {
      if (node->is_variable()) continue;
      const int level = level_of.at(node);
      const bool on_request = always.count(node) == 0;
      if (cuts.count(node) != 0)
        cuts_of_level[level].push_back(node);
      else
        segments[{level, on_request, on_request ? requests_of[node] : Requests()}].push_back(node);
    }
    std::vector<std::vector<const Node*>> members;
    auto add = [&](std::vector<const Node*> nodes, bool on_request) {
      for (const Node* node : nodes) part_of[node] = static_cast<int>(members.size());
      graph.parts_.emplace_back().on_request = on_request;
      members.push_back(std::move(nodes));
    };
    auto next = segments.begin();
    for (int level = 0; next != segments.end() || cuts_of_level.count(level) != 0; ++level) {
      for (; next != segments.end() && std::get<0>(next->first) == level; ++next)
        add(std::move(next->second), std::get<1>(next->first));
      for (const Node* cut : cuts_of_level[level]) {
        add({cut}, always.count(cut) == 0);
        graph.parts_.back().cut = cut;
        graph.parts_.back().keeps_storage = keep_storage.count(cut) != 0;
      }
    }
    return members;
  }

  // Finds the sources of the values that each part and the caller read, and with them the outputs of each part.
  void connect(const std::vector<std::vector<const Node*>>& members) {
    for (size_t part = 0; part < members.size(); ++part) {
      if (const Node* cut = graph.parts_[part].cut) {
        for (size_t i = 0; i < cut->inputs.size(); ++i)
          graph.parts_[part].inputs.push_back(source_of(read_entry(*cut, i, static_cast<int>(part))));
      } else {
        find_crossing(members[part], static_cast<int>(part));
      }
    }
    for (const NodeEntry& output : graph.definition_.outputs)
      graph.outputs_.push_back(source_of(writers.count(output.node.get()) != 0 ? first_value(output) : output));
  }

  // Finds the parts that write to inputs of the graph.
  void find_writers() {
    if (!graph.definition_.commits_writebacks) return;
    for (const Node* node : order)
      for (size_t i = 0; i < node->inputs.size(); ++i)
        if (node->inputs[i].node->is_variable() && writes_input(*node, i, graph.train_))
          writers[node->inputs[i].node.get()].insert(part_of.at(node));
  }

  // Returns the value that a node of a part reads as its input: an input of the graph as it was when the call began,
  // although another part may have written to it by then. Updates of states by several parts follow each other.
  NodeEntry read_entry(const Node& node, size_t input, int part) {
    const NodeEntry& entry = node.inputs[input];
    const auto found = writers.find(entry.node.get());
    if (found == writers.end() || writes_input(node, input, graph.train_)) return entry;
    const auto may_run_before = [&](int writer) {
      return writer != part && (writer < part || is_on_request(writer) || is_on_request(part));
    };
    return std::any_of(found->second.begin(), found->second.end(), may_run_before) ? first_value(entry) : entry;
  }

  // Returns the variable that stands for the first value of an input of the graph.
  NodeEntry first_value(const NodeEntry& entry) {
    NodePtr& variable = first_values[entry.node.get()];
    if (!variable) variable = make_variable(entry.node->name);
    return {variable, 0};
  }

  bool is_on_request(int part) const { return graph.parts_[static_cast<size_t>(part)].on_request; }

  // Values of a part that other parts or the caller read get numbers, in the order of first use.
  int output_of(const NodeEntry& entry) {
    std::vector<NodeEntry>& outputs = outputs_of[part_of.at(entry.node.get())];
    const auto found = std::find(outputs.begin(), outputs.end(), entry);
    if (found != outputs.end()) return static_cast<int>(found - outputs.begin());
    outputs.push_back(entry);
    return static_cast<int>(outputs.size()) - 1;
  }

  Source source_of(const NodeEntry& entry) {
    const Node* node = entry.node.get();
    if (!node->is_variable()) {
      const int part = part_of.at(node);
      const bool is_cut = graph.parts_[static_cast<size_t>(part)].cut != nullptr;
      return {Source::Kind::kPart, part, is_cut ? static_cast<int>(entry.index) : output_of(entry), {}};
    }
    if (node->constant)
      return {Source::Kind::kConstant, 0, 0, NDArray(Ref<ArrayImpl>(static_cast<ArrayImpl*>(node->constant.get())))};
    const auto stands_for = [&](const auto& value) { return value.second.get() == node; };
    const auto first = std::find_if(first_values.begin(), first_values.end(), stands_for);
    const bool is_first = first != first_values.end();
    const auto& inputs = graph.definition_.inputs;
    const auto is_it = [&](const NodePtr& input) { return input.get() == (is_first ? first->first : node); };
    const int number = static_cast<int>(std::find_if(inputs.begin(), inputs.end(), is_it) - inputs.begin());
    if (is_first) graph.copied_inputs_.insert(number);
    return {is_first ? Source::Kind::kFirstValue : Source::Kind::kInput, 0, number, {}};
  }

  // Finds the inputs of a segment: the values of other parts that its nodes read. Constants are not inputs: they are
  // shared.
  void find_crossing(const std::vector<const Node*>& nodes, int part) {
    auto& crossing = crossing_of[part];
    for (const Node* node : nodes) {
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        const NodeEntry input = read_entry(*node, i, part);
        const Node* from = input.node.get();
        if (from->is_variable() ? from->constant != nullptr : part_of.at(from) == part) continue;
        const auto known = static_cast<size_t>(std::find(crossing.begin(), crossing.end(), input) - crossing.begin());
        if (known == crossing.size()) {
          crossing.push_back(input);
          const Source source = source_of(input);  // may add parts' outputs
          graph.parts_[static_cast<size_t>(part)].inputs.push_back(source);
          graph.parts_[static_cast<size_t>(part)].readers.emplace_back();
        }
        graph.parts_[static_cast<size_t>(part)].readers[known].push_back(node);
      }
    }
  }

  void make_segment(const std::vector<const Node*>& nodes, int part) {
    GraphDefinition definition;
    definition.commits_writebacks = graph.definition_.commits_writebacks;
    std::unordered_map<NodeEntry, NodeEntry, NodeEntryHash> copies;
    for (const NodeEntry& entry : crossing_of[part]) {
      definition.inputs.push_back(make_variable(entry.node->name));
      copies[entry] = {definition.inputs.back(), 0};
    }
    for (const Node* node : nodes) {
      std::vector<NodeEntry> read;
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        const NodeEntry input = read_entry(*node, i, part);
        const auto copy = copies.find(input);
        read.push_back(copy == copies.end() ? input : copy->second);  // constants are shared
      }
      const NodePtr copy = copy_of(*node, std::move(read));
      for (uint32_t i = 0; i < static_cast<uint32_t>(node->num_outputs()); ++i)
        copies[{NodePtr(const_cast<Node*>(node)), i}] = {copy, i};
    }
    for (const NodeEntry& output : outputs_of[part]) definition.outputs.push_back(copies.at(output));
    graph.parts_[static_cast<size_t>(part)].function = make_ref<GraphCallable>(std::move(definition), graph.options_);
    ++graph.num_segments_;
  }

  SegmentedGraph& graph;
  const std::vector<Node*> order;
  std::set<const Node*> cuts, always, keep_storage;
  std::unordered_map<const Node*, int> level_of, part_of;
  std::unordered_map<const Node*, Requests> requests_of;
  std::map<int, std::vector<NodeEntry>> outputs_of, crossing_of;
  std::unordered_map<const Node*, std::set<int>> writers;  // parts by variable
  std::unordered_map<const Node*, NodePtr> first_values;   // by variable
};

SegmentedGraph::SegmentedGraph(const GraphDefinition& definition, const CompileOptions& options, bool for_gradient,
                               bool train, std::span<const StorageType> storages)
    : definition_(definition), options_(options), for_gradient_(for_gradient), train_(train) {
  if (definition.commits_writebacks) check_writers(definition, train);
  Cutter(*this).run(storages);
}

// ------------------------------------------------------------------------------------------------------------ one call
class SegmentedGraph::Run {
 public:
  Run(SegmentedGraph& graph, std::span<const NDArray> inputs, RngKey key)
      : graph_(graph), inputs_(inputs), key_(key), values_(graph.parts_.size()), done_(graph.parts_.size()) {}

  std::vector<NDArray> outputs() {
    for (const int input : graph_.copied_inputs_)
      first_values_[input] =
          invoke_one(kCopy.op(), kCopy.op().default_params, {&inputs_[static_cast<size_t>(input)], 1});
    for (size_t part = 0; part < graph_.parts_.size(); ++part)
      if (!graph_.parts_[part].on_request) run(part);
    std::vector<NDArray> results;
    for (const Source& output : graph_.outputs_) {
      results.push_back(value(output));
      if (output.kind == Source::Kind::kConstant)  // later calls read the constant
        results.back() = invoke_one(kCopy.op(), kCopy.op().default_params, {&results.back(), 1});
    }
    return results;
  }

 private:
  NDArray value(const Source& source) {
    if (source.kind == Source::Kind::kInput) return inputs_[static_cast<size_t>(source.index)];
    if (source.kind == Source::Kind::kFirstValue) return first_values_.at(source.index);
    if (source.kind == Source::Kind::kConstant) return source.constant;
    const auto part = static_cast<size_t>(source.part);
    run(part);
    return values_[part][static_cast<size_t>(source.index)];
  }

  void run(size_t number) {
    if (done_[number]) return;
    const Part& part = graph_.parts_[number];
    if (!part.cut) {
      values_[number] = part.function->call(values_of(part), {}, key_of_part(key_, number));
    } else {
      try {
        values_[number] = results_of(part, *part.cut, key_of_part(key_, number));
      } catch (Error& error) {
        const Node& node = *part.cut;
        error.add_context({.op = node.op->name, .node = node.name, .block = node.block, .where = node.where});
        throw;
      }
    }
    done_[number] = true;
  }

  std::vector<NDArray> values_of(const Part& part) {
    std::vector<NDArray> values;
    for (size_t i = 0; i < part.inputs.size(); ++i)
      values.push_back(part.keeps_storage ? value(part.inputs[i]) : dense_value(part, i));
    return values;
  }

  // Returns an input for a part that needs dense values. Warns which operators made a copy of a sparse value necessary.
  NDArray dense_value(const Part& part, size_t input) {
    const Source& source = part.inputs[input];
    const NDArray found = value(source);
    if (!found.is_sparse()) return found;
    NDArray& dense = dense_[{source.kind, source.part, source.index}];
    if (!dense) dense = dense_form(found);
    if (!needs_copy(found)) return dense;
    const std::string because =
        std::string("it has no form for an input in storage ") + storage_type_name(found.storage_type());
    if (part.cut) warn_of_dense_copies(*part.cut->op, place_of(*part.cut), because);
    for (size_t i = 0; !part.cut && i < part.readers[input].size(); ++i)
      warn_of_dense_copies(*part.readers[input][i]->op, place_of(*part.readers[input][i]), because);
    return dense;
  }

  static std::string place_of(const Node& node) {
    return " (node '" + node.name + "'" + (node.block.empty() ? "" : ", block '" + node.block + "'") + ")";
  }

  std::vector<NDArray> results_of(const Part& part, const Node& node, RngKey key) {
    if (is_lazy_operator(node)) return run_lazy(part, node);
    if (control_kind(node) == ControlKind::kCond) return run_cond(part, node, key);
    const std::vector<NDArray> arguments = values_of(part);
    if (part.keeps_storage) {
      std::vector<NDArray> results;
      invoke_sparse(*node.op, node.params, arguments, {}, &results);
      return results;
    }
    if (node.subgraphs.empty()) return invoke(*node.op, node.params, arguments);
    return SizedLoop(graph_, node, arguments, key).run();
  }

  // --------------------------------------------------------------------------------------------- lazy operators, cond
  std::vector<NDArray> run_lazy(const Part& part, const Node& node) {
    const GraphPositionScope place(node, GraphPositionScope::kOperator);
    const auto& use = node.params->as<CustomParams>();
    return custom_operators(use).call_lazy(use, specs_of(node), [&](size_t input) { return dense_value(part, input); });
  }

  std::vector<NDArray> run_cond(const Part& part, const Node& node, RngKey key) {
    auto run_body = [&](size_t body) {
      std::vector<NDArray> arguments;
      const std::vector<bool> read = read_inputs(*node.subgraphs[body]);
      for (size_t input = 0; input < read.size(); ++input)
        if (read[input]) arguments.push_back(dense_value(part, input));
      return graph_.body_of(node, body)->call(arguments, {}, key_of_body_run(key, body));
    };
    const NDArray pred = run_body(0)[0];
    pred.wait_to_read();
    const bool taken = is_true(on_cpu(pred).ref());
    const GraphPositionScope place(node, taken ? GraphPositionScope::kThenBranch : GraphPositionScope::kElseBranch);
    try {
      return run_body(taken ? 1 : 2);
    } catch (const Error&) {
      fail_in_body(node.name + (taken ? ", then branch" : ", else branch"));
    }
  }

  // Returns the specs of a node's inputs, as far as they are known before the inputs are computed.
  std::vector<TensorSpec> specs_of(const Node& node) {
    if (!std::exchange(inferred_, true)) {
      for (size_t i = 0; i < inputs_.size(); ++i) specs_[{graph_.definition_.inputs[i], 0}] = inputs_[i].spec();
      infer_specs(graph_.definition_.outputs, specs_, autograd_state().training);
    }
    std::vector<TensorSpec> specs;
    for (const NodeEntry& input : node.inputs) specs.push_back(specs_.at(input));
    return specs;
  }

  SegmentedGraph& graph_;
  const std::span<const NDArray> inputs_;
  const RngKey key_;
  std::map<int, NDArray> first_values_;       // by input
  std::vector<std::vector<NDArray>> values_;  // per part
  std::vector<bool> done_;
  std::map<std::tuple<Source::Kind, int, int>, NDArray> dense_;  // copies of sparse values
  SpecMap specs_;                                                // known without running
  bool inferred_ = false;
};

std::vector<NDArray> SegmentedGraph::run(std::span<const NDArray> inputs, RngKey key) {
  return Run(*this, inputs, key).outputs();
}

// ---------------------------------------------------------------------------------------------------------- functions
Ref<GraphCallable> SegmentedGraph::function_of(const Node& node, int number,
                                               const std::function<GraphDefinition()>& make) {
  const std::lock_guard lock(mutex_);
  Ref<GraphCallable>& known = functions_[{&node, number}];
  if (!known) {
    CompileOptions options = options_;
    options.name = node.name;
    GraphDefinition definition = make();
    definition.commits_writebacks = definition_.commits_writebacks;
    known = make_ref<GraphCallable>(std::move(definition), std::move(options));
  }
  return known;
}

Ref<GraphCallable> SegmentedGraph::body_of(const Node& node, size_t body) {
  return function_of(node, static_cast<int>(body), [&] {
    GraphDefinition definition{node.subgraphs[body]->inputs, node.subgraphs[body]->outputs};
    if (control_kind(node) == ControlKind::kCond) {  // a branch receives only the inputs that it reads
      const std::vector<bool> read = read_inputs(*node.subgraphs[body]);
      size_t k = 0;
      std::erase_if(definition.inputs, [&](const NodePtr&) { return !read[k++]; });
    }
    return definition;
  });
}

std::vector<Ref<GraphCallable>> SegmentedGraph::functions() {
  std::vector<Ref<GraphCallable>> all;
  for (const Part& part : parts_)
    if (part.function) all.push_back(part.function);
  const std::lock_guard lock(mutex_);
  for (const auto& [key, function] : functions_) all.push_back(function);
  return all;
}

std::string SegmentedGraph::text() const {
  std::string text;
  size_t number = 0;
  for (const Part& part : parts_) {
    if (part.cut)
      text += "cut at " + part.cut->op->name + " '" + part.cut->name + "'" +
              (part.keeps_storage ? ", which reads sparse arrays" : "");
    else
      text += "segment " + std::to_string(number++) + ": " + std::to_string(part.inputs.size()) + " inputs, " +
              std::to_string(part.function->definition().outputs.size()) + " outputs";
    text += part.on_request ? ", on request\n" : "\n";
  }
  return text;
}

}  // namespace hybridnet
