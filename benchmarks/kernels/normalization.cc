// Batch norm and layer norm.
#include "kernels/comparison.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/norm/layer_norm.h"

namespace hybridnet::benchmarks {
namespace {

using dnnl::memory;
using dnnl::normalization_flags;
using dnnl::prop_kind;

constexpr float kEps = 1e-5F;
const auto kScaled = normalization_flags::use_scale | normalization_flags::use_shift;

// ---- layer norm

void add_layer_norm(Comparisons& all, int64_t rows, int64_t width) {
  const kernels::NormRows s{rows, width};
  const std::string work = std::to_string(rows) + "x" + std::to_string(width);
  const auto desc = layout({rows, width}, memory::format_tag::ab), stat = layout({rows}, memory::format_tag::a),
             scale = layout({width}, memory::format_tag::a);
  const Floats x(s.rows * s.width), gamma(width), beta(width), y(x.size()), y_library(x.size()), mean(rows),
      deviation(rows), mean_library(rows), variance(rows);
  const dnnl::layer_normalization_forward::primitive_desc pd(onednn::cpu_engine(), prop_kind::forward_training, desc,
                                                             desc, stat, kEps, kScaled, onednn::user_scratchpad());
  auto forward = std::make_shared<Library>();
  forward->add(pd, {{DNNL_ARG_SRC, desc, x},
                    {DNNL_ARG_SCALE, scale, gamma},
                    {DNNL_ARG_SHIFT, scale, beta},
                    {DNNL_ARG_MEAN, stat, mean_library},
                    {DNNL_ARG_VARIANCE, stat, variance},
                    {DNNL_ARG_DST, desc, y_library}});
  const auto ours = [=] {
    kernels::layer_norm<float>(s, x.get(), gamma.get(), beta.get(), kEps, y.get(), mean.get(), deviation.get());
  };
  all.push_back({"layer norm", work, ours, [=] { forward->run(); }, [=] { return difference(y, y_library); }});

  ours();
  forward->run();
  const Floats dy(x.size()), dx(x.size()), dx_library(x.size()), dgamma(width), dbeta(width), dgamma_library(width),
      dbeta_library(width);
  const Buffer<char> workspace(kernels::layer_norm_gradient_workspace(s, sizeof(float)));
  const dnnl::layer_normalization_backward::primitive_desc back(
      onednn::cpu_engine(), prop_kind::backward, desc, desc, desc, stat, kEps, kScaled, pd, onednn::user_scratchpad());
  auto backward = std::make_shared<Library>();
  backward->add(back, {{DNNL_ARG_SRC, desc, x},
                       {DNNL_ARG_DIFF_DST, desc, dy},
                       {DNNL_ARG_MEAN, stat, mean_library},
                       {DNNL_ARG_VARIANCE, stat, variance},
                       {DNNL_ARG_SCALE, scale, gamma},
                       {DNNL_ARG_SHIFT, scale, beta},
                       {DNNL_ARG_DIFF_SRC, desc, dx_library},
                       {DNNL_ARG_DIFF_SCALE, scale, dgamma_library},
                       {DNNL_ARG_DIFF_SHIFT, scale, dbeta_library}});
  all.push_back({"layer norm gradient", work,
                 [=] {
                   kernels::layer_norm_gradient<float>(s, dy.get(), x.get(), gamma.get(), mean.get(), deviation.get(),
                                                       dx.get(), dgamma.get(), dbeta.get(), workspace.get());
                 },
                 [=] { backward->run(); },
                 [=] { return std::max(difference(dx, dx_library), difference(dgamma, dgamma_library)); }});
}

// ---- batch norm

struct Images {
  int64_t n, c, side;
  bool channels_last;
  int64_t space() const { return side * side; }
  int64_t size() const { return n * c * space(); }
  kernels::ChannelShape shape() const {
    return channels_last ? kernels::ChannelShape{n * space(), c, 1} : kernels::ChannelShape{n, c, space()};
  }
  onednn::Desc desc() const {
    return layout({n, c, side, side}, channels_last ? memory::format_tag::nhwc : memory::format_tag::nchw);
  }
  std::string work() const {
    return std::to_string(n) + "x" + std::to_string(c) + "x" + std::to_string(side) + "x" + std::to_string(side) +
           (channels_last ? " nhwc" : " nchw");
  }
};

struct BatchNorm {
  explicit BatchNorm(const Images& i)
      : images(i),
        shape(i.shape()),
        x(i.size()),
        y(i.size()),
        dy(i.size()),
        dx(i.size()),
        gamma(i.c),
        beta(i.c),
        mean(i.c),
        variance(i.c),
        scale(i.c),
        sum_dy(i.c),
        sum_product(i.c),
        offset(i.c),
        slope(i.c),
        workspace(kernels::channel_sums_workspace(i.shape(), sizeof(float))) {}
  Images images;
  kernels::ChannelShape shape;
  Floats x, y, dy, dx, gamma, beta, mean, variance, scale, sum_dy, sum_product, offset, slope;
  Buffer<char> workspace;

