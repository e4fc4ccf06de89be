#include "c_api/batch_queue.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "base/front_end.h"
#include "hybridnet/imperative.h"
#include "ndarray/device_work.h"
#include "plan/bound_run.h"

namespace hybridnet::c_api {
namespace {

constexpr const char* kRun = "hn_batcher_run";
constexpr const char* kCreate = "hn_batcher_create";

using Clock = std::chrono::steady_clock;
int64_t now_ns() { return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(); }

const OpRef kCast{"Cast"};

NDArray cast(const NDArray& array, DType dtype) {
  if (array.dtype() == dtype) return array;
  const Op& op = kCast.op();
  NDArray result = invoke_one(op, op.schema->parse({{"dtype", dtype_name(dtype)}}, op.name, false), {&array, 1});
  result.wait_to_read();
  return result;
}

Shape with_rows(Shape shape, int64_t rows) {
  shape[0] = rows;
  return shape;
}

int64_t row_bytes(const NDArray& array) { return array.shape()[0] == 0 ? 0 : array.bytes() / array.shape()[0]; }

void copy_rows(const NDArray& from, int64_t from_row, const NDArray& to, int64_t to_row, int64_t rows) {
  const int64_t bytes = row_bytes(from);
  if (bytes * rows > 0)
    std::memcpy(static_cast<char*>(to.data()) + to_row * bytes,
                static_cast<const char*>(from.data()) + from_row * bytes, static_cast<size_t>(rows * bytes));
}

// Returns random numbers in [-1, 1); for integer dtypes 0 and 1, which are valid row indices of tables.
NDArray sample(const TensorSpec& spec, uint32_t& state) {
  NDArray wide = NDArray::empty(spec.shape, DType::kFloat32);
  auto* values = static_cast<float*>(wide.data());
  for (int64_t i = 0; i < wide.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] =
        is_floating(spec.dtype) ? static_cast<float>(state >> 8) * 0x1p-23f - 1.f : static_cast<float>(state >> 31);
  }
  return cast(wide, spec.dtype);
}

// True if the rows are equal up to rounding differences from another order of additions.
bool same_row(const NDArray& row, const NDArray& rows, int64_t index) {
  const NDArray a = cast(row, DType::kFloat64), b = cast(rows, DType::kFloat64);
  const double tolerance = !is_floating(row.dtype()) ? 0 : dtype_size(row.dtype()) < 4 ? 5e-2 : 1e-3;
  const auto* x = static_cast<const double*>(a.data());
  const auto* y = static_cast<const double*>(b.data()) + index * a.size();
  for (int64_t i = 0; i < a.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    if (x[i] != y[i] && !(std::abs(x[i] - y[i]) <= tolerance * (1 + std::abs(x[i])))) return false;
  }
  return true;
}

}  // namespace

BatchQueue::BatchQueue(Ref<GraphCallable> function, std::vector<NDArray> values, Device device,
                       std::vector<Input> inputs, std::vector<std::string> output_names, Options options)
    : function_(std::move(function)),
      values_(std::move(values)),
      device_(device),
      inputs_(std::move(inputs)),
      output_names_(std::move(output_names)),
      queue_(options) {
  if (inputs_.empty())
    throw ValueError({.op = kCreate, .input = "model", .message = "the model has no inputs, so requests have no rows"});
  check_rows_are_apart();
}

