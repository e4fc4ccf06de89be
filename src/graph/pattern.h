// Patterns of nodes: what a rule looks for, matched in any order of the operands of commutative operators.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/arithmetic.h"

namespace hybridnet {

class Pattern;
using PatternPtr = std::shared_ptr<const Pattern>;

// What the names of a pattern stand for in a match.
struct Binding {
  std::map<std::string, Operand> one;
  std::map<std::string, std::vector<Operand>> many;
  std::vector<NodePtr> nodes;  // that matched operators of the pattern, the root first
};

class Pattern {
 public:
  enum class Kind : int8_t { kAny, kOperator, kNumber, kRest, kOneOf };
  using Test = std::function<bool(const Graph&, const Operand&)>;
  Kind kind = Kind::kAny;
  std::string name;  // what the match is bound to; empty: nothing. The same name stands for the same entry or number
  Test where;        // must hold, too; null: nothing to hold

  // kOperator: plain arithmetic ("mul", which stands for its operators), or an operator by name or alias.
  const Arithmetic* arithmetic = nullptr;
  const Op* op = nullptr;
  std::vector<PatternPtr> inputs;  // kOneOf: the alternatives
  std::vector<std::pair<std::string, AttrValue>> params;
  bool shared = false;  // others than the match may read what is inside the match

  // kNumber: a number, or an array that an operator has filled with one, this close to `value`; without value any
  // number.
  std::optional<double> value;
  double tolerance = 0;

  // Throws ParamError for a name that is no operator.
  static PatternPtr of_operator(const std::string& op_name, std::vector<PatternPtr> inputs);
};

// Does the pattern match what `root` computes? Fills `binding`.
bool match(const Graph& graph, const Pattern& pattern, const NodePtr& root, Binding* binding);

// Many patterns, looked up at a node in one walk over it (a discrimination tree): candidates() gives those that may
// match, in the order in which they were added; match() decides.
class PatternSet {
 public:
  PatternSet();
  ~PatternSet();
  PatternSet(PatternSet&&) noexcept;
  void add(const Pattern& pattern);
  std::vector<int> candidates(const Node& node) const;

 private:
  struct Branch;
  std::unique_ptr<Branch> root_;
  int count_ = 0;
};

// Operators that the root of a pattern may be; empty: any.
std::vector<std::string> roots_of(const Pattern& pattern);

// The number that an entry holds everywhere, where an operator that fills has made it.
std::optional<double> number_of(const Operand& operand);

}  // namespace hybridnet
