#include "graph/pattern.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "graph/reduced_axes.h"

namespace hybridnet {
namespace {

bool is_commutative(const Node& node) {
  if (node.op->commutative) return true;
  const Arithmetic* arithmetic = arithmetic_of(*node.op);
  return arithmetic != nullptr && arithmetic->is_commutative();
}

bool is_operator(const Pattern& pattern, const Node& node) {
  return std::find(pattern.ops.begin(), pattern.ops.end(), node.op) != pattern.ops.end();
}

// False if the operators alone show that the pattern does not match: this is much faster than match(), and most nodes
// that a rule visits do not match.
bool has_operators(const Pattern& pattern, const NodeEntry& entry) {
  if (pattern.kind != Pattern::Kind::kOperator) return true;
  const Node& node = *entry.node;
  if (node.is_variable() || entry.index != 0 || !is_operator(pattern, node)) return false;
  const std::vector<PatternPtr>& inputs = pattern.inputs;
  if (inputs.size() == 2 && node.inputs.size() == 1)  // the other operand is a number
    return has_operators(*inputs[0], node.inputs[0]) || has_operators(*inputs[1], node.inputs[0]);
  if (inputs.size() != node.inputs.size()) return true;
  const auto have = [&](size_t first) {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!has_operators(*inputs[i], node.inputs[first == 0 ? i : 1 - i])) return false;
    return true;
  };
  return have(0) || (inputs.size() == 2 && is_commutative(node) && have(1));
}

// Parameters are compared after parsing by the operator: 1 equals 1.0, and (2, 2) equals [2, 2].
bool has_params(const Pattern& pattern, const Node& node) {
  if (pattern.params.empty()) return true;
  const Ref<Params> wanted = node.op->schema->create();
  for (const auto& [name, value] : pattern.params) {
    const int field = node.op->schema->find(name);
    if (field < 0) return false;
    node.op->schema->set(wanted->data(), field, value, node.op->name);
    if (node.op->schema->get(wanted->data(), field).str() != node.op->schema->get(node.params->data(), field).str())
      return false;
  }
  return true;
}

class Matcher {
 public:
  Matcher(const Graph& graph, Binding* binding) : graph_(graph), binding_(*binding) {}

  bool run(const Pattern& pattern, const NodePtr& root) {
    return match(pattern, {{root, 0}, {}}, [&] { return nobody_else_reads(root); });
  }

 private:
  using Rest = std::function<bool()>;  // matches the remaining parts; false: try another alternative

  bool match(const Pattern& pattern, const Operand& operand, const Rest& rest) {
    if (pattern.kind == Pattern::Kind::kOneOf) {
      return std::any_of(pattern.inputs.begin(), pattern.inputs.end(), [&](const PatternPtr& alternative) {
        return match(*alternative, operand, [&] { return bind(pattern, operand, rest); });
      });
    }
    if (pattern.kind == Pattern::Kind::kNumber) {
      const std::optional<double> number = number_of(operand);
      if (!number || (pattern.value && !(std::abs(*number - *pattern.value) <= pattern.tolerance))) return false;
      return bind(pattern, operand, rest);
    }
    if (pattern.kind == Pattern::Kind::kOperator) return match_operator(pattern, operand, rest);
    return bind(pattern, operand, rest);
  }

  bool bind(const Pattern& pattern, const Operand& operand, const Rest& rest) {
    if (pattern.where && !pattern.where(graph_, operand)) return false;
    if (pattern.name.empty()) return rest();
    const auto [known, is_new] = binding_.one.try_emplace(pattern.name, operand);
    if (!is_new) return same(known->second, operand) && rest();
    if (rest()) return true;
    binding_.one.erase(pattern.name);
    return false;
  }

  static bool same(const Operand& a, const Operand& b) {
    if (a == b) return true;
    const std::optional<double> x = number_of(a), y = number_of(b);
    return x && y && *x == *y;
  }

