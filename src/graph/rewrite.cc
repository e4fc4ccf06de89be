// The drivers that apply rewrites to a graph: one by one, to equilibrium, or stage by stage.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <optional>

#include "hybridnet/env.h"
#include "hybridnet/pass.h"

namespace hybridnet {
namespace {

constexpr int64_t kFiringsPerNode = 8;  // budget of one rule, times the largest number of nodes seen
constexpr int kMaxSweeps = 64;
constexpr size_t kRememberedStates = 16;

using Watch = RewriteObserver::Watch;
using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// The text ends in the report of the scope, and on stderr or in an error as HYBRIDNET_ON_REWRITE says.
void warn(std::string text) {
  const PipelineScope::Settings& settings = PipelineScope::current();
  if (!settings.place.empty()) text += " (" + settings.place + ")";
  if (on_rewrite_error() == OnRewriteError::kRaise) throw Error(ErrorKind::kError, {.message = text});
  if (on_rewrite_error() == OnRewriteError::kWarn) std::fprintf(stderr, "hybridnet: %s\n", text.c_str());
  if (settings.report) settings.report->warn(std::move(text));
}

void report(const Rewrite& rewrite, int64_t fired, int64_t rejected, double microseconds) {
  const PipelineScope::Settings& settings = PipelineScope::current();
  if (!settings.report) return;
  settings.report->add(rewrite.name, settings.place,
                       {.fired = fired, .rejected = rejected, .microseconds = microseconds});
}

// Local rules applied to a queue of nodes, last node of the graph first, until the queue stays empty.
class Equilibrium {
 public:
  Equilibrium(Graph& graph, const std::vector<const Rewrite*>& rules, Watch* watch) : graph_(graph), watch_(watch) {
    for (const Rewrite* rule : rules) rules_.push_back({rule, 0, 0, 0.0});
  }

  bool run() {
    bool changed = false;
    int64_t most_nodes = static_cast<int64_t>(graph_.num_nodes());
    states_.push_back(graph_.fingerprint());
    for (int sweep = 0;; ++sweep) {
      if (!run_sweep(most_nodes)) break;
      changed = true;
      most_nodes = std::max(most_nodes, static_cast<int64_t>(graph_.num_nodes()));
      if (exhausted_ || came_back() || sweep + 1 == kMaxSweeps) {
        std::string names;
        for (const std::string& name : fired_lately_) names += (names.empty() ? "" : ", ") + name;
        warn("rewriting does not come to an end; it was stopped while these rules fired: " + names);
        break;
      }
    }
    for (const Counted& c : rules_) report(*c.rule, c.fired, c.rejected, c.microseconds);
    return changed;
  }

 private:
  struct Counted {
    const Rewrite* rule;
    int64_t fired, rejected;
    double microseconds;
  };

  bool run_sweep(int64_t most_nodes) {
    bool changed = false;
    std::vector<Node*> nodes = graph_.order();
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      // A node may have been pruned, and its address taken by a new one: the next sweep sees that.
      if (!graph_.contains(*it) || (*it)->is_variable()) continue;
      for (Counted& counted : rules_) {
        if (!counted.rule->tracks(*(*it)->op)) continue;
        if (!apply(counted, **it)) continue;
        changed = true;
        fired_lately_.insert(counted.rule->name);
        if (++counted.fired > kFiringsPerNode * most_nodes) {
          exhausted_ = true;
          return true;
        }
        break;  // the node is gone or has other inputs; the next sweep looks again
      }
    }
    return changed;
  }

  bool apply(Counted& counted, Node& node) {
    const NodePtr keep(&node);
    const Clock::time_point start = Clock::now();
    const Graph::Checkpoint before = graph_.checkpoint();
    const int64_t rejected_before = graph_.num_rejected();
    bool fired = false;
    try {
      const Replacement wanted = counted.rule->local(graph_, node);
      if (wanted.changed()) fired = perform(counted, node, wanted);
      if (!fired) graph_.revert(before);
      if (fired && watch_) watch_->changed(*counted.rule);
    } catch (const std::exception& error) {
      graph_.revert(before);
      graph_.release(before);
      fail(counted, node, error.what());
      return false;
    }
    graph_.release(before);
    counted.rejected += graph_.num_rejected() - rejected_before;
    counted.microseconds += microseconds_since(start);
    return fired;
  }

  bool perform(Counted& counted, Node& node, const Replacement& wanted) {
    Graph::Pairs pairs = wanted.others;
    for (size_t i = 0; i < wanted.outputs.size(); ++i) {
      const NodeEntry old{NodePtr(&node), static_cast<uint32_t>(i)};
      if (wanted.outputs[i].node) {
        pairs.emplace_back(old, wanted.outputs[i]);
      } else if (graph_.is_used(node, static_cast<int>(i))) {
        throw Error(ErrorKind::kError,
                    {.message = "the rule gives nothing for output " + std::to_string(i) + ", which has readers"});
      }
    }
    std::string why;
    if (graph_.replace_validate(pairs, wanted.remove, &why)) return true;
    fail(counted, node, why);
    return false;
  }

