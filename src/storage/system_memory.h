// Memory from the operating system, 64-byte aligned. Large blocks are mapped with huge pages: the first touch of fresh
// memory costs a page fault per page, ten times the cost of writing to it.
#pragma once

#include <cstdint>

namespace hybridnet {

// Allocates a block of `bytes`, of which `used` are going to be touched now; the rest takes no memory until a later use
// of the block touches it. Null if the system has no more.
void* system_allocate(int64_t bytes, int64_t used);
void system_free(void* data, int64_t bytes);
// Fills memory with zeros and returns its whole pages to the system: they cost nothing until they are touched again.
void zero_and_release(void* data, int64_t bytes);
// The whole pages inside of memory. data: null if there are none.
struct Pages {
  void* data = nullptr;
  int64_t bytes = 0;
};
Pages whole_pages(void* data, int64_t bytes);
// Drops pages from the resident set with the values written into them: they then read as zeros, or, in a private
// mapping of a file, as the file.
void drop_pages(void* data, int64_t bytes);
void system_trim();  // returns freed blocks that the C library keeps

// For the address sanitizer, which cannot tell memory in the pool from memory in use. In other builds they do nothing.
void forbid_access(void* data, int64_t bytes);
void allow_access(void* data, int64_t bytes);

}  // namespace hybridnet
