// Graphs as text (mx.rewrite.parse): every text that can be read is a valid graph whose own text reads back as an equal
// one.
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "graph/notation.h"
#include "hybridnet/ndarray.h"
#include "hybridnet/runtime.h"

namespace {

using namespace hybridnet;

Ref<Object> make_constant(const TensorSpec& spec, std::string_view bytes) {
  NDArray array = NDArray::empty(spec);
  if (!bytes.empty()) std::memcpy(array.data(), bytes.data(), bytes.size());
  return Ref<Object>(array.impl());
}

std::string bytes_of(const Object& object) {
  const NDArray array(Ref<ArrayImpl>(const_cast<ArrayImpl*>(static_cast<const ArrayImpl*>(&object))));
  return {static_cast<const char*>(array.data()), static_cast<size_t>(array.bytes())};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Runtime::get();
  try {
    const Graph graph = parse_notation({reinterpret_cast<const char*>(data), size}, make_constant);
    graph.check();
    const std::string text = write_notation(graph, bytes_of);
    const Graph again = parse_notation(text, make_constant);
    again.check();
    if (structure_hash(graph, bytes_of) != structure_hash(again, bytes_of)) std::abort();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kFormat) std::abort();
  }
  return 0;
}
