// The mutable owner of nodes while a graph is rewritten (Graph), and those who want to know what happens to it.
#pragma once

#include <exception>
#include <map>
#include <memory>
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

class Graph;

// Sees every edit of a graph, its undoing included, in the order in which they happen. Features run in the order in
// which they were attached. What a callback about an edit throws is kept and thrown when the edit is validated.
class GraphFeature {
 public:
  virtual ~GraphFeature() = default;
  virtual std::string name() const = 0;
  virtual void attached(Graph& graph) { (void)graph; }  // throwing: it is not attached
  virtual void detached(Graph& graph) { (void)graph; }
  virtual void imported(Graph& graph, Node& node) { (void)graph, (void)node; }
  virtual void pruned(Graph& graph, Node& node) { (void)graph, (void)node; }  // the node still has its inputs
  // client reads another entry now; `before`: what it read.
  virtual void input_changed(Graph& graph, const Client& client, const NodeEntry& before) {
    (void)graph, (void)client, (void)before;
  }
  virtual void validate(Graph& graph) { (void)graph; }  // throwing: what was done since the last checkpoint is undone
  // Pairs of nodes: the first must run before the second, beside what their inputs say.
  virtual std::vector<std::pair<Node*, Node*>> orderings(const Graph& graph) {
    (void)graph;
    return {};
  }
};

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
  // From now on `node` counts as old as `other` at least, whose readers read it.
  void make_as_old_as(const Node& node, const Node& other);
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
  // Throws what a feature has against the graph as it is, and when their orderings and the edges make a cycle.
  void validate();
  // Drops nodes that nothing reads; returns their number.
  int remove_unused();
  void drop_unread(std::vector<NodePtr> candidates);  // the same for these, and what only they read

  using Checkpoint = size_t;
  Checkpoint checkpoint();     // edits are remembered until every checkpoint is released
  void revert(Checkpoint to);  // undoes what came after; the checkpoint stays open
  void release(Checkpoint at);
  std::vector<NodePtr> added_since(Checkpoint at) const;  // those that are still there
  int64_t num_pruned_since(Checkpoint at) const;
  Checkpoint num_edits_kept() const { return journal_.size(); }  // while a checkpoint is open
  bool edited_since(Checkpoint at) const { return journal_.size() > at; }

  // Each feature once; throws Error for a feature that is attached already, or is not.
  void attach(std::shared_ptr<GraphFeature> feature);
  void detach(const GraphFeature& feature);
  const std::vector<std::shared_ptr<GraphFeature>>& features() const { return features_; }
  // Why edits happen: the name of the rewrite at work, for features.
  const std::string& reason() const { return reason_; }
  std::string set_reason(std::string reason) { return std::exchange(reason_, std::move(reason)); }

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
  template <typename Tell>
  void tell_features(const Tell& tell);
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
  std::vector<std::shared_ptr<GraphFeature>> features_;
  std::exception_ptr objection_;  // what a feature has thrown since the last validation
  std::string reason_;
};

}  // namespace hybridnet
