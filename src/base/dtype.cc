#include <array>
#include <string>

#include "hybridnet/base.h"
#include "hybridnet/error.h"

namespace hybridnet {
namespace {

// Names by code; null: no dtype has this code.
constexpr std::array<const char*, kDTypeCodes> kNames = {"float32", "float64", "float16", "uint8", "int32",
                                                         "int8",    "int64",   "bool",    nullptr, nullptr,
                                                         nullptr,   nullptr,   "bfloat16"};

}  // namespace

bool dtype_valid_code(int code) { return code >= 0 && code < kDTypeCodes && kNames[code] != nullptr; }

const char* dtype_name(DType dtype) {
  const int code = static_cast<int>(dtype);
  return dtype_valid_code(code) ? kNames[code] : "unknown";
}

DType dtype_from_name(std::string_view name) {
  for (int code = 0; code < kDTypeCodes; ++code) {
    if (kNames[code] != nullptr && name == kNames[code]) return static_cast<DType>(code);
  }
  throw DTypeError({.expected = "one of " + kAllDTypes.str(), .given = "'" + std::string(name) + "'"});
}

std::string DTypeSet::str() const {
  std::string text;
  for (int code = 0; code < kDTypeCodes; ++code) {
    if ((bits >> code & 1u) == 0 || kNames[code] == nullptr) continue;
    if (!text.empty()) text += ", ";
    text += kNames[code];
  }
  return text;
}

}  // namespace hybridnet
