#include "graph/notation_values.h"

#include <charconv>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "op/attr_text.h"

namespace hybridnet::notation {
namespace {

constexpr int64_t kMaxListed = 64;  // longer arrays are written as bytes

template <typename T>
bool append_number(std::string& text, const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  std::string written;
  if constexpr (std::is_same_v<T, float>) {
    written = number_text(shortest_double(value));
  } else if constexpr (std::is_same_v<T, double>) {
    written = number_text(value);
  } else {
    written = std::to_string(value);
  }
  if constexpr (std::is_floating_point_v<T>) {
    double read = 0;
    if (!parse_double(written, &read)) return false;
    const T again = static_cast<T>(read);
    if (std::memcmp(&again, &value, sizeof(T)) != 0) return false;  // NaN and -0.0: the text would lose bits
  }
  text += written;
  return true;
}

bool append_number(std::string& text, DType dtype, const char* at) {
  switch (dtype) {
    case DType::kFloat32:
      return append_number<float>(text, at);
    case DType::kFloat64:
      return append_number<double>(text, at);
    case DType::kUInt8:
    case DType::kBool:
      return append_number<uint8_t>(text, at);
    case DType::kInt8:
      return append_number<int8_t>(text, at);
    case DType::kInt32:
      return append_number<int32_t>(text, at);
    case DType::kInt64:
      return append_number<int64_t>(text, at);
    default:
      return false;
  }
}

template <typename T>
void append_bytes(std::string& bytes, double value, int64_t whole) {
  const T converted = std::is_floating_point_v<T> ? static_cast<T>(value) : static_cast<T>(whole);
  bytes.append(reinterpret_cast<const char*>(&converted), sizeof(T));
}

}  // namespace

std::string text_of_values(DType dtype, const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const int64_t size = dtype_size(dtype);
  if (static_cast<int64_t>(bytes.size()) <= kMaxListed * size) {
    std::string list = "[";
    bool exact = true;
    for (size_t i = 0; exact && i < bytes.size(); i += static_cast<size_t>(size)) {
      if (i > 0) list += ", ";
      exact = append_number(list, dtype, bytes.data() + i);
    }
    if (exact) return list + "]";
  }
  std::string digits;
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    digits += {kDigits[code / 16], kDigits[code % 16]};
  }
  return "\"" + digits + "\"";
}

bool append_value(std::string& bytes, DType dtype, const std::string& text) {
  double value = 0;
  int64_t whole = 0;
  const bool is_real = dtype == DType::kFloat32 || dtype == DType::kFloat64;
  const char* const end = text.data() + text.size();
  if (is_real ? !parse_double(text, &value) : std::from_chars(text.data(), end, whole).ptr != end || text.empty())
    return false;
  auto fits = [&](int64_t low, int64_t high) { return low <= whole && whole <= high; };
  switch (dtype) {
    case DType::kFloat32:
      append_bytes<float>(bytes, value, 0);
      return true;
    case DType::kFloat64:
      append_bytes<double>(bytes, value, 0);
      return true;
    case DType::kUInt8:
      append_bytes<uint8_t>(bytes, 0, whole);
      return fits(0, 255);
    case DType::kBool:
      append_bytes<uint8_t>(bytes, 0, whole);
      return fits(0, 1);
    case DType::kInt8:
      append_bytes<int8_t>(bytes, 0, whole);
      return fits(-128, 127);
    case DType::kInt32:
      append_bytes<int32_t>(bytes, 0, whole);
      return fits(INT32_MIN, INT32_MAX);
    case DType::kInt64:
      append_bytes<int64_t>(bytes, 0, whole);
      return true;
    default:
      return false;  // values of other dtypes are written as bytes
  }
}

bool append_digits(std::string& bytes, std::string_view digits) {
  if (digits.size() % 2 != 0) return false;
  for (size_t i = 0; i < digits.size(); i += 2) {
    unsigned value = 0;
    const char* const first = digits.data() + i;
    if (std::from_chars(first, first + 2, value, 16).ptr != first + 2) return false;
    bytes += static_cast<char>(value);
  }
  return true;
}

}  // namespace hybridnet::notation
