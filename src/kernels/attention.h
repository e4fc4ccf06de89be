// softmax(scale * Q K^T + mask) V without the matrix of weights: tiles of scores are made, used and forgotten. Memory
// beside the operands grows with queries and keys, not with their product. Instantiated for float and double. The bits
// do not depend on the number of cores.
//   Milakov, Gimelshein: Online normalizer calculation for softmax, 2018 (the running maximum and sum).
//   Dao, Fu, Ermon, Rudra, Re: FlashAttention, NeurIPS 2022, algorithms 1, 2 and 4 (tiles, and the gradient from one
//   logarithm per row).
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "hybridnet/op.h"

namespace hybridnet::kernels {

// Where the matrices of one operand lie: so many elements apart within a group (the heads of one sequence), as the
// groups; row r of a matrix begins r * row behind it; its elements are neighbours.
struct AttentionRows {
  int64_t first = 0, matrix = 0, row = 0;
  int64_t per_group = std::numeric_limits<int64_t>::max(), group = 0;
  int64_t at(int64_t i) const { return first + i / per_group * group + i % per_group * matrix; }
};

// Which keys a query attends to. Element (r, c) of the mask of matrix i is data[offsets[i] + r * row + c * column].
struct AttentionMask {
  enum class Kind : int8_t {
    kNone,
    kAdded,    // of the operands' dtype: summand of the scaled scores
    kKept,     // bytes: 0 leaves the key out
    kLengths,  // int64_t, column == 0: so many first keys take part
  };
  Kind kind = Kind::kNone;
  const void* data = nullptr;
  std::span<const int64_t> offsets;
  int64_t row = 0, column = 0;
};

struct AttentionShape {
  int64_t matrices = 0, queries = 0, keys = 0, size = 0, value_size = 0;
  AttentionRows q, k, v, out;
  double scale = 1;
  bool causal = false;  // query i attends to keys 0 to i
  // Weights are kept with this probability, then divided by it; the others become 0. What Dropout of the matrices
  // (matrices, queries, keys) would keep with this key.
  double keep = 1;
  RngKey rng;
};

// log_sums: (matrices, queries), log(sum(e^scores)) of each row. A row without keys gives zeros, and infinity there.
template <typename T>
void attention(const AttentionShape& s, const T* q, const T* k, const T* v, const AttentionMask& mask, T* out,
               T* log_sums);

// d_out lies as out, and the results as q, k, v.
template <typename T>
void attention_gradient(const AttentionShape& s, const T* d_out, const T* q, const T* k, const T* v,
                        const AttentionMask& mask, const T* out, const T* log_sums, T* dq, T* dk, T* dv);

// Nanoseconds on one core, roughly.
double attention_ns(const AttentionShape& s);

}  // namespace hybridnet::kernels
