#include "kernels/norm/softmax.h"

#include "kernels/comparison.h"

namespace hybridnet::benchmarks {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;

void add(Comparisons& all, kernels::RowShape s, bool log) {
  const Floats x(s.size()), y(s.size()), y_library(s.size());
  const auto desc = layout({s.outer, s.length, s.inner}, memory::format_tag::abc);
  const dnnl::softmax_forward::primitive_desc pd(onednn::cpu_engine(), prop_kind::forward_training,
                                                 log ? algorithm::softmax_log : algorithm::softmax_accurate, desc, desc,
                                                 1, onednn::user_scratchpad());
  const std::string what = log ? "log_softmax" : "softmax";
  std::string work = std::to_string(s.outer) + "x" + std::to_string(s.length);
  if (s.inner > 1) work += "x" + std::to_string(s.inner) + ", axis 1";
  auto forward = std::make_shared<Library>();
  forward->add(pd, {{DNNL_ARG_SRC, desc, x}, {DNNL_ARG_DST, desc, y_library}});
  all.push_back({what, work, [=] { kernels::softmax(s, x.get(), 1.0, log, nullptr, y.get()); }, [=] { forward->run(); },
                 [=] { return difference(y, y_library); }});

  const Floats dy(s.size()), dx(s.size()), dx_library(s.size());
  kernels::softmax(s, x.get(), 1.0, log, nullptr, y.get());
  const dnnl::softmax_backward::primitive_desc back(onednn::cpu_engine(),
                                                    log ? algorithm::softmax_log : algorithm::softmax_accurate, desc,
                                                    desc, desc, 1, pd, onednn::user_scratchpad());
  auto backward = std::make_shared<Library>();
  backward->add(back, {{DNNL_ARG_DST, desc, y}, {DNNL_ARG_DIFF_DST, desc, dy}, {DNNL_ARG_DIFF_SRC, desc, dx_library}});
  all.push_back({what + " gradient", work, [=] { kernels::softmax_gradient(s, dy.get(), y.get(), 1.0, log, dx.get()); },
                 [=] { backward->run(); }, [=] { return difference(dx, dx_library); }});
}

}  // namespace

void add_softmax(Comparisons& all) {
  for (const bool log : {false, true}) {
    add(all, {128, 10, 1}, log);
    add(all, {1536, 128, 1}, log);
    add(all, {64, 30000, 1}, log);
  }
  add(all, {8, 21, 4096}, false);
}

}  // namespace hybridnet::benchmarks
