#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/few_queries.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "hybridnet/storage.h"
#include "hybridnet/threads.h"
#include "kernels/attention/few_queries.h"
#include "kernels/memory/vector_rows.h"
#include "kernels/norm/exp_to_one.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// Keys whose scores are kept at a time, and keys of a range: a range is the least work that a core takes.
constexpr int64_t kBlock = 64, kRange = 512;

// Loads a vector of keys or values in the type of the sums.
template <class Access, typename T>
HWY_INLINE auto load(const Access& vector, const T* from) {
  return vector.load(from);
}
template <class D>
HWY_INLINE hn::Vec<D> load(const WholeVector<D>& vector, const bfloat16* from) {
  const hn::Rebind<hwy::bfloat16_t, D> narrow;
  return hn::PromoteTo(vector.d, hn::LoadU(narrow, reinterpret_cast<const hwy::bfloat16_t*>(from)));
}
template <class D>
HWY_INLINE hn::Vec<D> load(const PartialVector<D>& vector, const bfloat16* from) {
  HWY_ALIGN float lanes[hn::MaxLanes(D())] = {};
  for (int64_t i = 0; i < vector.count; ++i) lanes[i] = static_cast<float>(from[i]);
  return hn::Load(vector.d, lanes);
}

// scores[j] = scale * (q . row j of k). S: the type of the keys.
template <int kRows, typename T, typename S>
HWY_INLINE void dot_rows(const T* HWY_RESTRICT q, const S* HWY_RESTRICT k, int64_t row, int64_t size, T scale,
                         T* HWY_RESTRICT scores) {
  const hn::ScalableTag<T> d;
  hn::Vec<decltype(d)> sums[kRows];
  for (auto& sum : sums) sum = hn::Zero(d);
  along_row<T>(size, [&](const auto& vector, int64_t i) HWY_ATTR {
    const auto query = vector.load(q + i);
    for (int j = 0; j < kRows; ++j) sums[j] = hn::MulAdd(query, load(vector, k + j * row + i), sums[j]);
  });
  for (int j = 0; j < kRows; ++j) scores[j] = scale * hn::GetLane(hn::SumOfLanes(d, sums[j]));
}

// mixed = factor * mixed + weights * rows of v, for columns that fill kVectors vectors.
template <int kVectors, class Access, typename T, typename S>
HWY_INLINE void mix_columns(const Access& vector, const T* HWY_RESTRICT weights, const S* HWY_RESTRICT v, int64_t row,
                            int64_t n, T factor, T* HWY_RESTRICT mixed) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sums[kVectors];
  for (int i = 0; i < kVectors; ++i) sums[i] = hn::Mul(vector.load(mixed + i * lanes), hn::Set(d, factor));
  for (int64_t j = 0; j < n; ++j) {
    const auto weight = hn::Set(d, weights[j]);
    for (int i = 0; i < kVectors; ++i) sums[i] = hn::MulAdd(weight, load(vector, v + j * row + i * lanes), sums[i]);
  }
  for (int i = 0; i < kVectors; ++i) vector.store(sums[i], mixed + i * lanes);
}

// T: the type of queries and sums; S: of keys and values.
template <typename T, typename S>
class FewQueries {
 public:
  FewQueries(const AttentionShape& s, const T* q, const S* k, const S* v, const AttentionMask& mask)
      : s_(s), q_(q), k_(k), v_(v), mask_(mask) {}

  // The sums of the query over keys [begin, end): `mixed` has one number per column of the values, then the highest
  // score and the sum of e^(score - highest).
  void sum(int64_t matrix, int64_t query, int64_t begin, int64_t end, T* mixed) const {
    T& highest = mixed[s_.value_size];
    T& total = mixed[s_.value_size + 1];
    std::fill_n(mixed, s_.value_size + 2, T(0));
    highest = -std::numeric_limits<T>::infinity();
    end = std::min(end, keys_of(s_, mask_, matrix, query));
    HWY_ALIGN T scores[kBlock];
    for (int64_t key = begin; key < end; key += kBlock) {
      const int64_t n = std::min(kBlock, end - key);
      score(matrix, query, key, n, scores);
      const T factor = weigh(n, scores, highest, total);
      mix_rows(matrix, key, n, scores, factor, mixed);
    }
  }

