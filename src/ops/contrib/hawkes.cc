// _contrib_hawkesll: log likelihood of Hawkes processes with exponentially decaying excitation.
//   Bacry, Mastromatteo, Muzy: Hawkes processes in finance, Market Microstructure and Liquidity 1(1), 2015.
#include <cmath>
#include <vector>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/index/indices.h"
#include "ops/emit.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

const OpRef kBackward{"_contrib_backward_hawkesll"};

enum Input { kLda, kAlpha, kBeta, kState, kLags, kMarks, kValidLength, kMaxTime };

// The inputs from lda (samples, marks) on begin at index `first`.
void infer_inputs(InferContext& c, int first) {
  const int lda = first, alpha = first + kAlpha, beta = first + kBeta, state = first + kState, lags = first + kLags,
            marks = first + kMarks;
  c.set_in_shape(lda, Shape::unknown(2));
  c.set_in_shape(lags, Shape::unknown(2));
  c.set_in_shape(lda, c.in_shape(state));
  const auto known = [](int64_t a, int64_t b) { return a != kUnknownDim ? a : b; };
  const int64_t samples = known(c.in_shape(lda)[0], c.in_shape(lags)[0]), kinds = c.in_shape(lda)[1],
                points = c.in_shape(lags)[1];
  c.set_in_shape(lda, Shape({samples, kinds}));
  c.set_in_shape(alpha, Shape({kinds}));
  c.set_in_shape(beta, Shape({kinds}));
  c.set_in_shape(state, Shape({samples, kinds}));
  c.set_in_shape(lags, Shape({samples, points}));
  c.set_in_shape(marks, Shape({samples, points}));
  c.set_in_shape(first + kValidLength, Shape({samples}));
  c.set_in_shape(first + kMaxTime, Shape({samples}));
  c.set_in_dtype(marks, DType::kInt32);
}

void infer_hawkesll(const NoParams&, InferContext& c) {
  c.unify_dtypes({kLda, kAlpha, kBeta, kState, kLags, kValidLength, kMaxTime}, {0, 1});
  infer_inputs(c, 0);
  c.set_out_shape(0, Shape({c.in_shape(kLda)[0]}));
  c.set_out_shape(1, c.in_shape(kLda));
}

void infer_backward(const NoParams&, InferContext& c) {
  c.unify_dtypes({0, 1, 2, 3, 4, 5, 7, 8}, {0, 1, 2});
  infer_inputs(c, 1);
  c.set_in_shape(0, Shape({c.in_shape(1)[0]}));
  c.set_out_shape(0, c.in_shape(1));
  c.set_out_shape(1, c.in_shape(1));
  c.set_out_shape(2, c.in_shape(1));
}

// One sample of the observed processes, in the dtype of computation.
template <typename A>
struct Process {
  int64_t kinds, points;
  Temporary<A> lda, alpha, beta, state, lags;
  Temporary<int64_t> marks;
  A max_time;

  // first: index of lda among the inputs.
  template <typename T>
  static Process load(const KernelArgs& a, size_t first, int64_t sample, T) {
    const auto row = [&](size_t input, int64_t length, int64_t at) {
      const T* from = a.in[first + input].template as<T>() + at;
      return Temporary<A>(from, from + length);
    };
    Process p;
    p.kinds = (*a.in[first].shape)[1];
    const int64_t length = (*a.in[first + kLags].shape)[1];
    p.lda = row(kLda, p.kinds, sample * p.kinds);
    p.alpha = row(kAlpha, p.kinds, 0);
    p.beta = row(kBeta, p.kinds, 0);
    p.state = row(kState, p.kinds, sample * p.kinds);
    p.lags = row(kLags, length, sample * length);
    const A valid = static_cast<A>(a.in[first + kValidLength].template as<T>()[sample]);
    if (!(valid >= 0 && valid <= static_cast<A>(length))) {
      throw ValueError({.input = "valid_length",
                        .expected = "numbers in [0, " + std::to_string(length) + "]",
                        .given = AttrValue(static_cast<double>(valid)).str()});
    }
    p.points = static_cast<int64_t>(std::ceil(valid));
    const int32_t* marks = a.in[first + kMarks].as<int32_t>() + sample * length;
    p.marks.assign(marks, marks + p.points);
    for (int64_t mark : p.marks) {
      if (mark >= 0 && mark < p.kinds) continue;
      throw IndexError({.input = "marks",
                        .expected = "processes in [0, " + std::to_string(p.kinds - 1) + "]",
                        .given = std::to_string(mark)});
    }
    p.max_time = static_cast<A>(a.in[first + kMaxTime].template as<T>()[sample]);
    return p;
  }

