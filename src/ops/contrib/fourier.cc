// _contrib_fft and _contrib_ifft. Complex numbers are stored as pairs along the last axis: real part, imaginary part.
#include "kernels/linalg/fourier.h"

#include <algorithm>
#include <cmath>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "ops/cost.h"
#include "ops/emit.h"
#include "ops/linalg/matrices.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

const OpRef kForward{"_contrib_fft"}, kInverse{"_contrib_ifft"};

struct FourierParams {
  int32_t compute_size;
  static void describe(ParamSchema<FourierParams>& schema) {
    schema.field("compute_size", &FourierParams::compute_size)
        .default_value(128)
        .at_least(1)
        .doc("Number of vectors that MXNet transforms at a time; without effect.");
  }
};

// The shape of the input; its rank may be unknown.
Shape vectors(InferContext& c) {
  c.unify_dtypes();
  const Shape& shape = c.in_shape(0);
  if (!shape.known()) return {};
  if (shape.ndim() == 0)
    throw ShapeError({.input = "data", .expected = "vectors along the last axis", .given = "a scalar"});
  shape.size();  // throws if the size overflows
  return shape;
}

void infer_forward(const FourierParams&, InferContext& c) {
  Shape shape = vectors(c);
  if (!shape.rank_known()) return;
  shape[shape.ndim() - 1] *= 2;
  c.set_out_shape(0, shape);
}

void infer_inverse(const FourierParams&, InferContext& c) {
  Shape shape = vectors(c);
  if (!shape.rank_known()) return;
  int64_t& last = shape[shape.ndim() - 1];
  if (last % 2 != 0)
    throw ShapeError({.input = "data",
                      .expected = "pairs of real and imaginary parts along the last axis",
                      .given = "a last axis of " + std::to_string(last)});
  last /= 2;
  c.set_out_shape(0, shape);
}

// Transforms the vectors of `real`, a tensor of real vectors, side by side: read(i, lane, numbers) puts vector i into a
// lane of the numbers, write(i, lane, numbers) takes its transform from there.
template <int64_t kLanes, typename Read, typename Write>
void transform_lanes(const Shape& real, bool inverse, const Read& read, const Write& write) {
  const int64_t n = real[real.ndim() - 1], count = real.size() / n, groups = (count + kLanes - 1) / kLanes;
  const kernels::Fourier fourier(n);
  parallel_for(groups, 20.0 * static_cast<double>(n) * std::log2(static_cast<double>(n) + 1),
               [&](int64_t begin, int64_t end) {
                 kernels::Fourier::Vectors<kLanes> numbers(static_cast<size_t>(n));
                 for (int64_t group = begin; group < end; ++group) {
                   const int64_t first = group * kLanes, lanes = std::min(kLanes, count - first);
                   for (int64_t lane = 0; lane < lanes; ++lane) read(first + lane, lane, numbers);
                   fourier.run(numbers, inverse);
                   for (int64_t lane = 0; lane < lanes; ++lane) write(first + lane, lane, numbers);
                 }
               });
}

template <typename Read, typename Write>
void transform(const Shape& real, bool inverse, const Read& read, const Write& write) {
  if (real.size() == real[real.ndim() - 1])
    transform_lanes<1>(real, inverse, read, write);
  else
    transform_lanes<8>(real, inverse, read, write);
}

void run_forward(const FourierParams&, const KernelArgs& args) {
  dispatch_factor(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const Shape& real = *args.in[0].shape;
    const int64_t n = real[real.ndim() - 1];
    const auto read = [&](int64_t i, int64_t lane, auto& numbers) {
      const T* from = args.in[0].as<T>() + i * n;
      for (auto& number : numbers) {
        number.re[lane] = *from++;
        number.im[lane] = 0;
      }
    };
    transform(real, false, read, [&](int64_t i, int64_t lane, const auto& numbers) {
      T* to = args.out[0].as<T>() + i * 2 * n;
      for (const auto& number : numbers) {
        *to++ = static_cast<T>(number.re[lane]);
        *to++ = static_cast<T>(number.im[lane]);
      }
    });
  });
}

void run_inverse(const FourierParams&, const KernelArgs& args) {
  dispatch_factor(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const Shape& real = *args.out[0].shape;
    const int64_t n = real[real.ndim() - 1];
    const auto read = [&](int64_t i, int64_t lane, auto& numbers) {
      const T* from = args.in[0].as<T>() + i * 2 * n;
      for (auto& number : numbers) {
        number.re[lane] = *from++;
        number.im[lane] = *from++;
      }
    };
    transform(real, true, read, [&](int64_t i, int64_t lane, const auto& numbers) {
      T* to = args.out[0].as<T>() + i * n;
      for (const auto& number : numbers) *to++ = static_cast<T>(number.re[lane]);
    });
  });
}

double transform_cost(const FourierParams&, std::span<const TensorSpec> in, std::span<const TensorSpec>) {
  const Shape& s = in[0].shape;
  return 10 * elements(s) * (2 + std::log2(static_cast<double>(s[s.ndim() - 1]) + 1));
}

}  // namespace

// The two are transposes of each other, so each computes the gradient of the other.
void register_fourier(OpRegistry& ops) {
  ops.declare<FourierParams>("_contrib_fft")
      .doc("Discrete Fourier transforms of real vectors, not normalized.")
      .input("data", "(..., n), float32 or float64")
      .names_its_input()
      .output("out", "(..., 2 n): real and imaginary part of each element")
      .infer(infer_forward)
      .cpu(run_forward, kFactorDTypes)
      .cost(transform_cost)
      .gradient([](const FourierParams& p, const GradientContext& g) -> Values {
        if (!g.output_grad(0)) return {};
        return {call(kInverse, {g.output_grad(0)}, ParamSchema<FourierParams>::box(p))};
      })
      .amp(AmpType::kFloat)
      .sample({{2, 4}})
      .sample({{3, 2, 5}})
      .sample({Shape{12}});
  ops.declare<FourierParams>("_contrib_ifft")
      .doc("Real parts of inverse discrete Fourier transforms, without the factor 1 / n.")
      .input("data", "(..., 2 n): real and imaginary part of each element, float32 or float64")
      .names_its_input()
      .output("out", "(..., n)")
      .infer(infer_inverse)
      .cpu(run_inverse, kFactorDTypes)
      .cost(transform_cost)
      .gradient([](const FourierParams& p, const GradientContext& g) -> Values {
        if (!g.output_grad(0)) return {};
        return {call(kForward, {g.output_grad(0)}, ParamSchema<FourierParams>::box(p))};
      })
      .amp(AmpType::kFloat)
      .sample({{2, 8}})
      .sample({{3, 2, 10}})
      .sample({Shape{14}});
}

}  // namespace hybridnet::ops
