// First chooses the operators to quantize (QuantizeMode). Then makes nodes in order, each from the float or int8 form
// of its inputs, as it needs. Conversions between floats and bytes are made for the first reader that needs them.
#include "passes/quantize/quantize.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "passes/attributes.h"

namespace hybridnet::passes {
namespace {

const OpRef kQuantize{"_contrib_quantize_v2"}, kRequantize{"_contrib_requantize"}, kDequantize{"_contrib_dequantize"};

// Attribute of nodes that make bytes: the entry of the original graph whose range the bytes should have.
constexpr const char* kRangeOf = "__range_of__";

// Both ends of a range that set_ranges() must set.
constexpr double kNoRangeYet = 0;

const OpRef kConvolution{"_contrib_quantized_conv"};

// The name of an entry in the user's graph.
std::string entry_name(const NodeEntry& entry) {
  const auto folded = entry.node->attrs.find(kStandsFor);
  return folded != entry.node->attrs.end() ? folded->second : Symbol{{entry}}.list_outputs()[0];
}

bool is_prediction_identity(const Node& node) {
  return node.op->is_identity && node.op->is_identity(node.params->data(), false) && node.inputs.size() == 1;
}

bool reads_bytes(const Node& node, size_t input) {
  const std::vector<int>& inputs = node.op->quantized->inputs;
  return inputs.empty() || std::find(inputs.begin(), inputs.end(), static_cast<int>(input)) != inputs.end();
}

// The choice of nodes to quantize.
class Choice {
 public:
  Choice(const Symbol& symbol, const QuantizeOptions& options) : options_(options) {
    order_ = topological_order(symbol.outputs);
    for (Node* node : order_) {
      if (node->is_variable()) continue;
      for (const NodeEntry& input : node->inputs) note_reader(input, node);
    }
    for (const NodeEntry& output : symbol.outputs) note_reader(output, nullptr);
    for (const Node* node : order_)
      if (may_be_quantized(*node)) chosen_.insert(node);
    if (options.mode == QuantizeMode::kSmart) keep_what_pays();
  }
  const std::vector<Node*>& order() const { return order_; }
  bool has(const Node& node) const { return chosen_.count(&node) != 0; }

 private:
  void note_reader(const NodeEntry& entry, const Node* reader) {
    readers_[entry.node.get()].push_back(reader);
    if (entry.index > 0) with_other_outputs_.insert(entry.node.get());
  }

  bool may_be_quantized(const Node& node) const {
    if (node.is_variable() || !node.op->quantized || with_other_outputs_.count(&node) != 0) return false;
    const QuantizedForm& form = *node.op->quantized;
    if (op_registry().find(form.op) == nullptr || (form.needs_range && !options_.ranges_follow)) return false;
    if (options_.excluded_nodes.count(node.name) != 0) return false;
    const auto is_excluded = [&](const std::string& name) { return options_.excluded_ops.count(name) != 0; };
    if (is_excluded(node.op->name) || std::any_of(node.op->aliases.begin(), node.op->aliases.end(), is_excluded))
      return false;
    return !form.when || form.when(node.params->data());
  }

  // The node that makes an entry; nodes that change nothing are skipped.
  static const Node& producer(const NodeEntry& entry) {
    const Node* node = entry.node.get();
    while (!node->is_variable() && is_prediction_identity(*node)) node = node->inputs[0].node.get();
    return *node;
  }

  bool has_chosen_reader(const Node& node) const {
    const auto found = readers_.find(&node);
    if (found == readers_.end()) return false;
    return std::any_of(found->second.begin(), found->second.end(), [&](const Node* reader) {
      return reader != nullptr && (has(*reader) || (is_prediction_identity(*reader) && has_chosen_reader(*reader)));
    });
  }

  bool pays(const Node& node) const {
    if (node.op->quantized->leads) return true;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (reads_bytes(node, i) && !has(producer(node.inputs[i]))) return false;
    return has_chosen_reader(node);
  }

  void keep_what_pays() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Node* node : order_)
        if (has(*node) && !pays(*node)) changed = chosen_.erase(node) != 0;
    }
  }

  const QuantizeOptions& options_;
  std::vector<Node*> order_;
  std::unordered_map<const Node*, std::vector<const Node*>> readers_;  // null: the graph's outputs
  std::unordered_set<const Node*> with_other_outputs_, chosen_;
};

// The interval to which a node cuts its input, if it is a clamp.
std::optional<Interval> cut_of(const Node& node) {
  return node.is_variable() || !node.op->clamps ? std::nullopt : node.op->clamps(node.params->data());
}

