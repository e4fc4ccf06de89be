// Rules that hold for a loop in every way of running it: compiled, step by step over arrays in C++, or over the arrays
// of a Python program. Each rule and its message are written here once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hybridnet/op.h"

namespace hybridnet {

// Identifies a loop in messages.
struct LoopOrigin {
  std::string name;
  SourceLocation where;
};

// An error of the user. The caller adds operator, node and line.
struct BrokenRule {
  ErrorKind kind;
  ErrorFields fields;  // message, expected, given, because, fix
};
[[noreturn]] void throw_broken(BrokenRule broken, const std::string& construct, const LoopOrigin& loop);

// Checks that a carry keeps dtype and shape, except for free sizes. `which`: "states[1]". may_free: users of the
// construct can declare sizes free.
std::optional<BrokenRule> carry_rule(const std::string& which, const TensorSpec& before, const TensorSpec& after,
                                     const std::vector<bool>& free, bool may_free);
// Checks that a row of a stacked output has the spec of the first row.
std::optional<BrokenRule> row_rule(const std::string& which, const TensorSpec& first, const TensorSpec& row);

// Returns the only element of a value of any dtype.
double read_number(const TensorRef& given);  // waits for a device that holds the value
inline bool is_true(const TensorRef& value) { return read_number(value) != 0; }
// Returns the largest number of iterations of a _while_loop run, read from the element `given`. Throws ParamError.
int64_t limit_of_run(const LoopOrigin& loop, const TensorRef& given);
// The error (on_limit="raise") and the warning ("warn") for a loop that its limit ended while its condition was true.
BrokenRule limit_rule(int64_t limit);
std::string limit_warning(int64_t limit, const SourceLocation& where);
// Warns or throws, depending on on_limit.
void report_limit(const LoopOrigin& loop, const std::string& on_limit, int64_t limit);

}  // namespace hybridnet
