// LeakyReLU: activations that differ from the identity below 0, with a fixed, learned or random slope there; and gelu.
#include "ops/elementwise/leaky_relu.h"

#include <algorithm>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/convert.h"
#include "kernels/random/rng.h"
#include "ops/broadcast/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

const OpRef kPreluSlope{"_prelu_slope"}, kMinimumScalar{"_minimum_scalar"};

bool has_gamma(const LeakyReluParams& p) { return p.act_type == LeakyType::kPrelu; }
bool has_mask(const LeakyReluParams& p) { return p.act_type == LeakyType::kRrelu; }

// The shape of the slopes among the axes of data: the axes of gamma become the batch and channel axes, aligned at the
// channels.
Shape slope_shape(const Shape& gamma, const Shape& data) {
  Shape shape = Shape::unknown(data.ndim());
  for (int axis = 0; axis < data.ndim(); ++axis) shape[axis] = 1;
  int next = gamma.ndim() - 1;
  for (int axis = std::min(data.ndim(), 2) - 1; axis >= 0 && next >= 0; --axis) {
    if (gamma[next] == data[axis] || gamma[next] == 1) shape[axis] = gamma[next--];
  }
  if (next < 0) return shape;
  throw ShapeError({.input = "gamma",
                    .expected = "(1,), a slope per channel, or a slope per example and channel of data " + data.str(),
                    .given = gamma.str()});
}

void infer_leaky(const LeakyReluParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  const Shape& data = c.in_shape(0);
  if (has_mask(p)) c.set_out_shape(1, data);
  if (!has_gamma(p) || !data.rank_known()) return;
  if (!c.in_shape(1).rank_known()) c.set_in_shape(1, Shape{data.ndim() > 1 ? data[1] : data.ndim() == 1 ? data[0] : 1});
  if (data.known() && c.in_shape(1).known()) slope_shape(c.in_shape(1), data);
}

void fill_slopes(const LeakyReluParams& p, const KernelArgs& a, const TensorRef& mask) {
  constexpr int64_t kTile = 1024;
  const int64_t n = mask.size();
  const double width = p.upper_bound - p.lower_bound;
  parallel_for((n + kTile - 1) / kTile, 2500.0, [&](int64_t first, int64_t last) {
    uint32_t bits[kTile];
    float slopes[kTile];
    for (int64_t tile = first; tile < last; ++tile) {
      const int64_t begin = tile * kTile, count = std::min(kTile, n - begin);
      kernels::philox_fill(a.rng, static_cast<uint64_t>(begin / 4), (count + 3) / 4, bits);
      for (int64_t i = 0; i < count; ++i) {
        slopes[i] = static_cast<float>(p.lower_bound + width * kernels::uniform_float(bits[i]));
      }
      kernels::convert(DType::kFloat32, slopes, mask.dtype, mask.as<char>() + begin * dtype_size(mask.dtype), count);
    }
  });
}

// Random slopes are drawn in training only; prediction uses the mean of their range.
void run_random(const LeakyReluParams& p, const KernelArgs& a) {
  const TensorRef& data = a.in[0];
  if (!a.train) {
    const LeakyReluParams mean = mean_of_random(p);
    if (a.out[1].data) {
      alignas(8) char value[8];
      kernels::store_scalar(data.dtype, mean.slope, value);
      kernels::broadcast_copy(value, Shape{1}, dtype_size(data.dtype), a.out[1].data, Shape{data.size()});
    }
    return run_plain_leaky(mean, a);
  }
  std::vector<char> own;
  TensorRef mask = a.out[1];
  if (!mask.data) {
    own.resize(static_cast<size_t>(data.size() * dtype_size(data.dtype)));
    mask = data;
    mask.data = own.data();
  }
  fill_slopes(p, a, mask);
  const void* in[] = {data.data, mask.data};
  kernels::apply_parallel(span_loops<Pointwise::kPrelu>(), data.dtype, in, a.out[0].data, data.size());
}

void run_leaky(const LeakyReluParams& p, const KernelArgs& a) {
  if (has_mask(p)) return run_random(p, a);
  if (!has_gamma(p)) return run_plain_leaky(p, a);
  const Shape& shape = *a.in[0].shape;
  kernels::apply_broadcast(span_loops<Pointwise::kPrelu>(), a.in[0].dtype, a.in[0].data, shape, a.in[1].data,
                           slope_shape(*a.in[1].shape, shape), a.out[0].data, shape);
}

