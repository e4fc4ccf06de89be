/* The C interface of libhybridnet: arrays, operators, gradients and exported models, without Python.
 *
 * Every function returns 0 on success and -1 on failure. After a failure, hn_last_error() returns the text for the
 * calling thread, which names the expected value, the given value and the fix. No exception crosses this interface, and
 * a call that fails returns no handle or pointer.
 *
 * Handles (HnArray, HnModel, ...) belong to the caller until the matching *_free. They are no addresses: NULL, a handle
 * that was freed, one of another kind and any other value are errors. Freeing NULL is allowed. An object whose handle
 * is freed while another thread uses it lives until that call ends. A pointer that a function returns is valid as long
 * as the comment on the function says.
 *
 * Threads: every function may be called from any thread; many threads may run one model at once. Recording and training
 * (hn_autograd_*) are set for each thread.
 *
 * Arguments of the form (size_t num_x, const T* x) are arrays of num_x values; x may be NULL if num_x is 0.
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

/* The version of this interface. It rises by one in the first release that has new functions: those are declared by
 * HN_API_2, HN_API_3, ... and have the symbol version hybridnet_2, hybridnet_3, ... A released function keeps its
 * meaning and is never removed. So a program runs with every library that has the version of its newest function, which
 * the loader checks, and a program that calls hn_abi_version() first can do without it. */
#define HN_ABI_VERSION 3
#define HN_API_2 HN_API
#define HN_API_3 HN_API

typedef struct HnArray_* HnArray;     /* a tensor */
typedef struct HnOp_* HnOp;           /* an operator with its attributes */
typedef struct HnModel_* HnModel;     /* a graph with its parameters */
typedef struct HnSession_* HnSession; /* a model with arrays bound to its inputs and outputs */
typedef struct HnTrainer_* HnTrainer; /* an optimizer over parameters */
typedef struct HnBatcher_* HnBatcher; /* a model whose calls many threads share */

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

/* Bytes of an element. */
HN_API_2 int hn_dtype_size(int dtype, size_t* out);
/* The name of an element type in attributes of operators, such as "float32". NULL: no type has this code. */
HN_API_3 const char* hn_dtype_name(int dtype);

#define HN_MAX_NDIM 16

/* Shape and dtype. In results, an ndim, size or dtype of -1 is unknown. */
typedef struct HnTensorSpec {
  int64_t shape[HN_MAX_NDIM];
  int ndim;
  int dtype; /* enum HnDType */
} HnTensorSpec;

/* ---- errors ---- */

/* Text of the last failure on this thread; "" if there was none. Valid until the next failing call on this thread. */
HN_API const char* hn_last_error(void);
/* The class of the last failure: "ShapeError", "FormatError", ... as in Python. */
HN_API const char* hn_last_error_kind(void);

/* ---- the process ---- */

HN_API int hn_abi_version(void); /* HN_ABI_VERSION of the library */
HN_API const char* hn_version(void);
/* The instruction sets in use, such as "avx2 (Highway AVX2, oneDNN AVX2)": the machine's, at most HYBRIDNET_MAX_ISA. */
HN_API const char* hn_isa(void);
/* "ThreadedEnginePerDevice" or "NaiveEngine" (HYBRIDNET_ENGINE_TYPE). */
HN_API int hn_engine_type(const char** out);
/* Waits until all work is done; reports the first failure that was not reported before. */
HN_API int hn_wait_all(void);
/* Does what must be done before the process ends: waits until all work is done, leaves the group of processes and stops
 * the threads of the library. The end of the main thread calls it. Call it before another thread calls exit(), because
 * exit() destroys objects that queued work uses. Later calls of other functions work, on the thread that waits. */
HN_API_3 int hn_shutdown(void);
/* Cores that the library may use; by default all that the process has. */
HN_API int hn_num_threads(int* out);
HN_API int hn_set_num_threads(int cores);
/* Binds the calling thread to cores[0] and the threads that help it to the others, until it ends: work on this thread,
 * such as hn_session_run, uses num_cores threads, at most hn_num_threads. 0: the thread may run anywhere again. */
HN_API_2 int hn_pin_thread(size_t num_cores, const int* cores);
/* Seeds the random numbers: the same seed gives the same numbers, for any number of threads. */
HN_API int hn_seed(uint64_t seed);

/* Turns NumPy's shapes on or off for this thread, like mx.util.set_np_shape in Python. On: a scalar has shape (), and a
 * size may be 0. Off, the default in each thread: shapes are MXNet's, results of one number have shape (1,), and a size
 * of 0 in attributes and files is unknown. Set it before a model is loaded and leave it so while the model is used.
 * *before (may be NULL): the previous setting. */
HN_API int hn_set_np_shape(int on, int* before);
HN_API int hn_is_np_shape(int* out);