  bool match_operator(const Pattern& pattern, const Operand& operand, const Rest& rest) {
    if (operand.number || operand.entry.node->is_variable() || operand.entry.index != 0) return false;
    const NodePtr& node = operand.entry.node;
    if (!is_operator(pattern, *node) || !has_params(pattern, *node)) return false;
    binding_.nodes.push_back(node);
    if (pattern.shared) shared_.push_back(node.get());
    const std::vector<Operand> operands = operands_of(*node);
    const Rest bound = [&] { return match_axis(pattern, *node, [&] { return bind(pattern, operand, rest); }); };
    if (match_inputs(pattern, operands, 0, bound)) return true;
    if (is_commutative(*node) && operands.size() == 2 && match_inputs(pattern, {operands[1], operands[0]}, 0, bound))
      return true;
    if (pattern.shared) shared_.pop_back();
    binding_.nodes.pop_back();
    return false;
  }

  bool match_inputs(const Pattern& pattern, const std::vector<Operand>& operands, size_t next, const Rest& rest) {
    if (next == pattern.inputs.size()) return next == operands.size() && rest();
    const Pattern& input = *pattern.inputs[next];
    if (input.kind == Pattern::Kind::kRest) {
      binding_.many[input.name] = {operands.begin() + static_cast<std::ptrdiff_t>(std::min(next, operands.size())),
                                   operands.end()};
      return rest();
    }
    if (next >= operands.size()) return false;
    return match(input, operands[next], [&] { return match_inputs(pattern, operands, next + 1, rest); });
  }

  bool match_axis(const Pattern& pattern, const Node& node, const Rest& rest) {
    if (pattern.over == nullptr) return rest();
    const std::optional<int> axis = reduced_axis(graph_, node);
    return axis && match(*pattern.over, {{}, static_cast<double>(*axis)}, rest);
  }

  // True if only the match reads the nodes inside it: they are removed with the match.
  bool nobody_else_reads(const NodePtr& root) const {
    const std::set<const Node*> inside = [&] {
      std::set<const Node*> nodes;
      for (const NodePtr& node : binding_.nodes) nodes.insert(node.get());
      return nodes;
    }();
    for (const Node* node : inside) {
      if (node == root.get() || std::find(shared_.begin(), shared_.end(), node) != shared_.end()) continue;
      for (int i = 0; i < node->num_outputs(); ++i)
        for (const Client& reader : graph_.clients(*node, i))
          if (reader.node == nullptr || inside.count(reader.node) == 0) return false;
    }
    return true;
  }

  const Graph& graph_;
  Binding& binding_;
  std::vector<const Node*> shared_;
};

// Returns the key of a branch of the tree: operator or arithmetic, and number of operands.
std::string key_of(const Arithmetic* arithmetic, const Op* op, size_t num_operands) {
  return (arithmetic ? std::string(arithmetic->name) : op->name) + "/" + std::to_string(num_operands);
}

// One path through the tree that a walk over a matching node can take; "" stands for any operand.
using Path = std::vector<std::string>;
constexpr size_t kMaxPaths = 32;

std::vector<Path> joined(const std::vector<Path>& heads, const std::vector<Path>& tails) {
  std::vector<Path> paths;
  for (const Path& head : heads) {
    for (const Path& tail : tails) {
      paths.push_back(head);
      paths.back().insert(paths.back().end(), tail.begin(), tail.end());
    }
  }
  return paths;
}

std::vector<Path> paths_of(const Pattern& pattern) {
  if (pattern.kind == Pattern::Kind::kOneOf) {
    std::vector<Path> paths;
    for (const PatternPtr& alternative : pattern.inputs)
      for (Path& path : paths_of(*alternative)) paths.push_back(std::move(path));
    return paths.size() > kMaxPaths ? std::vector<Path>{{""}} : paths;
  }
  const bool has_rest = std::any_of(pattern.inputs.begin(), pattern.inputs.end(),
                                    [](const PatternPtr& input) { return input->kind == Pattern::Kind::kRest; });
  if (pattern.kind != Pattern::Kind::kOperator || has_rest) return {{""}};
  const Path own{key_of(pattern.arithmetic, pattern.op, pattern.inputs.size())};
  std::vector<Path> forth{own};
  for (const PatternPtr& input : pattern.inputs) forth = joined(forth, paths_of(*input));
  const bool commutes = pattern.inputs.size() == 2 &&
                        (pattern.arithmetic ? pattern.arithmetic->is_commutative() : pattern.op->commutative);
  if (commutes)
    for (Path& back : joined(joined({own}, paths_of(*pattern.inputs[1])), paths_of(*pattern.inputs[0])))
      forth.push_back(std::move(back));
  return forth.size() > kMaxPaths ? std::vector<Path>{{""}} : forth;
}

}  // namespace