void BatchQueue::check_rows_are_apart() {
  constexpr int64_t kRows = 3;
  uint32_t state = 1;
  std::vector<NDArray> together;
  for (const Input& input : inputs_)
    together.push_back(sample({with_rows(input.spec.shape, kRows), input.spec.dtype}, state));
  const auto outputs_of_row = [&](int64_t row) {
    std::vector<NDArray> alone;
    for (const NDArray& array : together) {
      alone.push_back(NDArray::empty(with_rows(array.shape(), 1), array.dtype()));
      copy_rows(array, row, alone.back(), 0, 1);
    }
    return call(alone);
  };
  const std::vector<NDArray> all = call(together), first = outputs_of_row(0), again = outputs_of_row(0);
  for (size_t i = 0; i < all.size(); ++i) {
    const Shape &shape = all[i].shape(), &one = first[i].shape();
    if (shape.ndim() == 0 || one.ndim() == 0 || shape[0] != kRows || one != with_rows(shape, 1))
      throw ShapeError({.op = kCreate,
                        .input = "output '" + output_names_[i] + "'",
                        .expected = std::to_string(kRows) + " rows for inputs of " + std::to_string(kRows) + " rows",
                        .given = "shape " + shape.str(),
                        .because = "the results are split among the requests by rows",
                        .fix = "export a model whose first axis is the batch, in all inputs and outputs"});
    if (!same_row(again[i], first[i], 0)) return;  // the model draws random numbers: rows cannot be compared
  }
  for (int64_t row = 0; row < kRows; ++row) {
    const std::vector<NDArray> alone = row == 0 ? first : outputs_of_row(row);
    for (size_t i = 0; i < all.size(); ++i)
      if (!same_row(alone[i], all[i], row))
        throw ValueError({.op = kCreate,
                          .input = "output '" + output_names_[i] + "'",
                          .expected = "rows that do not depend on each other",
                          .given = "another row " + std::to_string(row) + " than when it is alone in its call",
                          .because = "requests of different callers share a call",
                          .fix = "run this model by hn_model_run"});
  }
}

int64_t BatchQueue::checked_rows(std::span<const NDArray> inputs) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& wanted = inputs_[i];
    const Shape& shape = inputs[i].shape();
    if (inputs[i].is_sparse())
      throw UnsupportedError({.op = kRun, .input = wanted.name, .expected = "a dense array", .given = "a sparse one"});
    if (inputs[i].is_on_gpu())
      throw UnsupportedError(
          {.op = kRun,
           .input = wanted.name,
           .expected = "an array on a CPU",
           .given = "one on " + inputs[i].device().str(),
           .because = "rows of several requests are gathered there, and copied to the model's device",
           .fix = "copy it by hn_array_copy_to_device, or run the model by hn_model_run"});
    if (shape.ndim() != wanted.spec.shape.ndim() || shape[0] < 1 || shape != with_rows(wanted.spec.shape, shape[0])) {
      const std::string sizes = with_rows(wanted.spec.shape, -1).str();
      throw ShapeError({.op = kRun,
                        .input = wanted.name,
                        .expected = "shape " + sizes + " with 1 row or more",
                        .given = shape.str()});
    }
    if (inputs[i].dtype() != wanted.spec.dtype)
      throw DTypeError({.op = kRun,
                        .input = wanted.name,
                        .expected = dtype_name(wanted.spec.dtype),
                        .given = dtype_name(inputs[i].dtype())});
    if (shape[0] != inputs[0].shape()[0])
      throw ShapeError({.op = kRun,
                        .input = wanted.name,
                        .expected = std::to_string(inputs[0].shape()[0]) + " rows as '" + inputs_[0].name + "'",
                        .given = std::to_string(shape[0])});
  }
  return inputs[0].shape()[0];
}

std::vector<NDArray> BatchQueue::run(std::span<const NDArray> inputs) {
  Request request;
  request.rows = checked_rows(inputs);
  for (const NDArray& input : inputs) input.wait_to_read();  // an earlier error in an input fails only this request
  request.inputs = inputs;
  std::unique_lock lock(mutex_);
  if (closed_) throw EngineError({.op = kRun, .message = "the batcher was closed"});
  if (queue_.is_full())
    throw EngineError({.op = kRun,
                       .message = std::to_string(queue_.num_waiting()) + " requests wait already",
                       .fix = "try again later, or raise max_waiting"});
  queue_.push(&request, request.rows, now_ns());
  if (queue_.has_full_call()) wake_next();
  while (!request.done) {
    if (may_lead(request))
      lead(request, lock);
    else
      request.wake.wait(lock);
  }
  if (request.error) std::rethrow_exception(request.error);
  return std::move(request.outputs);
}