/* Records operators, graphs and compilations with their times, until hn_profiler_stop. */
HN_API int hn_profiler_start(void);
HN_API int hn_profiler_stop(void);
/* Writes the events since the last call, in Chrome's trace format (chrome://tracing, Perfetto). */
HN_API int hn_profiler_save(const char* path);

/* ---- devices ----
 *
 * Arrays lie on a device, operators run on the device of their inputs, and nothing moves by itself: arrays of different
 * devices in one call are an error (docs/gpu.md). A device is a type and a number; the number of the CPU is 0.
 */

enum HnDeviceType { HN_CPU = 1, HN_GPU = 2 };

/* The number of GPUs that this process can use. The first call loads the driver, if there is one. */
HN_API_3 int hn_num_gpus(int* out);
/* The reason why hn_num_gpus() is 0; "" if it is not. Valid for the life of the process. */
HN_API_3 int hn_why_no_gpu(const char** out);
/* The free and all bytes of a GPU. */
HN_API_3 int hn_gpu_memory(int id, int64_t* free_bytes, int64_t* total_bytes);
/* Sets whether a library's float32 products on GPUs may round their factors to TF32 (11 significant bits): docs/gpu.md.
 * A setting of the process, off at first. Calls before this one keep theirs: it waits for them, and reports the failure
 * of one. *before (may be NULL): the previous setting. */
HN_API_3 int hn_allow_tf32(int allow, int* before);

/* Called with each warning, from any thread, one at a time; it must not call the library. */
typedef void (*HnLogCallback)(const char* text, void* context);
/* NULL: warnings go to stderr. */
HN_API int hn_set_log_callback(HnLogCallback callback, void* context);

/* ---- arrays ---- */

/* A new array of shape[0..ndim). data: row-major elements to copy in, or NULL for zeros. */
HN_API int hn_array_create(const int64_t* shape, int ndim, int dtype, const void* data, HnArray* out);
/* The same on a device: type is HN_CPU or HN_GPU. data lies in memory of the CPU and may be reused after the call. */
HN_API_3 int hn_array_create_on(int type, int id, const int64_t* shape, int ndim, int dtype, const void* data,
                                HnArray* out);
/* An array over memory of the caller, without a copy. release(context), if not NULL, is called once when the last array
 * over the memory has died, from any thread. data: aligned for the elements. */
HN_API int hn_array_wrap(void* data, const int64_t* shape, int ndim, int dtype, void (*release)(void* context),
                         void* context, HnArray* out);
HN_API int hn_array_free(HnArray array);
/* Another handle of the same array, to be freed separately. */
HN_API int hn_array_share(HnArray array, HnArray* out);
/* A new array with the same values on the same device. */
HN_API int hn_array_copy(HnArray array, HnArray* out);
/* A new array with the same values on a device, also on that of the array. While a gradient is recorded it goes back
 * the same way. Arrays in sparse storage exist on the CPU only. */
HN_API_3 int hn_array_copy_to_device(HnArray array, int type, int id, HnArray* out);

HN_API int hn_array_ndim(HnArray array, int* out);
/* The array's sizes, ndim of them, valid while the array lives. */
HN_API int hn_array_shape(HnArray array, const int64_t** out);
HN_API int hn_array_dtype(HnArray array, int* out);
HN_API int hn_array_size(HnArray array, int64_t* out); /* number of elements */
/* The device of the memory: type is HN_CPU or HN_GPU. */
HN_API int hn_array_device(HnArray array, int* type, int* id);
/* The storage type: "default" (dense), "row_sparse" or "csr", see sparse arrays. */
HN_API int hn_array_storage(HnArray array, const char** out);

/* Waits for the values; reports a failure of their computation. */
HN_API int hn_array_wait(HnArray array);
/* Waits for the values and gives a pointer to them, row-major, valid while the array lives. The caller may write there
 * while nothing runs on the array. From then on no packed copies of the array are kept, so layers that use it as weight
 * become slower: hn_array_copy_to reads without that cost. The array must lie on the CPU. */
HN_API int hn_array_data(HnArray array, const void** out);
/* Copies the values out to memory of the CPU, or in, whatever the array's device is; bytes must be the array's size in
 * bytes. Sparse arrays copy as dense values. */
HN_API int hn_array_copy_to(HnArray array, void* target, size_t bytes);
HN_API int hn_array_copy_from(HnArray array, const void* source, size_t bytes);

/* Views: they share the memory, and writes through one are seen by all. While a gradient is recorded it passes through
 * them.
 * hn_array_slice: rows [begin, end) of the leading axis. */
HN_API int hn_array_reshape(HnArray array, const int64_t* shape, int ndim, HnArray* out);
HN_API int hn_array_slice(HnArray array, int64_t begin, int64_t end, HnArray* out);
/* The same memory, which gradients do not pass through. */
HN_API int hn_array_detach(HnArray array, HnArray* out);

