// The mutable owner of nodes while a graph is rewritten (Graph), rewrites, and the database they are chosen from.
// A local rule looks at one node; a pass is a function over the whole graph; a pipeline is an ordered choice of both.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet {

// Who reads an entry: input `index` of a node, output `index` of the graph, or its write-back number `index`.
struct Client {
  enum class Kind : int8_t { kNode, kOutput, kWriteback };
  Kind kind = Kind::kNode;
  Node* node = nullptr;  // kNode only
  int index = 0;
  bool operator==(const Client&) const = default;
};

using EntryMap = std::unordered_map<NodeEntry, NodeEntry, NodeEntryHash>;

// Owns clones of a graph's nodes; nodes of the original are never touched. Every entry has a known spec (Node::specs).
// Threads: one at a time.
class Graph {
 public:
  // After a call, graph input `input` holds `value`.
  struct Writeback {
    int input = 0;
    NodeEntry value;
  };

  explicit Graph(bool train = false) : train_(train) {}
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  // Adds clones of everything outputs depend on. `map` holds the clones of leaves on entry and of every entry on
  // return. specs: of the originals; null: what the originals hold themselves. Returns the clones of outputs.
  std::vector<NodeEntry> import(const std::vector<NodeEntry>& outputs, const SpecMap* specs, EntryMap& map);
  // The same from another Graph: keeps the order in which its nodes are scheduled, and formats.
  std::vector<NodeEntry> import(const Graph& from, const std::vector<NodeEntry>& outputs, EntryMap& map);

  NodePtr add_input(std::string name, const TensorSpec& spec, Format format = Format::kPlain);
  NodePtr add_constant(Ref<Object> array, const TensorSpec& spec);
  // Adds a node and infers its specs; `origin` gives name, block and source line. Throws what inference throws.
  NodePtr add(const Op& op, ParamsPtr params, std::vector<NodeEntry> inputs, const Node* origin = nullptr,
              std::vector<Ref<Subgraph>> bodies = {});
  int add_output(NodeEntry entry);
  void add_writeback(int input, NodeEntry value);

  bool train() const { return train_; }
  const std::vector<NodePtr>& inputs() const { return inputs_; }
  const std::vector<NodeEntry>& outputs() const { return outputs_; }
  const std::vector<Writeback>& writebacks() const { return writebacks_; }
  int input_index(const Node* variable) const;  // -1: not an input of the graph
  bool contains(const Node* node) const { return states_.count(node) != 0; }
  size_t num_nodes() const { return states_.size(); }
  const std::vector<Client>& clients(const NodeEntry& entry) const;
  const std::vector<Client>& clients(const Node& node, int output) const;
  bool is_used(const Node& node, int output) const { return !clients(node, output).empty(); }
  // The one node that reads the entry; null when several do, or the graph's border does.
  Node* only_reader(const NodeEntry& entry) const;
  const TensorSpec& spec(const NodeEntry& entry) const { return entry.node->specs[entry.index]; }
  Format format(const NodeEntry& entry) const;
  void set_format(const NodeEntry& entry, Format format);
  // Every node after its producers.
  std::vector<Node*> order() const;
  // The same, in the order in which nodes were made (a replacement counts as old as what it replaces): forward nodes as
  // the model lists them, gradients as soon as they can be computed.
  std::vector<Node*> schedule() const;
  int64_t label(const Node& node) const { return states_.at(&node).label; }  // grows along order()

  void set_input(Node& node, int index, const NodeEntry& entry);  // throws Error when that makes a cycle
  void set_output(int index, const NodeEntry& entry);
  void set_writeback(int index, const NodeEntry& entry);
  void remove_output(int index);
  // Every reader of `old` reads `now` instead; producers that lose their last reader go. The new spec must be the same.
  void replace(const NodeEntry& old, const NodeEntry& now);
  using Pairs = std::vector<std::pair<NodeEntry, NodeEntry>>;
  // All or none: on a wrong spec, a cycle, or a node of `remove` that is still there, everything is as before; returns
  // false and says why.
  bool replace_validate(const Pairs& pairs, const std::vector<Node*>& remove, std::string* why = nullptr);
  int64_t num_rejected() const { return num_rejected_; }  // replacements that replace_validate() has undone
  // Drops nodes that nothing reads; returns their number.
  int remove_unused();

  using Checkpoint = size_t;
  Checkpoint checkpoint();     // edits are remembered until every checkpoint is released
  void revert(Checkpoint to);  // undoes what came after; the checkpoint stays open
  void release(Checkpoint at);

  uint64_t fingerprint() const;  // of the structure; names do not count
  std::string text() const;      // one line per node
  void check() const;            // throws Error if readers, labels or specs are not what the nodes say (tests)