// True if a quantized operator takes only signed bytes as input i, according to its inference.
bool wants_sign(const Node& node, size_t i) {
  std::vector<TensorSpec> in(node.inputs.size()), out(static_cast<size_t>(node.num_outputs()));
  InferContext context(*node.op, in, out);
  node.op->infer(node.params->data(), context);
  return in[i].dtype == DType::kInt8;
}

// Bytes, and the values of the least and the largest byte.
struct Bytes {
  NodeEntry data, low, high;
  static Bytes of(const NodePtr& node) { return {{node, 0}, {node, 1}, {node, 2}}; }
};

class Quantization {
 public:
  Quantization(const Symbol& symbol, const QuantizeOptions& options)
      : symbol_(symbol), options_(options), choice_(symbol, options) {}

  QuantizedSymbol run() {
    for (Node* node : choice_.order()) {
      if (node->is_variable())
        floats_[{NodePtr(node), 0}] = {NodePtr(node), 0};
      else if (choice_.has(*node))
        quantize(*node);
      else if (is_prediction_identity(*node) && bytes_.count(node->inputs[0]) != 0 && is_made_of_bytes(node->inputs[0]))
        pass_on(*node);
      else
        copy(*node);
    }
    QuantizedSymbol result;
    for (const NodeEntry& output : symbol_.outputs) result.symbol.outputs.push_back(floats(output));
    for (auto made = made_.rbegin(); made != made_.rend(); ++made) give_sign(**made);
    result.entries = std::move(entries_);
    return result;
  }

 private:
  bool is_made_of_bytes(const NodeEntry& entry) const { return made_of_bytes_.count(entry.node.get()) != 0; }

  NodePtr make(const Op& op, const Node& origin, std::string name, ParamsPtr params, std::vector<NodeEntry> inputs) {
    const NodePtr node = make_node(op, std::move(name), std::move(params), std::move(inputs));
    node->where = origin.where;
    node->block = origin.block;
    made_.push_back(node);
    return node;
  }

  // Called for readers before producers: if a reader needs signed bytes, the node that makes them makes signed ones.
  void give_sign(Node& node) {
    if (node.op == &kDequantize.op()) return;
    const bool makes_bytes = node.op == &kQuantize.op() || node.op == &kRequantize.op();
    if (makes_bytes && with_sign_.count(&node) != 0) node.params = make_params(*node.op, &node, {{"out_type", "int8"}});
    if (makes_bytes) return;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (wants_sign(node, i) || (with_sign_.count(&node) != 0 && node.inputs[i].index == 0))
        with_sign_.insert(node.inputs[i].node.get());
  }

  // Marks a node whose bytes should have the range of `entry`.
  NodePtr ask_range(const NodePtr& node, const NodeEntry& entry) {
    const std::string name = entry_name(entry);
    node->attrs[kRangeOf] = name;
    if (std::find(entries_.begin(), entries_.end(), name) == entries_.end()) entries_.push_back(name);
    return node;
  }

  void copy(const Node& node) {
    std::vector<NodeEntry> inputs;
    for (const NodeEntry& input : node.inputs) inputs.push_back(floats(input));
    NodePtr same(const_cast<Node*>(&node));
    if (!(inputs == node.inputs) || !node.control.empty()) {
      same = copy_of(node, std::move(inputs));
      for (const NodePtr& before : node.control) same->control.push_back(floats({before, 0}).node);
    }
    for (uint32_t i = 0; i < static_cast<uint32_t>(node.num_outputs()); ++i)
      floats_[{NodePtr(const_cast<Node*>(&node)), i}] = {same, i};
  }

  void pass_on(Node& node) {
    bytes_[{NodePtr(&node), 0}] = bytes_.at(node.inputs[0]);
    made_of_bytes_.insert(&node);
  }

