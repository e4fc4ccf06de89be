// SymbolBase: the C part of hybridnet.Symbol, and the composition of graphs from operators.
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

// Per thread: whether a block is being traced, and its name. While tracing, operators without array inputs make nodes,
// so that random numbers are drawn by each run of the graph and not once.
struct TraceState {
  // An array that the graph holds as a constant, its number of overwrites when it was read, and the line of that read.
  struct Held {
    NDArray array;
    uint64_t overwrites = 0;
    SourceLocation where;
  };
  bool active = false;
  std::string block;
  int constants = 0;          // number of constants so far, used in their names
  unsigned reads = 0;         // TraceRead bits
  SourceLocation shape_read;  // the line of the first read of a shape
  std::vector<Held> held;
  bool training = false;   // the mode in which the trace began
  bool recording = false;  // whether the caller of the traced block records; inside the block nothing is recorded
  // The modes set by pause(), predict_mode() and train_mode() entered inside the block.
  struct Scopes {
    bool paused = false;
    int training = -1;  // 0, 1; -1: the mode in which the graph runs
  };
  Scopes scopes;
};

// Facts about traced arrays and modes that Python read. The traced graph is valid only for calls with equal facts.
enum TraceRead : unsigned { kReadShape = 1, kReadRank = 2, kReadDType = 4, kReadTraining = 8, kReadRecording = 16 };
TraceState& trace_state();
// Throws TraceError if an array was written to after the graph being traced has read it: the graph holds the array
// itself, so the reader would see the later values.
void check_held_constants();

extern PyTypeObject* symbol_base_type;
extern PyTypeObject* symbol_class;        // class of composition results: hybridnet.Symbol
extern PyTypeObject* numpy_symbol_class;  // its mx.np counterpart; null until mx.np is imported

int init_symbol_type(PyObject* module);
void register_symbol_class(PyObject* cls, bool numpy);

inline bool is_symbol(PyObject* object) { return PyObject_TypeCheck(object, symbol_base_type); }
inline Symbol& symbol_of(PyObject* object) { return reinterpret_cast<SymbolObject*>(object)->symbol; }
Symbol& expect_symbol(PyObject* object, const char* what);
PyTypeObject* result_symbol_class(PyObject* object);
PyObject* wrap_symbol(Symbol symbol, PyTypeObject* type);

// Returns the current value of a Symbol: in a trace, with the writes to its traced array (traced_memory.h). symbol_of()
// returns the entry that names the array.
Symbol current_symbol(PyObject* object);

// Returns the current entry of `object`: a Symbol with one output, or an NDArray, which becomes a constant.
NodeEntry entry_of(PyObject* object, const char* what);

// The arguments of one composition.
struct Composition {
  const OpInfo* info = nullptr;
  ParamsPtr params;
  std::vector<NodeEntry> inputs;  // by declared slot; null entries become variables NAME_weight
  PyObject* name = nullptr;       // borrowed; null or None: the name manager makes one
  PyObject* attr = nullptr;       // borrowed dict or null
  std::vector<std::pair<std::string, std::string>> hidden_attrs;  // lr_mult=2, weight_lr_mult=2, __key__="text"
  const char* hint = nullptr;                                     // stem of generated names: "convolution"
  PyTypeObject* result = nullptr;
};
PyObject* compose(Composition composition);

// In a trace: runs the inference of a new node, and passes new facts about older nodes on to them.
void infer_made_node(const Node& node);

// Keywords that become attributes of the node or of one of its variables instead of parameters.
bool is_hidden_attribute(std::string_view keyword);

// Registered by hybridnet.symbol: objects whose `value` is the thread's name manager, get(name, hint) -> str, and its
// attribute scope, get(attr) -> dict.
void set_symbol_scopes(PyObject* names, PyObject* attributes);
std::string make_name(PyObject* name, const char* hint);
AttrDict make_attributes(PyObject* attr);

// Makes a variable whose spec is known (or partly known) while a block is traced.
NodePtr make_traced_variable(std::string name, TensorSpec spec);
// Returns the spec of a traced entry; null outside traces.
const TensorSpec* traced_spec(const NodeEntry& entry);

}  // namespace hybridnet::python
