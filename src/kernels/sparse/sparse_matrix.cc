#include "kernels/sparse/sparse_matrix.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "hybridnet/threads.h"
#include "kernels/elementwise/integers.h"
#include "kernels/isa.h"
#include "kernels/memory/strided_copy.h"

namespace hybridnet::kernels {
namespace {

constexpr double kElementNs = 0.5;  // per element read or product added
// Products with vectors are limited by memory: for 410,000 stored values one thread took 160 us and two took 190.
constexpr int64_t kLeastStoredToShare = 500'000;

// Nanoseconds for one of `items` equal parts of `work` elements.
double share_ns(int64_t work, int64_t items) {
  return 1.0 + kElementNs * static_cast<double>(work) / static_cast<double>(std::max<int64_t>(items, 1));
}

template <typename T>
bool is_zero(T value) {
  return static_cast<accumulator_t<T>>(value) == accumulator_t<T>(0);
}

// The operands of a product: row g of out sums data[k] * rhs[source[k]] over k in [starts[g], starts[g + 1]), or over
// the positions order[k] if `order` is not empty.
template <typename T>
struct Product {
  const int64_t *starts, *order, *source;
  const T *data, *rhs;
  int64_t width;
  T* out;
};

// 64 bytes of values that need not be aligned: one register of AVX-512, two of AVX2, four of SSE.
template <typename T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(64), aligned(alignof(T)), may_alias));
  static constexpr int64_t kSize = 64 / sizeof(T);
};

// Computes kVectors * Lanes::kSize columns, whose sums stay in registers.
template <int kVectors, typename T>
[[gnu::always_inline]] inline void sum_block(const Product<T>& p, int64_t g, int64_t column) {
  using Vector = typename Lanes<T>::Vector;
  Vector sum[kVectors] = {};
  for (int64_t k = p.starts[g]; k < p.starts[g + 1]; ++k) {
    const int64_t at = p.order == nullptr ? k : p.order[k];
    const T weight = p.data[at];
    const Vector* row = reinterpret_cast<const Vector*>(p.rhs + p.source[at] * p.width + column);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[v] += weight * row[v];
  }
  Vector* to = reinterpret_cast<Vector*>(p.out + g * p.width + column);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) to[v] = sum[v];
}

// Computes columns [column, width): the rest for float and double, all columns for other types. 16-bit floats are
// summed in float.
template <typename T>
[[gnu::always_inline]] inline void sum_rest(const Product<T>& p, int64_t g, int64_t column) {
  using A = accumulator_t<T>;
  constexpr int64_t kMost = 16;
  for (; column < p.width; column += kMost) {
    const int64_t n = std::min(kMost, p.width - column);
    A sum[kMost] = {};
    for (int64_t k = p.starts[g]; k < p.starts[g + 1]; ++k) {
      const int64_t at = p.order == nullptr ? k : p.order[k];
      const A weight = static_cast<A>(p.data[at]);
      const T* row = p.rhs + p.source[at] * p.width + column;
      for (int64_t i = 0; i < n; ++i) sum[i] = static_cast<A>(sum[i] + weight * static_cast<A>(row[i]));
    }
    for (int64_t i = 0; i < n; ++i) p.out[g * p.width + column + i] = static_cast<T>(sum[i]);
  }
}

template <typename T>
[[gnu::always_inline]] inline void sum_products(const Product<T>& p, int64_t g) {
  using A = accumulator_t<T>;
  constexpr int64_t kSums = 4;  // a single sum would wait for each addition
  A sum[kSums] = {};
  const auto term = [&](int64_t k) {
    const int64_t at = p.order == nullptr ? k : p.order[k];
    return static_cast<A>(static_cast<A>(p.data[at]) * static_cast<A>(p.rhs[p.source[at]]));
  };
  const int64_t end = p.starts[g + 1];
  int64_t k = p.starts[g];
  for (; k + kSums <= end; k += kSums)
    for (int64_t i = 0; i < kSums; ++i) sum[i] = static_cast<A>(sum[i] + term(k + i));
  for (; k < end; ++k) sum[0] = static_cast<A>(sum[0] + term(k));
  p.out[g] = static_cast<T>(static_cast<A>((sum[0] + sum[1]) + (sum[2] + sum[3])));
}

