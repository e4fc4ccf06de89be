#include "kernels/conv/pooling.h"

#include "kernels/comparison.h"

namespace hybridnet::benchmarks {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using kernels::PoolGeometry;
using kernels::PoolType;

struct Work {
  int64_t n, c, side, kernel, stride, pad;
};

void add(Comparisons& all, const Work& w, PoolType type, bool channels_last) {
  PoolGeometry g;
  g.type = type;
  g.channels_last = channels_last;
  g.n = w.n;
  g.c = w.c;
  const int64_t out = (w.side + 2 * w.pad - w.kernel) / w.stride + 1;
  g.in = {1, w.side, w.side};
  g.out = {1, out, out};
  g.kernel = {1, w.kernel, w.kernel};
  g.stride = {1, w.stride, w.stride};
  g.pad = {0, w.pad, w.pad};
  const bool max = type == PoolType::kMax;
  const auto tag = channels_last ? memory::format_tag::nhwc : memory::format_tag::nchw;
  const auto from = layout({w.n, w.c, w.side, w.side}, tag), to = layout({w.n, w.c, out, out}, tag);
  const auto how = max ? algorithm::pooling_max : algorithm::pooling_avg_include_padding;
  const std::string kernel = max                  ? "max pooling"
                             : w.kernel == w.side ? "global average pooling"
                                                  : "average pooling",
                    work = std::to_string(w.n) + "x" + std::to_string(w.c) + "x" + std::to_string(w.side) + "x" +
                           std::to_string(w.side) + " by " + std::to_string(w.kernel) + "/" + std::to_string(w.stride) +
                           (channels_last ? " nhwc" : " nchw");
  const memory::dims strides{w.stride, w.stride}, window{w.kernel, w.kernel}, dense{0, 0}, pads{w.pad, w.pad};
  const Floats x(w.n * w.c * g.in_size()), y(w.n * w.c * out * out), y_library(y.size());
  const auto describe = [&](prop_kind kind) {
    return dnnl::pooling_forward::primitive_desc(onednn::cpu_engine(), kind, how, from, to, strides, window, dense,
                                                 pads, pads, onednn::user_scratchpad());
  };
  auto prediction = std::make_shared<Library>();
  prediction->add(describe(prop_kind::forward_inference), {{DNNL_ARG_SRC, from, x}, {DNNL_ARG_DST, to, y_library}});
  all.push_back({kernel, work, [=] { kernels::pool_forward<float>(g, x.get(), y.get()); }, [=] { prediction->run(); },
                 [=] { return difference(y, y_library); }});

  // The library's forward run in training saves the positions of the maxima; ours finds them again.
  const Floats dy(y.size()), dx(x.size()), dx_library(x.size());
  const auto forward = describe(prop_kind::forward_training);
  const dnnl::pooling_backward::primitive_desc back(onednn::cpu_engine(), how, from, to, strides, window, dense, pads,
                                                    pads, forward, onednn::user_scratchpad());
  auto training = std::make_shared<Library>();
  std::vector<Library::Tensor> tensors{{DNNL_ARG_SRC, from, x}, {DNNL_ARG_DST, to, y_library}},
      back_tensors{{DNNL_ARG_DIFF_DST, to, dy}, {DNNL_ARG_DIFF_SRC, from, dx_library}};
  if (max) {
    const auto desc = forward.workspace_desc();
    const Library::Memory where = Library::memory(desc);
    tensors.push_back({DNNL_ARG_WORKSPACE, desc, where});
    back_tensors.push_back({DNNL_ARG_WORKSPACE, desc, where});
  }
  training->add(forward, tensors);
  training->add(back, back_tensors);
  all.push_back({kernel + ", forward and gradient", work,
                 [=] {
                   kernels::pool_forward<float>(g, x.get(), y.get());
                   if (max) {
                     kernels::max_pool_backward<float>(g, dy.get(), x.get(), y.get(), dx.get());
                   } else {
                     kernels::sum_pool_backward<float>(g, dy.get(), dx.get());
                   }
                 },
                 [=] { training->run(); }, [=] { return difference(dx, dx_library); }});
}

}  // namespace

void add_pooling(Comparisons& all) {
  for (const bool last : {true, false}) {
    for (const PoolType type : {PoolType::kMax, PoolType::kAvg}) {
      add(all, {1, 16, 24, 2, 2, 0}, type, last);
      add(all, {8, 64, 28, 2, 2, 0}, type, last);
      add(all, {4, 64, 112, 3, 2, 1}, type, last);
    }
    add(all, {1, 512, 7, 7, 1, 0}, PoolType::kAvg, last);
    add(all, {16, 2048, 7, 7, 1, 0}, PoolType::kAvg, last);
  }
}

}  // namespace hybridnet::benchmarks
