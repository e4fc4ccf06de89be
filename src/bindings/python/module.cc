// hybridnet._core: the C++ interface for the Python front end. Nothing here is public API.
#include "binary_function.h"
#include "casters.h"
#include "direct_function.h"
#include "hybridnet/runtime.h"
#include "location.h"
#include "op_function.h"
#include "registry_function.h"
#include "trace_functions.h"
#include "traced_memory.h"

PYBIND11_MODULE(_core, m) {
  using namespace hybridnet::python;
  m.doc() = "C++ side of the Python front end; use the hybridnet package instead.";
  py::register_local_exception_translator([](std::exception_ptr failure) {
    if (!failure) return;
    try {
      std::rethrow_exception(failure);
    } catch (...) {
      set_error_from_exception();
    }
  });
  hybridnet::Runtime::get();  // registers operators and starts the engine before their first use
  if (init_array_type(m.ptr()) < 0 || init_symbol_type(m.ptr()) < 0 || init_registry_function_type(m.ptr()) < 0 ||
      init_op_function_type(m.ptr()) < 0 || init_binary_function_type(m.ptr()) < 0 ||
      init_direct_function_type(m.ptr()) < 0 || init_trace_functions(m.ptr()) < 0 || init_traced_memory(m.ptr()) < 0)
    throw py::error_already_set();
  m.def("install_location_probe", &install_location_probe, "Skips frames of files below the given folder.");
  bind_arrays(m);
  bind_dlpack(m);
  bind_devices(m);
  bind_user_kernels(m);
  bind_groups(m);
  bind_sparse(m);
  bind_operators(m);
  bind_autograd(m);
  bind_custom(m);
  bind_symbols(m);
  bind_control_flow(m);
  bind_plans(m);
  bind_optimizers(m);
  bind_quantization(m);
  bind_rewrites(m);
  bind_host_images(m);
  bind_runtime(m);
}