  // Calls event(kind, time since its last event, decay over it) for every point, then rest(...) for every process for
  // the time until max_time.
  template <typename Event, typename Rest>
  void replay(Event&& event, Rest&& rest) const {
    Temporary<A> last(static_cast<size_t>(kinds), A(0));
    A time = 0;
    for (int64_t j = 0; j < points; ++j) {
      const size_t k = static_cast<size_t>(marks[static_cast<size_t>(j)]);
      time += lags[static_cast<size_t>(j)];
      const A since = time - last[k];
      event(k, since, std::exp(-beta[k] * since));
      last[k] = time;
    }
    for (size_t k = 0; k < static_cast<size_t>(kinds); ++k)
      rest(k, max_time - last[k], std::exp(-beta[k] * (max_time - last[k])));
  }
};

// Between events the intensity is lda + alpha beta state decay. Its integral, the compensator, is subtracted from the
// log likelihood.
void run_hawkesll(const NoParams&, const KernelArgs& a) {
  const int64_t samples = (*a.in[kLda].shape)[0], kinds = (*a.in[kLda].shape)[1];
  dispatch_floating(a.in[kLda].dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = accumulator_t<T>;
    parallel_for(samples, 2500.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Process<A> p = Process<A>::load(a, 0, i, zero);
        Temporary<A> state = p.state;
        A likelihood = 0;
        p.replay(
            [&](size_t k, A since, A decay) {
              likelihood += std::log(p.lda[k] + p.alpha[k] * p.beta[k] * state[k] * decay);
              likelihood -= p.lda[k] * since + p.alpha[k] * state[k] * (1 - decay);
              state[k] = 1 + state[k] * decay;
            },
            [&](size_t k, A since, A decay) {
              likelihood -= p.lda[k] * since + p.alpha[k] * state[k] * (1 - decay);
              state[k] *= decay;
            });
        a.out[0].as<T>()[i] = static_cast<T>(likelihood);
        for (int64_t k = 0; k < kinds; ++k)
          a.out[1].as<T>()[i * kinds + k] = static_cast<T>(state[static_cast<size_t>(k)]);
      }
    });
  });
}

// Derivatives of the same sums; `slope` is the derivative of the state by beta. The gradients of alpha and beta are per
// sample.
void run_backward(const NoParams&, const KernelArgs& a) {
  const int64_t samples = (*a.in[1].shape)[0], kinds = (*a.in[1].shape)[1];
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = accumulator_t<T>;
    parallel_for(samples, 2500.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Process<A> p = Process<A>::load(a, 1, i, zero);
        const size_t n = static_cast<size_t>(kinds);
        Temporary<A> state = p.state, slope(n, A(0)), lda(n, A(0)), alpha(n, A(0)), beta(n, A(0));
        const auto expected = [&](size_t k, A since, A decay) {
          lda[k] -= since;
          alpha[k] -= state[k] * (1 - decay);
          beta[k] -= p.alpha[k] * (slope[k] * (1 - decay) + state[k] * since * decay);
        };
        p.replay(
            [&](size_t k, A since, A decay) {
              const A inverse = 1 / (p.lda[k] + p.alpha[k] * p.beta[k] * state[k] * decay);
              lda[k] += inverse;
              alpha[k] += p.beta[k] * state[k] * decay * inverse;
              beta[k] += p.alpha[k] * decay * (state[k] * (1 - p.beta[k] * since) + p.beta[k] * slope[k]) * inverse;
              expected(k, since, decay);
              slope[k] = decay * (slope[k] - since * state[k]);
              state[k] = 1 + state[k] * decay;
            },
            expected);
        const A arriving = static_cast<A>(a.in[0].as<T>()[i]);
        for (size_t k = 0; k < n; ++k) {
          const size_t at = static_cast<size_t>(i) * n + k;
          a.out[0].as<T>()[at] = static_cast<T>(arriving * lda[k]);
          a.out[1].as<T>()[at] = static_cast<T>(arriving * alpha[k]);
          a.out[2].as<T>()[at] = static_cast<T>(arriving * beta[k]);
        }
      }
    });
  });
}

