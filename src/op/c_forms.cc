#include "op/c_forms.h"

#include <cmath>
#include <cstdio>

namespace hybridnet::c_forms {
namespace {

bool has_arithmetic(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt32 || dtype == DType::kInt64;
}

// The form of an operator with a number: the literal replaces one operand, and $a is the other one.
std::string with_number(std::string text, bool number_first, const std::string& number) {
  if (!number_first) return replaced(std::move(text), "$b", number);
  return replaced(replaced(replaced(std::move(text), "$a", "$c"), "$b", "$a"), "$c", number);
}

// The parameter `scalar` as a literal; nullopt: the form does not compute with this number.
std::optional<std::string> number_of(const Op& op, const ParamsPtr& params, int field, DType dtype) {
  const AttrValue value = op.schema->get(params->data(), field);
  const auto* number = std::get_if<double>(&value.value);
  if (number == nullptr) return std::nullopt;
  // A comparison of integers with a fraction compares fractions.
  if (!is_floating(dtype) && *number != std::trunc(*number)) return std::nullopt;
  return literal(dtype, *number);
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

std::optional<std::string> expression(const Op& op, const ParamsPtr& params, DType dtype) {
  const CForm& form = op.c_form;
  if (form.text == nullptr || !has_arithmetic(dtype) || (form.floats_only && !is_floating(dtype))) return std::nullopt;
  std::string text = form.text;
  if (const int field = op.schema->find("scalar"); field >= 0) {
    const std::optional<std::string> number = number_of(op, params, field, dtype);
    if (!number) return std::nullopt;
    text = with_number(std::move(text), form.number_first, *number);
  }
  return replaced(std::move(text), "$t", type_of(dtype));
}

std::string call(const std::string& step, DType dtype, const std::string& operands, const std::string& out,
                 const std::string& count) {
  return "{ const void* operands[] = {" + operands + "}; " + step + ".function(" + step + ".params, " +
         std::to_string(static_cast<int>(dtype)) + ", operands, " + out + ", " + count + "); }";
}

}  // namespace hybridnet::c_forms
