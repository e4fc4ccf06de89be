// The scope that kernels open around code of oneDNN that allocates and frees small blocks of memory (teams/blocks.h).
#pragma once

#include "teams/blocks.h"

namespace hybridnet {

using teams::ShortLivedBlocks;

}  // namespace hybridnet
