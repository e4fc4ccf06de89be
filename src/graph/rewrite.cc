// The rewrite database, the choice of rewrites by query, and the drivers that apply them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <unordered_set>

#include "hybridnet/env.h"
#include "hybridnet/pass.h"

namespace hybridnet {
namespace {

constexpr int64_t kFiringsPerNode = 8;  // budget of one rule, times the largest number of nodes seen
constexpr int kMostSweeps = 64;
constexpr size_t kRememberedStates = 16;

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

bool has_trait(const Op& op, Trait trait) {
  switch (trait) {
    case Trait::kAny:
      return true;
    case Trait::kIdentity:
      return static_cast<bool>(op.is_identity);
    case Trait::kView:
      return op.is_view;
    case Trait::kPointwise:
      return op.pointwise != nullptr;
    case Trait::kCommutative:
      return op.commutative;
    case Trait::kImage:
      return !op.image_inputs.empty();
  }
  return false;
}

void warn(PassReport* report, std::string text) {
  if (on_rewrite_error() == OnRewriteError::kRaise) throw Error(ErrorKind::kError, {.message = text});
  if (on_rewrite_error() == OnRewriteError::kWarn) std::fprintf(stderr, "hybridnet: %s\n", text.c_str());
  if (report) report->warnings.push_back(std::move(text));
}

// Local rules applied to a queue of nodes, last node of the graph first, until the queue stays empty.
class Equilibrium {
 public:
  Equilibrium(Graph& graph, const std::vector<const Rewrite*>& rules, PassReport* report)
      : graph_(graph), report_(report) {
    for (const Rewrite* rule : rules) rules_.push_back({rule, 0, 0.0});
  }

  bool run() {
    bool changed = false;
    int64_t most_nodes = static_cast<int64_t>(graph_.num_nodes());
    states_.push_back(graph_.fingerprint());
    for (int sweep = 0;; ++sweep) {
      if (!run_sweep(most_nodes)) break;
      changed = true;
      most_nodes = std::max(most_nodes, static_cast<int64_t>(graph_.num_nodes()));
      if (exhausted_ || came_back() || sweep + 1 == kMostSweeps) {
        std::string names;
        for (const std::string& name : fired_lately_) names += (names.empty() ? "" : ", ") + name;
        warn(report_, "rewriting does not come to an end; it was stopped while these rules fired: " + names);
        break;
      }
    }
    if (report_) {
      for (const Counted& c : rules_) report_->add(c.rule->name, c.fired, c.microseconds);
    }
    return changed;
  }

 private:
  struct Counted {
    const Rewrite* rule;
    int64_t fired;
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
    bool fired = false;
    try {
      const Replacement wanted = counted.rule->rule(graph_, node);
      if (wanted.changed()) fired = perform(counted, node, wanted);
      if (!fired) graph_.revert(before);
    } catch (const std::exception& error) {
      graph_.revert(before);
      graph_.release(before);
      fail(counted, node, error.what());
      return false;
    }
    graph_.release(before);
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
    warn(report_, "rewrite '" + counted.rule->name + "' failed at node '" + node.name + "': " + why);
  }

  bool came_back() {
    const uint64_t now = graph_.fingerprint();
    const bool seen = std::find(states_.begin(), states_.end(), now) != states_.end();
    states_.push_back(now);
    if (states_.size() > kRememberedStates) states_.pop_front();
    return seen;
  }

  Graph& graph_;
  PassReport* report_;
  std::vector<Counted> rules_;
  std::set<std::string> fired_lately_;  // since the oldest remembered state
  std::set<std::string> failed_;
  std::deque<uint64_t> states_;
  bool exhausted_ = false;
};

void run_pass(Graph& graph, const Rewrite& rewrite, PassReport* report) {
  const Clock::time_point start = Clock::now();
  const Graph::Checkpoint before = graph.checkpoint();
  bool changed = false;
  try {
    changed = rewrite.pass(graph);
  } catch (const std::exception& error) {
    graph.revert(before);
    graph.release(before);
    warn(report, "pass '" + rewrite.name + "' failed: " + error.what());
    return;
  }
  graph.release(before);
  if (report) report->add(rewrite.name, changed ? 1 : 0, microseconds_since(start));
}

void dump(const Graph& graph, const std::string& after) {
  std::fprintf(stderr, "---- after %s\n%s", after.c_str(), graph.text().c_str());
}

}  // namespace

bool Rewrite::tracks(const Op& op) const {
  if (ops.empty() && traits.empty()) return true;
  return std::find(ops.begin(), ops.end(), op.name) != ops.end() ||
         std::any_of(traits.begin(), traits.end(), [&](Trait t) { return has_trait(op, t); });
}

bool Query::accepts(const Rewrite& rewrite) const {
  auto has = [&](const std::string& tag) { return rewrite.has_tag(tag); };
  return std::any_of(include.begin(), include.end(), has) && std::all_of(require.begin(), require.end(), has) &&
         std::none_of(exclude.begin(), exclude.end(), has);
}

Query Query::parse(std::string_view text) {
  Query query;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (item.empty()) continue;
    const char sign = item.front();
    if (sign == '-' || sign == '&' || sign == '+') item.remove_prefix(1);
    if (item.empty()) {
      throw ParamError({.input = "passes",
                        .expected = "tags such as 'fast_run,-inplace,&stable'",
                        .given = std::string("a lone '") + sign + "'"});
    }
    (sign == '-' ? query.exclude : sign == '&' ? query.require : query.include).emplace_back(item);
  }
  if (query.include.empty()) query.include.emplace_back("fast_run");
  return query;
}

