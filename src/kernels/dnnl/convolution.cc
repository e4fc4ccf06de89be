#include "kernels/dnnl/convolution.h"

#include <algorithm>

#include "base/float_watch.h"
#include "hybridnet/storage.h"
#include "kernels/dnnl/conv_descs.h"

namespace hybridnet::onednn {
namespace {

using dnnl::memory;
using kernels::ConvGeometry;

// The slots of Program::run.
enum Slot { kA, kWeights, kC, kD, kOut0, kOut1, kNumSlots };

// oneDNN's plain loops compute relu as x * 0 below 0, which is -0, and NaN for -infinity.
bool has_plain_loops(const std::string& implementation) {
  return implementation.find("gemm") != std::string::npos || implementation.find("ref") != std::string::npos;
}

}  // namespace

Convolution::Convolution(const ConvGeometry& geometry, const Options& options) : g_(geometry), options_(options) {
  workspace_bytes_ = variants_.get(cores_for(g_.work()), [this] { return make(); }).bytes();
}

std::string Convolution::description() const {
  return variants_.get(cores_for(g_.work()), [this] { return make(); }).implementation;
}

Convolution::Variant Convolution::make() const {
  return options_.kind == ConvKind::kForward        ? make_forward()
         : options_.kind == ConvKind::kBackwardData ? make_backward_data()
                                                    : make_backward_weights();
}

void Convolution::set_packing(Variant& v, const Desc& plain, const Desc& packed) const {
  if (packed == plain) return;
  v.pack.reorder_into(plain, Place::tensor(0), packed, Place::tensor(1));
  v.packed_bytes = (static_cast<int64_t>(packed.get_size()) + 63) / 64 * 64;
  if (options_.remember)
    v.kept =
        std::make_unique<kernels::PackedWeights>(reorder_name(plain, packed), v.packed_bytes, unpack_of(plain, packed));
}

Convolution::Variant Convolution::make_forward() const {
  Variant v = make_forward(options_.activation);
  if (options_.activation.kind == ActivationKind::kNone || !has_plain_loops(v.implementation)) return v;
  v = make_forward({});
  v.activates = false;
  return v;
}

Convolution::Variant Convolution::make_forward(const Activation& activation) const {
  const ConvDescs d(g_, data_type(options_.dtype));
  dnnl::primitive_attr attributes = user_scratchpad();
  dnnl::post_ops post;
  const bool in_place_of_any = options_.add && !g_.channels_last;  // the addend is in plain layout: so is the result
  const Desc y_any = in_place_of_any ? d.y : d.y_any;
  if (options_.add) post.append_binary(dnnl::algorithm::binary_add, d.y);
  append(post, activation);
  attributes.set_post_ops(post);
  // forward_training and forward_inference select the same implementations; only the latter needs no workspace.
  const dnnl::convolution_forward::primitive_desc pd(
      cpu_engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, d.x_any, d.w_any,
      options_.bias ? d.bias_y : Desc(), y_any, d.stride, d.dilate, d.pad_left, d.pad_right, attributes);
  Variant v;
  v.implementation = pd.impl_info_str();
  set_packing(v, d.w, pd.weights_desc());
  const Place x = v.main.reorder(d.x, Place::tensor(kA), pd.src_desc());
  const bool direct = pd.dst_desc() == d.y;
  const Place y = direct ? Place::tensor(kOut0) : v.main.reserve(pd.dst_desc());
  std::vector<Program::Argument> arguments{{DNNL_ARG_SRC, pd.src_desc(), x},
                                           {DNNL_ARG_WEIGHTS, pd.weights_desc(), Place::tensor(kWeights)},
                                           {DNNL_ARG_DST, pd.dst_desc(), y}};
  if (options_.bias) arguments.push_back({DNNL_ARG_BIAS, d.bias_y, Place::tensor(kC)});
  if (options_.add) arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, d.y, Place::tensor(kD)});
  v.main.add(pd, std::move(arguments));
  if (!direct) v.main.reorder_into(pd.dst_desc(), y, d.y, Place::tensor(kOut0));
  return v;
}

