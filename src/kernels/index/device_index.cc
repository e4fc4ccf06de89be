#include "kernels/index/device_index.h"

#include <algorithm>
#include <bit>
#include <string>

#include "device/stream.h"
#include "hybridnet/storage.h"
#include "kernels/device/index_arguments.h"
#include "kernels/device/program_table.h"
#include "kernels/device/values_arguments.h"

namespace hybridnet::kernels::on_device {
namespace {

using device::GatherArguments;
using device::IndexArguments;

constexpr const char* kWords[] = {"uint8_t", "uint16_t", "uint32_t", "uint64_t", "hybridnet::device::GatherWord16"};

// The base 2 logarithm of the widest word that divides a number.
int word_of(int64_t bits) { return bits == 0 ? 4 : std::min(4, std::countr_zero(static_cast<uint64_t>(bits))); }

// The kernels that move words of 2^word bytes.
device::Program& move_program(int word) {
  static ProgramTable<5> programs;
  return programs.get(word, [word] {
    std::string text = include_line("index.cuh");
    for (const std::string name : {"gather_rows", "gather_along", "gather_last_rows", "scatter_rows"})
      text += kernel_line(name, "GatherArguments", name + "<" + kWords[word] + ">");
    return text;
  });
}

device::Program& index_program() {
  static ProgramTable<1> programs;
  return programs.get(0, [] {
    std::string text = include_line("index.cuh");
    for (const char* name : {"link_places", "link_sorted_places"}) text += kernel_line(name, "GatherArguments", name);
    for (const char* name : {"clip_indices", "wrap_indices", "merge_indices", "check_indices", "find_outside"})
      text += kernel_line(name, "IndexArguments", name);
    return text;
  });
}

device::Program& add_program(DType dtype) {
  static ProgramTable<kDTypeCodes> programs;
  return programs.get(static_cast<int>(dtype), [dtype] {
    const std::string type = "hybridnet::device::wrapping_t<" + element_name(dtype) + ">";
    std::string text = include_line("index.cuh");
    for (const std::string name : {"scatter_add_rows", "scatter_add_along"})
      text += kernel_line(name, "GatherArguments", name + "<" + type + ">");
    return text;
  });
}

// Rows are moved in the widest words to which they are aligned.
void move_rows(const char* function, GatherArguments a, int64_t element_bytes) {
  const int64_t row_bytes = a.inner * element_bytes;
  const int word =
      word_of(row_bytes | static_cast<int64_t>(reinterpret_cast<uintptr_t>(a.in) | reinterpret_cast<uintptr_t>(a.out)));
  a.inner = row_bytes >> word;
  const int64_t n = a.outer * a.count * a.inner;
  if (n > 0) move_program(word).launch(function, device::geometry_for(n), a);
}

GatherArguments arguments_of(const void* in, RowLayout l, const int64_t* ids, int64_t count, void* out) {
  return {in, out, ids, nullptr, nullptr, l.outer, l.rows, l.inner, count, nullptr};
}

// Sorts many ids, then links the places of equal ones.
void link_sorted(GatherArguments a) {
  static ProgramTable<1> programs;
  device::Program& sorting = programs.get(0, [] {
    std::string text = include_line("sort.cuh");
    for (const std::string name : {"sort_runs", "merge_runs"})
      text += kernel_line(name, "SortArguments", name + "<int64_t>");
    return text;
  });
  const OwnedBlock room(2 * a.count * static_cast<int64_t>(sizeof(int64_t)), device::current()->device());
  auto* const order = static_cast<int64_t*>(room.data());
  device::SortArguments s{
      .in = a.ids, .order = order, .other = order + a.count, .items = 1, .rows = a.count, .inner = 1, .ascending = 1};
  constexpr int64_t kRun = 256;  // the same in sort.cuh
  sorting.launch("sort_runs", device::geometry_for(a.count), s);
  for (s.width = kRun; s.width < a.count; s.width *= 2) {
    sorting.launch("merge_runs", device::geometry_for(a.count), s);
    std::swap(s.order, s.other);
  }
  a.order = s.order;
  index_program().launch("link_sorted_places", device::geometry_for(a.count), a);
}

// Calls use(a) with the places of equal ids linked.
template <typename Use>
void with_links(GatherArguments a, const Use& use) {
  if (a.outer * a.count * a.inner == 0) return;
  const device::Stream& stream = *device::current();
  const OwnedBlock next(a.count * static_cast<int64_t>(sizeof(int64_t)), stream.device()),
      head(a.count, stream.device());
  a.next = static_cast<int64_t*>(next.data());
  a.head = static_cast<uint8_t*>(head.data());
  constexpr int64_t kFewIds = 4096;
  if (a.count > kFewIds) {
    link_sorted(a);
  } else {
    device::current()->fill_bytes(a.head, 1, a.count);
    index_program().launch("link_places", device::geometry_for(a.count), a);
  }
  use(a);
}

// Runs a kernel that sets a flag, and returns the flag: waits for the stream.
bool sets_flag(const char* function, IndexArguments a) {
  if (a.n == 0) return false;
  const OwnedBlock flag(sizeof(int32_t), device::current()->device());
  device::current()->fill_bytes(flag.data(), 0, sizeof(int32_t));
  a.outside = static_cast<int32_t*>(flag.data());
  index_program().launch(function, device::geometry_for(a.n), a);
  int32_t found = 0;
  device::current()->copy_out(&found, flag.data(), sizeof found);
  return found != 0;
}

}  // namespace

void gather_rows(const void* data, RowLayout l, const int64_t* ids, int64_t count, void* out, int64_t element_bytes) {
  move_rows("gather_rows", arguments_of(data, l, ids, count, out), element_bytes);
}

void gather_along(const void* data, RowLayout l, const int64_t* ids, int64_t count, void* out, int64_t element_bytes) {
  const int64_t n = l.outer * count * l.inner;
  if (n == 0) return;
  move_program(word_of(element_bytes))
      .launch("gather_along", device::geometry_for(n), arguments_of(data, l, ids, count, out));
}

void scatter_rows(const void* values, RowLayout l, const int64_t* ids, int64_t count, void* data,
                  int64_t element_bytes) {
  with_links(arguments_of(values, l, ids, count, data),
             [&](const GatherArguments& a) { move_rows("scatter_rows", a, element_bytes); });
}

void gather_last_rows(const void* data, RowLayout l, const int64_t* ids, int64_t count, void* out,
                      int64_t element_bytes) {
  with_links(arguments_of(data, l, ids, count, out),
             [&](const GatherArguments& a) { move_rows("gather_last_rows", a, element_bytes); });
}

void scatter_add_rows(const TensorRef& grads, RowLayout l, const int64_t* ids, int64_t count, const TensorRef& out) {
  with_links(arguments_of(grads.data, l, ids, count, out.data), [&](const GatherArguments& a) {
    add_program(out.dtype).launch("scatter_add_rows", device::geometry_for(a.outer * a.count * a.inner), a);
  });
}

void scatter_add_along(const TensorRef& grads, RowLayout l, const int64_t* ids, int64_t count, const TensorRef& out) {
  if (l.outer * count * l.inner == 0) return;
  add_program(out.dtype).launch("scatter_add_along", device::geometry_for(l.outer * l.inner),
                                arguments_of(grads.data, l, ids, count, out.data));
}

void read_indices(const TensorRef& tensor, int64_t* to) {
  const int64_t n = tensor.size();
  if (n == 0) return;
  static ProgramTable<kDTypeCodes> programs;
  programs
      .get(static_cast<int>(tensor.dtype),
           [&] {
             return include_line("index.cuh") +
                    kernel_line("read_indices", "IndexArguments", "read_indices<" + element_name(tensor.dtype) + ">");
           })
      .launch("read_indices", device::geometry_for(n), IndexArguments{.in = tensor.data, .ids = to, .n = n});
}

void merge_indices(int64_t* ids, const int64_t* next, int64_t n, int64_t size) {
  if (n == 0) return;
  index_program().launch("merge_indices", device::geometry_for(n),
                         IndexArguments{.in = next, .ids = ids, .n = n, .size = size});
}

void clip_indices(int64_t* ids, int64_t n, int64_t low, int64_t high) {
  if (n == 0) return;
  index_program().launch("clip_indices", device::geometry_for(n),
                         IndexArguments{.ids = ids, .n = n, .low = low, .high = high});
}

void wrap_indices(int64_t* ids, int64_t n, int64_t size) {
  if (n == 0) return;
  index_program().launch("wrap_indices", device::geometry_for(n), IndexArguments{.ids = ids, .n = n, .size = size});
}

bool count_from_end(int64_t* ids, int64_t n, int64_t size) {
  return !sets_flag("check_indices", {.ids = ids, .n = n, .size = size});
}

bool has_outside(const int64_t* ids, int64_t n, int64_t low, int64_t high) {
  return sets_flag("find_outside", {.ids = const_cast<int64_t*>(ids), .n = n, .low = low, .high = high});
}

}  // namespace hybridnet::kernels::on_device
