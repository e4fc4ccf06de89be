// Chooses the values that lie channels-last. Convolutions are fastest there, and copies between the orders cost as much
// as the elementwise work around them: so islands of image and elementwise nodes around convolutions change together,
// and only values at the border of an island are copied. Runs on forward and backward at once, so that values of the
// forward run are already in the order in which the backward run reads them.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "passes/attributes.h"
#include "passes/control/size_questions.h"
#include "passes/layers/axis_order.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kToChannelsLast{"_to_channels_last"}, kToPlain{"_to_plain"};

bool all_images(const Node& node, const Graph& graph, const std::vector<int>& inputs, const std::vector<int>& outputs) {
  auto fits = [](const auto& numbers, size_t count, auto spec_of) {
    return std::all_of(numbers.begin(), numbers.end(), [&](int i) {
      return i >= static_cast<int>(count) || is_image(spec_of(static_cast<size_t>(i)));
    });
  };
  return fits(inputs, node.inputs.size(), [&](size_t i) { return graph.spec(node.inputs[i]); }) &&
         fits(outputs, node.specs.size(), [&](size_t i) { return node.specs[i]; });
}

bool is_convolution(const Op& op) { return op.heavy && !op.image_inputs.empty(); }

// A node that can be in either order, and the inputs and outputs that change with it.
struct Member {
  Node* node = nullptr;
  std::vector<int> inputs, outputs;
  bool last = true;
  int island = -1;
};

class Layout {
 public:
  explicit Layout(Graph& graph) : graph_(graph) {}

  bool run() {
    collect();
    find_islands();
    if (islands_.empty()) return false;
    std::vector<Member*> order;
    for (Node* node : graph_.order()) {
      if (Member* member = find(node); member && member->last) order.push_back(member);
    }
    trim(order);
    give_up_poor_islands();
    return apply();
  }

 private:
  void collect() {
    for (Node* node : graph_.order()) {
      if (node->is_variable() || !node->control.empty()) continue;
      Member member{node, {}, {}};
      const Op& op = *node->op;
      if (!op.image_inputs.empty() || !op.image_outputs.empty()) {
        if (graph_.train() && is_convolution(op) && has_few_pixels(*node)) continue;
        if (is_convolution(op) && makes_few_of_many(*node)) continue;
        if (op.image_active && !op.image_active(node->params->data())) continue;
        if (!all_images(*node, graph_, op.image_inputs, op.image_outputs)) continue;
        for (const int i : op.image_inputs) {
          if (i < static_cast<int>(node->inputs.size())) member.inputs.push_back(i);
        }
        for (const int i : op.image_outputs) {
          if (i < static_cast<int>(node->specs.size())) member.outputs.push_back(i);
        }
      } else if (is_elementwise(*node)) {
        for (int i = 0; i < static_cast<int>(node->inputs.size()); ++i) member.inputs.push_back(i);
        member.outputs = {0};
      } else if (const std::optional<AxisOrder> order = axis_order(graph_, *node)) {
        member.inputs = order->inputs;
        member.outputs = order->outputs;
      } else {
        continue;
      }
      members_.emplace(node, std::move(member));
    }
  }

  std::vector<Shape> images_of(const Node& node) const {
    const Op& op = *node.op;
    std::vector<Shape> images;
    for (const int i : op.image_inputs)
      if (i < static_cast<int>(node.inputs.size()))
        images.push_back(graph_.spec(node.inputs[static_cast<size_t>(i)]).shape);
    for (const int i : op.image_outputs)
      if (i < static_cast<int>(node.specs.size())) images.push_back(node.specs[static_cast<size_t>(i)].shape);
    return images;
  }

