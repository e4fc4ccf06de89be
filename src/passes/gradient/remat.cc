// A greedy choice of the forward values to compute again: first those that free the most bytes per nanosecond. A copy
// counts as old as its first reader, so that it runs right in front of it (Graph::schedule()).
//
// The gradient of Dropout is Dropout of the arriving gradient, with the same draws: it needs no mask.
#include "passes/gradient/remat.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <queue>
#include <set>

#include "graph/control/control_flow.h"
#include "passes/gradient/remat_values.h"
#include "passes/rules.h"

namespace hybridnet {
namespace {

thread_local RematScope* current_scope = nullptr;

}  // namespace

RematPolicy RematPolicy::parse(const std::string& text) {
  if (text == "auto") return {Kind::kAuto, 0};
  if (text == "none") return {Kind::kNone, 0};
  int64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || end != text.data() + text.size() || bytes < 0)
    throw ParamError(
        {.input = "remat", .expected = "'auto', 'none' or a number of bytes, 0 or more", .given = "'" + text + "'"});
  return {Kind::kBytes, bytes};
}

RematScope::RematScope(Settings settings) : settings_(std::move(settings)), before_(current_scope) {
  current_scope = this;
}
RematScope::~RematScope() { current_scope = before_; }
RematScope* RematScope::current() { return current_scope; }

namespace passes {
namespace {

const OpRef kDropout{"Dropout"}, kDropoutGradient{"_backward_Dropout"};
constexpr size_t kMaxChain = 24;           // connected nodes that are run once more
constexpr double kShareOfTime = 0.005;     // share of the time that kAuto may take
constexpr int64_t kFewestBytes = 1 << 12;  // for kAuto: smaller values are not worth a node

bool is_mask(const NodeEntry& entry) { return entry.node->op == &kDropout.op() && entry.index == 1; }

// Chooses the nodes that run once more, and the masks that are drawn again where they are used.
class Choice {
 public:
  Choice(const Graph& graph, const KeptValues& values, const RematPolicy& policy)
      : graph_(graph), values_(values), policy_(policy) {
    for (const NodeEntry& entry : values.kept()) kept_.insert(entry);
    for (const NodeEntry& entry : kept_) bytes_ += values.bytes_of(entry);
  }

  void run() {
    if (policy_.kind == RematPolicy::Kind::kAuto) {
      choose(false, static_cast<int64_t>(kShareOfTime * static_cast<double>(values_.total_cost())), 0);
      return;
    }
    constexpr int64_t kAnyTime = INT64_MAX;
    choose(false, kAnyTime, policy_.bytes);
    if (!values_.is_body()) choose(true, kAnyTime, policy_.bytes);
  }

  bool is_repeated(const Node& node) const { return repeated_.count(&node) != 0; }
  bool is_drawn_again(const Node& node) const { return drawn_again_.count(&node) != 0; }
  bool is_empty() const { return repeated_.empty() && drawn_again_.empty(); }
  int64_t bytes() const { return bytes_; }  // bytes that are still kept

 private:
  struct Step {
    std::vector<const Node*> nodes;     // to be repeated; empty: the mask is drawn again
    std::vector<NodeEntry> more, less;  // kept from now on, kept no longer
    int64_t bytes = 0, cost = 1;
    double worth() const { return static_cast<double>(bytes) / static_cast<double>(cost); }
  };
  struct Candidate {
    double worth;
    size_t number;  // number of the node in the schedule
    const Node* node;
    bool draws;
    bool operator<(const Candidate& o) const {
      return worth != o.worth ? worth < o.worth : number != o.number ? number > o.number : draws < o.draws;
    }
  };

  // Takes the best steps first. Evaluates each again at its turn, because other steps have changed its worth.
  void choose(bool any, int64_t time, int64_t enough) {
    const int64_t fewest = policy_.kind == RematPolicy::Kind::kAuto ? kFewestBytes : 1;
    std::priority_queue<Candidate> candidates;
    const std::vector<Node*>& schedule = values_.schedule();
    const auto add = [&](size_t number, bool draws) {
      const Step step = draws ? draw(*schedule[number]) : repeat(*schedule[number], any);
      if (step.bytes >= fewest) candidates.push({step.worth(), number, schedule[number], draws});
    };
    for (size_t i = 0; i < schedule.size(); ++i) {
      if (schedule[i]->is_variable() || values_.is_late(*schedule[i])) continue;
      add(i, false);
      add(i, true);
    }
    while (!candidates.empty() && bytes_ > enough) {
      const Candidate best = candidates.top();
      candidates.pop();
      const Step step = best.draws ? draw(*best.node) : repeat(*best.node, any);
      if (step.bytes < fewest || step.cost > time - cost_ || !stays_short(step)) continue;
      if (!candidates.empty() && step.worth() < candidates.top().worth) {
        candidates.push({step.worth(), best.number, best.node, best.draws});
        continue;
      }
      take(step, *best.node);
    }
  }

