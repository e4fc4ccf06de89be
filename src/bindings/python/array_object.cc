#include "array_object.h"

#include <structmember.h>

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "array_arithmetic.h"
#include "base/interrupt.h"
#include "device/stream.h"
#include "engine/run_ahead.h"
#include "engine/waiting_caller.h"
#include "hybridnet/imperative.h"
#include "hybridnet/runtime.h"
#include "ndarray/device_work.h"

namespace hybridnet::python {

PyTypeObject* array_base_type = nullptr;
ArrayClass nd_class, np_class;
PyTypeObject* sparse_classes[3] = {};

namespace {

// Memory of freed objects of the registered classes, for reuse: every op makes and frees some. Guarded by the GIL.
constexpr int kMaxFree = 128;
PyObject* free_objects[kMaxFree];
int num_free = 0;

bool pooled(PyTypeObject* type) { return type == nd_class.type || type == np_class.type; }

PyObject* new_object(PyTypeObject* type) {
  if (pooled(type) && num_free > 0) return PyObject_Init(free_objects[--num_free], type);
  return type->tp_alloc(type, 0);
}

void array_dealloc(PyObject* self) {
  auto* object = reinterpret_cast<ArrayObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  if (object->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  object->array.~NDArray();
  if (pooled(type) && num_free < kMaxFree) {
    free_objects[num_free++] = self;
  } else {
    type->tp_free(self);
  }
  Py_DECREF(type);
}

// NDArray(handle), a call in programs and pickles of MXNet: the handle is an array, or None before __setstate__.
PyObject* array_new(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] {
    PyObject* handle = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : nullptr;
    if (handle == Py_None) return wrap_array_as(NDArray::empty(Shape{0}, DType::kFloat32), type);
    if (handle != nullptr && is_array(handle)) {
      // Two objects of the program are one array: the memory cannot be donated with one of them.
      if (const NDArray& array = array_of(handle)) watch_overwrites(*array.impl()->chunk);
      return wrap_array_as(array_of(handle), type);
    }
    raise(ErrorKind::kType, {.op = type->tp_name,
                             .message = "the class is not called to make arrays",
                             .fix = "call hybridnet.nd.array, zeros, empty or another function"});
  });
}

// ------------------------------------------------------------------------------------------------- properties
PyObject* get_shape(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr, [&] { return shape_to_tuple(array_of(self).shape()).release(); });
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(array_of(self).ndim()); }
PyObject* get_size(PyObject* self, void*) { return PyLong_FromLongLong(array_of(self).size()); }
PyObject* numpy_dtype(DType dtype) {
  static PyObject* dtypes[kDTypeCodes] = {};
  PyObject* type = numpy_type(dtype);
  if (type == Py_None) return Py_None;
  PyObject*& instance = dtypes[static_cast<int>(dtype)];
  if (instance == nullptr) {
    Owned module = checked(PyImport_ImportModule("numpy"));
    instance = checked(PyObject_CallMethod(module.get(), "dtype", "O", type)).release();
  }
  return instance;
}

// Returns a NumPy scalar class for mx.nd arrays, an instance of numpy.dtype for mx.np arrays. This follows MXNet.
PyObject* get_dtype(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr, [&] {
    const DType dtype = array_of(self).dtype();
    return Py_NewRef(&result_class(self) == &np_class ? numpy_dtype(dtype) : numpy_type(dtype));
  });
}
PyObject* get_stype(PyObject* self, void*) {
  return PyUnicode_InternFromString(storage_type_name(array_of(self).storage_type()));
}

PyObject* get_context(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr, [&] {
    static auto& contexts = *new std::vector<std::pair<Device, PyObject*>>;  // one Context per device
    const Device device = array_of(self).device();
    for (const auto& [known, context] : contexts)
      if (known == device) return Py_NewRef(context);
    Owned module = checked(PyImport_ImportModule("hybridnet.context"));
    Owned context =
        checked(PyObject_CallMethod(module.get(), "context_of_code", "ii", static_cast<int>(device.type), device.id));
    contexts.emplace_back(device, Py_NewRef(context.get()));
    return context.release();
  });
}

PyObject* get_grad(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr, [&] {
    NDArray grad = grad_of(array_of(self));
    return grad ? wrap_array(std::move(grad), result_class(self)) : Py_NewRef(Py_None);
  });
}