Values hawkesll_gradient(const NoParams&, const GradientContext& g) {
  if (!g.output_grad(0)) return {};
  Values inputs = {g.output_grad(0)};
  for (int i = 0; i < 8; ++i) inputs.push_back(g.input(i));
  const Values per_sample = call_all(kBackward, inputs);
  Values grads(8);
  grads[kLda] = per_sample[0];
  grads[kAlpha] = sum(per_sample[1], Tuple({0}), false);
  grads[kBeta] = sum(per_sample[2], Tuple({0}), false);
  return grads;
}

Sample processes(bool backward) {
  Sample s;
  s.inputs = {{2, 3}, {3}, {3}, {2, 3}, {2, 4}, {2, 4}, {2}, {2}};
  s.dtypes = std::vector<DType>(8, DType::kUnknown);
  s.dtypes[kMarks] = DType::kInt32;
  if (backward) {
    s.inputs.insert(s.inputs.begin(), Shape({2}));
    s.dtypes.insert(s.dtypes.begin(), DType::kUnknown);
  }
  s.low = 0.2;
  s.high = 1.9;
  s.check_gradient = false;
  s.note = "gradients exist for lda, alpha and beta, as in MXNet; they have a test of their own";
  return s;
}

template <typename B>
B& declare_inputs(B& builder) {
  return builder.input("lda", "(samples, processes): background intensities")
      .input("alpha", "(processes,): branching ratios")
      .input("beta", "(processes,): decay rates")
      .input("state", "(samples, processes): decayed number of events before the first point")
      .input("lags", "(samples, points): times since the previous point")
      .input("marks", "(samples, points) int32: the process of each point")
      .input("valid_length", "(samples,): number of valid points")
      .input("max_time", "(samples,): length of the observation");
}

}  // namespace

void register_hawkesll(OpRegistry& ops) {
  auto forward = ops.declare("_contrib_hawkesll");
  declare_inputs(forward.doc("Log likelihood of Hawkes processes: intensity lda + alpha * sum of beta * exp(-beta * (t "
                             "- t_i)) over past events. "
                             "lda, alpha and beta have gradients."))
      .output("output", "(samples,): log likelihoods")
      .output("out_state", "(samples, processes): the state at max_time")
      .infer(infer_hawkesll)
      .cpu(run_hawkesll, kFloating)
      .may_raise()
      .gradient(hawkesll_gradient, Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sample(processes(false));
  auto backward = ops.declare("_contrib_backward_hawkesll");
  backward.doc("Gradients of _contrib_hawkesll, per sample.").input("output_grad", "(samples,)");
  declare_inputs(backward)
      .output("lda_grad", "(samples, processes)")
      .output("alpha_grad", "(samples, processes)")
      .output("beta_grad", "(samples, processes)")
      .infer(infer_backward)
      .cpu(run_backward, kFloating)
      .may_raise()
      .internal()
      .gradient(kNotDifferentiable)
      .sample(processes(true));
}

}  // namespace hybridnet::ops
