// The driver's modules, kernels and launches.
#include <dlfcn.h>

#include "driver.h"
#include "kernels.h"
#include "schedule.h"

using namespace standin;

extern "C" {

int cuModuleLoadDataEx(Module** module, const void* image, unsigned, int*, void**) {
  return call(__func__, [&](World&) {
    if (!module || !image) return kInvalidValue;
    if (!t_context) return kInvalidContext;
    *module = load_module(image);
    if (!*module) return kInvalidImage;
    (*module)->context = t_context;
    return kSuccess;
  });
}
int cuModuleLoadData(Module** module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

int cuModuleUnload(Module* module) {
  return call(__func__, [&](World& w) {
    if (!module || !module->library) {
      report("double free: cuModuleUnload of a module that was unloaded before");
      return kInvalidHandle;
    }
    for (size_t i = 0; i < module->used.size(); ++i) {
      if (at(w.known, i) >= module->used[i]) continue;
      report("early free: cuModuleUnload, and no thread waited for a launch of stream " + std::to_string(i) +
             ", ticket " + std::to_string(module->used[i]));
      run_until(w, *w.streams[i], module->used[i]);
    }
    dlclose(module->library);
    module->library = nullptr;
    return kSuccess;
  });
}

int cuModuleGetFunction(Function** function, Module* module, const char* name) {
  return call(__func__, [&](World&) {
    if (!function || !module || !module->library || !name) return kInvalidValue;
    *function = find_function(*module, name);
    return *function ? kSuccess : kNotFound;
  });
}

int cuFuncGetAttribute(int* value, int attribute, Function* function) {
  return call(__func__, [&](World&) {
    if (!value || !function) return kInvalidValue;
    *value = attribute == 0 ? static_cast<int>(function->kernel->max_threads) : 0;
    return kSuccess;
  });
}

int cuFuncSetAttribute(Function* function, int attribute, int value) {
  constexpr int kMaxDynamicSharedBytes = 8;
  return call(__func__, [&](World&) {
    if (!function) return kInvalidValue;
    if (attribute != kMaxDynamicSharedBytes) return kSuccess;
    if (value < 0 || static_cast<unsigned>(value) > hn_host::kMaxDynamicShared) return kInvalidValue;
    function->max_dynamic_shared = static_cast<unsigned>(value);
    return kSuccess;
  });
}

int cuFuncGetParamInfo(Function* function, size_t index, size_t* offset, size_t* bytes) {
  return call(__func__, [&](World&) {
    if (!function || !offset) return kInvalidValue;
    const hn_host::Kernel& kernel = *function->kernel;
    if (index >= (kernel.parameters ? kernel.parameter_count : 1)) return kInvalidValue;
    const hn_host::Parameter at =
        kernel.parameters ? kernel.parameters[index] : hn_host::Parameter{0, kernel.argument_bytes};
    *offset = at.offset;
    if (bytes) *bytes = at.bytes;
    return kSuccess;
  });
}

int cuLaunchKernel(Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes, Stream* handle, void** arguments,
                   void** extra) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuLaunchKernel", &result);
    if (!stream) return result;
    if (!function || !function->module->library || !arguments || extra) return kInvalidValue;
    // HN_KERNEL has no dynamic shared memory.
    if (dynamic_shared_bytes > (function->kernel->parameters ? function->max_dynamic_shared : 0)) return kInvalidValue;
    if (function->module->context != stream->context) {
      report("wrong context: kernel '" + function->name + "' of device " +
             std::to_string(function->module->context->device) + " gets a stream of device " +
             std::to_string(stream->context->device));
      return kInvalidHandle;
    }
    auto launch = std::make_shared<Launch>();
    launch->function = function;
    launch->grid = {grid_x, grid_y, grid_z};
    launch->block = {block_x, block_y, block_z};
    if (result = check_launch(*launch); result != kSuccess) return result;
    launch->copy_arguments(arguments);
    ++w.counters.launches;
    Work work;
    work.name = function->name;
    work.launch = launch;
    const uint64_t ticket = push(w, *stream, std::move(work));
    const auto number = static_cast<size_t>(stream->number);
    if (function->module->used.size() <= number) function->module->used.resize(number + 1, 0);
    if (ticket > 0) function->module->used[number] = ticket;
    return kSuccess;
  });
}

}  // extern "C"