template <typename T>
[[gnu::always_inline]] inline void multiply_rows(const Product<T>& p, int64_t begin, int64_t end) {
  for (int64_t g = begin; g < end; ++g) {
    if (p.width == 1) {
      sum_products(p, g);
      continue;
    }
    int64_t column = 0;
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      constexpr int64_t kLanes = Lanes<T>::kSize;
      for (; column + 4 * kLanes <= p.width; column += 4 * kLanes) sum_block<4>(p, g, column);
      for (; column + kLanes <= p.width; column += kLanes) sum_block<1>(p, g, column);
    }
    sum_rest(p, g, column);
  }
}

// csr . vector with narrow indices.
template <typename T>
struct VectorProduct {
  const int64_t* starts;
  const int32_t* columns;
  const T *data, *rhs;
  T* out;
};

template <typename T>
[[gnu::always_inline]] inline void multiply_vector(const VectorProduct<T>& p, int64_t begin, int64_t end) {
  const int32_t* columns = p.columns;
  const T *data = p.data, *rhs = p.rhs;
  for (int64_t r = begin; r < end; ++r) {
    const int64_t first = p.starts[r], last = p.starts[r + 1];
    T sum = 0;
#pragma omp simd reduction(+ : sum)  // in lanes: a single sum would wait for each addition
    for (int64_t k = first; k < last; ++k) sum += data[k] * rhs[columns[k]];
    p.out[r] = sum;
  }
}

// transposed(csr) . vector: out[columns[k]] += data[k] * rhs[row of k].
template <typename T>
[[gnu::always_inline]] inline void scatter_vector(const VectorProduct<T>& p, int64_t rows) {
  const int32_t* columns = p.columns;
  const T* data = p.data;
  T* out = p.out;
  for (int64_t r = 0; r < rows; ++r) {
    const T factor = p.rhs[r];
    const int64_t first = p.starts[r], last = p.starts[r + 1];
#pragma GCC unroll 4
    for (int64_t k = first; k < last; ++k) out[columns[k]] += data[k] * factor;
  }
}

// transposed(csr) . rhs, columns [begin, end) of the result: out[indices[k]] += data[k] * rhs[row of k].
template <typename T>
struct Scatter {
  const CsrPattern& pattern;
  const T *data, *rhs;
  int64_t width;
  T* out;
};

template <int kVectors, typename T>
[[gnu::always_inline]] inline void scatter_block(const Scatter<T>& s, int64_t column) {
  using Vector = typename Lanes<T>::Vector;
  const int64_t *starts = s.pattern.indptr.data(), *columns = s.pattern.indices.data();
  for (int64_t r = 0; r < s.pattern.rows(); ++r) {
    Vector row[kVectors];
    const Vector* from = reinterpret_cast<const Vector*>(s.rhs + r * s.width + column);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) row[v] = from[v];
    for (int64_t k = starts[r]; k < starts[r + 1]; ++k) {
      const T weight = s.data[k];
      Vector* to = reinterpret_cast<Vector*>(s.out + columns[k] * s.width + column);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) to[v] += weight * row[v];
    }
  }
}

template <typename T>
[[gnu::always_inline]] inline void scatter_columns(const Scatter<T>& s, int64_t begin, int64_t end) {
  constexpr int64_t kLanes = Lanes<T>::kSize;
  int64_t column = begin;
  for (; column + 2 * kLanes <= end; column += 2 * kLanes) scatter_block<2>(s, column);
  for (; column + kLanes <= end; column += kLanes) scatter_block<1>(s, column);
  if (column == end) return;
  const int64_t *starts = s.pattern.indptr.data(), *columns = s.pattern.indices.data();
  for (int64_t r = 0; r < s.pattern.rows(); ++r) {
    const T* row = s.rhs + r * s.width;
    for (int64_t k = starts[r]; k < starts[r + 1]; ++k)
      for (int64_t i = column; i < end; ++i) s.out[columns[k] * s.width + i] += s.data[k] * row[i];
  }
}

// The dtypes for training models have loops with wider vectors than the baseline. The choice depends on the machine
// alone.
template <typename T>
void multiply_rows_baseline(const Product<T>& p, int64_t begin, int64_t end) {
  multiply_rows(p, begin, end);
}
template <typename T>
void multiply_vector_baseline(const VectorProduct<T>& p, int64_t begin, int64_t end) {
  multiply_vector(p, begin, end);
}
template <typename T>
void scatter_baseline(const Scatter<T>& s, int64_t begin, int64_t end) {
  scatter_columns(s, begin, end);
}
#if defined(__x86_64__)
template <typename T>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]] void multiply_rows_avx512(const Product<T>& p,
                                                                                              int64_t begin,
                                                                                              int64_t end) {
  multiply_rows(p, begin, end);
}
template <typename T>
[[gnu::target("avx2,fma,f16c")]] void multiply_rows_avx2(const Product<T>& p, int64_t begin, int64_t end) {
  multiply_rows(p, begin, end);
}
template <typename T>
[[gnu::target("avx2,fma")]] void multiply_vector_avx2(const VectorProduct<T>& p, int64_t begin, int64_t end) {
  multiply_vector(p, begin, end);
}
template <typename T>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]] void scatter_avx512(const Scatter<T>& s,
                                                                                        int64_t begin, int64_t end) {
  scatter_columns(s, begin, end);
}
template <typename T>
[[gnu::target("avx2,fma,f16c")]] void scatter_avx2(const Scatter<T>& s, int64_t begin, int64_t end) {
  scatter_columns(s, begin, end);
}
#endif

