#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/attention_gradient.cc"
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
#include "kernels/memory/vector_rows.h"
#include "kernels/norm/exp_to_one.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// Gradients of keys and values are sums over queries. If there are few matrices, each is split into ranges of queries
// with separate sums. The number of ranges depends on the shape only.
int64_t query_ranges(const AttentionShape& s) {
  const int64_t blocks = (s.queries + kQueries - 1) / kQueries;
  return std::clamp<int64_t>(16 / std::max<int64_t>(s.matrices, 1), 1, std::max<int64_t>(blocks, 1));
}

// Sums for the gradients of keys and values; rows are whole vectors.
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
        memory_(((s.size + s.value_size + sums_.size + sums_.value_size + kKeys + 2) * kQueries + s.size * kKeys) *
                static_cast<int64_t>(sizeof(T))) {
    of_weights_ = static_cast<T*>(memory_.data());
    log_sums_ = of_weights_ + kKeys * kQueries;
    shift_ = log_sums_ + kQueries;
    transposed_gradient_ = shift_ + kQueries;
    of_queries_ = transposed_gradient_ + s.value_size * kQueries;
    queries_ = of_queries_ + s.size * kQueries;
    gradient_ = queries_ + sums_.size * kQueries;
    keys_ = gradient_ + sums_.value_size * kQueries;
  }

  // Processes the queries [first, first + kQueries) of a matrix, or fewer at its end; adds to `sums`.
  void run(int64_t matrix, int64_t first, const T* d_out, const T* q, const T* out, const T* log_sums, T* dq,
           const Sums<T>& sums) {
    tiles_.start(matrix, first, q);
    const int64_t width = tiles_.width(), count = tiles_.count();
    const T *dy = d_out + s_.out.at(matrix) + first * s_.out.row, *y = out + s_.out.at(matrix) + first * s_.out.row;
    scaled_transpose(dy, s_.out.row, count, s_.value_size, T(1), transposed_gradient_, width);
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
                          transposed_gradient_, width, of_weights_, width);
      if (s_.keep < 1) {
        tiles_.draw(key, n);
        differentiate<true>(n);
      } else {
        differentiate<false>(n);
      }
      product<Into::kAdd>(n, sums.value_size, count, Left<T>{tiles_.scores(), width, 1}, gradient_, sums.value_size,
                          sums.of_values + key * sums.value_size, sums.value_size);
      product<Into::kAdd>(n, sums.size, count, Left<T>{of_weights_, width, 1}, queries_, sums.size,
                          sums.of_keys + key * sums.size, sums.size);
      const T* keys = close_rows(k_ + s_.k.at(matrix) + key * s_.k.row, s_.k.row, n, s_.size, keys_);
      product<Into::kAdd>(s_.size, width, n, Left<T>{keys, 1, s_.size}, of_weights_, width, of_queries_, width);
    }
    T* to = dq + s_.q.at(matrix) + first * s_.q.row;
    const T scale = static_cast<T>(s_.scale);
    for (int64_t i = 0; i < s_.size * width; ++i) of_queries_[i] *= scale;
    transpose(of_queries_, width, s_.size, count, to, s_.q.row);
  }

 private:
  // Replaces scores by the weights after dropout, and the gradient of these weights by the gradient of the scores.
  template <bool kDrops>
  void differentiate(int64_t n) {
    const hn::ScalableTag<T> d;
    const int64_t width = tiles_.width(), lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t j = 0; j < n; ++j) {
      T *weights = tiles_.scores() + j * width, *gradients = of_weights_ + j * width;
      const T* kept = tiles_.kept() + j * width;
      for (int64_t i = 0; i < width; i += lanes) {
        const auto p = exp_to_one(d, hn::Sub(hn::LoadU(d, weights + i), hn::LoadU(d, log_sums_ + i)));
        auto weight = p, gradient = hn::LoadU(d, gradients + i);
        if constexpr (kDrops) {
          weight = hn::Mul(weight, hn::LoadU(d, kept + i));
          gradient = hn::Mul(gradient, hn::LoadU(d, kept + i));
        }
        hn::StoreU(weight, d, weights + i);
        hn::StoreU(hn::Mul(p, hn::Sub(gradient, hn::LoadU(d, shift_ + i))), d, gradients + i);
      }
    }
  }

  const AttentionShape& s_;
  const T *k_, *v_;
  ScoreTiles<T> tiles_;
  Sums<T> sums_;
  OwnedBlock memory_;
  T *of_weights_, *log_sums_, *shift_, *transposed_gradient_, *of_queries_, *queries_, *gradient_, *keys_;
};

template <typename T>
void backward(const AttentionShape& s, const T* d_out, const T* q, const T* k, const T* v, const AttentionMask& mask,
              const T* out, const T* log_sums, T* dq, T* dk, T* dv) {
  const int64_t ranges = query_ranges(s), blocks = (s.queries + kQueries - 1) / kQueries;
  const int64_t blocks_each = (blocks + ranges - 1) / ranges;
  if (s.matrices == 0) return;
  Sums<T> layout(s);
  const int64_t elements = layout.elements();
  // Bytes of `count` sums: those of all ranges, or of the current matrix.
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
namespace {
HWY_EXPORT(backward_float);
HWY_EXPORT(backward_double);
}  // namespace

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