  void quantize(Node& node) {
    const QuantizedForm& form = *node.op->quantized;
    std::vector<NodeEntry> inputs, ranges;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!reads_bytes(node, i)) {
        inputs.push_back(floats(node.inputs[i]));
        continue;
      }
      const Bytes read = bytes(node.inputs[i]);
      inputs.push_back(read.data);
      ranges.push_back(read.low);
      ranges.push_back(read.high);
    }
    inputs.insert(inputs.end(), ranges.begin(), ranges.end());
    const Op& op = op_registry().at(form.op);
    std::vector<std::pair<std::string, AttrValue>> attrs = form.attrs;
    if (form.needs_range)
      for (const char* end : {"min_calib_range", "max_calib_range"}) attrs.emplace_back(end, kNoRangeYet);
    NodePtr made = make(op, node, "quantized_" + node.name, make_params(op, &node, attrs), std::move(inputs));
    const NodeEntry output{NodePtr(&node), 0};
    if (form.gives_sums)
      made = make(kRequantize.op(), node, "requantize_" + node.name, byte_params(kRequantize.op()),
                  {{made, 0}, {made, 1}, {made, 2}});
    // The range of the output of a clamp replaces the range of its input (set_ranges).
    if (form.gives_sums || form.needs_range || cut_of(*made)) ask_range(made, output);
    bytes_[output] = Bytes::of(made);
    made_of_bytes_.insert(&node);
  }

  ParamsPtr byte_params(const Op& op) const {
    return make_params(op, nullptr, {{"out_type", options_.always_signed ? "int8" : "auto"}});
  }

  Bytes bytes(const NodeEntry& entry) {
    if (const auto found = bytes_.find(entry); found != bytes_.end()) return found->second;
    Node& node = *entry.node;
    Bytes made;
    if (node.is_variable() && options_.parameters.count(node.name) != 0) {
      const auto variable = [&](const char* ending) { return NodeEntry{make_variable(node.name + ending), 0}; };
      made = {variable("_quantize"), variable("_quantize_min"), variable("_quantize_max")};
    } else {
      const std::string name = entry_name(entry) + "_quantize";
      made =
          Bytes::of(ask_range(make(kQuantize.op(), node, name, byte_params(kQuantize.op()), {floats(entry)}), entry));
    }
    bytes_[entry] = made;
    return made;
  }

  NodeEntry floats(const NodeEntry& entry) {
    if (const auto found = floats_.find(entry); found != floats_.end()) return found->second;
    const Bytes& from = bytes_.at(entry);
    const Op& op = kDequantize.op();
    const NodePtr node =
        make(op, *entry.node, entry.node->name + "_dequantize", op.default_params, {from.data, from.low, from.high});
    return floats_[entry] = {node, 0};
  }

  const Symbol& symbol_;
  const QuantizeOptions& options_;
  Choice choice_;
  std::unordered_map<NodeEntry, NodeEntry, NodeEntryHash> floats_;
  std::unordered_map<NodeEntry, Bytes, NodeEntryHash> bytes_;
  std::unordered_set<const Node*> made_of_bytes_;  // their floats are made on demand only
  std::vector<NodePtr> made_;                      // in the order in which they were made
  std::unordered_set<const Node*> with_sign_;
  std::vector<std::string> entries_;
};

// ---- ranges

using Range = std::pair<double, double>;

class RangeSetting {
 public:
  RangeSetting(const Symbol& symbol, const Ranges& ranges) : symbol_(symbol), ranges_(ranges) {
    order_ = topological_order(symbol.outputs);
    for (const Node* node : order_)
      for (const NodeEntry& input : node->inputs) note_reader(*input.node, node);
    for (const NodeEntry& output : symbol.outputs) note_reader(*output.node, nullptr);
  }

  Symbol run() {
    for (const Node* node : order_)
      if (!node->is_variable() && node->op == &kRequantize.op()) absorb(*node);
    for (Node* node : order_) visit(*node);
    Symbol result;
    for (const NodeEntry& e : symbol_.outputs) result.outputs.push_back(now(e));
    return result;
  }

 private:
  void note_reader(const Node& node, const Node* reader) {
    std::vector<const Node*>& readers = readers_[&node];
    if (std::find(readers.begin(), readers.end(), reader) == readers.end()) readers.push_back(reader);
  }

  const Node* only_reader(const Node& node) const {
    const auto found = readers_.find(&node);
    return found == readers_.end() || found->second.size() != 1 ? nullptr : found->second[0];
  }

  static void check_range(const Node& node) {
    const bool waits = node.attrs.count(kRangeOf) != 0 && number_attribute(node, "min_calib_range", 1) == kNoRangeYet &&
                       number_attribute(node, "max_calib_range", 1) == kNoRangeYet;
    if (waits)
      throw ValueError({.op = node.op->name,
                        .node = node.name,
                        .expected = "the range of " + node.attrs.at(kRangeOf),
                        .fix = "let the collector see all values of its include_layer"});
  }

  const Range* range_of(const Node& node) const {
    const auto key = node.attrs.find(kRangeOf);
    if (key == node.attrs.end()) return nullptr;
    const auto found = ranges_.find(key->second);
    return found == ranges_.end() ? nullptr : &found->second;
  }