/* DLPack, for memory of the CPU: *out is a DLManagedTensor* (dlpack.h, version 0) that shares the memory; its consumer
 * must call its deleter. For hn_array_from_dlpack the tensor must be row-major; its deleter is called when the last
 * array over it has died, and not if the call fails. */
HN_API int hn_array_to_dlpack(HnArray array, void** out);
HN_API int hn_array_from_dlpack(void* managed, HnArray* out);

/* Reads a .params file. Sparse arrays stay sparse (see below). *names is an array of *count strings, or NULL if the
 * file is a plain list. Free with hn_arrays_free, which skips elements of arrays that were set to NULL. */
HN_API int hn_arrays_load(const char* path, size_t* count, HnArray** arrays, const char*** names);
HN_API int hn_arrays_load_from_memory(const void* bytes, size_t size, size_t* count, HnArray** arrays,
                                      const char*** names);
HN_API int hn_arrays_free(size_t count, HnArray* arrays, const char** names);
/* Writes a .params file; names may be NULL. */
HN_API int hn_arrays_save(const char* path, size_t count, const HnArray* arrays, const char* const* names);

/* ---- sparse arrays ----
 *
 * Most values of a sparse array are zeros, which it does not store (docs/sparse.md). Its parts are arrays:
 *
 *   "row_sparse"  data (n, ...): stored rows; indices (n): their row numbers, ascending
 *   "csr"         a matrix. data (n): stored values; indices (n): their columns; indptr (rows + 1): row r has
 *                 data[indptr[r]] up to, and without, data[indptr[r + 1]]
 *
 * indices and indptr are HN_INT64. Files, operators, models and trainers take sparse arrays; operators without a form
 * for them read dense copies, with a warning. hn_array_data, hn_array_to_dlpack, views and sessions need dense arrays.
 */

/* A sparse array from parts; indptr: NULL for "row_sparse". It shares the memory of data and has copies of the others.
 * Indices out of bounds are an error; row numbers may come in any order, and rows that repeat are summed. */
HN_API_2 int hn_array_create_sparse(const char* storage, const int64_t* shape, int ndim, HnArray data, HnArray indices,
                                    HnArray indptr, HnArray* out);
/* The part "data", "indices" or "indptr" of a sparse array. data shares the memory until something new is written into
 * the sparse array, which then has other parts; the others are copies. */
HN_API_2 int hn_array_part(HnArray array, const char* part, HnArray* out);
/* The values in another storage as a new array; "default": dense. Gradients pass through. */
HN_API_2 int hn_array_cast_storage(HnArray array, const char* storage, HnArray* out);
/* hn_array_attach_grad with a gradient in that storage. A "row_sparse" gradient stores the rows that backward reaches,
 * for example of the table of Embedding with sparse_grad=True; hn_trainer_step updates only these rows if the
 * optimizer's setting lazy_update is True. */
HN_API_2 int hn_array_attach_grad_in(HnArray array, const char* grad_req, const char* storage);

/* ---- operators ----
 *
 * Operators have the names and attributes of mx.nd. Attributes are texts as in -symbol.json: "2", "0.5", "True",
 * "(2, 2)", "relu". The number of inputs of operators that take any number need not be given. Calls return before the
 * work is done; reading a result waits for it. Results lie on the device of the inputs, those of an operator without
 * inputs on that of its attribute ctx: {"ctx", "gpu(0)"}.
 */

HN_API int hn_op_count(size_t* out);
HN_API int hn_op_name(size_t index, const char** out); /* valid for the life of the process */

/* Runs an operator. *num_outputs: on entry the capacity of outputs, on return the number of results; the caller must
 * free each. If the capacity is too small, the call fails, nothing is run, and *num_outputs is the number of results.
 */
HN_API int hn_invoke(const char* name, size_t num_attributes, const char* const* keys, const char* const* values,
                     size_t num_inputs, const HnArray* inputs, size_t* num_outputs, HnArray* outputs);
/* The same into existing arrays with the shapes and dtypes of the results. They may be among the inputs. */
HN_API int hn_invoke_into(const char* name, size_t num_attributes, const char* const* keys, const char* const* values,
                          size_t num_inputs, const HnArray* inputs, size_t num_outputs, const HnArray* outputs);

/* Finds the operator and reads its attributes once, for many calls, from any number of threads. */
HN_API int hn_op_prepare(const char* name, size_t num_attributes, const char* const* keys, const char* const* values,
                         HnOp* out);
HN_API int hn_op_free(HnOp op);
/* The number of results of a call with num_inputs inputs. */
HN_API int hn_op_num_outputs(HnOp op, size_t num_inputs, size_t* out);
HN_API int hn_op_call(HnOp op, size_t num_inputs, const HnArray* inputs, size_t* num_outputs, HnArray* outputs);
HN_API int hn_op_call_into(HnOp op, size_t num_inputs, const HnArray* inputs, size_t num_outputs,
                           const HnArray* outputs);

