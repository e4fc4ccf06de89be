#include "kernels/dnnl/matmul.h"

#include "base/float_watch.h"
#include "hybridnet/storage.h"

namespace hybridnet::onednn {
namespace {

using dnnl::memory;
using Dims = memory::dims;

enum Slot { kA, kB, kBias, kOut, kAddend, kNumSlots };

Desc matrix(const Matmul::Options& o, int64_t rows, int64_t columns, bool transposed) {
  const auto type = data_type(o.dtype);
  const int64_t row = transposed ? 1 : columns, column = transposed ? rows : 1;
  if (o.batch == 1) return Desc(Dims{rows, columns}, type, Dims{row, column});
  return Desc(Dims{o.batch, rows, columns}, type, Dims{rows * columns, row, column});
}

// Adds the primitive that `pd` describes.
template <typename PrimitiveDesc>
void add_product(Program& program, const PrimitiveDesc& pd, const Matmul::Options& o, const Desc& bias,
                 const Desc& addend, int addend_at) {
  std::vector<Program::Argument> arguments{{DNNL_ARG_SRC, pd.src_desc(), Place::tensor(kA)},
                                           {DNNL_ARG_WEIGHTS, pd.weights_desc(), Place::tensor(kB)},
                                           {DNNL_ARG_DST, pd.dst_desc(), Place::tensor(kOut)}};
  if (o.bias) arguments.push_back({DNNL_ARG_BIAS, bias, Place::tensor(kBias)});
  if (o.add)
    arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(addend_at) | DNNL_ARG_SRC_1, addend, Place::tensor(kAddend)});
  program.add(pd, std::move(arguments));
}

}  // namespace

Matmul::Matmul(const Options& options) : options_(options) {
  workspace_bytes_ = variants_.get(cores_for(flops()), [this] { return make(); }).bytes();
}

std::string Matmul::description() const {
  const Variant& v = variants_.get(cores_for(flops()), [this] { return make(); });
  return v.packed ? "packed " + v.implementation : v.implementation;
}

double Matmul::flops() const {
  return 2.0 * static_cast<double>(options_.batch * options_.m) * static_cast<double>(options_.n * options_.k);
}

void Matmul::set_packing(Variant& v, const Desc& plain, const Desc& packed) const {
  if (packed == plain) return;
  v.packed = std::make_unique<kernels::PackedWeights>(
      reorder_name(plain, packed), static_cast<int64_t>(packed.get_size()), unpack_of(plain, packed));
  v.pack.reorder_into(plain, Place::tensor(0), packed, Place::tensor(1));
}

Matmul::Variant Matmul::make() const {
  const Options& o = options_;
  const Desc a = matrix(o, o.m, o.k, o.transpose_a), b = matrix(o, o.k, o.n, o.transpose_b),
             out = matrix(o, o.m, o.n, false);
  const Desc b_any = o.packs ? Desc(b.get_dims(), b.get_data_type(), memory::format_tag::any) : b;
  Desc bias;
  if (o.bias) {
    const Dims dims = o.batch == 1 ? Dims{1, o.n} : Dims{1, 1, o.n};
    bias = Desc(dims, data_type(o.dtype), o.batch == 1 ? Dims{o.n, 1} : Dims{o.n, o.n, 1});
  }
  dnnl::primitive_attr attributes = user_scratchpad();
  dnnl::post_ops post;
  if (o.alpha != 1) post.append_eltwise(dnnl::algorithm::eltwise_linear, o.alpha, 0);
  if (o.accumulate) post.append_sum(1.0f);
  const int addend_at = post.len();
  if (o.add) post.append_binary(dnnl::algorithm::binary_add, out);
  append(post, o.activation);
  attributes.set_post_ops(post);
  const dnnl::matmul::primitive_desc pd(cpu_engine(), a, b_any, bias, out, attributes);
  Variant v;
  v.implementation = pd.impl_info_str();
  set_packing(v, b, pd.weights_desc());
  add_product(v.main, pd, o, bias, out, addend_at);
  return v;
}

void Matmul::run(const void* a, const TensorRef& b, const void* bias, void* out, void* workspace, const void* addend) {
  if (options_.activation.kind == ActivationKind::kNone) return run_primitive(a, b, bias, out, workspace, addend);
  const FloatWatch watch;
  run_primitive(a, b, bias, out, workspace, addend);
  if (watch.saw_error()) mend(a, b, bias, out, addend);
}

// Does the same as Convolution::mend().
void Matmul::mend(const void* a, const TensorRef& b, const void* bias, void* out, const void* addend) const {
  Options plain = options_;
  plain.activation = {};
  plain.packs = false;
  Matmul sums(plain);
  const int64_t results = options_.batch * options_.m * options_.n;
  const OwnedBlock memory(results * static_cast<int64_t>(dtype_size(options_.dtype))),
      workspace(sums.workspace_bytes());
  sums.run(a, b, bias, memory.data(), workspace.data(), addend);
  apply_where_not_finite(options_.activation, options_.dtype, memory.data(), out, results);
}

void Matmul::run_primitive(const void* a, const TensorRef& b, const void* bias, void* out, void* workspace,
                           const void* addend) const {
  const PrimitiveCores cores(flops());
  const Variant& v = variants_.get(cores.count(), [this] { return make(); });
  std::unique_ptr<OwnedBlock> larger;  // a variant for another number of cores may need more than was planned
  char* space = static_cast<char*>(workspace);
  if (v.bytes() > workspace_bytes_) {
    larger = std::make_unique<OwnedBlock>(v.bytes());
    space = static_cast<char*>(larger->data());
  }
  void* slots[kNumSlots] = {const_cast<void*>(a), b.data, const_cast<void*>(bias), out, const_cast<void*>(addend)};
  kernels::PackedWeights::Use packed;
  const ReadLease reading(v.packed ? nullptr : b.derived);
  if (v.packed) {
    packed = v.packed->get(b, [&](void* target) {
      void* const tensors[] = {b.data, target};
      v.pack.run(tensors, space);
    });
    slots[kB] = packed->data();
  }
  v.main.run(slots, space);
}

}  // namespace hybridnet::onednn
