// What ran when, on which thread: recorded while somebody profiles; otherwise a scope costs one relaxed load.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace hybridnet::profile {

struct Event {
  const char* name;          // as long as the process lives: an operator's name, or intern_file()
  const char* category;      // "operator", "graph"
  const char* node;          // of a graph, interned; "" for what runs outside of graphs
  int64_t begin_ns, end_ns;  // of a steady clock that starts with start()
  int thread;                // numbered from 0 as threads are first seen
};

namespace detail {
inline std::atomic<bool> active{false};
void add(const char* name, const char* category, const char* node, int64_t begin_ns);
}  // namespace detail

inline bool active() { return detail::active.load(std::memory_order_relaxed); }
void start();  // goes on with what was recorded before
void stop();
int64_t now_ns();
std::vector<Event> take();  // all events since the last take(), in the order in which they ended

class Scope {
 public:
  Scope(const char* name, const char* category, const char* node = "")
      : name_(active() ? name : nullptr), category_(category), node_(node) {
    if (name_ != nullptr) begin_ns_ = now_ns();
  }
  ~Scope() {
    if (name_ != nullptr) detail::add(name_, category_, node_, begin_ns_);
  }
  Scope(const Scope&) = delete;

 private:
  const char* name_;
  const char* category_;
  const char* node_;
  int64_t begin_ns_ = 0;
};

}  // namespace hybridnet::profile
