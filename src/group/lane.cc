#include "group/lane.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "engine/profile.h"
#include "group/current.h"
#include "hybridnet/error.h"

namespace hybridnet::group {
namespace {

// Written by every call, so that they run one after the other. Never destroyed, like the engine.
struct Order {
  std::mutex mutex;  // a number is taken and its task is pushed at once
  Var var;
};
Order& order() {
  static auto* const calls = new Order;
  return *calls;
}

void add_once(std::vector<Var*>& vars, Var* var) {
  if (std::find(vars.begin(), vars.end(), var) == vars.end()) vars.push_back(var);
}

}  // namespace

void push_call(const char* name, std::span<Var* const> reads, std::span<Var* const> writes, int priority,
               CallBody body) {
  const std::shared_ptr<Group> group = current();
  std::vector<Var*> written{&order().var}, read;
  for (Var* var : writes) add_once(written, var);
  for (Var* var : reads)
    if (std::find(written.begin(), written.end(), var) == written.end()) add_once(read, var);
  Engine::Options options;
  options.name = name;
  options.device = {DeviceType::kWire, 0};
  options.priority = priority;
  options.where = current_location();
  const std::lock_guard lock(order().mutex);
  const uint64_t number = group->next_number();
  engine().push(
      [group, number, name, body = std::move(body)](TaskContext&) {
        const profile::Scope scope(name, "group");
        body(*group, number);
      },
      {read, written}, options);
}

void wait_for_calls() { engine().wait_for_var(order().var); }

}  // namespace hybridnet::group