Convolution::Variant Convolution::make_backward_data() const {
  const ConvDescs d(g_, data_type(options_.dtype));
  const dnnl::convolution_forward::primitive_desc hint(cpu_engine(), dnnl::prop_kind::forward_training,
                                                       dnnl::algorithm::convolution_direct, d.x_any, d.w_any, d.y_any,
                                                       d.stride, d.dilate, d.pad_left, d.pad_right);
  Variant v;
  const auto finish = [&](const auto& pd, int source_id, const Desc& source, int result_id, const Desc& result) {
    v.implementation = pd.impl_info_str();
    const Place dy = v.main.reorder(d.y, Place::tensor(kA), source);
    const bool direct = result == d.x;
    const Place dx = direct ? Place::tensor(kOut0) : v.main.reserve(result);
    std::vector<Program::Argument> arguments{{source_id, source, dy},
                                             {DNNL_ARG_WEIGHTS, pd.weights_desc(), Place::tensor(kWeights)},
                                             {result_id, result, dx}};
    if (options_.bias) arguments.push_back({DNNL_ARG_BIAS, d.bias_x, Place::tensor(kC)});
    v.main.add(pd, std::move(arguments));
    if (!direct) v.main.reorder_into(result, dx, d.x, Place::tensor(kOut0));
  };
  if (!options_.bias) {
    const dnnl::convolution_backward_data::primitive_desc pd(cpu_engine(), dnnl::algorithm::convolution_direct, d.x_any,
                                                             d.w_any, d.y_any, d.stride, d.dilate, d.pad_left,
                                                             d.pad_right, hint, user_scratchpad());
    finish(pd, DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), DNNL_ARG_DIFF_SRC, pd.diff_src_desc());
    set_packing(v, d.w, pd.weights_desc());
    return v;
  }
  // With a bias it is a deconvolution, whose weight descriptor has the two channel axes exchanged.
  const size_t lead = g_.groups > 1 ? 1 : 0;
  std::vector<int> exchange(static_cast<size_t>(d.w.get_ndims()));
  for (size_t i = 0; i < exchange.size(); ++i) exchange[i] = static_cast<int>(i);
  std::swap(exchange[lead], exchange[lead + 1]);
  const Desc w = d.w.permute_axes(exchange);
  const Desc w_any(w.get_dims(), w.get_data_type(), memory::format_tag::any);
  const dnnl::deconvolution_forward::primitive_desc pd(
      cpu_engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct, d.y_any, w_any, d.bias_x,
      d.x_any, d.stride, d.dilate, d.pad_left, d.pad_right, user_scratchpad());
  finish(pd, DNNL_ARG_SRC, pd.src_desc(), DNNL_ARG_DST, pd.dst_desc());
  set_packing(v, w, pd.weights_desc());
  return v;
}

Convolution::Variant Convolution::make_backward_weights() const {
  const ConvDescs d(g_, data_type(options_.dtype));
  const Desc bias = options_.bias ? d.bias_y : Desc();
  const dnnl::convolution_forward::primitive_desc hint(cpu_engine(), dnnl::prop_kind::forward_training,
                                                       dnnl::algorithm::convolution_direct, d.x_any, d.w_any, bias,
                                                       d.y_any, d.stride, d.dilate, d.pad_left, d.pad_right);
  const dnnl::convolution_backward_weights::primitive_desc pd(cpu_engine(), dnnl::algorithm::convolution_direct,
                                                              d.x_any, d.w_any, bias, d.y_any, d.stride, d.dilate,
                                                              d.pad_left, d.pad_right, hint, user_scratchpad());
  Variant v;
  v.implementation = pd.impl_info_str();
  const Place x = v.main.reorder(d.x, Place::tensor(kA), pd.src_desc());
  const Place dy = v.main.reorder(d.y, Place::tensor(kWeights), pd.diff_dst_desc());
  const bool direct = pd.diff_weights_desc() == d.w;
  const Place dw = direct ? Place::tensor(kOut0) : v.main.reserve(pd.diff_weights_desc());
  std::vector<Program::Argument> arguments{{DNNL_ARG_SRC, pd.src_desc(), x},
                                           {DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), dy},
                                           {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc(), dw}};
  if (options_.bias) arguments.push_back({DNNL_ARG_DIFF_BIAS, d.bias_y, Place::tensor(kOut1)});
  v.main.add(pd, std::move(arguments));
  if (!direct) v.main.reorder_into(pd.diff_weights_desc(), dw, d.w, Place::tensor(kOut0));
  return v;
}

