// Results of the CUDA driver's functions as errors.
// Threads: any.
// Throws:  DeviceError (EngineError) with the failed function, the driver's name of the error and its number.
#pragma once

#include <string>
#include <string_view>

#include "cuda/symbol.h"

namespace hybridnet::cuda {

inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kDeinitialized = 4;  // the driver has shut down: the process ends
inline constexpr Result kNoDevice = 100;
inline constexpr Result kInvalidContext = 201;
inline constexpr Result kNotFound = 500;
inline constexpr Result kNotReady = 600;

// Throws what throw_failure() throws unless the function succeeded.
[[noreturn]] void throw_failure(Result result, std::string_view function, const std::string& detail = {});
inline void check(Result result, const char* function) {
  if (result != kSuccess) [[unlikely]]
    throw_failure(result, function);
}

// Calls a function of the driver and checks its result: call(driver.event_record, event, stream).
template <class... Parameters, class... Arguments>
void call(const Function<Result(Parameters...)>& function, Arguments... arguments) {
  check(function(arguments...), function.name);
}

// For a failure of the driver that is no error of the caller: it asks the driver for the name of the result, as all
// errors do. The tests' driver reports a failed call when the thread makes another one without having asked.
void note_handled(Result result) noexcept;

// Whether a function succeeded, where a failure is no error.
inline bool succeeded(Result result) noexcept {
  note_handled(result);
  return result == kSuccess;
}

// "CUDA_ERROR_ILLEGAL_ADDRESS (700)"; for a number without a known name "error (12345)".
std::string error_text(Result result);
// "cuInit failed: CUDA_ERROR_UNKNOWN (999)", and the reason and the fix where they are known, in one line.
std::string failure_text(Result result, const char* function);
// True for an error after which every later call of the process fails, too: the device's context is damaged.
bool is_sticky(Result result);

// The driver's own names; called when a driver has been loaded.
using ErrorNameFunction = Result (*)(Result result, const char** name);
void set_error_names(ErrorNameFunction name_of);

}  // namespace hybridnet::cuda
