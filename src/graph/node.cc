#include <utility>
#include <vector>

#include "graph/node_table.h"
#include "hybridnet/graph.h"

namespace hybridnet {
namespace {

// Moves the producers of the node into `pending`, so that destructors do not recurse along the graph.
void take_producers(Node& node, std::vector<NodePtr>& pending) {
  for (NodeEntry& input : node.inputs) pending.push_back(std::move(input.node));
  for (NodePtr& before : node.control) pending.push_back(std::move(before));
  node.inputs.clear();
  node.control.clear();
}

[[noreturn]] void throw_cycle(const Node& node) {
  throw Error(ErrorKind::kError, {.op = node.op ? node.op->name : "",
                                  .node = node.name,
                                  .block = node.block,
                                  .message = "the graph has a cycle through this node",
                                  .where = node.where});
}

}  // namespace

Node::~Node() {
  std::vector<NodePtr> pending;
  take_producers(*this, pending);
  while (!pending.empty()) {
    NodePtr last = std::move(pending.back());
    pending.pop_back();
    // Only the last holder may look inside. If two threads drop their handles at the same time, one sees a count above
    // one and leaves this work to the other's destructor call.
    if (last && last->ref_count() == 1) take_producers(*last, pending);
  }
}

NodePtr make_variable(std::string name) {
  auto node = make_ref<Node>();
  node->name = std::move(name);
  return node;
}

NodePtr make_node(const Op& op, std::string name, ParamsPtr params, std::vector<NodeEntry> inputs) {
  auto node = make_ref<Node>();
  node->op = &op;
  node->name = std::move(name);
  node->params = std::move(params);
  node->inputs = std::move(inputs);
  return node;
}

NodePtr copy_of(const Node& node, std::vector<NodeEntry> inputs) {
  auto copy = make_ref<Node>();
  copy->op = node.op;
  copy->name = node.name;
  copy->params = node.params;
  copy->attrs = node.attrs;
  copy->inputs = std::move(inputs);
  copy->subgraphs = node.subgraphs;
  copy->where = node.where;
  copy->block = node.block;
  copy->constant = node.constant;
  return copy;
}

std::vector<Node*> topological_order(const std::vector<NodeEntry>& outputs) {
  struct Frame {
    Node* node;
    size_t next;  // inputs first, then control producers
  };
  std::vector<Node*> order;
  NodeTable<bool> finished;  // absent: not seen; false: on the stack
  std::vector<Frame> stack;
  auto enter = [&](Node* node) {
    const auto [is_finished, is_new] = finished.insert(node, false);
    if (is_new) {
      stack.push_back({node, 0});
    } else if (!is_finished) {
      throw_cycle(*node);
    }
  };
  for (const NodeEntry& output : outputs) {
    if (!output.node) continue;
    if (finished.find(output.node.get())) continue;
    enter(output.node.get());
    while (!stack.empty()) {
      Frame& top = stack.back();
      Node* node = top.node;
      const size_t index = top.next++;
      if (index < node->inputs.size()) {
        if (Node* producer = node->inputs[index].node.get()) enter(producer);
      } else if (index < node->inputs.size() + node->control.size()) {
        enter(node->control[index - node->inputs.size()].get());
      } else {
        *finished.find(node) = true;
        order.push_back(node);
        stack.pop_back();
      }
    }
  }
  return order;
}

}  // namespace hybridnet