/* ---- gradients ---- */

/* Turn recording for gradients and training mode of operators on or off for this thread. *before (may be NULL): the
 * previous setting. */
HN_API int hn_autograd_set_recording(int on, int* before);
HN_API int hn_autograd_set_training(int on, int* before);
HN_API int hn_autograd_is_recording(int* out);
HN_API int hn_autograd_is_training(int* out);

/* Makes the array a leaf whose gradient hn_autograd_backward computes. grad_req: "write" replaces the gradient, "add"
 * adds to it, "null" computes none. The gradient is zeros at first, which take no memory before they are used. */
HN_API int hn_array_attach_grad(HnArray array, const char* grad_req);
/* The array that holds the gradient of `array`. */
HN_API int hn_array_grad(HnArray array, HnArray* out);
/* Computes the gradients of the heads with respect to the leaves that they depend on. head_grads: the gradients of the
 * heads; NULL, or NULL for one of them, stands for ones. retain_graph: keep the graph for a second call. */
HN_API int hn_autograd_backward(size_t num_heads, const HnArray* heads, const HnArray* head_grads, int retain_graph,
                                int train_mode);
/* The gradients with respect to variables as new arrays, num_variables of them. create_graph: record the computation,
 * so that gradients of the gradients can be computed. */
HN_API int hn_autograd_grad(size_t num_heads, const HnArray* heads, const HnArray* head_grads, size_t num_variables,
                            const HnArray* variables, int retain_graph, int create_graph, int train_mode, HnArray* out);

/* ---- models ---- */

/* Loads the files of HybridBlock.export(): PREFIX-symbol.json and PREFIX-0000.params (params_path may be NULL if the
 * graph has no parameters). Nothing in the files is executed. A damaged file is an error, and so are parameters of
 * another network: a missing parameter, an array that the graph does not read, a shape that contradicts the graph. */
HN_API int hn_model_load(const char* symbol_path, const char* params_path, HnModel* out);
HN_API int hn_model_load_from_memory(const char* json, size_t json_size, const void* params, size_t params_size,
                                     HnModel* out);
HN_API int hn_model_free(HnModel model);
/* Writes the model like HybridBlock.export(), with the present values of its parameters. */
HN_API int hn_model_save(HnModel model, const char* symbol_path, const char* params_path);

/* Inputs are the variables of the graph without a value in the parameter file; parameters are the others. Both are in
 * the order of the graph. Names are valid while the model lives. */
HN_API int hn_model_num_inputs(HnModel model, size_t* out);
HN_API int hn_model_input_name(HnModel model, size_t index, const char** out);
/* The shape and dtype of the input in the file. */
HN_API int hn_model_input_spec(HnModel model, size_t index, HnTensorSpec* out);
HN_API int hn_model_num_outputs(HnModel model, size_t* out);
HN_API int hn_model_output_name(HnModel model, size_t index, const char** out);
HN_API int hn_model_num_parameters(HnModel model, size_t* out);
HN_API int hn_model_parameter_name(HnModel model, size_t index, const char** out);
/* 1: a state, such as a running mean: runs in training mode update it, and it has no gradient; 0: a weight. */
HN_API int hn_model_parameter_is_state(HnModel model, size_t index, int* out);
HN_API int hn_model_parameter_spec(HnModel model, size_t index, HnTensorSpec* out);
/* The array that the model reads: values written into it take effect with the next run. */
HN_API int hn_model_parameter(HnModel model, size_t index, HnArray* out);

/* Moves the model to a device: its parameters become copies there, with the gradients (grad_req) that they have, and
 * runs from now on take their inputs there. A loaded model is on the CPU. Arrays of hn_model_parameter, sessions,
 * batchers and trainers that were made before keep the parameters of before: make them anew. If the call fails, nothing
 * is moved. */
HN_API_3 int hn_model_to_device(HnModel model, int type, int id);
HN_API_3 int hn_model_device(HnModel model, int* type, int* id);

/* Shapes and dtypes of the outputs for these inputs, which must be fully known. */
HN_API int hn_model_infer(HnModel model, size_t num_inputs, const HnTensorSpec* inputs, size_t num_outputs,
                          HnTensorSpec* outputs);
/* Shapes of the outputs for inputs of these shapes (one per input, in order; dtype float32 unless a parameter says
 * otherwise). ndims[i] and shapes[i] describe output i; valid until the next call on this thread. */
HN_API int hn_model_infer_shapes(HnModel model, size_t num_inputs, const int* input_ndims,
                                 const int64_t* const* input_shapes, size_t* num_outputs, const int** ndims,
                                 const int64_t* const** shapes);

