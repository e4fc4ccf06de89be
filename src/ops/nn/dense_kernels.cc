#include "ops/nn/dense_kernels.h"

#include <optional>

#include "device/stream.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/memory/strided_copy.h"
#include "kernels/product/gemm.h"
#include "kernels/product/packed.h"
#include "kernels/product/packed_product.h"
#include "kernels/product/tile_product.h"
#include "ops/nn/dense_ends.h"

namespace hybridnet::ops {
namespace {

template <typename T>
class PlainKernel final : public Kernel {
 public:
  explicit PlainKernel(const DenseLayer& layer)
      : layer_(layer), gemm_(kernels::GemmShape::dense(false, true, layer.rows, layer.hidden, layer.features)) {}
  std::string description() const override { return "gemm"; }
  void run(const KernelArgs& args) override {
    T* out = args.out[0].as<T>();
    const bool bias = layer_.bias, addend = layer_.addend;
    if (device::current()) return run_on_device(args);
    const DenseEnds<T> ends(addend ? args.in.back().as<T>() : nullptr, bias ? args.in[2].as<T>() : nullptr,
                            layer_.activation, gemm_.n, out);
    kernels::gemm(gemm_, T(1), args.in[0].as<T>(), args.in[1].as<T>(), bias || addend ? T(1) : T(0), out, &ends);
  }

 private:
  // The same in three steps over the whole output.
  void run_on_device(const KernelArgs& args) const {
    constexpr DType kType = dtype_of<T>::value;
    T* out = args.out[0].as<T>();
    const Shape rows{layer_.rows, layer_.hidden}, row{layer_.hidden};
    const void* addend = layer_.addend ? args.in.back().data : nullptr;
    if (addend && layer_.bias) {
      kernels::apply_broadcast(kernels::loops(kernels::Pointwise::kAdd), kType, addend, rows, args.in[2].data, row, out,
                               rows);
    } else if (addend) {
      kernels::copy_bytes(addend, out, rows.size() * static_cast<int64_t>(sizeof(T)));
    } else if (layer_.bias) {
      kernels::broadcast_copy(args.in[2].data, row, sizeof(T), out, rows);
    }
    kernels::gemm(gemm_, T(1), args.in[0].as<T>(), args.in[1].as<T>(), addend || layer_.bias ? T(1) : T(0), out);
    if (layer_.activation.kind != kernels::ActivationKind::kNone) apply_activation(layer_.activation, out, rows.size());
  }

  const DenseLayer layer_;
  const kernels::GemmShape gemm_;
};

class PackedKernel final : public Kernel, public kernels::ReadsPackedWeights {
 public:
  explicit PackedKernel(const DenseLayer& layer)
      : layer_(layer),
        bounds_(onednn::bounds_of(layer.activation)),
        packed_("columns of " + std::to_string(layer.hidden) + " x " + std::to_string(layer.features),
                layer.hidden * layer.features * static_cast<int64_t>(sizeof(float)), unpack_of(layer)) {}
  std::string description() const override { return "packed product"; }
  bool reads_packed(size_t input) const override { return input == 1; }
  void run(const KernelArgs& args) override {
    float* out = args.out[0].as<float>();
    const kernels::PackedWeights::Use weights = packed_.get(args.in[1], [&](void* target) {
      kernels::pack_weights(
          kernels::ProductWeights<float>::transposed(args.in[1].as<float>(), layer_.features, layer_.hidden),
          static_cast<float*>(target));
    });
    const DenseEnds<float> ends(nullptr, nullptr, layer_.activation, layer_.hidden, out);
    const onednn::Bounds bounds = bounds_.value_or(onednn::Bounds{});
    kernels::packed_product({.packed = static_cast<const float*>(weights->data()),
                             .depth = layer_.features,
                             .columns = layer_.hidden,
                             .rows = args.in[0].as<float>(),
                             .count = layer_.rows,
                             .out = out,
                             .addend = layer_.addend ? args.in.back().as<float>() : nullptr,
                             .bias = layer_.bias ? args.in[2].as<float>() : nullptr,
                             .low = bounds.low,
                             .high = bounds.high,
                             .ends = bounds_ ? nullptr : &ends});
  }

 private:
  static std::vector<kernels::Unpacking> unpack_of(const DenseLayer& layer) {
    const auto write = [features = layer.features, hidden = layer.hidden](const void* packed, void* to) {
      kernels::unpack_weights(static_cast<const float*>(packed), kernels::ProductWeights<float>::transposed(
                                                                     static_cast<const float*>(to), features, hidden));
    };
    return {{0, layer.hidden * layer.features * static_cast<int64_t>(sizeof(float)), write}};
  }

  const DenseLayer layer_;
  const std::optional<onednn::Bounds> bounds_;  // none: the activation ends each tile
  kernels::PackedWeights packed_;
};

class TileKernel final : public Kernel, public kernels::ReadsPackedWeights {
 public:
  explicit TileKernel(const DenseLayer& layer)
      : layer_(layer),
        ends_(layer.activation),
        packed_(kernels::tile_packing(layer.features, layer.hidden),
                kernels::packed_tile_weights(layer.features, layer.hidden),
                kernels::tile_unpacking(layer.features, layer.hidden)) {}
  std::string description() const override { return "tile product"; }
  bool reads_packed(size_t input) const override { return input == 1; }
  int64_t workspace_bytes() const override { return kernels::tile_product_workspace(layer_.features, layer_.rows); }
  void run(const KernelArgs& args) override {
    const kernels::PackedWeights::Use weights = packed_.get(args.in[1], [&](void* target) {
      kernels::pack_tile_weights(args.in[1].as<bfloat16>(), layer_.features, layer_.hidden, target);
    });
    const bool ends = layer_.activation.kind != kernels::ActivationKind::kNone;
    kernels::tile_product({.packed = weights->data(),
                           .depth = layer_.features,
                           .columns = layer_.hidden,
                           .rows = args.in[0].as<bfloat16>(),
                           .count = layer_.rows,
                           .out = args.out[0].as<bfloat16>(),
                           .bias = layer_.bias ? args.in[2].as<bfloat16>() : nullptr,
                           .addend = layer_.addend ? args.in.back().as<bfloat16>() : nullptr,
                           .ends = ends ? &ends_ : nullptr,
                           .workspace = args.workspace});
  }

 private:
  class Ends final : public kernels::TileProductEnds {
   public:
    explicit Ends(const onednn::Activation& activation) : activation_(activation) {}
    void end(float* sums, int64_t count) const override { apply_activation(activation_, sums, count); }

   private:
    const onednn::Activation activation_;
  };

  const DenseLayer layer_;
  const Ends ends_;
  kernels::PackedWeights packed_;
};

}  // namespace

template <typename T>
Ref<Kernel> plain_dense_kernel(const DenseLayer& layer) {
  return Ref<Kernel>(new PlainKernel<T>(layer));
}
template Ref<Kernel> plain_dense_kernel<float>(const DenseLayer& layer);
template Ref<Kernel> plain_dense_kernel<double>(const DenseLayer& layer);

Ref<Kernel> packed_dense_kernel(const DenseLayer& layer) { return Ref<Kernel>(new PackedKernel(layer)); }
Ref<Kernel> tile_dense_kernel(const DenseLayer& layer) { return Ref<Kernel>(new TileKernel(layer)); }

}  // namespace hybridnet::ops
