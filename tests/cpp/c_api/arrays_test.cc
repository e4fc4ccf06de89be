#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "hybridnet/c_api.h"
#include "ndarray/dlpack.h"

namespace {

#define EXPECT_OK(call) EXPECT_EQ(call, 0) << hn_last_error()

HnArray make(const std::vector<int64_t>& shape, const std::vector<float>& values) {
  HnArray array = nullptr;
  EXPECT_OK(hn_array_create(shape.data(), static_cast<int>(shape.size()), HN_FLOAT32, values.data(), &array));
  return array;
}

std::vector<float> values_of(HnArray array) {
  int64_t size = 0;
  EXPECT_OK(hn_array_size(array, &size));
  std::vector<float> values(static_cast<size_t>(size));
  EXPECT_OK(hn_array_copy_to(array, values.data(), values.size() * sizeof(float)));
  return values;
}

TEST(CArrays, EveryDtypeAndShapeGoesInAndOut) {
  const struct {
    int dtype;
    size_t bytes;
    const char* name;
  } kTypes[] = {{HN_FLOAT32, 4, "float32"}, {HN_FLOAT64, 8, "float64"}, {HN_FLOAT16, 2, "float16"},
                {HN_UINT8, 1, "uint8"},     {HN_INT32, 4, "int32"},     {HN_INT8, 1, "int8"},
                {HN_INT64, 8, "int64"},     {HN_BOOL, 1, "bool"},       {HN_BFLOAT16, 2, "bfloat16"}};
  const std::vector<std::vector<int64_t>> shapes = {{}, {1}, {5}, {2, 0, 3}, {2, 3, 4}, {1, 1, 1, 1, 7}};
  for (const auto& type : kTypes) {
    for (const auto& shape : shapes) {
      int64_t size = 1;
      for (const int64_t s : shape) size *= s;
      std::vector<unsigned char> bytes(static_cast<size_t>(size) * type.bytes), back(bytes.size(), 9);
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i % 2);
      HnArray array = nullptr;
      ASSERT_EQ(hn_array_create(shape.data(), static_cast<int>(shape.size()), type.dtype, bytes.data(), &array), 0)
          << hn_last_error();
      size_t element = 0;
      EXPECT_OK(hn_dtype_size(type.dtype, &element));
      EXPECT_EQ(element, type.bytes);
      EXPECT_STREQ(hn_dtype_name(type.dtype), type.name);
      int ndim = -1, dtype = -1, device = 0, id = -1;
      int64_t count = -1;
      const char* storage = nullptr;
      EXPECT_OK(hn_array_ndim(array, &ndim));
      EXPECT_OK(hn_array_dtype(array, &dtype));
      EXPECT_OK(hn_array_size(array, &count));
      EXPECT_OK(hn_array_device(array, &device, &id));
      EXPECT_OK(hn_array_storage(array, &storage));
      EXPECT_EQ(ndim, static_cast<int>(shape.size()));
      EXPECT_EQ(dtype, type.dtype);
      EXPECT_EQ(count, size);
      EXPECT_EQ(device, 1);
      EXPECT_EQ(id, 0);
      EXPECT_STREQ(storage, "default");
      EXPECT_OK(hn_array_copy_to(array, back.data(), back.size()));
      EXPECT_EQ(back, bytes);
      EXPECT_OK(hn_array_copy_from(array, back.data(), back.size()));
      EXPECT_OK(hn_array_free(array));
    }
  }
}

TEST(CArrays, CodesOfNoDtypeHaveNoName) {
  for (const int code : {-1, 8, 11, 13, 99}) EXPECT_EQ(hn_dtype_name(code), nullptr) << code;
}

