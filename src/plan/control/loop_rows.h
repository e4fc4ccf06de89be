// Rows of loops that run step by step: stacked outputs. Every step is an operator that the tape sees.
#pragma once

#include <vector>

#include "hybridnet/imperative.h"
#include "plan/compiled_call.h"

namespace hybridnet {

// A loop or branch with other parameters, alone in a graph of so many inputs.
GraphDefinition definition_of_copy(const Node& node, ParamsPtr params, int num_inputs);

// What an iteration gave beside what the one before did: states keep their spec but for sizes that are free, outputs of
// all iterations have one. Throw ShapeError; whoever catches it adds which iteration it was.
void check_state(const Node& node, size_t number, const TensorSpec& before, const TensorSpec& after,
                 const std::vector<bool>& free);
void check_row(const Node& node, size_t number, const TensorSpec& first, const TensorSpec& row);

// The rows before `count`.
NDArray first_rows(const NDArray& array, int64_t count);
// An output of a loop that did not run: zeros. Throws ShapeError where nothing tells its shape.
NDArray rows_without_iterations(TensorSpec spec, int64_t rows, const Node& node);
// Output of `rows` rows: those given (rows of an iteration each, or pieces of several), zeros behind them. spec: of the
// output as inference sees it, for loops that did not run. Throws ShapeError where nothing tells the shape of an output
// without rows.
NDArray stacked_rows(const std::vector<NDArray>& given, const TensorSpec& spec, int64_t rows, const Node& node);
NDArray joined_rows(const std::vector<NDArray>& pieces, const TensorSpec& spec, int64_t rows, const Node& node);

}  // namespace hybridnet
