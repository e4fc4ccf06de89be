// Registration of the operators on images.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_to_tensor(OpRegistry& ops);
void register_normalize(OpRegistry& ops);
void register_image_crop(OpRegistry& ops);
void register_image_flip(OpRegistry& ops);
void register_image_resize(OpRegistry& ops);
void register_image_color(OpRegistry& ops);
void register_image_jitter(OpRegistry& ops);

}  // namespace hybridnet::ops
