#include "ops/nn/convolution_params.h"

#include <algorithm>
#include <array>

#include "kernels/conv/conv_reference.h"
#include "kernels/conv/depthwise.h"
#include "kernels/conv/device_convolution.h"
#include "kernels/conv/library_convolution.h"
#include "kernels/conv/winograd.h"
#include "kernels/dnnl/conv_choice.h"
#include "kernels/dnnl/winograd.h"
#include "op/through_float.h"
#include "ops/float_kernel.h"
#include "ops/nn/activation_params.h"
#include "ops/nn/dense_kernels.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

using kernels::ConvGeometry;
using onednn::ConvAlgorithm;
using onednn::ConvKind;
using onednn::Convolution;

// Runs onednn::Convolution or onednn::Winograd, which take the same tensors.
template <typename Algorithm>
class ConvKernel final : public Kernel, public kernels::ReadsPackedWeights {
 public:
  ConvKernel(const ConvGeometry& g, const Convolution::Options& options) : options_(options), algorithm_(g, options) {}
  int64_t workspace_bytes() const override { return algorithm_.workspace_bytes(); }
  std::string description() const override { return algorithm_.description(); }
  bool reads_packed(size_t input) const override {
    return input == 1 && options_.remember && options_.kind != ConvKind::kBackwardWeights;
  }
  void run(const KernelArgs& args) override {
    Convolution::Tensors t;
    t.a = args.in[0].data;
    t.b = args.in[1];
    t.workspace = args.workspace;
    size_t next = 2;
    if (options_.kind != ConvKind::kBackwardWeights && options_.bias) t.c = args.in[next++].data;
    if (options_.add) t.d = args.in[next].data;
    t.out0 = args.out[0].data;
    if (options_.kind == ConvKind::kBackwardWeights && options_.bias) t.out1 = args.out[1].data;
    algorithm_.run(t);
  }

 private:
  Convolution::Options options_;
  Algorithm algorithm_;
};

// Computes the forward product, or the data gradient as a convolution of its own.
class WinogradKernel final : public Kernel, public kernels::ReadsPackedWeights {
 public:
  WinogradKernel(const ConvGeometry& g, const Convolution::Options& options)
      : backward_(options.kind == ConvKind::kBackwardData),
        original_(g),
        g_(backward_ ? kernels::mirrored(g) : g),
        options_(options),
        weight_bytes_((kernels::winograd_weight_bytes(g_) + 63) / 64 * 64) {
    if (!options.remember) return;
    kept_ = std::make_unique<kernels::PackedWeights>("winograd 2x2 " + std::to_string(g_.o) + " " +
                                                         std::to_string(g_.c) + (backward_ ? " mirrored" : "") +
                                                         (g_.weights_last ? " from channels last" : ""),
                                                     weight_bytes_);
  }

  int64_t workspace_bytes() const override {
    return kernels::winograd_workspace_bytes(g_) + (kept_ ? 0 : weight_bytes_);
  }
  std::string description() const override { return "winograd:2x2"; }
  bool reads_packed(size_t input) const override { return input == 1 && kept_; }

  void run(const KernelArgs& args) override {
    const float* w = args.in[1].as<float>();
    kernels::WinogradEnd end;
    size_t next = 2;
    if (options_.bias) end.bias = args.in[next++].as<float>();
    if (options_.add) end.addend = args.in[next].as<float>();
    end.relu = options_.activation.kind == kernels::ActivationKind::kRelu;
    float* y = args.out[0].as<float>();
    char* workspace = static_cast<char*>(args.workspace);
    const auto pack = [&](void* target) { kernels::winograd_pack(g_, w, backward_, static_cast<float*>(target)); };
    const kernels::PackedForRun packed(kept_.get(), args.in[1], workspace, pack);
    if (!kept_) workspace += weight_bytes_;
    Temporary<uint8_t> doubtful(static_cast<size_t>(g_.n));
    end.doubtful = doubtful.data();
    kernels::winograd_forward(g_, args.in[0].as<float>(), packed.floats(), end, y, workspace);
    if (!end.relu) apply_activation(options_.activation, y, args.out[0].size());
    Convolution::Tensors t;
    t.a = args.in[0].data;
    t.b = args.in[1];
    t.c = end.bias;
    t.d = end.addend;
    t.out0 = y;
    onednn::convolve_marked(original_, options_, t, doubtful);
  }

