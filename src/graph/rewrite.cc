// The drivers that apply rewrites to a graph: one by one, to equilibrium, or stage by stage.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <optional>
#include <random>
#include <unordered_map>

#include "base/native_code.h"
#include "hybridnet/env.h"
#include "hybridnet/pass.h"

namespace hybridnet {
namespace {

constexpr int64_t kFiringsPerNode = 8;  // budget of one rule: this times the largest number of nodes seen,
constexpr int64_t kGrowth = 8;          // a number that counts up to kGrowth times the initial number of nodes
constexpr int kMaxSweeps = 64;
constexpr int64_t kMinLineage = 64;  // a rule may replace its own results this often in a row, or once per node
constexpr size_t kRememberedStates = 16;

using Watch = RewriteObserver::Watch;
using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Adds the text to the report of the scope. HYBRIDNET_ON_REWRITE selects stderr or an error in addition.
void warn(std::string text) {
  const PipelineScope::Settings& settings = PipelineScope::current();
  if (!settings.place.empty()) text += " (" + settings.place + ")";
  if (on_rewrite_error() == OnRewriteError::kRaise) throw Error(ErrorKind::kError, {.message = text});
  if (on_rewrite_error() == OnRewriteError::kWarn) std::fprintf(stderr, "hybridnet: %s\n", text.c_str());
  if (settings.report) settings.report->warn(std::move(text));
}

void report(const Rewrite& rewrite, const PassReport::Line& line) {
  const PipelineScope::Settings& settings = PipelineScope::current();
  if (!settings.report) return;
  const bool is_in_stage = rewrite.stage() != Stage::kOwn;
  const std::string_view stage = is_in_stage ? std::string_view(settings.pipeline->info(rewrite).name) : "";
  settings.report->add(rewrite.name, stage, settings.place, line);
}

// The edits of one call of a rewrite. They are undone if the call fails or the user interrupts it.
class Attempt {
 public:
  Attempt(Graph& graph, const Rewrite& rewrite)
      : graph_(graph), before_(graph.checkpoint()), reason_(graph.set_reason(rewrite.name)) {}
  ~Attempt() {
    if (!kept_) graph_.revert(before_);
    graph_.release(before_);
    graph_.set_reason(std::move(reason_));
  }
  Attempt(const Attempt&) = delete;
  // Keeps the change. Removes new nodes that nothing reads.
  void keep(PassReport::Line& line) {
    line.dropped += graph_.num_pruned_since(before_);
    graph_.drop_unread(graph_.added_since(before_));
    const std::vector<NodePtr> added = graph_.added_since(before_);
    line.made += static_cast<int64_t>(added.size());
    kept_ = true;
  }
  Graph::Checkpoint before() const { return before_; }

 private:
  Graph& graph_;
  const Graph::Checkpoint before_;
  std::string reason_;
  bool kept_ = false;
};

bool run_pass(Graph& graph, const Rewrite& rewrite, Watch* watch) {
  const Clock::time_point start = Clock::now();
  const int64_t rejected_before = graph.num_rejected();
  PassReport::Line line{.tried = 1};
  bool changed = false;
  std::string failure;
  try {
    Attempt attempt(graph, rewrite);
    changed = rewrite.pass(graph);
    graph.validate();
    if (changed && watch) watch->changed(rewrite);
    attempt.keep(line);
  } catch (const std::exception& error) {
    changed = false;
    line.failed = 1;
    failure = error.what();
  }
  line.fired = changed ? 1 : 0;
  line.rejected = graph.num_rejected() - rejected_before;
  line.microseconds = microseconds_since(start);
  report(rewrite, line);
  if (line.failed > 0) warn("pass '" + rewrite.name + "' failed: " + failure);
  return changed;
}

// For every node that a rule made: how often in a row each rule has replaced its own results. Replacements that make
// the graph smaller end by themselves and are not counted.
class Lineages {
 public:
  // Records that `rule` has replaced the nodes `old` by `added`. Returns the depth of their lineage.
  int64_t note(const Rewrite* rule, const std::vector<NodePtr>& old, const std::vector<NodePtr>& added, bool shrinks) {
    std::map<const Rewrite*, int64_t> depths;
    for (const NodePtr& node : old)
      if (const auto found = depths_.find(node); found != depths_.end())
        for (const auto& [other, depth] : found->second) depths[other] = std::max(depths[other], depth);
    int64_t& depth = depths[rule];
    if (!shrinks) ++depth;
    for (const NodePtr& node : added) depths_[node] = depths;
    return depth;
  }

