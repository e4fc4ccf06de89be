// UpSampling: enlarges images by an integer factor, by repetition or by a transposed convolution.
#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "ops/emit.h"
#include "ops/float_kernel.h"
#include "ops/nn/resample.h"

namespace hybridnet::ops {
namespace {

const OpRef kDeconvolution{"Deconvolution"};

enum class SampleType : int32_t { kNearest, kBilinear };
enum class MultiInputMode : int32_t { kConcat, kSum };

struct UpSamplingParams {
  int32_t scale, num_filter, num_args;
  SampleType sample_type;
  MultiInputMode multi_input_mode;
  int64_t workspace;

  bool bilinear() const { return sample_type == SampleType::kBilinear; }
  bool sums() const { return multi_input_mode == MultiInputMode::kSum; }
  int64_t kernel() const { return 2 * int64_t{scale} - scale % 2; }
  static void describe(ParamSchema<UpSamplingParams>& schema);
};

void UpSamplingParams::describe(ParamSchema<UpSamplingParams>& schema) {
  using P = UpSamplingParams;
  schema.field("scale", &P::scale).at_least(1).doc("Factor of height and width of the first input.");
  schema.field("num_filter", &P::num_filter).default_value(0).doc("For bilinear: channels of data; optional.");
  schema.field("sample_type", &P::sample_type)
      .choice("bilinear", SampleType::kBilinear)
      .choice("nearest", SampleType::kNearest)
      .doc(
          "nearest: repeats elements; bilinear: a transposed convolution of each channel with a weight that is "
          "learned.");
  schema.field("multi_input_mode", &P::multi_input_mode)
      .default_value("concat")
      .choice("concat", MultiInputMode::kConcat)
      .choice("sum", MultiInputMode::kSum)
      .doc("nearest: whether enlarged inputs are joined along the channels or added.");
  schema.field("num_args", &P::num_args)
      .at_least(1)
      .doc("Number of inputs; for bilinear: number of images, or of images and weight, as there is always one weight.");
  schema.field("workspace", &P::workspace).default_value(512).hidden();
}

[[noreturn]] void bad_image(const InferContext& c, int i, std::string expected, std::string because = "") {
  throw ShapeError({.input = c.input_name(i),
                    .expected = std::move(expected),
                    .given = c.in_shape(i).str(),
                    .because = std::move(because)});
}

void infer_nearest(const UpSamplingParams& p, InferContext& c) {
  for (int i = 0; i < c.num_in(); ++i) require_planes(c, i);
  const Shape& first = c.in_shape(0);
  Shape out = Shape::unknown(4);
  out[0] = first[0];
  for (int axis : {2, 3})
    out[axis] = first[axis] == kUnknownDim ? kUnknownDim : checked_times(first[axis], p.scale, "scale");
  int64_t channels = 0;
  for (int i = 0; i < c.num_in(); ++i) {
    const Shape& in = c.in_shape(i);
    c.set_in_shape(i, Shape{first[0], p.sums() ? first[1] : kUnknownDim, kUnknownDim, kUnknownDim});
    channels = channels == kUnknownDim || in[1] == kUnknownDim ? kUnknownDim : channels + in[1];
    for (int axis : {2, 3}) {
      if (in[axis] > 0 && out[axis] > 0 && out[axis] % in[axis] != 0)
        bad_image(c, i, "height and width that divide those of the output", "the output has shape " + out.str());
    }
  }
  out[1] = p.sums() ? first[1] : channels;
  c.set_out_shape(0, out);
}

void infer_bilinear(const UpSamplingParams& p, InferContext& c) {
  if (c.num_in() != 2) {
    throw ParamError({.expected = "2 inputs, data and weight",
                      .given = std::to_string(c.num_in()),
                      .because = "sample_type is bilinear"});
  }
  require_planes(c, 0);
  if (p.num_filter > 0) c.set_in_shape(0, Shape{kUnknownDim, p.num_filter, kUnknownDim, kUnknownDim});
  c.set_in_shape(1, Shape{c.in_shape(0)[1], 1, p.kernel(), p.kernel()});
  const Shape& data = c.in_shape(0);
  Shape out = data;
  for (int axis : {2, 3})
    out[axis] = data[axis] == kUnknownDim ? kUnknownDim : checked_times(data[axis], p.scale, "scale");
  c.set_out_shape(0, out);
}

void infer_upsampling(const UpSamplingParams& p, InferContext& c) {
  c.unify_dtypes();
  p.bilinear() ? infer_bilinear(p, c) : infer_nearest(p, c);
}

// ---- nearest

ResampleParams resample_params(const Shape& in, const Shape& out) {
  return {.kind = ResampleKind::kNearest, .source = image_size(in), .target = image_size(out)};
}

template <typename T>
class NearestKernel final : public Kernel {
 public:
  NearestKernel(const UpSamplingParams& p, const LinkContext& c) : sums_(p.sums()) {
    for (const TensorSpec& in : c.in) {
      const ResampleParams r = resample_params(in.shape, c.out[0].shape);
      maps_.emplace_back(r.map(0), r.map(1));
    }
  }
  void run(const KernelArgs& a) override {
    const Shape& out = *a.out[0].shape;
    const int64_t plane = out[2] * out[3];
    int64_t channel = 0;
    for (size_t i = 0; i < a.in.size(); ++i) {
      const Shape& in = *a.in[i].shape;
      const int64_t channels = in[1], example = in.size(1, 4);
      const T* from = a.in[i].as<T>();
      const auto& [rows, columns] = maps_[i];
      if (channels == out[1]) {  // one input, or a sum: all examples at once
        kernels::resample(rows, columns, in[0] * channels, from, a.out[0].as<T>(), sums_ && i > 0);
        continue;
      }
      for (int64_t n = 0; n < out[0]; ++n) {
        T* to = a.out[0].as<T>() + (n * out[1] + channel) * plane;
        kernels::resample(rows, columns, channels, from + n * example, to, false);
      }
      channel += channels;
    }
  }