void BatchQueue::wake_next() {
  if (Request* const* front = queue_.front()) (*front)->wake.notify_one();
}

// Runs in the thread of the oldest request: waits for others, then runs them together with it.
void BatchQueue::lead(Request& request, std::unique_lock<std::mutex>& lock) {
  for (;;) {
    const std::optional<int64_t> start = queue_.next_start();
    if (!start) return;  // another call has begun
    if (*start <= now_ns()) break;
    request.wake.wait_until(lock, Clock::time_point(std::chrono::nanoseconds(*start)));
  }
  Request* const batch = take();
  wake_next();  // matters if more than one call may run at a time
  lock.unlock();
  run_batch(batch);
  lock.lock();
  queue_.end_call();
  for (Request* member = batch; member;) {
    Request* const next = std::exchange(member->next, nullptr);
    member->done = true;
    if (member != &request) member->wake.notify_one();  // its thread continues only after the lock is released
    member = next;
  }
  wake_next();
  if (queue_.is_idle()) idle_.notify_all();
}

BatchQueue::Request* BatchQueue::take() noexcept {
  Request *first = nullptr, *last = nullptr;
  queue_.take([&](Request* request) {
    (last ? last->next : first) = request;
    last = request;
  });
  return first;
}

void BatchQueue::run_batch(Request* batch) noexcept {
  if (batch->next) {
    try {
      run_together(batch);
      return;
    } catch (const std::exception& error) {  // each request runs alone below, which shows the faulty one
      tell_failure(batch, error.what());
    } catch (...) {
      tell_failure(batch, "an exception that is none of the library");
    }
  }
  each(batch, [&](Request& request) {
    try {
      request.outputs = call(request.inputs);
    } catch (...) {
      request.error = std::current_exception();
    }
  });
}

// Warns once per batcher: a caller that makes calls fail must not fill the log.
void BatchQueue::tell_failure(Request* batch, const std::string& what) {
  if (has_told_.exchange(true)) return;
  size_t count = 0;
  each(batch, [&](const Request&) { ++count; });
  try {
    warn("a call that " + std::to_string(count) +
         " requests shared failed, and each of them runs by itself now, as those of later calls that fail will. This "
         "is said once per batcher. The call said: " +
         what);
  } catch (...) {  // if the front end turns the warning into an error, no request fails by it
  }
}

void BatchQueue::run_together(Request* batch) {
  int64_t rows = 0, begin = 0;
  each(batch, [&](const Request& request) { rows += request.rows; });
  std::vector<NDArray> together;
  for (const Input& input : inputs_)
    together.push_back(NDArray::empty(with_rows(input.spec.shape, rows), input.spec.dtype));
  each(batch, [&](const Request& request) {
    for (size_t i = 0; i < inputs_.size(); ++i) copy_rows(request.inputs[i], 0, together[i], begin, request.rows);
    begin += request.rows;
  });
  const std::vector<NDArray> outputs = call(together);
  begin = 0;
  each(batch, [&](Request& request) {
    request.outputs.clear();
    for (const NDArray& output : outputs) {
      request.outputs.push_back(NDArray::empty(with_rows(output.shape(), request.rows), output.dtype()));
      copy_rows(output, begin, request.outputs.back(), 0, request.rows);
    }
    begin += request.rows;
  });
}

std::vector<NDArray> BatchQueue::call(std::span<const NDArray> inputs) {
  std::vector<NDArray> all = values_;
  const bool on_gpu = device_.type == DeviceType::kGPU;
  for (size_t i = 0; i < inputs_.size(); ++i)
    all[inputs_[i].position] = on_gpu ? copy_on(inputs[i], device_) : inputs[i];
  BoundRun bound(function_, std::move(all), {}, BoundRun::Calls::kOne);
  bound.run();
  std::vector<NDArray> outputs = bound.outputs();
  for (NDArray& output : outputs) output = on_cpu(output);
  return outputs;
}

void BatchQueue::close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  queue_.close();
  wake_next();
  idle_.wait(lock, [&] { return queue_.is_idle(); });
}

}  // namespace hybridnet::c_api
