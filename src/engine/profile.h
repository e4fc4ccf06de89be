// Records operators, graphs and compilations with their times and threads while the profiler runs; otherwise a scope
// costs one relaxed load.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace hybridnet::profile {

struct Event {
  const char* name;          // an operator's name or an interned text, which live as long as the process
  const char* category;      // "operator", "graph", "compile"
  const char* node;          // name of the graph's node, interned; "" outside of graphs
  const char* block;         // the block that made the node, interned
  int64_t begin_ns, end_ns;  // times of a steady clock that starts with start()
  int thread;                // the system's number of the thread
  std::string inputs;        // shapes and dtypes of an operator's inputs
};

namespace detail {
inline std::atomic<bool> active{false};
void add(const char* name, const char* category, const char* node, const char* block, int64_t begin_ns,
         std::string inputs = {});
}  // namespace detail

inline bool active() { return detail::active.load(std::memory_order_relaxed); }
void start();  // keeps the events that were recorded before
void stop();
int64_t now_ns();
std::vector<Event> take();  // all events since the last take(), in the order in which they ended

class Scope {
 public:
  Scope(const char* name, const char* category, const char* node = "", const char* block = "")
      : name_(active() ? name : nullptr), category_(category), node_(node), block_(block) {
    if (name_ != nullptr) begin_ns_ = now_ns();
  }
  ~Scope() {
    if (name_ != nullptr) [[unlikely]]
      add();
  }
  bool recorded() const { return name_ != nullptr; }
  void set_inputs(std::string inputs) { inputs_ = new std::string(std::move(inputs)); }
  Scope(const Scope&) = delete;

 private:
  void add();
  const char* name_;
  const char* category_;
  const char* node_;
  const char* block_;
  int64_t begin_ns_ = 0;
  std::string* inputs_ = nullptr;  // owned; add() frees it, so that a scope without events has nothing to destroy
};

}  // namespace hybridnet::profile
