#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "hybridnet/ndarray.h"
#include "hybridnet/runtime.h"

namespace hybridnet {
namespace {

class SaveLoad : public testing::Test {
 protected:
  void SetUp() override { Runtime::get(); }
};

NDArray filled(const Shape& shape, DType dtype, uint8_t start) {
  NDArray a = NDArray::empty(shape, dtype);
  std::vector<uint8_t> bytes(static_cast<size_t>(a.bytes()));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(start + i);
  a.copy_from(bytes.data());
  return a;
}

std::vector<uint8_t> bytes_of(const NDArray& a) {
  std::vector<uint8_t> bytes(static_cast<size_t>(a.bytes()));
  a.copy_to(bytes.data());
  return bytes;
}

TEST_F(SaveLoad, EveryDtypeAndShapeComesBackBitByBit) {
  std::vector<NDArray> arrays;
  std::vector<std::string> names;
  for (int code = 0; code < kDTypeCodes; ++code) {
    if (!dtype_valid_code(code)) continue;
    for (const Shape& shape : {Shape{2, 3}, Shape{1}, Shape::scalar(), Shape{0, 4}}) {
      arrays.push_back(filled(shape, static_cast<DType>(code), static_cast<uint8_t>(code)));
      names.push_back("arg:w" + std::to_string(names.size()) + " \xC3\xA9");
    }
  }
  const std::string bytes = save_arrays_to_buffer(arrays, names, false);
  const LoadedArrays loaded = load_arrays_from_buffer(bytes, "memory");
  ASSERT_EQ(loaded.names, names);
  for (size_t i = 0; i < arrays.size(); ++i) {
    EXPECT_EQ(loaded.arrays[i].spec(), arrays[i].spec());
    EXPECT_EQ(bytes_of(loaded.arrays[i]), bytes_of(arrays[i]));
  }
}

TEST_F(SaveLoad, TheBytesAreThoseOfTheWorkedExample) {
  NDArray w = NDArray::empty({1, 3}, DType::kFloat32), m = NDArray::empty({1}, DType::kInt32);
  const float values[] = {1, 2, 3};
  const int32_t seven = 7;
  w.copy_from(values);
  m.copy_from(&seven);
  const std::string bytes = save_arrays_to_buffer({w, m}, {"arg:w", "aux:m"}, false);
  EXPECT_EQ(bytes.size(), 146u);
  EXPECT_EQ(bytes.substr(0, 4), std::string("\x12\x01\x00\x00", 4));
  EXPECT_EQ(bytes.substr(24, 4), std::string("\xc9\xfa\x93\xf9", 4));
}

TEST_F(SaveLoad, EveryTruncationIsAnErrorThatSaysWhere) {
  const std::string bytes =
      save_arrays_to_buffer({filled({3, 2}, DType::kFloat32, 1), filled({2}, DType::kInt8, 2)}, {"a", "b"}, false);
  for (size_t length = 0; length < bytes.size(); ++length) {
    try {
      load_arrays_from_buffer(bytes.substr(0, length), "cut.params");
      FAIL() << "a file cut to " << length << " bytes was accepted";
    } catch (const FormatError& error) {
      EXPECT_NE(std::string(error.what()).find("cut.params"), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("at byte"), std::string::npos);
    }
  }
}

TEST_F(SaveLoad, AnyChangedBytesEndInAValueOrAnError) {
  const std::string bytes =
      save_arrays_to_buffer({filled({3, 2}, DType::kFloat32, 1), filled({2}, DType::kInt8, 2)}, {"a", "b"}, false);
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = bytes;
    for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      load_arrays_from_buffer(damaged, "damaged");
    } catch (const Error&) {
    }
  }
}

TEST_F(SaveLoad, AnImpossibleSizeIsRejectedBeforeMemoryIsTaken) {
  std::string bytes = save_arrays_to_buffer({filled({3, 2}, DType::kFloat32, 1)}, {}, false);
  const int64_t huge = int64_t{1} << 60;
  std::memcpy(&bytes[24 + 12], &huge, sizeof(huge));
  const int64_t before = storage({}).statistics().in_use;
  EXPECT_THROW(load_arrays_from_buffer(bytes, "huge"), FormatError);
  EXPECT_EQ(storage({}).statistics().in_use, before);
}

TEST_F(SaveLoad, AFailedSaveLeavesTheOldFile) {
  const auto folder = std::filesystem::temp_directory_path() / "hybridnet_save_test";
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "a.params").string();
  save_arrays(path, {filled({2}, DType::kFloat32, 1)}, {"x"}, false);
  EXPECT_THROW(save_arrays(path, {filled({2}, DType::kFloat32, 9)}, {"x", "y"}, false), ValueError);
  EXPECT_EQ(load_arrays(path).names, std::vector<std::string>{"x"});
  EXPECT_THROW(save_arrays((folder / "no" / "such.params").string(), {}, {}, false), FileError);
  EXPECT_THROW(load_arrays((folder / "missing.params").string()), FileError);
  std::filesystem::remove_all(folder);
}