 private:
  bool sums_;
  std::vector<std::pair<kernels::AxisMap, kernels::AxisMap>> maps_;
};

Ref<Kernel> link_nearest(const UpSamplingParams& p, const LinkContext& c) {
  return make_float_kernel<NearestKernel>(c.in[0].dtype, p, c);
}

Values nearest_gradient(const UpSamplingParams& p, const GradientContext& g) {
  Values grads;
  int64_t channel = 0;
  const Shape& out = g.output_spec(0).shape;
  for (int i = 0; i < g.num_inputs(); ++i) {
    const Shape& in = g.input_spec(i).shape;
    const bool part = !p.sums() && in[1] != out[1];
    const Value dy = part ? slice_axis(g.output_grad(0), 1, channel, channel + in[1]) : g.output_grad(0);
    grads.push_back(resample(dy, resample_params(in, out).adjoint()));
    channel += in[1];
  }
  return grads;
}

// ---- bilinear

ParamsPtr deconvolution_params(const UpSamplingParams& p, int64_t channels) {
  const auto pair = [](int64_t n) { return AttrValue(Tuple{n, n}); };
  const std::vector<std::pair<std::string, AttrValue>> attrs = {{"kernel", pair(p.kernel())}, {"stride", pair(p.scale)},
                                                                {"pad", pair(p.scale / 2)},   {"num_filter", channels},
                                                                {"num_group", channels},      {"no_bias", true}};
  return kDeconvolution.op().schema->parse(attrs, "UpSampling");
}

// Runs the linked kernel of a Deconvolution with that operator's parameters.
class BilinearKernel final : public Kernel {
 public:
  BilinearKernel(ParamsPtr params, const LinkContext& c) : params_(std::move(params)) {
    LinkContext inner = c;
    inner.params = params_->data();
    kernel_ = kDeconvolution.op().link(inner);
  }
  int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  void run(const KernelArgs& args) override {
    KernelArgs inner = args;
    inner.params = params_->data();
    kernel_->run(inner);
  }

 private:
  ParamsPtr params_;
  Ref<Kernel> kernel_;
};

// ---- both

Ref<Kernel> link_upsampling(const UpSamplingParams& p, const LinkContext& c) {
  if (!p.bilinear()) return link_nearest(p, c);
  return Ref<Kernel>(new BilinearKernel(deconvolution_params(p, c.in[0].shape[1]), c));
}

Values upsampling_gradient(const UpSamplingParams& p, const GradientContext& g) {
  if (!g.output_grad(0)) return Values(static_cast<size_t>(g.num_inputs()));
  if (!p.bilinear()) return nearest_gradient(p, g);
  return kDeconvolution.op().gradient(deconvolution_params(p, g.input_spec(0).shape[1])->data(), g);
}

}  // namespace

void register_upsampling(OpRegistry& ops) {
  ops.declare<UpSamplingParams>("UpSampling")
      .doc("Enlarges images by an integer factor.")
      .variadic_input(
          "data", "num_args",
          "nearest: images (batch, channels, height, width), whose sizes divide the output's; bilinear: the "
          "image and a weight")
      .optional_input("weight", "bilinear: (channels, 1, kernel, kernel) with kernel = 2 scale - scale % 2")
      .initialized("weight", R"(["bilinear", {}])")
      .num_inputs([](const UpSamplingParams& p) { return p.bilinear() ? 2 : p.num_args; })
      .output("output", "(batch, channels, scale * height, scale * width) with the sizes of the first input")
      .infer(infer_upsampling)
      .any_device()
      .link(link_upsampling)
      .halves_through_float()
      .gradient(upsampling_gradient, Saves::all_inputs())
      .cost([](const UpSamplingParams& p, auto in, auto out) {
        return resample_cost_ns(in[0], out[0]) * (p.bilinear() ? 8 : 1);
      })
      .sample({{2, 3, 2, 3}}, {{"scale", "2"}, {"sample_type", "nearest"}, {"num_args", "1"}})
      .sample({{2, 1, 2, 2}, {2, 2, 4, 4}, {2, 1, 1, 2}},
              {{"scale", "2"}, {"sample_type", "nearest"}, {"num_args", "3"}})
      .sample({{2, 2, 1, 2}, {2, 2, 3, 3}},
              {{"scale", "3"}, {"sample_type", "nearest"}, {"multi_input_mode", "sum"}, {"num_args", "2"}})
      .sample({{2, 3, 2, 3}, {3, 1, 4, 4}},
              {{"scale", "2"}, {"sample_type", "bilinear"}, {"num_filter", "3"}, {"num_args", "2"}})
      .sample({{1, 2, 2, 2}, {2, 1, 5, 5}},
              {{"scale", "3"}, {"sample_type", "bilinear"}, {"num_filter", "2"}, {"num_args", "2"}})
      .sample({{0, 3, 2, 3}}, {{"scale", "2"}, {"sample_type", "nearest"}, {"num_args", "1"}})
      .sample({{2, 3, 2, 3}, {3, 1, 4, 4}},
              {{"scale", "2"}, {"sample_type", "bilinear"}, {"num_filter", "3"}, {"num_args", "1"}});
}

}  // namespace hybridnet::ops
