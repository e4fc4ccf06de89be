#include "passes/preparation.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "hybridnet/ndarray.h"

namespace hybridnet {
namespace {

const char kAttribute[] = "__preparation__";

EntryMap copy_inputs(const Graph& from, Graph& to) {
  EntryMap map;
  for (const NodePtr& input : from.inputs()) {
    const NodeEntry entry{input, 0};
    map[entry] = {to.add_input(input->name, input->specs[0], from.format(entry)), 0};
  }
  return map;
}

// Identifies the array and its current value.
std::string constant_text(const Object& constant) {
  const Chunk& chunk = static_cast<const ArrayImpl&>(constant).chunk->owner();
  return "constant " + std::to_string(reinterpret_cast<uintptr_t>(&constant)) + "/" +
         std::to_string(chunk.overwrites.load(std::memory_order_relaxed)) + " ";
}

// Describes a preparation. Names of nodes do not matter, and inputs count in the order in which they are read.
std::string recipe_of(const Graph& graph, const std::vector<int>& reads) {
  std::unordered_map<const Node*, std::string> names;
  for (size_t i = 0; i < reads.size(); ++i)
    names[graph.inputs()[static_cast<size_t>(reads[i])].get()] = "input " + std::to_string(i);
  const auto name = [&](const NodeEntry& entry) {
    return names.at(entry.node.get()) + "." + std::to_string(entry.index) + " ";
  };
  std::string recipe;
  for (const Node* node : graph.order()) {
    const auto input = names.find(node);
    if (node->is_variable() && !node->constant && input == names.end()) continue;  // not read
    if (input != names.end()) {
      recipe += input->second;
    } else {
      names[node] = std::to_string(names.size());
      recipe += node->constant ? constant_text(*node->constant) : node->op->name + " ";
    }
    for (const NodeEntry& read : node->inputs) recipe += name(read);
    if (node->op) {
      for (const auto& [key, value] : node->op->schema->print(node->params->data())) recipe += key + "=" + value + " ";
    }
    for (const Ref<Subgraph>& body : node->subgraphs)
      recipe += std::to_string(reinterpret_cast<uintptr_t>(body.get())) + " ";
    for (size_t i = 0; i < node->specs.size(); ++i) {
      const Format format = graph.format({NodePtr(const_cast<Node*>(node)), static_cast<uint32_t>(i)});
      recipe += node->specs[i].str() + "/" + std::to_string(static_cast<int>(format)) + " ";
    }
    recipe += "\n";
  }
  for (const NodeEntry& output : graph.outputs()) recipe += name(output);
  return recipe;
}

}  // namespace

void mark_as_preparation(Node& node) { node.attrs[kAttribute] = "1"; }
bool is_preparation(const Node& node) { return node.attrs.count(kAttribute) != 0; }

bool is_parameter(const Graph& graph, const NodeEntry& entry) {
  return entry.node->is_variable() ? graph.input_index(entry.node.get()) >= 0 || entry.node->constant
                                   : is_preparation(*entry.node);
}

bool has_preparation(const Graph& graph) {
  const std::vector<Node*> nodes = graph.order();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return is_preparation(*node); });
}

PreparationSplit split_preparation(const Graph& graph) {
  std::vector<NodeEntry> crossing;
  auto cross = [&](const NodeEntry& entry) {
    if (is_preparation(*entry.node) && std::find(crossing.begin(), crossing.end(), entry) == crossing.end()) {
      crossing.push_back(entry);
    }
  };
  for (const Node* node : graph.schedule()) {
    if (is_preparation(*node)) continue;
    for (const NodeEntry& input : node->inputs) cross(input);
  }
  for (const NodeEntry& output : graph.outputs()) cross(output);

  PreparationSplit split{Graph(graph.train()), Graph(graph.train()), {}, static_cast<int>(crossing.size())};
  EntryMap prepared = copy_inputs(graph, split.preparation);
  for (const NodeEntry& clone : split.preparation.import(graph, crossing, prepared))
    split.preparation.add_output(clone);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (split.preparation.is_used(*split.preparation.inputs()[i], 0)) split.reads.push_back(static_cast<int>(i));
  }

  split.recipe = recipe_of(split.preparation, split.reads);

  EntryMap main = copy_inputs(graph, split.main);
  for (const NodeEntry& entry : crossing) {
    main[entry] = {split.main.add_input(entry.node->name, graph.spec(entry), graph.format(entry)), 0};
  }
  std::vector<NodeEntry> wanted = graph.outputs();
  for (const Graph::Writeback& writeback : graph.writebacks()) wanted.push_back(writeback.value);
  const std::vector<NodeEntry> clones = split.main.import(graph, wanted, main);
  const size_t num_outputs = graph.outputs().size();
  for (size_t i = 0; i < num_outputs; ++i) split.main.add_output(clones[i]);
  for (size_t i = num_outputs; i < clones.size(); ++i) {
    split.main.add_writeback(graph.writebacks()[i - num_outputs].input, clones[i]);
  }
  return split;
}

}  // namespace hybridnet
