#include <algorithm>
#include <chrono>
#include <queue>

#include "graph/control/control_flow.h"
#include "graph/node_table.h"
#include "hybridnet/pass.h"

namespace hybridnet {
namespace {

constexpr int64_t kLabelStride = int64_t{1} << 24;

[[noreturn]] void throw_foreign(const Node* node) {
  throw Error(ErrorKind::kError, {.op = node && node->op ? node->op->name : "",
                                  .node = node ? node->name : "(none)",
                                  .message = "the node does not belong to this graph"});
}

[[noreturn]] void throw_cycle(const Node& node) {
  throw Error(ErrorKind::kError, {.op = node.op ? node.op->name : "",
                                  .node = node.name,
                                  .message = "the edit would make a cycle through this node"});
}

// Adds the run time of a feature's callback to the report of the current PipelineScope.
class FeatureTime {
 public:
  FeatureTime(const GraphFeature& feature, const char* callback)
      : report_(PipelineScope::current().report), feature_(feature), callback_(callback) {
    if (report_) start_ = Clock::now();
  }
  ~FeatureTime() {
    if (!report_) return;
    const std::chrono::duration<double, std::micro> took = Clock::now() - start_;
    report_->add_feature(feature_.name(), callback_, took.count());
  }
  FeatureTime(const FeatureTime&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  PassReport* const report_;
  const GraphFeature& feature_;
  const char* const callback_;
  Clock::time_point start_;
};

}  // namespace

Graph::State& Graph::state(const Node* node) {
  const auto it = states_.find(node);
  if (it == states_.end()) throw_foreign(node);
  return it->second;
}

const std::vector<Client>& Graph::clients(const Node& node, int output) const {
  const auto it = states_.find(&node);
  if (it == states_.end()) throw_foreign(&node);
  return it->second.clients[static_cast<size_t>(output)];
}

const std::vector<Client>& Graph::clients(const NodeEntry& entry) const {
  return clients(*entry.node, static_cast<int>(entry.index));
}

Node* Graph::only_reader(const NodeEntry& entry) const {
  const std::vector<Client>& readers = clients(entry);
  return readers.size() == 1 ? readers[0].node : nullptr;
}

int Graph::input_index(const Node* variable) const {
  const auto it = input_numbers_.find(variable);
  return it == input_numbers_.end() ? -1 : it->second;
}

Format Graph::format(const NodeEntry& entry) const {
  const auto it = formats_.find(entry);
  return it == formats_.end() ? Format::kPlain : it->second;
}

void Graph::set_format(const NodeEntry& entry, Format format) {
  const Format before = this->format(entry);
  if (before == format) return;
  remember({Edit::Kind::kFormat, nullptr, 0, entry, 0, before});
  if (format == Format::kPlain) {
    formats_.erase(entry);
  } else {
    formats_[entry] = format;
  }
}

std::vector<Node*> Graph::order() const {
  std::vector<Node*> nodes;
  nodes.reserve(by_label_.size());
  for (const auto& [label, node] : by_label_) nodes.push_back(node);
  return nodes;
}

void Graph::make_as_old_as(const Node& node, const Node& other) {
  State& younger = state(&node);
  younger.age = std::min(younger.age, state(&other).age);
  schedule_.clear();
}

std::vector<Node*> Graph::schedule() const {
  if (!schedule_.empty()) return schedule_;
  struct Ready {
    const State* state;
    bool operator<(const Ready& other) const {  // the youngest is the least
      return state->age != other.state->age ? state->age > other.state->age : state->label > other.state->label;
    }
  };
  struct Waiting {
    const State* state;
    size_t producers;  // number of producers not in the schedule yet
  };
  NodeTable<Waiting> table(states_.size());
  for (const auto& [node, state] : states_) table.insert(node, {&state, node->inputs.size()});
  std::priority_queue<Ready> ready;
  const auto note_producer_of = [&](const Node* node) {
    if (Waiting& waiting = *table.find(node); --waiting.producers == 0) ready.push({waiting.state});
  };
  std::unordered_map<const Node*, std::vector<Node*>> ordered_behind;
  for (const std::shared_ptr<GraphFeature>& feature : features_) {
    const FeatureTime time(*feature, "orderings");
    for (const auto& [first, second] : feature->orderings(*this)) {
      if (!contains(first) || !contains(second)) continue;
      ordered_behind[first].push_back(second);
      ++table.find(second)->producers;
    }
  }
  for (const auto& [node, state] : states_)
    if (table.find(node)->producers == 0) ready.push({&state});
  std::vector<Node*> nodes;
  nodes.reserve(states_.size());
  while (!ready.empty()) {
    const State& next = *ready.top().state;
    Node* node = next.self.get();
    ready.pop();
    nodes.push_back(node);
    for (const std::vector<Client>& readers : next.clients)
      for (const Client& reader : readers)
        if (reader.node) note_producer_of(reader.node);
    if (const auto found = ordered_behind.find(node); found != ordered_behind.end())
      for (Node* later : found->second) note_producer_of(later);
  }
  if (nodes.size() < states_.size()) {  // an ordering makes a cycle: edits never let edges alone make one
    for (const auto& [label, node] : by_label_)
      if (table.find(node)->producers > 0) throw_cycle(*node);
  }
  schedule_ = nodes;
  return nodes;
}

// ------------------------------------------------------------------------------------------------------------- labels

// Order maintenance after Bender, Cole, Demaine, Farach-Colton and Zito, "Two simplified algorithms for maintaining
// order in a list": the smallest aligned range around the label that is sparse enough is spread evenly. The larger the
// range, the sparser it must be, so that any n insertions move O(n log n) labels in all.
void Graph::make_room(int64_t label) {
  auto first = by_label_.find(label), end = std::next(first);
  int64_t count = 1;
  double most = 1;
  for (int bits = 1; bits < 62; ++bits, most *= 4.0 / 3.0) {
    const int64_t width = int64_t{1} << bits, low = label & -width;
    for (; first != by_label_.begin() && std::prev(first)->first >= low; ++count) --first;
    for (; end != by_label_.end() && end->first - low < width; ++count) ++end;
    if (static_cast<double>(count) > most || count * 4 > width) continue;
    std::vector<Node*> nodes;
    for (auto it = first; it != end; ++it) nodes.push_back(it->second);
    const auto behind = by_label_.erase(first, end);
    const int64_t gap = width / count;
    int64_t next = low + gap / 2;
    for (Node* node : nodes) {
      state(node).label = next;
      by_label_.emplace_hint(behind, next, node);
      next += gap;
    }
    return;
  }
  throw Error(ErrorKind::kError, {.message = "the graph has more nodes than there are labels"});
}

int64_t Graph::label_after(const Node* node) {
  if (by_label_.empty()) return 0;
  if (node == nullptr) return by_label_.begin()->first - kLabelStride;
  for (;;) {
    const int64_t label = state(node).label;
    const auto next = by_label_.upper_bound(label);
    if (next == by_label_.end()) return label + kLabelStride;
    if (next->first - label > 1) return label + (next->first - label) / 2;
    make_room(label);
  }
}

void Graph::move_behind(Node& node, Node& producer) {
  const int64_t limit = state(&producer).label;
  if (state(&node).label > limit) return;
  // All nodes downstream of `node` that precede `producer` in the order move with it.
  std::vector<Node*> moving{&node};
  std::unordered_map<const Node*, bool> seen{{&node, true}};
  for (size_t i = 0; i < moving.size(); ++i) {
    for (const std::vector<Client>& readers : state(moving[i]).clients) {
      for (const Client& reader : readers) {
        if (reader.node == nullptr || state(reader.node).label > limit) continue;
        if (reader.node == &producer) throw_cycle(node);
        if (seen.try_emplace(reader.node, true).second) moving.push_back(reader.node);
      }
    }
  }
  if (&node == &producer) throw_cycle(node);
  std::sort(moving.begin(), moving.end(), [&](Node* a, Node* b) { return state(a).label < state(b).label; });
  Node* before = &producer;
  for (Node* next : moving) {
    const int64_t label = label_after(before);
    State& s = state(next);
    by_label_.erase(s.label);
    s.label = label;
    by_label_.emplace(label, next);
    before = next;
  }
}

// -------------------------------------------------------------------------------------------------------------- edges

size_t& Graph::place_of(const Client& client) {
  const auto index = static_cast<size_t>(client.index);
  switch (client.kind) {
    case Client::Kind::kNode:
      return state(client.node).places[index];
    case Client::Kind::kOutput:
      return output_places_[index];
    default:
      return writeback_places_[index];
  }
}

void Graph::link(const NodeEntry& entry, Client client) {
  schedule_.clear();
  std::vector<Client>& readers = state(entry.node.get()).clients[entry.index];
  place_of(client) = readers.size();
  readers.push_back(client);
}

// Fills the gap with the last reader, in constant time: a value may have as many readers as the graph has nodes.
void Graph::unlink(const NodeEntry& entry, const Client& client) {
  std::vector<Client>& readers = state(entry.node.get()).clients[entry.index];
  const size_t place = place_of(client);
  readers[place] = readers.back();
  place_of(readers[place]) = place;
  readers.pop_back();
}

void Graph::insert(NodePtr node, int64_t label, int64_t age) {
  schedule_.clear();
  Node* raw = node.get();
  State s{std::move(node), label, age, std::vector<std::vector<Client>>(static_cast<size_t>(raw->num_outputs())),
          std::vector<size_t>(raw->inputs.size())};
  states_.emplace(raw, std::move(s));
  by_label_.emplace(label, raw);
  for (size_t i = 0; i < raw->inputs.size(); ++i) {
    link(raw->inputs[i], {Client::Kind::kNode, raw, static_cast<int>(i)});
  }
  tell_features([&](GraphFeature& feature) {
    const FeatureTime time(feature, "on_import");
    feature.imported(*this, *raw);
  });
}

void Graph::erase(const Node* node) {
  schedule_.clear();
  tell_features([&](GraphFeature& feature) {
    const FeatureTime time(feature, "on_prune");
    feature.pruned(*this, *const_cast<Node*>(node));
  });
  State& s = state(node);
  for (size_t i = 0; i < node->inputs.size(); ++i) {
    unlink(node->inputs[i], {Client::Kind::kNode, const_cast<Node*>(node), static_cast<int>(i)});
  }
  by_label_.erase(s.label);
  states_.erase(node);
}

void Graph::rewire(const Client& client, const NodeEntry& entry) {
  NodeEntry before;
  state(entry.node.get());  // throws for a node of another graph, before any change
  switch (client.kind) {
    case Client::Kind::kNode: {
      NodeEntry& slot = client.node->inputs[static_cast<size_t>(client.index)];
      if (slot == entry) return;
      move_behind(*client.node, *entry.node);  // throws for a cycle, before any change
      unlink(slot, client);
      remember({Edit::Kind::kInput, NodePtr(client.node), client.index, slot});
      before = std::exchange(slot, entry);
      break;
    }
    case Client::Kind::kOutput: {
      NodeEntry& slot = outputs_[static_cast<size_t>(client.index)];
      unlink(slot, client);
      remember({Edit::Kind::kOutput, nullptr, client.index, slot});
      before = std::exchange(slot, entry);
      break;
    }
    case Client::Kind::kWriteback: {
      NodeEntry& slot = writebacks_[static_cast<size_t>(client.index)].value;
      unlink(slot, client);
      remember({Edit::Kind::kWriteback, nullptr, client.index, slot});
      before = std::exchange(slot, entry);
      break;
    }
  }
  link(entry, client);
  tell_features([&](GraphFeature& feature) {
    const FeatureTime time(feature, "on_change_input");
    feature.input_changed(*this, client, before);
  });
}

void Graph::prune(std::vector<NodePtr> candidates) {
  while (!candidates.empty()) {
    NodePtr node = std::move(candidates.back());
    candidates.pop_back();
    if (!contains(node.get()) || is_root(*node)) continue;
    const State& s = state(node.get());
    const bool read = std::any_of(s.clients.begin(), s.clients.end(), [](const auto& c) { return !c.empty(); });
    if (read) continue;
    for (const NodeEntry& input : node->inputs) candidates.push_back(input.node);
    remember({Edit::Kind::kPrune, node, 0, {}, s.age});
    erase(node.get());
  }
}

// ----------------------------------------------------------------------------------------------------------- features

template <typename Tell>
void Graph::tell_features(const Tell& tell) {
  for (const std::shared_ptr<GraphFeature>& feature : features_) {
    try {
      tell(*feature);
    } catch (const std::exception&) {  // an edit must not stop halfway
      if (!objection_) objection_ = std::current_exception();
    }
  }
}

void Graph::attach(std::shared_ptr<GraphFeature> feature) {
  for (const std::shared_ptr<GraphFeature>& known : features_) {
    if (known != feature) continue;
    throw Error(ErrorKind::kValue, {.input = "feature '" + feature->name() + "'",
                                    .message = "it is attached to this graph already",
                                    .fix = "attach a feature once, or another one of its kind"});
  }
  {
    const FeatureTime time(*feature, "on_attach");
    feature->attached(*this);
  }
  features_.push_back(std::move(feature));
  schedule_.clear();
}

void Graph::detach(const GraphFeature& feature) {
  const auto found =
      std::find_if(features_.begin(), features_.end(), [&](const auto& f) { return f.get() == &feature; });
  if (found == features_.end())
    throw Error(ErrorKind::kValue,
                {.input = "feature '" + feature.name() + "'", .message = "it is not attached to this graph"});
  const std::shared_ptr<GraphFeature> keep = *found;
  features_.erase(found);
  schedule_.clear();
  keep->detached(*this);
}

// ----------------------------------------------------------------------------------------------------------- building

NodePtr Graph::clone(const Node& node, const SpecMap* specs, EntryMap& map, int64_t age) {
  const NodePtr original(const_cast<Node*>(&node));
  std::vector<NodeEntry> inputs;
  for (const NodeEntry& input : node.inputs) inputs.push_back(map.at(input));
  NodePtr copy = copy_of(node, std::move(inputs));
  const auto n = static_cast<uint32_t>(node.num_outputs());
  for (uint32_t i = 0; i < n; ++i) {
    copy->specs.push_back(specs ? specs->at({original, i}) : node.specs.at(i));
    map[{original, i}] = {copy, i};
  }
  insert(copy, by_label_.empty() ? 0 : by_label_.rbegin()->first + kLabelStride, age);
  remember({Edit::Kind::kAdd, copy, 0, {}});
  return copy;
}

std::vector<NodeEntry> Graph::import(const std::vector<NodeEntry>& outputs, const SpecMap* specs, EntryMap& map) {
  const std::vector<Node*> nodes = topological_order(outputs);
  states_.reserve(states_.size() + nodes.size());
  map.reserve(map.size() + nodes.size());
  for (Node* node : nodes)
    if (map.count({NodePtr(node), 0}) == 0) clone(*node, specs, map, next_age_++);
  std::vector<NodeEntry> clones;
  for (const NodeEntry& output : outputs) clones.push_back(map.at(output));
  return clones;
}

std::vector<NodeEntry> Graph::import(const Graph& from, const std::vector<NodeEntry>& outputs, EntryMap& map) {
  std::unordered_map<const Node*, bool> wanted;
  std::vector<Node*> pending;
  auto want = [&](const NodeEntry& entry) {
    if (map.count(entry) == 0 && wanted.try_emplace(entry.node.get(), true).second) pending.push_back(entry.node.get());
  };
  for (const NodeEntry& output : outputs) want(output);
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    for (const NodeEntry& input : node->inputs) want(input);
  }
  for (Node* node : from.schedule()) {
    if (wanted.count(node) == 0 || map.count({NodePtr(node), 0}) != 0) continue;
    const NodePtr copy = clone(*node, nullptr, map, next_age_++);
    for (uint32_t i = 0; i < copy->specs.size(); ++i) set_format({copy, i}, from.format({NodePtr(node), i}));
  }
  std::vector<NodeEntry> clones;
  for (const NodeEntry& output : outputs) clones.push_back(map.at(output));
  return clones;
}

NodePtr Graph::add_input(std::string name, const TensorSpec& spec, Format format) {
  NodePtr variable = make_variable(std::move(name));
  variable->specs = {spec};
  insert(variable, label_after(nullptr), next_age_++);
  input_numbers_[variable.get()] = static_cast<int>(inputs_.size());
  inputs_.push_back(variable);
  set_format({variable, 0}, format);
  return variable;
}

NodePtr Graph::add_constant(Ref<Object> array, const TensorSpec& spec) {
  NodePtr variable = make_variable("_const");
  variable->constant = std::move(array);
  variable->specs = {spec};
  insert(variable, label_after(nullptr), next_age_++);
  remember({Edit::Kind::kAdd, variable, 0, {}});
  return variable;
}

NodePtr Graph::add(const Op& op, ParamsPtr params, std::vector<NodeEntry> inputs, const Node* origin,
                   std::vector<Ref<Subgraph>> bodies) {
  NodePtr node = make_node(op, origin ? origin->name : op.name, std::move(params), std::move(inputs));
  if (origin) {
    node->block = origin->block;
    node->where = origin->where;
  }
  std::vector<TensorSpec> in;
  const Node* last = nullptr;
  for (const NodeEntry& input : node->inputs) {
    in.push_back(spec(input));
    if (last == nullptr || label(*input.node) > label(*last)) last = input.node.get();
  }
  node->specs.resize(static_cast<size_t>(node->num_outputs()));
  node->subgraphs = std::move(bodies);
  try {
    infer_node(*node, in, node->specs, train_);
    for (size_t i = 0; i < node->specs.size(); ++i) {
      if (node->specs[i].known()) continue;
      throw ShapeError({.input = op.output_name(node->params->data(), static_cast<int>(i)),
                        .message = "the spec of this output is not known: " + node->specs[i].str()});
    }
  } catch (Error& error) {
    error.add_context({.op = op.name, .node = node->name, .block = node->block, .where = node->where});
    throw;
  }
  const int64_t age = next_age_++;
  insert(node, label_after(last), origin && contains(origin) ? state(origin).age : age);
  remember({Edit::Kind::kAdd, node, 0, {}});
  return node;
}

int Graph::add_output(NodeEntry entry) {
  const int index = static_cast<int>(outputs_.size());
  outputs_.push_back(entry);
  output_places_.emplace_back();
  link(entry, {Client::Kind::kOutput, nullptr, index});
  return index;
}

void Graph::add_writeback(int input, NodeEntry value) {
  const int index = static_cast<int>(writebacks_.size());
  writebacks_.push_back({input, value});
  writeback_places_.emplace_back();
  link(value, {Client::Kind::kWriteback, nullptr, index});
}

// ------------------------------------------------------------------------------------------------------------ editing

void Graph::set_input(Node& node, int index, const NodeEntry& entry) {
  const NodePtr before = node.inputs[static_cast<size_t>(index)].node;
  rewire({Client::Kind::kNode, &node, index}, entry);
  prune({before});
}

void Graph::set_output(int index, const NodeEntry& entry) {
  const NodePtr before = outputs_[static_cast<size_t>(index)].node;
  rewire({Client::Kind::kOutput, nullptr, index}, entry);
  prune({before});
}

void Graph::set_writeback(int index, const NodeEntry& entry) {
  const NodePtr before = writebacks_[static_cast<size_t>(index)].value.node;
  rewire({Client::Kind::kWriteback, nullptr, index}, entry);
  prune({before});
}

void Graph::remove_output(int index) {
  const NodePtr before = outputs_[static_cast<size_t>(index)].node;
  for (size_t i = static_cast<size_t>(index); i < outputs_.size(); ++i) {
    unlink(outputs_[i], {Client::Kind::kOutput, nullptr, static_cast<int>(i)});
  }
  outputs_.erase(outputs_.begin() + index);
  output_places_.pop_back();
  for (size_t i = static_cast<size_t>(index); i < outputs_.size(); ++i) {
    link(outputs_[i], {Client::Kind::kOutput, nullptr, static_cast<int>(i)});
  }
  prune({before});
}

void Graph::replace(const NodeEntry& old, const NodeEntry& now) {
  if (old == now) return;
  if (!(spec(old) == spec(now)) || format(old) != format(now)) {
    throw Error(ErrorKind::kError, {.op = old.node->op ? old.node->op->name : "",
                                    .node = old.node->name,
                                    .expected = spec(old).str(),
                                    .given = spec(now).str(),
                                    .message = "a replacement must have the spec of the value that it replaces"});
  }
  // If the replaced value is kept for the gradient, its replacement is kept, too.
  if (!now.node->is_variable() && old.node->attrs.count(kKeepAttribute) != 0) now.node->attrs[kKeepAttribute] = "1";
  const std::vector<Client> readers = clients(old);
  for (const Client& reader : readers) rewire(reader, now);
  prune({old.node});
}

bool Graph::replace_validate(const Pairs& pairs, const std::vector<Node*>& remove, std::string* why) {
  const Checkpoint start = checkpoint();
  std::vector<NodePtr> doomed;
  for (Node* node : remove) doomed.emplace_back(node);
  try {
    std::vector<NodePtr> known;  // keeps nodes alive: a node is pruned with its last reader, even if more of its
                                 // outputs are listed
    for (const auto& [old, now] : pairs)
      if (contains(old.node.get())) known.push_back(old.node);
    for (const auto& [old, now] : pairs)
      if (contains(old.node.get()) || std::find(known.begin(), known.end(), old.node) == known.end()) replace(old, now);
    for (const NodePtr& node : doomed) {
      if (contains(node.get())) {
        throw Error(ErrorKind::kError, {.node = node->name, .message = "the node is still read and was not removed"});
      }
    }
    validate();
  } catch (const std::exception& error) {
    if (why) *why = error.what();
    ++num_rejected_;
    revert(start);
    release(start);
    return false;
  }
  release(start);
  return true;
}

void Graph::validate() {
  if (features_.empty()) return;
  if (objection_) std::rethrow_exception(std::exchange(objection_, nullptr));
  for (const std::shared_ptr<GraphFeature>& feature : features_) {
    const FeatureTime time(*feature, "validate");
    feature->validate(*this);
  }
  schedule_.clear();
  schedule();  // throws if orderings make a cycle
}

void Graph::drop_unread(std::vector<NodePtr> candidates) { prune(std::move(candidates)); }

int Graph::remove_unused() {
  const size_t before = states_.size();
  std::vector<NodePtr> all;
  for (const auto& [label, node] : by_label_) all.emplace_back(node);
  prune(std::move(all));
  return static_cast<int>(before - states_.size());
}

Graph::Checkpoint Graph::checkpoint() {
  ++open_checkpoints_;
  return journal_.size();
}

void Graph::release(Checkpoint at) {
  (void)at;
  if (--open_checkpoints_ == 0) journal_.clear();
}

std::vector<NodePtr> Graph::added_since(Checkpoint at) const {
  std::vector<NodePtr> added;
  for (size_t i = at; i < journal_.size(); ++i)
    if (journal_[i].kind == Edit::Kind::kAdd && contains(journal_[i].node.get())) added.push_back(journal_[i].node);
  return added;
}

int64_t Graph::num_pruned_since(Checkpoint at) const {
  const auto begin = journal_.begin() + static_cast<std::ptrdiff_t>(std::min(at, journal_.size()));
  return std::count_if(begin, journal_.end(), [](const Edit& edit) { return edit.kind == Edit::Kind::kPrune; });
}

void Graph::revert(Checkpoint to) {
  const int open = std::exchange(open_checkpoints_, 0);  // edits that undo are not recorded
  while (journal_.size() > to) {
    const Edit edit = std::move(journal_.back());
    journal_.pop_back();
    switch (edit.kind) {
      case Edit::Kind::kAdd:
        erase(edit.node.get());
        break;
      case Edit::Kind::kPrune: {
        const Node* last = nullptr;
        for (const NodeEntry& input : edit.node->inputs) {
          if (last == nullptr || label(*input.node) > label(*last)) last = input.node.get();
        }
        insert(edit.node, label_after(last), edit.age);
        break;
      }
      case Edit::Kind::kInput:
        rewire({Client::Kind::kNode, edit.node.get(), edit.index}, edit.before);
        break;
      case Edit::Kind::kOutput:
        rewire({Client::Kind::kOutput, nullptr, edit.index}, edit.before);
        break;
      case Edit::Kind::kWriteback:
        rewire({Client::Kind::kWriteback, nullptr, edit.index}, edit.before);
        break;
      case Edit::Kind::kFormat:
        set_format(edit.before, edit.format);
        break;
    }
  }
  open_checkpoints_ = open;
  objection_ = nullptr;
}

}  // namespace hybridnet
