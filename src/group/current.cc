#include "group/current.h"

#include <atomic>
#include <mutex>

namespace hybridnet::group {
namespace {

struct Current {
  std::mutex mutex;
  std::shared_ptr<Group> group;
  bool has_left = false;  // a group of several processes, and joined no other one

  void take(std::shared_ptr<Group> joined) {
    group = std::move(joined);
    has_others = group && group->size() > 1;
  }
  std::atomic<bool> has_others{false};
};

// Never destroyed: tasks may use it while the process ends.
Current& state() {
  static auto* const current = new Current;
  return *current;
}

}  // namespace

std::shared_ptr<Group> joined() {
  const std::lock_guard lock(state().mutex);
  return state().group;
}

bool has_others() { return state().has_others.load(std::memory_order_relaxed); }

std::shared_ptr<Group> current() {
  const std::lock_guard lock(state().mutex);
  if (state().has_left)
    throw GroupError({.message = "this process has left its group",
                      .fix = "call mx.group.init with the place of this process in another group"});
  if (!state().group) state().take(Group::join(settings_from_environment()));
  return state().group;
}

std::shared_ptr<Group> join(const Settings& settings) {
  const std::lock_guard lock(state().mutex);
  if (state().group && state().group->size() > 1)
    throw GroupError({.message = "this process is rank " + std::to_string(state().group->rank()) + " of " +
                                 std::to_string(state().group->size()) + " in a group already",
                      .fix = "call mx.group.leave() before it joins another one"});
  state().take(Group::join(settings));
  state().has_left = false;
  return state().group;
}

void leave(const std::string& reason) noexcept {
  std::shared_ptr<Group> group;
  {
    const std::lock_guard lock(state().mutex);
    group = state().group;
    state().take(nullptr);
    state().has_left = state().has_left || (group && group->size() > 1);
  }
  if (group) group->leave(reason);
}

}  // namespace hybridnet::group
