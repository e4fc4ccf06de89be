// Helper threads: one pool for the process, from which teams take idle helpers.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>

namespace hybridnet::teams {

struct Team;

struct alignas(128) Helper {
  std::atomic<Team*> work{nullptr};  // the team that it is to join, as member `number`
  std::atomic<uint32_t> asleep{0};
  int number = 0;
  std::atomic<uint32_t> next_idle{0};  // link in the pool's idle stack: index + 1
  uint32_t index = 0;
  bool kept = false;       // belongs to one thread, does not go back to the pool
  Helper* next = nullptr;  // the next helper that the same thread keeps
  pthread_t thread{};
  cpu_set_t cores{};  // the cores that it could run on before it was kept
};

// An idle helper, or a new one; nullptr if the system has no more threads.
Helper* take_helper();
void give_back(Helper* helper);

// Runs the team's body as member `number` as soon as the helper is awake.
void assign(Helper* helper, Team* team, int number);
// Takes back an assignment. Returns false if the helper has begun, or works for another team already.
bool retract(Helper* helper, Team* team);

}  // namespace hybridnet::teams
