// Cuts a body out of the graph that a trace has made: by identity of nodes, never by their names.
#include <unordered_map>
#include <unordered_set>

#include "graph/control/control_flow.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"};

class Capture {
 public:
  Capture(const std::vector<NodePtr>& slots, const CaptureOptions& options) : slots_(slots), options_(options) {
    for (const NodePtr& slot : slots) reads_slot_.insert(slot.get());
  }

  CapturedBody run(const std::vector<NodeEntry>& results) {
    find_inside(results);
    result_.body = make_ref<Subgraph>();
    for (const NodeEntry& entry : results) result_.body->outputs.push_back(head(copied(entry)));
    order_inputs();
    return std::move(result_);
  }

 private:
  // A node belongs to the body if it depends on a slot, or was made while the body was traced. A slot may be a value
  // of the surrounding graph that nodes made before the body read, too: these nodes stay outside.
  void find_inside(const std::vector<NodeEntry>& results) {
    for (Node* node : topological_order(results)) {
      if (node->is_variable()) continue;
      bool depends = false, inside = false;
      for (const NodeEntry& input : node->inputs) {
        depends = depends || reads_slot_.count(input.node.get()) != 0;
        inside = inside || inside_.count(input.node.get()) != 0;
      }
      const bool made_inside = options_.made_inside && options_.made_inside(node);
      depends = depends && (made_inside || !options_.made_inside);
      if (depends) reads_slot_.insert(node);
      if (depends || inside || (made_inside && !(options_.hoist && may_hoist(*node)))) inside_.insert(node);
    }
  }

  static bool may_hoist(const Node& node) {
    return node.subgraphs.empty() && node.op->total && !node.op->random && !node.op->opaque &&
           !node.op->has_writebacks() && !node.op->data_dependent_shape;
  }

  NodeEntry copied(const NodeEntry& entry) {
    for (Node* node : topological_order({entry})) {
      if (inside_.count(node) == 0 || copies_.count(node) != 0) continue;
      std::vector<NodeEntry> inputs;
      for (const NodeEntry& input : node->inputs) inputs.push_back(mapped(input));
      NodePtr copy = copy_of(*node, std::move(inputs));
      copy->specs = node->specs;
      copies_[node] = std::move(copy);
    }
    return mapped(entry);
  }

  NodeEntry mapped(const NodeEntry& entry) {
    if (const auto found = copies_.find(entry.node.get()); found != copies_.end()) return {found->second, entry.index};
    if (const auto found = borders_.find(entry); found != borders_.end()) return {found->second, 0};
    const NodePtr variable = make_variable(unique_name(entry));
    if (entry.index < entry.node->specs.size()) variable->specs = {entry.node->specs[entry.index]};
    variable->where = entry.node->where;
    borders_[entry] = variable;
    return {variable, 0};
  }

  std::string unique_name(const NodeEntry& entry) {
    std::string name = entry.node->name;
    if (!entry.node->is_variable())
      name += entry.node->num_outputs() > 1 ? "_output" + std::to_string(entry.index) : "_output";
    std::string candidate = name;
    for (int number = 1; !names_.insert(candidate).second; ++number) candidate = name + "_" + std::to_string(number);
    return candidate;
  }

  // MXNet cannot infer a body whose head is a variable.
  NodeEntry head(const NodeEntry& entry) {
    if (!entry.node->is_variable()) return entry;
    NodePtr& copy = head_copies_[entry.node.get()];
    if (!copy) {
      copy = make_node(kCopy.op(), entry.node->name + "_copy", kCopy.op().default_params, {entry});
      copy->specs = entry.node->specs;
      copy->where = entry.node->where;
    }
    return {copy, 0};
  }

  void order_inputs() {
    Subgraph& body = *result_.body;
    for (const NodePtr& slot : slots_) {
      body.inputs.push_back(mapped({slot, 0}).node);
      borders_.erase({slot, 0});
    }
    std::unordered_map<const Node*, NodeEntry> outside;
    for (const auto& [entry, variable] : borders_) outside.emplace(variable.get(), entry);
    for (Node* node : topological_order(body.outputs)) {
      const auto found = outside.find(node);
      if (found == outside.end()) continue;
      body.inputs.push_back(NodePtr(node));
      result_.captured.push_back(found->second);
    }
  }

  const std::vector<NodePtr>& slots_;
  const CaptureOptions& options_;
  std::unordered_set<const Node*> reads_slot_, inside_;
  std::unordered_map<const Node*, NodePtr> copies_, head_copies_;
  std::unordered_map<NodeEntry, NodePtr, NodeEntryHash> borders_;
  std::unordered_set<std::string> names_;
  CapturedBody result_;
};

}  // namespace

CapturedBody capture_body(const std::vector<NodeEntry>& results, const std::vector<NodePtr>& slots,
                          const CaptureOptions& options) {
  return Capture(slots, options).run(results);
}

}  // namespace hybridnet
