#include "kernels/dnnl/int8_convolution.h"

#include <algorithm>
#include <string_view>

#include "hybridnet/storage.h"
#include "kernels/dnnl/conv_descs.h"
#include "kernels/memory/strided_copy.h"

namespace hybridnet::onednn {
namespace {

using dnnl::memory;
using kernels::ConvGeometry;
using kernels::Int8ConvOptions;
using kernels::Int8ConvTensors;

enum Slot { kX, kWeights, kScale, kBias, kAddend, kStep, kY, kNumSlots };

memory::data_type type_of(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return memory::data_type::s8;
    case DType::kUInt8:
      return memory::data_type::u8;
    case DType::kInt32:
      return memory::data_type::s32;
    default:
      return memory::data_type::f32;
  }
}

Desc vector_desc(int64_t n) { return Desc({n}, memory::data_type::f32, memory::format_tag::a); }

class Int8Conv final : public kernels::Int8Convolution {
 public:
  Int8Conv(const ConvGeometry& g, const Int8ConvOptions& options) : g_(g), options_(options) {
    const Variant& v = variants_.get(cores_for(flops()), [this] { return make(nullptr); });
    weights_ = v.weights;
    workspace_bytes_ = v.main.workspace_bytes();
    description_ = v.implementation;
    const ConvDescs d = descs();
    packing_ = reorder_name(d.w, weights_);
    if (weights_ != d.w) pack_.reorder_into(d.w, Place::tensor(0), weights_, Place::tensor(1));
  }

  int64_t packed_bytes() const override { return static_cast<int64_t>(weights_.get_size()); }
  std::string packing() const override { return packing_; }
  std::string description() const override { return description_; }
  int64_t workspace_bytes() const override { return workspace_bytes_; }

  void pack(const int8_t* plain, void* packed) const override {
    if (pack_.empty()) return kernels::copy_bytes(plain, packed, packed_bytes());
    const OwnedBlock scratch(std::max<int64_t>(pack_.workspace_bytes(), 1));
    void* const tensors[] = {const_cast<int8_t*>(plain), packed};
    pack_.run(tensors, scratch.data());
  }

  void run(const Int8ConvTensors& t) const override {
    const PrimitiveCores cores(flops());
    const Variant& v = variants_.get(cores.count(), [this] { return make(&weights_); });
    std::unique_ptr<OwnedBlock> larger;  // a variant for another number of cores may need more than was planned
    void* workspace = t.workspace;
    if (v.main.workspace_bytes() > workspace_bytes_) {
      larger = std::make_unique<OwnedBlock>(v.main.workspace_bytes());
      workspace = larger->data();
    }
    const int64_t results = g_.n * g_.o * g_.out_size();
    if (options_.add && g_.channels_last && t.addend != t.y) kernels::copy_bytes(t.addend, t.y, results);
    void* slots[kNumSlots] = {const_cast<void*>(t.x),
                              const_cast<void*>(t.weights),
                              const_cast<float*>(t.scale),
                              const_cast<void*>(t.bias),
                              const_cast<void*>(t.addend),
                              const_cast<float*>(&t.out_step),
                              t.y};
    v.main.run(slots, workspace);
    if (options_.out == DType::kInt32 && options_.bias)
      add_bias(static_cast<const int32_t*>(t.bias), static_cast<int32_t*>(t.y));
  }

  // True if sums for kInt32 are exact. Implementations without AMX shift signed data by 128 and correct the sums in
  // float32.
  bool is_exact() const {
    constexpr int64_t kExactInFloat = 1 << 24;
    return options_.data == DType::kUInt8 || description_.find("amx") != std::string::npos ||
           g_.c / g_.groups * g_.kernel_size() * 255 * 128 <= kExactInFloat;
  }

 private:
  struct Variant {
    Program main;
    Desc weights;
    std::string implementation;
  };

  ConvDescs descs() const {
    return ConvDescs(g_, type_of(options_.data), memory::data_type::s8, memory::data_type::f32, type_of(options_.out));
  }
  double flops() const {  // the float32 operations that take equally long
    constexpr double kGain = 4;
    return g_.flops() / kGain;
  }