Query& Query::excluding(const std::vector<std::string>& tags) {
  exclude.insert(exclude.end(), tags.begin(), tags.end());
  return *this;
}

void PassReport::add(std::string_view name, int64_t fired, double microseconds) {
  for (Line& line : lines) {
    if (line.name != name) continue;
    line.fired += fired;
    line.microseconds += microseconds;
    return;
  }
  lines.push_back({std::string(name), fired, microseconds});
}

std::string PassReport::text() const {
  std::string text;
  for (const Line& line : lines) {
    char row[160];
    std::snprintf(row, sizeof(row), "%-28s fired %6lld  %10.1f us\n", line.name.c_str(),
                  static_cast<long long>(line.fired), line.microseconds);
    text += row;
  }
  for (const std::string& warning : warnings) text += "warning: " + warning + "\n";
  return text;
}

Rewrite& RewriteDatabase::add(std::string name) {
  for (const auto& known : rewrites_) {
    if (!known->has_tag(name)) continue;
    throw ParamError({.input = "name",
                      .message = "a rewrite or tag named '" + name + "' is registered already",
                      .fix = "choose another name"});
  }
  rewrites_.push_back(std::make_unique<Rewrite>());
  rewrites_.back()->name = std::move(name);
  return *rewrites_.back();
}

RewriteDatabase::Builder RewriteDatabase::local(std::string name, LocalRule rule) {
  Rewrite& rewrite = add(std::move(name));
  rewrite.rule = std::move(rule);
  return Builder(rewrite);
}

RewriteDatabase::Builder RewriteDatabase::pass(std::string name, GraphPass pass) {
  Rewrite& rewrite = add(std::move(name));
  rewrite.pass = std::move(pass);
  return Builder(rewrite);
}

std::vector<const Rewrite*> RewriteDatabase::select(const Query& query) const {
  std::vector<const Rewrite*> chosen;
  for (const auto& rewrite : rewrites_) {
    if (query.accepts(*rewrite)) chosen.push_back(rewrite.get());
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const Rewrite* a, const Rewrite* b) { return a->position < b->position; });
  return chosen;
}

const Rewrite* RewriteDatabase::find(std::string_view name) const {
  for (const auto& rewrite : rewrites_) {
    if (rewrite->name == name) return rewrite.get();
  }
  return nullptr;
}

OnRewriteError on_rewrite_error() {
  const std::string& choice = environment().on_rewrite_error;
  if (choice == "raise") return OnRewriteError::kRaise;
  return choice == "ignore" ? OnRewriteError::kIgnore : OnRewriteError::kWarn;
}

bool run_to_equilibrium(Graph& graph, const std::vector<const Rewrite*>& rules, PassReport* report) {
  return Equilibrium(graph, rules, report).run();
}

void run_pipeline(Graph& graph, const Query& query, double first, double last, PassReport* report) {
  const std::vector<const Rewrite*> chosen = rewrite_database().select(query);
  for (size_t i = 0; i < chosen.size();) {
    const double position = chosen[i]->position;
    std::vector<const Rewrite*> locals;
    std::string names;
    for (; i < chosen.size() && chosen[i]->position == position; ++i) {
      if (position < first || position >= last) continue;
      names += (names.empty() ? "" : ", ") + chosen[i]->name;
      if (chosen[i]->rule) {
        locals.push_back(chosen[i]);
      } else {
        run_pass(graph, *chosen[i], report);
      }
    }
    if (!locals.empty()) run_to_equilibrium(graph, locals, report);
    if (!names.empty() && environment().pass_dump) dump(graph, names);
  }
}

}  // namespace hybridnet