  void take(const Step& step, const Node& node) {
    std::set<int> joined = neighbors(step);
    const int group = joined.empty() ? static_cast<int>(groups_.size()) : *joined.begin();
    for (const Node* each : step.nodes) groups_[group].push_back(each);
    for (const int other : joined) {
      if (other == group) continue;
      groups_[group].insert(groups_[group].end(), groups_[other].begin(), groups_[other].end());
      groups_[other].clear();
    }
    if (!step.nodes.empty())
      for (const Node* each : groups_[group]) repeated_[each] = group;
    if (step.nodes.empty()) drawn_again_.insert(&node);
    for (const NodeEntry& entry : step.more) kept_.insert(entry);
    for (const NodeEntry& entry : step.less) kept_.erase(entry);
    bytes_ -= step.bytes;
    cost_ += step.cost;
  }

  // Groups of repeated nodes that the nodes of a step read from, or that read their results.
  std::set<int> neighbors(const Step& step) const {
    std::set<int> found;
    const auto note = [&](const Node* node) {
      if (const auto known = repeated_.find(node); known != repeated_.end()) found.insert(known->second);
    };
    for (const Node* node : step.nodes) {
      for (const NodeEntry& input : repetition_of(*node).inputs) note(values_.shown_by(input).node.get());
      std::vector<const Node*> pending{node};
      while (!pending.empty()) {
        const Node* source = pending.back();
        pending.pop_back();
        for (uint32_t i = 0; i < source->specs.size(); ++i) {
          for (const Client& reader : graph_.clients(*source, static_cast<int>(i))) {
            if (reader.kind != Client::Kind::kNode) continue;
            note(reader.node);
            const NodeEntry result{NodePtr(reader.node), 0};
            if (!(values_.shown_by(result) == result)) pending.push_back(reader.node);
          }
        }
      }
    }
    return found;
  }

  bool stays_short(const Step& step) const {
    size_t length = step.nodes.size();
    for (const int group : neighbors(step)) length += groups_.at(group).size();
    return length <= kMaxChain;
  }

  // The step that draws the mask of a Dropout again, if only gradients read it.
  Step draw(const Node& node) const {
    Step step;
    const NodeEntry mask{NodePtr(const_cast<Node*>(&node)), 1};
    if (node.op != &kDropout.op() || kept_.count(mask) == 0 || !random_stream(node)) return step;
    for (const Client& reader : graph_.clients(mask))
      if (reader.kind != Client::Kind::kNode || reader.index != 1 || reader.node->op != &kDropoutGradient.op())
        return step;
    step.less = {mask};
    step.bytes = values_.bytes_of(mask);
    step.cost = std::max<int64_t>(values_.cost_of(node), 1);
    return step;
  }

  Step repeat(const Node& node, bool any) const {
    Step keeping, repeating;
    if (is_repeated(node) || !frees_something(node) || !values_.is_repeatable(node, any)) return {};
    const bool keeps = extend(keeping, node, any, false), repeats = extend(repeating, node, any, true);
    finish(keeping);
    finish(repeating);
    if (!keeps) return repeats ? repeating : Step{};
    return repeats && repeating.worth() > keeping.worth() ? repeating : keeping;
  }

  bool frees_something(const Node& node) const {
    for (uint32_t i = 0; i < node.specs.size(); ++i) {
      const NodeEntry entry{NodePtr(const_cast<Node*>(&node)), i};
      if (kept_.count(entry) != 0 && is_given_again(entry) && !values_.is_fixed(entry)) return true;
    }
    return false;
  }

  // Adds a node. Inputs that are not available late are made again as well, or kept.
  bool extend(Step& step, const Node& node, bool any, bool with_inputs) const {
    if (std::find(step.nodes.begin(), step.nodes.end(), &node) != step.nodes.end()) return true;
    step.nodes.push_back(&node);
    if (step.nodes.size() > kMaxChain) return false;
    for (const NodeEntry& input : repetition_of(node).inputs) {
      const NodeEntry value = values_.shown_by(input);
      if (value.node->is_variable()) {
        if (!values_.is_readable(*value.node)) return false;
        continue;
      }
      const bool is_given = is_given_again(value);
      if ((is_given && is_repeated(*value.node)) || kept_.count(value) != 0) continue;
      if (is_given && with_inputs && values_.is_repeatable(*value.node, any)) {
        if (!extend(step, *value.node, any, true)) return false;
      } else if (is_given && !any && value.node->op->heavy) {
        return false;  // its kernel may include the nodes behind it
      } else if (std::find(step.more.begin(), step.more.end(), value) == step.more.end()) {
        step.more.push_back(value);
      }
    }
    return true;
  }

