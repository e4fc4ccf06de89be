#include "kernels/norm/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/norm/log_rows.h"
#include "storage/temporary.h"

namespace hybridnet::kernels {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// A number and its derivative along one direction. The algorithm on double computes the loss and its gradient; on Dual
// it also computes the gradient's derivative.
struct Dual {
  double value = 0, slope = 0;
};
Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
double value_of(double a) { return a; }
double value_of(Dual a) { return a.value; }
void set_never(double& a) { a = kNever; }
void set_never(Dual& a) { a = {kNever, 0}; }

// log(e^a + e^b)
double log_add(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return low == kNever ? high : high + std::log1p(std::exp(low - high));
}
Dual log_add(Dual a, Dual b) {
  const Dual &high = a.value >= b.value ? a : b, &low = a.value >= b.value ? b : a;
  if (low.value == kNever) return high;
  const double e = std::exp(low.value - high.value), share = e / (1 + e);
  return {high.value + std::log1p(e), high.slope + share * (low.slope - high.slope)};
}

using kernels::exp_row;
using kernels::log_sum3;

// The functions of kernels/norm/log_rows.h for rows of Dual.
void log_sum3(const Dual* a, const Dual* b, const Dual* c, const Dual* gate, const Dual* add, int64_t n, Dual* out) {
  for (int64_t i = 0; i < n; ++i) {
    const Dual sum = log_add(log_add(a[i], b[i]), c[i] + gate[i]);
    out[i] = sum.value == kNever ? Dual{kNever, 0} : sum + add[i];
  }
}
void exp_row(const Dual* a, Dual shift, int64_t n, Dual* out) {
  for (int64_t i = 0; i < n; ++i) {
    const Dual x = a[i] - shift;
    const double e = std::exp(x.value);
    out[i] = {e, e == 0 ? 0 : e * x.slope};
  }
}

// The number of steps that a label needs: one for each symbol and one for the blank between equal neighbors.
int64_t least_steps(std::span<const int64_t> label) {
  int64_t steps = static_cast<int64_t>(label.size());
  for (size_t i = 1; i < label.size(); ++i) steps += label[i] == label[i - 1];
  return steps;
}

// Logarithms of the probabilities of prefixes and suffixes of the label with blanks around its symbols ("states"). Rows
// of states have two impossible ones at each end, so that neighbors can always be read.
template <typename S>
class Lattice {
 public:
  Lattice(const CtcSequence& s, Temporary<S> log_probabilities)
      : s_(s),
        states_(2 * static_cast<int64_t>(s.label.size()) + 1),
        width_(states_ + 4),
        log_(std::move(log_probabilities)),
        gate_(static_cast<size_t>(width_)),
        none_(static_cast<size_t>(width_)) {
    for (int64_t i = 0; i < states_; ++i) {
      symbols_.push_back(i % 2 == 0 ? s.blank : s.label[static_cast<size_t>(i / 2)]);
      // Skipping a blank, from two states before, is possible only between different symbols.
      if (i % 2 == 0 || i < 2 || symbols_[static_cast<size_t>(i)] == symbols_[static_cast<size_t>(i - 2)])
        set_never(gate_[at(i)]);
    }
    forward();
  }

  S log_probability() const {
    if (s_.steps == 0) return S{};
    const S* last = alpha(s_.steps - 1);
    return states_ > 1 ? log_add(last[states_ - 1], last[states_ - 2]) : last[0];
  }

  // Calls f(t, symbol, value) with the gradient of the loss by every activation.
  template <typename F>
  void gradient(const F& f) const {
    const S total = log_probability();
    const bool possible = value_of(total) != kNever;
    Temporary<S> beta = impossible_row(), ahead = impossible_row();
    Temporary<S> paths(static_cast<size_t>(states_)), used(static_cast<size_t>(s_.symbols)), p(used.size());
    for (int64_t t = s_.steps - 1; t >= 0; --t) {
      if (t == s_.steps - 1)
        end(beta);
      else
        step_back(t, ahead, beta);
      for (int64_t i = 0; i < states_; ++i) paths[static_cast<size_t>(i)] = alpha(t)[i] + beta[at(i)];
      exp_row(paths.data(), total, states_, paths.data());
      std::fill(used.begin(), used.end(), S{});
      for (int64_t i = 0; possible && i < states_; ++i) {
        S& sum = used[static_cast<size_t>(symbols_[static_cast<size_t>(i)])];
        sum = sum + paths[static_cast<size_t>(i)];
      }
      exp_row(&log_[static_cast<size_t>(t * s_.symbols)], S{}, s_.symbols, p.data());
      for (int64_t a = 0; a < s_.symbols; ++a) f(t, a, p[static_cast<size_t>(a)] - used[static_cast<size_t>(a)]);
    }
  }