/* Runs the model. inputs: one array per input, in order, on the model's device. outputs: room for hn_model_num_outputs
 * handles; the caller must free each. Returns before the work is done; reading an output waits for it. If the thread
 * records, gradients reach inputs and parameters that have hn_array_attach_grad. In training mode, operators behave as
 * in training and states of the model (running means) are updated. */
HN_API int hn_model_run(HnModel model, size_t num_inputs, const HnArray* inputs, size_t num_outputs, HnArray* outputs);
/* The same into existing arrays. */
HN_API int hn_model_run_into(HnModel model, size_t num_inputs, const HnArray* inputs, size_t num_outputs,
                             const HnArray* outputs);

/* Sets which values the gradients of the model compute again instead of keeping them: "auto" (the default), "none", or
 * a number of bytes, as text, that limits the values that a run keeps. Takes effect with the next run, which makes new
 * plans. */
HN_API_2 int hn_model_set_remat(HnModel model, const char* remat);

/* The plan of the latest run in readable form: instructions in order with their implementation, memory and node (see
 * docs/debugging.md). Empty before the first run; valid until the next call on this thread. */
HN_API int hn_model_plan_text(HnModel model, const char** out);

/* ---- sessions ----
 *
 * A session binds arrays to a model once and predicts again and again: a run reads the inputs and writes the outputs in
 * place, allocates nothing, takes no lock, and is done when it returns; on a GPU it is done when an output is read. All
 * its arrays lie on the model's device. A model may have many sessions, one for each
 * thread or for each size of its inputs; they share its parameters, and each has its own memory for values between
 * operators.
 */

/* inputs: the arrays that runs read, with the shapes and dtypes of all runs. outputs: the arrays that runs write, or
 * NULL for new ones; num_outputs is hn_model_num_outputs, or 0 with NULL. Models whose sizes depend on values cannot be
 * bound. */
HN_API int hn_session_create(HnModel model, size_t num_inputs, const HnArray* inputs, size_t num_outputs,
                             const HnArray* outputs, HnSession* out);
HN_API int hn_session_free(HnSession session);
/* An output of the session. */
HN_API int hn_session_output(HnSession session, size_t index, HnArray* out);
/* Predicts. Waits for inputs that are being computed. Calls from several threads run one by one. */
HN_API int hn_session_run(HnSession session);

/* ---- batches ----
 *
 * For servers with many threads that each predict one or a few rows: requests that wait at the same time run as one
 * call of the model, and each receives its own rows. A batcher has no threads of its own, and holds no lock while the
 * model runs. Its requests are arrays on the CPU, and so are their outputs, whatever the model's device is: each call
 * copies the rows of all its requests there and back at once.
 */

typedef struct HnBatcherOptions {
  size_t struct_size;  /* sizeof(HnBatcherOptions) */
  int64_t max_rows;    /* rows of a shared call; 0: 64. A request of more rows has a call of its own. */
  int64_t max_wait_us; /* how long a request waits for others, in microseconds; 0: only while calls run */
  int64_t max_waiting; /* waiting requests; more fail at once, with EngineError. 0: 1024 */
  int64_t calls;       /* calls at one time; 0: 1. Together they use the cores of hn_num_threads. */
} HnBatcherOptions;

/* inputs: shapes and dtypes of the inputs of requests, with any first size; NULL (num_inputs 0): those of the file.
 * options: NULL for all defaults. The model is run on made-up rows: a model whose outputs do not have the rows of its
 * inputs, or whose rows depend on each other, is an error. */
HN_API int hn_batcher_create(HnModel model, size_t num_inputs, const HnTensorSpec* inputs,
                             const HnBatcherOptions* options, HnBatcher* out);
/* Frees the batcher. Waiting calls are still answered; no call may begin any more. */
HN_API int hn_batcher_free(HnBatcher batcher);
/* Predicts, and returns when the outputs, new arrays that the caller must free, hold their values. For any number of
 * threads. All inputs must have the same number of rows, 1 or more, and must not be written meanwhile. An error in a
 * request, also one that an operator finds in its values, fails only that request. Nothing is recorded for gradients.
 */
HN_API int hn_batcher_run(HnBatcher batcher, size_t num_inputs, const HnArray* inputs, size_t num_outputs,
                          HnArray* outputs);
/* Accepts no more requests (they fail with EngineError), and returns when all waiting requests are answered. */
HN_API int hn_batcher_close(HnBatcher batcher);

/* ---- training ----
 *
 * A trainer changes parameters by their gradients, with the optimizers, settings, defaults and bits of gluon.Trainer in
 * Python. Settings are texts as in Python: {"momentum", "0.9"}, {"clip_gradient", "None"}. Parameters are updated in
 * the order of their names. Calls of one trainer run one by one.
 */

/* Names of the optimizers: "SGD", "Adam", ...; functions take them in any case. Valid for the life of the process. */
HN_API int hn_optimizer_count(size_t* out);
HN_API int hn_optimizer_name(size_t index, const char** out);

