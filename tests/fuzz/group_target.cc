// Reads the messages that processes of a group exchange, from bytes: frames, findings and cards.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "group/call.h"
#include "group/finding.h"
#include "group/process.h"
#include "group/sum_tree.h"

namespace {

using namespace hybridnet::group;

template <typename T>
T read(const uint8_t* data, size_t size) {
  T value;
  std::memcpy(static_cast<void*>(&value), data, std::min(size, sizeof value));
  return value;
}

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 5) return 0;
  const uint8_t kind = data[0];
  const int rank = data[1] % 8, processes = 1 + data[2] % 8;
  data += 4;
  size -= 4;
  if (kind % 4 == 0) {
    const Frame frame = read<Frame>(data, size);
    if (frame.valid(frame.number, rank)) {
      require(frame.rank == rank && frame.same_call(frame));
      require(frame.call().str().size() < sizeof frame + 64);
    }
  } else if (kind % 4 == 1) {
    const Finding finding = read<Finding>(data, size);
    if (finding.valid(processes)) {
      require(finding.rank >= 0 && finding.rank < processes && !finding.more_certain_than(finding));
      require(finding.fields().message.size() < sizeof finding.message);
    }
  } else if (kind % 4 == 2) {
    const ProcessCard card = read<ProcessCard>(data, size), own = ProcessCard::of_this_process(0, 2, 0, "gloo");
    const std::string difference = own.difference(card);
    require(difference.size() < 256 && card.str().size() < 256 && card.condition().size() < 256);
  } else {
    const int shards = processes + data[0] % 64;
    int next = 0;
    for (int i = 0; i < processes; ++i) {
      for (const Shards& node : covering_nodes(shards_of(i, processes, shards), shards)) {
        require(node.begin == next && node.end > node.begin);
        next = node.end;
      }
    }
    require(next == shards);
  }
  return 0;
}
