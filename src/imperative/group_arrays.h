// Calls of the group of this process on arrays: tasks of the worker of Device kWire, in the order in which
// the program makes the calls. All processes must make the same calls in the same order.
// Threads: any thread; the order of calls from several threads is that of their locks, so use one.
// Throws:  DTypeError, ShapeError, UnsupportedError (sparse arrays), GradientError. What goes wrong between processes
// is
//          a GroupError, kept on the arrays until they are waited for.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "group/lane.h"
#include "hybridnet/ndarray.h"

namespace hybridnet {

// Pushes a task that makes one call of the group. It keeps the arrays; body gets the number of the call.
void push_group_call(const char* name, std::span<const NDArray> reads, std::span<const NDArray> writes, int priority,
                     group::CallBody body);
// out[i] = the sum of nodes[0][i] over all processes, in one message for all arrays, which have one dtype. out[i] may
// be nodes[0][i]. of_shards: the sum over all shards instead, of which this process gives these nodes (Group::sum).
// `label` names the arrays in errors.
void sum_over_group(const std::vector<std::vector<NDArray>>& nodes, std::span<const NDArray> out,
                    const std::string& label, int priority, bool of_shards = false);
// out = the part of this process of those sums: the elements [bounds[rank], bounds[rank + 1]) of all arrays, one after
// the other.
void scatter_sum_over_group(const std::vector<std::vector<NDArray>>& nodes, const std::vector<int64_t>& bounds,
                            std::span<const NDArray> out, const std::string& label, bool of_shards);
// Each process has its part of the elements of the arrays, [bounds[rank], bounds[rank + 1]); afterwards each has all.
void gather_parts_over_group(std::span<const NDArray> arrays, const std::vector<int64_t>& bounds,
                             const std::string& label);
// The sum as a new array; its gradient is the sum of the gradients of all processes.
NDArray summed_over_group(const NDArray& array, const std::string& label);
// The arrays of all processes, joined along a new leading axis.
NDArray gathered_over_group(const NDArray& array, const std::string& label);
// Overwrites the arrays by those of the process `root`.
void broadcast_over_group(std::span<const NDArray> arrays, int root, const std::string& label);
void wait_for_group();  // returns when all processes have called it

}  // namespace hybridnet
