// Arrays of a trace that programs write to: what each of them stands for now, and which of them share memory.
//
// The entry that a Symbol of a trace is made with is the name of its memory; Symbols of one entry are one array. A
// write adds a functional update to the graph and lets the memory stand for its result, which all Symbols of it read
// from then on. Views remember the memory that they show and the nodes that take them out of it: a write through a view
// becomes a write to the memory that it shows, and a view whose memory was written is taken out again when it is read.
#pragma once

#include "symbol_object.h"

namespace hybridnet::python {

// A trace of this thread begins, or ends. Outside of traces there is no traced memory.
void begin_traced_memory();
void end_traced_memory();

// The entry that memory of this name stands for now.
NodeEntry current_entry(const NodeEntry& memory);

// view, which was just composed of base, shows the memory of base.
void note_view(PyObject* view, PyObject* base);

// Memory of target gets the values of value, of its shape and dtype (floating ones are converted if `converts`). Throws
// NotImplementedForSymbol for Symbols outside of traces, and TraceError where the write cannot be a part of the graph.
void write_traced(PyObject* target, PyObject* value, bool converts, bool constant_parts = false);

// out= of a call: writes what the call returned, as write_traced() does, and returns out.
PyObject* write_outputs(PyObject* out, Owned results, bool converts);
bool is_symbol_or_symbols(PyObject* out);

// An array that was there before the trace is written to while it runs: throws TraceError, as the graph would not do
// it.
void check_write_in_trace(const NDArray& target);

int init_traced_memory(PyObject* module);

}  // namespace hybridnet::python
