// Joins groups of elementwise nodes over one shape to one node, so that values between them never leave the cache.
#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "op/pointwise_program.h"
#include "passes/preparation.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kFusedElementwise{"_fused_elementwise"};

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.ndim() > to.ndim()) return false;
  for (int i = 1; i <= from.ndim(); ++i) {
    const int64_t size = from[from.ndim() - i];
    if (size != 1 && size != to[to.ndim() - i]) return false;
  }
  return true;
}

bool may_fuse(const Graph& graph, const Node& node) {
  if (node.is_variable() || !node.op->pointwise || node.specs.size() != 1 || node.op->random || node.op->opaque ||
      !node.control.empty() || is_preparation(node) || node.inputs.empty() ||
      node.inputs.size() > PointwiseProgram::kMaxOperands) {
    return false;
  }
  const TensorSpec& out = node.specs[0];
  const Format format = graph.format({NodePtr(const_cast<Node*>(&node)), 0});
  if (out.shape.size() == 0) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const NodeEntry& input) {
    const TensorSpec& in = graph.spec(input);
    if (in.dtype != out.dtype) return false;
    return in.shape == out.shape ? graph.format(input) == format : broadcasts_to(in.shape, out.shape);
  });
}

struct Group {
  std::vector<Node*> members;
  bool has(const Node* node) const { return std::find(members.begin(), members.end(), node) != members.end(); }
};

// A walk over nodes that visits each node once.
struct Search {
  std::vector<const Node*> pending;
  std::unordered_set<const Node*> seen;
  size_t work = 0;  // edges looked at

  void visit(const Node* node, bool inside) {
    ++work;
    if (inside && seen.insert(node).second) pending.push_back(node);
  }
  const Node* take() {
    const Node* node = pending.back();
    pending.pop_back();
    return node;
  }
};

class Fusion {
 public:
  explicit Fusion(Graph& graph) : graph_(graph) {}

  bool run() {
    if (!has_pair()) return false;
    for (Node* node : graph_.schedule()) {
      if (may_fuse(graph_, *node)) join(node);
    }
    bool changed = false;
    for (const auto& group : groups_) {
      if (group->members.size() >= 2) changed = build(*group) || changed;
    }
    return changed;
  }

 private:
  using GroupPtr = std::shared_ptr<Group>;

  // A quick check: to make the schedule of a large graph takes longer.
  bool has_pair() const {
    const std::vector<Node*> nodes = graph_.order();
    return std::count_if(nodes.begin(), nodes.end(), [&](const Node* node) { return may_fuse(graph_, *node); }) >= 2;
  }

  // Joins `node` with the groups of its producers, as many as may become one group.
  void join(Node* node) {
    auto own = std::make_shared<Group>();
    own->members = {node};
    for (const NodeEntry& input : node->inputs) {
      const auto it = group_of_.find(input.node.get());
      if (it == group_of_.end() || it->second == own || !agrees(*node, *input.node)) continue;
      const GroupPtr other = it->second;
      Group both = *own;
      both.members.insert(both.members.end(), other->members.begin(), other->members.end());
      if (!fits(both) || !convex(both)) continue;
      for (Node* member : other->members) group_of_[member] = own;
      own->members = std::move(both.members);
      other->members.clear();
    }
    group_of_[node] = own;
    groups_.push_back(own);
  }

  bool agrees(const Node& a, const Node& b) const {
    return a.specs[0] == b.specs[0] &&
           graph_.format({NodePtr(const_cast<Node*>(&a)), 0}) == graph_.format({NodePtr(const_cast<Node*>(&b)), 0});
  }

  std::vector<NodeEntry> inputs_of(const Group& group) const {
    std::vector<NodeEntry> inputs;
    for (const Node* member : group.members) {
      for (const NodeEntry& input : member->inputs) {
        if (!group.has(input.node.get()) && std::find(inputs.begin(), inputs.end(), input) == inputs.end()) {
          inputs.push_back(input);
        }
      }
    }
    return inputs;
  }

  bool read_outside(const Group& group, const Node& member) const {
    const std::vector<Client>& readers = graph_.clients(member, 0);
    return std::any_of(readers.begin(), readers.end(), [&](const Client& c) { return !c.node || !group.has(c.node); });
  }

  // Checked while the group still grows: later readers may still join, so outputs are counted only at the end.
  bool fits(const Group& group) const {
    return group.members.size() <= PointwiseProgram::kMaxSteps &&
           inputs_of(group).size() <= PointwiseProgram::kMaxInputs;
  }

