// Rewrites of graphs, and the database that they are chosen from. A local rule rewrites one node; a pass is a function
// over the whole graph; a pipeline is an ordered choice of both.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hybridnet/mutable_graph.h"

namespace hybridnet {

// The result of a local rule.
struct Replacement {
  std::vector<NodeEntry> outputs;  // one per output of the node, null for unused outputs; empty: no change
  Graph::Pairs others;             // entries of other nodes to be replaced as well
  std::vector<Node*> remove;       // must be gone afterwards, or nothing is done
  bool changed() const { return !outputs.empty() || !others.empty(); }
};
inline Replacement no_change() { return {}; }
inline Replacement replace_with(NodeEntry entry) { return {{std::move(entry)}, {}, {}}; }

using LocalRule = std::function<Replacement(Graph&, Node&)>;
using GraphPass = std::function<bool(Graph&)>;  // true: something changed

enum class Trait : int8_t { kAny, kIdentity, kView, kPointwise, kCommutative, kImage, kActivation };

// The stages of the pipeline in the order in which they run; passes/pipelines.cc has their purposes and positions.
enum class Stage : int8_t {
  kExpand,  // the forward graph
  kClean,
  kCanonicalize,
  kStabilize,
  kLoops,
  kBranches,
  kFuseWithGradient,
  kPrecision,
  kCleanJoint,  // forward and backward nodes in one graph
  kCanonicalizeJoint,
  kLoopsJoint,
  kConstants,
  kRemat,
  kLayout,
  kControlParts,  // the forward part and the backward part, each by itself
  kFuseLayers,
  kSpecialize,
  kFuseChains,
  kOwn,  // for rows that users add between the stages
};
// Positions in the pipeline: those from `first` up to, but not including, `end`.
struct Stages {
  double first, end;
  bool contain(double position) const { return first <= position && position < end; }
};
inline constexpr double kGradientPosition = 10;  // before it, rows see the forward graph, after it the joint graph
inline constexpr double kSplitPosition = 38;     // from here on rows see the forward part and the backward part
inline constexpr double kInPlacePosition = 50;   // from here on rules may write over their inputs
inline constexpr double kEndPosition = 100;
inline constexpr Stages kForwardStages{0, kGradientPosition};
inline constexpr Stages kJointStages{kGradientPosition, kSplitPosition};
inline constexpr Stages kPartStages{kSplitPosition, kEndPosition};
inline constexpr Stages kStagesBehindGradient{kGradientPosition, kEndPosition};
inline constexpr Stages kAllStages{0, kEndPosition};

// How exactly a rewrite preserves the values of the graph. kUnsafe: results may differ for zeros, infinities and NaN;
// such rows run if the query includes "fast_math".
enum class Exactness : int8_t { kBitwise, kRounding, kUnsafe };

// Tag of rows whose operators have gradients of a limited order. They do not run on gradients that may be
// differentiated again.
inline constexpr char kLimitedOrder[] = "limited_order";

struct StageInfo {
  Stage stage{};
  double position = 0;
  std::string name;
  std::string graph;         // the graph that the stage rewrites: "forward", "joint" or "parts"
  bool equilibrium = false;  // its rows run together until none fires; else one after the other
  std::string what;
};

// When a row of an equilibrium runs: before each sweep over the nodes, in it, or after it. (Passes run before the
// sweep, after the rows that clean up.)
enum class Phase : int8_t { kCleanup, kSweep, kFinal };

// The members of a row that differ in a later stage.
struct Difference {
  LocalRule local;  // instead of the row's; null: the same
  GraphPass pass;
  std::vector<std::string> ops;    // instead of the row's; empty: the same
  std::set<std::string> without;   // tags that the row does not have there
  std::vector<std::string> after;  // rows that must run before it; it stands behind those of the same stage
  std::string why;                 // the reason why the row is in this stage
};

// One row of the table: a rule and the stages in which it runs. Pipeline::rows() has a row once for each of its stages,
// with this stage alone.
struct Rewrite {
  std::vector<Stage> stages;  // in the order of the pipeline
  std::string name;
  LocalRule local;  // one of local, pass and patterns is set
  GraphPass pass;
  // Rules such as "log(exp(x)) -> x" (graph/pattern_notation.h) instead of a local rule; ops follow from them. Only
  // floats match; with `integers`, integers match, too. shared: nodes outside of a match may read the values inside it.
  std::vector<std::string> patterns;
  bool integers = false, shared = false;
  std::vector<std::string> ops;    // nodes that a local rule visits: those with one of these operators ("mul": all
                                   // operators of this arithmetic, graph/arithmetic.h),
  std::vector<Trait> traits;       // or with one of these traits. Neither: every node
  std::set<std::string> tags;      // the name counts as a tag, too
  std::vector<std::string> after;  // rows that must run before this one, in its first stage
  bool required = false;           // runs for every query: the graph has no plan without it
  double position = 0;             // kOwn: in the pipeline; else among the rows of the stage, which are at 0
  Phase phase = Phase::kSweep;
  bool in_place = false;  // may write over inputs: after kInPlacePosition only
  Exactness exactness = Exactness::kBitwise;
  std::string what;  // description of the rule
  std::string why;   // the reason why the row is in its first stage, if it is not obvious
  std::map<Stage, Difference> differences;
  Stage stage() const { return stages.empty() ? Stage::kOwn : stages.front(); }
  bool tracks(const Op& op) const;
  bool has_tag(std::string_view tag) const { return name == tag || tags.count(std::string(tag)) != 0; }
};

// (union of include) and every of require, without any of exclude.
struct Query {
  std::vector<std::string> include, exclude, require;
  std::map<std::string, Query> subqueries;  // instead of this query in the stage or database of this name
  double position_cutoff = std::numeric_limits<double>::infinity();  // stages after it do not run
  bool debug = false;    // the values of the graph are compared before and after each rewrite
  bool chooses = false;  // the query names tags to include; else fast_run is included
  bool accepts(const Rewrite& rewrite) const;
  const Query& in(const std::string& stage) const;  // the query that applies to the stage
  // "fast_run,-fusion,&loop"; empty text: fast_run. Excludes of several sources add up. "debug": fast_run, checked.
  // "loops:-merge_loops" is a word of the subquery for `loops`, which begins as a copy of the query; "<=21" cuts off.
  static Query parse(std::string_view text);
  std::string text() const;  // parse(text()) is this query
  Query& excluding(const std::vector<std::string>& tags);
  Query& including(const std::vector<std::string>& tags);  // in stages with a query of their own, too

