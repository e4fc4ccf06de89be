#include "op/attr_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace hybridnet {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.remove_suffix(1);
  return s;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

AttrValue scalar_value(std::string_view item) {
  int64_t i;
  double d;
  bool b;
  if (is_none_text(item)) return {};
  if (item.find_first_of(".eEnN") == std::string_view::npos && parse_int(item, &i)) return i;
  if (parse_double(item, &d)) return d;
  if (item.size() > 1 && parse_bool(item, &b)) return b;
  if (item.size() >= 2 && (item.front() == '\'' || item.front() == '"') && item.back() == item.front())
    item = item.substr(1, item.size() - 2);
  return std::string(item);
}

// Parses a bracketed list starting at *at; moves *at past the closing bracket.
bool parse_brackets(std::string_view text, size_t* at, AttrValue* out, int depth) {
  if (depth > 32) return false;
  const char close = text[*at] == '(' ? ')' : ']';
  AttrValue::List list;
  size_t start = ++*at;
  bool nested = false;
  while (*at < text.size()) {
    const char c = text[*at];
    if (c == '(' || c == '[') {
      AttrValue inner;
      if (!trim(text.substr(start, *at - start)).empty() || !parse_brackets(text, at, &inner, depth + 1)) return false;
      list.push_back(std::move(inner));
      nested = true;
      continue;
    }
    if (c == ',' || c == close) {
      std::string_view item = trim(text.substr(start, *at - start));
      if (nested) {
        nested = false;
      } else if (!item.empty()) {
        list.push_back(scalar_value(item));
      } else if (c == ',') {
        return false;
      }
      ++*at;
      if (c == close) return out->value = std::move(list), true;
      start = *at;
      continue;
    }
    if (c == ')' || c == ']') return false;
    ++*at;
  }
  return false;
}

}  // namespace

bool is_none_text(std::string_view text) { return trim(text) == "None"; }

bool parse_bool(std::string_view text, bool* out) {
  text = trim(text);
  if (text == "1" || equal_ignoring_case(text, "true")) return *out = true, true;
  if (text == "0" || equal_ignoring_case(text, "false")) return *out = false, true;
  return false;
}

bool parse_int(std::string_view text, int64_t* out) {
  text = trim(text);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  if (!text.empty() && (text.back() == 'L' || text.back() == 'l')) text.remove_suffix(1);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error == std::errc() && end == text.data() + text.size() && !text.empty()) return true;
  bool b;
  if (text.size() > 1 && parse_bool(text, &b)) return *out = b, true;
  double d;
  if (!parse_double(text, &d) || d != std::floor(d) || std::fabs(d) > 9007199254740992.0) return false;
  return *out = static_cast<int64_t>(d), true;
}

bool parse_double(std::string_view text, double* out) {
  text = trim(text);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  if (text.empty()) return false;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error == std::errc::result_out_of_range) {
    *out = std::strtod(std::string(text).c_str(), nullptr);
    return true;
  }
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_list(std::string_view text, AttrValue* out) {
  text = trim(text);
  if (text.empty() || (text.front() != '(' && text.front() != '[')) return false;
  size_t at = 0;
  return parse_brackets(text, &at, out, 0) && at == text.size();
}

std::string number_text(double value, bool python_float) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  (void)error;
  std::string text(buffer, end);
  if (python_float && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

double shortest_double(float value) {
  if (!std::isfinite(value)) return value;
  char buffer[40];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  (void)error;
  double result = value;
  std::from_chars(buffer, end, result);
  return result;
}

}  // namespace hybridnet
