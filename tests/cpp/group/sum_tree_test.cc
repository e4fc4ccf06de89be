#include "group/sum_tree.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace hybridnet::group {
namespace {

using Values = std::vector<float>;

// The tree, written as its definition.
Values reference(const std::vector<Values>& leaves, int begin, int end) {
  if (end - begin == 1) return leaves[static_cast<size_t>(begin)];
  int half = 1;
  while (2 * half < end - begin) half *= 2;
  Values sum = reference(leaves, begin, begin + half);
  const Values right = reference(leaves, begin + half, end);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

std::vector<Values> random_leaves(int shards, int64_t count) {
  std::mt19937 random(static_cast<unsigned>(shards * 1000 + count));
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<Values> leaves(static_cast<size_t>(shards), Values(static_cast<size_t>(count)));
  for (Values& leaf : leaves)
    for (float& value : leaf) value = std::ldexp(uniform(random), static_cast<int>(random() % 20));
  return leaves;
}

// Adds as `processes` processes do: each adds its own shards, and the nodes of all are added at the end.
Values sum_of(const std::vector<Values>& leaves, int processes) {
  const int shards = static_cast<int>(leaves.size());
  const size_t count = leaves[0].size();
  std::vector<Values> memory;
  std::vector<Shards> spans;
  for (int rank = 0; rank < processes; ++rank) {
    for (const Shards& node : covering_nodes(shards_of(rank, processes, shards), shards)) {
      memory.push_back(reference(leaves, node.begin, node.end));
      spans.push_back(node);
    }
  }
  std::vector<Row> rows;
  for (size_t i = 0; i < memory.size(); ++i) rows.push_back({spans[i], memory[i].data()});
  Values out(count);
  add_tree(DType::kFloat32, rows, static_cast<int64_t>(count), out.data());
  return out;
}

TEST(SumTree, HasTheSameBitsForEveryNumberOfProcesses) {
  for (int shards : {1, 2, 3, 4, 5, 7, 8, 12, 16, 33}) {
    for (int64_t count : {0, 1, 5, 4095, 4096, 4097, 10'000}) {
      const std::vector<Values> leaves = random_leaves(shards, count);
      const Values expected = reference(leaves, 0, shards);
      for (int processes = 1; processes <= shards; ++processes)
        EXPECT_EQ(sum_of(leaves, processes), expected) << shards << " shards, " << processes << " processes";
    }
  }
}

TEST(SumTree, CoversTheShardsOfAProcessByTheFewestNodes) {
  EXPECT_EQ(covering_nodes({0, 4}, 4), (std::vector<Shards>{{0, 4}}));
  EXPECT_EQ(covering_nodes({0, 2}, 4), (std::vector<Shards>{{0, 2}}));
  EXPECT_EQ(covering_nodes({1, 3}, 4), (std::vector<Shards>{{1, 2}, {2, 3}}));
  EXPECT_EQ(covering_nodes({3, 6}, 8), (std::vector<Shards>{{3, 4}, {4, 6}}));
  EXPECT_TRUE(covering_nodes({2, 2}, 4).empty());
}

TEST(SumTree, GivesEachProcessAtLeastOneShard) {
  for (int processes = 1; processes <= 9; ++processes) {
    for (int shards = processes; shards <= 20; ++shards) {
      int next = 0;
      for (int rank = 0; rank < processes; ++rank) {
        const Shards own = shards_of(rank, processes, shards);
        EXPECT_EQ(own.begin, next);
        EXPECT_GT(own.end, own.begin);
        next = own.end;
      }
      EXPECT_EQ(next, shards);
    }
  }
}

template <typename T>
std::vector<T> sum_two(DType dtype, std::vector<T> a, const std::vector<T>& b) {
  const Row rows[] = {{{0, 1}, a.data()}, {{1, 2}, b.data()}};
  add_tree(dtype, rows, static_cast<int64_t>(a.size()), a.data());  // in place
  return a;
}

TEST(SumTree, AddsEveryDType) {
  EXPECT_EQ(sum_two<double>(DType::kFloat64, {0.1, 1e300}, {0.2, 1e300}), (std::vector<double>{0.1 + 0.2, 2e300}));
  EXPECT_EQ(sum_two<int32_t>(DType::kInt32, {INT32_MAX, -5}, {1, 5}), (std::vector<int32_t>{INT32_MIN, 0}));
  EXPECT_EQ(sum_two<int64_t>(DType::kInt64, {1LL << 60}, {1LL << 60}), (std::vector<int64_t>{1LL << 61}));
  EXPECT_EQ(sum_two<uint8_t>(DType::kUInt8, {250}, {10}), (std::vector<uint8_t>{4}));
  EXPECT_EQ(sum_two<int8_t>(DType::kInt8, {100}, {100}), (std::vector<int8_t>{-56}));
  const auto half = sum_two<float16>(DType::kFloat16, {float16(1.0f)}, {float16(0x1p-11f)});
  EXPECT_EQ(static_cast<float>(half[0]), 1.0f);  // rounded to even
  const auto brain = sum_two<bfloat16>(DType::kBFloat16, {bfloat16(1.0f)}, {bfloat16(0.5f)});
  EXPECT_EQ(static_cast<float>(brain[0]), 1.5f);
  bool flags[] = {true, false}, others[] = {false, false};
  const Row rows[] = {{{0, 1}, flags}, {{1, 2}, others}};
  add_tree(DType::kBool, rows, 2, flags);
  EXPECT_TRUE(flags[0]);
  EXPECT_FALSE(flags[1]);
}

TEST(SumTree, KeepsSpecialValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto sum = sum_two<float>(DType::kFloat32, {NAN, kInfinity, -kInfinity, kInfinity, -0.0f},
                                  {1.0f, 1.0f, 1.0f, -kInfinity, -0.0f});
  EXPECT_TRUE(std::isnan(sum[0]));
  EXPECT_EQ(sum[1], kInfinity);
  EXPECT_EQ(sum[2], -kInfinity);
  EXPECT_TRUE(std::isnan(sum[3]));
  EXPECT_TRUE(std::signbit(sum[4]));
}

}  // namespace
}  // namespace hybridnet::group
