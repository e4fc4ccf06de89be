#include "imperative/user_kernel.h"

#include <memory>
#include <utility>

#include "hybridnet/imperative.h"

namespace hybridnet {
namespace {

std::string subject(const UserKernelCall& call, size_t argument) {
  return "kernel '" + call.name + "': argument " + std::to_string(argument + 1);
}

void check_array(const UserKernelCall& call, size_t i) {
  const NDArray& array = call.arguments[i].array;
  if (array.is_sparse())
    throw ValueError({.expected = "a dense array",
                      .given = std::string("an array in storage '") + storage_type_name(array.storage_type()) + "'",
                      .message = subject(call, i),
                      .fix = "call tostype('default') first"});
  if (!(array.device() == call.device))
    throw ValueError({.expected = "an array on " + call.device.str(),
                      .given = "an array on " + array.device().str(),
                      .message = subject(call, i),
                      .fix = "move it first: x.as_in_context(mx.gpu(" + std::to_string(call.device.id) + "))"});
  if (call.arguments[i].written)
    check_recorded_write(array);
  else if (autograd_state().recording && needs_gradient(array))
    throw GradientError({.message = subject(call, i) + " has a gradient, and kernels of users have none",
                         .fix = "call the kernel in forward() of an mx.autograd.Function, which computes the gradient, "
                                "or pass x.detach()"});
}

// The driver reads as many bytes as the compiled kernel has parameters.
void check_parameters(const UserKernelCall& call, const std::vector<size_t>& bytes) {
  if (bytes.size() != call.arguments.size())
    throw ValueError({.expected = std::to_string(bytes.size()) + " arguments",
                      .given = std::to_string(call.arguments.size()),
                      .message = "kernel '" + call.name + "'"});
  for (size_t i = 0; i < bytes.size(); ++i) {
    const UserKernelArgument& argument = call.arguments[i];
    const size_t given = argument.array ? sizeof(void*) : argument.bytes.size();
    if (given != bytes[i])
      throw ValueError({.expected = std::to_string(bytes[i]) + " bytes, the size of the kernel's parameter",
                        .given = (argument.array ? "an array, whose address has " : "a number of ") +
                                 std::to_string(given) + " bytes",
                        .message = subject(call, i),
                        .fix = "pass a NumPy scalar of the parameter's type, such as numpy.float32(x)"});
  }
}

void run(const UserKernelCall& call, device::Backend::Function function) {
  std::vector<void*> addresses, parameters;
  addresses.reserve(call.arguments.size());  // parameters keeps pointers to them
  for (const UserKernelArgument& argument : call.arguments) {
    addresses.push_back(argument.array ? argument.array.data() : nullptr);
    if (argument.array)
      parameters.push_back(&addresses.back());
    else
      parameters.push_back(const_cast<char*>(argument.bytes.data()));
  }
  device::Stream& stream = device::Stream::of(call.device);
  const device::Scope scope(&stream);  // a kernel without arrays needs the device, too
  device::backend()->launch(function, call.geometry, call.shared_bytes, stream.handle(), parameters);
}

}  // namespace

void launch_user_kernel(device::UserProgram& program, UserKernelCall call) {
  for (size_t i = 0; i < call.arguments.size(); ++i)
    if (call.arguments[i].array) check_array(call, i);
  const device::UserProgram::Kernel* const kernel = program.find(call.name, call.device);
  if (kernel == nullptr)
    throw ValueError({.message = "the text has no kernel '" + call.name + "'",
                      .fix = "declare it: extern \"C\" __global__ void " + call.name + "(...)"});
  if (kernel->parameter_bytes)
    check_parameters(call, *kernel->parameter_bytes);
  else if (!call.declared)
    throw UnsupportedError({.message = "kernel '" + call.name + "': the number of its parameters is unknown",
                            .because = "the text does not show its declaration, and the driver is older than CUDA 12.4",
                            .fix = "write the declaration without macros, or use mx.rtc.CudaModule with a signature"});
  if (call.geometry.grid[0] == 0 || call.geometry.grid[1] == 0 || call.geometry.grid[2] == 0) return;
  std::vector<NDArray> reads, writes;
  for (const UserKernelArgument& argument : call.arguments)
    if (argument.array) (argument.written ? writes : reads).push_back(argument.array);
  for (const NDArray& array : writes) note_overwrite(array);
  constexpr int64_t kLaunchNs = 5000;
  const char* const name = intern_file(call.name);  // the engine keeps the address
  const auto shared = std::make_shared<const UserKernelCall>(std::move(call));
  run_task(name, reads, writes, kLaunchNs,
           [shared, function = kernel->function](TaskContext&) { run(*shared, function); });
}

}  // namespace hybridnet
