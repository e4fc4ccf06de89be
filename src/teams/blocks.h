// Small blocks of memory that oneDNN takes and gives back within each run of a primitive, a dozen or so: without
// malloc, so that a session that has run before allocates nothing.
#pragma once

namespace hybridnet::teams {

// While it lives, `new` of oneDNN on the calling thread takes small blocks from those that the thread keeps. For code
// that gives them back soon: there are few.
class ShortLivedBlocks {
 public:
  ShortLivedBlocks() noexcept;
  ~ShortLivedBlocks();
  ShortLivedBlocks(const ShortLivedBlocks&) = delete;
};

}  // namespace hybridnet::teams
