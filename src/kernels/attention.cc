#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "hybridnet/storage.h"
#include "hybridnet/threads.h"
#include "kernels/attention.h"
#include "kernels/bernoulli.h"
#include "kernels/exp_to_one.h"
#include "kernels/vector_rows.h"

#ifndef HYBRIDNET_KERNELS_ATTENTION_TILES
#define HYBRIDNET_KERNELS_ATTENTION_TILES
namespace hybridnet::kernels {
// Tiles lie with queries along the vectors: maxima, sums and factors of queries are then vectors, too, and keys and
// values are read one number at a time, wherever they lie.
inline constexpr int64_t kQueries = 64, kKeys = 64;

// Gradients of keys and values are sums over queries. Few matrices are cut into so many ranges of queries, each with
// sums of its own, that depend on the shape only.
inline int64_t query_ranges(const AttentionShape& s) {
  const int64_t blocks = (s.queries + kQueries - 1) / kQueries;
  return std::clamp<int64_t>(16 / std::max<int64_t>(s.matrices, 1), 1, std::max<int64_t>(blocks, 1));
}
}  // namespace hybridnet::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// ---- products
enum class Into { kSet, kAdd, kScaled };  // c = a b; c += a b; c = c * factor + a b, with one factor per column

// Rows of c that are computed together, and vectors of each: what fits into the registers.
constexpr int kRowsAtOnce = 6;
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
constexpr int kVectorsAtOnce = 2;
#else
constexpr int kVectorsAtOnce = 4;
#endif

// Element (i, l) of the left operand is a[i * row + l * step].
template <typename T>
struct Left {
  const T* a;
  int64_t row, step;
};

template <Into kInto, int kM, int kV, typename T>
HWY_NOINLINE void block(Left<T> left, int64_t depth, const T* b, int64_t b_row, T* c, int64_t c_row, const T* factor) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sum[kM][kV];
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kV; ++j) {
      if constexpr (kInto == Into::kSet) {
        sum[i][j] = hn::Zero(d);
      } else {
        sum[i][j] = hn::LoadU(d, c + i * c_row + j * lanes);
        if constexpr (kInto == Into::kScaled) sum[i][j] = hn::Mul(sum[i][j], hn::LoadU(d, factor + j * lanes));
      }
    }
  }
  for (int64_t l = 0; l < depth; ++l) {
    hn::Vec<decltype(d)> right[kV];
    for (int j = 0; j < kV; ++j) right[j] = hn::LoadU(d, b + l * b_row + j * lanes);
    for (int i = 0; i < kM; ++i) {
      const auto x = hn::Set(d, left.a[i * left.row + l * left.step]);
      for (int j = 0; j < kV; ++j) sum[i][j] = hn::MulAdd(x, right[j], sum[i][j]);
    }
  }
  for (int i = 0; i < kM; ++i)
    for (int j = 0; j < kV; ++j) hn::StoreU(sum[i][j], d, c + i * c_row + j * lanes);
}

template <Into kInto, int kM, typename T>
HWY_INLINE void block_row(int64_t width, Left<T> left, int64_t depth, const T* b, int64_t b_row, T* c, int64_t c_row,
                          const T* factor) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  int64_t j = 0;
  const auto columns = [&]<int kV>() HWY_ATTR {
    for (; j + kV * lanes <= width; j += kV * lanes)
      block<kInto, kM, kV>(left, depth, b + j, b_row, c + j, c_row, factor ? factor + j : nullptr);
  };
  if constexpr (kVectorsAtOnce == 4) columns.template operator()<4>();
  columns.template operator()<2>();
  columns.template operator()<1>();
}

// c (m, width) from left (m, depth) and b (depth, width); width is a whole number of vectors.
template <Into kInto, typename T>
void product(int64_t m, int64_t width, int64_t depth, Left<T> left, const T* b, int64_t b_row, T* c, int64_t c_row,
             const T* factor = nullptr) {
  int64_t i = 0;
  const auto rows = [&]<int kM>() HWY_ATTR {
    for (; i + kM <= m; i += kM) {
      block_row<kInto, kM>(width, {left.a + i * left.row, left.row, left.step}, depth, b, b_row, c + i * c_row, c_row,
                           factor);
    }
  };
  rows.template operator()<kRowsAtOnce>();
  rows.template operator()<4>();
  rows.template operator()<2>();
  rows.template operator()<1>();
}