  // True for gradients of kernels that are several times as wide as their results, such as those over the words of a
  // sentence: channels-last they are sums over the whole kernel for each pixel of the data, nearly all of them of zeros
  // (kernel (3, 300) over 50x1x56x300: 200 ms instead of 9).
  bool makes_few_of_many(const Node& node) const {
    const bool is_differentiated = graph_.train() || node.op->name.starts_with("_conv_backward");
    const AttrValue kernel = attribute(node, "kernel");
    const auto* sizes = std::get_if<AttrValue::List>(&kernel.value);
    if (!is_differentiated || sizes == nullptr) return false;
    std::vector<int64_t> widths;
    for (const AttrValue& size : *sizes)
      if (const auto* width = std::get_if<int64_t>(&size.value)) widths.push_back(*width);
    return ask_sizes(images_of(node), [widths](std::span<const Shape> shapes) {
      constexpr int64_t kSeveral = 4;
      return std::any_of(shapes.begin(), shapes.end(), [&](const Shape& shape) {
        for (size_t i = 0; i < widths.size() && i + 2 < static_cast<size_t>(shape.ndim()); ++i)
          if (widths[i] > kSeveral * shape[static_cast<int>(i) + 2]) return true;
        return false;
      });
    });
  }

  // Gradients with few pixels spend their time in the weights, which are in plain order: channels-last, these are
  // converted twice (ResNet-18 at 2x3x64x64, last stage: 16 ms instead of 9).
  bool has_few_pixels(const Node& node) const {
    return ask_sizes(images_of(node), [](std::span<const Shape> shapes) {
      constexpr int64_t kFewPixels = 16;
      return std::any_of(shapes.begin(), shapes.end(), [](const Shape& shape) {
        return shape.ndim() > 1 && shape[1] > 0 && shape.size() / shape[1] <= kFewPixels;
      });
    });
  }