PatternPtr Pattern::of_operator(const std::string& op_name, std::vector<PatternPtr> inputs) {
  auto pattern = std::make_shared<Pattern>();
  pattern->kind = Kind::kOperator;
  pattern->arithmetic = find_arithmetic(op_name);
  if (pattern->arithmetic == nullptr) {
    pattern->op = &op_registry().at(op_name);
    pattern->ops = {pattern->op};
  } else {
    for (const std::string_view name : pattern->arithmetic->operators())
      pattern->ops.push_back(&op_registry().at(name));
  }
  pattern->inputs = std::move(inputs);
  return pattern;
}

bool match(const Graph& graph, const Pattern& pattern, const NodePtr& root, Binding* binding) {
  *binding = {};
  if (!has_operators(pattern, {root, 0})) return false;
  return Matcher(graph, binding).run(pattern, root);
}

struct PatternSet::Branch {
  std::map<std::string, std::unique_ptr<Branch>> next;
  std::vector<int> patterns;  // the patterns whose path ends here
};

PatternSet::PatternSet() : root_(std::make_unique<Branch>()) {}
PatternSet::~PatternSet() = default;
PatternSet::PatternSet(PatternSet&&) noexcept = default;

void PatternSet::add(const Pattern& pattern) {
  for (const Path& path : paths_of(pattern)) {
    Branch* branch = root_.get();
    for (const std::string& key : path) {
      std::unique_ptr<Branch>& next = branch->next[key];
      if (!next) next = std::make_unique<Branch>();
      branch = next.get();
    }
    branch->patterns.push_back(count_);
  }
  ++count_;
}

std::vector<int> PatternSet::candidates(const Node& node) const {
  std::set<int> found;
  struct State {
    const Branch* branch;
    std::vector<Operand> waiting;  // the next one last
  };
  std::vector<State> states{{root_.get(), {{{NodePtr(const_cast<Node*>(&node)), 0}, {}}}}};
  while (!states.empty()) {
    State state = std::move(states.back());
    states.pop_back();
    if (state.waiting.empty()) {
      found.insert(state.branch->patterns.begin(), state.branch->patterns.end());
      continue;
    }
    const Operand operand = state.waiting.back();
    state.waiting.pop_back();
    if (const auto any = state.branch->next.find(""); any != state.branch->next.end())
      states.push_back({any->second.get(), state.waiting});
    if (operand.number || operand.entry.node->is_variable() || operand.entry.index != 0) continue;
    std::vector<Operand> operands = operands_of(*operand.entry.node);
    const Op& op = *operand.entry.node->op;
    std::vector<const Branch*> ways;
    const Arithmetic* arithmetic = arithmetic_of(op);
    for (const std::string& key : {key_of(nullptr, &op, operands.size()),
                                   arithmetic ? key_of(arithmetic, nullptr, operands.size()) : std::string("-")}) {
      if (const auto next = state.branch->next.find(key); next != state.branch->next.end())
        ways.push_back(next->second.get());
    }
    state.waiting.insert(state.waiting.end(), operands.rbegin(), operands.rend());
    for (const Branch* way : ways) states.push_back({way, state.waiting});
  }
  return {found.begin(), found.end()};
}

std::vector<std::string> roots_of(const Pattern& pattern) {
  if (pattern.kind == Pattern::Kind::kOneOf) {
    std::vector<std::string> roots;
    for (const PatternPtr& alternative : pattern.inputs) {
      const std::vector<std::string> more = roots_of(*alternative);
      if (more.empty()) return {};
      roots.insert(roots.end(), more.begin(), more.end());
    }
    return roots;
  }
  if (pattern.kind != Pattern::Kind::kOperator) return {};
  std::vector<std::string> roots;
  for (const Op* op : pattern.ops) roots.push_back(op->name);
  return roots;
}

std::optional<double> number_of(const Operand& operand) {
  if (operand.number) return operand.number;
  const Node& node = *operand.entry.node;
  if (node.is_variable() || !node.op->fills_with) return std::nullopt;
  return node.op->fills_with(node.params->data());
}

}  // namespace hybridnet