 private:
  struct Address {
    size_t operator()(const NodePtr& node) const { return std::hash<const void*>()(node.get()); }
  };
  // Keeps the nodes alive: a new node at the address of a freed one must not inherit its depth.
  std::unordered_map<NodePtr, std::map<const Rewrite*, int64_t>, Address> depths_;
};

// Applies local rules to nodes, within the budget of each rule.
class Rules {
 public:
  Rules(Graph& graph, const std::vector<const Rewrite*>& rules, Watch* watch) : graph_(graph), watch_(watch) {
    for (const Rewrite* rule : rules) rules_.push_back({rule, {}});
  }

  // Sets a function that is called before each change that a rule asks for.
  void before_changes(std::function<void()> call) { before_change_ = std::move(call); }

  // Applies the first rule that fires at the node. Returns true if one did; `added` receives the nodes that it made.
  bool show(Node& node, std::vector<NodePtr>* added = nullptr) {
    for (Counted* counted : rules_for(*node.op)) {
      if (!apply(*counted, node, added)) continue;
      fired_lately_.insert(counted->rule->name);
      if (counted->line.fired > kFiringsPerNode * most_nodes_) exhausted_ = true;
      return true;
    }
    return false;
  }

  // Raises the budget when the graph grows. It has a limit, as rules may add nodes without end.
  void note_size() {
    most_nodes_ = std::min(std::max(most_nodes_, static_cast<int64_t>(graph_.num_nodes())), kGrowth * first_nodes_);
  }
  bool exhausted() const { return exhausted_; }
  void stop() {
    std::string names;
    for (const std::string& name : endless_.empty() ? fired_lately_ : endless_)
      names += (names.empty() ? "" : ", ") + name;
    warn("rewriting does not come to an end; it was stopped while these rules fired: " + names);
  }
  void report_all() {
    for (const Counted& c : rules_) report(*c.rule, c.line);
  }

 private:
  struct Counted {
    const Rewrite* rule;
    PassReport::Line line;
  };

  // Cached per operator: graphs have many nodes of few operators, and tracks() compares names.
  const std::vector<Counted*>& rules_for(const Op& op) {
    const auto [known, is_new] = rules_for_.try_emplace(&op);
    if (is_new)
      for (Counted& counted : rules_)
        if (counted.rule->tracks(op)) known->second.push_back(&counted);
    return known->second;
  }

  bool apply(Counted& counted, Node& node, std::vector<NodePtr>* added) {
    const NodePtr keep(&node);
    const Clock::time_point start = Clock::now();
    const int64_t rejected_before = graph_.num_rejected();
    ++counted.line.tried;
    bool fired = false;
    std::string failure;
    try {
      Attempt attempt(graph_, *counted.rule);
      const Replacement wanted = counted.rule->local(graph_, node);
      if (wanted.changed()) {
        if (before_change_) before_change_();
        fired = perform(node, wanted, &failure);
      }
      if (fired && watch_) watch_->changed(*counted.rule);
      if (fired) {
        const int64_t made = counted.line.made, dropped = counted.line.dropped;
        attempt.keep(counted.line);
        const std::vector<NodePtr> now = graph_.added_since(attempt.before());
        note_lineage(counted.rule, node, wanted, now, counted.line.made - made < counted.line.dropped - dropped);
        if (added) *added = now;
      }
    } catch (const std::exception& error) {
      fired = false;
      ++counted.line.failed;
      failure = error.what();
    }
    counted.line.fired += fired;
    counted.line.rejected += graph_.num_rejected() - rejected_before;
    counted.line.microseconds += microseconds_since(start);
    if (!failure.empty()) fail(counted, node, failure);
    return fired;
  }

