#include "kernels/dnnl/matmul.h"

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

}  // namespace

Matmul::Matmul(const Options& options) : options_(options) {
  workspace_bytes_ = variants_.get(cores(), [this] { return make(); }).bytes();
}

int Matmul::cores() const {
  const double flops =
      2.0 * static_cast<double>(options_.batch * options_.m) * static_cast<double>(options_.n * options_.k);
  return rounded_cores(static_cast<int>(std::min<int64_t>(current_cores(), worthwhile_cores(flops))));
}

Matmul::Variant Matmul::make() const {
  const Options& o = options_;
  const Desc a = matrix(o, o.m, o.k, o.transpose_a), b = matrix(o, o.k, o.n, o.transpose_b),
             out = matrix(o, o.m, o.n, false);
  const Desc b_any = o.remember ? Desc(b.get_dims(), b.get_data_type(), memory::format_tag::any) : b;
  Desc bias;
  if (o.bias) {
    const Dims dims = o.batch == 1 ? Dims{1, o.n} : Dims{1, 1, o.n};
    bias = Desc(dims, data_type(o.dtype), o.batch == 1 ? Dims{o.n, 1} : Dims{o.n, o.n, 1});
  }
  dnnl::primitive_attr attributes = user_scratchpad();
  dnnl::post_ops post;
  if (o.accumulate) post.append_sum(1.0f);
  const int addend = post.len();
  if (o.add) post.append_binary(dnnl::algorithm::binary_add, out);
  append(post, o.activation);
  attributes.set_post_ops(post);
  const dnnl::matmul::primitive_desc pd(cpu_engine(), a, b_any, bias, out, attributes);
  Variant v;
  const Desc packed = pd.weights_desc();
  if (packed != b) {
    v.packed_bytes = (static_cast<int64_t>(packed.get_size()) + 63) / 64 * 64;
    v.pack.reorder_into(b, Place::tensor(0), packed, Place::tensor(1));
  }
  std::vector<Program::Argument> arguments{{DNNL_ARG_SRC, a, Place::tensor(kA)},
                                           {DNNL_ARG_WEIGHTS, packed, Place::tensor(kB)},
                                           {DNNL_ARG_DST, out, Place::tensor(kOut)}};
  if (o.bias) arguments.push_back({DNNL_ARG_BIAS, bias, Place::tensor(kBias)});
  if (o.add)
    arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(addend) | DNNL_ARG_SRC_1, out, Place::tensor(kAddend)});
  v.main.add(pd, std::move(arguments));
  return v;
}

void Matmul::run(const void* a, const void* b, const void* bias, void* out, uint64_t b_version, void* workspace,
                 const void* addend) {
  const CoreLease lease(cores());
  const int cores = rounded_cores(lease.cores());
  const CoreScope scope(cores);
  const Variant& v = variants_.get(cores, [this] { return make(); });
  std::unique_ptr<Buffer> larger;  // a variant for other cores may need more than was planned
  char* space = static_cast<char*>(workspace);
  if (v.bytes() > workspace_bytes_) {
    larger = std::make_unique<Buffer>(v.bytes());
    space = static_cast<char*>(larger->data());
  }
  void* slots[kNumSlots] = {const_cast<void*>(a), const_cast<void*>(b), const_cast<void*>(bias), out,
                            const_cast<void*>(addend)};
  std::shared_ptr<const Buffer> remembered;
  if (v.packed_bytes > 0) {
    const auto pack = [&](void* target) {
      void* const tensors[] = {const_cast<void*>(b), target};
      v.pack.run(tensors, space);
    };
    if (options_.remember && b_version != 0) {
      remembered = remembered_.get(b, b_version, v.packed_bytes, pack);
    } else {
      auto fresh = std::make_shared<Buffer>(v.packed_bytes);
      pack(fresh->data());
      remembered = std::move(fresh);
    }
    slots[kB] = remembered->data();
  }
  v.main.run(slots, space);
}

}  // namespace hybridnet::onednn
