#include "kernels/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace hybridnet::kernels {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// A number and its derivative along one direction: the same algorithm gives loss and gradient of double, and the
// gradient's derivative of Dual.
struct Dual {
  double value = 0, slope = 0;
};
Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
Dual exp(Dual a) {
  const double e = std::exp(a.value);
  return {e, e == 0 ? 0 : e * a.slope};
}
double exp(double a) { return std::exp(a); }
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

// Steps that a label needs: one for each symbol and one for the blank between equal neighbours.
int64_t least_steps(std::span<const int64_t> label) {
  int64_t steps = static_cast<int64_t>(label.size());
  for (size_t i = 1; i < label.size(); ++i) steps += label[i] == label[i - 1];
  return steps;
}

// Probabilities of prefixes and suffixes of the label with blanks around its symbols ("states"), as logarithms.
template <typename S>
class Lattice {
 public:
  Lattice(const CtcSequence& s, std::vector<S> log_probabilities)
      : s_(s), states_(2 * static_cast<int64_t>(s.label.size()) + 1), log_(std::move(log_probabilities)) {
    forward();
  }

  S log_probability() const {
    if (s_.steps == 0) return S{};
    const S* last = &alpha_[at(s_.steps - 1, 0)];
    return states_ > 1 ? log_add(last[states_ - 1], last[states_ - 2]) : last[0];
  }

  // f(t, symbol, value): gradient of the loss by every activation.
  template <typename F>
  void gradient(const F& f) const {
    const S total = log_probability();
    std::vector<S> beta(static_cast<size_t>(states_)), before, paths(static_cast<size_t>(s_.symbols));
    for (int64_t t = s_.steps - 1; t >= 0; --t) {
      t == s_.steps - 1 ? end(beta) : step_back(t, before, beta);
      for (S& p : paths) set_never(p);
      for (int64_t i = 0; i < states_; ++i) {
        S& sum = paths[static_cast<size_t>(symbol(i))];
        sum = log_add(sum, alpha_[at(t, i)] + beta[static_cast<size_t>(i)]);
      }
      for (int64_t a = 0; a < s_.symbols; ++a) {
        const S used = paths[static_cast<size_t>(a)];
        const S share = value_of(used) == kNever ? S{} : exp(used - total);
        f(t, a, exp(log_[static_cast<size_t>(t * s_.symbols + a)]) - share);
      }
      std::swap(before, beta);
      beta.resize(static_cast<size_t>(states_));
    }
  }

 private:
  size_t at(int64_t t, int64_t state) const { return static_cast<size_t>(t * states_ + state); }
  int64_t symbol(int64_t state) const { return state % 2 == 0 ? s_.blank : s_.label[static_cast<size_t>(state / 2)]; }
  bool may_skip_to(int64_t state) const {  // from two states before, over a blank
    return state % 2 == 1 && state > 1 && symbol(state) != symbol(state - 2);
  }
  S log_at(int64_t t, int64_t state) const { return log_[static_cast<size_t>(t * s_.symbols + symbol(state))]; }

  void forward() {
    alpha_.resize(static_cast<size_t>(s_.steps * states_));
    for (S& a : alpha_) set_never(a);
    for (int64_t i = 0; s_.steps > 0 && i < std::min<int64_t>(states_, 2); ++i) alpha_[at(0, i)] = log_at(0, i);
    for (int64_t t = 1; t < s_.steps; ++t) {
      // What can neither be reached yet nor reach the end any more stays impossible.
      const int64_t first = std::max<int64_t>(0, states_ - 2 * (s_.steps - t)), last = std::min(states_, 2 * (t + 1));
      for (int64_t i = first; i < last; ++i) {
        S sum = alpha_[at(t - 1, i)];
        if (i > 0) sum = log_add(sum, alpha_[at(t - 1, i - 1)]);
        if (may_skip_to(i)) sum = log_add(sum, alpha_[at(t - 1, i - 2)]);
        if (value_of(sum) != kNever) alpha_[at(t, i)] = sum + log_at(t, i);
      }
    }
  }

  void end(std::vector<S>& beta) const {
    for (S& b : beta) set_never(b);
    beta[static_cast<size_t>(states_ - 1)] = S{};
    if (states_ > 1) beta[static_cast<size_t>(states_ - 2)] = S{};
  }

  // beta of step t, without the symbol at t, from `next` of step t + 1.
  void step_back(int64_t t, const std::vector<S>& next, std::vector<S>& beta) const {
    const auto reach = [&](int64_t state) {
      const S b = next[static_cast<size_t>(state)];
      return value_of(b) == kNever ? b : b + log_at(t + 1, state);
    };
    for (int64_t i = 0; i < states_; ++i) {
      S sum = reach(i);
      if (i + 1 < states_) sum = log_add(sum, reach(i + 1));
      if (i + 2 < states_ && may_skip_to(i + 2)) sum = log_add(sum, reach(i + 2));
      beta[static_cast<size_t>(i)] = sum;
    }
  }

  const CtcSequence& s_;
  int64_t states_;
  std::vector<S> log_, alpha_;
};

// log softmax of every step.
template <typename T>
std::vector<double> log_softmax(const CtcSequence& s, const T* data) {
  std::vector<double> log(static_cast<size_t>(s.steps * s.symbols));
  for (int64_t t = 0; t < s.steps; ++t) {
    const T* row = data + t * s.stride;
    double* out = log.data() + t * s.symbols;
    double high = kNever, total = 0;
    for (int64_t a = 0; a < s.symbols; ++a) high = std::max(high, static_cast<double>(row[a]));
    for (int64_t a = 0; a < s.symbols; ++a) total += std::exp(static_cast<double>(row[a]) - high);
    const double shift = high + std::log(total);
    for (int64_t a = 0; a < s.symbols; ++a) out[a] = static_cast<double>(row[a]) - shift;
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
  const std::vector<double> log = log_softmax(s, data);
  std::vector<Dual> dual(log.size());
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
