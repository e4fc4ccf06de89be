// Correlation: compares patches of one image with displaced patches of another.
//   Dosovitskiy et al.: FlowNet: Learning Optical Flow with Convolutional Networks, ICCV 2015, section 3.
#include <algorithm>
#include <cmath>

#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "ops/emit.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct CorrelationParams {
  int32_t kernel_size, max_displacement, stride1, stride2, pad_size;
  bool is_multiply;
  static void describe(ParamSchema<CorrelationParams>& schema) {
    schema.field("kernel_size", &CorrelationParams::kernel_size)
        .default_value(1)
        .at_least(1)
        .doc("Side of a patch; odd.");
    schema.field("max_displacement", &CorrelationParams::max_displacement)
        .default_value(1)
        .at_least(0)
        .doc("Maximum displacement of compared patches.");
    schema.field("stride1", &CorrelationParams::stride1)
        .default_value(1)
        .at_least(1)
        .doc("Stride of patches of data1.");
    schema.field("stride2", &CorrelationParams::stride2).default_value(1).at_least(1).doc("Stride of displacements.");
    schema.field("pad_size", &CorrelationParams::pad_size)
        .default_value(0)
        .at_least(0)
        .doc("Width of the zero padding around both images.");
    schema.field("is_multiply", &CorrelationParams::is_multiply)
        .default_value(true)
        .doc("Whether to compute mean products; else mean absolute differences.");
    schema.check([](const CorrelationParams& p) {
      if (p.kernel_size % 2 == 0)
        throw ParamError({.input = "kernel_size", .expected = "an odd number", .given = std::to_string(p.kernel_size)});
    });
  }
  int64_t radius() const { return max_displacement / stride2; }
  int64_t displacements() const { return checked_times(2 * radius() + 1, 2 * radius() + 1, "max_displacement"); }
  int64_t border() const { return int64_t{max_displacement} + (kernel_size - 1) / 2; }
  int64_t out_size(int64_t size) const { return (size + 2 * int64_t{pad_size} - 2 * border() + stride1 - 1) / stride1; }
};

void infer_correlation(const CorrelationParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_in_shape(0, Shape::unknown(4));
  c.set_in_shape(0, c.in_shape(1));
  c.set_in_shape(1, c.in_shape(0));
  const Shape& data = c.in_shape(0);
  Shape out({data[0], p.displacements(), kUnknownDim, kUnknownDim});
  for (int i = 2; i < 4; ++i) {
    if (data[i] == kUnknownDim) continue;
    out[i] = p.out_size(data[i]);
    if (data[i] + 2 * int64_t{p.pad_size} - 2 * p.border() < 1)
      throw ShapeError({.input = "data1",
                        .expected = "images that hold patches and their displacements",
                        .given = "shape " + data.str(),
                        .because = "patches may be " + std::to_string(p.border()) + " pixels from their centers",
                        .fix = "raise pad_size"});
  }
  c.set_out_shape(0, out);
}

// Calls f(output index, first pixel index or -1, second pixel index or -1) for every pair of pixels of one image that
// an output compares; -1 is a zero of the padding. Indices refer to the plane of one channel.
template <typename F>
void for_each_pair(const CorrelationParams& p, int64_t height, int64_t width, F&& f) {
  const int64_t out_h = p.out_size(height), out_w = p.out_size(width), side = 2 * p.radius() + 1;
  const auto pixel = [&](int64_t y, int64_t x) {
    return y >= 0 && y < height && x >= 0 && x < width ? y * width + x : int64_t{-1};
  };
  for (int64_t d = 0; d < p.displacements(); ++d) {
    const int64_t dy = (d / side - p.radius()) * p.stride2, dx = (d % side - p.radius()) * p.stride2;
    for (int64_t i = 0; i < out_h; ++i) {
      for (int64_t j = 0; j < out_w; ++j) {
        const int64_t y0 = i * p.stride1 + p.max_displacement - p.pad_size,
                      x0 = j * p.stride1 + p.max_displacement - p.pad_size;
        for (int64_t k = 0; k < static_cast<int64_t>(p.kernel_size) * p.kernel_size; ++k) {
          const int64_t y = y0 + k / p.kernel_size, x = x0 + k % p.kernel_size;
          f((d * out_h + i) * out_w + j, pixel(y, x), pixel(y + dy, x + dx));
        }
      }
    }
  }
}

