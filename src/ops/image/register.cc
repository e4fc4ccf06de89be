#include "ops/image/family.h"
#include "ops/register_all.h"

namespace hybridnet::ops {

void register_image(OpRegistry& ops) {
  register_to_tensor(ops);
  register_normalize(ops);
  register_image_crop(ops);
  register_image_flip(ops);
  register_image_resize(ops);
  register_image_color(ops);
  register_image_jitter(ops);
}

}  // namespace hybridnet::ops
