#include "device/last_launches.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/origin.h"

namespace hybridnet::device {
namespace {

constexpr uint64_t kKept = 64;

struct Launch {
  std::atomic_flag in_use;  // by a thread that writes or reads it
  const char* kernel = nullptr;
  SourceLocation where;
  char node[48] = "";
};

std::array<Launch, kKept> g_launches;
std::atomic<uint64_t> g_count{0};

std::string text_of(const Launch& launch) {
  std::string text = std::string("'") + launch.kernel + "'";
  if (launch.node[0] != '\0') text += std::string(" of node '") + launch.node + "'";
  if (launch.where.known()) text += " at " + launch.where.str();
  return text;
}

}  // namespace

void note_launch(const char* kernel) {
  Launch& launch = g_launches[g_count.fetch_add(1, std::memory_order_relaxed) % kKept];
  if (launch.in_use.test_and_set(std::memory_order_acquire)) return;
  OriginScope::Place place;
  if (OriginScope::is_in_plan()) place = OriginScope::current_graph_position();  // else the line is costly to find
  launch.kernel = kernel;
  launch.where = place.where;
  const size_t length = std::min(place.node.size(), sizeof launch.node - 1);
  std::memcpy(launch.node, place.node.data(), length);
  launch.node[length] = '\0';
  launch.in_use.clear(std::memory_order_release);
}

std::string last_launches() {
  std::string text;
  const uint64_t count = g_count.load(std::memory_order_relaxed);
  for (uint64_t back = 1; back <= std::min(count, kKept); ++back) {
    Launch& launch = g_launches[(count - back) % kKept];
    if (launch.in_use.test_and_set(std::memory_order_acquire)) continue;
    if (launch.kernel != nullptr) text += (text.empty() ? "" : ", ") + text_of(launch);
    launch.in_use.clear(std::memory_order_release);
  }
  return text;
}

}  // namespace hybridnet::device
