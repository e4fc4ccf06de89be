// Untrusted models: the JSON of a graph, and after a zero byte the contents of its .params file. If a model can be
// loaded, it is bound, run, differentiated and put into a session.
#include <cstring>

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const void* end = size > 0 ? std::memchr(data, 0, size) : nullptr;
  const size_t json_size = end ? static_cast<size_t>(static_cast<const uint8_t*>(end) - data) : size;
  const uint8_t* params = end ? data + json_size + 1 : nullptr;
  fuzz::Model model;
  if (hn_model_load_from_memory(reinterpret_cast<const char*>(data), json_size, params,
                                params ? size - json_size - 1 : 0, model.out()) != 0)
    return 0;
  fuzz::Draws draws(data, size);
  fuzz::use(model.get(), draws);
  return 0;
}