  static bool without_sign(const Node& node, const Range& range) {
    return text_attribute(node, "out_type") == "auto" && range.first >= 0;
  }

  // requantize -> relu on bytes, and requantize -> dequantize -> relu or clip -> quantize become one requantize, if its
  // bytes have the range behind the relu. Unsigned bytes clip as relu does.
  void absorb(const Node& requantize) {
    const Node* next = only_reader(requantize);
    if (next == nullptr) return;
    const Node* last = next;
    if (next->op == &kDequantize.op()) {
      next = only_reader(*next);
      last = next ? only_reader(*next) : nullptr;
      if (last == nullptr || last->op != &kQuantize.op() || next->inputs.size() != 1) return;
    }
    const std::optional<Interval> cut = cut_of(*next);
    const Range* range = cut ? range_of(*last) : nullptr;
    if (range == nullptr || range->first < cut->low || range->second > cut->high) return;
    const bool same = without_sign(requantize, *range) && cut->low == 0;
    if (!same && last != next) return;
    wider_[&requantize] = *range;
    if (same) replaced_[last] = &requantize;
  }

  NodeEntry now(const NodeEntry& e) const {
    if (const auto by = replaced_.find(e.node.get()); by != replaced_.end()) return {done_.at(by->second), e.index};
    return {done_.at(e.node.get()), e.index};
  }

  void visit(Node& node) {
    NodePtr& made = done_[&node];
    made = NodePtr(&node);
    if (node.is_variable() || replaced_.count(&node) != 0) return;
    std::vector<NodeEntry> inputs;
    for (const NodeEntry& e : node.inputs) inputs.push_back(now(e));
    const auto wider = wider_.find(&node);
    const Range* range = wider != wider_.end() ? &wider->second : range_of(node);
    if (range != nullptr && node.op->schema->find("min_calib_range") < 0) range = nullptr;
    if (range == nullptr) check_range(node);
    if (range == nullptr && inputs == node.inputs && node.control.empty()) return;
    made = copy_of(node, std::move(inputs));
    for (const NodePtr& before : node.control) made->control.push_back(now({before, 0}).node);
    if (range == nullptr) return;
    const double low = without_sign(node, *range) ? 0.0 : range->first;  // kernels take byte 0 for zero
    made->params = make_params(*node.op, &node, {{"min_calib_range", low}, {"max_calib_range", range->second}});
  }

  const Symbol& symbol_;
  const Ranges& ranges_;
  std::vector<Node*> order_;
  std::unordered_map<const Node*, std::vector<const Node*>> readers_;
  std::unordered_map<const Node*, Range> wider_;           // requantize -> range behind its follower
  std::unordered_map<const Node*, const Node*> replaced_;  // -> the requantize before it
  std::unordered_map<const Node*, NodePtr> done_;
};

}  // namespace

QuantizedSymbol quantize(const Symbol& symbol, const QuantizeOptions& options) {
  return Quantization(symbol, options).run();
}

Symbol set_ranges(const Symbol& quantized, const Ranges& ranges) { return RangeSetting(quantized, ranges).run(); }

std::set<std::string> weights_beside_unsigned_data(const Symbol& quantized) {
  SpecMap specs;
  infer_specs(quantized.outputs, specs, false);
  std::set<std::string> beside_unsigned, beside_signed;
  for (const Node* node : topological_order(quantized.outputs)) {
    if (node->is_variable() || node->op != &kConvolution.op()) continue;
    const bool is_unsigned = specs.at(node->inputs[0]).dtype == DType::kUInt8;
    const Node& weight = *node->inputs[1].node;
    if (is_unsigned && !weight.is_variable())
      throw UnsupportedError({.node = node->name,
                              .input = "weight",
                              .expected = "a parameter",
                              .given = "a value that the graph computes",
                              .because = "data has bytes without a sign",
                              .fix = "use quantized_dtype='int8', or exclude the layer"});
    (is_unsigned ? beside_unsigned : beside_signed).insert(weight.name);
    if (beside_unsigned.count(weight.name) != 0 && beside_signed.count(weight.name) != 0)
      throw UnsupportedError({.node = node->name,
                              .input = weight.name,
                              .because = "layers share it whose data have bytes with and without a sign",
                              .fix = "use quantized_dtype='int8', or exclude one of the layers"});
  }
  return beside_unsigned;
}

}  // namespace hybridnet::passes