  // Joins the sums of all ranges into the output of a query.
  void finish(const T* sums, int64_t ranges, T* out, T* log_sum) const {
    const int64_t stride = s_.value_size + 2;
    T highest = -std::numeric_limits<T>::infinity(), total = 0;
    for (int64_t r = 0; r < ranges; ++r) highest = std::max(highest, sums[r * stride + s_.value_size]);
    std::fill_n(out, s_.value_size, T(0));
    for (int64_t r = 0; r < ranges; ++r) {
      const T* of_range = sums + r * stride;
      const T range_total = of_range[s_.value_size + 1];
      if (range_total == T(0)) continue;  // no key
      const T factor = std::exp(of_range[s_.value_size] - highest);
      total += factor * range_total;
      for (int64_t c = 0; c < s_.value_size; ++c) out[c] += factor * of_range[c];
    }
    *log_sum = total == T(0) ? std::numeric_limits<T>::infinity() : highest + std::log(total);
    if (total == T(0)) return;
    const T share = T(1) / total;
    for (int64_t c = 0; c < s_.value_size; ++c) out[c] *= share;
  }

 private:
  using D = hn::ScalableTag<T>;

  // Calls visit(matrix, first, count) for the rows [key, key + n) of a matrix's keys or values, in order: for each
  // sequence of rows that stand in one entry of the batch, with the matrix in which they stand.
  template <class Visit>
  HWY_INLINE void for_rows(int64_t matrix, int64_t key, int64_t n, const Visit& visit) const {
    if (!s_.order.entries) return visit(matrix, key, n);
    const int64_t of_entry = s_.order.per_entry, last = s_.matrices / of_entry - 1, end = key + n;
    const int32_t* const entries = s_.order.entries + matrix / of_entry * s_.keys;
    for (int64_t first = key, next; first < end; first = next) {
      for (next = first + 1; next < end && entries[next] == entries[first]; ++next) continue;
      visit(std::clamp<int64_t>(entries[first], 0, last) * of_entry + matrix % of_entry, first, next - first);
    }
  }

  void score_rows(int64_t matrix, const T* q, int64_t key, int64_t n, T* scores) const {
    const S* k = k_ + s_.k.at(matrix) + key * s_.k.row;
    const T scale = static_cast<T>(s_.scale);
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) dot_rows<4>(q, k + j * s_.k.row, s_.k.row, s_.size, scale, scores + j);
    for (; j < n; ++j) dot_rows<1>(q, k + j * s_.k.row, s_.k.row, s_.size, scale, scores + j);
  }

  void score(int64_t matrix, int64_t query, int64_t key, int64_t n, T* scores) const {
    const T* q = q_ + s_.q.at(matrix) + query * s_.q.row;
    for_rows(matrix, key, n, [&](int64_t from, int64_t first, int64_t count) HWY_ATTR {
      score_rows(from, q, first, count, scores + (first - key));
    });
    int64_t j = 0;
    const bool added = mask_.kind == AttentionMask::Kind::kAdded;
    if (!added && mask_.kind != AttentionMask::Kind::kKept) return;
    const int64_t first = mask_.offsets[static_cast<size_t>(matrix)] + query * mask_.row + key * mask_.column;
    for (j = 0; j < n; ++j) {
      const int64_t at = first + j * mask_.column;
      if (added)
        scores[j] += static_cast<const T*>(mask_.data)[at];
      else if (static_cast<const uint8_t*>(mask_.data)[at] == 0)
        scores[j] = -std::numeric_limits<T>::infinity();
    }
  }

  // Replaces scores by e^(score - highest so far), and returns the factor of earlier sums.
  static T weigh(int64_t n, T* scores, T& highest, T& total) {
    const D d;
    const T none = -std::numeric_limits<T>::infinity();
    auto top = hn::Set(d, highest);
    along_row<T>(n, [&](const auto& vector, int64_t j) HWY_ATTR { top = hn::Max(top, vector.load(scores + j, none)); });
    const T before = highest;
    highest = hn::GetLane(hn::MaxOfLanes(d, top));
    const T least = highest == none ? T(0) : highest;  // -inf: no key so far
    auto sum = hn::Zero(d);
    along_row<T>(n, [&](const auto& vector, int64_t j) HWY_ATTR {
      const auto weight = exp_to_one(d, hn::Sub(vector.load(scores + j, none), hn::Set(d, least)));
      vector.store(weight, scores + j);
      sum = hn::Add(sum, weight);
    });
    const T factor = hn::GetLane(exp_to_one(d, hn::Set(d, before - least)));
    total = total * factor + hn::GetLane(hn::SumOfLanes(d, sum));
    return factor;
  }

  // The bits do not depend on the entries in which rows stand: the columns are summed row by row.
  void mix_rows(int64_t matrix, int64_t key, int64_t n, const T* weights, T factor, T* mixed) const {
    for_rows(matrix, key, n, [&](int64_t from, int64_t first, int64_t count) HWY_ATTR {
      mix(v_ + s_.v.at(from) + first * s_.v.row, count, weights + (first - key), first == key ? factor : T(1), mixed);
    });
  }

  void mix(const S* v, int64_t n, const T* weights, T factor, T* mixed) const {
    const D d;
    const WholeVector<D> whole{d};
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), row = s_.v.row;
    int64_t c = 0;
    for (; c + 8 * lanes <= s_.value_size; c += 8 * lanes)
      mix_columns<8>(whole, weights, v + c, row, n, factor, mixed + c);
    for (; c + 4 * lanes <= s_.value_size; c += 4 * lanes)
      mix_columns<4>(whole, weights, v + c, row, n, factor, mixed + c);
    for (; c + lanes <= s_.value_size; c += lanes) mix_columns<1>(whole, weights, v + c, row, n, factor, mixed + c);
    if (c < s_.value_size)
      mix_columns<1>(PartialVector<D>{d, s_.value_size - c}, weights, v + c, row, n, factor, mixed + c);
  }

  const AttentionShape& s_;
  const T* q_;
  const S *k_, *v_;
  const AttentionMask& mask_;
};

