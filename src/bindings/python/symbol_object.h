// SymbolBase: the C part of hybridnet.Symbol, and how operators compose graphs.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>
#include <vector>

#include "hybridnet/graph.h"
#include "hybridnet/ndarray.h"
#include "op_info.h"
#include "python_errors.h"

namespace hybridnet::python {

struct SymbolObject {
  PyObject_HEAD Symbol symbol;
  PyObject* weakrefs;
};

// Per thread: is a block being traced, and which one. While tracing, operators without array inputs make nodes, so that
// random numbers are drawn by each run of the graph and not once.
struct TraceState {
  // An array that the graph holds as a constant: what had been written into it when it was read, and where that was.
  struct Held {
    NDArray array;
    uint64_t overwrites = 0;
    SourceLocation where;
  };
  bool active = false;
  std::string block;
  int constants = 0;          // arrays met so far; numbers their names
  unsigned reads = 0;         // TraceRead bits
  SourceLocation shape_read;  // where a shape was asked for first
  std::vector<Held> held;
  bool training = false;   // the mode in which the trace began
  bool recording = false;  // whether the caller of the traced block records; inside of it nothing is recorded
  // What pause(), predict_mode() and train_mode() ask for that were entered inside the block.
  struct Scopes {
    bool paused = false;
    int training = -1;  // 0, 1; -1: whatever the graph runs in
  };
  Scopes scopes;
};

// What Python asked of traced arrays. A graph traced after such a question holds for equal answers only.
enum TraceRead : unsigned { kReadShape = 1, kReadRank = 2, kReadDType = 4, kReadTraining = 8, kReadRecording = 16 };
TraceState& trace_state();
// Throws TraceError if an array was written to after the graph being traced has read it: the graph holds the array
// itself, so the reader would see what was written later.
void check_held_constants();

extern PyTypeObject* symbol_base_type;
extern PyTypeObject* symbol_class;        // what compositions return: hybridnet.Symbol
extern PyTypeObject* numpy_symbol_class;  // its mx.np twin; null until that is imported

int init_symbol_type(PyObject* module);
void register_symbol_class(PyObject* cls, bool numpy);

inline bool is_symbol(PyObject* object) { return PyObject_TypeCheck(object, symbol_base_type); }
inline Symbol& symbol_of(PyObject* object) { return reinterpret_cast<SymbolObject*>(object)->symbol; }
Symbol& expect_symbol(PyObject* object, const char* what);
PyTypeObject* result_symbol_class(PyObject* object);
PyObject* wrap_symbol(Symbol symbol, PyTypeObject* type);

// What a Symbol stands for now: in a trace, what was written to a traced array counts (traced_memory.h). symbol_of()
// tells which array it is.
Symbol current_symbol(PyObject* object);

// The entry that `object` (a Symbol of one output, or an NDArray, which becomes a constant) stands for.
NodeEntry entry_of(PyObject* object, const char* what);

// Everything that one composition needs beside the operator.
struct Composition {
  const OpInfo* info = nullptr;
  ParamsPtr params;
  std::vector<NodeEntry> inputs;  // by declared slot; null entries become variables NAME_weight
  PyObject* name = nullptr;       // borrowed; null or None: the name manager makes one
  PyObject* attr = nullptr;       // borrowed dict or null
  std::vector<std::pair<std::string, std::string>> hidden_attrs;  // lr_mult=2, weight_lr_mult=2, __key__="text"
  const char* hint = nullptr;                                     // stem of made-up names: "convolution"
  PyTypeObject* result = nullptr;
};
PyObject* compose(Composition composition);

// In a trace: runs the inference of a new node and hands on what it tells about older ones.
void infer_made_node(const Node& node);

// Keywords that become attributes of the node or of one of its variables instead of parameters.
bool is_hidden_attribute(std::string_view keyword);

// Registered by hybridnet.symbol: objects whose `value` is the thread's name manager, get(name, hint) -> str, and its
// attribute scope, get(attr) -> dict.
void set_symbol_scopes(PyObject* names, PyObject* attributes);
std::string make_name(PyObject* name, const char* hint);
AttrDict make_attributes(PyObject* attr);

// A variable whose spec is known (or partly known) while a block is traced.
NodePtr make_traced_variable(std::string name, TensorSpec spec);
// Spec of a traced entry, or null outside traces.
const TensorSpec* traced_spec(const NodeEntry& entry);

}  // namespace hybridnet::python
