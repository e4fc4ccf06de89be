// Untrusted files of arrays (.params): every file that can be read is used and written again.
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  size_t count = 0;
  HnArray* arrays = nullptr;
  const char** names = nullptr;
  if (hn_arrays_load_from_memory(data, size, &count, &arrays, &names) != 0) return 0;
  for (size_t i = 0; i < count; ++i) {
    int64_t size = 0;
    // A sparse array of few bytes may represent a large dense one.
    if (hn_array_size(arrays[i], &size) != 0 || size > fuzz::kMaxElements) continue;
    size_t room = 1;
    fuzz::Array sum, copy;
    hn_array_copy(arrays[i], copy.out());
    hn_invoke("sum", 0, nullptr, nullptr, 1, &arrays[i], &room, sum.out());
    hn_array_wait(sum.get());
    fuzz::Array parts[3], dense;
    hn_array_part(arrays[i], "data", parts[0].out());
    hn_array_part(arrays[i], "indices", parts[1].out());
    hn_array_part(arrays[i], "indptr", parts[2].out());
    hn_array_cast_storage(arrays[i], "default", dense.out());
    hn_array_wait(dense.get());
  }
  hn_arrays_save("/dev/null", count, arrays, names);
  hn_arrays_free(count, arrays, names);
  hn_wait_all();
  return 0;
}
