// Tiles of masked scores of fused attention, and the dropout mask of their weights. Included once per SIMD target,
// hence the toggled guard.
#if defined(HYBRIDNET_ATTENTION_TILES_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_ATTENTION_TILES_H_
#undef HYBRIDNET_ATTENTION_TILES_H_
#else
#define HYBRIDNET_ATTENTION_TILES_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "hybridnet/storage.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_matrices.h"
#include "kernels/random/bernoulli.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// Queries run along the vectors, so the maxima, sums and factors of queries are vectors, too, and keys and values are
// read one number at a time, with any stride.
constexpr int64_t kQueries = 64, kKeys = 64;

// The scores, and then the weights, of a block of queries: computed tile by tile, one row of `width` queries per key.
template <typename T>
class ScoreTiles {
 public:
  using D = hn::ScalableTag<T>;

  ScoreTiles(const AttentionShape& s, const T* k, const AttentionMask& mask)
      : s_(s), k_(k), mask_(mask), memory_(((s.size + 3 * kKeys + 1) * kQueries) * static_cast<int64_t>(sizeof(T))) {
    transposed_q_ = static_cast<T*>(memory_.data());
    scores_ = transposed_q_ + s.size * kQueries;
    summands_ = scores_ + kKeys * kQueries;
    kept_ = summands_ + kKeys * kQueries;
    limits_ = kept_ + kKeys * kQueries;
  }

  // Scores that others compute and mask() completes need this alone.
  void place(int64_t matrix, int64_t first) {
    matrix_ = matrix;
    first_ = first;
    count_ = std::min(kQueries, s_.queries - first);
    width_ = whole_vectors<T>(count_);
    find_limits();
  }
  void start(int64_t matrix, int64_t first, const T* q) {
    place(matrix, first);
    scaled_transpose(q + s_.q.at(matrix) + first * s_.q.row, s_.q.row, count_, s_.size, static_cast<T>(s_.scale),
                     transposed_q_, width_);
  }
  int64_t matrix() const { return matrix_; }
  int64_t first() const { return first_; }
  int64_t count() const { return count_; }
  int64_t width() const { return width_; }
  int64_t end() const { return end_; }  // the end of the keys that some query attends to
  T* scores() { return scores_; }

  // Computes the masked scores of keys [key, key + n).
  void make(int64_t key, int64_t n) {
    product<Into::kSet>(n, width_, s_.size, Left<T>{k_ + s_.k.at(matrix_) + key * s_.k.row, s_.k.row, 1}, transposed_q_,
                        width_, scores_, width_);
    mask(key, n);
  }
  void mask(int64_t key, int64_t n) {
    if (mask_.kind == AttentionMask::Kind::kAdded) add_mask(key, n);
    if (mask_.kind == AttentionMask::Kind::kKept) keep_mask(key, n);
    if (key + n > shortest_) cut(key, n);
  }

  // Draws the factors of dropout for the weights of keys [key, key + n).
  void draw(int64_t key, int64_t n) {
    const T factor = s_.keep > 0 ? static_cast<T>(1 / s_.keep) : T(0);
    T* rows = summands_;  // (queries, keys); the summands were already added to the scores
    uint8_t drawn[kKeys];
    for (int64_t i = 0; i < count_; ++i) {
      fill_bernoulli(s_.rng, s_.keep, (matrix_ * s_.queries + first_ + i) * s_.keys + key, n, drawn);
      for (int64_t j = 0; j < n; ++j) rows[i * kKeys + j] = drawn[j] ? factor : T(0);
    }
    for (int64_t i = count_; i < width_; ++i) std::fill_n(rows + i * kKeys, n, T(0));
    transpose(rows, kKeys, width_, n, kept_, width_);
  }
  const T* kept() const { return kept_; }  // the layout of the scores

 private:
  void find_limits() {
    shortest_ = s_.keys;
    end_ = 0;
    for (int64_t i = 0; i < width_; ++i) {
      const int64_t query = std::min(first_ + i, s_.queries - 1);  // padding repeats the last query
      const int64_t limit = keys_of(s_, mask_, matrix_, query);
      limits_[i] = static_cast<T>(limit);
      shortest_ = std::min(shortest_, limit);
      end_ = std::max(end_, limit);
    }
  }

  void cut(int64_t key, int64_t n) {
    const D d;
    const auto none = hn::Set(d, -std::numeric_limits<T>::infinity());
    for (int64_t j = 0; j < n; ++j) {
      const auto at = hn::Set(d, static_cast<T>(key + j));
      each_vector([&](int64_t i) HWY_ATTR {
        T* p = scores_ + j * width_ + i;
        hn::StoreU(hn::IfThenElse(hn::Lt(at, hn::LoadU(d, limits_ + i)), hn::LoadU(d, p), none), d, p);
      });
    }
  }

  // Adds one number for all queries, or else the transposed tile of the mask.
  void add_mask(int64_t key, int64_t n) {
    const D d;
    const T* from = static_cast<const T*>(mask_.data) + mask_.offsets[static_cast<size_t>(matrix_)] +
                    first_ * mask_.row + key * mask_.column;
    if (mask_.row != 0) {
      for (int64_t j = 0; j < n; ++j) {
        T* to = summands_ + j * width_;
        for (int64_t i = 0; i < count_; ++i) to[i] = from[i * mask_.row + j * mask_.column];
        std::fill(to + count_, to + width_, T(0));
      }
    }
    for (int64_t j = 0; j < n; ++j) {
      const auto shared = hn::Set(d, from[j * mask_.column]);
      each_vector([&](int64_t i) HWY_ATTR {
        T* p = scores_ + j * width_ + i;
        const auto summand = mask_.row != 0 ? hn::LoadU(d, summands_ + j * width_ + i) : shared;
        hn::StoreU(hn::Add(hn::LoadU(d, p), summand), d, p);
      });
    }
  }

  void keep_mask(int64_t key, int64_t n) {
    constexpr T kNone = -std::numeric_limits<T>::infinity();
    const uint8_t* from = static_cast<const uint8_t*>(mask_.data) + mask_.offsets[static_cast<size_t>(matrix_)] +
                          first_ * mask_.row + key * mask_.column;
    for (int64_t j = 0; j < n; ++j) {
      T* row = scores_ + j * width_;
      if (mask_.row == 0) {
        if (from[j * mask_.column] == 0) std::fill_n(row, width_, kNone);
        continue;
      }
      for (int64_t i = 0; i < count_; ++i) row[i] = from[i * mask_.row + j * mask_.column] ? row[i] : kNone;
    }
  }

  template <typename F>
  HWY_INLINE void each_vector(F&& f) const {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
    for (int64_t i = 0; i < width_; i += lanes) f(i);
  }

  const AttentionShape& s_;
  const T* k_;
  const AttentionMask& mask_;
  OwnedBlock memory_;
  T *transposed_q_, *scores_, *summands_, *kept_, *limits_;
  int64_t matrix_ = 0, first_ = 0, count_ = 0, width_ = 0;
  int64_t shortest_ = 0, end_ = 0;
};

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
