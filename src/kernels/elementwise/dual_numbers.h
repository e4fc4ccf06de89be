// Numbers with their derivative along one direction, and arrays of them as two planes: values and slopes.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/product/gemm.h"
#include "storage/temporary.h"

namespace hybridnet::kernels {

template <typename T>
struct Dual {
  T value = 0, slope = 0;
  friend Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
  friend Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
  friend Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.value * b.slope + a.slope * b.value}; }
};
template <typename T>
Dual<T> one_minus(Dual<T> a) {
  return {1 - a.value, -a.slope};
}
template <typename T>
Dual<T> sigmoid(Dual<T> x) {
  const T y = 1 / (1 + std::exp(-x.value));
  return {y, y * (1 - y) * x.slope};
}
template <typename T>
Dual<T> tanh(Dual<T> x) {
  const T y = std::tanh(x.value);
  return {y, (1 - y * y) * x.slope};
}

// Planes of values and slopes in memory that it does not own.
template <typename T>
struct DualSpan {
  T *value = nullptr, *slope = nullptr;
  DualSpan operator+(int64_t n) const { return {value + n, slope + n}; }
  auto get(int64_t i) const { return Dual<std::remove_const_t<T>>{value[i], slope[i]}; }
  void set(int64_t i, Dual<T> x) const {
    value[i] = x.value;
    slope[i] = x.slope;
  }
  operator DualSpan<const T>() const { return {value, slope}; }  // NOLINT: like pointers
  explicit operator bool() const { return value != nullptr; }
};

// Planes of values and slopes in memory that it owns, initially zero.
template <typename T>
class DualArray {
 public:
  DualArray() = default;
  explicit DualArray(int64_t n) : value_(static_cast<size_t>(n)), slope_(static_cast<size_t>(n)) {}
  DualSpan<T> span() { return {value_.data(), slope_.data()}; }

 private:
  Temporary<T> value_, slope_;
};

// c = a b + beta c
template <typename T>
void gemm(const GemmShape& s, DualSpan<const T> a, DualSpan<const T> b, T beta, DualSpan<T> c) {
  gemm(s, T(1), a.value, b.value, beta, c.value);
  gemm(s, T(1), a.value, b.slope, beta, c.slope);
  gemm(s, T(1), a.slope, b.value, T(1), c.slope);
}

// Computes the slope of a b alone.
template <typename T>
void gemm_slope(const GemmShape& s, DualSpan<const T> a, DualSpan<const T> b, T beta, T* slope) {
  gemm(s, T(1), a.value, b.slope, beta, slope);
  gemm(s, T(1), a.slope, b.value, T(1), slope);
}

}  // namespace hybridnet::kernels
