// Writes to arrays in a trace: the current value of each array, and which arrays share memory.
//
// The entry with which a Symbol of a trace is made is the name of its memory; Symbols of one entry are one array. A
// write adds a functional update to the graph, and its result becomes the value of the memory, which all its Symbols
// read from then on. A view records its base memory and the nodes that compute the view from it: a write through a view
// becomes a write to the base, and a view whose base was written is computed again when it is read.
#pragma once

#include "symbol_object.h"

namespace hybridnet::python {

// Called when a trace of this thread begins or ends. Outside traces there is no traced memory.
void begin_traced_memory();
void end_traced_memory();

// Returns the current value of the memory with this name.
NodeEntry current_entry(const NodeEntry& memory);

// Records that `view`, which was just composed from `base`, shares the memory of `base`.
void note_view(PyObject* view, PyObject* base);

// Writes `value` to the memory of `target`; shapes and dtypes must agree (floating dtypes are cast if `converts`).
// Throws NotImplementedForSymbol for Symbols outside traces, and TraceError if the write cannot be part of the graph.
void write_traced(PyObject* target, PyObject* value, bool converts, bool constant_parts = false);

// Implements out= of a call: writes the results with write_traced() and returns `out`.
PyObject* write_outputs(PyObject* out, Owned results, bool converts);
bool is_symbol_or_symbols(PyObject* out);

// Throws TraceError if `target` is older than the running trace: the graph would not contain the write.
void check_write_in_trace(const NDArray& target);

int init_traced_memory(PyObject* module);

}  // namespace hybridnet::python
