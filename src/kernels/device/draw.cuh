// Draws that take as many random words as an element needs (kernels/functors/samplers.h), and densities.
#pragma once

#include <cmath>

#include "kernels/device/accumulators.cuh"
#include "kernels/device/draw_arguments.h"
#include "kernels/functors/densities.h"
#include "kernels/functors/samplers.h"

namespace hybridnet::device {

template <class D, class T>
__device__ inline void draw(const DrawArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    kernels::ElementBits bits({a.seed, a.stream}, static_cast<uint64_t>(i));
    static_cast<T*>(a.out)[i] = convert<T>(D::draw(bits, a.first, a.second));
  }
}

template <class D, class T>
__device__ inline void sample(const DrawArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    kernels::ElementBits bits({a.seed, a.stream}, static_cast<uint64_t>(i));
    const int64_t k = i / a.per_parameter;
    static_cast<T*>(a.out)[i] = convert<T>(D::draw(bits, a.firsts[k], a.seconds ? a.seconds[k] : 0.0));
  }
}

template <class T>
__device__ inline void draw_integers(const DrawArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    kernels::ElementBits bits({a.seed, a.stream}, static_cast<uint64_t>(i));
    static_cast<T*>(a.out)[i] = static_cast<T>(a.low + kernels::draw_below(bits, a.range));
  }
}

// ---- densities

template <class D, class T>
__device__ inline void density(const DensityArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const double one = convert<double>(static_cast<const T*>(a.first)[i / a.draws]);
    const double two = a.second ? convert<double>(static_cast<const T*>(a.second)[i / a.draws]) : 0.0;
    const double logarithm = D::log_density(convert<double>(static_cast<const T*>(a.sample)[i]), one, two);
    static_cast<T*>(a.out)[i] = convert<T>(a.is_log ? logarithm : std::exp(logarithm));
  }
}

template <class T>
__device__ inline void dirichlet_density(const DensityArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const T* const x = static_cast<const T*>(a.sample) + i * a.categories;
    const T* const alpha = static_cast<const T*>(a.first) + i / a.draws * a.categories;
    double logarithm = 0, total = 0;
    for (int64_t k = 0; k < a.categories; ++k) {
      const double weight = convert<double>(alpha[k]);
      logarithm += (weight - 1) * std::log(convert<double>(x[k])) - std::lgamma(weight);
      total += weight;
    }
    logarithm += std::lgamma(total);
    static_cast<T*>(a.out)[i] = convert<T>(a.is_log ? logarithm : std::exp(logarithm));
  }
}

// ---- outcomes

inline __device__ double positive(double x) { return x > 0 ? x : 0; }

// The first outcome whose cumulative sum exceeds a share of the total: each draw adds the probabilities again.
template <class T, class O>
__device__ inline void outcomes(const OutcomeArguments& a) {
  for (int64_t i = first(); i < a.count * a.draws; i += step()) {
    const T* const probabilities = static_cast<const T*>(a.probabilities) + i / a.draws * a.outcomes;
    double total = 0;
    for (int64_t k = 0; k < a.outcomes; ++k) total += positive(convert<double>(probabilities[k]));
    kernels::ElementBits bits({a.seed, a.stream}, static_cast<uint64_t>(i));
    const double target = bits.uniform() * total;
    double sum = 0;
    int64_t outcome = -1, last = -1;  // last: the first outcome whose sum is the total, if none exceeds the target
    for (int64_t k = 0; k < a.outcomes && outcome < 0; ++k) {
      sum += positive(convert<double>(probabilities[k]));
      if (sum > target) outcome = k;
      if (last < 0 && !(sum < total)) last = k;
    }
    if (outcome < 0) outcome = last;
    static_cast<O*>(a.out)[i] = convert<O>(static_cast<float>(outcome));
    if (a.logarithms)
      static_cast<T*>(a.logarithms)[i] = convert<T>(std::log(convert<accumulator_t<T>>(probabilities[outcome])));
  }
}

// sums: the place is the first one whose sum exceeds a share of the total, else the first whose sum is the total.
__device__ inline void choose(const ChoiceArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    kernels::ElementBits bits({a.seed, a.stream}, static_cast<uint64_t>(i));
    const double u = bits.uniform();
    if (!a.sums) {
      a.out[i] = static_cast<int64_t>(u * static_cast<double>(a.places));
      continue;
    }
    const double total = a.sums[a.places - 1], target = u * total;
    int64_t low = 0, high = a.places;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (a.sums[middle] > target || !(a.sums[middle] < total))
        high = middle;
      else
        low = middle + 1;
    }
    a.out[i] = low;
  }
}

// The count of one outcome after the other, from the experiments without an outcome so far.
__device__ inline void count_outcomes(const ChoiceArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    kernels::ElementBits bits({a.seed, a.stream}, static_cast<uint64_t>(i));
    int64_t rest = a.experiments;
    for (int64_t k = 0; k < a.places; ++k) {
      const double p = a.probabilities[k];
      const int64_t count = rest > 0 && p > 0 ? kernels::draw_binomial(bits, rest, p / a.sums[k]) : 0;
      a.out[i * a.places + k] = count;
      rest -= count;
    }
  }
}

// A thread for each row, which looks through the classes that it has drawn.
__device__ inline void unique_classes(const ClassArguments& a) {
  for (int64_t row = first(); row < a.rows; row += step()) {
    kernels::ElementBits bits({a.seed, a.stream}, static_cast<uint64_t>(row));
    int64_t* const out = a.out + row * a.wanted;
    int64_t tries = 0;
    for (int64_t found = 0; found < a.wanted; ++tries) {
      const int64_t drawn = static_cast<int64_t>(std::round(std::exp(bits.uniform() * a.log_range))) - 1;
      bool is_new = true;
      for (int64_t k = 0; k < found && is_new; ++k) is_new = out[k] != drawn;
      if (is_new) out[found++] = drawn;
    }
    a.tries[row] = tries;
  }
}

}  // namespace hybridnet::device
