// The driver's functions for devices, contexts and errors.
#include <cstring>

#include "driver.h"
#include "faults.h"
#include "memory.h"
#include "schedule.h"

using namespace standin;

namespace {

Context* context_of(World& w, int device) {
  return device >= 0 && static_cast<size_t>(device) < w.contexts.size() ? w.contexts[static_cast<size_t>(device)].get()
                                                                        : nullptr;
}

int attribute(int number) {
  switch (number) {
    case 1:
      return 1024;  // threads of a block
    case 2:
    case 3:
      return 1024;  // its first and second sizes
    case 4:
      return 64;
    case 5:
      return 0x7fffffff;  // sizes of a grid
    case 6:
    case 7:
      return 65535;
    case 8:
      return 49152;  // bytes of shared memory of a block
    case 10:
      return 32;  // lanes of a warp
    case 12:
      return 65536;  // registers of a block
    case 16:
      return 4;  // multiprocessors
    case 39:
      return 2048;  // threads of a multiprocessor
    case 41:
      return 1;  // unified addressing
    case 75:
      return 9;  // compute capability
    case 76:
      return 0;
    case 97:
      return 232448;  // bytes of shared memory of a block that asks for more
    case 115:
      return static_cast<int>(setting("HNSTANDIN_POOLS", 1));  // memory pools
    default:
      return 0;
  }
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  World& w = world();
  if (w.forked) return kNotInitialized;
  std::lock_guard lock(w.mutex);
  if (w.ended) return kDeinitialized;
  if (const Result wanted = injected_failure("cuInit"); wanted != kSuccess) return wanted;
  if (w.contexts.empty()) return kNoDevice;
  if (!w.initialized) prepare_for_faults();
  w.initialized = true;
  return kSuccess;
}

int cuDriverGetVersion(int* version) {
  if (!version) return kInvalidValue;
  *version = static_cast<int>(setting("HNSTANDIN_VERSION", 12080));
  return kSuccess;
}

int cuGetErrorName(int result, const char** name) {
  forget_result(result);
  if (!name) return kInvalidValue;
  *name = name_of(result);
  return *name ? kSuccess : kInvalidValue;
}
int cuGetErrorString(int result, const char** text) { return cuGetErrorName(result, text); }

int cuDeviceGetCount(int* count) {
  return call(__func__, [&](World& w) {
    *count = static_cast<int>(w.contexts.size());
    return kSuccess;
  });
}

int cuDeviceGet(int* device, int ordinal) {
  return call(__func__, [&](World& w) {
    if (!context_of(w, ordinal)) return kInvalidDevice;
    *device = ordinal;
    return kSuccess;
  });
}

int cuDeviceGetName(char* name, int bytes, int device) {
  return call(__func__, [&](World& w) {
    if (!context_of(w, device)) return kInvalidDevice;
    if (!name || bytes < 1) return kInvalidValue;
    std::strncpy(name, "stand-in", static_cast<size_t>(bytes));
    name[bytes - 1] = '\0';
    return kSuccess;
  });
}

int cuDeviceGetAttribute(int* value, int number, int device) {
  return call(__func__, [&](World& w) {
    if (!context_of(w, device)) return kInvalidDevice;
    *value = attribute(number);
    return kSuccess;
  });
}

int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  return call(__func__, [&](World& w) {
    if (!context_of(w, device)) return kInvalidDevice;
    *bytes = static_cast<size_t>(device_bytes());
    return kSuccess;
  });
}

int cuDevicePrimaryCtxRetain(Context** context, int device) {
  return call(__func__, [&](World& w) {
    Context* found = context_of(w, device);
    if (!found) return kInvalidDevice;
    ++found->retained;
    *context = found;
    return kSuccess;
  });
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  return call(__func__, [&](World& w) {
    Context* found = context_of(w, device);
    if (!found) return kInvalidDevice;
    if (found->retained == 0) return kInvalidContext;
    --found->retained;
    return kSuccess;
  });
}

int cuCtxSetCurrent(Context* context) {
  return call(__func__, [&](World&) {
    if (context && context->retained == 0) {
      report("context: device " + std::to_string(context->device) + " was not retained");
      return kInvalidContext;
    }
    t_context = context;
    return kSuccess;
  });
}

int cuCtxGetCurrent(Context** context) {
  return call(__func__, [&](World&) {
    *context = t_context;
    return kSuccess;
  });
}

int cuCtxGetDevice(int* device) {
  return call(__func__, [&](World&) {
    if (!t_context) return kInvalidContext;
    *device = t_context->device;
    return kSuccess;
  });
}

int cuCtxSynchronize() {
  return call(__func__, [&](World& w) {
    if (!t_context) return kInvalidContext;
    Result result = kSuccess;
    for (size_t i = 0; i < w.streams.size(); ++i)
      if (w.streams[i]->context == t_context) result = synchronize(w, *w.streams[i]);
    return result;
  });
}

}  // extern "C"
