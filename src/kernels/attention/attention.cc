#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/attention.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "hybridnet/storage.h"
#include "hybridnet/threads.h"
#include "kernels/amx_tiles.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_tiles.h"
#include "kernels/attention/few_queries.h"
#include "kernels/attention/half_matrices.h"
#include "kernels/norm/exp_to_one.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// The weights of a block of queries, tile by tile, and what is mixed by them.
template <typename T>
class Mixing {
 public:
  Mixing(const AttentionShape& s, const T* k, const AttentionMask& mask)
      : s_(s), tiles_(s, k, mask), memory_(((s.value_size + 3) * kQueries) * static_cast<int64_t>(sizeof(T))) {
    highest_ = static_cast<T*>(memory_.data());
    total_ = highest_ + kQueries;
    factor_ = total_ + kQueries;
    mixed_ = factor_ + kQueries;
  }

 protected:
  void clear() {
    const int64_t width = tiles_.width();
    std::fill_n(highest_, width, -std::numeric_limits<T>::infinity());
    std::fill_n(total_, width, T(0));
    std::fill_n(mixed_, s_.value_size * width, T(0));
  }

  // Replaces scores by e^(score - highest so far), and sets factor_, by which earlier sums must be multiplied.
  void weigh(int64_t n) {
    const hn::ScalableTag<T> d;
    const int64_t width = tiles_.width(), lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto none = hn::Set(d, -std::numeric_limits<T>::infinity());
    for (int64_t i = 0; i < width; i += lanes) {
      T* column = tiles_.scores() + i;
      auto a = none, b = none, c = none, e = none;
      int64_t j = 0;
      for (; j + 4 <= n; j += 4) {
        a = hn::Max(a, hn::LoadU(d, column + j * width));
        b = hn::Max(b, hn::LoadU(d, column + (j + 1) * width));
        c = hn::Max(c, hn::LoadU(d, column + (j + 2) * width));
        e = hn::Max(e, hn::LoadU(d, column + (j + 3) * width));
      }
      for (; j < n; ++j) a = hn::Max(a, hn::LoadU(d, column + j * width));
      const auto before = hn::LoadU(d, highest_ + i);
      const auto highest = hn::Max(before, hn::Max(hn::Max(a, b), hn::Max(c, e)));
      const auto top = hn::IfThenElse(hn::Eq(highest, none), hn::Zero(d), highest);  // -inf: no key so far
      auto sum = hn::Zero(d), other = sum;
      for (j = 0; j + 2 <= n; j += 2) {
        const auto x = exp_to_one(d, hn::Sub(hn::LoadU(d, column + j * width), top));
        const auto y = exp_to_one(d, hn::Sub(hn::LoadU(d, column + (j + 1) * width), top));
        hn::StoreU(x, d, column + j * width);
        hn::StoreU(y, d, column + (j + 1) * width);
        sum = hn::Add(sum, x);
        other = hn::Add(other, y);
      }
      if (j < n) {
        const auto x = exp_to_one(d, hn::Sub(hn::LoadU(d, column + j * width), top));
        hn::StoreU(x, d, column + j * width);
        sum = hn::Add(sum, x);
      }
      const auto factor = exp_to_one(d, hn::Sub(before, top));
      hn::StoreU(highest, d, highest_ + i);
      hn::StoreU(hn::MulAdd(hn::LoadU(d, total_ + i), factor, hn::Add(sum, other)), d, total_ + i);
      hn::StoreU(factor, d, factor_ + i);
    }
  }

  void drop(int64_t key, int64_t n) {
    const hn::ScalableTag<T> d;
    tiles_.draw(key, n);
    for (int64_t i = 0; i < n * tiles_.width(); i += static_cast<int64_t>(hn::Lanes(d))) {
      T* p = tiles_.scores() + i;
      hn::StoreU(hn::Mul(hn::LoadU(d, p), hn::LoadU(d, tiles_.kept() + i)), d, p);
    }
  }