 private:
  static size_t at(int64_t state) { return static_cast<size_t>(state + 2); }
  const S* alpha(int64_t t) const { return &alpha_[static_cast<size_t>(t * width_ + 2)]; }
  S* alpha(int64_t t) { return &alpha_[static_cast<size_t>(t * width_ + 2)]; }
  Temporary<S> impossible_row() const {
    Temporary<S> row(static_cast<size_t>(width_));
    for (S& x : row) set_never(x);
    return row;
  }
  S log_at(int64_t t, int64_t state) const {
    return log_[static_cast<size_t>(t * s_.symbols + symbols_[static_cast<size_t>(state)])];
  }

  void forward() {
    alpha_.resize(static_cast<size_t>(s_.steps * width_));
    for (S& a : alpha_) set_never(a);
    for (int64_t i = 0; s_.steps > 0 && i < std::min<int64_t>(states_, 2); ++i) alpha(0)[i] = log_at(0, i);
    Temporary<S> here(static_cast<size_t>(states_));
    for (int64_t t = 1; t < s_.steps; ++t) {
      // States that are not reachable yet, or that cannot reach the end any more, stay impossible.
      const int64_t first = std::max<int64_t>(0, states_ - 2 * (s_.steps - t)), last = std::min(states_, 2 * (t + 1));
      for (int64_t i = first; i < last; ++i) here[static_cast<size_t>(i)] = log_at(t, i);
      const S* from = alpha(t - 1) + first;
      log_sum3(from, from - 1, from - 2, &gate_[at(first)], &here[static_cast<size_t>(first)], last - first,
               alpha(t) + first);
    }
  }

  void end(Temporary<S>& beta) const {
    beta[at(states_ - 1)] = S{};
    if (states_ > 1) beta[at(states_ - 2)] = S{};
  }

  // Replaces beta of step t + 1 by beta of step t, without the symbol at t.
  void step_back(int64_t t, Temporary<S>& ahead, Temporary<S>& beta) const {
    for (int64_t i = 0; i < states_; ++i) ahead[at(i)] = beta[at(i)] + log_at(t + 1, i);
    const S* from = &ahead[at(0)];
    log_sum3(from, from + 1, from + 2, &gate_[at(2)], none_.data(), states_, &beta[at(0)]);
  }

  const CtcSequence& s_;
  int64_t states_, width_;
  Temporary<S> log_, gate_, none_, alpha_;
  Temporary<int64_t> symbols_;
};

// Returns the log softmax of every step.
template <typename T>
Temporary<double> log_softmax(const CtcSequence& s, const T* data) {
  Temporary<double> log(static_cast<size_t>(s.steps * s.symbols)), e(static_cast<size_t>(s.symbols));
  for (int64_t t = 0; t < s.steps; ++t) {
    const T* row = data + t * s.stride;
    double* out = log.data() + t * s.symbols;
    double high = kNever, total = 0;
    for (int64_t a = 0; a < s.symbols; ++a) {
      out[a] = static_cast<double>(row[a]);
      high = std::max(high, out[a]);
    }
    exp_row(out, high, s.symbols, e.data());
    for (double x : e) total += x;
    const double shift = high + std::log(total);
    for (int64_t a = 0; a < s.symbols; ++a) out[a] -= shift;
  }
  return log;
}

template <typename T>
void clear(const CtcSequence& s, T* out) {
  for (int64_t t = 0; t < s.steps; ++t) std::fill_n(out + t * s.stride, s.symbols, T(0));
}

}  // namespace

template <typename T>
double ctc_loss(const CtcSequence& s, const T* data, T* gradient) {
  if (s.steps < least_steps(s.label)) {
    if (gradient) clear(s, gradient);
    return 0;
  }
  const Lattice<double> lattice(s, log_softmax(s, data));
  if (gradient)
    lattice.gradient([&](int64_t t, int64_t a, double g) { gradient[t * s.stride + a] = static_cast<T>(g); });
  return -lattice.log_probability();
}

template <typename T>
void ctc_second_product(const CtcSequence& s, const T* data, const T* direction, T* product) {
  if (s.steps < least_steps(s.label)) return clear(s, product);
  const Temporary<double> log = log_softmax(s, data);
  Temporary<Dual> dual(log.size());
  for (int64_t t = 0; t < s.steps; ++t) {
    double mean = 0;
    for (int64_t a = 0; a < s.symbols; ++a)
      mean += std::exp(log[static_cast<size_t>(t * s.symbols + a)]) * static_cast<double>(direction[t * s.stride + a]);
    for (int64_t a = 0; a < s.symbols; ++a) {
      const auto i = static_cast<size_t>(t * s.symbols + a);
      dual[i] = {log[i], static_cast<double>(direction[t * s.stride + a]) - mean};
    }
  }
  Lattice<Dual>(s, std::move(dual)).gradient([&](int64_t t, int64_t a, Dual g) {
    product[t * s.stride + a] = static_cast<T>(g.slope);
  });
}

template double ctc_loss(const CtcSequence&, const float*, float*);
template double ctc_loss(const CtcSequence&, const double*, double*);
template void ctc_second_product(const CtcSequence&, const float*, const float*, float*);
template void ctc_second_product(const CtcSequence&, const double*, const double*, double*);

}  // namespace hybridnet::kernels
