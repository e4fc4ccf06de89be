#include "op/c_forms.h"

#include <cmath>
#include <cstdio>
#include <map>

namespace hybridnet::c_forms {
namespace {

bool has_arithmetic(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt32 || dtype == DType::kInt64;
}

// Operators with a form in C. $a, $b: operands; $t: their type. For operators with a number, the parameter replaces $b,
// or $a if it comes first.
struct Form {
  const char* text;
  bool floats_only = false;
};
const std::map<std::string_view, Form>& forms_of_two() {
  static const std::map<std::string_view, Form> forms{
      {"add", {"$a + $b"}},
      {"sub", {"$a - $b"}},
      {"mul", {"$a * $b"}},
      {"div", {"$a / $b", true}},
      {"maximum", {"$a > $b || $a != $a ? $a : $b"}},
      {"minimum", {"$a < $b || $a != $a ? $a : $b"}},
      {"equal", {"$a == $b ? ($t)1 : ($t)0"}},
      {"not_equal", {"$a != $b ? ($t)1 : ($t)0"}},
      {"greater", {"$a > $b ? ($t)1 : ($t)0"}},
      {"greater_equal", {"$a >= $b ? ($t)1 : ($t)0"}},
      {"lesser", {"$a < $b ? ($t)1 : ($t)0"}},
      {"lesser_equal", {"$a <= $b ? ($t)1 : ($t)0"}},
      {"logical_and", {"$a != 0 & $b != 0 ? ($t)1 : ($t)0"}},
      {"logical_or", {"$a != 0 | $b != 0 ? ($t)1 : ($t)0"}},
  };
  return forms;
}
const std::map<std::string_view, Form>& forms_of_one() {
  static const std::map<std::string_view, Form> forms{
      {"negative", {"-$a"}},   {"abs", {"$a < 0 ? -$a : $a + 0", true}},     {"relu", {"$a <= 0 ? ($t)0 : $a"}},
      {"square", {"$a * $a"}}, {"logical_not", {"$a != 0 ? ($t)0 : ($t)1"}}, {"_copy", {"$a"}},
  };
  return forms;
}

// The function of two operands that an operator computes: "elemwise_add", "broadcast_add" and "_grad_add" are "add".
std::string_view function_of_two(std::string_view name) {
  if (name == "_grad_add") return "add";
  for (const std::string_view prefix : {"elemwise_", "broadcast_", "_"}) {
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(prefix.size());
    break;
  }
  return name;
}

struct NumberForm {
  std::string_view function;
  bool number_first = false;
};
std::optional<NumberForm> function_of_number(std::string_view name) {
  if (!name.starts_with("_") || !name.ends_with("_scalar")) return std::nullopt;
  name = name.substr(1, name.size() - 8);
  if (name == "plus") return NumberForm{"add"};
  if (name == "minus") return NumberForm{"sub"};
  if (name == "rminus") return NumberForm{"sub", true};
  if (name == "rdiv") return NumberForm{"div", true};
  return NumberForm{name};
}

}  // namespace

const char* type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float";
    case DType::kFloat64:
      return "double";
    case DType::kInt32:
      return "i32";
    case DType::kInt64:
      return "i64";
    case DType::kBool:
    case DType::kUInt8:
      return "u8";
    case DType::kInt8:
      return "i8";
    default:
      return nullptr;  // halves: C has no such type
  }
}

std::optional<std::string> literal(DType dtype, double value) {
  if (is_floating(dtype)) {
    const double stored = dtype == DType::kFloat32 ? static_cast<float>(value) : value;
    if (!std::isfinite(stored)) return std::nullopt;
    char text[48];
    std::snprintf(text, sizeof text, "%a%s", stored, dtype == DType::kFloat32 ? "f" : "");
    return "(" + std::string(text) + ")";
  }
  constexpr double kExact = 1e9;  // both integer types hold it
  if (!(std::abs(value) <= kExact)) return std::nullopt;
  return "((" + std::string(type_of(dtype)) + ")" + std::to_string(static_cast<int64_t>(value)) + ")";
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

std::optional<std::string> expression(const Op& op, const ParamsPtr& params, size_t operands, DType dtype) {
  if (!has_arithmetic(dtype)) return std::nullopt;
  const auto usable = [&](const auto& forms, std::string_view name) -> const Form* {
    const auto found = forms.find(name);
    return found == forms.end() || (found->second.floats_only && !is_floating(dtype)) ? nullptr : &found->second;
  };
  const Form* form = nullptr;
  std::string text;
  if (operands == 2) {
    form = usable(forms_of_two(), function_of_two(op.name));
    if (form) text = form->text;
  } else if (const auto number = function_of_number(op.name)) {
    const int field = op.schema->find("scalar");
    form = field < 0 ? nullptr : usable(forms_of_two(), number->function);
    if (!form) return std::nullopt;
    const AttrValue value = op.schema->get(params->data(), field);
    if (!std::holds_alternative<double>(value.value)) return std::nullopt;
    const double given = std::get<double>(value.value);
    // A comparison of integers with a fraction compares fractions.
    if (!is_floating(dtype) && given != std::trunc(given)) return std::nullopt;
    const std::optional<std::string> written = literal(dtype, given);
    if (!written) return std::nullopt;
    text = form->text;
    if (number->number_first) text = replaced(replaced(replaced(text, "$b", "$c"), "$a", *written), "$c", "$a");
    text = replaced(text, "$b", *written);
  } else {
    form = usable(forms_of_one(), op.name);
    if (form) text = form->text;
  }
  if (!form) return std::nullopt;
  return replaced(text, "$t", type_of(dtype));
}

std::string call(const std::string& step, DType dtype, const std::string& operands, const std::string& out,
                 const std::string& count) {
  return "{ const void* operands[] = {" + operands + "}; " + step + ".function(" + step + ".params, " +
         std::to_string(static_cast<int>(dtype)) + ", operands, " + out + ", " + count + "); }";
}

}  // namespace hybridnet::c_forms
