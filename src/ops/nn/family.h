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

}  // namespace hybridnet::ops
