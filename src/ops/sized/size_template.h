// Parameters of operators with holes, filled from the sizes of inputs or from the values in them:
// "shape=({#0.0},{#1.1 2 *},-1);dtype=float32".
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hybridnet/op.h"

namespace hybridnet::ops {

// A template is a list of `name=text`, separated by semicolons. Each `{...}` in a text is an expression in postfix
// notation over
//   #i.a           size of axis a of input i; a negative axis counts from the last one
//   #i             rank of input i
//   @i.k           value number k of input i
//   @i             all values of input i, with commas between them; must stand alone
//   12, -1.5       numbers
// with the operators + - * / // % max min floor ceil trunc round neg abs == < <= and ? (condition, then, else).
// `//` and `%` round down, as in Python. Results are integers if the expression is; an integer is written
// without a point.
class SizeTemplate {
 public:
  // The shape of input i; null: not known.
  using ShapeOf = std::function<const Shape*(int input)>;
  // The values of input i.
  using ValuesOf = std::function<std::vector<double>(int input)>;

  explicit SizeTemplate(std::string_view text) : text_(text) {}

  // Returns the texts of the parameters; nullopt if a size is not known. values may be null if the template reads none.
  // Throws ParamError for expressions that have no value.
  std::optional<std::vector<std::pair<std::string, std::string>>> fill(const ShapeOf& shape_of,
                                                                       const ValuesOf& values_of) const;

 private:
  std::string_view text_;
};

}  // namespace hybridnet::ops