 private:
  bool backward_;
  ConvGeometry original_, g_;
  Convolution::Options options_;
  int64_t weight_bytes_;
  std::unique_ptr<kernels::PackedWeights> kept_;  // null: weights are transformed in each run
};

class WinogradWeightsKernel final : public Kernel {
 public:
  explicit WinogradWeightsKernel(const ConvGeometry& g) : g_(g) {}
  int64_t workspace_bytes() const override { return kernels::winograd_backward_weights_workspace_bytes(g_); }
  std::string description() const override { return "winograd:2x2"; }
  void run(const KernelArgs& args) override {
    if (kernels::winograd_backward_weights(g_, args.in[0].as<float>(), args.in[1].as<float>(), args.out[0].as<float>(),
                                           args.workspace))
      return;
    Convolution::Tensors t;
    t.a = args.in[0].data;
    t.b = args.in[1];
    t.out0 = args.out[0].data;
    onednn::convolve_weights(g_, {.kind = ConvKind::kBackwardWeights}, t);
  }

 private:
  ConvGeometry g_;
};

class DepthwiseKernel final : public Kernel, public kernels::ReadsPackedWeights {
 public:
  DepthwiseKernel(const ConvGeometry& g, const Convolution::Options& options) : g_(g), options_(options) {
    const onednn::Bounds bounds = onednn::bounds_of(options.activation).value();  // choose_convolution() checks them
    end_.low = bounds.low;
    end_.high = bounds.high;
    if (options.remember)
      kept_ = std::make_unique<kernels::PackedWeights>("depthwise 3x3 of " + std::to_string(g.c), bytes());
  }
  int64_t workspace_bytes() const override { return kept_ ? 0 : bytes(); }
  std::string description() const override { return "depthwise"; }
  bool reads_packed(size_t input) const override { return input == 1 && kept_; }

  void run(const KernelArgs& args) override {
    kernels::DepthwiseEnd end = end_;
    size_t next = 2;
    if (options_.bias) end.bias = args.in[next++].as<float>();
    if (options_.add) end.addend = args.in[next].as<float>();
    const auto pack = [&](void* target) {
      kernels::depthwise_pack(g_, args.in[1].as<float>(), static_cast<float*>(target));
    };
    const kernels::PackedForRun packed(kept_.get(), args.in[1], args.workspace, pack);
    kernels::depthwise_forward(g_, args.in[0].as<float>(), packed.floats(), end, args.out[0].as<float>());
  }

 private:
  int64_t bytes() const { return kernels::depthwise_weight_bytes(g_); }
  const ConvGeometry g_;
  const Convolution::Options options_;
  kernels::DepthwiseEnd end_;
  std::unique_ptr<kernels::PackedWeights> kept_;  // null: weights are packed in each run
};

template <typename T>
class ReferenceConvKernel final : public Kernel {
 public:
  ReferenceConvKernel(const ConvGeometry& g, const Convolution::Options& options) : g_(g), options_(options) {}
  void run(const KernelArgs& args) override {
    const T* a = args.in[0].as<T>();
    const T* b = args.in[1].as<T>();
    const T* bias = options_.kind != ConvKind::kBackwardWeights && options_.bias ? args.in[2].as<T>() : nullptr;
    T* out = args.out[0].as<T>();
    switch (options_.kind) {
      case ConvKind::kForward:
        return kernels::conv_forward_reference(g_, a, b, bias, out);
      case ConvKind::kBackwardData:
        return kernels::conv_backward_data_reference(g_, a, b, bias, out);
      case ConvKind::kBackwardWeights:
        return kernels::conv_backward_weights_reference(g_, a, b, out, options_.bias ? args.out[1].as<T>() : nullptr);
    }
  }

 private:
  ConvGeometry g_;
  Convolution::Options options_;
};

