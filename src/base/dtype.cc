#include <array>
#include <string>

#include "hybridnet/base.h"
#include "hybridnet/error.h"

namespace hybridnet {
namespace {

struct DTypeRow {
  const char* name = nullptr;  // null: no dtype has this code
  int64_t size = 0;
};

constexpr std::array<DTypeRow, kDTypeCodes> kRows = [] {
  std::array<DTypeRow, kDTypeCodes> rows{};
  auto row = [&rows](DType dtype) -> DTypeRow& { return rows[static_cast<int>(dtype)]; };
  row(DType::kFloat32) = {"float32", 4};
  row(DType::kFloat64) = {"float64", 8};
  row(DType::kFloat16) = {"float16", 2};
  row(DType::kUInt8) = {"uint8", 1};
  row(DType::kInt32) = {"int32", 4};
  row(DType::kInt8) = {"int8", 1};
  row(DType::kInt64) = {"int64", 8};
  row(DType::kBool) = {"bool", 1};
  row(DType::kBFloat16) = {"bfloat16", 2};
  return rows;
}();

}  // namespace

bool dtype_valid_code(int code) { return code >= 0 && code < kDTypeCodes && kRows[code].name != nullptr; }

int64_t dtype_size(DType dtype) {
  const int code = static_cast<int>(dtype);
  return dtype_valid_code(code) ? kRows[code].size : 0;
}

const char* dtype_name(DType dtype) {
  const int code = static_cast<int>(dtype);
  return dtype_valid_code(code) ? kRows[code].name : "unknown";
}

DType dtype_from_name(std::string_view name) {
  for (int code = 0; code < kDTypeCodes; ++code) {
    if (kRows[code].name != nullptr && name == kRows[code].name) return static_cast<DType>(code);
  }
  throw DTypeError({.expected = "one of " + kAllDTypes.str(), .given = "'" + std::string(name) + "'"});
}

std::string DTypeSet::str() const {
  std::string text;
  for (int code = 0; code < kDTypeCodes; ++code) {
    if ((bits >> code & 1u) == 0 || kRows[code].name == nullptr) continue;
    if (!text.empty()) text += ", ";
    text += kRows[code].name;
  }
  return text;
}

}  // namespace hybridnet
