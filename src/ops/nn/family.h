// The operators of neural networks, one function per file.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_convolution(OpRegistry& ops);
void register_fused_convolution(OpRegistry& ops);
void register_deconvolution(OpRegistry& ops);
void register_fully_connected(OpRegistry& ops);
void register_pooling(OpRegistry& ops);
void register_batch_norm(OpRegistry& ops);
void register_softmax(OpRegistry& ops);
void register_layer_norm(OpRegistry& ops);

void register_dropout(OpRegistry& ops);
void register_group_norm(OpRegistry& ops);
void register_l2_normalization(OpRegistry& ops);
void register_lrn(OpRegistry& ops);

void register_rnn(OpRegistry& ops);
void register_softmax_activation(OpRegistry& ops);
void register_softmax_output(OpRegistry& ops);
void register_softmax_cross_entropy(OpRegistry& ops);
void register_regression_output(OpRegistry& ops);
void register_svm_output(OpRegistry& ops);
void register_resample(OpRegistry& ops);
void register_bilinear_resize(OpRegistry& ops);
void register_adaptive_avg_pooling(OpRegistry& ops);
void register_upsampling(OpRegistry& ops);
void register_point_sampling(OpRegistry& ops);
void register_bilinear_sampler(OpRegistry& ops);
void register_grid_generator(OpRegistry& ops);
void register_spatial_transformer(OpRegistry& ops);
void register_roi_pooling(OpRegistry& ops);
void register_roi_align(OpRegistry& ops);

}  // namespace hybridnet::ops
