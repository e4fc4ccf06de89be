// Attention of few queries to many keys: a decoder's next token to all tokens before it. The elements of keys and
// values run along the vectors, and long rows of keys are split into ranges for several cores. It reads each key and
// value once, and none behind the last that takes part, so its time is that of reading them.
#pragma once

#include "kernels/attention/attention.h"

namespace hybridnet::kernels {

// True if the queries would fill less than a vector: then few_queries_attention() is the faster one.
template <typename T>
bool has_few_queries(int64_t queries);

// attention() without dropout, for any number of queries.
template <typename T>
void few_queries_attention(const AttentionShape& s, const T* q, const T* k, const T* v, const AttentionMask& mask,
                           T* out, T* log_sums);

// The same for keys and values of bfloat16, which are widened as they are read.
void few_queries_attention(const AttentionShape& s, const float* q, const bfloat16* k, const bfloat16* v,
                           const AttentionMask& mask, float* out, float* log_sums);

}  // namespace hybridnet::kernels