template <typename T, typename S>
void few_queries(const AttentionShape& s, const T* q, const S* k, const S* v, const AttentionMask& mask, T* out,
                 T* log_sums) {
  const int64_t ranges = std::max<int64_t>(1, (s.keys + kRange - 1) / kRange), stride = s.value_size + 2;
  const int64_t rows = s.matrices * s.queries;
  if (rows == 0) return;
  const OwnedBlock memory(rows * ranges * stride * static_cast<int64_t>(sizeof(T)));
  T* const sums = static_cast<T*>(memory.data());
  const FewQueries<T, S> work(s, q, k, v, mask);
  const double ns = attention_ns(s) / static_cast<double>(s.matrices * ranges);
  // Matrix by matrix, so that the queries of a range find its keys in the cache.
  parallel_for(s.matrices * ranges, ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t matrix = i / ranges, range = i % ranges;
      for (int64_t query = 0; query < s.queries; ++query) {
        T* const to = sums + ((matrix * s.queries + query) * ranges + range) * stride;
        work.sum(matrix, query, range * kRange, (range + 1) * kRange, to);
      }
    }
  });
  parallel_for(rows, static_cast<double>(ranges * stride), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* const to = out + s.out.at(i / s.queries) + i % s.queries * s.out.row;
      work.finish(sums + i * ranges * stride, ranges, to, log_sums + i);
    }
  });
}

void few_queries_float(const AttentionShape& s, const float* q, const float* k, const float* v,
                       const AttentionMask& mask, float* out, float* log_sums) {
  few_queries(s, q, k, v, mask, out, log_sums);
}
void few_queries_double(const AttentionShape& s, const double* q, const double* k, const double* v,
                        const AttentionMask& mask, double* out, double* log_sums) {
  few_queries(s, q, k, v, mask, out, log_sums);
}
void few_queries_bfloat16(const AttentionShape& s, const float* q, const bfloat16* k, const bfloat16* v,
                          const AttentionMask& mask, float* out, float* log_sums) {
  few_queries(s, q, k, v, mask, out, log_sums);
}
int64_t vector_bytes() { return static_cast<int64_t>(hn::Lanes(hn::ScalableTag<uint8_t>())); }

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {
HWY_EXPORT(few_queries_float);
HWY_EXPORT(few_queries_double);
HWY_EXPORT(few_queries_bfloat16);
HWY_EXPORT(vector_bytes);
}  // namespace

template <typename T>
bool has_few_queries(int64_t queries) {
  return 2 * queries * static_cast<int64_t>(sizeof(T)) <= HWY_DYNAMIC_DISPATCH(vector_bytes)();
}
template bool has_few_queries<float>(int64_t);
template bool has_few_queries<double>(int64_t);

template <>
void few_queries_attention(const AttentionShape& s, const float* q, const float* k, const float* v,
                           const AttentionMask& mask, float* out, float* log_sums) {
  HWY_DYNAMIC_DISPATCH(few_queries_float)(s, q, k, v, mask, out, log_sums);
}
template <>
void few_queries_attention(const AttentionShape& s, const double* q, const double* k, const double* v,
                           const AttentionMask& mask, double* out, double* log_sums) {
  HWY_DYNAMIC_DISPATCH(few_queries_double)(s, q, k, v, mask, out, log_sums);
}
void few_queries_attention(const AttentionShape& s, const float* q, const bfloat16* k, const bfloat16* v,
                           const AttentionMask& mask, float* out, float* log_sums) {
  HWY_DYNAMIC_DISPATCH(few_queries_bfloat16)(s, q, k, v, mask, out, log_sums);
}

}  // namespace hybridnet::kernels
#endif
