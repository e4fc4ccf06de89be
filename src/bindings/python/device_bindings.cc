// The GPUs of the process: their number, memory and names.
#include <string>
#include <utility>
#include <vector>

#include "casters.h"
#include "device/backend.h"
#include "device/library_product.h"
#include "device/program.h"
#include "device/stream.h"
#include "kernels/elementwise/device_map.h"

namespace hybridnet::python {
namespace {

int num_gpus() {
  ReleaseGil release(false);  // the first call loads the driver
  const device::Backend* const backend = device::backend();
  return backend == nullptr ? 0 : backend->num_devices();
}

// Raises UnsupportedError for a device that does not exist. Without the GIL: the first call loads the driver.
device::Backend& backend_with(int device) {
  device::Stream::of({DeviceType::kGPU, device});
  return *device::backend();
}

}  // namespace

void bind_devices(py::module_& m) {
  m.def("num_gpus", &num_gpus);
  m.def(
      "why_no_gpu",
      [] {
        ReleaseGil release(false);
        return device::why_none();
      },
      "The reason why num_gpus() is 0; empty if it is not.");
  m.def(
      "gpu_memory_info",
      [](int device) {
        ReleaseGil release(false);
        return backend_with(device).free_and_total_bytes(device);
      },
      "(free, total) bytes.");
  m.def(
      "gpu_description",
      [](int device) {
        const device::DeviceInfo info = [device] {
          ReleaseGil release(false);
          return backend_with(device).info(device);
        }();
        return py::make_tuple(info.name, info.architecture, info.multiprocessors);
      },
      "(name, architecture, number of multiprocessors).");
  m.def(
      "gpu_libraries",
      [] {
        ReleaseGil release(false);
        device::Backend* const backend = device::backend();
        return backend == nullptr ? std::vector<std::pair<std::string, std::string>>{} : backend->libraries();
      },
      "(name, version and file) of the libraries in use; nothing without a GPU. Loads them.");
  m.def("allow_reduced_float32", &device::allow_reduced_float32, py::arg("allow"), "Returns the setting before.");
  m.def("set_least_library_steps", &device::set_least_library_steps, py::arg("steps"),
        "Products and convolutions of at least this size go to a library; returns the size before. For tests.");
  m.def("kernel_headers", [] {
    py::dict texts;
    for (const device::HeaderText& header : device::kernel_headers())
      texts[header.name] = py::str(header.text.data(), header.text.size());
    return texts;
  });
  m.def("used_kernel_texts", &device::Program::texts, "The texts of the kernels that ran in this process, for tests.");
  m.def("elementwise_kernel_texts", &device::elementwise_texts, "Every text of elementwise kernels, for tests.");
}

}  // namespace hybridnet::python
