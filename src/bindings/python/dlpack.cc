// Memory that is shared with other libraries: DLPack capsules (version 0, which NumPy, PyTorch, JAX and CuPy exchange)
// and memory of GPUs, with the order between their streams and ours.
#include "ndarray/dlpack.h"

#include <optional>

#include "casters.h"
#include "device/outside.h"
#include "hybridnet/engine.h"
#include "ndarray/given_out.h"

namespace hybridnet::python {
namespace {

using device::OutsideStream;
using device::Stream;
using dlpack::DLManagedTensor;

constexpr const char* kFresh = "dltensor";
constexpr const char* kUsed = "used_dltensor";

void destroy_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kFresh)) return;  // consumed: its owner calls the deleter
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kFresh));
  if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
}

Device gpu(int id) { return {DeviceType::kGPU, id}; }

// Waits until the engine has launched the work that writes a GPU's array, and with for_write also the work that reads
// it. The device may be busy with it still.
void wait_for_launches(const NDArray& array, bool for_write) {
  Var& var = array.var();
  if (for_write ? var.idle() && var.readable() : var.readable()) return;
  ReleaseGil release(false);
  if (for_write)
    engine().wait_for_var(var);
  else
    engine().wait_to_read(var);
}

// The array is ready for work that the consumer pushes to its stream; none: the consumer orders the work itself.
void make_ready(const NDArray& array, bool for_write, std::optional<OutsideStream> consumer) {
  if (!array.is_on_gpu()) return wait_interruptibly(array, for_write);
  wait_for_launches(array, for_write);
  if (consumer && array.impl()->chunk->block.use != nullptr)
    device::precede_outside(*array.impl()->chunk->block.use, *consumer);
}

// consumer: of arrays on GPUs, see make_ready().
py::object to_dlpack(const py::object& source, bool for_write, std::optional<OutsideStream> consumer) {
  const NDArray array = expect_array(source.ptr(), "array");
  make_ready(array, for_write, consumer);
  DLManagedTensor* exported = dlpack::export_array(array);
  PyObject* capsule = PyCapsule_New(exported, kFresh, destroy_capsule);
  if (capsule == nullptr) {
    exported->deleter(exported);
    throw py::error_already_set();
  }
  return py::reinterpret_steal<py::object>(capsule);
}

DLManagedTensor* tensor_of(const py::object& capsule) {
  if (!PyCapsule_CheckExact(capsule.ptr()))
    raise(ErrorKind::kType, {.op = "from_dlpack",
                             .expected = "an object with __dlpack__, or a DLPack capsule",
                             .given = short_repr(capsule.ptr())});
  if (!PyCapsule_IsValid(capsule.ptr(), kFresh))
    raise(ErrorKind::kValue, {.op = "from_dlpack",
                              .expected = "a DLPack capsule that was not used before",
                              .given = short_repr(capsule.ptr())});
  return static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kFresh));
}

// follow_legacy: nothing has ordered our streams after the other library's work on memory of a GPU.
NDArray from_dlpack(const py::object& capsule, bool follow_legacy) {
  DLManagedTensor* const managed = tensor_of(capsule);
  if (follow_legacy && managed->dl_tensor.device.device_type == dlpack::kCuda)
    device::follow_outside(Stream::of(gpu(managed->dl_tensor.device.device_id)), device::kLegacyStream);
  NDArray array = dlpack::import_array(managed->dl_tensor, [managed] {
    if (managed->deleter == nullptr || !Py_IsInitialized()) return;
    AcquireGil gil;  // the other side may touch Python objects
    managed->deleter(managed);
  });
  PyCapsule_SetName(capsule.ptr(), kUsed);
  return array;
}

// An array over memory of a GPU, which `owner` keeps alive. producer: the stream whose work on it may be unfinished.
NDArray from_gpu_memory(uint64_t address, const Shape& shape, DType dtype, int id, py::object owner,
                        std::optional<OutsideStream> producer) {
  if (producer) device::follow_outside(Stream::of(gpu(id)), *producer);
  PyObject* const kept = owner.release().ptr();
  try {
    return dlpack::import_memory(
        reinterpret_cast<void*>(address), {shape, dtype},
        [kept] {
          if (!Py_IsInitialized()) return;
          AcquireGil gil;
          Py_DECREF(kept);
        },
        gpu(id));
  } catch (...) {
    Py_DECREF(kept);
    throw;
  }
}

// (address, stream): the memory of an array on a GPU, and the stream that the reader has to follow.
py::tuple gpu_memory(const py::object& source) {
  const NDArray array = expect_array(source.ptr(), "array");
  wait_for_launches(array, /*for_write=*/true);
  give_out(array);
  Stream& stream = Stream::of(array.device());
  if (device::StreamUse* const use = array.impl()->chunk->block.use) {
    device::StreamUse* const uses[] = {use};
    stream.begin({}, uses);
  }
  return py::make_tuple(reinterpret_cast<uint64_t>(array.data()), reinterpret_cast<uint64_t>(stream.handle()));
}

void synchronize(int id) {
  Stream::of(gpu(id));  // throws if there is no such device
  ReleaseGil release(false);
  engine().wait_all();
  for (const Stream::Kind kind : {Stream::Kind::kCompute, Stream::Kind::kCopyIn, Stream::Kind::kCopyOut})
    Stream::of(gpu(id), kind).synchronize();
}

}  // namespace

void bind_dlpack(py::module_& m) {
  m.def("to_dlpack", &to_dlpack, py::arg("array"), py::arg("for_write"), py::arg("consumer") = py::none());
  m.def("from_dlpack", &from_dlpack, py::arg("capsule"), py::arg("follow_legacy") = true);
  m.def("from_gpu_memory", &from_gpu_memory);
  m.def("gpu_memory", &gpu_memory);
  m.def("gpu_stream", [](int id) {
    ReleaseGil release(false);  // the first call loads the driver
    return reinterpret_cast<uint64_t>(Stream::of(gpu(id)).handle());
  });
  m.def("gpu_synchronize", &synchronize);
}

}  // namespace hybridnet::python