/* A trainer over arrays with a name for each; those without hn_array_attach_grad get a gradient ("write"). */
HN_API int hn_trainer_create(size_t num_parameters, const char* const* names, const HnArray* parameters,
                             const char* optimizer, size_t num_settings, const char* const* keys,
                             const char* const* values, HnTrainer* out);
/* The same over all parameters of a model except its states, which runs in training mode update. */
HN_API int hn_trainer_create_for_model(HnModel model, const char* optimizer, size_t num_settings,
                                       const char* const* keys, const char* const* values, HnTrainer* out);
HN_API int hn_trainer_free(HnTrainer trainer);

/* Updates the parameters by the gradients of the last hn_autograd_backward divided by batch_size: the number of
 * examples if the loss is their sum, 1 if it is their mean. A parameter that backward has not reached since the last
 * step is an error, or stays unchanged if ignore_stale_grad is not 0. */
HN_API int hn_trainer_step(HnTrainer trainer, double batch_size, int ignore_stale_grad);
/* Takes the parameters of process 0 of the group (see below), and sums the gradients over all processes in each
 * hn_trainer_step from now on, like gluon.Trainer with kvstore="dist_sync" in Python, whose processes may be in the
 * same group. All processes must call it, with parameters of the same names, shapes and dtypes, and make equally many
 * steps, whose batch_size counts the examples of all processes. With ignore_stale_grad, a parameter that backward has
 * reached in any process is updated in all. */
HN_API_3 int hn_trainer_sum_over_group(HnTrainer trainer);
/* The number of updates so far: the largest count over all parameters. */
HN_API int hn_trainer_num_updates(HnTrainer trainer, int64_t* out);

/* The learning rate at the present number of updates. Setting it is an error if there is a schedule. */
HN_API int hn_trainer_learning_rate(HnTrainer trainer, double* out);
HN_API int hn_trainer_set_learning_rate(HnTrainer trainer, double rate);
/* "FactorScheduler", "MultiFactorScheduler", "PolyScheduler" or "CosineScheduler" with the arguments of
 * mx.lr_scheduler, such as {"step", "100"}, {"factor", "0.5"}, {"warmup_steps", "10"}; base_lr is the trainer's
 * learning rate if it is not among them. NULL removes the schedule. */
HN_API int hn_trainer_set_schedule(HnTrainer trainer, const char* schedule, size_t num_arguments,
                                   const char* const* keys, const char* const* values);
/* Returns a setting of the optimizer as text, valid until the next call on this thread; and sets a new value. */
HN_API int hn_trainer_setting(HnTrainer trainer, const char* name, const char** out);
HN_API int hn_trainer_set_setting(HnTrainer trainer, const char* name, const char* value);
/* Factors of the learning rate and of the weight decay of one parameter; both are 1 by default. */
HN_API int hn_trainer_set_multipliers(HnTrainer trainer, const char* parameter, double lr_mult, double wd_mult);

/* Save and load the optimizer's states, settings, counts and schedule, in the format of gluon.Trainer.save_states,
 * without multipliers. The file is written whole or not at all. Loading takes the optimizer of the file, assigns states
 * by the names of their parameters if it knows all of them, else by their numbers, and changes nothing if it fails. */
HN_API int hn_trainer_save_states(HnTrainer trainer, const char* path);
HN_API int hn_trainer_load_states(HnTrainer trainer, const char* path);

/* ---- groups of processes ----
 *
 * Processes that train together, in C, C++, Java and Python alike (docs/distributed.md). This starts four of them:
 *
 *   python -m hybridnet.launch -n 4 ./program
 *
 * All must make the same calls in the same order, each from one thread. Calls return before the work is done, like
 * operators. A process that dies, stops or makes another call becomes a GroupError in all others, at the call or when a
 * result is read, and the group is closed. Every wait has a deadline. A process that exits says so to the others; one
 * that ends by an error should give its reason by hn_group_leave first.
 *
 * name: names the arrays in errors of all processes, which must give the same. NULL: their shape, if all processes are
 * in C, C++ or Java; Python adds the line of the program.
 */

/* Place and options of a process. The processes meet at "folder:/PATH", a folder with mode 0700 that is new for each
 * job, or at "tcp://HOST:PORT", where the launcher or a first process in Python serves. */
typedef struct HnGroupSettings {
  size_t struct_size;     /* sizeof(HnGroupSettings) */
  int rank, size;         /* the number of this process, from 0, and the number of processes */
  int virtual_shards;     /* parts of a batch, at least size; 0: one for each process */
  const char* meeting;    /* address of the meeting; may be NULL if size is 1 */
  const char* token_file; /* file with the secret of the job, 32 bytes or more, mode 0600; NULL: none */
  const char* address;    /* address of this machine for the other processes; NULL: "127.0.0.1" */
  const char* engine;     /* library that moves the bytes; NULL: "gloo" */
  const char* name;       /* distinguishes groups that meet in one place, one after the other; NULL: "0" */
  double timeout;         /* seconds that a process waits for another one; 0: 60 */
} HnGroupSettings;

