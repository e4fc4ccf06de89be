// Writes the text of a graph: one line per node, regions of loops and branches indented.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/control/control_flow.h"
#include "graph/notation.h"
#include "graph/notation_values.h"

namespace hybridnet {
namespace {

using notation::is_value_char;
using notation::is_word_char;

std::string quoted(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (code < 0x20 || code == 0x7f) {
      result += {'\\', 'x', kDigits[code / 16], kDigits[code % 16]};
    } else {
      result += c;
    }
  }
  return result + "\"";
}

bool is_plain_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return is_word_char(c); });
}

// True for a number, a word, or a list of them.
bool is_plain_value(std::string_view text) {
  if (text.empty()) return false;
  if (text.front() != '(') return std::all_of(text.begin(), text.end(), is_value_char);
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth == 0 && i + 1 < text.size()) return false;
    if (!is_value_char(c) && std::string_view("(), ").find(c) == std::string_view::npos) return false;
  }
  return depth == 0;
}

std::string word_or_quoted(const std::string& text) { return is_plain_word(text) ? text : quoted(text); }

// The labels of the values of one region: "%name", "%name'2" for the second node of that name.
class Labels {
 public:
  const std::string& add(const Node* node) {
    const int count = ++used_[node->name];
    return texts_[node] = "%" + word_or_quoted(node->name) + (count > 1 ? "'" + std::to_string(count) : "");
  }
  std::string of(const NodeEntry& entry) const {
    const std::string& label = texts_.at(entry.node.get());
    return entry.node->num_outputs() > 1 ? label + "." + std::to_string(entry.index) : label;
  }
  const std::string& of(const Node* node) const { return texts_.at(node); }

 private:
  std::unordered_map<const Node*, std::string> texts_;
  std::unordered_map<std::string, int> used_;
};

class Writer {
 public:
  Writer(const Graph& graph, const BytesOfConstant& bytes) : graph_(graph), bytes_(bytes) {}

  std::string run() {
    text_ = graph_.train() ? "graph train\n" : "graph\n";
    Labels labels;
    for (const NodePtr& input : graph_.inputs()) write_node(*input, labels, 0);
    for (const Node* node : nodes())
      if (graph_.input_index(node) < 0) write_node(*node, labels, 0);
    for (const NodeEntry& output : graph_.outputs()) text_ += "output " + labels.of(output) + "\n";
    for (const Graph::Writeback& writeback : graph_.writebacks())
      text_ += "state " + labels.of(graph_.inputs()[static_cast<size_t>(writeback.input)].get()) + " <- " +
               labels.of(writeback.value) + "\n";
    return std::move(text_);
  }

 private:
  // Returns the nodes in execution order; in graph order if a feature's orderings contradict the edges.
  std::vector<Node*> nodes() const {
    try {
      return graph_.schedule();
    } catch (const std::exception&) {
      return graph_.order();
    }
  }

  void write_node(const Node& node, Labels& labels, int indent) {
    text_.append(static_cast<size_t>(indent), ' ');
    text_ += labels.add(&node) + " = ";
    if (node.is_variable()) {
      write_variable(node);
    } else if (node.subgraphs.empty()) {
      text_ += word_or_quoted(node.op->name) + "(" + list(node.inputs, labels) + ")";
      write_params(node, {});
    } else {
      write_control(node, labels, indent);
      return;
    }
    write_rest(node);
    text_ += "\n";
  }

  void write_variable(const Node& node) {
    if (!node.constant) {
      text_ += "input";
      return;
    }
    text_ += "constant ";
    text_ += bytes_ ? notation::text_of_values(node.specs.at(0).dtype, bytes_(*node.constant)) : "...";
  }

  static std::string list(const std::vector<NodeEntry>& entries, const Labels& labels) {
    std::string text;
    for (const NodeEntry& entry : entries) text += (text.empty() ? "" : ", ") + labels.of(entry);
    return text;
  }

  void write_params(const Node& node, std::string_view shown) {
    std::string inside;
    for (const auto& [key, value] : node.op->schema->print(node.params->data())) {
      if (!node.subgraphs.empty() && (notation::is_told_by_slots(key) || key == shown)) continue;
      inside += (inside.empty() ? "" : ", ") + key + "=" + (is_plain_value(value) ? value : quoted(value));
    }
    if (!inside.empty()) text_ += " {" + inside + "}";
  }

  // Writes attributes, specs, formats and source location.
  void write_rest(const Node& node) {
    text_ += text_of_attributes(node);
    for (size_t i = 0; i < node.specs.size(); ++i) {
      text_ += (i > 0 ? ", " : " : ") + node.specs[i].str();
      if (graph_.contains(&node) &&
          graph_.format({NodePtr(const_cast<Node*>(&node)), static_cast<uint32_t>(i)}) == Format::kChannelsLast)
        text_ += "/channels_last";
    }
    if (node.where.known()) text_ += " @ " + quoted(node.where.str());
    if (!node.block.empty()) text_ += " in " + quoted(node.block);
  }

  static std::string text_of_attributes(const Node& node) {
    std::string inside;
    for (const auto& [key, value] : node.attrs)
      inside += (inside.empty() ? "" : ", ") + word_or_quoted(key) + "=" + quoted(value);
    return inside.empty() ? "" : " [" + inside + "]";
  }

  static std::string text_of_spec(const Node& variable) {
    return variable.specs.empty() ? "" : " : " + variable.specs[0].str();
  }