PyObject* get_fresh_grad(PyObject* self, void*) { return PyBool_FromLong(gradient_is_fresh(array_of(self))); }

int set_fresh_grad(PyObject* self, PyObject* value, void*) {
  const int fresh = value == nullptr ? 0 : PyObject_IsTrue(value);
  if (fresh < 0) return -1;
  set_gradient_fresh(array_of(self), fresh != 0);
  return 0;
}

PyGetSetDef properties[] = {
    {"shape", get_shape, nullptr, "Tuple of the array's sizes, outermost first.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of axes.", nullptr},
    {"size", get_size, nullptr, "Number of elements.", nullptr},
    {"dtype", get_dtype, nullptr,
     "NumPy type of the elements, such as numpy.float32; of arrays of mx.np a numpy.dtype.", nullptr},
    {"stype", get_stype, nullptr, "Storage type: 'default' (dense), 'row_sparse' or 'csr'.", nullptr},
    {"context", get_context, nullptr, "Device that holds the array.", nullptr},
    {"ctx", get_context, nullptr, "Device that holds the array; the same as context.", nullptr},
    {"grad", get_grad, nullptr, "Gradient buffer made by attach_grad(), or None.", nullptr},
    {"_fresh_grad", get_fresh_grad, set_fresh_grad,
     "Has backward written the gradient since this was last set to False?", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// ---------------------------------------------------------------------------------------------------- methods
PyObject* wait_to_read(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] {
    wait_interruptibly(array_of(self));
    return Py_NewRef(Py_None);
  });
}

PyObject* wait_to_write(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] {
    wait_interruptibly(array_of(self), true);
    return Py_NewRef(Py_None);
  });
}

PyMethodDef methods[] = {
    {"wait_to_read", wait_to_read, METH_NOARGS,
     "Waits until everything pushed before that writes this array is done; raises their errors."},
    {"wait_to_write", wait_to_write, METH_NOARGS,
     "Waits until everything pushed before that reads or writes this array is done; raises their errors."},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ArrayObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

// ------------------------------------------------------------------------------------------------------ waiting
// Wakes a sleeping thread when a task has run or was dropped: in both cases the last copy of the task's closure is
// destroyed.
struct Signal {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  void set() {
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  }
};

// Sleeps until the signal is set, and checks for Ctrl-C every 50 ms. Called with the GIL held.
void sleep_until(Signal& signal) {
  for (;;) {
    {
      ReleaseGil release(false);
      std::unique_lock lock(signal.mutex);
      if (signal.changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return signal.done; })) return;
    }
    if (PyErr_CheckSignals() == 0) continue;
    note_interrupt();
    throw PythonErrorIsSet();
  }
}

constexpr int64_t kCostOfNothing = 1;  // nanoseconds; 0 would mean that it is unknown

bool is_main_thread() {
  static const unsigned long importing_thread = PyThread_get_thread_ident();
  return PyThread_get_thread_ident() == importing_thread;
}

}  // namespace

int init_array_type(PyObject* module) {
  is_main_thread();  // remembers the importing thread
  static std::vector<PyType_Slot> slots = {
      {Py_tp_dealloc, reinterpret_cast<void*>(array_dealloc)},
      {Py_tp_new, reinterpret_cast<void*>(array_new)},
      {Py_tp_getset, properties},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
      {Py_tp_doc, const_cast<char*>("Dense tensor: the base that hybridnet.NDArray builds on.")},
  };
  add_arithmetic_slots(slots);
  slots.push_back({0, nullptr});
  static PyType_Spec spec = {"hybridnet._core.NDArrayBase", sizeof(ArrayObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots.data()};
  array_base_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (array_base_type == nullptr) return -1;
  nd_class.names = kClassicOperatorNames;
  np_class.names = kNumpyOperatorNames;
  return PyModule_AddObjectRef(module, "NDArrayBase", reinterpret_cast<PyObject*>(array_base_type));
}

void register_array_class(PyObject* cls, bool numpy) {
  if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), array_base_type) ||
      reinterpret_cast<PyTypeObject*>(cls)->tp_basicsize != static_cast<Py_ssize_t>(sizeof(ArrayObject)))
    raise(ErrorKind::kType, {.expected = "a subclass of NDArrayBase with __slots__ = ()", .given = short_repr(cls)});
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  // A class statement makes types that the garbage collector tracks and whose deallocator searches slots and
  // finalizers. Instances of this class refer to no Python object, so both would only cost time.
  type->tp_flags &= ~Py_TPFLAGS_HAVE_GC;
  type->tp_traverse = nullptr;
  type->tp_clear = nullptr;
  type->tp_free = PyObject_Free;
  type->tp_dealloc = array_dealloc;
  PyType_Modified(type);
  ArrayClass& target = numpy ? np_class : nd_class;
  Py_INCREF(cls);
  target.type = type;
}