 private:
  void add_word(std::string_view word);
};

// A report on the rewrites of one compilation, including those of bodies of loops and branches.
class PassReport {
 public:
  struct Line {
    std::string name;
    std::string stage;  // empty: the row is in no stage
    int64_t tried = 0;  // nodes that a local rule visited, runs of a pass
    int64_t fired = 0;
    int64_t failed = 0;             // calls that threw
    int64_t rejected = 0;           // replacements that were undone: they did not fit the graph
    int64_t made = 0, dropped = 0;  // nodes
    double microseconds = 0;
    std::vector<std::pair<std::string, int64_t>> bodies;  // the bodies in which it fired, and how often
  };
  // The time that a feature of graphs took: one row per feature and callback.
  struct FeatureLine {
    std::string feature, callback;
    int64_t calls = 0;
    double microseconds = 0;
  };
  // stage: "" for a row in no stage. place: "" for the graph itself, else the node and its body.
  void add(std::string_view name, std::string_view stage, std::string_view place, const Line& more);
  void add_feature(std::string_view feature, std::string_view callback, double microseconds);
  void warn(std::string text) { warnings_.push_back(std::move(text)); }
  const std::vector<Line>& lines() const { return lines_; }               // in order of first use
  const std::vector<FeatureLine>& features() const { return features_; }  // in order of first use
  const std::vector<std::string>& warnings() const { return warnings_; }
  std::string text() const;  // the rows that fired or were undone, slowest first; the rest as one line

 private:
  std::vector<Line> lines_;
  std::vector<FeatureLine> features_;
  std::vector<std::string> warnings_;
};

// The rows of a pipeline in the order in which they run.
class Pipeline {
 public:
  // Rows in the order of their first stages (a stage of the joint graph counts as its stage of the forward graph); rows
  // with a position of their own (Stage::kOwn) anywhere. In each stage rows stand in the order of the table.
  // Throws ParamError for a row without a known stage, out of order, with a name that is taken, or without a function,
  // for a row that does not follow all rows of its `after`, and for one in place that is too early.
  Pipeline(std::vector<StageInfo> stages, const std::vector<Rewrite>& table);
  Pipeline(const Pipeline&) = delete;
  const std::vector<StageInfo>& stages() const { return stages_; }  // those of kOwn rows, too
  const std::vector<Rewrite>& rows() const { return rows_; }
  const std::vector<const Rewrite*>& rows_of(size_t stage) const { return rows_of_[stage]; }
  const StageInfo& info(Stage stage) const;         // not kOwn
  const StageInfo& info(const Rewrite& row) const;  // of this pipeline
  // The row in this stage, or in its first one. Throws ParamError.
  const Rewrite& at(std::string_view name, std::optional<Stage> stage = {}) const;
  bool has(std::string_view name) const;
  // Throws ParamError, naming the nearest known word, if a word of the query is no name or tag of any row, or no stage
  // although it has to be one. source: the origin of the query ("passes", "HYBRIDNET_PASSES").
  void check(const Query& query, std::string_view source) const;
  uint64_t generation() const { return generation_; }  // grows with each change of the pipeline of the process