/* Joins a group; returns when all processes have come. NULL: the group that the launcher describes by the variables
 * HYBRIDNET_GROUP_*, or one of this process alone; nothing happens if a group was joined already. The functions below
 * join that group, too. Errors: GroupError if a process does not come or differs in version, size or token, or if this
 * process is in a group of several already; UnsupportedError if the library of the engine is missing. */
HN_API_3 int hn_group_join(const HnGroupSettings* settings);
HN_API_3 int hn_group_is_joined(int* out);
/* Leaves the group. Processes that still need this one get a GroupError with the reason (NULL: "it left the group").
 * Until the process joins another group, functions of the group are errors. */
HN_API_3 int hn_group_leave(const char* reason);

/* The number of this process, and of all. */
HN_API_3 int hn_group_rank(int* out);
HN_API_3 int hn_group_size(int* out);
/* The number of parts of a sum: virtual_shards, else the size; those of this process are *first up to, and without,
 * *end. */
HN_API_3 int hn_group_virtual_shards(int* out);
HN_API_3 int hn_group_own_shards(int* first, int* end);
/* The numbers of finished calls, and of bytes of values that this process has sent. */
HN_API_3 int hn_group_counters(int64_t* calls, int64_t* bytes_sent);

/* The sum over all processes as a new array, in a fixed order: the same bits in each process and in every run. Its
 * gradient is the sum of the gradients of all processes. */
HN_API_3 int hn_group_sum(HnArray array, const char* name, HnArray* out);
/* Overwrites out (NULL: the arrays) by the sums over all processes, in one message. The arrays have one dtype; higher
 * priorities go first. */
HN_API_3 int hn_group_sum_into(size_t num_arrays, const HnArray* arrays, const HnArray* out, const char* name,
                               int priority);
/* The arrays of all processes, joined along a new leading axis. It has no gradient. */
HN_API_3 int hn_group_gather(HnArray array, const char* name, HnArray* out);
/* Overwrites the arrays, all of one dtype, by those of the process root. */
HN_API_3 int hn_group_broadcast(size_t num_arrays, const HnArray* arrays, int root, const char* name);
/* Returns when all processes have called it. */
HN_API_3 int hn_group_barrier(void);

/* ---- operators of other libraries ----
 *
 * A shared object can define operators: it exports
 *
 *   int hn_library_init(HnRegisterOperator register_operator);
 *
 * which calls register_operator once per operator and returns 0. If one of these calls fails, none of the operators is
 * registered. The shared object needs this header only, and links against nothing. docs/operator-libraries.md has a
 * complete example.
 */

/* A dense, row-major tensor of a call. */
typedef struct HnTensor {
  void* data; /* NULL in infer */
  const int64_t* shape;
  int ndim;
  int dtype; /* enum HnDType */
} HnTensor;

enum HnParameterKind { HN_INTEGER = 0, HN_REAL = 1, HN_BOOLEAN = 2, HN_TEXT = 3 };

typedef struct HnParameter {
  const char* name;
  const char* doc;          /* may be NULL */
  int kind;                 /* enum HnParameterKind */
  const char* default_text; /* the text as in files: "2", "0.5", "True"; NULL: the parameter is required */
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
  const HnTensor* outputs; /* every element must be written; they overlap with no input */
  int train;
} HnOperatorCall;

/* The definition of an operator. Its functions return NULL, or an error text that is valid until the thread calls one
 * of them again. They are called from many threads at once, must give equal results for equal inputs, and throw
 * nothing. If neither inputs nor outputs have elements, only infer is called. */
typedef struct HnOperator {
  size_t struct_size; /* sizeof(HnOperator) */
  const char* name;   /* a C identifier; the name in front ends and files */
  const char* doc;
  size_t num_inputs;               /* 1 to 32 */
  const char* const* input_names;  /* NULL: data, or data0, data1, ... */
  size_t num_outputs;              /* 1 to 32 */
  const char* const* output_names; /* NULL: output, or output0, output1, ... */
  size_t num_parameters;
  const HnParameter* parameters;
  /* Sets shapes and dtypes of the outputs, which are initialized with those of input 0. NULL: they stay so. */
  const char* (*infer)(const HnParameterValue* parameters, size_t num_inputs, const HnTensor* inputs,
                       size_t num_outputs, HnTensorSpec* outputs);
  const char* (*forward)(const HnOperatorCall* call);
  /* inputs: gradients of the outputs, the inputs, the outputs; outputs: gradients of the inputs. NULL: no gradient. */
  const char* (*backward)(const HnOperatorCall* call);
} HnOperator;

typedef int (*HnRegisterOperator)(const HnOperator* op);