template <typename T>
int64_t whole_vectors(int64_t n) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  return (n + lanes - 1) / lanes * lanes;
}

// to (columns, rows) = from (rows, columns) transposed, kSide x kSide numbers of 16 bytes at a time.
template <typename T>
void transpose(const T* from, int64_t from_row, int64_t rows, int64_t columns, T* to, int64_t to_row) {
  constexpr int64_t kSide = 16 / sizeof(T);
  const hn::FixedTag<T, kSide> d;
  const int64_t whole_rows = rows / kSide * kSide, whole_columns = columns / kSide * kSide;
  for (int64_t r = 0; r < whole_rows; r += kSide) {
    for (int64_t c = 0; c < whole_columns; c += kSide) {
      const T* p = from + r * from_row + c;
      T* q = to + c * to_row + r;
      if constexpr (kSide == 2) {
        const auto x = hn::LoadU(d, p), y = hn::LoadU(d, p + from_row);
        hn::StoreU(hn::InterleaveLower(d, x, y), d, q);
        hn::StoreU(hn::InterleaveUpper(d, x, y), d, q + to_row);
      } else {
        const hn::Repartition<double, decltype(d)> pairs;
        const auto a = hn::LoadU(d, p), b = hn::LoadU(d, p + from_row), e = hn::LoadU(d, p + 2 * from_row),
                   f = hn::LoadU(d, p + 3 * from_row);
        const auto ab = hn::BitCast(pairs, hn::InterleaveLower(d, a, b)),
                   ef = hn::BitCast(pairs, hn::InterleaveLower(d, e, f)),
                   upper_ab = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b)),
                   upper_ef = hn::BitCast(pairs, hn::InterleaveUpper(d, e, f));
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ef)), d, q);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ef)), d, q + to_row);
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, upper_ab, upper_ef)), d, q + 2 * to_row);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, upper_ab, upper_ef)), d, q + 3 * to_row);
      }
    }
    for (int64_t c = whole_columns; c < columns; ++c)
      for (int64_t i = r; i < r + kSide; ++i) to[c * to_row + i] = from[i * from_row + c];
  }
  for (int64_t r = whole_rows; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[c * to_row + r] = from[r * from_row + c];
}

// to (columns, width) = factor * from (count, columns) transposed; columns behind count are 0.
template <typename T>
void turned(const T* from, int64_t from_row, int64_t count, int64_t columns, T factor, T* to, int64_t width) {
  transpose(from, from_row, count, columns, to, width);
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < count; ++r) to[c * width + r] *= factor;
    std::fill(to + c * width + count, to + (c + 1) * width, T(0));
  }
}

// to (count, width) = factor * from (count, columns); columns behind it are 0.
template <typename T>
void widened(const T* from, int64_t from_row, int64_t count, int64_t columns, T factor, T* to, int64_t width) {
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t c = 0; c < columns; ++c) to[r * width + c] = from[r * from_row + c] * factor;
    std::fill(to + r * width + columns, to + (r + 1) * width, T(0));
  }
}

// ---- tiles of scores
// Scores, and then weights, of a block of queries: made tile by tile, one row of `width` queries per key.
template <typename T>
class ScoreTiles {
 public:
  using D = hn::ScalableTag<T>;

  ScoreTiles(const AttentionShape& s, const T* k, const AttentionMask& mask)
      : s_(s), k_(k), mask_(mask), memory_(((s.size + 2 * kKeys + 2) * kQueries) * static_cast<int64_t>(sizeof(T))) {
    turned_q_ = static_cast<T*>(memory_.data());
    scores_ = turned_q_ + s.size * kQueries;
    summands_ = scores_ + kKeys * kQueries;
    limits_ = summands_ + kKeys * kQueries;
  }

