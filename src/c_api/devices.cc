// Devices: the GPUs of the process, and arrays and models on them.
#include <tuple>

#include "c_api/arrays.h"
#include "c_api/model.h"
#include "c_api/status.h"
#include "device/library_call.h"
#include "device/stream.h"
#include "hybridnet/imperative.h"
#include "hybridnet/runtime.h"
#include "imperative/autograd_scope.h"
#include "imperative/device_copies.h"

namespace hybridnet::c_api {
namespace {

const OpRef kCopy{"_copy"};

// Returns a copy. Its gradient, if the array has one, is zeros of the same grad_req.
NDArray moved(const NDArray& array, const std::string& name, Device device) {
  constexpr const char* kFunction = "hn_model_to_device";
  const NDArray copy = copied_to(array, device, kFunction);
  const NDArray gradient = grad_of(array);
  if (!gradient) return copy;
  if (gradient.is_sparse() && device.type == DeviceType::kGPU)
    throw UnsupportedError(
        {.op = kFunction,
         .input = name,
         .expected = "a parameter with a dense gradient",
         .given = std::string("one with a ") + storage_type_name(gradient.storage_type()) + " gradient",
         .because = "arrays in sparse storage exist on CPUs only",
         .fix = "call hn_array_attach_grad for it first"});
  mark_variable(copy, zero_gradient(copy, gradient.storage_type()), grad_req_of(array));
  return copy;
}

void move_model(ModelHandle& model, Device device) {
  const AutogradScope unrecorded({.recording = false, .training = autograd_state().training});
  ModelHandle::Values values = model.values();
  if (device.type == DeviceType::kGPU) device::Stream::of(device);  // throws if there is no such GPU
  for (size_t i = 0; i < model.parameter_names.size(); ++i) {
    NDArray& array = values.arrays[model.parameter_positions[i]];
    if (!is_on(array, device)) array = moved(array, model.parameter_names[i], device);
  }
  values.device = device;
  model.set_values(std::move(values));
}

}  // namespace

Device device_of(int type, int id, const char* function) {
  if (type != HN_CPU && type != HN_GPU)
    throw ValueError(
        {.op = function, .input = "type", .expected = "HN_CPU (1) or HN_GPU (2)", .given = std::to_string(type)});
  if (id < 0) throw ValueError({.op = function, .input = "id", .expected = "0 or more", .given = std::to_string(id)});
  return {static_cast<DeviceType>(type), id};
}

bool is_on(const NDArray& array, Device device) {
  if (!array.is_on_gpu()) return device.type != DeviceType::kGPU;
  return array.device() == device;
}

void require_on_cpu(const NDArray& array, const char* function) {
  if (!array.is_on_gpu()) return;
  throw UnsupportedError({.op = function,
                          .expected = "an array on a CPU",
                          .given = "one on " + array.device().str(),
                          .because = "the CPU cannot address memory of a GPU",
                          .fix = "copy its values by hn_array_copy_to, or the array by hn_array_copy_to_device"});
}

NDArray copied_to(const NDArray& array, Device device, const char* function) {
  if (device.type == DeviceType::kGPU && array.is_sparse())
    throw UnsupportedError({.op = function,
                            .expected = "a dense array",
                            .given = std::string("one in storage '") + storage_type_name(array.storage_type()) + "'",
                            .because = "arrays in sparse storage exist on CPUs only",
                            .fix = "convert it by hn_array_cast_storage"});
  if (is_on(array, device)) return invoke_one(kCopy.op(), kCopy.op().default_params, {&array, 1});
  return copied_to_device(array, device);
}

}  // namespace hybridnet::c_api

using namespace hybridnet;  // the functions below are C: they have no namespace
using c_api::guarded;
using c_api::ModelHandle;
using c_api::Pinned;
using c_api::require;

int hn_num_gpus(int* out) {
  return guarded([&] {
    require(out, "hn_num_gpus", "out");
    const device::Backend* const backend = device::backend();
    *out = backend ? backend->num_devices() : 0;
  });
}

int hn_why_no_gpu(const char** out) {
  return guarded([&] {
    require(out, "hn_why_no_gpu", "out");
    *out = device::backend() ? "" : device::why_none().c_str();
  });
}

int hn_gpu_memory(int id, int64_t* free_bytes, int64_t* total_bytes) {
  return guarded([&] {
    require(free_bytes, "hn_gpu_memory", "free_bytes");
    require(total_bytes, "hn_gpu_memory", "total_bytes");
    device::Stream::of(c_api::device_of(HN_GPU, id, "hn_gpu_memory"));  // throws if there is no such GPU
    std::tie(*free_bytes, *total_bytes) = device::backend()->free_and_total_bytes(id);
  });
}

int hn_allow_tf32(int allow, int* before) {
  return guarded([&] {
    Runtime::get().engine().wait_all();
    const bool was = device::allow_reduced_float32(allow != 0);
    if (before) *before = was;
  });
}

int hn_array_create_on(int type, int id, const int64_t* shape, int ndim, int dtype, const void* data, HnArray* out) {
  return guarded([&] {
    require(out, "hn_array_create_on", "out");
    const Device device = c_api::device_of(type, id, "hn_array_create_on");
    const TensorSpec spec = c_api::spec_of(shape, ndim, dtype, "hn_array_create_on");
    *out = c_api::give_array(c_api::new_array(spec, device, data));
  });
}

int hn_array_copy_to_device(HnArray array, int type, int id, HnArray* out) {
  return guarded([&] {
    const NDArray given = c_api::array_of(array, "hn_array_copy_to_device", "array");
    require(out, "hn_array_copy_to_device", "out");
    const Device device = c_api::device_of(type, id, "hn_array_copy_to_device");
    *out = c_api::give_array(c_api::copied_to(given, device, "hn_array_copy_to_device"));
  });
}

int hn_model_to_device(HnModel model, int type, int id) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, "hn_model_to_device", "model");
    c_api::move_model(*given, c_api::device_of(type, id, "hn_model_to_device"));
  });
}

int hn_model_device(HnModel model, int* type, int* id) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, "hn_model_device", "model");
    require(type, "hn_model_device", "type");
    require(id, "hn_model_device", "id");
    const Device device = given->values().device;
    *type = static_cast<int>(device.type);
    *id = device.id;
  });
}
