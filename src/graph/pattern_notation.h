// Rules as text: "log(add(1, exp(x))) -> Activation(x, act_type=softrelu)". Both sides are written alike:
//
//   x                        a name: any value. A name that occurs twice is one value
//   1                        a number, also an array that an operator fills with it
//   add(x, 1), exp(x)        an operator with its inputs: a word of graph/arithmetic.h, which stands for its operators
//   on
//                            arrays and with a number on either side, or the name of an operator
//   sum(x, keepdims=True)    parameters behind the inputs. In front of the arrow the node has to have them
//   div(e: exp(x), sum(e))   in front of the arrow: e is the result of exp
//   sum(x, over=a)           in front of the arrow, for sums, means and the like: one axis is reduced, with the number
//   a softmax(x, axis=a)       behind the arrow: a parameter with the number of that name log_softmax(x, like=s) behind
//   the arrow: the parameters that the operator has in common with the node of s
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/pattern.h"

namespace hybridnet {

// The value that takes the place of a match: a name, a number, or an operator.
struct Template {
  std::string name;  // a name of the pattern
  std::optional<double> number;
  const Arithmetic* arithmetic = nullptr;
  const Op* op = nullptr;
  std::vector<Template> inputs;
  ParamsPtr params;  // null: they depend on the match
  std::vector<std::pair<std::string, AttrValue>> given;
  std::vector<std::pair<std::string, std::string>> numbers;  // parameters with the number of a name
  std::string like;                                          // the name of a node with more parameters; may be empty
};

struct PatternRule {
  PatternPtr pattern;
  Template replacement;
};
// shared: nodes outside of a match may read the values inside it. Throws FormatError, which shows the place, for wrong
// notation and for unknown names, operators and parameters.
PatternRule parse_pattern_rule(std::string_view text, bool shared);

}  // namespace hybridnet