class DeviceConvKernel final : public Kernel {
 public:
  DeviceConvKernel(const ConvGeometry& g, const Convolution::Options& options) : g_(g), options_(options) {}
  std::string description() const override { return "device"; }
  void run(const KernelArgs& args) override {
    const void *a = args.in[0].data, *b = args.in[1].data;
    const bool has_bias = options_.bias && options_.kind != ConvKind::kBackwardWeights;
    const void* bias = has_bias ? args.in[2].data : nullptr;
    void* out = args.out[0].data;
    switch (options_.kind) {
      case ConvKind::kForward:
        kernels::on_device::convolve(g_, options_.dtype, a, b, bias, options_.add ? args.in.back().data : nullptr, out);
        return onednn::apply(options_.activation, options_.dtype, out, args.out[0].size());
      case ConvKind::kBackwardData:
        return kernels::on_device::convolve_data_gradient(g_, options_.dtype, a, b, bias, out);
      case ConvKind::kBackwardWeights:
        return kernels::on_device::convolve_weight_gradient(g_, options_.dtype, a, b, out,
                                                            options_.bias ? args.out[1].data : nullptr);
    }
  }

 private:
  const ConvGeometry g_;
  const Convolution::Options options_;
};

// float16 and bfloat16 on a device: by a library, which reads halves, or in float32.
class DeviceHalfConvKernel final : public Kernel {
 public:
  DeviceHalfConvKernel(const ConvGeometry& g, const Convolution::Options& options, Ref<Kernel> through_float)
      : g_(g), options_(options), through_float_(std::move(through_float)) {}
  int64_t workspace_bytes() const override { return through_float_->workspace_bytes(); }
  std::string description() const override { return through_float_->description(); }
  void run(const KernelArgs& args) override {
    if (!runs_by_library(args)) return through_float_->run(args);
    if (options_.kind == ConvKind::kForward)
      onednn::apply(options_.activation, options_.dtype, args.out[0].data, args.out[0].size());
  }

 private:
  bool runs_by_library(const KernelArgs& args) const {
    namespace gpu = kernels::on_device;
    const void *a = args.in[0].data, *b = args.in[1].data;
    void* const out = args.out[0].data;
    const void* const bias = options_.bias && args.in.size() > 2 ? args.in[2].data : nullptr;
    switch (options_.kind) {
      case ConvKind::kForward:
        return gpu::convolve_by_library(g_, options_.dtype, a, b, bias, options_.add ? args.in.back().data : nullptr,
                                        out);
      case ConvKind::kBackwardData:
        return gpu::convolve_data_gradient_by_library(g_, options_.dtype, a, b, bias, out);
      case ConvKind::kBackwardWeights:
        break;
    }
    return gpu::convolve_weight_gradient_by_library(g_, options_.dtype, a, b, out,
                                                    options_.bias ? args.out[1].data : nullptr);
  }

  const ConvGeometry g_;
  const Convolution::Options options_;
  const Ref<Kernel> through_float_;
};

}  // namespace

void ConvolutionParams::describe(ParamSchema<ConvolutionParams>& schema) {
  describe_convolution_fields(schema, false, 1024);
  schema.check(check_convolution);
}

void ConvolutionGradientParams::describe(ParamSchema<ConvolutionGradientParams>& schema) {
  describe_convolution_fields(schema, false, 1024);
  schema.field("data_size", &ConvolutionGradientParams::data_size)
      .default_value(Tuple::scalar())
      .doc("Spatial sizes of the convolution's data.");
  schema.check(check_convolution);
}

ParamsPtr conv_gradient_params(const ConvolutionParams& p, const Shape& x, bool no_bias) {
  ConvolutionGradientParams q;
  static_cast<ConvolutionParams&>(q) = p;
  q.no_bias = no_bias;
  q.data_size = Tuple::scalar();
  for (int i = 0; i < p.spatial(); ++i) q.data_size.push_back(x[p.axes().first + i]);
  return ParamSchema<ConvolutionGradientParams>::box(std::move(q));
}

void check_convolution(const ConvolutionParams& p) {
  const int sizes = p.kernel.ndim();
  if (sizes < 1 || sizes > 3)
    throw ParamError({.input = "kernel", .expected = "1, 2 or 3 sizes", .given = p.kernel.str()});
  check_tuple("kernel", p.kernel, sizes, 1);
  check_tuple("stride", p.stride, sizes, 1);
  check_tuple("dilate", p.dilate, sizes, 1);
  check_tuple("pad", p.pad, sizes, 0);
  check_layout(p.layout, sizes);
  if (p.num_filter % p.num_group != 0) {
    throw ParamError({.input = "num_filter",
                      .expected = "a multiple of num_group (" + std::to_string(p.num_group) + ")",
                      .given = std::to_string(p.num_filter)});
  }
}