  // Stores rows of the output `row` elements apart.
  void finish(T* out, int64_t row, T* log_sums) {
    const int64_t width = tiles_.width();
    for (int64_t i = 0; i < tiles_.count(); ++i) {
      const bool empty = total_[i] == T(0);
      const T share = empty ? T(0) : T(1) / total_[i];
      factor_[i] = share;
      log_sums[i] = empty ? std::numeric_limits<T>::infinity() : highest_[i] + std::log(total_[i]);
    }
    for (int64_t c = 0; c < s_.value_size; ++c)
      for (int64_t i = 0; i < tiles_.count(); ++i) mixed_[c * width + i] *= factor_[i];
    transpose(mixed_, width, s_.value_size, tiles_.count(), out, row);
  }

  const AttentionShape& s_;
  ScoreTiles<T> tiles_;
  OwnedBlock memory_;
  T *highest_, *total_, *factor_, *mixed_;
};

template <typename T>
class Forward : private Mixing<T> {
 public:
  Forward(const AttentionShape& s, const T* k, const T* v, const AttentionMask& mask)
      : Mixing<T>(s, k, mask), v_(v), values_memory_(s.value_size * kKeys * static_cast<int64_t>(sizeof(T))) {}

  void run(int64_t matrix, int64_t first, const T* q, T* out, T* log_sums) {
    const AttentionShape& s = this->s_;
    ScoreTiles<T>& tiles = this->tiles_;
    tiles.start(matrix, first, q);
    this->clear();
    for (int64_t key = 0; key < tiles.end(); key += kKeys) {
      const int64_t n = std::min(kKeys, tiles.end() - key), width = tiles.width();
      tiles.make(key, n);
      this->weigh(n);
      if (s.keep < 1) this->drop(key, n);
      const T* values = close_rows(v_ + s.v.at(matrix) + key * s.v.row, s.v.row, n, s.value_size,
                                   static_cast<T*>(values_memory_.data()));
      product<Into::kScaled>(s.value_size, width, n, Left<T>{values, 1, s.value_size}, tiles.scores(), width,
                             this->mixed_, width, this->factor_);
    }
    this->finish(out + s.out.at(matrix) + first * s.out.row, s.out.row, log_sums + matrix * s.queries + first);
  }

 private:
  const T* v_;
  OwnedBlock values_memory_;
};

#if HWY_TARGET <= HWY_AVX3
// The products take and give bfloat16, and all else computes in float. half_attention_pays() says for which sizes.
class HalfForward : private Mixing<float> {
 public:
  HalfForward(const AttentionShape& s, const bfloat16* k, const bfloat16* v, const AttentionMask& mask)
      : Mixing<float>(s, nullptr, mask),
        k_(k),
        v_(v),
        halves_((s.size / 2 * kQueries + s.size / 2 * kKeys + kKeys / 2 * kQueries + s.value_size * kKeys) * 4),
        rows_(s.value_size * kQueries * 4) {
    queries_ = static_cast<uint32_t*>(halves_.data());
    keys_ = reinterpret_cast<bfloat16*>(queries_ + s.size / 2 * kQueries);
    weights_ = queries_ + s.size / 2 * (kQueries + kKeys);
    value_pairs_ = weights_ + kKeys / 2 * kQueries;
    values_ = value_pairs_ + s.value_size * kKeys / 2;
  }

  void run(int64_t matrix, int64_t first, const bfloat16* q, bfloat16* out, float* log_sums) {
    tiles_.place(matrix, first);
    clear();
    const int64_t width = tiles_.width(), count = tiles_.count();
    const auto* const from = reinterpret_cast<const float*>(q + s_.q.at(matrix) + first * s_.q.row);
    transpose(from, s_.q.row / 2, count, s_.size / 2, reinterpret_cast<float*>(queries_), width);
    for (int64_t c = 0; c < s_.size / 2; ++c)
      std::fill(queries_ + c * width + count, queries_ + (c + 1) * width, uint32_t{0});
    for (int64_t key = 0; key < tiles_.end(); key += kKeys) {
      const int64_t n = std::min(kKeys, tiles_.end() - key);
      score(k_ + s_.k.at(matrix) + key * s_.k.row, n);
      tiles_.mask(key, n);
      weigh(n);
      if (s_.keep < 1) drop(key, n);
      mix(v_ + s_.v.at(matrix) + key * s_.v.row, n);
    }
    float* const rows = static_cast<float*>(rows_.data());
    finish(rows, s_.value_size, log_sums + matrix * s_.queries + first);
    for (int64_t i = 0; i < count; ++i)
      round(rows + i * s_.value_size, s_.value_size, out + s_.out.at(matrix) + (first + i) * s_.out.row);
  }