  void finish(Step& step) const {
    step.cost = 0;
    for (const Node* node : step.nodes) {
      step.cost += values_.cost_of_repeating(*node);
      for (uint32_t i = 0; i < node->specs.size(); ++i) {
        const NodeEntry entry{NodePtr(const_cast<Node*>(node)), i};
        if (kept_.count(entry) == 0 || !is_given_again(entry) || values_.is_fixed(entry)) continue;
        step.less.push_back(entry);
        step.bytes += values_.bytes_of(entry);
      }
    }
    for (const NodeEntry& entry : step.more) step.bytes -= values_.bytes_of(entry);
    step.cost = std::max<int64_t>(step.cost, 1);
  }

  const Graph& graph_;
  const KeptValues& values_;
  const RematPolicy policy_;
  EntrySet kept_;
  NodeSet drawn_again_;
  std::unordered_map<const Node*, int> repeated_;   // -> number of its group
  std::map<int, std::vector<const Node*>> groups_;  // repeated nodes that read each other's results
  int64_t bytes_ = 0, cost_ = 0;
};

// Edits the graph according to the choice.
class Rebuilding {
 public:
  Rebuilding(Graph& graph, const KeptValues& values, const Choice& choice)
      : graph_(graph), values_(values), choice_(choice) {}

  void run() {
    for (Node* reader : values_.schedule()) {
      if (!values_.is_late(*reader) || !graph_.contains(reader)) continue;
      reader_ = reader;
      if (draw_again(*reader)) continue;
      for (size_t i = 0; i < reader->inputs.size(); ++i) {
        const NodeEntry made = made_again(reader->inputs[i]);
        if (!(made == reader->inputs[i])) graph_.set_input(*reader, static_cast<int>(i), made);
      }
    }
    graph_.remove_unused();
  }

 private:
  bool draw_again(Node& reader) {
    if (reader.op != &kDropoutGradient.op()) return false;
    const NodeEntry mask = values_.shown_by(reader.inputs[1]);
    if (!is_mask(mask) || !choice_.is_drawn_again(*mask.node) || choice_.is_repeated(*mask.node)) return false;
    const NodePtr drawn = graph_.add(*mask.node->op, mask.node->params, {reader.inputs[0]}, &reader);
    mark_as_repeating(*drawn, *mask.node);
    graph_.replace({NodePtr(&reader), 0}, {drawn, 0});
    return true;
  }

  bool is_made_again(const Node& node) const {
    if (node.is_variable() || values_.is_late(node)) return false;
    return choice_.is_repeated(node);
  }

  NodeEntry made_again(const NodeEntry& entry) {
    const NodeEntry value = values_.shown_by(entry);
    if (!is_made_again(*value.node) || !is_given_again(value) || values_.is_fixed(value)) return entry;
    return {copy_of(entry.node), entry.index};
  }

  // Chains are short (kMaxChain), and after join_reshapes hardly any views follow each other.
  NodePtr copy_of(const NodePtr& node) {
    if (const auto found = copies_.find(node.get()); found != copies_.end()) return found->second;
    const Repetition again = repetition_of(*node);
    std::vector<NodeEntry> inputs;
    for (const NodeEntry& input : again.inputs) inputs.push_back(made_again(input));
    if (node->op->heavy && values_.is_read_late({node, 0})) node->attrs[kApartAttribute] = "1";
    const NodePtr copy = graph_.add(*again.op, again.params, std::move(inputs), reader_);
    copy->attrs = node->attrs;
    copy->attrs["__no_merge__"] = "1";
    copy->name = node->name;
    copy->block = node->block;
    copy->where = node->where;
    if (is_random(*node)) mark_as_repeating(*copy, *node);
    const auto outputs = static_cast<uint32_t>(copy->op->num_outputs(copy->params->data()));
    for (uint32_t i = 0; i < outputs; ++i) graph_.set_format({copy, i}, graph_.format({node, i}));
    copies_.emplace(node.get(), copy);
    return copy;
  }

  Graph& graph_;
  const KeptValues& values_;
  const Choice& choice_;
  const Node* reader_ = nullptr;
  std::unordered_map<const Node*, NodePtr> copies_;
};

}  // namespace

bool remat(Graph& graph) {
  RematScope* scope = RematScope::current();
  if (scope == nullptr || scope->settings().policy.kind == RematPolicy::Kind::kNone) return false;
  const RematPolicy& policy = scope->settings().policy;
  const KeptValues values(graph, scope->settings());
  Choice choice(graph, values, policy);
  scope->result = {choice.bytes(), choice.bytes(), true};
  choice.run();
  if (choice.is_empty()) return false;
  const bool may_undo = policy.kind == RematPolicy::Kind::kAuto && !scope->settings().body;
  const int64_t peak = may_undo ? find_peak(graph).bytes : 0;
  const Graph::Checkpoint before = graph.checkpoint();
  Rebuilding(graph, values, choice).run();
  const bool worse = may_undo && find_peak(graph).bytes > peak;
  if (worse) graph.revert(before);
  graph.release(before);
  if (!worse) scope->result.after = choice.bytes();
  return !worse;
}

}  // namespace passes
}  // namespace hybridnet
