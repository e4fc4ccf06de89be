// The mutable owner of nodes while a graph is rewritten (Graph), rewrites, and the database they are chosen from.
// A local rule looks at one node; a pass is a function over the whole graph; a pipeline is an ordered choice of both.
#pragma once

#include <functional>
#include <map>
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
  void remove_writeback(int index);
  // Every reader of `old` reads `now` instead; producers that lose their last reader go. The new spec must be the same.
  void replace(const NodeEntry& old, const NodeEntry& now);
  using Pairs = std::vector<std::pair<NodeEntry, NodeEntry>>;
  // All or none: on a wrong spec, a cycle, or a node of `remove` that is still there, everything is as before; returns
  // false and says why.
  bool replace_validate(const Pairs& pairs, const std::vector<Node*>& remove, std::string* why = nullptr);
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
    enum class Kind : int8_t { kAdd, kPrune, kInput, kOutput, kWriteback } kind;
    NodePtr node;
    int index = 0;
    NodeEntry before;
    int64_t age = 0;
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
  std::vector<Edit> journal_;
  int64_t next_age_ = 0;
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

struct Rewrite {
  std::string name;
  double position = 0;
  std::set<std::string> tags;  // the name counts as a tag
  LocalRule rule;              // one of rule and pass is set
  GraphPass pass;
  std::vector<std::string> ops;
  std::vector<Trait> traits;  // no ops and no traits: every node
  bool tracks(const Op& op) const;
  bool has_tag(std::string_view tag) const { return name == tag || tags.count(std::string(tag)) != 0; }
};

// (union of include) and every of require, without any of exclude.
struct Query {
  std::vector<std::string> include, exclude, require;
  bool accepts(const Rewrite& rewrite) const;
  // "fast_run,-inplace,&stable"; empty text: fast_run. Excludes of several sources add up.
  static Query parse(std::string_view text);
  Query& excluding(const std::vector<std::string>& tags);
};

struct PassReport {
  struct Line {
    std::string name;
    int64_t fired = 0;
    double microseconds = 0;
  };
  std::vector<Line> lines;  // in order of first use
  std::vector<std::string> warnings;
  void add(std::string_view name, int64_t fired, double microseconds);
  std::string text() const;
};

class RewriteDatabase {
 public:
  class Builder {
   public:
    explicit Builder(Rewrite& rewrite) : rewrite_(rewrite) {}
    Builder& tracks(Trait trait) {
      rewrite_.traits.push_back(trait);
      return *this;
    }
    Builder& tracks(std::vector<std::string> ops) {
      rewrite_.ops = std::move(ops);
      return *this;
    }
    Builder& at(double position) {
      rewrite_.position = position;
      return *this;
    }
    Builder& tags(std::set<std::string> tags) {
      rewrite_.tags = std::move(tags);
      return *this;
    }

   private:
    Rewrite& rewrite_;
  };
  // Throws ParamError when the name is taken, as a name or as a tag.
  Builder local(std::string name, LocalRule rule);
  Builder pass(std::string name, GraphPass pass);
  std::vector<const Rewrite*> select(const Query& query) const;  // by position, then order of registration
  const Rewrite* find(std::string_view name) const;

 private:
  Rewrite& add(std::string name);
  std::vector<std::unique_ptr<Rewrite>> rewrites_;
};
RewriteDatabase& rewrite_database();  // the process' database, filled by passes/pipelines.cc

// What to do when a rule throws or does not terminate: HYBRIDNET_ON_REWRITE.
enum class OnRewriteError : int8_t { kWarn, kRaise, kIgnore };
OnRewriteError on_rewrite_error();

// Applies local rules until none fires. Stops, leaving a valid graph and a warning naming the rules, when a rule fires
// more than 8 times the number of nodes, after 64 sweeps, or when a state comes back.
bool run_to_equilibrium(Graph& graph, const std::vector<const Rewrite*>& rules, PassReport* report);

// Runs what `query` selects at positions in [first, last). Local rules of one position form one equilibrium.
void run_pipeline(Graph& graph, const Query& query, double first, double last, PassReport* report);

}  // namespace hybridnet