// Draws the slopes from an interval of one number, so that outputs keep the layout of rrelu.
LeakyReluParams without_chance(LeakyReluParams p) {
  if (has_mask(p)) p.lower_bound = p.upper_bound = mean_of_random(p).slope;
  return p;
}

Values leaky_gradient(const LeakyReluParams& p, const GradientContext& g) {
  const Value dy = g.output_grad(0);
  if (!dy) return Values(static_cast<size_t>(g.num_inputs()));
  const Value x = g.input(0);
  if (has_mask(p)) {
    return {g.train() ? dy * call(kPreluSlope, {x, g.output(1)}) : plain_leaky_gradient(mean_of_random(p), dy, x)};
  }
  if (!has_gamma(p)) return {plain_leaky_gradient(p, dy, x)};
  const Shape& gamma = g.input_spec(1).shape;
  const Shape expanded = slope_shape(gamma, g.input_spec(0).shape);
  Values grads(2);
  if (g.wants(0)) grads[0] = dy * call(kPreluSlope, {x, reshape(g.input(1), expanded)});
  if (g.wants(1)) grads[1] = reshape(sum_to(dy * call(kMinimumScalar, {x}, {{"scalar", 0.0}}), expanded), gamma);
  return grads;
}

void add_samples(OpBuilder<LeakyReluParams>& op) {
  for (const char* type : {"leaky", "elu", "selu", "gelu"}) op.sample({{3, 4}}, {{"act_type", type}});
  op.sample({{3, 4}}, {{"act_type", "leaky"}, {"slope", "0.1"}})
      .sample({{2, 3, 4}, {3}}, {{"act_type", "prelu"}})
      .sample({{2, 3, 4}, {1}}, {{"act_type", "prelu"}})
      .sample({{2, 3}, {2, 3}}, {{"act_type", "prelu"}})
      .sample({.inputs = {{3, 4}},
               .attrs = {{"act_type", "rrelu"}},
               .check_gradient = false,
               .note = "random slopes in training"})
      .sample({Shape{0, 4}});
}

}  // namespace

LeakyReluParams mean_of_random(LeakyReluParams p) {
  p.act_type = LeakyType::kLeaky;
  p.slope = (p.lower_bound + p.upper_bound) / 2;
  return p;
}

void register_leaky_relu(OpRegistry& ops) {
  auto op = ops.declare<LeakyReluParams>("LeakyReLU");
  op.alias("_npx_leaky_relu")
      .doc(
          "Activations with values below 0. For x <= 0: leaky: slope * x; prelu: gamma * x, gamma learned; rrelu: a "
          "random\nslope between lower_bound and upper_bound per element in training, their mean otherwise;\nelu: "
          "slope * (e^x - 1); selu: scaled elu with fixed constants. For x > 0 these give x (selu: 1.0507 x).\ngelu: x "
          "times the normal distribution function of x, for all x.")
      .input("data", "floating array of any shape, channels at axis 1")
      .optional_input("gamma", "slopes, for prelu: (1,), (channels,) or (batch, channels)")
      .initialized("gamma", R"(["Constant", {"value": 0.25}])")
      .output("output", "shape and dtype of data")
      .output("mask", "for rrelu: the drawn slopes")
      .num_inputs([](const LeakyReluParams& p) { return has_gamma(p) ? 2 : 1; })
      .num_outputs([](const LeakyReluParams& p) { return has_mask(p) ? 2 : 1; })
      .infer(infer_leaky)
      .any_device_when([](const LeakyReluParams& p, const LinkContext&) { return !has_mask(p); })
      .cpu(run_leaky, kFloating)
      .random()
      .train_sensitive()
      .prediction_params(without_chance)
      .skips_unwanted_outputs()
      .inplace(0, 0)
      .cost([](const LeakyReluParams& p, auto in, auto out) { return elementwise_cost(plain_leaky_loops(p), in, out); })
      .gradient(leaky_gradient, Saves::all())
      .layer_activation(leaky_layer_form)
      .amp(AmpType::kFloat,
           [](const LeakyReluParams& p) { return p.act_type == LeakyType::kElu || p.act_type == LeakyType::kSelu; });
  add_samples(op);

  broadcast_op<Pointwise::kPreluSlope>(ops, "_prelu_slope", "1 where lhs is above 0, otherwise rhs.", kFloating)
      .internal()
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            if (!g.wants(1)) return Values(2);
            return {{}, to_operand(g, 1, g.output_grad(0) * (1.0 - greater(g.input(0), 0)))};
          },
          Saves::of({0}))
      .sample({{3, 4}, {3, 4}})
      .sample({{2, 3, 4}, {1, 3, 1}});
}

}  // namespace hybridnet::ops
