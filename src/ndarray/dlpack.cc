#include "ndarray/dlpack.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/stream.h"
#include "ndarray/given_out.h"

namespace hybridnet::dlpack {
namespace {

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
  explicit Exported(const NDArray& of) : array(of), given_out(of) {}
  DLManagedTensor managed{};
  const NDArray array;
  const GivenOut given_out;  // DLPack does not say whether the other side will write
  std::vector<int64_t> shape, strides;
};

void delete_exported(DLManagedTensor* managed) { delete static_cast<Exported*>(managed->manager_ctx); }

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.ndim()));
  int64_t step = 1;
  for (int i = shape.ndim() - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = step;
    step *= shape[i];
  }
  return strides;
}

DType dtype_of(const DLDataType& dl) {
  for (const TypeRow& row : kTypes)
    if (row.dl.code == dl.code && row.dl.bits == dl.bits && dl.lanes == 1) return row.dtype;
  throw DTypeError({.op = "from_dlpack",
                    .expected = "a float, int8, int32, int64, uint8 or bool tensor",
                    .given = "DLPack type code " + std::to_string(dl.code) + ", " + std::to_string(dl.bits) + " bits"});
}

Shape checked_shape(const DLTensor& t) {
  if (t.ndim < 0 || t.ndim > kMaxDims)
    throw ShapeError({.op = "from_dlpack", .expected = "0 to 16 axes", .given = std::to_string(t.ndim)});
  Shape shape = Shape::scalar();
  for (int i = 0; i < t.ndim; ++i) {
    if (t.shape[i] < 0) throw ShapeError({.op = "from_dlpack", .message = "a size is negative"});
    shape.push_back(t.shape[i]);
  }
  if (t.strides == nullptr || shape.size() == 0) return shape;
  const std::vector<int64_t> wanted = row_major_strides(shape);
  for (int i = 0; i < t.ndim; ++i)
    if (shape[i] > 1 && t.strides[i] != wanted[static_cast<size_t>(i)])
      throw ValueError({.op = "from_dlpack",
                        .expected = "a contiguous row-major tensor",
                        .given = "other strides",
                        .fix = "make the tensor contiguous before sharing it"});
  return shape;
}

Device device_of(const DLDevice& given) {
  if (given.device_type == kCpu || given.device_type == kCudaHost) return {};
  if (given.device_type == kCuda) return {DeviceType::kGPU, given.device_id};
  throw UnsupportedError({.op = "from_dlpack",
                          .expected = "a tensor in memory of the CPU or of CUDA",
                          .given = "DLPack device type " + std::to_string(given.device_type),
                          .fix = "copy the tensor to the CPU first"});
}

}  // namespace

DLManagedTensor* export_array(const NDArray& array) {
  auto exported = std::make_unique<Exported>(array);
  exported->shape.assign(array.shape().begin(), array.shape().end());
  exported->strides = row_major_strides(array.shape());
  DLTensor& t = exported->managed.dl_tensor;
  const DLDevice device = array.is_on_gpu() ? DLDevice{kCuda, array.device().id} : DLDevice{kCpu, 0};
  t = {array.data(), device, array.ndim(), {}, exported->shape.data(), exported->strides.data(), 0};
  for (const TypeRow& row : kTypes)
    if (row.dtype == array.dtype()) t.dtype = row.dl;
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = delete_exported;
  return &exported.release()->managed;
}

NDArray import_array(const DLTensor& tensor, std::function<void()> release) {
  const Device device = device_of(tensor.device);
  const TensorSpec spec{checked_shape(tensor), dtype_of(tensor.dtype)};
  return import_memory(static_cast<char*>(tensor.data) + tensor.byte_offset, spec, std::move(release), device);
}

NDArray import_memory(void* data, const TensorSpec& spec, std::function<void()> release, Device device) {
  if (device.type != DeviceType::kGPU) return NDArray::from_memory(data, spec, std::move(release));
  device::Stream& stream = device::Stream::of(device);  // throws if there is no such device
  const NDArray array = NDArray::from_memory(data, spec, std::move(release), device);
  device::StreamUse* const uses[] = {array.impl()->chunk->block.use};
  stream.end({}, uses);
  return array;
}

}  // namespace hybridnet::dlpack
