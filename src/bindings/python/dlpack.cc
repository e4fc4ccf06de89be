// DLPack (version 0 capsules, what NumPy, PyTorch and JAX exchange). The structures are those of the public dlpack.h.
#include <vector>

#include "casters.h"

namespace hybridnet::python {
namespace {

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};

constexpr const char* kFresh = "dltensor";
constexpr const char* kUsed = "used_dltensor";
constexpr int32_t kDLCpu = 1;

struct TypeRow {
  DType dtype;
  DLDataType dl;
};
constexpr TypeRow kTypes[] = {
    // codes: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool
    {DType::kFloat32, {2, 32, 1}},  {DType::kFloat64, {2, 64, 1}}, {DType::kFloat16, {2, 16, 1}},
    {DType::kBFloat16, {4, 16, 1}}, {DType::kInt8, {0, 8, 1}},     {DType::kInt32, {0, 32, 1}},
    {DType::kInt64, {0, 64, 1}},    {DType::kUInt8, {1, 8, 1}},    {DType::kBool, {6, 8, 1}},
};

struct Exported {
  DLManagedTensor managed;
  NDArray array;
  std::vector<int64_t> shape, strides;
};

void delete_exported(DLManagedTensor* managed) { delete static_cast<Exported*>(managed->manager_ctx); }

void destroy_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kFresh)) return;  // consumed: its owner calls the deleter
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kFresh));
  if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
}

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.ndim()));
  int64_t step = 1;
  for (int i = shape.ndim() - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = step;
    step *= shape[i];
  }
  return strides;
}

py::object to_dlpack(const py::object& source, bool for_write) {
  const NDArray array = expect_array(source.ptr(), "array");
  wait_interruptibly(array, for_write);
  auto exported = std::make_unique<Exported>();
  exported->array = array;
  exported->shape.assign(array.shape().begin(), array.shape().end());
  exported->strides = row_major_strides(array.shape());
  DLTensor& t = exported->managed.dl_tensor;
  t = {array.data(), {kDLCpu, 0}, array.ndim(), {}, exported->shape.data(), exported->strides.data(), 0};
  for (const TypeRow& row : kTypes)
    if (row.dtype == array.dtype()) t.dtype = row.dl;
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = delete_exported;
  PyObject* capsule = PyCapsule_New(&exported->managed, kFresh, destroy_capsule);
  if (capsule == nullptr) throw py::error_already_set();
  exported.release();
  return py::reinterpret_steal<py::object>(capsule);
}

DType dtype_of_dlpack(const DLDataType& dl) {
  for (const TypeRow& row : kTypes)
    if (row.dl.code == dl.code && row.dl.bits == dl.bits && dl.lanes == 1) return row.dtype;
  raise(ErrorKind::kDType,
        {.op = "from_dlpack",
         .expected = "a float, int8, int32, int64, uint8 or bool tensor",
         .given = "DLPack type code " + std::to_string(dl.code) + ", " + std::to_string(dl.bits) + " bits"});
}

Shape checked_shape(const DLTensor& t) {
  if (t.ndim < 0 || t.ndim > kMaxDims)
    raise(ErrorKind::kShape, {.op = "from_dlpack", .expected = "0 to 16 axes", .given = std::to_string(t.ndim)});
  Shape shape = Shape::scalar();
  for (int i = 0; i < t.ndim; ++i) {
    if (t.shape[i] < 0) raise(ErrorKind::kShape, {.op = "from_dlpack", .message = "a size is negative"});
    shape.push_back(t.shape[i]);
  }
  if (t.strides == nullptr || shape.size() == 0) return shape;
  const std::vector<int64_t> wanted = row_major_strides(shape);
  for (int i = 0; i < t.ndim; ++i)
    if (shape[i] > 1 && t.strides[i] != wanted[static_cast<size_t>(i)])
      raise(ErrorKind::kValue, {.op = "from_dlpack",
                                .expected = "a contiguous row-major tensor",
                                .given = "other strides",
                                .fix = "make the tensor contiguous before sharing it"});
  return shape;
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
  const DLTensor& t = managed->dl_tensor;
  if (t.device.device_type != kDLCpu)
    raise(ErrorKind::kUnsupported, {.op = "from_dlpack",
                                    .expected = "a tensor in CPU memory",
                                    .given = "DLPack device type " + std::to_string(t.device.device_type),
                                    .fix = "copy the tensor to the CPU first"});
  const TensorSpec spec{checked_shape(t), dtype_of_dlpack(t.dtype)};
  const auto release = [managed] {
    if (managed->deleter == nullptr || !Py_IsInitialized()) return;
    AcquireGil gil;  // the other side may touch Python objects
    managed->deleter(managed);
  };
  NDArray array = NDArray::from_memory(static_cast<char*>(t.data) + t.byte_offset, spec, release);
  PyCapsule_SetName(capsule.ptr(), kUsed);
  return array;
}

}  // namespace

void bind_dlpack(py::module_& m) {
  m.def("to_dlpack", &to_dlpack);
  m.def("from_dlpack", &from_dlpack);
}

}  // namespace hybridnet::python