  bool perform(Node& node, const Replacement& wanted, std::string* why) {
    Graph::Pairs pairs = wanted.others;
    for (size_t i = 0; i < wanted.outputs.size(); ++i) {
      const NodeEntry old{NodePtr(&node), static_cast<uint32_t>(i)};
      if (wanted.outputs[i].node) {
        pairs.emplace_back(old, wanted.outputs[i]);
      } else if (graph_.is_used(node, static_cast<int>(i))) {
        throw Error(ErrorKind::kError,
                    {.message = "the rule returns nothing for output " + std::to_string(i) + ", which has readers"});
      }
    }
    return graph_.replace_validate(pairs, wanted.remove, why);
  }

  void note_lineage(const Rewrite* rule, Node& node, const Replacement& wanted, const std::vector<NodePtr>& added,
                    bool shrinks) {
    if (added.empty()) return;
    std::vector<NodePtr> old{NodePtr(&node)};
    for (const auto& [before, now] : wanted.others) old.push_back(before.node);
    const int64_t depth = lineages_.note(rule, old, added, shrinks);
    if (depth <= std::max(kMinLineage, first_nodes_)) return;
    exhausted_ = true;
    endless_.insert(rule->name);
  }

  // Warns once about a rule that fails at many nodes, unless failures are errors.
  void fail(const Counted& counted, const Node& node, const std::string& why) {
    if (!failed_.insert(counted.rule->name).second && on_rewrite_error() == OnRewriteError::kWarn) return;
    warn("rewrite '" + counted.rule->name + "' failed at node '" + node.name + "': " + why);
  }

  Graph& graph_;
  Watch* const watch_;  // null: no observer
  std::function<void()> before_change_;
  std::vector<Counted> rules_;
  std::unordered_map<const Op*, std::vector<Counted*>> rules_for_;
  std::set<std::string> fired_lately_;
  std::set<std::string> failed_;
  std::set<std::string> endless_;  // rules that replace their own results without end
  Lineages lineages_;
  const int64_t first_nodes_ = static_cast<int64_t>(graph_.num_nodes());
  int64_t most_nodes_ = 0;
  bool exhausted_ = false;
};

bool run_row(Graph& graph, const Rewrite& rewrite, Watch* watch);

// Sweeps over the graph, last node first, until a sweep changes nothing. Before each sweep run the cleanup rules, to
// their end, and the passes; after it the final rows.
class Equilibrium {
 public:
  Equilibrium(Graph& graph, const Rewrite& rule, Watch* watch)
      : graph_(graph), watch_(watch), sweep_(graph, {&rule}, watch) {}
  Equilibrium(Graph& graph, const std::vector<const Rewrite*>& rules, Watch* watch)
      : graph_(graph), watch_(watch), sweep_(graph, of(rules, Phase::kSweep, true), watch) {
    cleanup_ = of(rules, Phase::kCleanup, false);
    final_ = of(rules, Phase::kFinal, false);
    for (const Rewrite* rule : of(rules, Phase::kSweep, false)) cleanup_.push_back(rule);
  }

  bool run() {
    bool changed = false;
    // The fingerprint is computed only before a first change: most rules change nothing, and the fingerprint of a large
    // graph takes longer than they do. Passes report no change in advance, so with passes it is computed at once.
    if (cleanup_.empty() && final_.empty())
      sweep_.before_changes([this] { note_first_state(); });
    else
      note_first_state();
    for (int sweep = 0;; ++sweep) {
      sweep_.note_size();
      if (!run_sweep()) break;
      changed = true;
      if (sweep_.exhausted() || came_back() || sweep + 1 == kMaxSweeps) {
        sweep_.stop();
        break;
      }
    }
    sweep_.report_all();
    return changed;
  }

 private:
  // Returns the rows of a phase; for Phase::kSweep only local rules or only passes.
  static std::vector<const Rewrite*> of(const std::vector<const Rewrite*>& rules, Phase phase, bool local) {
    std::vector<const Rewrite*> found;
    for (const Rewrite* rule : rules)
      if (rule->phase == phase && (phase != Phase::kSweep || static_cast<bool>(rule->local) == local))
        found.push_back(rule);
    return found;
  }

