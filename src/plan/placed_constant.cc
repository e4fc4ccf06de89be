#include "plan/placed_constant.h"

#include "hybridnet/error.h"
#include "hybridnet/ndarray.h"
#include "ndarray/device_work.h"

namespace hybridnet {

Ref<Object> placed_constant(const Ref<Object>& constant, Device device) {
  const NDArray array(Ref<ArrayImpl>(static_cast<ArrayImpl*>(constant.get())));
  const bool on_gpu = device.type == DeviceType::kGPU;
  if (array.is_on_gpu() ? array.device() == device : !on_gpu) return constant;
  if (array.is_on_gpu()) {
    throw UnsupportedError({.message = "a graph that runs on " + (on_gpu ? device.str() : "the CPU") +
                                       " reads an array that it has captured on " + array.device().str(),
                            .fix = "pass the array as an argument"});
  }
  const NDArray copy = NDArray::empty(array.spec(), device);
  copy_in_now(copy, array.data());
  wait_for_device(copy, /*for_readers_too=*/false);  // runs do not order themselves among its users
  return Ref<Object>(copy.impl());
}

}  // namespace hybridnet
