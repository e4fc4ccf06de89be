// Kernels of users: hybridnet.cuda.RawKernel and hybridnet.rtc. An argument of a launch is an array or the bytes of a
// number.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "casters.h"
#include "imperative/user_kernel.h"

namespace hybridnet::python {
namespace {

using device::UserProgram;

Device gpu(int id) { return {DeviceType::kGPU, id}; }

// A program, which the process keeps.
struct ProgramHandle {
  UserProgram* program;
};

UserKernelArgument argument_from(const py::handle& object, bool written) {
  if (is_array(object.ptr())) return {array_of(object.ptr()), written, {}};
  return {{}, false, py::cast<std::string>(object)};
}

using Triple = std::array<uint32_t, 3>;

void launch(const ProgramHandle& handle, const std::string& name, int device, const Triple& grid, const Triple& block,
            uint32_t shared_bytes, const py::list& arguments, const std::vector<bool>& written, bool declared) {
  UserKernelCall call;
  call.name = name;
  call.device = gpu(device);
  for (size_t i = 0; i < 3; ++i) call.geometry.grid[i] = grid[i], call.geometry.block[i] = block[i];
  call.shared_bytes = shared_bytes;
  call.declared = declared;
  for (size_t i = 0; i < arguments.size(); ++i) call.arguments.push_back(argument_from(arguments[i], written[i]));
  ReleaseGil release(true);  // the first launch compiles
  launch_user_kernel(*handle.program, std::move(call));
}

}  // namespace

void bind_user_kernels(py::module_& m) {
  py::class_<ProgramHandle>(m, "UserProgram")
      .def(py::init([](std::string text, std::vector<std::string> options, std::vector<std::string> exports) {
        return ProgramHandle{&UserProgram::of({std::move(text), std::move(options), std::move(exports)})};
      }))
      .def("load",
           [](const ProgramHandle& handle, int device) {
             ReleaseGil release(true);
             handle.program->load(gpu(device));
           })
      .def("has_kernel",
           [](const ProgramHandle& handle, const std::string& name, int device) {
             ReleaseGil release(true);
             return handle.program->find(name, gpu(device)) != nullptr;
           })
      .def("launch", &launch);
}

}  // namespace hybridnet::python
