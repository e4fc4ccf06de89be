#include "graph/control/rules.h"

#include <algorithm>
#include <cmath>

#include "base/front_end.h"
#include "device/stream.h"

namespace hybridnet {
namespace {

bool same_shape(const Shape& before, const Shape& after, const std::vector<bool>& free) {
  if (before.ndim() != after.ndim()) return false;
  for (int i = 0; i < before.ndim(); ++i) {
    const auto axis = static_cast<size_t>(i);
    if (before[i] != after[i] && !(axis < free.size() && free[axis])) return false;
  }
  return true;
}

}  // namespace

void throw_broken(BrokenRule broken, const std::string& construct, const LoopOrigin& loop) {
  broken.fields.op = construct;
  broken.fields.node = loop.name;
  broken.fields.where = loop.where;
  throw Error(broken.kind, std::move(broken.fields));
}

std::optional<BrokenRule> carry_rule(const std::string& which, const TensorSpec& before, const TensorSpec& after,
                                     const std::vector<bool>& free, bool may_free) {
  const bool same_dtype = before.dtype == after.dtype || before.dtype == DType::kUnknown;
  if (same_dtype && same_shape(before.shape, after.shape, free)) return std::nullopt;
  ErrorFields e;
  e.message = which + " changes its " + (same_dtype ? "shape" : "dtype") + " in the loop";
  e.expected = before.str();
  e.given = after.str();
  e.because = "the next iteration starts from the value that an iteration returns, so its " +
              std::string(same_dtype ? "shape" : "type") + " may not change";
  if (!same_dtype)
    e.fix = "return " + which + ".astype('" + dtype_name(before.dtype) + "'), or start from " + dtype_name(after.dtype);
  else
    e.fix = std::string("reshape the value that the function returns") +
            (may_free ? ", or allow it with shape_invariants" : "");
  return BrokenRule{same_dtype ? ErrorKind::kShape : ErrorKind::kDType, std::move(e)};
}

std::optional<BrokenRule> row_rule(const std::string& which, const TensorSpec& first, const TensorSpec& row) {
  if (row == first) return std::nullopt;
  ErrorFields e;
  e.message = which + " differs between iterations";
  e.expected = first.str();
  e.given = row.str();
  e.because = "the outputs of all iterations are stacked";
  e.fix = "give every iteration outputs of the same shape and dtype: reduce, pad or cut them in the body";
  return BrokenRule{row.dtype == first.dtype ? ErrorKind::kShape : ErrorKind::kDType, std::move(e)};
}

double read_number(const TensorRef& given) {
  uint64_t bytes = 0;
  TensorRef value = given;
  if (device::Stream* const stream = device::current()) {
    stream->copy_out(&bytes, given.data, dtype_size(given.dtype));
    value.data = &bytes;
  }
  switch (value.dtype) {
    case DType::kFloat32:
      return *value.as<float>();
    case DType::kFloat64:
      return *value.as<double>();
    case DType::kFloat16:
      return static_cast<float>(*value.as<float16>());
    case DType::kBFloat16:
      return static_cast<float>(*value.as<bfloat16>());
    case DType::kInt32:
      return *value.as<int32_t>();
    case DType::kInt64:
      return static_cast<double>(*value.as<int64_t>());
    case DType::kInt8:
      return *value.as<int8_t>();
    default:
      return *value.as<uint8_t>();
  }
}

int64_t limit_of_run(const LoopOrigin& loop, const TensorRef& given) {
  const double limit = read_number(given);
  if (limit >= 0 && std::floor(limit) == limit) return static_cast<int64_t>(std::min(limit, 9e18));
  throw ParamError({.op = "while_loop",
                    .node = loop.name,
                    .input = "max_iterations",
                    .expected = "an integer of at least 0",
                    .given = std::to_string(limit),
                    .where = loop.where});
}

BrokenRule limit_rule(int64_t limit) {
  return {ErrorKind::kValue,
          {.message = "the condition still holds after max_iterations=" + std::to_string(limit) + " iterations",
           .because = "on_limit='raise' makes this an error",
           .fix = "raise max_iterations"}};
}

std::string limit_warning(int64_t limit, const SourceLocation& where) {
  return "while_loop: " + limit_rule(limit).fields.message + (where.known() ? " (" + where.str() + ")" : "");
}

void report_limit(const LoopOrigin& loop, const std::string& on_limit, int64_t limit) {
  if (on_limit == "raise") throw_broken(limit_rule(limit), "while_loop", loop);
  warn(limit_warning(limit, loop.where));
}

}  // namespace hybridnet
