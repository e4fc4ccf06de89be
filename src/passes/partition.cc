#include "passes/partition.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "graph/control/control_flow.h"
#include "passes/control/size_questions.h"
#include "passes/gradient/gradient.h"
#include "passes/loops/commit_states.h"
#include "passes/preparation.h"

namespace hybridnet {
namespace {

const OpRef kSubgraph{"_subgraph"}, kNativeSubgraph{"_native_subgraph"};

bool lies_plainly(const Graph& graph, const Node& node) {
  for (const NodeEntry& input : node.inputs)
    if (graph.format(input) != Format::kPlain) return false;
  for (uint32_t i = 0; i < node.specs.size(); ++i)
    if (graph.format({NodePtr(const_cast<Node*>(&node)), i}) != Format::kPlain) return false;
  return true;
}

bool may_leave(const Graph& graph, const Node& node) {
  return !node.is_variable() && node.op != &kNativeSubgraph.op() && !node.op->composed() &&
         !node.op->data_dependent_shape && node.control.empty() && !is_opaque(node) && !is_random(node) &&
         !has_dynamic_shape(node) && !has_dynamic_body(node) && !is_preparation(node) &&
         node.attrs.count(kKeepAttribute) == 0 && !updates_states(node, graph.train()) && lies_plainly(graph, node);
}

// Nodes by number, in the order of the graph. A set has the number of one of its members; a node outside of all sets is
// a set of its own.
class Sets {
 public:
  Sets(Graph& graph, const Partition::Supports& supports) {
    for (Node* node : graph.order()) nodes_.emplace_back(node);
    const size_t count = nodes_.size();
    set_of_.resize(count);
    members_.resize(count);
    for (size_t v = 0; v < count; ++v) {
      number_[nodes_[v].get()] = static_cast<int>(v);
      set_of_[v] = static_cast<int>(v);
      members_[v] = {static_cast<int>(v)};
    }
    sources_.resize(count);
    for (size_t v = 0; v < count; ++v) {
      for (const NodeEntry& input : nodes_[v]->inputs) sources_[v].push_back(number_.at(input.node.get()));
      for (const NodePtr& before : nodes_[v]->control)
        if (const auto found = number_.find(before.get()); found != number_.end()) sources_[v].push_back(found->second);
      num_edges_ += sources_[v].size();
    }
    choose(graph, supports);
  }

  std::vector<std::vector<NodePtr>> run() {
    join_levels();
    join_neighbors();
    std::vector<std::vector<NodePtr>> sets;
    std::vector<bool> listed(nodes_.size());
    for (size_t v = 0; v < nodes_.size(); ++v) {
      const size_t set = at(set_of_[v]);
      if (!taken_[v] || listed[set]) continue;
      listed[set] = true;
      std::sort(members_[set].begin(), members_[set].end());
      sets.emplace_back();
      for (const int member : members_[set]) sets.back().push_back(nodes_[at(member)]);
    }
    return sets;
  }

 private:
  static size_t at(int number) { return static_cast<size_t>(number); }

  void choose(Graph& graph, const Partition::Supports& supports) {
    taken_.resize(nodes_.size());
    backward_.resize(nodes_.size());
    for (size_t v = 0; v < nodes_.size(); ++v) {
      backward_[v] = nodes_[v]->attrs.count(kHeadAttribute) != 0;
      for (const int source : sources_[v]) backward_[v] = backward_[v] || backward_[at(source)];
      taken_[v] = may_leave(graph, *nodes_[v]) && supports(graph, *nodes_[v]);
    }
  }

  // A first solution in linear time. The level of a node is the largest number of sets that a path to it has left:
  // nodes of one level that read each other become one set, and every path out of a set leads to higher levels.
  void join_levels() {
    std::vector<int> level(nodes_.size());
    for (size_t v = 0; v < nodes_.size(); ++v) {
      level[v] = taken_[v] ? 1 : 0;
      for (const int source : sources_[v]) {
        if (backward_[v] != backward_[at(source)]) continue;  // forward values exist before all others
        const bool leaves = taken_[v] && !taken_[at(source)];
        level[v] = std::max(level[v], level[at(source)] + (leaves ? 1 : 0));
      }
      for (const int source : sources_[v])
        if (may_join(static_cast<int>(v), source) && level[v] == level[at(source)])
          unite(set_of_[v], set_of_[at(source)]);
    }
  }

  bool may_join(int reader, int source) const {
    return taken_[at(reader)] && taken_[at(source)] && backward_[at(reader)] == backward_[at(source)];
  }

  void unite(int a, int b) {
    if (a == b) return;
    if (members_[at(a)].size() < members_[at(b)].size()) std::swap(a, b);
    for (const int member : members_[at(b)]) {
      set_of_[at(member)] = a;
      members_[at(a)].push_back(member);
    }
    members_[at(b)].clear();
  }

  // Joins sets of different levels of which one reads the other, if no path leads out and back. The search has a
  // budget: a graph of very many sets keeps some that could be larger.
  void join_neighbors() {
    budget_ = 64 * (nodes_.size() + num_edges_) + (size_t{1} << 20);
    for (size_t v = 0; v < nodes_.size(); ++v) {
      for (const int source : sources_[v]) {
        const int reader = set_of_[v], read = set_of_[at(source)];
        if (reader != read && may_join(static_cast<int>(v), source) && !leads_back(reader, read)) unite(reader, read);
      }
    }
  }

