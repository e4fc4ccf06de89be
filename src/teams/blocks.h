// Small blocks of memory that oneDNN allocates and frees within each run of a primitive, about a dozen: served without
// malloc, so that a session that has run before allocates nothing.
#pragma once

namespace hybridnet::teams {

// While it lives, oneDNN's `new` on the calling thread takes small blocks from those that the thread keeps. For code
// that frees them soon: there are few.
class ShortLivedBlocks {
 public:
  ShortLivedBlocks() noexcept;
  ~ShortLivedBlocks();
  ShortLivedBlocks(const ShortLivedBlocks&) = delete;
};

}  // namespace hybridnet::teams
