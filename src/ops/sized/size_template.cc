#include "ops/sized/size_template.h"

#include <charconv>
#include <cmath>

#include "op/attr_text.h"

namespace hybridnet::ops {
namespace {

struct SizeIsUnknown {};

constexpr double kExact = 9007199254740992.0;  // 2^53: up to it doubles hold all integers

std::string text_of(double value) {
  if (value == std::floor(value) && std::fabs(value) <= kExact) return std::to_string(static_cast<int64_t>(value));
  return number_text(value);
}

// Evaluates one expression with a stack.
class Expression {
 public:
  Expression(std::string_view text, const SizeTemplate::ShapeOf& shape_of, const SizeTemplate::ValuesOf& values_of)
      : text_(text), shape_of_(shape_of), values_of_(values_of) {}

  std::string result() {
    if (is_list()) return list();
    for (std::string_view rest = text_; !rest.empty();) {
      const size_t end = std::min(rest.find(' '), rest.size());
      if (end > 0) step(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (stack_.size() != 1) fail("it leaves " + std::to_string(stack_.size()) + " values");
    return text_of(stack_[0]);
  }

 private:
  [[noreturn]] void fail(std::string because) const {
    throw ParamError({.input = "attrs",
                      .expected = "expressions in postfix notation over sizes, such as {#0.1 2 *}",
                      .given = "{" + std::string(text_) + "}",
                      .because = std::move(because)});
  }

  bool is_list() const { return text_.starts_with("@") && text_.find_first_of(" .") == std::string_view::npos; }
  std::string list() {
    std::string text;
    for (const double value : values_of_(number(text_.substr(1)))) text += text_of(value) + ",";
    return text;
  }

  int number(std::string_view digits) const {
    int value = 0;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (problem != std::errc() || end != digits.data() + digits.size())
      fail("'" + std::string(digits) + "' is not an integer");
    return value;
  }

  double leaf(std::string_view word) const {
    const bool is_size = word[0] == '#';
    const std::string_view name = word.substr(1);
    const size_t point = name.find('.');
    const int input = number(name.substr(0, point));
    if (!is_size) {
      if (point == std::string_view::npos) fail("'" + std::string(word) + "' must stand alone, or name one value");
      const std::vector<double> values = values_of_(input);
      const int index = number(name.substr(point + 1));
      if (index < 0 || static_cast<size_t>(index) >= values.size())
        fail("input " + std::to_string(input) + " has " + std::to_string(values.size()) + " values");
      return values[static_cast<size_t>(index)];
    }
    const Shape* shape = shape_of_(input);
    if (shape == nullptr || !shape->rank_known()) throw SizeIsUnknown();
    if (point == std::string_view::npos) return shape->ndim();
    const int axis = number(name.substr(point + 1)), real = axis < 0 ? axis + shape->ndim() : axis;
    if (real < 0 || real >= shape->ndim()) fail("input " + std::to_string(input) + " has shape " + shape->str());
    if ((*shape)[real] < 0) throw SizeIsUnknown();
    return static_cast<double>((*shape)[real]);
  }

  double pop() {
    if (stack_.empty()) fail("an operand is missing");
    const double top = stack_.back();
    stack_.pop_back();
    return top;
  }

  void step(std::string_view word) {
    if (word[0] == '#' || word[0] == '@') return stack_.push_back(leaf(word));
    double value = 0;
    if (parse_double(word, &value)) return stack_.push_back(value);
    if (word == "?") {
      const double otherwise = pop(), then = pop();
      return stack_.push_back(pop() != 0 ? then : otherwise);
    }
    const double last = pop();
    if (const std::optional<double> one = of_one(word, last)) return stack_.push_back(*one);
    stack_.push_back(of_two(word, pop(), last));
  }

  static std::optional<double> of_one(std::string_view word, double a) {
    if (word == "floor") return std::floor(a);
    if (word == "ceil") return std::ceil(a);
    if (word == "trunc") return std::trunc(a);
    if (word == "round") return std::nearbyint(a);
    if (word == "neg") return -a;
    if (word == "abs") return std::fabs(a);
    return std::nullopt;
  }

  double of_two(std::string_view word, double a, double b) const {
    if (word == "+") return a + b;
    if (word == "-") return a - b;
    if (word == "*") return a * b;
    if (word == "max") return std::max(a, b);
    if (word == "min") return std::min(a, b);
    if (word == "==") return a == b ? 1 : 0;
    if (word == "<") return a < b ? 1 : 0;
    if (word == "<=") return a <= b ? 1 : 0;
    if ((word == "/" || word == "//" || word == "%") && b == 0) fail("it divides by zero");
    if (word == "/") return a / b;
    if (word == "//") return std::floor(a / b);
    if (word == "%") return a - b * std::floor(a / b);
    fail("'" + std::string(word) + "' is not an operator");
  }

  std::string_view text_;
  const SizeTemplate::ShapeOf& shape_of_;
  const SizeTemplate::ValuesOf& values_of_;
  std::vector<double> stack_;
};

}  // namespace

std::optional<std::vector<std::pair<std::string, std::string>>> SizeTemplate::fill(const ShapeOf& shape_of,
                                                                                   const ValuesOf& values_of) const {
  std::vector<std::pair<std::string, std::string>> texts;
  try {
    for (std::string_view rest = text_; !rest.empty();) {
      const size_t end = std::min(rest.find(';'), rest.size());
      std::string_view item = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      const size_t equals = item.find('=');
      if (equals == std::string_view::npos)
        throw ParamError({.input = "attrs", .expected = "name=value", .given = std::string(item)});
      std::string value;
      for (std::string_view text = item.substr(equals + 1); !text.empty();) {
        const size_t open = std::min(text.find('{'), text.size()), close = text.find('}', open);
        value += text.substr(0, open);
        if (open == text.size()) break;
        if (close == std::string_view::npos)
          throw ParamError({.input = "attrs", .expected = "a } for each {", .given = std::string(item)});
        value += Expression(text.substr(open + 1, close - open - 1), shape_of, values_of).result();
        text.remove_prefix(close + 1);
      }
      texts.emplace_back(item.substr(0, equals), std::move(value));
    }
  } catch (const SizeIsUnknown&) {
    return std::nullopt;
  }
  return texts;
}

}  // namespace hybridnet::ops
