#include "engine/task_error.h"

#include <algorithm>
#include <new>
#include <utility>

namespace hybridnet {
namespace {

TaskErrorRef stored(std::exception_ptr error) {
  return std::make_shared<TaskError>(TaskError{.error = std::move(error)});
}

[[noreturn]] void throw_error(ErrorKind kind, const ErrorFields& fields) {
  switch (kind) {
    case ErrorKind::kParam:
      throw ParamError(fields);
    case ErrorKind::kShape:
      throw ShapeError(fields);
    case ErrorKind::kDType:
      throw DTypeError(fields);
    case ErrorKind::kType:
      throw TypeError(fields);
    case ErrorKind::kValue:
      throw ValueError(fields);
    case ErrorKind::kIndex:
      throw IndexError(fields);
    case ErrorKind::kFormat:
      throw FormatError(fields);
    case ErrorKind::kFile:
      throw FileError(fields);
    case ErrorKind::kGradient:
      throw GradientError(fields);
    case ErrorKind::kTrace:
      throw TraceError(fields);
    case ErrorKind::kEngine:
      throw EngineError(fields);
    case ErrorKind::kMemory:
      throw OutOfMemoryError(fields);
    case ErrorKind::kUnsupported:
      throw UnsupportedError(fields);
    case ErrorKind::kGroup:
      throw GroupError(fields);
    case ErrorKind::kError:
    case ErrorKind::kDeferredInit:
      break;
  }
  throw Error(kind, fields);
}

TaskErrorRef wrapped(ErrorKind kind, const char* message, const ErrorFields& context) {
  Error error(kind, {.message = message});
  error.add_context(context);
  return stored(std::make_exception_ptr(std::move(error)));
}

}  // namespace

TaskErrorRef capture_task_error(const Engine::Options& options) {
  const ErrorFields context{.op = options.name, .where = options.where};
  try {
    throw;
  } catch (Error& error) {
    error.add_context(context);
    return stored(std::current_exception());
  } catch (const std::bad_alloc&) {
    return wrapped(ErrorKind::kMemory, "out of memory", context);
  } catch (const std::exception& error) {
    return wrapped(ErrorKind::kError, error.what(), context);
  } catch (...) {
    return wrapped(ErrorKind::kError, "an exception that is no std::exception", context);
  }
}

void throw_copy(const TaskError& error) {
  try {
    std::rethrow_exception(error.error);
  } catch (const Error& original) {
    throw_error(original.kind(), original.fields());
  }
}

void ErrorLedger::add(TaskErrorRef error) {
  // The list of errors must stay short in a program that fails often and never calls wait_all(). Errors that were
  // thrown and that no variable holds are dropped; if the list is full, errors that were not thrown are dropped, too.
  constexpr size_t kPruneAbove = 64;
  constexpr size_t kKeepUnheld = 1024;
  if (errors_.size() >= kPruneAbove) {
    const bool full = errors_.size() >= kKeepUnheld;
    std::erase_if(errors_, [full](const TaskErrorRef& e) { return e.use_count() == 1 && (e->thrown || full); });
  }
  errors_.push_back(std::move(error));
}

TaskErrorRef ErrorLedger::clear() {
  TaskErrorRef first;
  for (const TaskErrorRef& error : errors_) {
    if (!first && !error->thrown) first = error;
    error->cleared = true;
  }
  errors_.clear();
  return first;
}

}  // namespace hybridnet
