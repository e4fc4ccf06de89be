#include "kernels/out_of_range.h"

#include <functional>
#include <mutex>
#include <set>
#include <tuple>

#include "base/front_end.h"
#include "base/origin.h"
#include "hybridnet/env.h"
#include "hybridnet/error.h"

namespace hybridnet::kernels {
namespace {

// Where operators have warned. Runs that meet the same index again take no memory to find that out.
class Told {
 public:
  // Whether this operator warns of an index in this line for the first time.
  bool add(const char* op, const SourceLocation& where) {
    const std::lock_guard lock(mutex_);
    return places_.emplace(op, where.file ? where.file : "", where.line).second;
  }
  bool has(const char* op, const SourceLocation& where) {
    const std::lock_guard lock(mutex_);
    return places_.contains(Key{op, where.file ? where.file : "", where.line});
  }

 private:
  using Place = std::tuple<std::string, std::string, int32_t>;
  using Key = std::tuple<std::string_view, std::string_view, int32_t>;
  std::mutex mutex_;
  std::set<Place, std::less<>> places_;
};

Told& told() {
  static auto& all = *new Told;
  return all;
}

std::string bounds_text(int64_t size) {
  return size == 1 ? "0, the only index" : "a whole number from 0 to " + std::to_string(size - 1);
}

}  // namespace

std::string index_text(int64_t index) { return index == INT64_MIN ? "nan" : std::to_string(index); }

bool may_report_out_of_range(const IndexUse& use) {
  return environment().strict || !told().has(use.op, OriginScope::current_line());
}

void report_out_of_range(const IndexUse& use, std::string_view index, int64_t position, int64_t size,
                         std::string_view outcome) {
  if (!may_report_out_of_range(use)) return;
  ErrorFields fields = OriginScope::current();
  fields.op = use.op;
  fields.input = use.input;
  fields.expected = bounds_text(size);
  fields.given = std::string(index) + " at position " + std::to_string(position);
  if (environment().strict) {
    fields.because =
        "HYBRIDNET_STRICT=1 refuses what is otherwise a warning: " + std::string(outcome) + ", as in MXNet";
    fields.fix = "correct the index, or choose mode='wrap' or ignore_label=... where the operator or loss has it";
    throw IndexError(std::move(fields));
  }
  if (!told().add(use.op, fields.where)) return;
  const SourceLocation where = fields.where;
  fields.because = "as in MXNet, " + std::string(outcome);
  fields.fix =
      "correct the index; HYBRIDNET_STRICT=1 makes this an error. This is said once for each operator and line";
  warn(IndexError(std::move(fields)).what(), where);
}

}  // namespace hybridnet::kernels
