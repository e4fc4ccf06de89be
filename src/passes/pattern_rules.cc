#include "passes/pattern_rules.h"

#include <algorithm>
#include <optional>

#include "graph/pattern_notation.h"
#include "passes/attributes.h"
#include "passes/borders.h"

namespace hybridnet::passes {
namespace {

// Makes the replacement of one match from the template.
class Maker {
 public:
  Maker(Graph& graph, const Binding& binding, const Node& origin) : graph_(graph), binding_(binding), origin_(origin) {}

  // Returns nothing if a number stands where only an array can.
  std::optional<Operand> make(const Template& wanted) {
    if (wanted.number) return Operand{{}, wanted.number};
    if (!wanted.name.empty()) return bound(wanted.name);
    std::vector<Operand> operands;
    for (const Template& input : wanted.inputs) {
      const std::optional<Operand> operand = make(input);
      if (!operand) return std::nullopt;
      operands.push_back(*operand);
    }
    const auto is_number = [](const Operand& operand) { return operand.number.has_value(); };
    if (wanted.arithmetic != nullptr) {
      if (std::all_of(operands.begin(), operands.end(), is_number)) return std::nullopt;
      return Operand{{add_arithmetic(graph_, *wanted.arithmetic, operands[0], operands[1], &origin_), 0}, {}};
    }
    if (std::any_of(operands.begin(), operands.end(), is_number)) return std::nullopt;
    std::vector<NodeEntry> inputs;
    for (const Operand& operand : operands) inputs.push_back(operand.entry);
    return Operand{{graph_.add(*wanted.op, params_of(wanted), std::move(inputs), &origin_), 0}, {}};
  }

 private:
  const Operand& bound(const std::string& name) const { return binding_.one.at(name); }

  ParamsPtr params_of(const Template& wanted) const {
    if (wanted.params) return wanted.params;
    std::vector<std::pair<std::string, AttrValue>> given = wanted.given;
    for (const auto& [param, name] : wanted.numbers) given.emplace_back(param, *bound(name).number);
    const Node* like = wanted.like.empty() ? nullptr : bound(wanted.like).entry.node.get();
    return make_params(*wanted.op, like, given);
  }

  Graph& graph_;
  const Binding& binding_;
  const Node& origin_;
};

Replacement apply(const PatternRule& rule, Graph& graph, Node& node) {
  Binding binding;
  if (!match(graph, *rule.pattern, NodePtr(&node), &binding)) return no_change();
  const std::optional<Operand> made = Maker(graph, binding, node).make(rule.replacement);
  if (!made || made->number || !(graph.spec(made->entry) == node.specs[0])) return no_change();
  return separates_borders(graph, node, made->entry) ? no_change() : replace_with(made->entry);
}

PatternRule compiled(const Rewrite& row, const std::string& text) {
  try {
    return parse_pattern_rule(text, row.shared);
  } catch (const Error& error) {
    throw ParamError({.op = "pipeline",
                      .input = "row '" + row.name + "'",
                      .message = std::string("its pattern is wrong: ") + error.what(),
                      .fix = "see src/graph/pattern_notation.h"});
  }
}

void compile(Rewrite& row) {
  std::vector<PatternRule> rules;
  for (const std::string& text : row.patterns) {
    rules.push_back(compiled(row, text));
    for (const std::string& op : roots_of(*rules.back().pattern))
      if (std::find(row.ops.begin(), row.ops.end(), op) == row.ops.end()) row.ops.push_back(op);
  }
  row.local = [rules = std::move(rules)](Graph& graph, Node& node) {
    for (const PatternRule& rule : rules)
      if (Replacement found = apply(rule, graph, node); found.changed()) return found;
    return no_change();
  };
}

}  // namespace

void compile_patterns(std::vector<Rewrite>& rows) {
  for (Rewrite& row : rows)
    if (!row.patterns.empty()) compile(row);
}

}  // namespace hybridnet::passes