 private:
  using D = hn::ScalableTag<float>;
  static constexpr int64_t kLanes = 16;  // numbers in a vector, and rows of a tile

  // The bits of the nearest bfloat16 in the upper halves; NaN stays NaN.
  static HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> rounded(const float* from) {
    const D d;
    const hn::RebindToUnsigned<D> u;
    const auto value = hn::LoadU(d, from);
    const auto bits = hn::BitCast(u, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1));
    const auto near = hn::Add(bits, hn::Add(odd, hn::Set(u, 0x7fff)));
    return hn::IfThenElse(hn::RebindMask(u, hn::IsNaN(value)), hn::Or(bits, hn::Set(u, 0x400000)), near);
  }

  static void round(const float* from, int64_t n, bfloat16* to) {
    const hn::Rebind<uint16_t, D> narrow;
    for (int64_t i = 0; i < n; i += kLanes)
      hn::StoreU(hn::TruncateTo(narrow, hn::ShiftRight<16>(rounded(from + i))), narrow,
                 reinterpret_cast<uint16_t*>(to + i));
  }

  void score(const bfloat16* keys, int64_t n) {
    const int64_t width = tiles_.width(), whole = whole_vectors<float>(n);
    int64_t row = s_.k.row;
    if (whole != n) {  // whole tiles would read beyond the keys
      for (int64_t j = 0; j < n; ++j) std::copy_n(keys + j * row, s_.size, keys_ + j * s_.size);
      std::fill(keys_ + n * s_.size, keys_ + whole * s_.size, bfloat16(0.0f));
      keys = keys_;
      row = s_.size;
    }
    half_product(whole, width, s_.size, keys, row, queries_, false, tiles_.scores());
    multiply(tiles_.scores(), n * width, static_cast<float>(s_.scale));
  }

  static void multiply(float* values, int64_t n, float by) {
    const D d;
    for (int64_t i = 0; i < n; i += kLanes)
      hn::StoreU(hn::Mul(hn::LoadU(d, values + i), hn::Set(d, by)), d, values + i);
  }

  // mixed = factor * mixed + values^T weights
  void mix(const bfloat16* values, int64_t n) {
    const D d;
    const hn::RebindToUnsigned<D> u;
    const hn::Rebind<uint16_t, D> narrow;
    const int64_t width = tiles_.width(), pairs = (n + 31) / 32 * 16;
    const auto half = [&](int64_t key, int64_t c) HWY_ATTR {
      const auto* const from = reinterpret_cast<const uint16_t*>(values + key * s_.v.row + c);
      return key < n ? hn::PromoteTo(u, hn::LoadU(narrow, from)) : hn::Zero(u);
    };
    const auto weight = [&](int64_t key, int64_t i)
                            HWY_ATTR { return key < n ? rounded(tiles_.scores() + key * width + i) : hn::Zero(u); };
    for (int64_t j = 0; j < pairs; ++j) {
      for (int64_t c = 0; c < s_.value_size; c += kLanes)
        hn::StoreU(hn::Or(half(2 * j, c), hn::ShiftLeft<16>(half(2 * j + 1, c))), u,
                   value_pairs_ + j * s_.value_size + c);
      for (int64_t i = 0; i < width; i += kLanes)
        hn::StoreU(hn::Or(hn::ShiftRight<16>(weight(2 * j, i)), hn::And(weight(2 * j + 1, i), hn::Set(u, 0xffff0000))),
                   u, weights_ + j * width + i);
    }
    transpose(reinterpret_cast<const float*>(value_pairs_), s_.value_size, pairs, s_.value_size,
              reinterpret_cast<float*>(values_), pairs);
    for (int64_t c = 0; c < s_.value_size; ++c)
      for (int64_t i = 0; i < width; i += kLanes) {
        float* const to = mixed_ + c * width + i;
        hn::StoreU(hn::Mul(hn::LoadU(d, to), hn::LoadU(d, factor_ + i)), d, to);
      }
    half_product(s_.value_size, width, 2 * pairs, reinterpret_cast<const bfloat16*>(values_), 2 * pairs, weights_, true,
                 mixed_);
  }

  const bfloat16 *k_, *v_;
  OwnedBlock halves_, rows_;
  bfloat16* keys_;
  uint32_t *queries_, *weights_, *value_pairs_, *values_;
};