  float inverse(int64_t c) const { return 1 / std::sqrt(variance.get()[c] + kEps); }
  void find_statistics() const {
    kernels::channel_mean_variance<float>(shape, x.get(), mean.get(), variance.get(), workspace.get());
  }
  void normalize(bool relu) const {
    for (int64_t c = 0; c < images.c; ++c) scale.get()[c] = gamma.get()[c] * inverse(c);
    kernels::channel_normalize<float>(shape, x.get(), mean.get(), scale.get(), beta.get(), relu, y.get());
  }
  void differentiate(bool relu) const {
    const kernels::ChannelGradient<float> g{x.get(), dy.get(), mean.get(), scale.get(), beta.get(), relu};
    kernels::channel_gradient_sums<float>(shape, g, sum_dy.get(), sum_product.get(), workspace.get());
    const float share = 1.0F / static_cast<float>(shape.per_channel());
    for (int64_t c = 0; c < images.c; ++c) {
      offset.get()[c] = sum_dy.get()[c] * share;
      slope.get()[c] = sum_product.get()[c] * inverse(c) * inverse(c) * share;
    }
    kernels::channel_gradient_apply<float>(shape, g, scale.get(), offset.get(), slope.get(), dx.get());
  }
};

// The difference of two gradients after a relu. A normalized value that is 0 up to rounding lets the gradient pass on
// one side and not on the other, and both are correct: such elements do not count. The comparison of the forward run
// checks the values themselves.
double difference_where_signs_agree(const Floats& dx, const Floats& dx_library, const Floats& y,
                                    const Floats& y_library) {
  const Floats ours = dx.copy(), library = dx_library.copy();
  for (int64_t i = 0; i < dx.size(); ++i)
    if ((y.get()[i] > 0) != (y_library.get()[i] > 0)) ours.get()[i] = library.get()[i] = 0;
  return difference(ours, library);
}

void add_batch_norm(Comparisons& all, const Images& images, bool relu) {
  const auto ours = std::make_shared<BatchNorm>(images);
  const auto desc = images.desc(), channel = layout({images.c}, memory::format_tag::a);
  const Floats y(images.size()), dx(images.size()), mean(images.c), variance(images.c), dgamma(images.c),
      dbeta(images.c);
  const auto flags = relu ? kScaled | normalization_flags::fuse_norm_relu : kScaled;
  const std::string kernel = relu ? "batch norm with relu" : "batch norm";
  const dnnl::batch_normalization_forward::primitive_desc pd(onednn::cpu_engine(), prop_kind::forward_training, desc,
                                                             desc, kEps, flags, onednn::user_scratchpad());
  auto forward = std::make_shared<Library>();
  std::vector<Library::Tensor> tensors{{DNNL_ARG_SRC, desc, ours->x},          {DNNL_ARG_SCALE, channel, ours->gamma},
                                       {DNNL_ARG_SHIFT, channel, ours->beta},  {DNNL_ARG_MEAN, channel, mean},
                                       {DNNL_ARG_VARIANCE, channel, variance}, {DNNL_ARG_DST, desc, y}};
  const Library::Memory mask = relu ? Library::memory(pd.workspace_desc()) : nullptr;
  if (relu) tensors.push_back({DNNL_ARG_WORKSPACE, pd.workspace_desc(), mask});
  forward->add(pd, tensors);
  const auto run_ours = [=] {
    ours->find_statistics();
    ours->normalize(relu);
  };
  all.push_back({kernel, images.work(), run_ours, [=] { forward->run(); }, [=] { return difference(ours->y, y); }});

  run_ours();
  forward->run();
  const dnnl::batch_normalization_backward::primitive_desc back(onednn::cpu_engine(), prop_kind::backward, desc, desc,
                                                                desc, kEps, flags, pd, onednn::user_scratchpad());
  auto backward = std::make_shared<Library>();
  tensors = {{DNNL_ARG_SRC, desc, ours->x},          {DNNL_ARG_DIFF_DST, desc, ours->dy},
             {DNNL_ARG_MEAN, channel, mean},         {DNNL_ARG_VARIANCE, channel, variance},
             {DNNL_ARG_SCALE, channel, ours->gamma}, {DNNL_ARG_DIFF_SRC, desc, dx},
             {DNNL_ARG_DIFF_SCALE, channel, dgamma}, {DNNL_ARG_DIFF_SHIFT, channel, dbeta}};
  if (relu) tensors.push_back({DNNL_ARG_WORKSPACE, pd.workspace_desc(), mask});
  backward->add(back, tensors);
  all.push_back(
      {kernel + " gradient", images.work(), [=] { ours->differentiate(relu); },
       [forward, backward] { backward->run(); },
       [=] { return relu ? difference_where_signs_agree(ours->dx, dx, ours->y, y) : difference(ours->dx, dx); }});

  // Prediction: with given statistics. No mask is saved.
  const dnnl::batch_normalization_forward::primitive_desc fixed(
      onednn::cpu_engine(), prop_kind::forward_inference, desc, desc, kEps,
      flags | normalization_flags::use_global_stats, onednn::user_scratchpad());
  auto prediction = std::make_shared<Library>();
  prediction->add(fixed, {{DNNL_ARG_SRC, desc, ours->x},
                          {DNNL_ARG_SCALE, channel, ours->gamma},
                          {DNNL_ARG_SHIFT, channel, ours->beta},
                          {DNNL_ARG_MEAN, channel, mean},
                          {DNNL_ARG_VARIANCE, channel, variance},
                          {DNNL_ARG_DST, desc, y}});
  all.push_back({kernel + " prediction", images.work(), [=] { ours->normalize(relu); }, [=] { prediction->run(); },
                 [=] { return difference(ours->y, y); }});
}

}  // namespace

void add_normalization(Comparisons& all) {
  add_layer_norm(all, 32, 64);
  add_layer_norm(all, 128, 768);
  add_layer_norm(all, 4096, 1024);
  for (const bool last : {true, false}) {
    add_batch_norm(all, {8, 32, 7, last}, false);
    add_batch_norm(all, {8, 256, 14, last}, false);
    add_batch_norm(all, {8, 64, 56, last}, false);
    add_batch_norm(all, {8, 64, 56, last}, true);
  }
}

}  // namespace hybridnet::benchmarks