  // True if a path leads from set `read` through others to set `reader`.
  bool leads_back(int reader, int read) {
    std::unordered_set<int> seen;
    std::vector<int> pending;
    const auto visit = [&](int set) {
      for (const int member : members_[at(set)]) {
        for (const int source : sources_[at(member)]) {
          if (budget_ > 0) --budget_;
          const int from = set_of_[at(source)];
          if (from == set || (set == reader && from == read)) continue;
          if (seen.insert(from).second) pending.push_back(from);
        }
      }
    };
    visit(reader);
    while (!pending.empty()) {
      const int set = pending.back();
      pending.pop_back();
      if (set == read || budget_ == 0) return true;
      visit(set);
    }
    return false;
  }

  std::vector<NodePtr> nodes_;
  std::unordered_map<const Node*, int> number_;
  std::vector<std::vector<int>> sources_;  // per node: the nodes that it reads
  std::vector<bool> taken_, backward_;
  std::vector<int> set_of_;                // per node
  std::vector<std::vector<int>> members_;  // per set; empty for unused numbers
  size_t num_edges_ = 0, budget_ = 0;
};

class Part {
 public:
  Part(Graph& graph, const std::vector<NodePtr>& members) : graph_(graph), members_(members) {
    for (const NodePtr& member : members) inside_.insert(member.get());
    std::unordered_set<NodeEntry, NodeEntryHash> known;
    for (const NodePtr& member : members) {
      for (const NodeEntry& input : member->inputs)
        if (is_input(input) && known.insert(input).second) inputs_.push_back(input);
      for (uint32_t i = 0; i < member->specs.size(); ++i)
        if (read_outside({member, i})) outputs_.push_back({member, i});
    }
  }

  bool is_read() const { return !outputs_.empty(); }

  bool replace(const Partition& rules, size_t number) {
    BackendPart::Facts facts;
    facts.backend = rules.backend;
    for (const NodeEntry& input : inputs_) facts.in.push_back(graph_.spec(input));
    for (const NodeEntry& output : outputs_) facts.out.push_back(graph_.spec(output));
    for (const std::vector<TensorSpec>* specs : {&facts.in, &facts.out})
      for (const TensorSpec& spec : *specs) note_shape_read(spec.shape);
    describe_members(facts);
    const Ref<BackendPart> made = rules.make(closed(), std::move(facts));
    if (!made) return false;
    const OpRef& op = made->facts().native ? kNativeSubgraph : kSubgraph;
    const NodePtr node =
        graph_.add(op.op(), ParamSchema<BackendUse>::box(BackendUse::of(made, false)), inputs_, members_.back().get());
    node->name = rules.backend + std::to_string(number);
    Graph::Pairs pairs;
    for (uint32_t i = 0; i < outputs_.size(); ++i) pairs.emplace_back(outputs_[i], NodeEntry{node, i});
    std::vector<Node*> gone;
    for (const NodePtr& member : members_) gone.push_back(member.get());
    std::string why;
    if (!graph_.replace_validate(pairs, gone, &why))
      throw Error(ErrorKind::kError, {.node = node->name, .message = "the part does not fit: " + why});
    return true;
  }

 private:
  // Constants become part of the compiled code.
  bool is_input(const NodeEntry& entry) const {
    if (inside_.count(entry.node.get()) != 0) return false;
    return !entry.node->constant || graph_.input_index(entry.node.get()) >= 0;
  }

  bool read_outside(const NodeEntry& entry) const {
    const std::vector<Client>& readers = graph_.clients(entry);
    return std::any_of(readers.begin(), readers.end(),
                       [&](const Client& c) { return !c.node || inside_.count(c.node) == 0; });
  }

  // The nodes as a graph of their own, with distinct names of inputs.
  Graph closed() const {
    Graph part(graph_.train());
    EntryMap map;
    std::map<std::string, int> uses;
    for (const NodeEntry& input : inputs_) {
      std::string name = input.node->name;
      for (int use = uses[name]++; use > 0; use = uses[name]++) name = input.node->name + "_" + std::to_string(use);
      map[input] = {part.add_input(std::move(name), graph_.spec(input)), 0};
    }
    for (const NodeEntry& output : part.import(graph_, outputs_, map)) part.add_output(output);
    return part;
  }

  void describe_members(BackendPart::Facts& facts) const {
    constexpr size_t kShown = 12;
    for (size_t m = 0; m < members_.size(); ++m) {
      const Node& node = *members_[m];
      if (m < kShown) facts.holds += (m == 0 ? "" : " ") + node.op->name;
      if (!node.subgraphs.empty()) continue;
      std::vector<TensorSpec> in;
      for (const NodeEntry& input : node.inputs) in.push_back(graph_.spec(input));
      facts.cost_ns += node.op->cost_ns(node.params->data(), in, node.specs);
    }
    if (members_.size() > kShown) facts.holds += " and " + std::to_string(members_.size() - kShown) + " more";
  }

  Graph& graph_;
  const std::vector<NodePtr>& members_;
  std::unordered_set<const Node*> inside_;
  std::vector<NodeEntry> inputs_, outputs_;
};

}  // namespace

std::vector<std::vector<NodePtr>> convex_sets(Graph& graph, const Partition::Supports& supports) {
  return Sets(graph, supports).run();
}

bool partition(Graph& graph, const Partition& rules) {
  bool changed = false;
  size_t number = 0;
  for (const std::vector<NodePtr>& members : convex_sets(graph, rules.supports)) {
    if (members.size() < std::max<size_t>(rules.min_nodes, 1)) continue;
    Part part(graph, members);
    if (part.is_read() && part.replace(rules, number++)) changed = true;
  }
  return changed;
}

}  // namespace hybridnet
