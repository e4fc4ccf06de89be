// Sparse arrays in C and C++: creation from parts, access to parts, use by operators, and errors for wrong indices.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "hybridnet/c_api.h"
#include "hybridnet/cpp/array.h"

namespace {

using hybridnet::cpp::Array;

Array int64s(const std::vector<int64_t>& values) {
  return Array::from<int64_t>({static_cast<int64_t>(values.size())}, values);
}

std::vector<float> dense_values(const Array& array) { return array.to_dense().to_vector<float>(); }

// Returns the kind of the error that f throws, and checks that its text contains `words`.
template <typename F>
std::string refusal(const F& f, const std::string& words) {
  try {
    f();
  } catch (const hybridnet::cpp::Error& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    return error.kind();
  }
  return "nothing";
}

TEST(CSparse, RowsMakeAnArrayInAscendingOrderAndRepeatedOnesAreSummed) {
  const Array data = Array::from<float>({3, 2}, {1, 2, 3, 4, 10, 20});
  const Array a = Array::row_sparse({4, 2}, data, int64s({3, 0, 3}));
  EXPECT_EQ(a.storage(), "row_sparse");
  EXPECT_EQ(a.shape(), (hybridnet::cpp::Shape{4, 2}));
  EXPECT_EQ(a.part("indices").to_vector<int64_t>(), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(a.part("data").to_vector<float>(), (std::vector<float>{3, 4, 11, 22}));
  EXPECT_EQ(dense_values(a), (std::vector<float>{3, 4, 0, 0, 0, 0, 11, 22}));
  std::vector<float> copied(8);
  EXPECT_EQ(hn_array_copy_to(a.get(), copied.data(), 32), 0) << hn_last_error();
  EXPECT_EQ(copied, dense_values(a));
}

TEST(CSparse, AMatrixInCompressedRowsHasThreeParts) {
  const Array a = Array::csr({3, 4}, Array::from<float>({3}, {5, 6, 7}), int64s({1, 3, 0}), int64s({0, 2, 2, 3}));
  EXPECT_EQ(a.storage(), "csr");
  EXPECT_EQ(a.part("indptr").to_vector<int64_t>(), (std::vector<int64_t>{0, 2, 2, 3}));
  EXPECT_EQ(dense_values(a), (std::vector<float>{0, 5, 0, 6, 0, 0, 0, 0, 7, 0, 0, 0}));
  const Array back = a.to_dense().cast_storage("csr");
  EXPECT_EQ(back.part("indices").to_vector<int64_t>(), (std::vector<int64_t>{1, 3, 0}));
  const Array product = hybridnet::cpp::invoke("dot", {a, Array::from<float>({4, 1}, {1, 2, 3, 4})});
  EXPECT_EQ(product.to_vector<float>(), (std::vector<float>{34, 0, 7}));
}

TEST(CSparse, EmptyArraysHaveEmptyParts) {
  const Array rows = Array::row_sparse({4, 2}, Array::zeros({0, 2}), Array::zeros({0}, HN_INT64));
  EXPECT_EQ(rows.part("data").shape(), (hybridnet::cpp::Shape{0, 2}));
  EXPECT_EQ(dense_values(rows), std::vector<float>(8));
  const Array none = Array::csr({0, 3}, Array::zeros({0}), Array::zeros({0}, HN_INT64), int64s({0}));
  EXPECT_EQ(none.to_dense().size(), 0);
}

TEST(CSparse, IndicesCannotBeMadeWrongLater) {
  const Array indices = int64s({0, 2});
  const Array a = Array::row_sparse({3, 1}, Array::from<float>({2, 1}, {1, 2}), indices);
  indices.copy_from(std::vector<int64_t>{1 << 20, -7});
  a.part("indices").copy_from(std::vector<int64_t>{1 << 20, -7});
  EXPECT_EQ(dense_values(a), (std::vector<float>{1, 0, 2}));
}

TEST(CSparse, PartsThatDoNotFitAreNamed) {
  const Array two = Array::from<float>({2, 1}, {1, 2});
  EXPECT_EQ(refusal([&] { Array::row_sparse({3, 1}, two, int64s({0, 3})); }, "0 to 2"), "FormatError");
  EXPECT_EQ(refusal([&] { Array::row_sparse({3, 1}, two, int64s({0, -1})); }, "-1"), "FormatError");
  EXPECT_EQ(refusal([&] { Array::row_sparse({3, 1}, two, int64s({0})); }, "data"), "ShapeError");
  EXPECT_EQ(refusal([&] { Array::row_sparse({3, 1}, two, two); }, "indices"), "DTypeError");
  EXPECT_EQ(refusal([&] { Array::row_sparse({}, two, int64s({0, 1})); }, "at least one axis"), "ShapeError");
  const Array values = Array::from<float>({2}, {1, 2});
  EXPECT_EQ(refusal([&] { Array::csr({2, 2}, values, int64s({0, 1}), int64s({0, 2, 1})); }, "indptr"), "FormatError");
  EXPECT_EQ(refusal([&] { Array::csr({2, 2}, values, int64s({0, 2}), int64s({0, 1, 2})); }, "0 to 1"), "FormatError");
  EXPECT_EQ(refusal([&] { Array::csr({2, 2}, values, int64s({0, 1}), int64s({0, 2})); }, "indptr"), "ShapeError");
  EXPECT_EQ(refusal([&] { Array::csr({2, 2, 1}, values, int64s({0, 1}), int64s({0, 1, 2})); }, "matrix"), "ShapeError");
  const Array sparse = Array::row_sparse({3, 1}, two, int64s({0, 1}));
  EXPECT_EQ(refusal([&] { Array::row_sparse({3, 1}, sparse, int64s({0, 1, 2})); }, "data"), "UnsupportedError");
  EXPECT_EQ(refusal([&] { sparse.part("indptr"); }, "'data' or 'indices'"), "ValueError");
}

TEST(CSparse, WhatNeedsADenseArraySaysHowToGetOne) {
  const Array a = Array::row_sparse({2, 1}, Array::from<float>({1, 1}, {7}), int64s({1}));
  const std::string fix = "hn_array_cast_storage";
  EXPECT_EQ(refusal([&] { a.values<float>(); }, fix), "UnsupportedError");
  EXPECT_EQ(refusal([&] { a.to_dlpack(); }, fix), "UnsupportedError");
  EXPECT_EQ(refusal([&] { a.reshape({2}); }, fix), "UnsupportedError");
  EXPECT_EQ(refusal([&] { a.slice(0, 1); }, fix), "UnsupportedError");
  EXPECT_EQ(refusal([&] { Array::zeros({2}).part("data"); }, fix), "TypeError");
}

TEST(CSparse, DenseValuesAreWrittenIntoSparseArrays) {
  const Array a = Array::row_sparse({3, 1}, Array::from<float>({1, 1}, {7}), int64s({1}));
  const std::vector<float> values = {0, 0, 9};
  EXPECT_EQ(hn_array_copy_from(a.get(), values.data(), 12), 0) << hn_last_error();
  EXPECT_EQ(a.part("indices").to_vector<int64_t>(), (std::vector<int64_t>{2}));
  EXPECT_EQ(dense_values(a), values);
  const Array other = Array::zeros({3, 1});
  hybridnet::cpp::invoke("_copy", {other}, {}, hybridnet::cpp::into(a));
  EXPECT_EQ(dense_values(a), (std::vector<float>(3)));
}

TEST(CSparse, FilesKeepTheStorage) {
  const std::string path = testing::TempDir() + "c_sparse_" + std::to_string(getpid()) + ".params";
  const Array rows =
      Array::row_sparse({1'000'000'000, 3}, Array::from<float>({1, 3}, {1, 2, 3}), int64s({999'999'999}));
  const Array matrix = Array::csr({2, 2}, Array::from<float>({1}, {4}), int64s({1}), int64s({0, 0, 1}));
  hybridnet::cpp::save_arrays(path, {{"rows", rows}, {"matrix", matrix}, {"dense", Array::zeros({2})}});
  const auto loaded = hybridnet::cpp::load_arrays(path);
  std::remove(path.c_str());
  ASSERT_EQ(loaded.size(), 3u);
  EXPECT_EQ(loaded[0].second.storage(), "row_sparse");
  EXPECT_EQ(loaded[0].second.shape(), rows.shape());
  EXPECT_EQ(loaded[0].second.part("indices").to_vector<int64_t>(), (std::vector<int64_t>{999'999'999}));
  EXPECT_EQ(loaded[1].second.storage(), "csr");
  EXPECT_EQ(dense_values(loaded[1].second), (std::vector<float>{0, 0, 0, 4}));
  EXPECT_FALSE(loaded[2].second.is_sparse());
}

TEST(CSparse, AGradientOfATableKeepsTheRowsThatWereRead) {
  const Array table = Array::from<float>({5, 2}, std::vector<float>(10, 1));
  table.attach_grad("write", "row_sparse");
  EXPECT_EQ(table.grad().part("indices").size(), 0);
  hn_autograd_set_recording(1, nullptr);
  const Array out = hybridnet::cpp::invoke("Embedding", {Array::from<float>({3}, {4, 1, 4}), table},
                                           {{"input_dim", 5}, {"output_dim", 2}, {"sparse_grad", true}});
  hn_autograd_set_recording(0, nullptr);
  out.backward();
  EXPECT_EQ(table.grad().storage(), "row_sparse");
  EXPECT_EQ(table.grad().part("indices").to_vector<int64_t>(), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(table.grad().part("data").to_vector<float>(), (std::vector<float>{1, 1, 2, 2}));
}

}  // namespace
