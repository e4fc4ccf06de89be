// What holds for a loop however it runs: compiled, step by step over arrays in C++, or over the arrays of a Python
// program. Each rule and its message stand here once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hybridnet/op.h"

namespace hybridnet {

// Which loop it is, for messages.
struct LoopOrigin {
  std::string name;
  SourceLocation where;
};

// What a user did wrong. Operator, node and line are added by the caller.
struct BrokenRule {
  ErrorKind kind;
  ErrorFields fields;  // message, expected, given, because, fix
};
[[noreturn]] void throw_broken(BrokenRule broken, const std::string& construct, const LoopOrigin& loop);

// A carry keeps dtype and shape, but for the sizes that are free. `which`: "states[1]". may_free: the construct lets
// users free sizes.
std::optional<BrokenRule> carry_rule(const std::string& which, const TensorSpec& before, const TensorSpec& after,
                                     const std::vector<bool>& free, bool may_free);
// The rows of a stacked output are alike.
std::optional<BrokenRule> row_rule(const std::string& which, const TensorSpec& first, const TensorSpec& row);

// The one element of a value, of any dtype.
double read_number(const TensorRef& value);
inline bool is_true(const TensorRef& value) { return read_number(value) != 0; }
// The number of iterations that a run of a _while_loop is allowed, from the element that was given for it. Throws
// ParamError.
int64_t limit_of_run(const LoopOrigin& loop, const TensorRef& given);
// A loop was ended by its limit while its condition still holds: what on_limit="raise" and "warn" say.
BrokenRule limit_rule(int64_t limit);
std::string limit_warning(int64_t limit, const SourceLocation& where);
// Does what on_limit says: warns or throws.
void report_limit(const LoopOrigin& loop, const std::string& on_limit, int64_t limit);

}  // namespace hybridnet
