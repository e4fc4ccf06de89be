#include "group/sum_tree.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <type_traits>

namespace hybridnet::group {
namespace {

constexpr int64_t kBlockBytes = 1 << 14;  // so that the nodes of a block stay in the first cache

// The child nodes of a node are [begin, middle) and [middle, end): the first has a power of two of shards.
int middle_of(Shards node) {
  return node.begin + static_cast<int>(std::bit_floor(static_cast<unsigned>(node.end - node.begin - 1)));
}

void cover(Shards node, Shards own, std::vector<Shards>& nodes) {
  if (node.end <= own.begin || own.end <= node.begin) return;
  if (own.begin <= node.begin && node.end <= own.end) return nodes.push_back(node);
  const int middle = middle_of(node);
  cover({node.begin, middle}, own, nodes);
  cover({middle, node.end}, own, nodes);
}

template <typename T>
void add(const T* a, const T* b, T* out, int64_t count) {
  using Wide = std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, bool>) {
      out[i] = a[i] || b[i];
    } else if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;  // wraps around
      out[i] = static_cast<T>(static_cast<Unsigned>(a[i]) + static_cast<Unsigned>(b[i]));
    } else {
      out[i] = static_cast<T>(static_cast<Wide>(a[i]) + static_cast<Wide>(b[i]));
    }
  }
}

// Adds blocks of elements of all rows.
template <typename T>
class BlockTree {
 public:
  BlockTree(std::span<const Row> rows, int64_t block)
      : rows_(rows), block_(block), memory_(new T[static_cast<size_t>(block) * kMaxBuffers]) {}

  void add_block(int64_t begin, int64_t count, T* out) {
    begin_ = begin;
    count_ = count;
    next_ = 0;
    out_ = out;
    buffers_ = 0;
    const T* sum = values_of({rows_.front().shards.begin, rows_.back().shards.end}, /*is_root=*/true).values;
    if (sum != out) std::copy_n(sum, count, out);
  }

 private:
  static constexpr int kMaxBuffers = 34;  // the tree of 2^31 shards needs one for each level, and one more

  struct Values {
    const T* values = nullptr;
    T* buffer = nullptr;  // the memory of the values; null: a part of a row
  };

  Values values_of(Shards node, bool is_root = false) {
    if (rows_[next_].shards == node) return {static_cast<const T*>(rows_[next_++].values) + begin_, nullptr};
    const int middle = middle_of(node);
    const Values left = values_of({node.begin, middle});
    const Values right = values_of({middle, node.end});
    if (left.buffer != nullptr && right.buffer != nullptr) --buffers_;  // that of the right child is the last one
    T* buffer = left.buffer != nullptr ? left.buffer : right.buffer;
    if (is_root) {
      buffer = out_;
    } else if (buffer == nullptr) {
      buffer = memory_.get() + static_cast<size_t>(block_) * static_cast<size_t>(buffers_++);
    }
    add(left.values, right.values, buffer, count_);
    return {buffer, buffer};
  }

  const std::span<const Row> rows_;
  const int64_t block_;
  const std::unique_ptr<T[]> memory_;
  int64_t begin_ = 0, count_ = 0;
  size_t next_ = 0;  // row
  T* out_ = nullptr;
  int buffers_ = 0;  // in use
};

template <typename T>
void add_all(std::span<const Row> rows, int64_t count, T* out) {
  const auto block = static_cast<int64_t>(kBlockBytes / sizeof(T));
  BlockTree<T> tree(rows, std::min(block, std::max<int64_t>(count, 1)));
  for (int64_t begin = 0; begin < count; begin += block)
    tree.add_block(begin, std::min(block, count - begin), out + begin);
}

}  // namespace

Shards shards_of(int rank, int processes, int shards) {
  const auto bound = [&](int64_t i) { return static_cast<int>(shards * i / processes); };
  return {bound(rank), bound(rank + 1)};
}

std::vector<Shards> covering_nodes(Shards own, int shards) {
  std::vector<Shards> nodes;
  if (own.begin < own.end) cover({0, shards}, own, nodes);
  return nodes;
}

void add_tree(DType dtype, std::span<const Row> rows, int64_t count, void* out) {
  switch (dtype) {
    case DType::kFloat32:
      return add_all(rows, count, static_cast<float*>(out));
    case DType::kFloat64:
      return add_all(rows, count, static_cast<double*>(out));
    case DType::kFloat16:
      return add_all(rows, count, static_cast<float16*>(out));
    case DType::kBFloat16:
      return add_all(rows, count, static_cast<bfloat16*>(out));
    case DType::kUInt8:
      return add_all(rows, count, static_cast<uint8_t*>(out));
    case DType::kInt8:
      return add_all(rows, count, static_cast<int8_t*>(out));
    case DType::kInt32:
      return add_all(rows, count, static_cast<int32_t*>(out));
    case DType::kInt64:
      return add_all(rows, count, static_cast<int64_t*>(out));
    case DType::kBool:
      return add_all(rows, count, static_cast<bool*>(out));
    case DType::kUnknown:
      return;
  }
}

}  // namespace hybridnet::group
