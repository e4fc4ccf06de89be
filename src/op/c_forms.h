// Elementwise operators as C: what machine code of loops (plan/control/native_loop.cc) and of chains
// (ops/fused/native_chain.cc) is written with. Arithmetic is C's; every other function is called as the interpreter
// calls it. So results are the interpreter's to the bit, where the compiler neither fuses nor reorders operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hybridnet/op.h"

namespace hybridnet::c_forms {

// Null: C has no such type, as for halves.
const char* type_of(DType dtype);

// A number as the operator stores it in an array of this type; nothing where C has no name for it.
std::optional<std::string> literal(DType dtype, double value);

// What an operator computes of `operands` values of one dtype: an expression in $a and $b. Nothing: it has to be
// called.
std::optional<std::string> expression(const Op& op, const ParamsPtr& params, size_t operands, DType dtype);

std::string replaced(std::string text, std::string_view what, std::string_view by);

// An operator that C code calls. The same as `Step` in kTypes.
struct Call {
  PointwiseFn function;
  const void* params;
};

// Types that the sources name.
inline constexpr char kTypes[] = R"(typedef signed char i8;
typedef unsigned char u8;
typedef int i32;
typedef long long i64;
typedef struct { void (*function)(const void*, int, const void* const*, void*, i64); const void* params; } Step;
)";

// A statement that makes `count` elements of `out`: `step` is the Step, `operands` are pointers with commas between.
std::string call(const std::string& step, DType dtype, const std::string& operands, const std::string& out,
                 const std::string& count);

}  // namespace hybridnet::c_forms