template <typename Fn>
Fn chosen(Fn baseline, Fn avx2, Fn avx512) {
  const Isa isa = isa_in_force().level;
  return isa >= Isa::kAvx512 ? avx512 : isa >= Isa::kAvx2 ? avx2 : baseline;
}

template <typename T>
auto multiply_fn() {
#if defined(__x86_64__)
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    return chosen(multiply_rows_baseline<T>, multiply_rows_avx2<T>, multiply_rows_avx512<T>);
#endif
  return multiply_rows_baseline<T>;
}

template <typename T>
auto multiply_vector_fn() {
#if defined(__x86_64__)
  // Gathers of 8 elements are the fastest with AVX-512, too.
  return chosen(multiply_vector_baseline<T>, multiply_vector_avx2<T>, multiply_vector_avx2<T>);
#endif
  return multiply_vector_baseline<T>;
}

template <typename T>
auto scatter_fn() {
#if defined(__x86_64__)
  return chosen(scatter_baseline<T>, scatter_avx2<T>, scatter_avx512<T>);
#endif
  return scatter_baseline<T>;
}

template <typename T>
void run_product(const Product<T>& product, int64_t groups, int64_t stored) {
  static const auto multiply = multiply_fn<T>();
  parallel_for(groups, share_ns(stored * std::max<int64_t>(product.width / 8, 2), groups),
               [&](int64_t begin, int64_t end) { multiply(product, begin, end); });
}

template <typename T>
VectorProduct<T> vector_product(const CsrPattern& p, const void* data, const void* rhs, void* out) {
  return {p.indptr.data(), p.narrow.data(), static_cast<const T*>(data), static_cast<const T*>(rhs),
          static_cast<T*>(out)};
}

// The dtypes with separate loops for products with vectors.
template <typename T>
inline constexpr bool kHasVectorLoops = std::is_same_v<T, float> || std::is_same_v<T, double>;

}  // namespace

void count_nonzeros(const void* dense, int64_t rows, int64_t columns, DType dtype, int64_t* indptr) {
  indptr[0] = 0;
  dispatch_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* values = static_cast<const T*>(dense);
    parallel_for(rows, share_ns(columns, 1), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t found = 0;
        for (int64_t c = 0; c < columns; ++c) found += !is_zero(values[r * columns + c]);
        indptr[r + 1] = found;
      }
    });
  });
  for (int64_t r = 0; r < rows; ++r) indptr[r + 1] += indptr[r];
}

void take_nonzeros(const void* dense, int64_t rows, int64_t columns, DType dtype, const int64_t* indptr,
                   int64_t* indices, void* data) {
  dispatch_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* values = static_cast<const T*>(dense);
    T* to = static_cast<T*>(data);
    parallel_for(rows, share_ns(columns, 1), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t at = indptr[r];
        for (int64_t c = 0; c < columns; ++c) {
          const T value = values[r * columns + c];
          if (is_zero(value)) continue;
          indices[at] = c;
          to[at++] = value;
        }
      }
    });
  });
}

void csr_to_dense(const CsrPattern& p, const void* data, int64_t columns, DType dtype, void* out) {
  zero_bytes(out, p.rows() * columns * dtype_size(dtype));
  dispatch_wrapping(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* values = static_cast<const T*>(data);
    T* to = static_cast<T*>(out);
    parallel_for(p.rows(), share_ns(p.stored(), p.rows()), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t k = p.indptr[static_cast<size_t>(r)]; k < p.indptr[static_cast<size_t>(r) + 1]; ++k) {
          T& target = to[r * columns + p.indices[static_cast<size_t>(k)]];
          using A = accumulator_t<T>;
          target = static_cast<T>(static_cast<A>(target) + static_cast<A>(values[k]));
        }
      }
    });
  });
}

