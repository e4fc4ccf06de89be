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
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_tiles.h"
#include "kernels/attention/few_queries.h"
#include "kernels/norm/exp_to_one.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

template <typename T>
class Forward {
 public:
  Forward(const AttentionShape& s, const T* k, const T* v, const AttentionMask& mask)
      : s_(s),
        v_(v),
        tiles_(s, k, mask),
        memory_(((s.value_size + 3) * kQueries + s.value_size * kKeys) * static_cast<int64_t>(sizeof(T))) {
    highest_ = static_cast<T*>(memory_.data());
    total_ = highest_ + kQueries;
    factor_ = total_ + kQueries;
    mixed_ = factor_ + kQueries;
    values_ = mixed_ + s.value_size * kQueries;
  }

  void run(int64_t matrix, int64_t first, const T* q, T* out, T* log_sums) {
    tiles_.start(matrix, first, q);
    const int64_t width = tiles_.width();
    std::fill_n(highest_, width, -std::numeric_limits<T>::infinity());
    std::fill_n(total_, width, T(0));
    std::fill_n(mixed_, s_.value_size * width, T(0));
    for (int64_t key = 0; key < tiles_.end(); key += kKeys) {
      const int64_t n = std::min(kKeys, tiles_.end() - key);
      tiles_.make(key, n);
      weigh(n);
      if (s_.keep < 1) drop(key, n);
      const T* values = close_rows(v_ + s_.v.at(matrix) + key * s_.v.row, s_.v.row, n, s_.value_size, values_);
      product<Into::kScaled>(s_.value_size, width, n, Left<T>{values, 1, s_.value_size}, tiles_.scores(), width, mixed_,
                             width, factor_);
    }
    finish(out + s_.out.at(matrix) + first * s_.out.row, log_sums + matrix * s_.queries + first);
  }

 private:
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

  void finish(T* out, T* log_sums) {
    const int64_t width = tiles_.width();
    for (int64_t i = 0; i < tiles_.count(); ++i) {
      const bool empty = total_[i] == T(0);
      const T share = empty ? T(0) : T(1) / total_[i];
      factor_[i] = share;
      log_sums[i] = empty ? std::numeric_limits<T>::infinity() : highest_[i] + std::log(total_[i]);
    }
    for (int64_t c = 0; c < s_.value_size; ++c)
      for (int64_t i = 0; i < tiles_.count(); ++i) mixed_[c * width + i] *= factor_[i];
    transpose(mixed_, width, s_.value_size, tiles_.count(), out, s_.out.row);
  }

  const AttentionShape& s_;
  const T* v_;
  ScoreTiles<T> tiles_;
  OwnedBlock memory_;
  T *highest_, *total_, *factor_, *mixed_, *values_;
};

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

}  // namespace hybridnet::kernels
#endif