 private:
  struct State {
    NodePtr self;
    int64_t label = 0;
    int64_t age = 0;                           // for schedule(): number of the node it was made as, or stands for
    std::vector<std::vector<Client>> clients;  // per output
    std::vector<size_t> places;                // per input: where among the producer's clients it stands
  };
  struct Edit {
    enum class Kind : int8_t { kAdd, kPrune, kInput, kOutput, kWriteback, kFormat } kind;
    NodePtr node;
    int index = 0;
    NodeEntry before;  // kFormat: the entry whose format it is
    int64_t age = 0;
    Format format{};
  };

  State& state(const Node* node);
  void insert(NodePtr node, int64_t label, int64_t age);
  NodePtr clone(const Node& node, const SpecMap* specs, EntryMap& map, int64_t age);
  void erase(const Node* node);
  int64_t label_after(const Node* node);         // a free label right behind node (null: in front of all)
  void make_room(int64_t label);                 // moves labels apart behind a node whose neighbour is too close
  void move_behind(Node& node, Node& producer);  // restores the order after node became a reader of producer
  size_t& place_of(const Client& client);
  void link(const NodeEntry& entry, Client client);
  void unlink(const NodeEntry& entry, const Client& client);
  void rewire(const Client& client, const NodeEntry& entry);
  void prune(std::vector<NodePtr> candidates);
  bool is_root(const Node& node) const { return input_numbers_.count(&node) != 0; }
  void remember(Edit edit) {
    if (open_checkpoints_ > 0) journal_.push_back(std::move(edit));
  }

  bool train_;
  std::vector<NodePtr> inputs_;
  std::vector<NodeEntry> outputs_;
  std::vector<Writeback> writebacks_;
  std::vector<size_t> output_places_, writeback_places_;  // as State::places
  std::unordered_map<const Node*, State> states_;
  std::unordered_map<const Node*, int> input_numbers_;
  std::map<int64_t, Node*> by_label_;
  std::unordered_map<NodeEntry, Format, NodeEntryHash> formats_;
  mutable std::vector<Node*> schedule_;  // as schedule() has found it; empty: not since the last edit
  std::vector<Edit> journal_;
  int64_t next_age_ = 0;
  int64_t num_rejected_ = 0;
  int open_checkpoints_ = 0;
};

// ---------------------------------------------------------------------------------------------------------- rewrites
// What a local rule wants.
struct Replacement {
  std::vector<NodeEntry> outputs;  // one per output of the node, null where nothing reads it; empty: no change
  Graph::Pairs others;             // entries of other nodes to be replaced as well
  std::vector<Node*> remove;       // must be gone afterwards, or nothing is done
  bool changed() const { return !outputs.empty() || !others.empty(); }
};
inline Replacement no_change() { return {}; }
inline Replacement replace_with(NodeEntry entry) { return {{std::move(entry)}, {}, {}}; }

using LocalRule = std::function<Replacement(Graph&, Node&)>;
using GraphPass = std::function<bool(Graph&)>;  // true: something changed

enum class Trait : int8_t { kAny, kIdentity, kView, kPointwise, kCommutative, kImage };

// The stages of the pipeline in the order in which they run; passes/pipelines.cc says what each is for.
enum class Stage : int8_t {
  kExpand,  // the forward graph
  kClean,
  kCanonicalize,
  kLoops,
  kBranches,
  kFuseWithGradient,
  kCleanJoint,  // forward and backward nodes in one graph
  kCanonicalizeJoint,
  kLoopsJoint,
  kConstants,
  kLayout,
  kControlParts,  // the forward part and the backward part, each by itself
  kFuseLayers,
  kSpecialize,
  kFuseChains,
};
struct Stages {
  Stage first, last;
};
inline constexpr Stages kForwardStages{Stage::kExpand, Stage::kFuseWithGradient};
inline constexpr Stages kJointStages{Stage::kCleanJoint, Stage::kLayout};
inline constexpr Stages kPartStages{Stage::kControlParts, Stage::kFuseChains};
inline constexpr Stages kStagesBehindGradient{Stage::kCleanJoint, Stage::kFuseChains};
inline constexpr Stages kAllStages{Stage::kExpand, Stage::kFuseChains};

// What a rewrite promises of the values of the graph.
enum class Exactness : int8_t { kBitwise, kRounding };

struct StageInfo {
  Stage stage{};
  std::string name;
  std::string graph;         // what the stage sees: "forward", "joint" or "parts"
  bool equilibrium = false;  // all its local rules run together until none fires; else one row after the other
  std::string what;
};