void require_same_class(PyObject* first, PyObject* other, const std::string& operator_name) {
  if (&result_class(first) == &result_class(other)) return;
  raise(ErrorKind::kType, {.op = operator_name,
                           .expected = "arrays of one interface",
                           .given = type_name(first) + " and " + type_name(other),
                           .because = "arrays of mx.np follow NumPy's rules, arrays of mx.nd do not",
                           .fix = "convert one with as_np_ndarray() or as_nd_ndarray(); both share the memory"});
}

NDArray& expect_array(PyObject* object, const char* what) {
  if (!is_array(object)) raise(ErrorKind::kType, {.input = what, .expected = "an NDArray", .given = type_name(object)});
  return array_of(object);
}

PyObject* wrap_array_as(NDArray array, PyTypeObject* type) {
  PyObject* self = new_object(type);
  if (self == nullptr) return nullptr;
  auto* object = reinterpret_cast<ArrayObject*>(self);
  new (&object->array) NDArray(std::move(array));
  object->weakrefs = nullptr;
  return self;
}

PyObject* wrap_array(NDArray array, ArrayClass& cls) {
  if (array.is_sparse()) [[unlikely]] {
    PyTypeObject* const& type = sparse_classes[static_cast<int>(array.storage_type())];
    if (type == nullptr) checked(PyImport_ImportModule("hybridnet.ndarray.sparse"));  // registers the classes
    return wrap_array_as(std::move(array), type);
  }
  return wrap_array_as(std::move(array), cls.type != nullptr ? cls.type : array_base_type);
}

Owned shape_to_tuple(const Shape& shape) {
  const int ndim = shape.ndim();
  Owned tuple = checked(PyTuple_New(ndim > 0 ? ndim : 0));
  for (int i = 0; i < ndim; ++i) PyTuple_SET_ITEM(tuple.get(), i, checked(PyLong_FromLongLong(shape[i])).release());
  return tuple;
}

namespace {
int64_t shape_item(PyObject* item, const char* what) {
  if (PyFloat_Check(item) || !PyIndex_Check(item))
    raise(ErrorKind::kType, {.input = what, .expected = "an int or a sequence of ints", .given = type_name(item)});
  Owned index = checked(PyNumber_Index(item));
  const int64_t value = PyLong_AsLongLong(index.get());
  if (value == -1 && PyErr_Occurred()) throw PythonErrorIsSet();
  return value;
}
}  // namespace

Shape shape_from(PyObject* object, const char* what) {
  if (PyIndex_Check(object)) return Shape{shape_item(object, what)};
  if (!PySequence_Check(object) || PyUnicode_Check(object))
    raise(ErrorKind::kType, {.input = what, .expected = "an int or a sequence of ints", .given = type_name(object)});
  Owned items = checked(PySequence_Fast(object, "a sequence of ints was expected"));
  Shape shape = Shape::scalar();
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(items.get());
  for (Py_ssize_t i = 0; i < size; ++i) shape.push_back(shape_item(PySequence_Fast_GET_ITEM(items.get(), i), what));
  return shape;
}

PyObject* numpy_type(DType dtype) {
  static PyObject* types[kDTypeCodes] = {};
  const int code = static_cast<int>(dtype);
  if (!dtype_valid_code(code)) return Py_None;
  if (types[code] == nullptr) {
    Owned module = checked(PyImport_ImportModule(dtype == DType::kBFloat16 ? "ml_dtypes" : "numpy"));
    // numpy.bool exists since NumPy 2; numpy.bool_ is the same class in all versions.
    const char* name = dtype == DType::kBool ? "bool_" : dtype_name(dtype);
    types[code] = checked(PyObject_GetAttrString(module.get(), name)).release();
  }
  return types[code];
}

