#include "ops/nn/family.h"
#include "ops/register_all.h"

namespace hybridnet::ops {

void register_nn(OpRegistry& ops) {
  register_fully_connected(ops);
  register_convolution(ops);
  register_fused_convolution(ops);
  register_deconvolution(ops);
  register_pooling(ops);
  register_batch_norm(ops);
  register_softmax(ops);
  register_layer_norm(ops);
  register_dropout(ops);
  register_group_norm(ops);
  register_l2_normalization(ops);
  register_lrn(ops);

  register_rnn(ops);
  register_softmax_activation(ops);
  register_softmax_output(ops);
  register_softmax_cross_entropy(ops);
  register_regression_output(ops);
  register_svm_output(ops);
  register_resample(ops);
  register_bilinear_resize(ops);
  register_adaptive_avg_pooling(ops);
  register_upsampling(ops);
  register_point_sampling(ops);
  register_bilinear_sampler(ops);
  register_grid_generator(ops);
  register_spatial_transformer(ops);
  register_roi_pooling(ops);
  register_roi_align(ops);
}

}  // namespace hybridnet::ops