/* ---- rules of other libraries ----
 *
 * A shared object may define rules that rewrite graphs, with or without operators: it exports
 *
 *   int hn_library_init_rules(HnRegisterRule register_rule);
 *
 * which calls register_rule once per rule and returns 0. Rules see the same graphs as rules of mx.rewrite.local() in
 * Python: forward and backward graphs, bodies of loops and branches. docs/operator-libraries.md has an example.
 */

/* A graph that is being rewritten, and a value in it: one output of a node. Both are valid until the rule returns; a
 * negative HnValue is no value. */
typedef struct HnGraphImpl* HnGraph;
typedef int HnValue;

/* The functions that a rule can call. With a wrong argument they return NULL or -1, and the rule fails when it returns:
 * its changes are undone, and a warning names it. So a rule need not check results. Texts are valid until the rule
 * returns. */
typedef struct HnGraphFunctions {
  size_t struct_size; /* sizeof(HnGraphFunctions) of the library that calls the rule */
  /* The operator that computes the value; "": an input, a parameter or a constant. */
  const char* (*op)(HnGraph graph, HnValue value);
  /* The name of its node. */
  const char* (*name)(HnGraph graph, HnValue value);
  /* A parameter of its operator as files write it ("2", "0.5", "True", "(2, 2)"); NULL: the operator has none of this
   * name. */
  const char* (*attribute)(HnGraph graph, HnValue value, const char* name);
  int (*num_inputs)(HnGraph graph, HnValue value);
  HnValue (*input)(HnGraph graph, HnValue value, int index);
  int (*num_outputs)(HnGraph graph, HnValue value);
  HnValue (*output)(HnGraph graph, HnValue value, int index); /* another output of the same node */
  /* The number of node inputs and graph outputs that read the value. */
  int (*num_readers)(HnGraph graph, HnValue value);
  /* Shape and dtype; returns 0, or -1 if there is no such value. If a rule reads shapes, the plan is valid only for
   * these shapes. */
  int (*spec)(HnGraph graph, HnValue value, HnTensorSpec* out);
  int (*dtype)(HnGraph graph, HnValue value);
  /* 1 and the array if it is a constant, else 0. */
  int (*constant)(HnGraph graph, HnValue value, HnTensor* out);
  int (*train)(HnGraph graph); /* 1: the graph is for training */
  /* Adds a node; returns its first output. Attributes are texts as in files. The ops "add", "sub", "mul", "div", "mod",
   * "pow", "maximum" and "minimum" of two values become the operator for their shapes. */
  HnValue (*add)(HnGraph graph, const char* op, size_t num_inputs, const HnValue* inputs, size_t num_attributes,
                 const char* const* names, const char* const* texts);
  /* Once the rule returns, readers of `before` read `now`, which has its shape and dtype. Returns 0. */
  int (*replace)(HnGraph graph, HnValue before, HnValue now);
} HnGraphFunctions;

/* How exactly a rule preserves the values of the graph: the same bits; the same up to rounding; or different values for
 * zeros, infinities and NaN (such a rule runs if the user asks for "fast_math"). */
enum HnExactness { HN_SAME_BITS = 0, HN_ROUNDING = 1, HN_UNSAFE = 2 };

typedef struct HnRule {
  size_t struct_size; /* sizeof(HnRule) */
  const char* name;   /* a C identifier; the name in queries and reports */
  const char* doc;    /* may be NULL */
  size_t num_ops;     /* operators whose nodes the rule visits; "mul" etc.: all that compute it. 0: all nodes */
  const char* const* ops;
  const char* stage; /* a stage of mx.rewrite.stages(): "canonicalize"; NULL: see position */
  double position;   /* without a stage: 0 to 100, see docs/rewriting.md */
  const char* tags;  /* separated by commas; NULL: "fast_run", which runs by default */
  int exactness;     /* enum HnExactness */
  /* Visits one node, of which `value` is the first output. Returns NULL, or an error text. */
  const char* (*rewrite)(const HnGraphFunctions* functions, HnGraph graph, HnValue value);
} HnRule;

typedef int (*HnRegisterRule)(const HnRule* rule);

/* Adds a rule to the pipeline: it rewrites graphs that are compiled from now on. *rule and its texts are copied. A name
 * that is taken is an error. */
HN_API int hn_rule_register(const HnRule* rule);
/* Removes a rule that hn_rule_register, a library or Python has added. */
HN_API int hn_rule_unregister(const char* name);

/* Adds an operator; *op and its texts are copied. A name that is taken is an error. */
HN_API int hn_operator_register(const HnOperator* op);
/* Loads a shared object and calls its hn_library_init and hn_library_init_rules, of which it must have at least one.
 * Either all operators and rules are registered or none. The library stays loaded as long as the process lives. */
HN_API int hn_library_load(const char* path);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HYBRIDNET_C_API_H_ */