namespace {

// Returns the dtype of a NumPy scalar class such as numpy.float32; kUnknown for other objects.
DType dtype_of_type(PyObject* type) {
  for (int code = 0; code < kDTypeCodes; ++code) {
    const auto dtype = static_cast<DType>(code);
    if (dtype != DType::kBFloat16 && dtype_valid_code(code) && numpy_type(dtype) == type) return dtype;
  }
  return DType::kUnknown;
}

// Returns the type of an instance of numpy.dtype. Its name is slower: NumPy composes it at each access.
Owned type_of_dtype(PyObject* object) {
  static PyObject* dtype_class = nullptr;
  if (dtype_class == nullptr) {
    Owned numpy = checked(PyImport_ImportModule("numpy"));
    dtype_class = checked(PyObject_GetAttrString(numpy.get(), "dtype")).release();
  }
  if (!PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(dtype_class))) return Owned();
  return checked(PyObject_GetAttrString(object, "type"));
}

}  // namespace

DType dtype_from(PyObject* object) {
  if (const DType known = dtype_of_type(object); known != DType::kUnknown) return known;
  if (const Owned type = type_of_dtype(object)) {
    if (const DType known = dtype_of_type(type.get()); known != DType::kUnknown) return known;
  }
  Owned name;
  if (PyUnicode_Check(object)) {
    name = Owned::borrowed(object);
  } else {
    Owned numpy = checked(PyImport_ImportModule("numpy"));
    Owned dtype(PyObject_CallMethod(numpy.get(), "dtype", "O", object));
    if (!dtype || object == Py_None) {
      PyErr_Clear();
      raise(ErrorKind::kDType, {.expected = "a dtype such as 'float32' or numpy.float32", .given = short_repr(object)});
    }
    name = checked(PyObject_GetAttrString(dtype.get(), "name"));
  }
  const char* text = PyUnicode_AsUTF8(name.get());
  if (text == nullptr) throw PythonErrorIsSet();
  return dtype_from_name(text);
}

// The main thread waits in slices, to check for Ctrl-C. When the interpreter ends it does not: the waiting thread then
// runs the queued tasks itself.
void wait_interruptibly(const NDArray& array, bool to_write) {
  if (array.is_sparse()) return wait_interruptibly(NDArray(sparse_storage(array).data), to_write);
  WaitingCaller::note_wait();
  Var& var = array.var();
  if (to_write ? var.idle() && var.readable() : var.readable()) {
    if (!array.is_on_gpu()) return;
    ReleaseGil release(false);
    return wait_for_device(array, to_write);
  }
  const NDArray kept = array;  // the Python object may be freed while other threads run
  // Only for reads: a task that writes would count as a change of the data.
  if (is_main_thread() && !to_write && !run_ahead().waits_no_more()) {
    auto signal = std::make_shared<Signal>();
    std::shared_ptr<void> over(nullptr, [signal](void*) { signal->set(); });
    Var* const reads[] = {&var};
    engine().push([over = std::move(over), kept](TaskContext&) {}, {.reads = reads, .writes = {}},
                  {.name = "wait", .device = array.device(), .cost_ns = kCostOfNothing});
    sleep_until(*signal);
  }
  ReleaseGil release(false);
  if (to_write)
    kept.wait_to_write();
  else
    kept.wait_for_values();
}

static void wait_for_engine_and_devices() {
  engine().wait_all();
  device::wait_for_all();
}

static void wait_all_at_once() {
  ReleaseGil release(false);
  wait_for_engine_and_devices();
}

void wait_all_interruptibly() {
  WaitingCaller::note_wait();
  if (!engine().has_pending() || !is_main_thread() || run_ahead().waits_no_more()) return wait_all_at_once();
  auto signal = std::make_shared<Signal>();
  auto failure = std::make_shared<std::exception_ptr>();
  try {
    std::thread([signal, failure] {
      try {
        wait_for_engine_and_devices();
      } catch (...) {
        *failure = std::current_exception();
      }
      signal->set();
    }).detach();
  } catch (const std::system_error&) {  // no thread available
    return wait_all_at_once();
  }
  sleep_until(*signal);
  if (*failure) std::rethrow_exception(*failure);
}

}  // namespace hybridnet::python