  void start(int64_t matrix, int64_t first, const T* q) {
    matrix_ = matrix;
    first_ = first;
    count_ = std::min(kQueries, s_.queries - first);
    width_ = whole_vectors<T>(count_);
    turned(q + s_.q.at(matrix) + first * s_.q.row, s_.q.row, count_, s_.size, static_cast<T>(s_.scale), turned_q_,
           width_);
    find_limits();
  }
  int64_t matrix() const { return matrix_; }
  int64_t first() const { return first_; }
  int64_t count() const { return count_; }
  int64_t width() const { return width_; }
  int64_t end() const { return end_; }  // of the keys that some query attends to
  T* scores() { return scores_; }

  // The masked scores of keys [key, key + n).
  void make(int64_t key, int64_t n) {
    product<Into::kSet>(n, width_, s_.size, Left<T>{k_ + s_.k.at(matrix_) + key * s_.k.row, s_.k.row, 1}, turned_q_,
                        width_, scores_, width_);
    if (mask_.kind == AttentionMask::Kind::kAdded) add_mask(key, n);
    if (mask_.kind == AttentionMask::Kind::kKept) keep_mask(key, n);
    if (key + n > shortest_) cut(key, n);
  }

  // Draws which weights of keys [key, key + n) dropout keeps.
  void draw(int64_t key, int64_t n) {
    for (int64_t i = 0; i < count_; ++i) {
      const int64_t first = (matrix_ * s_.queries + first_ + i) * s_.keys + key, aligned = first / 4 * 4;
      fill_bernoulli(s_.rng, s_.keep, aligned, first + n - aligned, drawn_ + i * kDrawn);
      shift_[i] = static_cast<uint8_t>(first - aligned);
    }
  }
  // Of a tile like the scores, the elements that were drawn, divided by keep.
  void drop(int64_t n, T* tile) const {
    const T factor = s_.keep > 0 ? static_cast<T>(1 / s_.keep) : T(0);
    for (int64_t j = 0; j < n; ++j) {
      T* row = tile + j * width_;
      for (int64_t i = 0; i < count_; ++i) row[i] *= drawn_[i * kDrawn + shift_[i] + j] ? factor : T(0);
    }
  }

