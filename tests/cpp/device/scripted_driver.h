// A table of driver functions over the host's memory, for tests of src/cuda: calls are counted by name, and any of them
// can be made to fail. Work is done at once; the stand-in driver (tests/cuda) is the one that delays and reorders it.
#pragma once

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda/driver.h"
#include "cuda/errors.h"

namespace hybridnet::cuda {

struct Script {
  std::map<std::string, int> calls;
  std::map<std::string, Result> failures;  // results of functions that fail from now on
  int version = 12040;
  int devices = 1;
  int current = -1;  // device of the current context
  std::string kernel_argument;
  std::vector<std::string> released;  // names of functions that release something, in order

  static Script& get() {
    static Script script;
    return script;
  }
  Result call(const char* name) {
    ++calls[name];
    const auto failure = failures.find(name);
    return failure == failures.end() ? kSuccess : failure->second;
  }
  int count(const std::string& name) const {
    const auto found = calls.find(name);
    return found == calls.end() ? 0 : found->second;
  }
  int total() const {
    int sum = 0;
    for (const auto& [name, times] : calls) sum += times;
    return sum;
  }
};

template <class Handle>
Handle make_handle(uintptr_t number) {
  return reinterpret_cast<Handle>(number);
}

template <class... Parameters>
void set(Function<Result(Parameters...)>& function, Result (*with)(Parameters...)) {
  function.address = reinterpret_cast<void*>(with);
}

inline void script_devices(Driver& driver) {
  set(
      driver.init, +[](unsigned) { return Script::get().call("cuInit"); });
  set(
      driver.driver_version, +[](int* version) {
        *version = Script::get().version;
        return Script::get().call("cuDriverGetVersion");
      });
  set(
      driver.device_count, +[](int* count) {
        *count = Script::get().devices;
        return Script::get().call("cuDeviceGetCount");
      });
  set(
      driver.device_get, +[](DeviceNumber* device, int ordinal) {
        *device = ordinal;
        return Script::get().call("cuDeviceGet");
      });
  set(
      driver.device_name, +[](char* name, int bytes, DeviceNumber) {
        std::strncpy(name, "Scripted", static_cast<size_t>(bytes));
        return Script::get().call("cuDeviceGetName");
      });
  set(
      driver.device_memory, +[](size_t* bytes, DeviceNumber) {
        *bytes = size_t{1} << 33;
        return Script::get().call("cuDeviceTotalMem_v2");
      });
  set(
      driver.device_attribute, +[](int* value, int attribute, DeviceNumber) {
        *value = attribute == kAttributeMajor ? 9 : attribute == kAttributeMinor ? 0 : 132;
        return Script::get().call("cuDeviceGetAttribute");
      });
  set(
      driver.retain_context, +[](Context* context, DeviceNumber device) {
        *context = make_handle<Context>(1 + static_cast<uintptr_t>(device));
        return Script::get().call("cuDevicePrimaryCtxRetain");
      });
  set(
      driver.release_context, +[](DeviceNumber) {
        Script::get().released.push_back("context");
        return Script::get().call("cuDevicePrimaryCtxRelease_v2");
      });
  set(
      driver.set_context, +[](Context context) {
        Script::get().current = static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1;
        return Script::get().call("cuCtxSetCurrent");
      });
}

inline void script_memory(Driver& driver) {
  set(
      driver.memory_info, +[](size_t* free, size_t* total) {
        *free = 100 + static_cast<size_t>(Script::get().current);
        *total = 200;
        return Script::get().call("cuMemGetInfo_v2");
      });
  set(
      driver.allocate, +[](Pointer* memory, size_t bytes) {
        const Result result = Script::get().call("cuMemAlloc_v2");
        if (result == kSuccess) *memory = reinterpret_cast<Pointer>(std::malloc(bytes));
        return result;
      });
  set(
      driver.free, +[](Pointer memory) {
        const Result result = Script::get().call("cuMemFree_v2");
        if (result != kSuccess) return result;  // the memory stays
        std::free(reinterpret_cast<void*>(memory));
        Script::get().released.push_back("block");
        return result;
      });
  set(
      driver.allocate_pinned, +[](void** memory, size_t bytes, unsigned) {
        const Result result = Script::get().call("cuMemHostAlloc");
        if (result == kSuccess) *memory = std::malloc(bytes);
        return result;
      });
  set(
      driver.free_pinned, +[](void* memory) {
        std::free(memory);
        return Script::get().call("cuMemFreeHost");
      });
  set(
      driver.copy_in, +[](Pointer to, const void* from, size_t bytes, StreamHandle) {
        std::memcpy(reinterpret_cast<void*>(to), from, bytes);
        return Script::get().call("cuMemcpyHtoDAsync_v2");
      });
  set(
      driver.copy_out, +[](void* to, Pointer from, size_t bytes, StreamHandle) {
        std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
        return Script::get().call("cuMemcpyDtoHAsync_v2");
      });
  set(
      driver.copy, +[](Pointer to, Pointer from, size_t bytes, StreamHandle) {
        std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
        return Script::get().call("cuMemcpyDtoDAsync_v2");
      });
  set(
      driver.fill, +[](Pointer to, unsigned char value, size_t bytes, StreamHandle) {
        std::memset(reinterpret_cast<void*>(to), value, bytes);
        return Script::get().call("cuMemsetD8Async");
      });
}

inline void script_streams(Driver& driver) {
  set(
      driver.stream_create, +[](StreamHandle* stream, unsigned flags) {
        *stream = make_handle<StreamHandle>(16 + flags);
        return Script::get().call("cuStreamCreate");
      });
  set(
      driver.stream_destroy, +[](StreamHandle) {
        Script::get().released.push_back("stream");
        return Script::get().call("cuStreamDestroy_v2");
      });
  set(
      driver.stream_synchronize, +[](StreamHandle) { return Script::get().call("cuStreamSynchronize"); });
  set(
      driver.stream_wait, +[](StreamHandle, EventHandle, unsigned) { return Script::get().call("cuStreamWaitEvent"); });
  set(
      driver.event_create, +[](EventHandle* event, unsigned flags) {
        *event = make_handle<EventHandle>(32 + flags);
        return Script::get().call("cuEventCreate");
      });
  set(
      driver.event_record, +[](EventHandle, StreamHandle) { return Script::get().call("cuEventRecord"); });
  set(
      driver.event_query, +[](EventHandle) { return Script::get().call("cuEventQuery"); });
  set(
      driver.event_synchronize, +[](EventHandle) { return Script::get().call("cuEventSynchronize"); });
  set(
      driver.event_destroy, +[](EventHandle) {
        Script::get().released.push_back("event");
        return Script::get().call("cuEventDestroy_v2");
      });
}

inline void script_kernels(Driver& driver) {
  set(
      driver.module_load, +[](ModuleHandle* module, const void*, unsigned count, int* options, void** values) {
        *module = make_handle<ModuleHandle>(48);
        const Result result = Script::get().call("cuModuleLoadDataEx");
        if (result != kSuccess && count == 2 && options[0] == kJitErrorLog)
          std::strcpy(static_cast<char*>(values[0]), "line 3: no such register");
        return result;
      });
  set(
      driver.module_unload, +[](ModuleHandle) {
        Script::get().released.push_back("module");
        return Script::get().call("cuModuleUnload");
      });
  set(
      driver.module_function, +[](FunctionHandle* function, ModuleHandle, const char*) {
        *function = make_handle<FunctionHandle>(64);
        return Script::get().call("cuModuleGetFunction");
      });
  set(
      driver.launch, +[](FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         StreamHandle, void** arguments, void**) {
        Script::get().kernel_argument.assign(static_cast<const char*>(arguments[0]), 4);
        return Script::get().call("cuLaunchKernel");
      });
}

// Forgets earlier calls. Functions that src/cuda does without are not there.
inline std::unique_ptr<const Driver> scripted_driver() {
  Script::get() = Script();
  auto driver = std::make_unique<Driver>();
  script_devices(*driver);
  script_memory(*driver);
  script_streams(*driver);
  script_kernels(*driver);
  return driver;
}

}  // namespace hybridnet::cuda