void csr_dot(const CsrPattern& p, const void* data, DType dtype, const void* rhs, int64_t width, void* out) {
  if (width == 0) return;
  dispatch_wrapping(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (kHasVectorLoops<T>) {
      if (width == 1 && !p.narrow.empty()) {
        static const auto multiply = multiply_vector_fn<T>();
        const VectorProduct<T> product = vector_product<T>(p, data, rhs, out);
        if (p.stored() < kLeastStoredToShare) return multiply(product, 0, p.rows());
        return parallel_for(p.rows(), share_ns(p.stored(), p.rows()),
                            [&](int64_t begin, int64_t end) { multiply(product, begin, end); });
      }
    }
    run_product(Product<T>{p.indptr.data(), nullptr, p.indices.data(), static_cast<const T*>(data),
                           static_cast<const T*>(rhs), width, static_cast<T*>(out)},
                p.rows(), p.stored());
  });
}

void csr_transposed_dot(const RowGroups& groups, std::span<const int64_t> row_of, const void* data, DType dtype,
                        const void* rhs, int64_t width, void* out) {
  if (width == 0) return;
  dispatch_wrapping(dtype, [&](auto zero) {
    using T = decltype(zero);
    run_product(Product<T>{groups.starts.data(), groups.order.data(), row_of.data(), static_cast<const T*>(data),
                           static_cast<const T*>(rhs), width, static_cast<T*>(out)},
                groups.size(), static_cast<int64_t>(row_of.size()));
  });
}

bool scatters(DType dtype, int64_t columns, int64_t stored) {
  return (dtype == DType::kFloat32 || dtype == DType::kFloat64) && columns <= 4 * stored;
}

void csr_transposed_dot_dense(const CsrPattern& p, const void* data, DType dtype, const void* rhs, int64_t width,
                              int64_t columns, void* out) {
  zero_bytes(out, columns * width * dtype_size(dtype));
  dispatch_floating(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (kHasVectorLoops<T>) {
      if (width == 1 && !p.narrow.empty()) return scatter_vector(vector_product<T>(p, data, rhs, out), p.rows());
      const Scatter<T> scatter{p, static_cast<const T*>(data), static_cast<const T*>(rhs), width, static_cast<T*>(out)};
      static const auto run = scatter_fn<T>();
      // Threads share the columns of the result in whole blocks, so that each element is written by one thread.
      constexpr int64_t kBlock = 2 * Lanes<T>::kSize;
      parallel_for((width + kBlock - 1) / kBlock, share_ns(p.stored() * kBlock / 8, 1),
                   [&](int64_t begin, int64_t end) { run(scatter, begin * kBlock, std::min(end * kBlock, width)); });
    }
  });
}

std::vector<int64_t> used_columns(const CsrPattern& p, int64_t columns) {
  std::vector<uint8_t> used(static_cast<size_t>(columns), 0);
  for (const int64_t column : p.indices) used[static_cast<size_t>(column)] = 1;
  std::vector<int64_t> found;
  found.reserve(static_cast<size_t>(columns));
  for (int64_t c = 0; c < columns; ++c)
    if (used[static_cast<size_t>(c)] != 0) found.push_back(c);
  return found;
}

std::vector<int64_t> rows_of_values(std::span<const int64_t> indptr) {
  std::vector<int64_t> rows(static_cast<size_t>(indptr.back()));
  for (size_t r = 0; r + 1 < indptr.size(); ++r)
    std::fill(rows.begin() + indptr[r], rows.begin() + indptr[r + 1], static_cast<int64_t>(r));
  return rows;
}

void dense_dot_csr(const void* lhs, int64_t lhs_rows, const CsrPattern& p, const void* data, int64_t columns,
                   DType dtype, void* out) {
  dispatch_wrapping(dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = accumulator_t<T>;
    const T *left = static_cast<const T*>(lhs), *values = static_cast<const T*>(data);
    T* to = static_cast<T*>(out);
    parallel_for(lhs_rows, share_ns(p.stored() + columns, 1), [&](int64_t begin, int64_t end) {
      std::vector<A> sum(static_cast<size_t>(columns));
      for (int64_t i = begin; i < end; ++i) {
        std::fill(sum.begin(), sum.end(), A(0));
        for (int64_t r = 0; r < p.rows(); ++r) {
          const A factor = static_cast<A>(left[i * p.rows() + r]);
          for (int64_t k = p.indptr[static_cast<size_t>(r)]; k < p.indptr[static_cast<size_t>(r) + 1]; ++k) {
            A& target = sum[static_cast<size_t>(p.indices[static_cast<size_t>(k)])];
            target = static_cast<A>(target + factor * static_cast<A>(values[k]));
          }
        }
        for (int64_t c = 0; c < columns; ++c) to[i * columns + c] = static_cast<T>(sum[static_cast<size_t>(c)]);
      }
    });
  });
}