  bool run_around(const std::vector<const Rewrite*>& rules) {
    bool changed = false;
    for (const Rewrite* rule : rules) changed = run_row(graph_, *rule, watch_) || changed;
    return changed;
  }

  bool run_sweep() {
    const bool cleaned = run_around(cleanup_);
    bool fired = false;
    std::vector<Node*> nodes = graph_.order();
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      // A node may have been pruned, and a new one may have its address: the next sweep sees the new node. A node at
      // which a rule fired is gone or has other inputs: the next sweep visits it again.
      if ((fired && !graph_.contains(*it)) || (*it)->is_variable() || !sweep_.show(**it)) continue;
      fired = true;
      if (sweep_.exhausted()) return true;
    }
    return run_around(final_) || fired || cleaned;
  }

  void note_first_state() {
    if (states_.empty()) states_.push_back(graph_.fingerprint());
  }

  bool came_back() {
    const uint64_t now = graph_.fingerprint();
    const bool seen = std::find(states_.begin(), states_.end(), now) != states_.end();
    states_.push_back(now);
    if (states_.size() > kRememberedStates) states_.pop_front();
    return seen;
  }

  Graph& graph_;
  Watch* const watch_;
  Rules sweep_;
  std::vector<const Rewrite*> cleanup_, final_;
  std::deque<uint64_t> states_;
};

bool run_row(Graph& graph, const Rewrite& rewrite, Watch* watch) {
  return rewrite.local ? Equilibrium(graph, rewrite, watch).run() : run_pass(graph, rewrite, watch);
}

// Runs the required rows. They run before observers compare values, because a graph may have none yet. Their exceptions
// are user errors and reach the caller.
void run_required(Graph& graph, Stages stages) {
  const Pipeline& pipeline = *PipelineScope::current().pipeline;
  for (const Rewrite& row : pipeline.rows()) {
    if (!row.required || !stages.contain(pipeline.info(row).position)) continue;
    const Clock::time_point start = Clock::now();
    const bool changed = row.pass(graph);
    report(row, {.tried = 1, .fired = changed ? 1 : 0, .microseconds = microseconds_since(start)});
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
  if (current_settings) return *current_settings;
  static const Settings usual{.query = Query::parse("")};
  if (usual.pipeline->generation() == RewriteDatabase::current()->generation()) return usual;
  // Behind a pointer: memory of threads that is there from the start is scarce (static TLS), and rows of users are
  // rare.
  thread_local const auto with_rows_of_users = std::make_unique<Settings>(Settings{.query = Query::parse("")});
  if (with_rows_of_users->pipeline->generation() != RewriteDatabase::current()->generation())
    with_rows_of_users->pipeline = RewriteDatabase::current();
  return *with_rows_of_users;
}

namespace {
thread_local std::vector<Query> scopes;  // queries of mx.rewrite.scope(), outermost first

bool allows_unsafe(const Query& query) {
  return std::find(query.include.begin(), query.include.end(), "fast_math") != query.include.end();
}
}  // namespace

QueryScope::QueryScope(Query query) { scopes.push_back(std::move(query)); }
QueryScope::~QueryScope() { scopes.pop_back(); }

Query QueryScope::applied_to(Query query) {
  for (const Query& scope : scopes) {
    const bool unsafe = allows_unsafe(scope) || allows_unsafe(query);
    if (scope.chooses && !query.chooses) query.include = scope.include;
    if (unsafe && !allows_unsafe(query)) query.include.emplace_back("fast_math");
    query.exclude.insert(query.exclude.end(), scope.exclude.begin(), scope.exclude.end());
    query.require.insert(query.require.end(), scope.require.begin(), scope.require.end());
    query.debug = query.debug || scope.debug;
    query.position_cutoff = std::min(query.position_cutoff, scope.position_cutoff);
    for (const auto& [stage, inner] : scope.subqueries) query.subqueries.try_emplace(stage, inner);
  }
  return query;
}

OnRewriteError on_rewrite_error() {
  const std::string& choice = environment().on_rewrite_error;
  if (choice == "raise") return OnRewriteError::kRaise;
  return choice == "ignore" ? OnRewriteError::kIgnore : OnRewriteError::kWarn;
}

namespace {

thread_local std::vector<RewriteObserver*> onlookers;

class Watches final : public Watch {
 public:
  explicit Watches(std::vector<std::unique_ptr<Watch>> watches) : watches_(std::move(watches)) {}
  void changed(const Rewrite& rewrite) override {
    for (const std::unique_ptr<Watch>& watch : watches_) watch->changed(rewrite);
  }

 private:
  std::vector<std::unique_ptr<Watch>> watches_;
};

// Returns one Watch for all observers of the graph; null if there are none.
std::unique_ptr<Watch> watch_over(const Graph& graph) {
  std::vector<std::unique_ptr<Watch>> watches;
  if (RewriteObserver* observer = PipelineScope::current().observer)
    if (std::unique_ptr<Watch> watch = observer->watch(graph)) watches.push_back(std::move(watch));
  for (RewriteObserver* observer : onlookers)
    if (std::unique_ptr<Watch> watch = observer->watch(graph)) watches.push_back(std::move(watch));
  return watches.empty() ? nullptr : std::make_unique<Watches>(std::move(watches));
}

}  // namespace

ObserverScope::ObserverScope(RewriteObserver& observer) : observer_(observer) { onlookers.push_back(&observer); }
ObserverScope::~ObserverScope() { std::erase(onlookers, &observer_); }

bool visit_once(Graph& graph, const std::vector<const Rewrite*>& rules, const Visit& visit) {
  const std::unique_ptr<Watch> watch = watch_over(graph);
  Rules shown(graph, rules, watch.get());
  std::mt19937_64 random(visit.seed);
  std::vector<NodePtr> waiting;  // the next one last
  for (Node* node : graph.order()) waiting.emplace_back(node);
  if (visit.order == VisitOrder::kProducersFirst) std::reverse(waiting.begin(), waiting.end());
  bool changed = false;
  while (!waiting.empty() && !shown.exhausted()) {
    if (visit.order == VisitOrder::kRandom) std::swap(waiting[random() % waiting.size()], waiting.back());
    const NodePtr node = std::move(waiting.back());
    waiting.pop_back();
    if (!graph.contains(node.get()) || node->is_variable()) continue;
    shown.note_size();
    std::vector<NodePtr> added;
    if (!shown.show(*node, &added)) continue;
    changed = true;
    if (!visit.ignore_new) waiting.insert(waiting.end(), added.rbegin(), added.rend());
  }
  if (shown.exhausted()) shown.stop();
  shown.report_all();
  return changed;
}

bool run_to_equilibrium(Graph& graph, const std::vector<const Rewrite*>& rules) {
  const std::unique_ptr<Watch> watch = watch_over(graph);
  return Equilibrium(graph, rules, watch.get()).run();
}

bool run_rewrite(Graph& graph, const Rewrite& rewrite) {
  const std::unique_ptr<Watch> watch = watch_over(graph);
  return run_row(graph, rewrite, watch.get());
}

Stages only(Stage stage) {
  const double position = PipelineScope::current().pipeline->info(stage).position;
  return {position, std::nextafter(position, kEndPosition)};
}

void run_pipeline(Graph& graph, Stages stages) {
  const PipelineScope::Settings& settings = PipelineScope::current();
  const std::shared_ptr<const Pipeline> keep = settings.pipeline;  // rows may be added during the run
  const Pipeline& pipeline = *keep;
  run_required(graph, stages);
  const std::unique_ptr<Watch> watch = watch_over(graph);
  for (size_t s = 0; s < pipeline.stages().size(); ++s) {
    const StageInfo& stage = pipeline.stages()[s];
    if (!stages.contain(stage.position) || stage.position > settings.query.position_cutoff) continue;
    std::vector<const Rewrite*> rows;
    for (const Rewrite* row : pipeline.rows_of(s))
      if (!row->required && settings.query.in(stage.name).accepts(*row) &&
          (!row->has_tag("needs_jit") || native_code_available()))
        rows.push_back(row);
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