template <typename A>
A read(const auto* plane, int64_t at) {
  return at < 0 ? A(0) : static_cast<A>(plane[at]);
}

void run_correlation(const CorrelationParams& p, const KernelArgs& a) {
  const Shape& s = *a.in[0].shape;
  const int64_t channels = s[1], plane = s[2] * s[3], outputs = a.out[0].shape->size(1, 4);
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = accumulator_t<T>;
    const A scale =
        A(1) / static_cast<A>(static_cast<int64_t>(p.kernel_size) * p.kernel_size * std::max<int64_t>(channels, 1));
    parallel_for(s[0], static_cast<double>(outputs * channels), [&](int64_t begin, int64_t end) {
      Temporary<A> sums(static_cast<size_t>(outputs));
      for (int64_t n = begin; n < end; ++n) {
        std::fill(sums.begin(), sums.end(), A(0));
        const T *first = a.in[0].as<T>() + n * channels * plane, *second = a.in[1].as<T>() + n * channels * plane;
        for_each_pair(p, s[2], s[3], [&](int64_t out, int64_t i, int64_t j) {
          A sum = 0;
          for (int64_t c = 0; c < channels; ++c) {
            const A x = read<A>(first + c * plane, i), y = read<A>(second + c * plane, j);
            sum += p.is_multiply ? x * y : std::abs(x - y);
          }
          sums[static_cast<size_t>(out)] += sum;
        });
        std::transform(sums.begin(), sums.end(), a.out[0].as<T>() + n * outputs,
                       [&](A v) { return static_cast<T>(v * scale); });
      }
    });
  });
}

// Inputs: output_grad, data1, data2.
void run_backward(const CorrelationParams& p, const KernelArgs& a) {
  const Shape& s = *a.in[1].shape;
  const int64_t channels = s[1], plane = s[2] * s[3], outputs = a.in[0].shape->size(1, 4), image = channels * plane;
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = accumulator_t<T>;
    const A scale =
        A(1) / static_cast<A>(static_cast<int64_t>(p.kernel_size) * p.kernel_size * std::max<int64_t>(channels, 1));
    parallel_for(s[0], static_cast<double>(outputs * channels), [&](int64_t begin, int64_t end) {
      Temporary<A> first_grad(static_cast<size_t>(image)), second_grad(static_cast<size_t>(image));
      for (int64_t n = begin; n < end; ++n) {
        std::fill(first_grad.begin(), first_grad.end(), A(0));
        std::fill(second_grad.begin(), second_grad.end(), A(0));
        const T *grad = a.in[0].as<T>() + n * outputs, *first = a.in[1].as<T>() + n * image,
                *second = a.in[2].as<T>() + n * image;
        for_each_pair(p, s[2], s[3], [&](int64_t out, int64_t i, int64_t j) {
          const A arriving = static_cast<A>(grad[out]) * scale;
          for (int64_t c = 0; c < channels; ++c) {
            const A x = read<A>(first + c * plane, i), y = read<A>(second + c * plane, j);
            const A sign = x >= y ? A(1) : A(-1);  // MXNet's sign for equal pixels
            if (i >= 0) first_grad[static_cast<size_t>(c * plane + i)] += arriving * (p.is_multiply ? y : sign);
            if (j >= 0) second_grad[static_cast<size_t>(c * plane + j)] += arriving * (p.is_multiply ? x : -sign);
          }
        });
        std::transform(first_grad.begin(), first_grad.end(), a.out[0].as<T>() + n * image,
                       [](A v) { return static_cast<T>(v); });
        std::transform(second_grad.begin(), second_grad.end(), a.out[1].as<T>() + n * image,
                       [](A v) { return static_cast<T>(v); });
      }
    });
  });
}

Values correlation_gradient(const CorrelationParams& p, const GradientContext& g) {
  static const OpRef kBackward{"_backward_Correlation"};
  if (!g.output_grad(0)) return {};
  return call_all(kBackward, {g.output_grad(0), g.input(0), g.input(1)}, ParamSchema<CorrelationParams>::box(p));
}

