#include "kernels/index/out_of_range.h"

#include <algorithm>
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

// The places where operators have already warned. Looking one up allocates no memory.
class Told {
 public:
  // True if this operator did not warn before of an index in this line, or in this node if there is no line.
  bool add(const char* op, const SourceLocation& where, std::string_view node) {
    const std::lock_guard lock(mutex_);
    return places_.emplace(op, place(where, node), where.line).second;
  }
  bool has(const char* op, const SourceLocation& where, std::string_view node) {
    const std::lock_guard lock(mutex_);
    return places_.contains(Key{op, place(where, node), where.line});
  }

 private:
  static std::string_view place(const SourceLocation& where, std::string_view node) {
    return where.known() ? std::string_view(where.file) : node;
  }
  using Place = std::tuple<std::string, std::string, int32_t>;
  using Key = std::tuple<std::string_view, std::string_view, int32_t>;
  std::mutex mutex_;
  std::set<Place, std::less<>> places_;
};

Told& told() {
  static auto& all = *new Told;
  return all;
}

std::string bounds_text(const Bounds& b) {
  if (b.low > b.high) return std::string("no ") + b.noun + ", for there is nothing";
  if (b.low == b.high) return std::to_string(b.low) + ", the only " + b.noun;
  if (b.high == INT64_MAX) return "an integer from " + std::to_string(b.low);
  return "an integer from " + std::to_string(b.low) + " to " + std::to_string(b.high);
}

bool are_lengths(const Bounds& b) { return std::string_view(b.noun) == "length"; }

std::string fix_text(const Bounds& b) {
  const std::string correct = std::string("correct the ") + b.noun;
  if (are_lengths(b)) return correct;
  return correct + ", or choose mode='wrap' or ignore_label=... where the operator or loss has it";
}

// A loop without branches, so that it is vectorized.
bool any_outside(const int64_t* numbers, int64_t count, const Bounds& b) {
  if (b.low > b.high) return count > 0;
  const uint64_t low = static_cast<uint64_t>(b.low), span = static_cast<uint64_t>(b.high) - low;
  uint64_t outside = 0;
  for (int64_t i = 0; i < count; ++i) outside |= static_cast<uint64_t>(static_cast<uint64_t>(numbers[i]) - low > span);
  return outside != 0;
}

// The largest number up to which the dtype holds all integers from 0.
int64_t last_exact_integer(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return int64_t{1} << 11;
    case DType::kBFloat16:
      return int64_t{1} << 8;
    case DType::kFloat32:
      return int64_t{1} << 24;
    case DType::kFloat64:
      return int64_t{1} << 53;
    case DType::kInt8:
      return INT8_MAX;
    case DType::kUInt8:
      return UINT8_MAX;
    case DType::kBool:
      return 1;
    case DType::kInt32:
      return INT32_MAX;
    default:
      return INT64_MAX;
  }
}

}  // namespace

void report_inexact_positions(const char* op, DType dtype, int64_t largest, const char* fix, int64_t unit) {
  const int64_t last = last_exact_integer(dtype);
  if (largest / unit <= last || !may_report_out_of_range({op, ""})) return;
  ErrorFields fields = OriginScope::current();
  fields.op = op;
  fields.message = std::string("positions up to ") + std::to_string(largest) + " do not fit in " + dtype_name(dtype);
  fields.because = std::string("as in MXNet, those above ") + std::to_string(last * unit) +
                   (is_floating(dtype) ? " are rounded to the nearest value of that dtype" : " wrap around");
  fields.fix = fix;
  if (environment().strict) throw DTypeError(std::move(fields));
  if (!told().add(op, fields.where, fields.node)) return;
  const SourceLocation where = fields.where;
  fields.fix += "; HYBRIDNET_STRICT=1 makes this an error. This is said once for each operator and line";
  warn(DTypeError(std::move(fields)).what(), where);
}

std::string index_text(int64_t index) { return index == INT64_MIN ? "nan" : std::to_string(index); }

bool may_report_out_of_range(const IndexUse& use) {
  if (environment().strict) return true;
  const OriginScope::Place place = OriginScope::current_graph_position();
  return !told().has(use.op, place.where, place.node);
}

void report_out_of_range(const IndexUse& use, std::string_view given, int64_t position, const Bounds& bounds,
                         std::string_view outcome) {
  if (!may_report_out_of_range(use)) return;
  ErrorFields fields = OriginScope::current();
  fields.op = use.op;
  fields.input = use.input;
  fields.expected = bounds_text(bounds);
  fields.given = std::string(given) + " at position " + std::to_string(position);
  // MXNet accesses other memory if a length is beyond the array.
  const std::string result = (are_lengths(bounds) ? "" : "as in MXNet, ") + std::string(outcome);
  if (environment().strict) {
    fields.because = "HYBRIDNET_STRICT=1 makes this warning an error: " + result;
    fields.fix = fix_text(bounds);
    throw IndexError(std::move(fields));
  }
  if (!told().add(use.op, fields.where, fields.node)) return;
  const SourceLocation where = fields.where;
  fields.because = result;
  fields.fix = std::string("correct the ") + bounds.noun +
               "; HYBRIDNET_STRICT=1 makes this an error. This is said once for each operator and line";
  warn(IndexError(std::move(fields)).what(), where);
}

void report_numbers(const IndexUse& use, const int64_t* numbers, int64_t count, const Bounds& bounds,
                    const char* outcome, int64_t first_position) {
  if (!any_outside(numbers, count, bounds) || !may_report_out_of_range(use)) return;
  const int64_t* first =
      std::find_if(numbers, numbers + count, [&](int64_t n) { return n < bounds.low || n > bounds.high; });
  const std::string nearest =
      outcome ? outcome : std::to_string(std::max(bounds.low, std::min(bounds.high, *first))) + " is used for it";
  report_out_of_range(use, index_text(*first), first_position + (first - numbers), bounds, nearest);
}

}  // namespace hybridnet::kernels
