// Elementwise operators as C source, for the machine code of loops (plan/control/native_loop.cc) and of chains
// (ops/fused/native_chain.cc). Arithmetic becomes C arithmetic; every other function is called like in the interpreter.
// So results equal the interpreter's to the bit, if the compiler neither fuses nor reorders operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hybridnet/op.h"

namespace hybridnet::c_forms {

// The C type of a dtype; null if C has none, as for halves.
const char* type_of(DType dtype);

// The literal for a number as the operator stores it in an array of this type; nullopt if C has no literal for it.
std::optional<std::string> literal(DType dtype, double value);

// The expression in $a and $b that an operator computes from values of one dtype; nullopt: it has to be called.
std::optional<std::string> expression(const Op& op, const ParamsPtr& params, DType dtype);

std::string replaced(std::string text, std::string_view what, std::string_view by);

// An operator that C code calls. The same as `Step` in kTypes.
struct Call {
  PointwiseFn function;
  const void* params;
};

// Declarations of the types that the sources use.
inline constexpr char kTypes[] = R"(typedef signed char i8;
typedef unsigned char u8;
typedef int i32;
typedef long long i64;
typedef struct { void (*function)(const void*, int, const void* const*, void*, i64); const void* params; } Step;
)";

// A statement that computes `count` elements of `out`: `step` is the Step, `operands` are pointers separated by commas.
std::string call(const std::string& step, DType dtype, const std::string& operands, const std::string& out,
                 const std::string& count);

}  // namespace hybridnet::c_forms