// The products are bilinear: for a fixed output gradient, the gradient of one image is linear in the other image.
Values backward_gradient(const CorrelationParams& p, const GradientContext& g) {
  static const OpRef kCorrelation{"Correlation"}, kBackward{"_backward_Correlation"};
  const Value by_first = g.output_grad(0), by_second = g.output_grad(1);
  Values grads(3);
  if (!p.is_multiply) {  // the derivative of a sign is 0
    if (!g.wants(0) || (!by_first && !by_second)) return grads;
    throw GradientError({.message = "second derivatives of Correlation exist for is_multiply=True only"});
  }
  const auto params = ParamSchema<CorrelationParams>::box(p);
  if (by_first) {
    if (g.wants(0)) grads[0] = call(kCorrelation, {by_first, g.input(2)}, params);
    if (g.wants(2)) grads[2] = call_all(kBackward, {g.input(0), by_first, g.input(2)}, params)[1];
  }
  if (by_second) {
    if (g.wants(0)) grads[0] = grads[0] + call(kCorrelation, {g.input(1), by_second}, params);
    if (g.wants(1)) grads[1] = call_all(kBackward, {g.input(0), g.input(1), by_second}, params)[0];
  }
  return grads;
}

double correlation_cost(const CorrelationParams& p, const Shape& data, int64_t outputs) {
  return 500 + static_cast<double>(outputs) * p.kernel_size * p.kernel_size * static_cast<double>(data[1]);
}

}  // namespace

void register_correlation(OpRegistry& ops) {
  const std::vector<std::pair<std::string, std::string>> padded = {
      {"kernel_size", "3"}, {"max_displacement", "2"}, {"stride1", "2"}, {"stride2", "2"}, {"pad_size", "3"}};
  Sample differences;
  differences.inputs = {{1, 2, 4, 4}, {1, 2, 4, 4}};
  differences.attrs = {{"is_multiply", "False"}, {"pad_size", "1"}};
  differences.check_gradient = false;
  differences.note = "absolute values have no second derivative to compare";
  ops.declare<CorrelationParams>("Correlation")
      .doc("Mean products, or mean absolute differences, of patches of data1 and displaced patches of data2.")
      .input("data1", "(batch, channels, height, width)")
      .input("data2", "shape of data1")
      .output("output", "(batch, displacements, out height, out width)")
      .infer(infer_correlation)
      .cpu(run_correlation, kFloating)
      .cost([](const CorrelationParams& p, auto in, auto out) {
        return correlation_cost(p, in[0].shape, out[0].shape.size());
      })
      .gradient(correlation_gradient, Saves::all_inputs())
      .amp(AmpType::kWidest)
      .sample({{2, 2, 4, 5}, {2, 2, 4, 5}}, {{"pad_size", "1"}})
      .sample({{1, 2, 5, 4}, {1, 2, 5, 4}}, padded)
      .sample(differences);
  Sample back;
  back.inputs = {{2, 9, 4, 5}, {2, 2, 4, 5}, {2, 2, 4, 5}};
  back.attrs = {{"pad_size", "1"}};
  ops.declare<CorrelationParams>("_backward_Correlation")
      .doc("Gradients of Correlation.")
      .input("output_grad", "(batch, displacements, out height, out width)")
      .input("data1", "same as in Correlation")
      .input("data2", "same as in Correlation")
      .output("data1_grad", "shape of data1")
      .output("data2_grad", "shape of data2")
      .infer([](const CorrelationParams& p, InferContext& c) {
        c.unify_dtypes();
        c.set_in_shape(1, c.in_shape(2));
        c.set_in_shape(2, c.in_shape(1));
        c.set_out_shape(0, c.in_shape(1));
        c.set_out_shape(1, c.in_shape(1));
        const Shape& data = c.in_shape(1);
        if (data.known())
          c.set_in_shape(0, Shape({data[0], p.displacements(), p.out_size(data[2]), p.out_size(data[3])}));
      })
      .cpu(run_backward, kFloating)
      .cost([](const CorrelationParams& p, auto in, auto) {
        return 2 * correlation_cost(p, in[1].shape, in[0].shape.size());
      })
      .gradient(backward_gradient, Saves::all_inputs())
      .internal()
      .sample(back);
}

}  // namespace hybridnet::ops
