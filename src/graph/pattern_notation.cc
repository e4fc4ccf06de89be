#include "graph/pattern_notation.h"

#include <set>

#include "graph/notation_scanner.h"
#include "op/attr_text.h"

namespace hybridnet {
namespace {

struct Param {
  size_t at;
  std::string name, value;
};

// A side of the rule as it is written.
struct Term {
  size_t at = 0;
  std::string name;  // a name of its own, or the name in front of ':'
  std::optional<double> number{};
  std::string op{};  // empty: a name or a number
  std::vector<Term> inputs{};
  std::vector<Param> params{};
};

class Parser {
 public:
  Parser(std::string_view text, bool shared) : in_(text), shared_(shared) {}

  PatternRule run() {
    const Term left = read_term();
    if (!in_.take('-') || !in_.take_here('>')) in_.fail("'->' and the replacement");
    const Term right = read_term();
    if (!in_.at_end()) in_.fail("the end of the rule");
    if (left.op.empty()) in_.fail_at(left.at, "an operator with its inputs", "a name or a number");
    if (right.number) in_.fail_at(right.at, "a value that takes the place of another", "a number");
    PatternRule rule;
    rule.pattern = pattern_of(left);
    rule.replacement = template_of(right);
    return rule;
  }

 private:
  Term read_term() {
    in_.skip();
    Term term{.at = in_.at(), .name = {}};
    const char first = in_.peek_here();
    if (first == '-' || first == '.' || (first >= '0' && first <= '9')) {
      term.number = read_number();
      return term;
    }
    std::string word = in_.word_here("a name, a number or an operator");
    if (in_.take(':')) {
      term.name = std::move(word);
      word = in_.word("the operator behind ':'");
      if (in_.peek() != '(') in_.fail("'(' and the inputs of the operator");
    }
    if (in_.peek() != '(') {
      term.name = std::move(word);
      return term;
    }
    term.op = std::move(word);
    in_.list('(', ')', [&] { read_item(term); });
    return term;
  }

  double read_number() {
    const size_t at = in_.at();
    const std::string text = in_.value();
    double number = 0;
    if (!parse_double(text, &number)) in_.fail_at(at, "a number", "'" + text + "'");
    return number;
  }

  // Reads an input or a parameter of the operator.
  void read_item(Term& of) {
    Term item = read_term();
    if (!item.op.empty() || item.name.empty() || !in_.take('=')) {
      of.inputs.push_back(std::move(item));
      return;
    }
    of.params.push_back({item.at, std::move(item.name), in_.value()});
  }

  // ---- in front of the arrow
  PatternPtr pattern_of(const Term& term) {
    if (term.op.empty()) {
      auto pattern = std::make_shared<Pattern>();
      pattern->kind = term.number ? Pattern::Kind::kNumber : Pattern::Kind::kAny;
      pattern->name = term.name;
      pattern->value = term.number;
      if (!term.number) note_value(term);
      return pattern;
    }
    std::vector<PatternPtr> inputs;
    for (const Term& input : term.inputs) inputs.push_back(pattern_of(input));
    std::shared_ptr<Pattern> pattern;
    in_.guarded(term.at,
                [&] { pattern = std::make_shared<Pattern>(*Pattern::of_operator(term.op, std::move(inputs))); });
    check_inputs(term, pattern->op);
    for (const Param& param : term.params) {
      if (param.name == "over") {
        pattern->over = axis_of(param);
      } else {
        pattern->params.emplace_back(param.name, checked_value(param, pattern->op));
      }
    }
    pattern->name = term.name;
    pattern->shared = shared_;
    if (!term.name.empty()) {
      note_value(term);
      results_.insert(term.name);
    }
    return pattern;
  }

  PatternPtr axis_of(const Param& param) {
    if (values_.count(param.value) != 0) in_.fail_at(param.at, "a name for an axis", "the name of a value");
    auto pattern = std::make_shared<Pattern>();
    pattern->name = param.value;
    axes_.insert(param.value);
    return pattern;
  }

  void note_value(const Term& term) {
    if (axes_.count(term.name) != 0) in_.fail_at(term.at, "a name for a value", "the name of an axis");
    values_.insert(term.name);
  }

  // ---- behind it
  Template template_of(const Term& term) {
    Template made;
    made.number = term.number;
    if (term.op.empty()) {
      if (!term.number) made.name = known(values_, term.at, term.name);
      return made;
    }
    if (!term.name.empty()) in_.fail_at(term.at, "no name for a result of the replacement", term.name + ":");
    for (const Term& input : term.inputs) made.inputs.push_back(template_of(input));
    made.arithmetic = find_arithmetic(term.op);
    if (made.arithmetic == nullptr) in_.guarded(term.at, [&] { made.op = &op_registry().at(term.op); });
    check_inputs(term, made.op);
    for (const Param& param : term.params) {
      if (param.name == "like") {
        made.like = known(results_, param.at, param.value);
      } else if (axes_.count(param.value) != 0) {
        field_of(param, made.op);
        made.numbers.emplace_back(param.name, param.value);
      } else {
        made.given.emplace_back(param.name, checked_value(param, made.op));
      }
    }
    if (made.op != nullptr && made.like.empty() && made.numbers.empty()) set_params(made, term);
    return made;
  }

  void set_params(Template& made, const Term& term) {
    in_.guarded(term.at, [&] { made.params = made.op->schema->parse(made.given, made.op->name); });
    const auto wanted = static_cast<size_t>(made.op->num_inputs(made.params->data()));
    if (made.inputs.size() != wanted)
      in_.fail_at(term.at, std::to_string(wanted) + " inputs of " + term.op, std::to_string(made.inputs.size()));
  }

  // ---- names, operators, parameters
  const std::string& known(const std::set<std::string>& names, size_t at, const std::string& name) const {
    if (names.count(name) == 0) in_.fail_at(at, "a name of the pattern", "'" + name + "'");
    return name;
  }

  // op: null for arithmetic.
  void check_inputs(const Term& term, const Op* op) const {
    const size_t given = term.inputs.size(), most = op == nullptr ? 2 : op->inputs.size();
    if (op == nullptr ? given != most : given > most && !op->variadic)
      in_.fail_at(term.at, std::to_string(most) + " inputs of " + term.op, std::to_string(given));
  }

  int field_of(const Param& param, const Op* op) const {
    const int field = op == nullptr ? -1 : op->schema->find(param.name);
    if (field >= 0) return field;
    const std::string owner = op == nullptr ? "an operator with parameters" : "a parameter of " + op->name;
    in_.fail_at(param.at, owner, "'" + param.name + "'");
  }

  AttrValue checked_value(const Param& param, const Op* op) const {
    const int field = field_of(param, op);
    AttrValue value(param.value);
    in_.guarded(param.at, [&] { op->schema->set(op->schema->create()->data(), field, value, op->name); });
    return value;
  }

  NotationScanner in_;
  const bool shared_;
  std::set<std::string> values_, results_, axes_;  // names of the pattern; results of operators are values, too
};

}  // namespace

PatternRule parse_pattern_rule(std::string_view text, bool shared) { return Parser(text, shared).run(); }

}  // namespace hybridnet