namespace {

// The last axis changes nothing if it has one element and the kernel one tap there; the order of memory is the same
// with that axis in front. Libraries keep neighbors of the last axis in registers: they are 2.5 times as fast then.
void move_single_axis_to_front(ConvGeometry& g) {
  if (g.spatial < 2 || g.in[2] != 1 || g.out[2] != 1 || g.kernel[2] != 1 || g.pad[2] != 0) return;
  const auto first = static_cast<size_t>(3 - g.spatial);
  for (std::array<int64_t, 3>* sizes : {&g.in, &g.out, &g.kernel, &g.stride, &g.dilate, &g.pad})
    std::rotate(sizes->begin() + static_cast<std::ptrdiff_t>(first), sizes->end() - 1, sizes->end());
}

}  // namespace

ConvGeometry conv_geometry(const ConvolutionParams& p, const Shape& x, const Shape& y, bool linked_channels_last) {
  const ImageAxes axes = p.axes();
  const bool logical_last = is_channels_last(p.layout);
  if (logical_last && linked_channels_last) {
    throw UnsupportedError({.message =
                                "channels-last memory was chosen for a node whose layout attribute has the channels "
                                "last already"});
  }
  ConvGeometry g;
  g.spatial = axes.spatial;
  g.n = x[0];
  g.c = x[axes.channel];
  g.o = y[axes.channel];
  g.groups = p.num_group;
  g.channels_last = logical_last || linked_channels_last;
  g.weights_last = logical_last;
  for (int i = 0; i < axes.spatial; ++i) {
    const size_t k = static_cast<size_t>(3 - axes.spatial + i);
    g.in[k] = x[axes.first + i];
    g.out[k] = y[axes.first + i];
    g.kernel[k] = p.kernel[i];
    g.stride[k] = p.stride_at(i);
    g.dilate[k] = p.dilate_at(i);
    g.pad[k] = p.pad_at(i);
  }
  move_single_axis_to_front(g);
  return g;
}

bool has_native_conv(DType half, const ConvGeometry& g) {
  return half == DType::kBFloat16 && onednn::has_bfloat16() && !g.empty();
}

Ref<Kernel> link_conv(const LinkContext& c, const ConvGeometry& g, Convolution::Options options) {
  const DType dtype = c.in[0].dtype;
  const bool on_gpu = c.device.type == DeviceType::kGPU;
  options.dtype = dtype;
  if (is_half(dtype) && (on_gpu || !has_native_conv(dtype, g))) {
    auto through_float = link_through_float(c, [&](const LinkContext& inner) { return link_conv(inner, g, options); });
    return on_gpu ? Ref<Kernel>(new DeviceHalfConvKernel(g, options, std::move(through_float))) : through_float;
  }
  if (on_gpu) return Ref<Kernel>(new DeviceConvKernel(g, options));
  options.remember = c.frozen_weights;
  switch (onednn::choose_convolution({g, options, c.may_round_more})) {
    case ConvAlgorithm::kReference:
      return make_float_kernel<ReferenceConvKernel>(dtype, g, options);
    case ConvAlgorithm::kWinograd2x2:
      if (options.kind == ConvKind::kBackwardWeights) return Ref<Kernel>(new WinogradWeightsKernel(g));
      return Ref<Kernel>(new WinogradKernel(g, options));
    case ConvAlgorithm::kWinograd4x4:
      return Ref<Kernel>(new ConvKernel<onednn::Winograd>(g, options));
    case ConvAlgorithm::kDense:
      return packed_dense_kernel({g.n * g.out_size(), g.c, g.o, options.bias, options.add, options.activation});
    case ConvAlgorithm::kDepthwise:
      return Ref<Kernel>(new DepthwiseKernel(g, options));
    case ConvAlgorithm::kDirect:
      break;
  }
  return Ref<Kernel>(new ConvKernel<Convolution>(g, options));
}

double conv_cost_ns(const ConvGeometry& g, DType dtype) {
  return g.work() / (dtype == DType::kFloat64 ? 1.0 : 50.0) + 1000;
}

}  // namespace hybridnet::ops