  // True if the node computes the same in either order, as long as all operands share it.
  bool is_elementwise(const Node& node) const {
    const Op& op = *node.op;
    if (!(op.format_agnostic || op.pointwise) || op.random || op.opaque || node.specs.size() != 1 ||
        node.inputs.empty() || node.specs[0].shape.ndim() < 3 || node.specs[0].shape.ndim() > 5) {
      return false;
    }
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](const NodeEntry& input) { return graph_.spec(input).shape == node.specs[0].shape; });
  }

  Member* find(const Node* node) {
    const auto it = members_.find(node);
    return it == members_.end() ? nullptr : &it->second;
  }

  static bool has(const std::vector<int>& numbers, int i) {
    return std::find(numbers.begin(), numbers.end(), i) != numbers.end();
  }

  // The member that writes an entry in its own order; null: the entry is always plain.
  Member* maker(const NodeEntry& entry) {
    Member* member = find(entry.node.get());
    return member && has(member->outputs, static_cast<int>(entry.index)) ? member : nullptr;
  }
  // The member that reads the entry in its own order, or null.
  Member* reader(const Client& client) {
    Member* member = client.kind == Client::Kind::kNode ? find(client.node) : nullptr;
    return member && has(member->inputs, client.index) ? member : nullptr;
  }

  // Joins connected members to islands; members that no convolution is connected to stay plain.
  void find_islands() {
    for (Node* node : graph_.order()) {
      Member* start = find(node);
      if (!start || !is_convolution(*node->op) || start->island >= 0) continue;
      const int island = static_cast<int>(islands_.size());
      islands_.emplace_back();
      std::vector<Member*> pending{start};
      start->island = island;
      auto visit = [&](Member* member) {
        if (!member || member->island >= 0) return;
        member->island = island;
        pending.push_back(member);
      };
      while (!pending.empty()) {
        Member* member = pending.back();
        pending.pop_back();
        islands_.back().push_back(member);
        for (const int i : member->inputs) visit(maker(member->node->inputs[static_cast<size_t>(i)]));
        for (const int i : member->outputs) {
          for (const Client& client : graph_.clients(*member->node, i)) visit(reader(client));
        }
      }
    }
    for (auto& [node, member] : members_) member.last = member.island >= 0;
  }

  // True if the entry is copied between the orders.
  bool is_copied(const NodeEntry& entry) {
    const Member* made_by = maker(entry);
    const bool last = made_by && made_by->last;
    return std::any_of(graph_.clients(entry).begin(), graph_.clients(entry).end(), [&](const Client& client) {
      const Member* read_by = reader(client);
      return (read_by && read_by->last) != last;
    });
  }

  // Entries whose copies depend on the order of a member.
  std::vector<NodeEntry> border(const Member& member) {
    std::vector<NodeEntry> entries;
    for (const int i : member.inputs) {
      const NodeEntry& entry = member.node->inputs[static_cast<size_t>(i)];
      if (std::find(entries.begin(), entries.end(), entry) == entries.end()) entries.push_back(entry);
    }
    for (const int i : member.outputs) entries.push_back({NodePtr(member.node), static_cast<uint32_t>(i)});
    return entries;
  }

  // The bytes that a member costs: copies around it, and the copies that a convolution makes inside if its images are
  // plain.
  ByteCount cost(const Member& member) {
    ByteCount bytes;
    const bool copies_inside = is_convolution(*member.node->op) && !member.last;
    for (const NodeEntry& entry : border(member)) {
      if (copies_inside) bytes.add(graph_.spec(entry));
      if (is_copied(entry)) bytes.add(graph_.spec(entry));
    }
    return bytes;
  }

  // Members at the rim go back to plain memory if that moves the copy to a smaller value.
  void trim(const std::vector<Member*>& order) {
    for (int sweep = 0; sweep < 8; ++sweep) {
      bool changed = false;
      auto consider = [&](Member* member) {
        const ByteCount before = cost(*member);
        member->last = !member->last;
        if (ask_fewer_bytes(cost(*member), before)) {
          changed = true;
        } else {
          member->last = !member->last;
        }
      };
      for (Member* member : order) consider(member);
      for (auto it = order.rbegin(); it != order.rend(); ++it) consider(*it);
      if (!changed) return;
    }
  }

  void give_up_poor_islands() {
    for (const std::vector<Member*>& island : islands_) {
      ByteCount plain, chosen;
      std::unordered_set<NodeEntry, NodeEntryHash> entries;
      for (const Member* member : island) {
        const bool convolution = is_convolution(*member->node->op);
        for (const NodeEntry& entry : border(*member)) {
          if (convolution) plain.add(graph_.spec(entry));
          if (convolution && !member->last) chosen.add(graph_.spec(entry));
          entries.insert(entry);
        }
      }
      for (const NodeEntry& entry : entries)
        if (is_copied(entry)) chosen.add(graph_.spec(entry));
      if (ask_fewer_bytes(chosen, plain)) continue;
      for (Member* member : island) member->last = false;
    }
  }

  bool apply() {
    bool changed = false;
    for (Node* node : graph_.order()) {
      const Member* member = find(node);
      if (!member || !member->last) continue;
      changed = true;
      for (const int i : member->outputs)
        graph_.set_format({NodePtr(node), static_cast<uint32_t>(i)}, Format::kChannelsLast);
    }
    if (!changed) return false;
    for (Node* node : graph_.order()) {
      for (uint32_t i = 0; i < node->specs.size(); ++i) copy_for_readers({NodePtr(node), i});
    }
    return true;
  }

  // Makes one copy for all readers that want the other order.
  void copy_for_readers(const NodeEntry& entry) {
    const Format made = graph_.format(entry);
    const std::vector<Client> clients = graph_.clients(entry);
    NodeEntry copy;
    for (const Client& client : clients) {
      const Member* read_by = reader(client);
      const Format wanted = read_by && read_by->last ? Format::kChannelsLast : Format::kPlain;
      if (wanted == made) continue;
      if (!copy.node) {
        const Op& op = wanted == Format::kPlain ? kToPlain.op() : kToChannelsLast.op();
        // Inputs are copied at their first use; other values right behind their node, while they are in the cache.
        const Node* origin = entry.node->is_variable() && client.node ? client.node : entry.node.get();
        copy = {graph_.add(op, op.default_params, {entry}, origin), 0};
        graph_.set_format(copy, wanted);
      }
      switch (client.kind) {
        case Client::Kind::kNode:
          graph_.set_input(*client.node, client.index, copy);
          break;
        case Client::Kind::kOutput:
          graph_.set_output(client.index, copy);
          break;
        case Client::Kind::kWriteback:
          graph_.set_writeback(client.index, copy);
          break;
      }
    }
  }

  Graph& graph_;
  std::unordered_map<const Node*, Member> members_;
  std::vector<std::vector<Member*>> islands_;
};

}  // namespace

bool channels_last(Graph& graph) { return Layout(graph).run(); }

}  // namespace hybridnet::passes