class Mapped : public SaveLoad {
 protected:
  void SetUp() override {
    SaveLoad::SetUp();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  // Saves an array of 256 KiB, a small one, and one whose file offset is no multiple of its element size.
  std::vector<NDArray> save() {
    std::vector<NDArray> arrays = {filled({256, 256}, DType::kFloat32, 1), filled({3}, DType::kUInt8, 7),
                                   filled({256, 256}, DType::kFloat32, 5)};
    save_arrays(path_, arrays, {"large", "odd", "behind"}, false);
    return arrays;
  }
  int64_t in_use() { return storage({}).statistics().in_use; }

  const std::filesystem::path folder_ = std::filesystem::temp_directory_path() / "hybridnet_mapped_test";
  const std::string path_ = (folder_ / "a.params").string();
};

TEST_F(Mapped, LargeArraysAreThoseOfTheFileAndTakeNoMemory) {
  const std::vector<NDArray> saved = save();
  const int64_t before = in_use();
  const LoadedArrays loaded = load_arrays(path_, true);
  ASSERT_EQ(loaded.arrays.size(), saved.size());
  EXPECT_TRUE(loaded.arrays[0].impl()->chunk->mapping);
  EXPECT_FALSE(loaded.arrays[1].impl()->chunk->mapping);
  EXPECT_FALSE(loaded.arrays[2].impl()->chunk->mapping);  // three bytes precede it
  EXPECT_LT(in_use() - before, 256 * 1024 + 8192);
  for (size_t i = 0; i < saved.size(); ++i) EXPECT_EQ(bytes_of(loaded.arrays[i]), bytes_of(saved[i]));
}

TEST_F(Mapped, WritesStayInTheProcess) {
  const std::vector<NDArray> saved = save();
  const NDArray array = load_arrays(path_, true).arrays[0];
  const std::vector<uint8_t> zeros(static_cast<size_t>(array.bytes()), 0);
  array.copy_from(zeros.data());
  EXPECT_EQ(bytes_of(array), zeros);
  EXPECT_EQ(bytes_of(load_arrays(path_).arrays[0]), bytes_of(saved[0]));
}

TEST_F(Mapped, PagesThatWereDroppedAreReadAgainUnlessTheyWereWritten) {
  const std::vector<NDArray> saved = save();
  const NDArray array = load_arrays(path_, true).arrays[0];
  DerivedData& derived = *array.impl()->chunk->derived();
  derived.drop_pages();
  EXPECT_EQ(bytes_of(array), bytes_of(saved[0]));
  const std::vector<uint8_t> zeros(static_cast<size_t>(array.bytes()), 0);
  array.copy_from(zeros.data());
  derived.drop_pages();
  EXPECT_EQ(bytes_of(array), zeros);
}

TEST_F(Mapped, CodeOutsideTheEngineMayWriteWhatItWasGiven) {
  save();
  const NDArray array = load_arrays(path_, true).arrays[0];
  DerivedData& derived = *array.impl()->chunk->derived();
  derived.keep_pages();
  std::memset(array.data(), 3, static_cast<size_t>(array.bytes()));
  derived.drop_pages();
  EXPECT_EQ(bytes_of(array), std::vector<uint8_t>(static_cast<size_t>(array.bytes()), 3));
}

TEST_F(Mapped, TheFileMayBeReplacedOrDeleted) {
  const std::vector<NDArray> saved = save();
  const NDArray array = load_arrays(path_, true).arrays[0];
  save_arrays(path_, {filled({256, 256}, DType::kFloat32, 99)}, {"large"}, false);
  std::filesystem::remove(path_);
  array.impl()->chunk->derived()->drop_pages();
  EXPECT_EQ(bytes_of(array), bytes_of(saved[0]));
}

TEST_F(Mapped, ADamagedFileIsTheErrorThatReadingItIs) {
  save();
  const auto size = std::filesystem::file_size(path_);
  for (const uintmax_t kept : {uintmax_t{0}, uintmax_t{10}, size / 2, size - 1}) {
    std::filesystem::resize_file(path_, kept);
    std::string mapped, read;
    try {
      load_arrays(path_, true);
    } catch (const FormatError& error) {
      mapped = error.what();
    }
    try {
      load_arrays(path_);
    } catch (const FormatError& error) {
      read = error.what();
    }
    EXPECT_EQ(mapped, read);
    EXPECT_NE(mapped, "");
    save();
  }
}

TEST_F(SaveLoad, DeferredZerosTakeMemoryWhenTheyAreFirstUsed) {
  const int64_t before = storage({}).statistics().in_use;
  const NDArray zeros = NDArray::deferred_zeros({Shape{1024, 1024}, DType::kFloat32});
  const NDArray row = zeros.at(3);
  EXPECT_EQ(storage({}).statistics().in_use, before);
  EXPECT_TRUE(zeros.impl()->chunk->is_untouched());
  EXPECT_EQ(bytes_of(row), std::vector<uint8_t>(4096, 0));
  EXPECT_FALSE(zeros.impl()->chunk->is_untouched());
  EXPECT_EQ(bytes_of(zeros), std::vector<uint8_t>(size_t{1} << 22, 0));
  EXPECT_EQ(NDArray::deferred_zeros({Shape{0, 4}, DType::kFloat32}).size(), 0);
}

TEST_F(SaveLoad, ViewsShareMemoryAndKnowTheirBounds) {
  NDArray a = filled({4, 3}, DType::kUInt8, 0);
  NDArray row = a.at(-1), middle = a.sliced(1, 3);
  EXPECT_EQ(bytes_of(row), (std::vector<uint8_t>{9, 10, 11}));
  EXPECT_EQ(middle.shape(), (Shape{2, 3}));
  const std::vector<uint8_t> zeros(3, 0);
  row.copy_from(zeros.data());
  EXPECT_EQ(bytes_of(a)[9], 0);
  EXPECT_THROW(a.at(4), IndexError);
  EXPECT_THROW(a.sliced(3, 5), IndexError);
  EXPECT_THROW(a.reshaped({5}), ShapeError);
  EXPECT_THROW(NDArray::empty(Shape::scalar(), DType::kInt8).at(0), IndexError);
}

}  // namespace
}  // namespace hybridnet
