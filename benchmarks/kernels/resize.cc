#include "kernels/comparison.h"
#include "kernels/image/resample.h"

namespace hybridnet::benchmarks {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using kernels::AxisMap;

void add(Comparisons& all, int64_t n, int64_t c, int64_t from, int64_t to) {
  const auto rows = std::make_shared<AxisMap>(AxisMap::bilinear(from, to, false));
  const auto back_rows = std::make_shared<AxisMap>(rows->transposed());
  const auto small = layout({n, c, from, from}, memory::format_tag::nchw),
             large = layout({n, c, to, to}, memory::format_tag::nchw);
  const std::string work =
      std::to_string(n) + "x" + std::to_string(c) + ", " + std::to_string(from) + " to " + std::to_string(to) + " nchw";
  const Floats x(n * c * from * from), y(n * c * to * to), y_library(y.size());
  const dnnl::resampling_forward::primitive_desc pd(onednn::cpu_engine(), prop_kind::forward_training,
                                                    algorithm::resampling_linear, small, large,
                                                    onednn::user_scratchpad());
  auto forward = std::make_shared<Library>();
  forward->add(pd, {{DNNL_ARG_SRC, small, x}, {DNNL_ARG_DST, large, y_library}});
  all.push_back({"bilinear resize", work,
                 [=] { kernels::resample<float>(*rows, *rows, n * c, x.get(), y.get(), false); },
                 [=] { forward->run(); }, [=] { return difference(y, y_library); }});

  const Floats dy(y.size()), dx(x.size()), dx_library(x.size());
  const dnnl::resampling_backward::primitive_desc back(onednn::cpu_engine(), algorithm::resampling_linear, small, large,
                                                       pd, onednn::user_scratchpad());
  auto backward = std::make_shared<Library>();
  backward->add(back, {{DNNL_ARG_DIFF_DST, large, dy}, {DNNL_ARG_DIFF_SRC, small, dx_library}});
  all.push_back({"bilinear resize gradient", work,
                 [=] { kernels::resample<float>(*back_rows, *back_rows, n * c, dy.get(), dx.get(), false); },
                 [=] { backward->run(); }, [=] { return difference(dx, dx_library); }});
}

}  // namespace

void add_resize(Comparisons& all) {
  add(all, 1, 8, 16, 32);
  add(all, 8, 32, 28, 56);
  add(all, 4, 64, 100, 150);
}

}  // namespace hybridnet::benchmarks