void csr_row_sums(const CsrPattern& p, const void* data, DType dtype, void* out) {
  dispatch_wrapping(dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = accumulator_t<T>;
    const T* values = static_cast<const T*>(data);
    parallel_for(p.rows(), share_ns(p.stored(), p.rows()), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        A sum = 0;
        for (int64_t k = p.indptr[static_cast<size_t>(r)]; k < p.indptr[static_cast<size_t>(r) + 1]; ++k)
          sum = static_cast<A>(sum + static_cast<A>(values[k]));
        static_cast<T*>(out)[r] = static_cast<T>(sum);
      }
    });
  });
}

void csr_column_sums(const CsrPattern& p, const void* data, DType dtype, int64_t columns, void* out) {
  dispatch_wrapping(dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = accumulator_t<T>;
    const T* values = static_cast<const T*>(data);
    std::vector<A> sums(static_cast<size_t>(columns), A(0));
    for (int64_t k = 0; k < p.stored(); ++k) {
      A& sum = sums[static_cast<size_t>(p.indices[static_cast<size_t>(k)])];
      sum = static_cast<A>(sum + static_cast<A>(values[k]));
    }
    for (int64_t c = 0; c < columns; ++c) static_cast<T*>(out)[c] = static_cast<T>(sums[static_cast<size_t>(c)]);
  });
}

bool columns_ascending(const CsrPattern& p) {
  for (int64_t r = 0; r < p.rows(); ++r) {
    const int64_t begin = p.indptr[static_cast<size_t>(r)], end = p.indptr[static_cast<size_t>(r) + 1];
    if (!strictly_ascending(p.indices.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin))))
      return false;
  }
  return true;
}

CsrAlignment align_csr(const CsrPattern& a, const CsrPattern& b, bool common_only) {
  CsrAlignment result;
  result.indptr.reserve(a.indptr.size());
  result.indptr.push_back(0);
  const auto row = [](const CsrPattern& p, int64_t r) {
    const int64_t begin = p.indptr[static_cast<size_t>(r)], end = p.indptr[static_cast<size_t>(r) + 1];
    return p.indices.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  };
  Alignment& columns = result.columns;
  for (int64_t r = 0; r < a.rows(); ++r) {
    const size_t first = columns.ids.size();
    align(row(a, r), row(b, r), common_only, &columns);
    for (size_t i = first; i < columns.ids.size(); ++i) {  // positions within the row become positions in the matrix
      if (columns.a[i] >= 0) columns.a[i] += a.indptr[static_cast<size_t>(r)];
      if (columns.b[i] >= 0) columns.b[i] += b.indptr[static_cast<size_t>(r)];
    }
    result.indptr.push_back(static_cast<int64_t>(columns.ids.size()));
  }
  return result;
}

CsrSelection select_csr(const CsrPattern& p, int64_t row_begin, int64_t row_end, int64_t column_begin,
                        int64_t column_end) {
  CsrSelection result;
  result.indptr.push_back(0);
  for (int64_t r = row_begin; r < row_end; ++r) {
    for (int64_t k = p.indptr[static_cast<size_t>(r)]; k < p.indptr[static_cast<size_t>(r) + 1]; ++k) {
      const int64_t column = p.indices[static_cast<size_t>(k)];
      if (column < column_begin || column >= column_end) continue;
      result.indices.push_back(column - column_begin);
      result.positions.push_back(k);
    }
    result.indptr.push_back(static_cast<int64_t>(result.indices.size()));
  }
  return result;
}

void gather_at_values(const CsrPattern& p, const void* dense, int64_t row_stride, int64_t column_stride,
                      int64_t element_bytes, void* out) {
  const char* from = static_cast<const char*>(dense);
  char* to = static_cast<char*>(out);
  parallel_for(p.rows(), share_ns(2 * p.stored(), p.rows()), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t k = p.indptr[static_cast<size_t>(r)]; k < p.indptr[static_cast<size_t>(r) + 1]; ++k) {
        const int64_t at = r * row_stride + p.indices[static_cast<size_t>(k)] * column_stride;
        std::memcpy(to + k * element_bytes, from + at * element_bytes, static_cast<size_t>(element_bytes));
      }
    }
  });
}

}  // namespace hybridnet::kernels
