/* The C interface of libhybridnet: load an exported model and run it, without Python.
 *
 * Every function returns 0 on success and -1 on failure; then hn_last_error() has the text for the calling thread,
 * naming what was expected, what came and how to fix it. No exception crosses this interface. Handles belong to the
 * caller until the matching *_free. Freeing NULL is allowed. Threads: every function may be called from any thread;
 * many threads may run one model at once.
 */
#ifndef HYBRIDNET_C_API_H_
#define HYBRIDNET_C_API_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HN_API __attribute__((visibility("default")))
#else
#define HN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct HnArray_* HnArray; /* a tensor */
typedef struct HnModel_* HnModel; /* a graph with its parameters */

/* Element types; the codes are those of the .params format. */
enum HnDType {
  HN_FLOAT32 = 0,
  HN_FLOAT64 = 1,
  HN_FLOAT16 = 2,
  HN_UINT8 = 3,
  HN_INT32 = 4,
  HN_INT8 = 5,
  HN_INT64 = 6,
  HN_BOOL = 7,
  HN_BFLOAT16 = 12
};

/* ---- errors and library ---- */

/* Text of the last failure on this thread; "" if there was none. Valid until the next failing call on this thread. */
HN_API const char* hn_last_error(void);
/* Its class: "ShapeError", "FormatError", ... */
HN_API const char* hn_last_error_kind(void);
HN_API const char* hn_version(void);
/* The instruction sets in use, such as "avx2 (Highway AVX2, oneDNN AVX2)": the machine's, at most HYBRIDNET_MAX_ISA. */
HN_API const char* hn_isa(void);
/* Waits until all work is done; reports the first failure that was not reported before. */
HN_API int hn_wait_all(void);
/* Cores that the library may use; by default all that the process has. */
HN_API int hn_set_num_threads(int cores);

/* ---- arrays ---- */

/* A new array of shape[0..ndim). data: row-major elements to copy in, or NULL for zeros. */
HN_API int hn_array_create(const int64_t* shape, int ndim, int dtype, const void* data, HnArray* out);
HN_API int hn_array_free(HnArray array);
HN_API int hn_array_ndim(HnArray array, int* out);
/* The array's sizes, ndim of them, valid while the array lives. */
HN_API int hn_array_shape(HnArray array, const int64_t** out);
HN_API int hn_array_dtype(HnArray array, int* out);
HN_API int hn_array_size(HnArray array, int64_t* out); /* number of elements */
/* Waits for the values and gives a pointer to them, row-major, valid while the array lives. */
HN_API int hn_array_data(HnArray array, const void** out);
/* Copies the values out; bytes must be the array's size in bytes. */
HN_API int hn_array_copy_to(HnArray array, void* target, size_t bytes);

/* Reads a .params file. *names is an array of *count strings, or NULL if the file is a plain list. Free with
 * hn_arrays_free. */
HN_API int hn_arrays_load(const char* path, size_t* count, HnArray** arrays, const char*** names);
HN_API int hn_arrays_free(size_t count, HnArray* arrays, const char** names);
/* Writes a .params file; names may be NULL. */
HN_API int hn_arrays_save(const char* path, size_t count, const HnArray* arrays, const char* const* names);

/* ---- models ---- */

/* Loads what HybridBlock.export() wrote: PREFIX-symbol.json and PREFIX-0000.params (params_path may be NULL if the
 * graph has no parameters). Nothing in the files is executed; a damaged file is an error. */
HN_API int hn_model_load(const char* symbol_path, const char* params_path, HnModel* out);
HN_API int hn_model_load_from_memory(const char* json, size_t json_size, const void* params, size_t params_size,
                                     HnModel* out);
HN_API int hn_model_free(HnModel model);

/* Inputs are the variables of the graph without a value in the parameter file, in the order of the graph. */
HN_API int hn_model_num_inputs(HnModel model, size_t* out);
HN_API int hn_model_input_name(HnModel model, size_t index, const char** out);
HN_API int hn_model_num_outputs(HnModel model, size_t* out);
HN_API int hn_model_output_name(HnModel model, size_t index, const char** out);

/* Shapes of the outputs for inputs of these shapes (one per input, in order; dtype float32 unless a parameter says
 * otherwise). ndims[i] and shapes[i] describe output i; valid until the next call on this thread. */