 private:
  void find_limits() {
    shortest_ = s_.keys;
    end_ = 0;
    for (int64_t i = 0; i < width_; ++i) {
      const int64_t query = std::min(first_ + i, s_.queries - 1);  // those behind the last one repeat it
      int64_t limit = s_.keys;
      if (mask_.kind == AttentionMask::Kind::kLengths) {
        const int64_t* lengths = static_cast<const int64_t*>(mask_.data) + mask_.offsets[static_cast<size_t>(matrix_)];
        limit = std::clamp<int64_t>(lengths[query * mask_.row], 0, s_.keys);
      }
      if (s_.causal) limit = std::min(limit, query + 1);
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

  // One number for all queries, or else the mask turned like the tile.
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
  T *turned_q_, *scores_, *summands_, *limits_;
  int64_t matrix_ = 0, first_ = 0, count_ = 0, width_ = 0;
  int64_t shortest_ = 0, end_ = 0;
  static constexpr int64_t kDrawn = kKeys + 8;
  uint8_t drawn_[kQueries * kDrawn], shift_[kQueries];
};

// ---- forward
template <typename T>
class Forward {
 public:
  Forward(const AttentionShape& s, const T* k, const T* v, const AttentionMask& mask)
      : s_(s), v_(v), tiles_(s, k, mask), memory_((s.value_size + 3) * kQueries * static_cast<int64_t>(sizeof(T))) {
    highest_ = static_cast<T*>(memory_.data());
    total_ = highest_ + kQueries;
    factor_ = total_ + kQueries;
    mixed_ = factor_ + kQueries;
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
      if (s_.keep < 1) {
        tiles_.draw(key, n);
        tiles_.drop(n, tiles_.scores());
      }
      product<Into::kScaled>(s_.value_size, width, n, Left<T>{v_ + s_.v.at(matrix) + key * s_.v.row, 1, s_.v.row},
                             tiles_.scores(), width, mixed_, width, factor_);
    }
    finish(out + s_.out.at(matrix) + first * s_.out.row, log_sums + matrix * s_.queries + first);
  }

 private:
  // Scores to e^(score - highest so far); factor_: what earlier sums are to be multiplied with.
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
      const auto top = hn::IfThenElse(hn::Eq(highest, none), hn::Zero(d), highest);  // no key so far
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
  T *highest_, *total_, *factor_, *mixed_;
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

// ---- backward
// Sums of gradients of keys and values; rows are whole vectors.
template <typename T>
struct Sums {
  int64_t size, value_size;  // in whole vectors
  int64_t keys;
  T *of_keys = nullptr, *of_values = nullptr;
  explicit Sums(const AttentionShape& s)
      : size(whole_vectors<T>(s.size)), value_size(whole_vectors<T>(s.value_size)), keys(s.keys) {}
  int64_t elements() const { return keys * (size + value_size); }
  void set_memory(T* memory) {
    of_keys = memory;
    of_values = memory + keys * size;
  }
};

template <typename T>
class Backward {
 public:
  Backward(const AttentionShape& s, const T* k, const T* v, const AttentionMask& mask)
      : s_(s),
        k_(k),
        v_(v),
        tiles_(s, k, mask),
        sums_(s),
        memory_((s.size + s.value_size + sums_.size + sums_.value_size + 2 * kKeys + 2) * kQueries *
                static_cast<int64_t>(sizeof(T))) {
    of_weights_ = static_cast<T*>(memory_.data());
    dropped_ = of_weights_ + kKeys * kQueries;
    log_sums_ = dropped_ + kKeys * kQueries;
    shift_ = log_sums_ + kQueries;
    turned_gradient_ = shift_ + kQueries;
    of_queries_ = turned_gradient_ + s.value_size * kQueries;
    queries_ = of_queries_ + s.size * kQueries;
    gradient_ = queries_ + sums_.size * kQueries;
  }

  // The queries [first, first + kQueries) of a matrix, at most; adds to `sums`.
  void run(int64_t matrix, int64_t first, const T* d_out, const T* q, const T* out, const T* log_sums, T* dq,
           const Sums<T>& sums) {
    tiles_.start(matrix, first, q);
    const int64_t width = tiles_.width(), count = tiles_.count();
    const T *dy = d_out + s_.out.at(matrix) + first * s_.out.row, *y = out + s_.out.at(matrix) + first * s_.out.row;
    turned(dy, s_.out.row, count, s_.value_size, T(1), turned_gradient_, width);
    widened(dy, s_.out.row, count, s_.value_size, T(1), gradient_, sums.value_size);
    widened(q + s_.q.at(matrix) + first * s_.q.row, s_.q.row, count, s_.size, static_cast<T>(s_.scale), queries_,
            sums.size);
    for (int64_t i = 0; i < width; ++i) {
      const bool inside = i < count;
      log_sums_[i] = inside ? log_sums[matrix * s_.queries + first + i] : std::numeric_limits<T>::infinity();
      shift_[i] = inside
                      ? sum_row<T>(s_.value_size,
                                   [&](auto at, int64_t c) HWY_ATTR {
                                     return hn::Mul(at.load(dy + i * s_.out.row + c), at.load(y + i * s_.out.row + c));
                                   })
                      : T(0);
    }
    std::fill_n(of_queries_, s_.size * width, T(0));
    for (int64_t key = 0; key < tiles_.end(); key += kKeys) {
      const int64_t n = std::min(kKeys, tiles_.end() - key);
      tiles_.make(key, n);
      product<Into::kSet>(n, width, s_.value_size, Left<T>{v_ + s_.v.at(matrix) + key * s_.v.row, s_.v.row, 1},
                          turned_gradient_, width, of_weights_, width);
      const T* weights = differentiate(key, n);
      product<Into::kAdd>(n, sums.value_size, count, Left<T>{weights, width, 1}, gradient_, sums.value_size,
                          sums.of_values + key * sums.value_size, sums.value_size);
      product<Into::kAdd>(n, sums.size, count, Left<T>{of_weights_, width, 1}, queries_, sums.size,
                          sums.of_keys + key * sums.size, sums.size);
      product<Into::kAdd>(s_.size, width, n, Left<T>{k_ + s_.k.at(matrix) + key * s_.k.row, 1, s_.k.row}, of_weights_,
                          width, of_queries_, width);
    }
    T* to = dq + s_.q.at(matrix) + first * s_.q.row;
    const T scale = static_cast<T>(s_.scale);
    for (int64_t i = 0; i < s_.size * width; ++i) of_queries_[i] *= scale;
    transpose(of_queries_, width, s_.size, count, to, s_.q.row);
  }

 private:
  // Turns scores into weights, and the gradient of weights into that of scores. Returns the weights behind dropout.
  const T* differentiate(int64_t key, int64_t n) {
    const hn::ScalableTag<T> d;
    const int64_t width = tiles_.width(), lanes = static_cast<int64_t>(hn::Lanes(d));
    T* weights = tiles_.scores();
    const bool drops = s_.keep < 1;
    if (drops) {
      tiles_.draw(key, n);
      tiles_.drop(n, of_weights_);
    }
    for (int64_t j = 0; j < n; ++j) {
      T *weight = weights + j * width, *gradient = of_weights_ + j * width;
      for (int64_t i = 0; i < width; i += lanes) {
        const auto p = exp_to_one(d, hn::Sub(hn::LoadU(d, weight + i), hn::LoadU(d, log_sums_ + i)));
        hn::StoreU(p, d, weight + i);
        hn::StoreU(hn::Mul(p, hn::Sub(hn::LoadU(d, gradient + i), hn::LoadU(d, shift_ + i))), d, gradient + i);
      }
    }
    if (!drops) return weights;
    std::copy_n(weights, n * width, dropped_);
    tiles_.drop(n, dropped_);
    return dropped_;
  }

  const AttentionShape& s_;
  const T *k_, *v_;
  ScoreTiles<T> tiles_;
  Sums<T> sums_;
  OwnedBlock memory_;
  T *of_weights_, *dropped_, *log_sums_, *shift_, *turned_gradient_, *of_queries_, *queries_, *gradient_;
};

template <typename T>
void backward(const AttentionShape& s, const T* d_out, const T* q, const T* k, const T* v, const AttentionMask& mask,
              const T* out, const T* log_sums, T* dq, T* dk, T* dv) {
  const int64_t ranges = query_ranges(s), blocks = (s.queries + kQueries - 1) / kQueries;
  const int64_t blocks_each = (blocks + ranges - 1) / ranges;
  if (s.matrices == 0) return;
  Sums<T> layout(s);
  const int64_t elements = layout.elements();
  // The sums of all ranges, or of the matrix at work.
  const auto bytes_of = [&](int64_t count) {
    return std::max<int64_t>(1, count * elements) * static_cast<int64_t>(sizeof(T));
  };
  const OwnedBlock partial(ranges > 1 ? bytes_of(s.matrices * ranges) : 1);
  const auto write = [&](int64_t matrix, const T* first, int64_t count) {  // the total of `count` sums
    for (int64_t key = 0; key < s.keys; ++key) {
      T *to_key = dk + s.k.at(matrix) + key * s.k.row, *to_value = dv + s.v.at(matrix) + key * s.v.row;
      for (int64_t part = 0; part < count; ++part) {
        const T* of_key = first + part * elements + key * layout.size;
        const T* of_value = first + part * elements + s.keys * layout.size + key * layout.value_size;
        for (int64_t c = 0; c < s.size; ++c) to_key[c] = part == 0 ? of_key[c] : to_key[c] + of_key[c];
        for (int64_t c = 0; c < s.value_size; ++c) to_value[c] = part == 0 ? of_value[c] : to_value[c] + of_value[c];
      }
    }
  };
  const int64_t units = s.matrices * ranges;
  parallel_for(units, 3 * attention_ns(s) / static_cast<double>(units), [&](int64_t begin, int64_t end) {
    Backward<T> work(s, k, v, mask);
    const OwnedBlock own(ranges > 1 ? 1 : bytes_of(1));
    Sums<T> sums(s);
    for (int64_t u = begin; u < end; ++u) {
      T* memory = ranges > 1 ? static_cast<T*>(partial.data()) + u * elements : static_cast<T*>(own.data());
      sums.set_memory(memory);
      std::fill_n(memory, elements, T(0));
      const int64_t matrix = u / ranges, first = u % ranges * blocks_each;
      for (int64_t b = first; b < std::min(first + blocks_each, blocks); ++b)
        work.run(matrix, b * kQueries, d_out, q, out, log_sums, dq, sums);
      if (ranges == 1) write(matrix, memory, 1);
    }
  });
  if (ranges == 1) return;
  parallel_for(s.matrices, static_cast<double>(ranges * elements), [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m)
      write(m, static_cast<const T*>(partial.data()) + m * ranges * elements, ranges);
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
void backward_float(const AttentionShape& s, const float* d_out, const float* q, const float* k, const float* v,
                    const AttentionMask& mask, const float* out, const float* log_sums, float* dq, float* dk,
                    float* dv) {
  backward(s, d_out, q, k, v, mask, out, log_sums, dq, dk, dv);
}
void backward_double(const AttentionShape& s, const double* d_out, const double* q, const double* k, const double* v,
                     const AttentionMask& mask, const double* out, const double* log_sums, double* dq, double* dk,
                     double* dv) {
  backward(s, d_out, q, k, v, mask, out, log_sums, dq, dk, dv);
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
template <typename T>
void attention_kept(const AttentionShape& s, T* to) {
  const int64_t n = s.matrices * s.queries * s.keys;
  const T factor = s.keep > 0 ? static_cast<T>(1 / s.keep) : T(0);
  constexpr int64_t kTile = 4096;
  uint8_t kept[kTile];
  for (int64_t first = 0; first < n; first += kTile) {
    const int64_t count = std::min(kTile, n - first);
    fill_bernoulli(s.rng, s.keep, first, count, kept);
    for (int64_t i = 0; i < count; ++i) to[first + i] = kept[i] ? factor : T(0);
  }
}
template void attention_kept(const AttentionShape&, float*);
template void attention_kept(const AttentionShape&, double*);

namespace {
HWY_EXPORT(forward_float);
HWY_EXPORT(forward_double);
HWY_EXPORT(backward_float);
HWY_EXPORT(backward_double);
}  // namespace

double attention_ns(const AttentionShape& s) {
  const double scores = static_cast<double>(s.matrices * s.queries) * static_cast<double>(s.keys);
  return scores * (1 + 0.03 * static_cast<double>(s.size + s.value_size)) * (s.causal ? 0.5 : 1.0);
}

template <>
void attention(const AttentionShape& s, const float* q, const float* k, const float* v, const AttentionMask& mask,
               float* out, float* log_sums) {
  HWY_DYNAMIC_DISPATCH(forward_float)(s, q, k, v, mask, out, log_sums);
}
template <>
void attention(const AttentionShape& s, const double* q, const double* k, const double* v, const AttentionMask& mask,
               double* out, double* log_sums) {
  HWY_DYNAMIC_DISPATCH(forward_double)(s, q, k, v, mask, out, log_sums);
}
template <>
void attention_gradient(const AttentionShape& s, const float* d_out, const float* q, const float* k, const float* v,
                        const AttentionMask& mask, const float* out, const float* log_sums, float* dq, float* dk,
                        float* dv) {
  HWY_DYNAMIC_DISPATCH(backward_float)(s, d_out, q, k, v, mask, out, log_sums, dq, dk, dv);
}
template <>
void attention_gradient(const AttentionShape& s, const double* d_out, const double* q, const double* k, const double* v,
                        const AttentionMask& mask, const double* out, const double* log_sums, double* dq, double* dk,
                        double* dv) {
  HWY_DYNAMIC_DISPATCH(backward_double)(s, d_out, q, k, v, mask, out, log_sums, dq, dk, dv);
}

}  // namespace hybridnet::kernels
#endif
