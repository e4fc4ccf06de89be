#include "ops/optimizer/device_update.h"

#include <map>
#include <mutex>

namespace hybridnet::ops::on_device {
namespace {

// Filled while operators are declared.
struct RatedUpdates {
  std::mutex mutex;
  std::map<std::string, RatedUpdateFn, std::less<>> runs;
};
RatedUpdates& rated_updates() {
  static auto* const updates = new RatedUpdates;
  return *updates;
}

}  // namespace

void add_rated_update(const std::string& op, RatedUpdateFn run) {
  RatedUpdates& updates = rated_updates();
  const std::lock_guard lock(updates.mutex);
  updates.runs[op] = run;
}

RatedUpdateFn rated_update(const std::string& op) {
  RatedUpdates& updates = rated_updates();
  const std::lock_guard lock(updates.mutex);
  const auto found = updates.runs.find(op);
  return found == updates.runs.end() ? nullptr : found->second;
}

}  // namespace hybridnet::ops::on_device
