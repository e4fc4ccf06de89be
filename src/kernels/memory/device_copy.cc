#include "kernels/memory/device_copy.h"

#include <algorithm>
#include <bit>
#include <string>

#include "device/convert.h"
#include "device/stream.h"
#include "kernels/device/program_table.h"

namespace hybridnet::kernels::on_device {
namespace {

using device::StridedArguments;

const char* word_name(int64_t bytes) {
  switch (bytes) {
    case 1:
      return "uint8_t";
    case 2:
      return "uint16_t";
    case 4:
      return "uint32_t";
    case 8:
      return "uint64_t";
    default:
      return "hybridnet::device::Word16";
  }
}

int bit_of(int64_t power_of_two) { return std::countr_zero(static_cast<uint64_t>(power_of_two)); }

// The largest word of at most 16 bytes that divides a number of bytes.
int64_t word_of(int64_t bytes) { return bytes == 0 ? 16 : std::min<int64_t>(bytes & -bytes, 16); }

// Elements of any size become words of 1 to 16 bytes: an element that is no word becomes a contiguous axis of words,
// and a contiguous run is read in the widest words to which all of its positions are aligned. Returns the word's size.
int64_t choose_word(StridedArguments* a, int64_t element_bytes) {
  StridedArguments::Axis* run = a->count > 0 ? &a->axes[a->count - 1] : nullptr;
  const bool contiguous = run && run->src == 1 && run->dst == 1;
  const int64_t run_bytes = (contiguous ? run->size : 1) * element_bytes;
  const int outer = a->count - (contiguous ? 1 : 0);
  int64_t word = std::min(word_of(run_bytes), word_of(static_cast<int64_t>(reinterpret_cast<uintptr_t>(a->src) |
                                                                           reinterpret_cast<uintptr_t>(a->dst))));
  for (int i = 0; i < outer; ++i)
    word = std::min({word, word_of(a->axes[i].src * element_bytes), word_of(a->axes[i].dst * element_bytes)});
  for (int i = 0; i < outer; ++i) {
    a->axes[i].src = a->axes[i].src * element_bytes / word;
    a->axes[i].dst = a->axes[i].dst * element_bytes / word;
  }
  a->count = outer;
  if (run_bytes != word) a->axes[a->count++] = {run_bytes / word, 1, 1};
  return word;
}

}  // namespace

void copy_bytes(const void* src, void* dst, int64_t bytes) {
  if (bytes > 0 && src != dst) device::current()->copy(dst, src, bytes);
}

void zero_bytes(void* dst, int64_t bytes) {
  if (bytes > 0) device::current()->fill_bytes(dst, 0, bytes);
}

void copy_strided(StridedArguments a, int64_t element_bytes) {
  const int64_t word = choose_word(&a, element_bytes);
  if (a.count == 0) return copy_bytes(a.src, a.dst, word);
  if (a.count == 1 && a.axes[0].src == 1 && a.axes[0].dst == 1) return copy_bytes(a.src, a.dst, a.axes[0].size * word);
  a.n = 1;
  for (int i = 0; i < a.count; ++i) a.n *= a.axes[i].size;
  const bool small = a.n <= UINT32_MAX;
  static ProgramTable<10> programs;
  programs
      .get(2 * bit_of(word) + (small ? 1 : 0),
           [&] {
             return include_line("moves.cuh") + kernel_line("copy_strided", "StridedArguments",
                                                            std::string("copy_strided<") + word_name(word) +
                                                                (small ? ", uint32_t>" : ", uint64_t>"));
           })
      .launch("copy_strided", device::geometry_for(a.n), a);
}

void fill_elements(void* out, int64_t n, int64_t element_bytes, uint64_t bits) {
  if (n == 0) return;
  if (bits == 0) return zero_bytes(out, n * element_bytes);
  static ProgramTable<4> programs;
  programs
      .get(bit_of(element_bytes),
           [&] {
             return include_line("moves.cuh") +
                    kernel_line("fill", "FillArguments", std::string("fill<") + word_name(element_bytes) + ">");
           })
      .launch("fill", device::geometry_for(n), device::FillArguments{out, n, bits});
}

void convert(DType from, const void* in, DType to, void* out, int64_t n) { device::convert(from, in, to, out, n); }

}  // namespace hybridnet::kernels::on_device
