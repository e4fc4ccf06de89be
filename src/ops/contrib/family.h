// Registration of the operators that MXNet keeps in its contrib namespace.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_box_nms(OpRegistry& ops);
void register_box_iou(OpRegistry& ops);
void register_box_coding(OpRegistry& ops);
void register_bipartite_matching(OpRegistry& ops);
void register_multibox_prior(OpRegistry& ops);
void register_multibox_target(OpRegistry& ops);
void register_multibox_detection(OpRegistry& ops);

}  // namespace hybridnet::ops