  // ---- loops and branches
  void write_control(const Node& node, const Labels& outer, int indent) {
    const ControlKind kind = control_kind(node);
    std::vector<Labels> inner(node.subgraphs.size());
    for (size_t b = 0; b < inner.size(); ++b)
      for (const NodePtr& input : node.subgraphs[b]->inputs) inner[b].add(input.get());
    if (kind == ControlKind::kCond) {
      text_ += notation::kBranchWord;
      text_ += " inputs{" + list(node.inputs, outer) + "}";
      write_params(node, {});
    } else {
      write_loop_header(node, kind, outer, inner.back());
    }
    write_rest(node);
    const std::string margin(static_cast<size_t>(indent) + 2, ' ');
    for (size_t b = 0; b < inner.size(); ++b) {
      if (kind == ControlKind::kForeach) {
        text_ += " do\n";
      } else {
        text_ += b == 0 ? "\n" : "";
        const bool is_last_of_loop = kind == ControlKind::kWhileLoop && b == 1;
        text_ +=
            margin + std::string(kind == ControlKind::kCond ? notation::kBranchRegions[b] : notation::kLoopRegions[b]);
        text_ += (is_last_of_loop ? "" : "(" + list_of_inputs(*node.subgraphs[b], inner[b]) + ")") + "\n";
      }
      write_region(node, b, inner[b], indent);
    }
  }

  static std::string list_of_inputs(const Subgraph& body, const Labels& labels) {
    std::string text;
    for (const NodePtr& input : body.inputs)
      text += (text.empty() ? "" : ", ") + labels.of(input.get()) + text_of_attributes(*input) + text_of_spec(*input);
    return text;
  }

  void write_loop_header(const Node& node, ControlKind kind, const Labels& outer, const Labels& inner) {
    const LoopSpec& loop = loop_of(node);
    const bool is_foreach = kind == ControlKind::kForeach;
    const notation::LoopWords& words = is_foreach ? notation::kForeachWords : notation::kWhileWords;
    std::optional<int64_t> number = is_foreach ? loop.length : loop.max_iterations;
    if (is_foreach && loop.num_seq > 0) number = rows_of_first(node);
    text_ += words.word;
    text_ += "[" + (number ? std::to_string(*number) : "") + "]";
    const std::vector<NodePtr>& inputs = node.subgraphs.back()->inputs;
    auto group = [&](const char* name, size_t first, size_t end) {
      if (first == end) return;
      text_ += std::string(" ") + name + "{";
      for (size_t k = first; k < end; ++k)
        text_ += (k > first ? ", " : "") + inner.of(inputs[k].get()) + text_of_attributes(*inputs[k]) + ": " +
                 outer.of(node.inputs[k]) + text_of_spec(*inputs[k]);
      text_ += "}";
    };
    group("seq", 0, loop.seqs());
    group("carry", loop.seqs(), loop.first_invariant());
    group("inv", loop.first_invariant(), loop.slots());
    if (loop.counted) text_ += " count{" + outer.of(node.inputs.back()) + "}";
    write_params(node, is_foreach && loop.num_seq > 0 ? std::string_view() : words.length);
  }

  static std::optional<int64_t> rows_of_first(const Node& node) {
    const NodeEntry& first = node.inputs[0];
    if (first.index >= first.node->specs.size()) return {};
    const Shape& shape = first.node->specs[first.index].shape;
    if (shape.ndim() < 1 || shape[0] < 0) return {};
    return shape[0];
  }

  void write_region(const Node& node, size_t index, Labels& labels, int indent) {
    const Subgraph& body = *node.subgraphs[index];
    std::unordered_set<const Node*> slots;
    for (const NodePtr& input : body.inputs) slots.insert(input.get());
    for (const Node* inner : topological_order(body.outputs))
      if (slots.count(inner) == 0) write_node(*inner, labels, indent + 4);
    text_.append(static_cast<size_t>(indent) + 2, ' ');
    if (control_kind(node) == ControlKind::kCond || index + 1 < node.subgraphs.size()) {
      text_ += "give{" + list(body.outputs, labels) + "}\n";
      return;
    }
    const LoopSpec& loop = loop_of(node);
    if (loop.carries() > 0) {
      text_ += "next{";
      for (size_t i = 0; i < loop.carries(); ++i)
        text_ += (i > 0 ? ", " : "") + labels.of(body.inputs[loop.carry(i)].get()) + ": " +
                 labels.of(body.outputs[loop.final_carry(i)]);
      text_ += "} ";
    }
    text_ += "out{";
    for (size_t i = 0; i < loop.outs(); ++i)
      text_ += (i > 0 ? ", ." : ".") + std::to_string(i) + ": " + labels.of(body.outputs[i]);
    text_ += "}\n";
  }

  const Graph& graph_;
  const BytesOfConstant& bytes_;
  std::string text_;
};

}  // namespace

bool notation::is_told_by_slots(std::string_view param) {
  static constexpr std::string_view kTold[] = {"num_args", "num_seq", "num_carry", "num_out", "counted"};
  return std::find(std::begin(kTold), std::end(kTold), param) != std::end(kTold);
}

std::string write_notation(const Graph& graph, const BytesOfConstant& bytes) { return Writer(graph, bytes).run(); }

std::string Graph::text() const { return write_notation(*this, nullptr); }

}  // namespace hybridnet
