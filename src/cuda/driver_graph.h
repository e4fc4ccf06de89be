// A graph of the driver, in the form that was made from launches and in the one that runs.
#pragma once

#include <vector>

#include "cuda/driver.h"
#include "cuda/errors.h"
#include "cuda/process_state.h"

namespace hybridnet::cuda {

// Owner: the backend. In a forked child and at the end of the process the driver must not be called.
struct DriverGraph {
  explicit DriverGraph(const Driver& of) : driver(of) {}
  ~DriverGraph() {
    if (process_is_forked() || process_is_ending()) return;
    if (exec != nullptr) note_handled(driver.exec_destroy(exec));
    if (graph != nullptr) note_handled(driver.graph_destroy(graph));
  }
  DriverGraph(const DriverGraph&) = delete;

  const Driver& driver;
  int device = 0;
  GraphHandle graph = nullptr;  // kept: it names the nodes
  GraphExecHandle exec = nullptr;
  std::vector<GraphNodeHandle> nodes;  // one for each launch; null for the end of a part
  struct Condition {
    ConditionHandle handle = 0;
    GraphHandle graph = nullptr;  // that holds its node; null: no kernel has named it yet
  };
  std::vector<Condition> conditions;  // by number
};

}  // namespace hybridnet::cuda
