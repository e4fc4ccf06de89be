// Memory from the operating system, 64-byte aligned. Large blocks are mapped with huge pages: the first touch of fresh
// memory costs a page fault per page, ten times what writing to it costs.
#pragma once

#include <cstdint>

namespace hybridnet {

// bytes: of which `used` are going to be touched; the rest takes no memory until it is, in a block of another use.
// Null when the system has no more.
void* system_allocate(int64_t bytes, int64_t used);
void system_free(void* data, int64_t bytes);
// Fills memory with zeros and gives its whole pages back: they cost nothing until they are touched again.
void zero_and_release(void* data, int64_t bytes);
// The whole pages inside of memory. data: null where there are none.
struct Pages {
  void* data = nullptr;
  int64_t bytes = 0;
};
Pages whole_pages(void* data, int64_t bytes);
// The pages leave the resident set, and what was written into them is lost: they read as zeros, or, in a private
// mapping of a file, as the file.
void drop_pages(void* data, int64_t bytes);
void system_trim();  // returns freed blocks that the C library keeps

// For the address sanitizer, which cannot tell memory in the pool from memory in use. In other builds they do nothing.
void forbid_access(void* data, int64_t bytes);
void allow_access(void* data, int64_t bytes);

}  // namespace hybridnet