 private:
  friend class RewriteDatabase;
  std::vector<StageInfo> stages_;
  std::vector<Rewrite> rows_;
  std::vector<std::vector<const Rewrite*>> rows_of_;  // by stage
  uint64_t generation_ = 0;
};

// The pipeline of the process: the table in passes/pipelines.cc and the rows that users have added. Changes make a new
// Pipeline; a running compilation continues with the old one. Needs Runtime::get(): patterns name operators. Threads:
// any.
class RewriteDatabase {
 public:
  static std::shared_ptr<const Pipeline> current();
  // A rule of a stage that has a twin for the joint graph (canonicalize, clean, loops) runs there, too. All rows are
  // added or, if Pipeline() throws, none.
  static void add(std::vector<Rewrite> rows);
  static void remove(std::string_view name);  // throws ParamError for rows not added by users

 private:
  static void exchange(std::vector<Rewrite> users);
};
std::vector<StageInfo> own_stages();  // the table in passes/pipelines.cc
std::vector<Rewrite> own_rows();

// Observes rewrites of graphs; the debug profile uses it to compare values.
class RewriteObserver {
 public:
  class Watch {  // over one graph
   public:
    virtual ~Watch() = default;
    // `rewrite` has changed the graph. An exception undoes the change and is reported as the rewrite's failure.
    virtual void changed(const Rewrite& rewrite) = 0;
  };
  virtual ~RewriteObserver() = default;
  // Called before the first rewrite; may return null. The graph outlives the watch.
  virtual std::unique_ptr<Watch> watch(const Graph& graph) = 0;
};

// Adds an observer of all rewrites of this thread, beside the observer of the PipelineScope: mx.rewrite.trace().
class ObserverScope {
 public:
  explicit ObserverScope(RewriteObserver& observer);
  ~ObserverScope();
  ObserverScope(const ObserverScope&) = delete;

 private:
  RewriteObserver& observer_;
};

// Sets how graphs, including bodies of loops and branches, are rewritten on this thread while it lives.
class PipelineScope {
 public:
  struct Settings {
    Query query;
    PassReport* report = nullptr;
    RewriteObserver* observer = nullptr;
    std::string place;  // the node and its body that is rewritten; empty: the graph itself
    std::shared_ptr<const Pipeline> pipeline = RewriteDatabase::current();
  };
  explicit PipelineScope(Settings settings);
  PipelineScope(const Node& control, size_t body);  // current settings, reported as done in this body
  ~PipelineScope();
  PipelineScope(const PipelineScope&) = delete;
  PipelineScope& operator=(const PipelineScope&) = delete;
  static const Settings& current();  // fast_run without a report outside any scope

 private:
  Settings settings_;
  const Settings* before_;
};

// The query of mx.rewrite.scope() on this thread: excludes and requires add up; includes apply if the block has chosen
// none.
class QueryScope {
 public:
  explicit QueryScope(Query query);
  ~QueryScope();
  QueryScope(const QueryScope&) = delete;
  QueryScope& operator=(const QueryScope&) = delete;
  static Query applied_to(Query query);
};

// The reaction to a rule that throws or does not terminate: HYBRIDNET_ON_REWRITE.
enum class OnRewriteError : int8_t { kWarn, kRaise, kIgnore };
OnRewriteError on_rewrite_error();

// Applies rules until none fires. Stops, leaving a valid graph and a warning naming the rules, when a rule fires
// more than 8 times the number of nodes, after 64 sweeps, when a state of the graph repeats, or when a rule has
// replaced its own results more often in a row than the graph had nodes (64 times at least), not counting replacements
// that make the graph smaller.
bool run_to_equilibrium(Graph& graph, const std::vector<const Rewrite*>& rules);

// Visits each node once with local rules, up to the first rule that fires. Nodes that rules make are visited, too,
// unless `ignore_new`. Stops like run_to_equilibrium if a rule fires too often.
enum class VisitOrder : int8_t { kProducersFirst, kReadersFirst, kRandom };
struct Visit {
  VisitOrder order = VisitOrder::kProducersFirst;
  bool ignore_new = false;
  uint64_t seed = 0;  // kRandom
};
bool visit_once(Graph& graph, const std::vector<const Rewrite*>& rules, const Visit& visit);

// Runs one row by itself, for any query of the scope. Returns true if the graph changed.
bool run_rewrite(Graph& graph, const Rewrite& rewrite);

// Runs the rows of these stages that the query of the scope selects.
void run_pipeline(Graph& graph, Stages stages);
Stages only(Stage stage);

}  // namespace hybridnet
