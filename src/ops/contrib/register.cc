#include "ops/contrib/family.h"
#include "ops/register_all.h"

namespace hybridnet::ops {

void register_contrib(OpRegistry& ops) {
  register_box_nms(ops);
  register_box_iou(ops);
  register_box_coding(ops);
  register_bipartite_matching(ops);
  register_multibox_prior(ops);
  register_multibox_target(ops);
  register_multibox_detection(ops);
}

}  // namespace hybridnet::ops