  // True if no value leaves the group and comes back through nodes outside: otherwise the group could not run as one.
  // Searches from both ends by turns, because often one of the ways is short: from the inputs of the group back to its
  // first member, and from its readers on to the last one.
  bool convex(const Group& group) const {
    int64_t lowest = graph_.label(*group.members[0]), highest = lowest;
    for (const Node* member : group.members) {
      lowest = std::min(lowest, graph_.label(*member));
      highest = std::max(highest, graph_.label(*member));
    }
    Search back, on;
    auto visit_input = [&](const NodeEntry& input) {
      back.visit(input.node.get(), graph_.label(*input.node) >= lowest);
    };
    auto visit_reader = [&](const Client& c) { on.visit(c.node, c.node && graph_.label(*c.node) <= highest); };
    for (const NodeEntry& input : inputs_of(group)) visit_input(input);
    for (const Node* member : group.members) {
      for (const Client& c : graph_.clients(*member, 0)) {
        if (!group.has(c.node)) visit_reader(c);
      }
    }
    while (!back.pending.empty() && !on.pending.empty()) {
      const bool goes_back = back.work <= on.work;
      const Node* node = (goes_back ? back : on).take();
      if (group.has(node)) return false;
      if (goes_back) {
        for (const NodeEntry& input : node->inputs) visit_input(input);
        continue;
      }
      for (int i = 0; i < static_cast<int>(node->specs.size()); ++i) {
        for (const Client& c : graph_.clients(*node, i)) visit_reader(c);
      }
    }
    return true;
  }

  bool build(Group& group) {
    // Groups grew against the graph as it was; building others kept all dependencies, but changed the nodes between.
    if (!std::all_of(group.members.begin(), group.members.end(), [&](Node* m) { return graph_.contains(m); }))
      return false;
    if (!convex(group)) return false;
    std::sort(group.members.begin(), group.members.end(),
              [&](Node* a, Node* b) { return graph_.label(*a) < graph_.label(*b); });
    const std::vector<NodeEntry> inputs = inputs_of(group);
    PointwiseProgram program;
    program.num_inputs = static_cast<int>(inputs.size());
    std::vector<Node*> results;
    std::unordered_map<const Node*, int> slot_of;
    for (size_t s = 0; s < group.members.size(); ++s) {
      Node* member = group.members[s];
      PointwiseProgram::Step step{member->op, member->params, {}};
      for (const NodeEntry& input : member->inputs) {
        const auto made = slot_of.find(input.node.get());
        step.in.push_back(made != slot_of.end()
                              ? made->second
                              : static_cast<int>(std::find(inputs.begin(), inputs.end(), input) - inputs.begin()));
      }
      const int slot = program.num_inputs + static_cast<int>(s);
      slot_of[member] = slot;
      program.steps.push_back(std::move(step));
      if (!read_outside(group, *member)) continue;
      program.outputs.push_back(slot);
      results.push_back(member);
    }
    if (results.size() > PointwiseProgram::kMaxOutputs) return false;
    choose_memory(program, inputs, results);
    const Format format = graph_.format({NodePtr(group.members[0]), 0});
    const Node* last = group.members.back();
    const Graph::Checkpoint before = graph_.checkpoint();
    const NodePtr fused =
        graph_.add(kFusedElementwise.op(), ParamSchema<PointwiseProgram>::box(std::move(program)), inputs, last);
    Graph::Pairs pairs;
    for (uint32_t i = 0; i < results.size(); ++i) {
      graph_.set_format({fused, i}, format);
      pairs.push_back({NodeEntry{NodePtr(results[i]), 0}, NodeEntry{fused, i}});
    }
    const bool built = graph_.replace_validate(pairs, group.members);
    if (!built) graph_.revert(before);
    graph_.release(before);
    return built;
  }

  // An output may be written over an input once no later step reads that input. Inputs that only this node reads come
  // first: their memory is free afterwards.
  // Variables come last, for callers that donate their arrays, except for the variable that holds the output after the
  // call.
  void choose_memory(PointwiseProgram& program, const std::vector<NodeEntry>& inputs,
                     const std::vector<Node*>& results) const {
    program.memory_of.assign(program.outputs.size(), -1);
    const TensorSpec& result = results[0]->specs[0];
    std::vector<bool> given(inputs.size());
    const auto choose = [&](const auto& may_take) {
      for (size_t o = 0; o < program.outputs.size(); ++o) {
        const int step = program.outputs[o] - program.num_inputs;
        for (size_t i = 0; i < inputs.size() && program.memory_of[o] < 0; ++i) {
          if (given[i] || !(graph_.spec(inputs[i]) == result) || !may_take(*results[o], *inputs[i].node)) continue;
          if (program.last_reader(static_cast<int>(i)) > step) continue;
          program.memory_of[o] = static_cast<int>(i);
          given[i] = true;
        }
      }
    };
    choose([this](const Node& out, const Node& in) { return in.is_variable() && is_written_back(out, in); });
    choose([](const Node&, const Node& in) { return !in.is_variable(); });
    choose([](const Node&, const Node& in) { return in.is_variable(); });
  }

  bool is_written_back(const Node& result, const Node& variable) const {
    const std::vector<Client>& readers = graph_.clients(result, 0);
    return std::any_of(readers.begin(), readers.end(), [&](const Client& reader) {
      return reader.kind == Client::Kind::kWriteback &&
             graph_.writebacks()[static_cast<size_t>(reader.index)].input == graph_.input_index(&variable);
    });
  }

  Graph& graph_;
  std::unordered_map<const Node*, GroupPtr> group_of_;
  std::vector<GroupPtr> groups_;
};

}  // namespace

bool fuse_elementwise(Graph& graph) { return Fusion(graph).run(); }

}  // namespace hybridnet::passes