void forward_half(const AttentionShape& s, const bfloat16* q, const bfloat16* k, const bfloat16* v,
                  const AttentionMask& mask, bfloat16* out, float* log_sums) {
  const int64_t blocks = (s.queries + kQueries - 1) / kQueries;
  if (s.matrices * blocks == 0) return;
  constexpr double kShare = 0.25;  // compared with the time in float
  parallel_for(s.matrices * blocks, kShare * attention_ns(s) / static_cast<double>(s.matrices * blocks),
               [&](int64_t begin, int64_t end) {
                 const TileScope scope(&kWholeTiles);
                 HalfForward work(s, k, v, mask);
                 for (int64_t i = begin; i < end; ++i) work.run(i / blocks, i % blocks * kQueries, q, out, log_sums);
               });
}
#else
void forward_half(const AttentionShape&, const bfloat16*, const bfloat16*, const bfloat16*, const AttentionMask&,
                  bfloat16*, float*) {}  // half_attention_pays() is false
#endif

template <typename T>
void forward(const AttentionShape& s, const T* q, const T* k, const T* v, const AttentionMask& mask, T* out,
             T* log_sums) {
  const int64_t blocks = (s.queries + kQueries - 1) / kQueries;
  if (s.matrices * blocks == 0) return;
  parallel_for(s.matrices * blocks, attention_ns(s) / static_cast<double>(s.matrices * blocks),
               [&](int64_t begin, int64_t end) {
                 Forward<T> work(s, k, v, mask);
                 for (int64_t i = begin; i < end; ++i) work.run(i / blocks, i % blocks * kQueries, q, out, log_sums);
               });
}

void forward_float(const AttentionShape& s, const float* q, const float* k, const float* v, const AttentionMask& mask,
                   float* out, float* log_sums) {
  forward(s, q, k, v, mask, out, log_sums);
}
void forward_double(const AttentionShape& s, const double* q, const double* k, const double* v,
                    const AttentionMask& mask, double* out, double* log_sums) {
  forward(s, q, k, v, mask, out, log_sums);
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {
HWY_EXPORT(forward_float);
HWY_EXPORT(forward_double);
HWY_EXPORT(forward_half);
}  // namespace

double attention_ns(const AttentionShape& s) {
  const double scores = static_cast<double>(s.matrices * s.queries) * static_cast<double>(s.keys);
  return scores * (1 + 0.03 * static_cast<double>(s.size + s.value_size)) * (s.causal ? 0.5 : 1.0);
}

template <>
void attention(const AttentionShape& s, const float* q, const float* k, const float* v, const AttentionMask& mask,
               float* out, float* log_sums) {
  if (s.keep == 1 && has_few_queries<float>(s.queries)) return few_queries_attention(s, q, k, v, mask, out, log_sums);
  HWY_DYNAMIC_DISPATCH(forward_float)(s, q, k, v, mask, out, log_sums);
}
template <>
void attention(const AttentionShape& s, const double* q, const double* k, const double* v, const AttentionMask& mask,
               double* out, double* log_sums) {
  if (s.keep == 1 && has_few_queries<double>(s.queries)) return few_queries_attention(s, q, k, v, mask, out, log_sums);
  HWY_DYNAMIC_DISPATCH(forward_double)(s, q, k, v, mask, out, log_sums);
}

bool half_attention_pays(const AttentionShape& s) {
  return has_amx() && s.size % 32 == 0 && s.value_size % 16 == 0 && s.q.row % 2 == 0 &&
         !has_few_queries<float>(s.queries);
}

void half_attention(const AttentionShape& s, const bfloat16* q, const bfloat16* k, const bfloat16* v,
                    const AttentionMask& mask, bfloat16* out, float* log_sums) {
  HWY_DYNAMIC_DISPATCH(forward_half)(s, q, k, v, mask, out, log_sums);
}

}  // namespace hybridnet::kernels
#endif