  void fail(const Counted& counted, const Node& node, const std::string& why) {
    if (!failed_.insert(counted.rule->name).second && on_rewrite_error() == OnRewriteError::kWarn) return;
    warn("rewrite '" + counted.rule->name + "' failed at node '" + node.name + "': " + why);
  }

  bool came_back() {
    const uint64_t now = graph_.fingerprint();
    const bool seen = std::find(states_.begin(), states_.end(), now) != states_.end();
    states_.push_back(now);
    if (states_.size() > kRememberedStates) states_.pop_front();
    return seen;
  }

  Graph& graph_;
  Watch* const watch_;  // null: nobody looks on
  std::vector<Counted> rules_;
  std::set<std::string> fired_lately_;  // since the oldest remembered state
  std::set<std::string> failed_;
  std::deque<uint64_t> states_;
  bool exhausted_ = false;
};

bool run_pass(Graph& graph, const Rewrite& rewrite, Watch* watch) {
  const Clock::time_point start = Clock::now();
  const Graph::Checkpoint before = graph.checkpoint();
  const int64_t rejected_before = graph.num_rejected();
  bool changed = false;
  try {
    changed = rewrite.pass(graph);
    if (changed && watch) watch->changed(rewrite);
  } catch (const std::exception& error) {
    graph.revert(before);
    graph.release(before);
    warn("pass '" + rewrite.name + "' failed: " + error.what());
    return false;
  }
  graph.release(before);
  report(rewrite, changed ? 1 : 0, graph.num_rejected() - rejected_before, microseconds_since(start));
  return changed;
}

bool run_row(Graph& graph, const Rewrite& rewrite, Watch* watch) {
  return rewrite.local ? Equilibrium(graph, {&rewrite}, watch).run() : run_pass(graph, rewrite, watch);
}

// Before values are compared, as a graph may have none yet; what these rows throw is the user's error.
void run_required(Graph& graph, Stages stages) {
  for (const Rewrite& row : pipeline().rows()) {
    if (!row.required || row.stage < stages.first || row.stage > stages.last) continue;
    const Clock::time_point start = Clock::now();
    const bool changed = row.pass(graph);
    report(row, changed ? 1 : 0, 0, microseconds_since(start));
  }
}

void dump(const Graph& graph, const StageInfo& stage, const std::vector<const Rewrite*>& rows) {
  std::string names;
  for (const Rewrite* row : rows) names += (names.empty() ? "" : ", ") + row->name;
  const std::string& place = PipelineScope::current().place;
  std::fprintf(stderr, "---- after stage '%s' (%s)%s%s\n%s", stage.name.c_str(), names.c_str(),
               place.empty() ? "" : " of the ", place.c_str(), graph.text().c_str());
}

thread_local const PipelineScope::Settings* current_settings = nullptr;

}  // namespace

PipelineScope::PipelineScope(Settings settings) : settings_(std::move(settings)), before_(current_settings) {
  current_settings = &settings_;
}

PipelineScope::PipelineScope(const Node& control, size_t body) : PipelineScope(current()) {
  const std::string& name = control.op->subgraph_names[body];
  settings_.place = name + " of '" + control.name + "'" + (settings_.place.empty() ? "" : " in the " + settings_.place);
}

PipelineScope::~PipelineScope() { current_settings = before_; }

const PipelineScope::Settings& PipelineScope::current() {
  static const Settings usual{.query = Query::parse("")};
  return current_settings ? *current_settings : usual;
}

OnRewriteError on_rewrite_error() {
  const std::string& choice = environment().on_rewrite_error;
  if (choice == "raise") return OnRewriteError::kRaise;
  return choice == "ignore" ? OnRewriteError::kIgnore : OnRewriteError::kWarn;
}

bool run_to_equilibrium(Graph& graph, const std::vector<const Rewrite*>& rules) {
  return Equilibrium(graph, rules, nullptr).run();
}

bool run_rewrite(Graph& graph, const Rewrite& rewrite) { return run_row(graph, rewrite, nullptr); }

void run_pipeline(Graph& graph, Stages stages) {
  const PipelineScope::Settings& settings = PipelineScope::current();
  run_required(graph, stages);
  const std::unique_ptr<Watch> watch = settings.observer ? settings.observer->watch(graph) : nullptr;
  for (const StageInfo& stage : pipeline().stages()) {
    if (stage.stage < stages.first || stage.stage > stages.last) continue;
    std::vector<const Rewrite*> rows;
    for (const Rewrite& row : pipeline().rows())
      if (row.stage == stage.stage && !row.required && settings.query.accepts(row)) rows.push_back(&row);
    if (rows.empty()) continue;
    if (stage.equilibrium) {
      Equilibrium(graph, rows, watch.get()).run();
    } else {
      for (const Rewrite* row : rows) run_row(graph, *row, watch.get());
    }
    if (environment().pass_dump) dump(graph, stage, rows);
  }
}

}  // namespace hybridnet
