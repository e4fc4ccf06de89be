// The mutable owner of nodes while a graph is rewritten (Graph), and the interface of its observers (GraphFeature).
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

// A reader of an entry: input `index` of a node, output `index` of the graph, or its write-back number `index`.
struct Client {
  enum class Kind : int8_t { kNode, kOutput, kWriteback };
  Kind kind = Kind::kNode;
  Node* node = nullptr;  // kNode only
  int index = 0;
  bool operator==(const Client&) const = default;
};

using EntryMap = std::unordered_map<NodeEntry, NodeEntry, NodeEntryHash>;

class Graph;

// Observes every edit of a graph, also when it is undone, in the order in which they happen. Features run in the order
// in which they were attached. An exception of a callback about an edit is kept and thrown when the edit is validated.
class GraphFeature {
 public:
  virtual ~GraphFeature() = default;
  virtual std::string name() const = 0;
  virtual void attached(Graph& graph) { (void)graph; }  // throwing: it is not attached
  virtual void detached(Graph& graph) { (void)graph; }
  virtual void imported(Graph& graph, Node& node) { (void)graph, (void)node; }
  virtual void pruned(Graph& graph, Node& node) { (void)graph, (void)node; }  // the node still has its inputs
  // client reads another entry now; `before`: the entry that it read before.
  virtual void input_changed(Graph& graph, const Client& client, const NodeEntry& before) {
    (void)graph, (void)client, (void)before;
  }
  virtual void validate(Graph& graph) { (void)graph; }  // throwing: edits since the last checkpoint are undone
  // Pairs of nodes of which the first must run before the second, beside the order that follows from their inputs.
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

  // Adds clones of all nodes that outputs depend on. `map` holds the clones of leaves on entry and of every entry on
  // return. specs: the specs of the originals; null: Node::specs of the originals. Returns the clones of outputs.
  std::vector<NodeEntry> import(const std::vector<NodeEntry>& outputs, const SpecMap* specs, EntryMap& map);
  // The same from another Graph: keeps the order in which its nodes are scheduled, and formats.
  std::vector<NodeEntry> import(const Graph& from, const std::vector<NodeEntry>& outputs, EntryMap& map);

  NodePtr add_input(std::string name, const TensorSpec& spec, Format format = Format::kPlain);
  NodePtr add_constant(Ref<Object> array, const TensorSpec& spec);
  // Adds a node and infers its specs; name, block and source line come from `origin`. Passes on errors of inference.
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
  // The only node that reads the entry; null if there are several readers, or an output or write-back of the graph.
  Node* only_reader(const NodeEntry& entry) const;
  const TensorSpec& spec(const NodeEntry& entry) const { return entry.node->specs[entry.index]; }
  Format format(const NodeEntry& entry) const;
  void set_format(const NodeEntry& entry, Format format);
  // Every node after its producers.
  std::vector<Node*> order() const;
  // The same, in the order in which nodes were made (a replacement has the age of the replaced node): forward nodes in
  // the order of the model, gradients as soon as they can be computed.
  std::vector<Node*> schedule() const;
  // Makes `node`, which readers of `other` now read, at least as old as `other`.
  void make_as_old_as(const Node& node, const Node& other);
  int64_t label(const Node& node) const { return states_.at(&node).label; }  // grows along order()

  void set_input(Node& node, int index, const NodeEntry& entry);  // throws Error if that makes a cycle
  void set_output(int index, const NodeEntry& entry);
  void set_writeback(int index, const NodeEntry& entry);
  void remove_output(int index);
  // Every reader of `old` reads `now` instead; producers without readers are removed. The new spec must be the same.
  void replace(const NodeEntry& old, const NodeEntry& now);
  using Pairs = std::vector<std::pair<NodeEntry, NodeEntry>>;
  // Replaces all pairs or none: on a wrong spec, a cycle, or a node of `remove` that is still there, undoes everything,
  // returns false and sets *why to the reason.
  bool replace_validate(const Pairs& pairs, const std::vector<Node*>& remove, std::string* why = nullptr);
  int64_t num_rejected() const { return num_rejected_; }  // replacements that replace_validate() has undone
  // Throws the objection of a feature to the present graph, or Error if orderings and edges make a cycle.
  void validate();
  // Drops nodes without readers; returns their number.
  int remove_unused();
  void drop_unread(std::vector<NodePtr> candidates);  // the same for these nodes, and the nodes that only they read

  using Checkpoint = size_t;
  Checkpoint checkpoint();     // edits are remembered until every checkpoint is released
  void revert(Checkpoint to);  // undoes later edits; the checkpoint stays open
  void release(Checkpoint at);
  std::vector<NodePtr> added_since(Checkpoint at) const;  // without nodes that are gone again
  int64_t num_pruned_since(Checkpoint at) const;
  Checkpoint num_edits_kept() const { return journal_.size(); }  // while a checkpoint is open
  bool edited_since(Checkpoint at) const { return journal_.size() > at; }

  // Throw Error for a feature that is attached already (attach) or is not attached (detach).
  void attach(std::shared_ptr<GraphFeature> feature);
  void detach(const GraphFeature& feature);
  const std::vector<std::shared_ptr<GraphFeature>>& features() const { return features_; }
  // The reason of the present edits for features: the name of the running rewrite.
  const std::string& reason() const { return reason_; }
  std::string set_reason(std::string reason) { return std::exchange(reason_, std::move(reason)); }

  uint64_t fingerprint() const;  // a hash of the structure, without names
  std::string text() const;      // one line per node
  void check() const;            // throws Error if readers, labels or specs contradict the nodes (tests)

 private:
  struct State {
    NodePtr self;
    int64_t label = 0;
    int64_t age = 0;                           // for schedule(): creation number of the node, or of the replaced one
    std::vector<std::vector<Client>> clients;  // per output
    std::vector<size_t> places;                // per input: its index among the producer's clients
  };
  struct Edit {
    enum class Kind : int8_t { kAdd, kPrune, kInput, kOutput, kWriteback, kFormat } kind;
    NodePtr node;
    int index = 0;
    NodeEntry before;  // kFormat: the entry whose format changed
    int64_t age = 0;
    Format format{};
  };

  State& state(const Node* node);
  void insert(NodePtr node, int64_t label, int64_t age);
  NodePtr clone(const Node& node, const SpecMap* specs, EntryMap& map, int64_t age);
  void erase(const Node* node);
  int64_t label_after(const Node* node);         // a free label right after node (null: before all nodes)
  void make_room(int64_t label);                 // moves labels apart after a node whose neighbor is too close
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
  std::vector<size_t> output_places_, writeback_places_;  // like State::places
  std::unordered_map<const Node*, State> states_;
  std::unordered_map<const Node*, int> input_numbers_;
  std::map<int64_t, Node*> by_label_;
  std::unordered_map<NodeEntry, Format, NodeEntryHash> formats_;
  mutable std::vector<Node*> schedule_;  // the result of schedule(); empty: not computed since the last edit
  std::vector<Edit> journal_;
  int64_t next_age_ = 0;
  int64_t num_rejected_ = 0;
  int open_checkpoints_ = 0;
  std::vector<std::shared_ptr<GraphFeature>> features_;
  std::exception_ptr objection_;  // the exception of a feature since the last validation
  std::string reason_;
};

}  // namespace hybridnet