void Convolution::run(const Tensors& t) {
  const PrimitiveCores cores(g_.work());
  const Variant& v = variants_.get(cores.count(), [this] { return make(); });
  if (options_.kind != ConvKind::kForward || options_.activation.kind == ActivationKind::kNone)
    return run_variant(v, t);
  const FloatWatch watch;
  run_variant(v, t);
  if (!v.activates) return apply(options_.activation, options_.dtype, t.out0, results());
  if (watch.saw_error()) mend(t);
}

// Computes the sums again without the activation. Results of finite sums stay as they are: the contents of one image do
// not change the bits of another.
void Convolution::mend(const Tensors& t) const {
  Options plain = options_;
  plain.activation = {};
  plain.remember = false;
  Convolution sums(g_, plain);
  const OwnedBlock memory(results() * static_cast<int64_t>(dtype_size(options_.dtype))),
      workspace(sums.workspace_bytes());
  Tensors again = t;
  again.out0 = memory.data();
  again.workspace = workspace.data();
  sums.run(again);
  apply_where_not_finite(options_.activation, options_.dtype, memory.data(), t.out0, results());
}

void Convolution::run_variant(const Variant& v, const Tensors& t) const {
  std::unique_ptr<OwnedBlock> larger;  // a variant for another number of cores may need more than was planned
  char* workspace = static_cast<char*>(t.workspace);
  if (v.bytes() > workspace_bytes_) {
    larger = std::make_unique<OwnedBlock>(v.bytes());
    workspace = static_cast<char*>(larger->data());
  }
  void* slots[kNumSlots] = {const_cast<void*>(t.a), t.b.data, const_cast<void*>(t.c),
                            const_cast<void*>(t.d), t.out0,   t.out1};
  kernels::PackedWeights::Use kept;
  const ReadLease reading(v.kept ? nullptr : t.b.derived);
  if (!v.pack.empty()) {
    char* scratch = v.kept ? workspace : workspace + v.packed_bytes;
    const auto pack = [&](void* target) {
      void* const tensors[] = {t.b.data, target};
      v.pack.run(tensors, scratch);
    };
    if (v.kept) {
      kept = v.kept->get(t.b, pack);
      slots[kWeights] = kept->data();
    } else {
      pack(workspace);
      slots[kWeights] = workspace;
    }
    workspace = scratch;
  }
  v.main.run(slots, workspace);
}

void convolve_marked(const ConvGeometry& g, const Convolution::Options& options, const Convolution::Tensors& t,
                     std::span<const uint8_t> marks) {
  if (std::all_of(marks.begin(), marks.end(), [](uint8_t mark) { return mark == 0; })) return;
  ConvGeometry one = g;
  one.n = 1;
  Convolution::Options direct = options;
  direct.remember = false;
  Convolution image(one, direct);
  const OwnedBlock workspace(image.workspace_bytes());
  const bool forward = options.kind == ConvKind::kForward;
  const int64_t x = g.c * g.in_size(), y = g.o * g.out_size(), from = forward ? x : y, to = forward ? y : x;
  for (size_t i = 0; i < marks.size(); ++i) {
    if (marks[i] == 0) continue;
    const auto at = static_cast<int64_t>(i);
    Convolution::Tensors part = t;
    part.a = static_cast<const float*>(t.a) + at * from;
    if (t.d) part.d = static_cast<const float*>(t.d) + at * to;
    part.out0 = static_cast<float*>(t.out0) + at * to;
    part.workspace = workspace.data();
    image.run(part);
  }
}

void convolve_weights(const ConvGeometry& g, const Convolution::Options& options, const Convolution::Tensors& t) {
  Convolution direct(g, options);
  const OwnedBlock workspace(direct.workspace_bytes());
  Convolution::Tensors whole = t;
  whole.workspace = workspace.data();
  direct.run(whole);
}

}  // namespace hybridnet::onednn
