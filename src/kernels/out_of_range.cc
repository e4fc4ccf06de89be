#include "kernels/out_of_range.h"

#include <mutex>
#include <set>
#include <utility>

#include "base/front_end.h"
#include "base/origin.h"
#include "hybridnet/env.h"
#include "hybridnet/error.h"

namespace hybridnet::kernels {
namespace {

// Whether this operator warns of an index in this line for the first time.
bool is_first(const char* op, const SourceLocation& where) {
  static std::mutex mutex;
  static auto& told = *new std::set<std::pair<std::string, std::string>>;
  const std::lock_guard lock(mutex);
  return told.emplace(op, where.str()).second;
}

std::string bounds_text(int64_t size) {
  return size == 1 ? "0, the only index" : "a whole number from 0 to " + std::to_string(size - 1);
}

}  // namespace

std::string index_text(int64_t index) { return index == INT64_MIN ? "nan" : std::to_string(index); }

void report_out_of_range(const IndexUse& use, const std::string& index, int64_t position, int64_t size,
                         const std::string& outcome) {
  ErrorFields fields = OriginScope::current();
  fields.op = use.op;
  fields.input = use.input;
  fields.expected = bounds_text(size);
  fields.given = index + " at position " + std::to_string(position);
  if (environment().strict) {
    fields.because = "HYBRIDNET_STRICT=1 refuses what is otherwise a warning: " + outcome + ", as in MXNet";
    fields.fix = "correct the index, or choose mode='wrap' or ignore_label=... where the operator or loss has it";
    throw IndexError(std::move(fields));
  }
  if (!is_first(use.op, fields.where)) return;
  const SourceLocation where = fields.where;
  fields.because = "as in MXNet, " + outcome;
  fields.fix =
      "correct the index; HYBRIDNET_STRICT=1 makes this an error. This is said once for each operator and line";
  warn(IndexError(std::move(fields)).what(), where);
}

}  // namespace hybridnet::kernels
