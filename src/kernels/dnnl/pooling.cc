#include "kernels/dnnl/pooling.h"

#include <algorithm>

#include "kernels/isa.h"

namespace hybridnet::onednn {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using kernels::PoolGeometry;
using kernels::PoolType;

// The number of elements by which the last window exceeds the data.
int64_t padding_behind(const PoolGeometry& g, size_t k) {
  return std::max<int64_t>((g.out[k] - 1) * g.stride[k] + g.kernel[k] - g.in[k] - g.pad[k], 0);
}

memory::dims sizes(const std::array<int64_t, 3>& v) { return {v[0], v[1], v[2]}; }

Desc images(const PoolGeometry& g, const std::array<int64_t, 3>& space) {
  return Desc({g.n, g.c, space[0], space[1], space[2]}, memory::data_type::f32,
              g.channels_last ? memory::format_tag::ndhwc : memory::format_tag::ncdhw);
}

}  // namespace

bool AveragePooling::pays(const PoolGeometry& g) {
  if (g.type != PoolType::kAvg || g.n * g.c * g.in_size() * g.out_size() == 0) return false;
  bool global = true;
  for (size_t k = 0; k < 3; ++k) {
    const int64_t behind = padding_behind(g, k);
    if (g.pad[k] >= g.kernel[k] || behind >= g.kernel[k]) return false;  // windows without data
    // oneDNN divides by the whole window, even if it extends beyond the padding (convention "full").
    if (g.count_pad && behind > g.pad[k]) return false;
    global = global && g.out[k] == 1;
  }
  // With a plain layout its sums of whole planes are slower, and with AVX2 all other poolings, too.
  return g.channels_last || (!global && kernels::isa_in_force().level >= kernels::Isa::kAvx512);
}

AveragePooling::AveragePooling(const PoolGeometry& g, bool gradient) : g_(g), gradient_(gradient) {
  workspace_bytes_ = variant(cores_for(flops())).main.workspace_bytes();
}

std::string AveragePooling::description() const { return variant(cores_for(flops())).implementation; }

double AveragePooling::flops() const {
  const double additions = static_cast<double>(g_.n * g_.c) * static_cast<double>(g_.out_size() * g_.kernel_size());
  return 4 * additions;
}

AveragePooling::Variant AveragePooling::make() const {
  const algorithm how = g_.count_pad ? algorithm::pooling_avg_include_padding : algorithm::pooling_avg_exclude_padding;
  const Desc data = images(g_, g_.in), output = images(g_, g_.out);
  const memory::dims dense{0, 0, 0}, behind{padding_behind(g_, 0), padding_behind(g_, 1), padding_behind(g_, 2)};
  const dnnl::pooling_forward::primitive_desc forward(
      cpu_engine(), gradient_ ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference, how, data,
      output, sizes(g_.stride), sizes(g_.kernel), dense, sizes(g_.pad), behind, user_scratchpad());
  Variant v;
  if (!gradient_) {
    v.implementation = forward.impl_info_str();
    v.main.add(forward, {{DNNL_ARG_SRC, data, Place::tensor(0)}, {DNNL_ARG_DST, output, Place::tensor(1)}});
    return v;
  }
  const dnnl::pooling_backward::primitive_desc backward(cpu_engine(), how, data, output, sizes(g_.stride),
                                                        sizes(g_.kernel), dense, sizes(g_.pad), behind, forward,
                                                        user_scratchpad());
  v.implementation = backward.impl_info_str();
  v.main.add(backward, {{DNNL_ARG_DIFF_DST, output, Place::tensor(0)}, {DNNL_ARG_DIFF_SRC, data, Place::tensor(1)}});
  return v;
}

void AveragePooling::run(const float* from, float* to, void* workspace) {
  const PrimitiveCores cores(flops());
  const Variant& v = variant(cores.count());
  std::unique_ptr<OwnedBlock> larger;  // a variant for another number of cores may need more than was planned
  if (v.main.workspace_bytes() > workspace_bytes_) {
    larger = std::make_unique<OwnedBlock>(v.main.workspace_bytes());
    workspace = larger->data();
  }
  void* const tensors[] = {const_cast<float*>(from), to};
  v.main.run(tensors, workspace);
}

}  // namespace hybridnet::onednn
