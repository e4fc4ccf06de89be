// What the opaque handles of c_api.h are.
#pragma once

#include "hybridnet/c_api.h"
#include "hybridnet/ndarray.h"

struct HnArray_ {
  hybridnet::NDArray array;
};
