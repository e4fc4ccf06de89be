// Patterns of nodes that rules look for. Operands of commutative operators match in any order.
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

// The operands and nodes bound to the names of a pattern in a match.
struct Binding {
  std::map<std::string, Operand> one;
  std::map<std::string, std::vector<Operand>> many;
  std::vector<NodePtr> nodes;  // nodes that match operators of the pattern, the root first
};

class Pattern {
 public:
  enum class Kind : int8_t { kAny, kOperator, kNumber, kRest, kOneOf };
  using Test = std::function<bool(const Graph&, const Operand&)>;
  Kind kind = Kind::kAny;
  std::string name;  // the match is bound to this name unless empty; equal names must match equal entries or numbers
  Test where;        // an additional condition; may be null

  // kOperator: plain arithmetic ("mul", which stands for its operators), or an operator by name or alias.
  const Arithmetic* arithmetic = nullptr;
  const Op* op = nullptr;
  std::vector<const Op*> ops;      // the operators of the arithmetic, or op
  std::vector<PatternPtr> inputs;  // kOneOf: the alternatives
  std::vector<std::pair<std::string, AttrValue>> params;
  PatternPtr over;      // sums, means and the like: matches the number of the one axis that is reduced
  bool shared = false;  // nodes outside the match may read nodes inside it

  // kNumber: a number, or an array filled with one number, within `tolerance` of `value`; without `value` any number.
  std::optional<double> value;
  double tolerance = 0;

  // Throws ParamError for a name that is no operator.
  static PatternPtr of_operator(const std::string& op_name, std::vector<PatternPtr> inputs);
};

// Returns true, and fills `binding`, if the pattern matches the node `root`.
bool match(const Graph& graph, const Pattern& pattern, const NodePtr& root, Binding* binding);

// A set of patterns, looked up for a node in one walk over it (a discrimination tree). candidates() returns the
// patterns that may match, in the order in which they were added; match() decides.
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

// Returns the operators that the root of the pattern may be; empty: any.
std::vector<std::string> roots_of(const Pattern& pattern);

// Returns the number of the operand, or the number with which an operator filled the whole array; else nullopt.
std::optional<double> number_of(const Operand& operand);

}  // namespace hybridnet
