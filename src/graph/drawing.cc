#include "graph/drawing.h"

#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/control/control_flow.h"
#include "graph/notation.h"

namespace hybridnet {
namespace {

constexpr std::string_view kInputLook = "shape=oval, fillcolor=\"#8dd3c7\"";
constexpr std::string_view kConstantLook = "shape=oval, fillcolor=\"#d9d9d9\"";
constexpr std::string_view kOperatorLook = "shape=box, fillcolor=\"#fccde5\"";
constexpr std::string_view kSlotLook = "shape=plain, fillcolor=\"#ffffff\"";
constexpr std::string_view kOutputLook = "shape=oval, fillcolor=\"#b3de69\"";

// Returns the text in quotes, so that no character of a name is read as DOT syntax. Control characters become '?'.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      const auto code = static_cast<unsigned char>(c);
      result += code < 0x20 || code == 0x7f ? '?' : c;
    }
  }
  return result + "\"";
}

class Drawing {
 public:
  std::string run(const Graph& graph) {
    text_ = "digraph graph_of_nodes {\n  node [style=filled, fontname=\"sans-serif\", fontsize=11];\n";
    Ids ids;
    for (const Node* node : graph.order()) draw(*node, ids);
    for (size_t i = 0; i < graph.outputs().size(); ++i)
      connect(ids.at(graph.outputs()[i]), add("output " + std::to_string(i), kOutputLook));
    for (const Graph::Writeback& writeback : graph.writebacks())
      connect(ids.at(writeback.value),
              add("state " + graph.inputs()[static_cast<size_t>(writeback.input)]->name, kOutputLook));
    return text_ + edges_ + "}\n";
  }

 private:
  using Ids = std::unordered_map<NodeEntry, std::string, NodeEntryHash>;  // the point at which an entry leaves its box

  std::string new_id() { return "n" + std::to_string(next_++); }

  std::string add(const std::string& label, std::string_view look) {
    std::string id = new_id();
    text_ += "  " + id + " [label=" + quoted(label) + ", " + std::string(look) + "];\n";
    return id;
  }

  // Edges are written after all boxes: DOT adds a point to the box in which an edge first names it.
  void connect(const std::string& from, const std::string& to) { edges_ += "  " + from + " -> " + to + ";\n"; }

  void open_box(const std::string& label) {
    text_ += "  subgraph cluster_" + new_id() + " {\n  label=" + quoted(label) +
             "; style=\"rounded,filled\"; fillcolor=\"#00000010\"; fontname=\"sans-serif\"; fontsize=11;\n";
  }
  void close_box() { text_ += "  }\n"; }

  static NodeEntry entry(const Node& node, size_t output) {
    return {NodePtr(const_cast<Node*>(&node)), static_cast<uint32_t>(output)};
  }
  static std::string with_type(std::string label, const Node& node, size_t output) {
    return output < node.specs.size() ? label + "\n" + node.specs[output].str() : label;
  }

  void draw(const Node& node, Ids& ids) {
    if (!node.subgraphs.empty()) {
      draw_control(node, ids);
      return;
    }
    std::string label = node.is_variable() ? node.name : node.op->name;
    if (!node.is_variable() && node.name != label) label += "\n" + node.name;
    const std::string id = add(with_type(label, node, 0), !node.is_variable() ? kOperatorLook
                                                          : node.constant     ? kConstantLook
                                                                              : kInputLook);
    for (const NodeEntry& input : node.inputs) connect(ids.at(input), id);
    for (size_t i = 0; i < static_cast<size_t>(node.num_outputs()); ++i) ids[entry(node, i)] = id;
  }

  // Returns the points of the region's outputs.
  std::vector<std::string> draw_region(const Node& node, size_t index, const Ids& outer) {
    const Subgraph& body = *node.subgraphs[index];
    Ids ids;
    for (size_t k = 0; k < body.inputs.size(); ++k) {
      const std::string id = add(slot_label(node, k) + " " + body.inputs[k]->name, kSlotLook);
      connect(outer.at(node.inputs[k]), id);
      ids[{body.inputs[k], 0}] = id;
    }
    for (const Node* inner : topological_order(body.outputs))
      if (ids.count(entry(*inner, 0)) == 0) draw(*inner, ids);
    std::vector<std::string> points;
    for (const NodeEntry& output : body.outputs) points.push_back(ids.at(output));
    return points;
  }

  static std::string slot_label(const Node& node, size_t slot) {
    if (control_kind(node) == ControlKind::kCond) return "input";
    const LoopSpec& loop = loop_of(node);
    return slot < loop.seqs() ? "seq" : slot < loop.first_invariant() ? "carry" : "inv";
  }

  void draw_control(const Node& node, Ids& ids) {
    const ControlKind kind = control_kind(node);
    const bool is_loop = kind != ControlKind::kCond;
    const std::string_view word = kind == ControlKind::kForeach     ? notation::kForeachWords.word
                                  : kind == ControlKind::kWhileLoop ? notation::kWhileWords.word
                                                                    : notation::kBranchWord;
    open_box(std::string(word) + " " + node.name);
    std::vector<std::vector<std::string>> points;
    for (size_t b = 0; b < node.subgraphs.size(); ++b) {
      const size_t region = b + (kind == ControlKind::kForeach ? 1 : 0);
      open_box(std::string(is_loop ? notation::kLoopRegions[region] : notation::kBranchRegions[b]));
      points.push_back(draw_region(node, b, ids));
      close_box();
    }
    if (is_loop && loop_of(node).counted) connect(ids.at(node.inputs.back()), add("count", kSlotLook));
    std::vector<std::string> outputs;
    for (size_t i = 0; i < static_cast<size_t>(node.num_outputs()); ++i) {
      outputs.push_back(add(with_type("." + std::to_string(i), node, i), kSlotLook));
      ids[entry(node, i)] = outputs.back();
    }
    close_box();
    if (is_loop) {
      for (size_t i = 0; i < points.back().size(); ++i) connect(points.back()[i], outputs[i]);
      return;
    }
    for (size_t branch = 0; branch < 2; ++branch)
      for (size_t i = 0; i < points[branch + 1].size(); ++i)
        connect(points[branch + 1][i], outputs[branch_of(node).output_of(branch, i)]);
  }

  std::string text_, edges_;
  int next_ = 0;
};

}  // namespace

std::string write_dot(const Graph& graph) { return Drawing().run(graph); }

}  // namespace hybridnet