HN_API int hn_model_infer_shapes(HnModel model, size_t num_inputs, const int* input_ndims,
                                 const int64_t* const* input_shapes, size_t* num_outputs, const int** ndims,
                                 const int64_t* const** shapes);

/* Runs the model in inference mode. inputs: one array per input, in order. outputs: room for hn_model_num_outputs
 * handles; each is the caller's to free. Returns before the work is done; reading an output waits for it. */
HN_API int hn_model_run(HnModel model, size_t num_inputs, const HnArray* inputs, size_t num_outputs, HnArray* outputs);

/* What the latest run executed, for people: instructions in order with their implementation, memory and node (see
 * docs/debugging.md). Empty before the first run; valid until the next call on this thread. */
HN_API int hn_model_plan_text(HnModel model, const char** out);

/* ---- operators of other libraries ----
 *
 * A shared object brings operators of its own: it exports
 *
 *   int hn_library_init(HnRegisterOperator register_operator);
 *
 * which calls register_operator once per operator and returns 0. Where one call of it failed, none of the operators
 * becomes known. It needs this header only, and links against nothing. docs/operator-libraries.md has a whole one.
 */

#define HN_MAX_NDIM 16

/* A dense, row-major tensor of a call. */
typedef struct HnTensor {
  void* data; /* NULL in infer */
  const int64_t* shape;
  int ndim;
  int dtype; /* enum HnDType */
} HnTensor;

typedef struct HnTensorSpec {
  int64_t shape[HN_MAX_NDIM];
  int ndim;
  int dtype; /* enum HnDType */
} HnTensorSpec;

enum HnParameterKind { HN_INTEGER = 0, HN_REAL = 1, HN_BOOLEAN = 2, HN_TEXT = 3 };

typedef struct HnParameter {
  const char* name;
  const char* doc;          /* may be NULL */
  int kind;                 /* enum HnParameterKind */
  const char* default_text; /* as in files: "2", "0.5", "True"; NULL: it must be given */
} HnParameter;

typedef struct HnParameterValue {
  int64_t integer;  /* HN_INTEGER, HN_BOOLEAN */
  double real;      /* HN_REAL */
  const char* text; /* HN_TEXT */
} HnParameterValue;

/* One call. Everything in it is valid until the function returns. */
typedef struct HnOperatorCall {
  const HnParameterValue* parameters; /* in the order of their declaration */
  size_t num_inputs;
  const HnTensor* inputs; /* not to be written */
  size_t num_outputs;
  const HnTensor* outputs; /* to be written, every element; they overlap with no input */
  int train;
} HnOperatorCall;

/* What an operator is. Its functions return NULL, or what is wrong, in words that stay until the thread calls one of
 * them again. They are called from many threads at once, with equal results for equal inputs, and throw nothing. Where
 * neither inputs nor outputs have elements, only infer is called. */
typedef struct HnOperator {
  size_t struct_size; /* sizeof(HnOperator) */
  const char* name;   /* a C identifier; how front ends and files call it */
  const char* doc;
  size_t num_inputs;               /* 1 to 32 */
  const char* const* input_names;  /* NULL: data, or data0, data1, ... */
  size_t num_outputs;              /* 1 to 32 */
  const char* const* output_names; /* NULL: output, or output0, output1, ... */
  size_t num_parameters;
  const HnParameter* parameters;
  /* Shapes and dtypes of the outputs from those of the inputs; outputs come as copies of input 0. NULL: they are. */
  const char* (*infer)(const HnParameterValue* parameters, size_t num_inputs, const HnTensor* inputs,
                       size_t num_outputs, HnTensorSpec* outputs);
  const char* (*forward)(const HnOperatorCall* call);
  /* inputs: gradients of the outputs, the inputs, the outputs; outputs: gradients of the inputs. NULL: it has none. */
  const char* (*backward)(const HnOperatorCall* call);
} HnOperator;

typedef int (*HnRegisterOperator)(const HnOperator* op);

/* Adds an operator; what op points to is copied. A name that is taken is an error. */
HN_API int hn_operator_register(const HnOperator* op);
/* Loads a shared object and calls its hn_library_init. Its operators become known together, or none of them. The
 * library stays loaded as long as the process lives. */
HN_API int hn_library_load(const char* path);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HYBRIDNET_C_API_H_ */
