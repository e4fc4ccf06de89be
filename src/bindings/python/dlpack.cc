// DLPack capsules (version 0, which NumPy, PyTorch and JAX exchange).
#include "ndarray/dlpack.h"

#include "casters.h"

namespace hybridnet::python {
namespace {

using dlpack::DLManagedTensor;

constexpr const char* kFresh = "dltensor";
constexpr const char* kUsed = "used_dltensor";

void destroy_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kFresh)) return;  // consumed: its owner calls the deleter
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kFresh));
  if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
}

py::object to_dlpack(const py::object& source, bool for_write) {
  const NDArray array = expect_array(source.ptr(), "array");
  wait_interruptibly(array, for_write);
  DLManagedTensor* exported = dlpack::export_array(array);
  PyObject* capsule = PyCapsule_New(exported, kFresh, destroy_capsule);
  if (capsule == nullptr) {
    exported->deleter(exported);
    throw py::error_already_set();
  }
  return py::reinterpret_steal<py::object>(capsule);
}

NDArray from_dlpack(const py::object& capsule) {
  if (!PyCapsule_CheckExact(capsule.ptr()))
    raise(ErrorKind::kType, {.op = "from_dlpack",
                             .expected = "an object with __dlpack__, or a DLPack capsule",
                             .given = short_repr(capsule.ptr())});
  if (!PyCapsule_IsValid(capsule.ptr(), kFresh))
    raise(ErrorKind::kValue, {.op = "from_dlpack",
                              .expected = "a DLPack capsule that was not used before",
                              .given = short_repr(capsule.ptr())});
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kFresh));
  NDArray array = dlpack::import_array(managed->dl_tensor, [managed] {
    if (managed->deleter == nullptr || !Py_IsInitialized()) return;
    AcquireGil gil;  // the other side may touch Python objects
    managed->deleter(managed);
  });
  PyCapsule_SetName(capsule.ptr(), kUsed);
  return array;
}

}  // namespace

void bind_dlpack(py::module_& m) {
  m.def("to_dlpack", &to_dlpack);
  m.def("from_dlpack", &from_dlpack);
}

}  // namespace hybridnet::python