  Variant make(const Desc* packed) const {
    const ConvDescs d = descs();
    const bool scaled = options_.out != DType::kInt32, steps = scaled && options_.out != DType::kFloat32;
    dnnl::primitive_attr attributes = user_scratchpad();
    dnnl::post_ops post;
    append(post, options_.activation);
    if (options_.add) post.append_sum(1.0f, 0, type_of(options_.addend));
    append(post, options_.last_activation);
    attributes.set_post_ops(post);
    if (scaled) attributes.set_scales_mask(DNNL_ARG_WEIGHTS, g_.groups > 1 ? 3 : 1);
    if (steps) attributes.set_scales_mask(DNNL_ARG_DST, 0);
    const bool bias = scaled && options_.bias;
    const dnnl::convolution_forward::primitive_desc pd(cpu_engine(), dnnl::prop_kind::forward_inference,
                                                       dnnl::algorithm::convolution_direct, d.x_any,
                                                       packed ? *packed : d.w_any, bias ? d.bias_y : Desc(), d.y_any,
                                                       d.stride, d.dilate, d.pad_left, d.pad_right, attributes);
    Variant v;
    v.implementation = pd.impl_info_str();
    v.weights = pd.weights_desc();
    const Place x = v.main.reorder(d.x, Place::tensor(kX), pd.src_desc());
    const bool direct = pd.dst_desc() == d.y;
    const Place y = direct ? Place::tensor(kY) : v.main.reserve(pd.dst_desc());
    if (options_.add && !direct) {
      const auto like = [&](const Desc& desc) {
        return Desc(desc.get_dims(), type_of(options_.addend), desc.get_strides());
      };
      v.main.reorder_into(like(d.y), Place::tensor(kAddend), like(pd.dst_desc()), y);
    }
    std::vector<Program::Argument> arguments{{DNNL_ARG_SRC, pd.src_desc(), x},
                                             {DNNL_ARG_WEIGHTS, pd.weights_desc(), Place::tensor(kWeights)},
                                             {DNNL_ARG_DST, pd.dst_desc(), y}};
    if (bias) arguments.push_back({DNNL_ARG_BIAS, d.bias_y, Place::tensor(kBias)});
    if (scaled)
      arguments.push_back({DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, vector_desc(g_.o), Place::tensor(kScale)});
    if (steps) arguments.push_back({DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, vector_desc(1), Place::tensor(kStep)});
    v.main.add(pd, std::move(arguments));
    if (!direct) v.main.reorder_into(pd.dst_desc(), y, d.y, Place::tensor(kY));
    return v;
  }

  void add_bias(const int32_t* bias, int32_t* y) const {
    const int64_t inner = g_.channels_last ? 1 : g_.out_size();
    const int64_t rows = g_.n * g_.o * g_.out_size() / inner;
    parallel_for(rows, 0.5 * static_cast<double>(inner), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto b = static_cast<uint32_t>(bias[i % g_.o]);
        for (int64_t j = i * inner; j < (i + 1) * inner; ++j)
          y[j] = static_cast<int32_t>(static_cast<uint32_t>(y[j]) + b);
      }
    });
  }

  ConvGeometry g_;
  Int8ConvOptions options_;
  Desc weights_;
  std::string packing_, description_;
  Program pack_;
  int64_t workspace_bytes_ = 0;
  PerCores<Variant> variants_;
};

// True if the machine has VNNI instructions, which add products of bytes in 32 bits. Without them, two products are
// added in 16 bits, with saturation.
bool sums_bytes_exactly() {
  static const bool exact = [] {
    const unsigned isa = dnnl_get_effective_cpu_isa();
    const auto has = [isa](unsigned wanted) { return (isa & wanted) == wanted; };
    return has(dnnl_cpu_isa_avx512_core_vnni) || has(dnnl_cpu_isa_avx2_vnni);
  }();
  return exact;
}

}  // namespace

std::unique_ptr<kernels::Int8Convolution> make_int8_convolution(const ConvGeometry& g, const Int8ConvOptions& options) {
  if (!sums_bytes_exactly() || g.empty()) return nullptr;
  if (options.add && dtype_size(options.out) != 1) return nullptr;
  try {
    auto made = std::make_unique<Int8Conv>(g, options);
    if (options.out == DType::kInt32 && !made->is_exact()) return nullptr;
    return made;
  } catch (const dnnl::error&) {  // no implementation
    return nullptr;
  }
}

}  // namespace hybridnet::onednn
