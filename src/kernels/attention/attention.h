// softmax(scale * Q K^T + mask) V without a matrix of all weights: each tile of scores is computed, used and
// overwritten. Memory besides the operands grows with queries and keys, not with their product. Instantiated for float
// and double. The bits do not depend on the number of cores.
//   Milakov, Gimelshein: Online normalizer calculation for softmax, 2018 (the running maximum and sum).
//   Dao, Fu, Ermon, Rudra, Re: FlashAttention, NeurIPS 2022, algorithms 1, 2 and 4 (tiles, and the gradient from one
//   logarithm per row).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "hybridnet/kernel.h"

namespace hybridnet::kernels {

// The positions of the matrices of one operand. Consecutive matrices of a group (the heads of one sequence) begin
// `matrix` elements apart, consecutive groups `group` elements; row r of a matrix begins r * row elements after its
// start. The elements of a row are contiguous.
struct AttentionRows {
  int64_t first = 0, matrix = 0, row = 0;
  int64_t per_group = std::numeric_limits<int64_t>::max(), group = 0;
  int64_t at(int64_t i) const { return first + i / per_group * group + i % per_group * matrix; }
};

// The keys that a query attends to. Element (r, c) of the mask of matrix i is data[offsets[i] + r * row + c * column].
struct AttentionMask {
  enum class Kind : int8_t {
    kNone,
    kAdded,    // added to the scaled scores, in the operands' dtype
    kKept,     // bytes: 0 excludes the key
    kLengths,  // int64_t, column == 0: the number of leading keys that take part
  };
  Kind kind = Kind::kNone;
  const void* data = nullptr;
  std::span<const int64_t> offsets;
  int64_t row = 0, column = 0;
};

// The entry of the batch in which each row of keys and values stands: row c of those of matrix i is row c of matrix
// entries[i / per_entry * keys + c] * per_entry + i % per_entry. Entries out of range are the nearest one.
struct AttentionOrder {
  const int32_t* entries = nullptr;  // (entries of the batch, keys); null: each row stands in its own entry
  int64_t per_entry = 1;             // matrices of an entry
};

struct AttentionShape {
  int64_t matrices = 0, queries = 0, keys = 0, size = 0, value_size = 0;
  AttentionRows q, k, v, out;
  AttentionOrder order;  // few_queries_attention() alone reads it
  double scale = 1;
  bool causal = false;  // query i attends to keys 0 to i
  // Weights are kept with this probability and divided by it; the others become 0. The mask is the one that Dropout of
  // an array (matrices, queries, keys) draws with this key.
  double keep = 1;
  RngKey rng;
};

// Query `query` of a matrix attends to no key from this one on.
inline int64_t keys_of(const AttentionShape& s, const AttentionMask& mask, int64_t matrix, int64_t query) {
  int64_t limit = s.keys;
  if (mask.kind == AttentionMask::Kind::kLengths) {
    const int64_t* lengths = static_cast<const int64_t*>(mask.data) + mask.offsets[static_cast<size_t>(matrix)];
    limit = std::clamp<int64_t>(lengths[query * mask.row], 0, s.keys);
  }
  return s.causal ? std::min(limit, query + 1) : limit;
}

// log_sums: (matrices, queries), log(sum(e^scores)) of each row. A row without keys has zeros in `out` and infinity in
// `log_sums`.
template <typename T>
void attention(const AttentionShape& s, const T* q, const T* k, const T* v, const AttentionMask& mask, T* out,
               T* log_sums);

// The same with operands of bfloat16: weights are rounded to bfloat16 before they are multiplied with values, sums are
// float32, and so is an added mask. Only where it pays, on processors with AMX.
bool half_attention_pays(const AttentionShape& s);
void half_attention(const AttentionShape& s, const bfloat16* q, const bfloat16* k, const bfloat16* v,
                    const AttentionMask& mask, bfloat16* out, float* log_sums);

// d_out has the layout of out, and dq, dk and dv those of q, k and v.
template <typename T>
void attention_gradient(const AttentionShape& s, const T* d_out, const T* q, const T* k, const T* v,
                        const AttentionMask& mask, const T* out, const T* log_sums, T* dq, T* dk, T* dv);

// The approximate time on one core in nanoseconds.
double attention_ns(const AttentionShape& s);

}  // namespace hybridnet::kernels
