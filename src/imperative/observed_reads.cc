#include "imperative/observed_reads.h"

namespace hybridnet {

thread_local ObservedReads* observed_reads = nullptr;

void observe_reads(std::span<const NDArray> inputs) {
  for (const NDArray& array : inputs)
    if (array && !array.is_sparse()) observed_reads->push_back(array);
}

}  // namespace hybridnet
