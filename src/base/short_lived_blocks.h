// What kernels open around code of oneDNN that takes and gives back small blocks of memory (teams/blocks.h).
#pragma once

#include "teams/blocks.h"

namespace hybridnet {

using teams::ShortLivedBlocks;

}  // namespace hybridnet