// One row of the pipeline.
struct Rewrite {
  Stage stage{};
  std::string name;
  std::string rule;  // what the rows of one rewrite in several stages have in common; empty: name
  LocalRule local;   // one of local and pass is set
  GraphPass pass;
  std::vector<std::string> ops;    // nodes that a local rule looks at: of these operators,
  std::vector<Trait> traits;       // or with one of these traits. Neither: every node
  std::set<std::string> tags;      // name and rule count as tags, too
  std::vector<std::string> after;  // rows that must stand before this one
  bool required = false;           // runs whatever the query says: the graph has no plan without it
  Exactness exactness = Exactness::kBitwise;
  std::string what;  // of the rule; later rows of it leave it out
  std::string why;   // why the row stands in its stage, where that is not obvious
  bool tracks(const Op& op) const;
  bool has_tag(std::string_view tag) const { return name == tag || rule == tag || tags.count(std::string(tag)) != 0; }
};

// (union of include) and every of require, without any of exclude.
struct Query {
  std::vector<std::string> include, exclude, require;
  bool debug = false;  // the values of the graph are compared before and after each rewrite
  bool accepts(const Rewrite& rewrite) const;
  // "fast_run,-fusion,&loop"; empty text: fast_run. Excludes of several sources add up. "debug": fast_run, checked.
  static Query parse(std::string_view text);
  Query& excluding(const std::vector<std::string>& tags);
};

// What the rewrites of one compilation did, those of bodies of loops and branches included.
class PassReport {
 public:
  struct Line {
    std::string name;
    int64_t fired = 0;
    int64_t rejected = 0;  // replacements that were undone: they did not fit the graph
    double microseconds = 0;
    std::vector<std::pair<std::string, int64_t>> bodies;  // in which bodies it fired, and how often
  };
  // place: "" for the graph itself, else which body of which node.
  void add(std::string_view name, std::string_view place, const Line& more);
  void warn(std::string text) { warnings_.push_back(std::move(text)); }
  const std::vector<Line>& lines() const { return lines_; }  // in order of first use
  const std::vector<std::string>& warnings() const { return warnings_; }
  std::string text() const;  // what fired or was undone, slowest first; the rest as one line

 private:
  std::vector<Line> lines_;
  std::vector<std::string> warnings_;
};

// The rows of a pipeline in the order in which they run.
class Pipeline {
 public:
  // Throws ParamError for a row without a known stage, out of order, with a name that is taken, or without a function,
  // for a row that must stand behind one which does not stand before it, and for a pass in an equilibrium.
  Pipeline(std::vector<StageInfo> stages, std::vector<Rewrite> rows);
  const std::vector<StageInfo>& stages() const { return stages_; }
  const std::vector<Rewrite>& rows() const { return rows_; }
  const StageInfo& info(Stage stage) const;
  const Rewrite& at(std::string_view name) const;  // throws ParamError
  // Throws ParamError, naming the nearest known word, when a word of the query is no name, rule or tag of any row.
  // source: where the query comes from ("passes", "HYBRIDNET_PASSES").
  void check(const Query& query, std::string_view source) const;

 private:
  std::vector<StageInfo> stages_;
  std::vector<Rewrite> rows_;
};
const Pipeline& pipeline();  // of the process: the table in passes/pipelines.cc

// Looks on while graphs are rewritten: how the debug profile compares values.
class RewriteObserver {
 public:
  class Watch {  // over one graph
   public:
    virtual ~Watch() = default;
    // `rewrite` has changed the graph. What this throws undoes the change and is reported as the rewrite's failure.
    virtual void changed(const Rewrite& rewrite) = 0;
  };
  virtual ~RewriteObserver() = default;
  // Called before the first rewrite; may return null. The graph outlives the watch.
  virtual std::unique_ptr<Watch> watch(const Graph& graph) = 0;
};

// How graphs are rewritten on this thread, bodies of loops and branches included, as long as it lives.
class PipelineScope {
 public:
  struct Settings {
    Query query;
    PassReport* report = nullptr;
    RewriteObserver* observer = nullptr;
    std::string place;  // in which body of which node; empty: the graph itself
  };
  explicit PipelineScope(Settings settings);
  PipelineScope(const Node& control, size_t body);  // as around it; reported as done in this body
  ~PipelineScope();
  PipelineScope(const PipelineScope&) = delete;
  PipelineScope& operator=(const PipelineScope&) = delete;
  static const Settings& current();  // fast_run without a report outside any scope

 private:
  Settings settings_;
  const Settings* before_;
};

// What to do when a rule throws or does not terminate: HYBRIDNET_ON_REWRITE.
enum class OnRewriteError : int8_t { kWarn, kRaise, kIgnore };
OnRewriteError on_rewrite_error();

// Applies local rules until none fires. Stops, leaving a valid graph and a warning naming the rules, when a rule fires
// more than 8 times the number of nodes, after 64 sweeps, or when a state comes back.
bool run_to_equilibrium(Graph& graph, const std::vector<const Rewrite*>& rules);

// Runs one row by itself, whatever the query of the scope says. True: it changed the graph.
bool run_rewrite(Graph& graph, const Rewrite& rewrite);

// Runs the rows of these stages that the query of the scope selects.
void run_pipeline(Graph& graph, Stages stages);

}  // namespace hybridnet
