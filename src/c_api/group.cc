// The processes that train together.
#include "c_api/group.h"

#include <cmath>
#include <exception>
#include <mutex>
#include <string>

#include "base/process_end.h"
#include "c_api/arrays.h"
#include "c_api/status.h"
#include "group/current.h"
#include "group/lane.h"
#include "imperative/group_arrays.h"

using namespace hybridnet;  // the functions below are C: they have no namespace
using c_api::array_of;
using c_api::arrays_of;
using c_api::current_group;
using c_api::guarded;
using c_api::require;

namespace {

constexpr double kMaxTimeoutSeconds = 1'000'000;

void leave_at_exit() {
  if (!group::joined()) return;
  const char* reason = "the program ended";
  try {
    group::wait_for_calls();
  } catch (const std::exception&) {  // it was or would be reported where the program waits
    reason = "the program ended after an error";
  }
  group::leave(reason);
}

void watch_exit(const group::Group& group) {
  if (group.size() == 1) return;
  static std::once_flag watched;
  std::call_once(watched, [] { at_process_end(leave_at_exit); });
}

std::string text_or(const char* given, const char* default_text) { return given != nullptr ? given : default_text; }

group::Settings settings_of(const HnGroupSettings& given) {
  constexpr const char* kFunction = "hn_group_join";
  if (given.struct_size != sizeof(HnGroupSettings))
    throw ValueError({.op = kFunction,
                      .input = "settings->struct_size",
                      .expected = std::to_string(sizeof(HnGroupSettings)),
                      .given = std::to_string(given.struct_size)});
  if (!(given.timeout >= 0 && given.timeout <= kMaxTimeoutSeconds))
    throw ValueError({.op = kFunction,
                      .input = "settings->timeout",
                      .expected = "0 to 1000000 seconds",
                      .given = std::to_string(given.timeout)});
  const std::string token_file = text_or(given.token_file, "");
  group::Settings settings{.rank = given.rank,
                           .size = given.size,
                           .shards = given.virtual_shards,
                           .meeting = text_or(given.meeting, ""),
                           .token = token_file.empty() ? std::string() : group::read_token(token_file)};
  if (given.address != nullptr) settings.address = given.address;
  if (given.engine != nullptr) settings.engine = given.engine;
  if (given.name != nullptr) settings.name = given.name;
  if (given.timeout > 0) settings.timeout_ms = static_cast<int64_t>(std::ceil(given.timeout * 1000));
  return settings;
}

}  // namespace

std::shared_ptr<group::Group> c_api::current_group() {
  std::shared_ptr<group::Group> current = group::current();
  watch_exit(*current);
  return current;
}

int hn_group_join(const HnGroupSettings* settings) {
  return guarded([&] {
    if (settings == nullptr) {
      current_group();
    } else {
      watch_exit(*group::join(settings_of(*settings)));
    }
  });
}

int hn_group_is_joined(int* out) {
  return guarded([&] {
    require(out, "hn_group_is_joined", "out");
    *out = group::joined() != nullptr ? 1 : 0;
  });
}

int hn_group_leave(const char* reason) {
  return guarded([&] { group::leave(text_or(reason, "it left the group")); });
}

int hn_group_rank(int* out) {
  return guarded([&] {
    require(out, "hn_group_rank", "out");
    *out = current_group()->rank();
  });
}

int hn_group_size(int* out) {
  return guarded([&] {
    require(out, "hn_group_size", "out");
    *out = current_group()->size();
  });
}

int hn_group_virtual_shards(int* out) {
  return guarded([&] {
    require(out, "hn_group_virtual_shards", "out");
    *out = current_group()->shards();
  });
}

int hn_group_own_shards(int* first, int* end) {
  return guarded([&] {
    require(first, "hn_group_own_shards", "first");
    require(end, "hn_group_own_shards", "end");
    const group::Shards own = current_group()->own_shards();
    *first = own.begin;
    *end = own.end;
  });
}

int hn_group_counters(int64_t* calls, int64_t* bytes_sent) {
  return guarded([&] {
    require(calls, "hn_group_counters", "calls");
    require(bytes_sent, "hn_group_counters", "bytes_sent");
    const auto group = current_group();
    *calls = static_cast<int64_t>(group->calls());
    *bytes_sent = static_cast<int64_t>(group->bytes_sent());
  });
}

int hn_group_sum(HnArray array, const char* name, HnArray* out) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_group_sum", "array");
    require(out, "hn_group_sum", "out");
    current_group();
    *out = c_api::give_array(summed_over_group(given, text_or(name, "")));
  });
}

int hn_group_sum_into(size_t num_arrays, const HnArray* arrays, const HnArray* out, const char* name, int priority) {
  return guarded([&] {
    const std::vector<NDArray> given = arrays_of(num_arrays, arrays, "hn_group_sum_into", "arrays");
    const std::vector<NDArray> targets =
        out == nullptr ? given : arrays_of(num_arrays, out, "hn_group_sum_into", "out");
    current_group();
    sum_over_group({given}, targets, text_or(name, ""), priority);
  });
}

int hn_group_gather(HnArray array, const char* name, HnArray* out) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_group_gather", "array");
    require(out, "hn_group_gather", "out");
    current_group();
    *out = c_api::give_array(gathered_over_group(given, text_or(name, "")));
  });
}

int hn_group_broadcast(size_t num_arrays, const HnArray* arrays, int root, const char* name) {
  return guarded([&] {
    const std::vector<NDArray> given = arrays_of(num_arrays, arrays, "hn_group_broadcast", "arrays");
    current_group();
    broadcast_over_group(given, root, text_or(name, ""));
  });
}

int hn_group_barrier(void) {
  return guarded([&] {
    current_group();
    wait_for_group();
  });
}