TEST(CArrays, WrappedMemoryIsSharedAndReleasedByTheLastView) {
  float memory[] = {1, 2, 3, 4};
  int released = 0;
  const int64_t shape[] = {2, 2};
  HnArray array = nullptr, row = nullptr;
  EXPECT_OK(hn_array_wrap(
      memory, shape, 2, HN_FLOAT32, [](void* count) { ++*static_cast<int*>(count); }, &released, &array));
  EXPECT_OK(hn_array_slice(array, 1, 2, &row));
  memory[3] = 7;
  EXPECT_EQ(values_of(row), (std::vector<float>{3, 7}));
  const float changed[] = {8, 9};
  EXPECT_OK(hn_array_copy_from(row, changed, sizeof changed));
  EXPECT_EQ(memory[2], 8);
  const void* data = nullptr;
  EXPECT_OK(hn_array_data(array, &data));
  EXPECT_EQ(data, memory);
  EXPECT_OK(hn_array_free(array));
  EXPECT_EQ(released, 0);
  EXPECT_OK(hn_array_free(row));
  EXPECT_EQ(released, 1);
}

TEST(CArrays, ViewsShareMemoryAndCopiesDoNot) {
  HnArray array = make({2, 3}, {1, 2, 3, 4, 5, 6}), flat = nullptr, copy = nullptr, same = nullptr;
  const int64_t six[] = {6}, five[] = {5};
  EXPECT_OK(hn_array_reshape(array, six, 1, &flat));
  EXPECT_OK(hn_array_copy(array, &copy));
  EXPECT_OK(hn_array_share(array, &same));
  EXPECT_EQ(hn_array_reshape(array, five, 1, &flat), -1);
  EXPECT_STREQ(hn_last_error_kind(), "ShapeError");
  HnArray none = nullptr;
  EXPECT_EQ(hn_array_slice(array, 1, 5, &none), -1);
  EXPECT_EQ(none, nullptr);
  const float nines[] = {9, 9, 9, 9, 9, 9};
  EXPECT_OK(hn_array_copy_from(flat, nines, sizeof nines));
  EXPECT_EQ(values_of(array), std::vector<float>(6, 9));
  EXPECT_EQ(values_of(same), std::vector<float>(6, 9));
  EXPECT_EQ(values_of(copy), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  for (HnArray each : {array, flat, copy, same}) EXPECT_OK(hn_array_free(each));
}

TEST(CArrays, DlpackSharesMemoryBothWays) {
  HnArray array = make({2, 2}, {1, 2, 3, 4}), back = nullptr;
  void* managed = nullptr;
  EXPECT_OK(hn_array_to_dlpack(array, &managed));
  const auto& tensor = static_cast<hybridnet::dlpack::DLManagedTensor*>(managed)->dl_tensor;
  EXPECT_EQ(tensor.ndim, 2);
  EXPECT_EQ(tensor.strides[0], 2);
  static_cast<float*>(tensor.data)[3] = 40;
  EXPECT_OK(hn_array_free(array));
  EXPECT_OK(hn_array_from_dlpack(managed, &back));
  EXPECT_EQ(values_of(back), (std::vector<float>{1, 2, 3, 40}));
  EXPECT_OK(hn_array_free(back));  // calls the deleter, which the leak checker verifies
}

TEST(CArrays, AFileIsReadFromDiskAndFromMemory) {
  const std::string path = testing::TempDir() + "c_arrays_test.params";
  const HnArray arrays[] = {make({2}, {1, 2}), make({1, 2}, {3, 4})};
  const char* const names[] = {"a", "b"};
  EXPECT_OK(hn_arrays_save(path.c_str(), 2, arrays, names));
  std::FILE* file = std::fopen(path.c_str(), "rb");
  std::string bytes(4096, '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  for (const bool from_memory : {false, true}) {
    size_t count = 0;
    HnArray* loaded = nullptr;
    const char** texts = nullptr;
    if (from_memory) {
      EXPECT_OK(hn_arrays_load_from_memory(bytes.data(), bytes.size(), &count, &loaded, &texts));
    } else {
      EXPECT_OK(hn_arrays_load(path.c_str(), &count, &loaded, &texts));
    }
    ASSERT_EQ(count, 2u);
    EXPECT_STREQ(texts[1], "b");
    EXPECT_EQ(values_of(loaded[1]), (std::vector<float>{3, 4}));
    EXPECT_OK(hn_arrays_free(count, loaded, texts));
  }
  std::remove(path.c_str());
  for (HnArray each : arrays) EXPECT_OK(hn_array_free(each));
}

}  // namespace
