// Operators of other libraries: makes an ordinary operator from a declaration in C, and a second one for its gradient
// if it has one. Their kernels call the library's functions. rules.cc reads the rules of libraries.
#include "c_api/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "c_api/rules.h"
#include "c_api/status.h"
#include "hybridnet/c_api.h"
#include "hybridnet/op.h"

namespace hybridnet::c_api {
namespace {

constexpr size_t kMaxTensors = 32;  // limit for inputs, and for outputs
static_assert(kMaxDims == HN_MAX_NDIM);

// ------------------------------------------------------------------------------------------------------- parameters
// The value of a parameter, in the member of its kind.
struct Slot {
  int64_t integer = 0;
  double real = 0;
  bool boolean = false;
  std::string text;
};

class SlotParams final : public Params {
 public:
  explicit SlotParams(std::vector<Slot> slots) : slots_(std::move(slots)) {}
  void* data() override { return slots_.data(); }

 private:
  std::vector<Slot> slots_;
};

std::span<const Slot> slots_of(const void* params, const SchemaBase& schema) {
  return {static_cast<const Slot*>(params), schema.fields().size()};
}

std::string text_or(const char* text, const char* otherwise) { return text ? text : otherwise; }

class SlotSchema final : public SchemaBase {
 public:
  SlotSchema(std::span<const HnParameter> parameters, const std::string& op) {
    for (const HnParameter& p : parameters) {
      if (!p.name || find(p.name) >= 0)
        throw ParamError({.op = op, .input = "parameters", .expected = "a name of its own for each parameter"});
      add(p, fields_.size() * sizeof(Slot), op);
    }
    std::vector<Slot> slots(parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].default_text) continue;
      set(slots.data(), static_cast<int>(i), AttrValue(parameters[i].default_text), op);
      fields_[i].default_attr = get(slots.data(), static_cast<int>(i));
      fields_[i].required = false;
    }
  }

  Ref<Params> create() const override {
    std::vector<Slot> slots(fields_.size());
    for (size_t i = 0; i < slots.size(); ++i)
      if (!fields_[i].required) set(slots.data(), static_cast<int>(i), fields_[i].default_attr, "");
    return Ref<Params>(new SlotParams(std::move(slots)));
  }
  Ref<Params> copy(const Params& from) const override { return boxed(from.data()); }
  Ref<Params> boxed(const void* params) const {
    const std::span<const Slot> slots = slots_of(params, *this);
    return Ref<Params>(new SlotParams({slots.begin(), slots.end()}));
  }

 private:
  void add(const HnParameter& p, size_t at, const std::string& op) {
    struct Member {
      FieldKind kind;
      size_t offset;
    };
    static constexpr Member kMembers[] = {{FieldKind::kInt64, offsetof(Slot, integer)},
                                          {FieldKind::kDouble, offsetof(Slot, real)},
                                          {FieldKind::kBool, offsetof(Slot, boolean)},
                                          {FieldKind::kString, offsetof(Slot, text)}};
    static_assert(HN_INTEGER == 0 && HN_REAL == 1 && HN_BOOLEAN == 2 && HN_TEXT == 3);
    if (p.kind < HN_INTEGER || p.kind > HN_TEXT)
      throw ParamError({.op = op,
                        .input = std::string("kind of parameter '") + p.name + "'",
                        .expected = "a value of HnParameterKind",
                        .given = std::to_string(p.kind)});
    const Member& member = kMembers[p.kind];
    add_field(p.name, member.kind, at + member.offset).doc(text_or(p.doc, ""));
  }
};

std::vector<HnParameterValue> values_of(std::span<const Slot> slots) {
  std::vector<HnParameterValue> values;
  for (const Slot& slot : slots) {
    const bool is_true = slot.boolean;
    values.push_back({is_true ? 1 : slot.integer, slot.real, slot.text.c_str()});
  }
  return values;
}

// ------------------------------------------------------------------------------------------------------------- calls
void check_answer(const std::string& op, const char* what, const char* answer) {
  if (!answer) return;
  throw Error(ErrorKind::kError, {.op = op,
                                  .message = std::string("its ") + what + " failed: " + answer,
                                  .because = "the operator's library reported this"});
}

using Tensors = std::array<HnTensor, 3 * kMaxTensors>;

std::span<const HnTensor> tensors(std::span<const TensorRef> refs, Tensors& room) {
  for (size_t i = 0; i < refs.size(); ++i)
    room[i] = {refs[i].data, refs[i].shape->begin(), refs[i].shape->ndim(), static_cast<int>(refs[i].dtype)};
  return {room.data(), refs.size()};
}

using CallFunction = const char* (*)(const HnOperatorCall*);

class LibraryKernel final : public Kernel {
 public:
  LibraryKernel(std::string op, const char* what, CallFunction function, std::span<const Slot> slots)
      : op_(std::move(op)), what_(what), function_(function), slots_(slots.begin(), slots.end()) {
    values_ = values_of(slots_);
  }
  std::string description() const override { return "library"; }
  void run(const KernelArgs& args) override {
    Tensors in, out;
    const std::span<const HnTensor> inputs = tensors(args.in, in), outputs = tensors(args.out, out);
    const HnOperatorCall call{values_.data(), inputs.size(),  inputs.data(),
                              outputs.size(), outputs.data(), args.train ? 1 : 0};
    check_answer(op_, what_, function_(&call));
  }

 private:
  const std::string op_;
  const char* const what_;
  const CallFunction function_;
  const std::vector<Slot> slots_;  // own the texts that values_ point to
  std::vector<HnParameterValue> values_;
};

// ------------------------------------------------------------------------------------------------------- declaration
// A copy of a declaration in our own memory.
struct Declared : RefCounted<Declared> {
  std::string name, doc;
  std::vector<std::string> inputs, outputs;
  decltype(HnOperator::infer) infer = nullptr;
  CallFunction forward = nullptr, backward = nullptr;
  const Op* gradient = nullptr;  // null: no gradient
};

bool is_identifier(std::string_view name) {
  const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(), fits);
}

std::vector<std::string> names_of(const std::string& op, const char* what, size_t count, const char* const* given,
                                  const std::string& otherwise) {
  if (count < 1 || count > kMaxTensors)
    throw ParamError({.op = op,
                      .input = std::string("number of ") + what,
                      .expected = "1 to " + std::to_string(kMaxTensors),
                      .given = std::to_string(count)});
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    names.push_back(given ? text_or(given[i], "") : otherwise + (count > 1 ? std::to_string(i) : ""));
    if (!is_identifier(names.back()))
      throw ParamError({.op = op,
                        .input = std::string("name ") + std::to_string(i) + " of " + what,
                        .expected = "letters, digits and _, no digit first",
                        .given = "'" + names.back() + "'"});
  }
  return names;
}

Ref<Declared> read_declaration(const HnOperator* given) {
  require(given, "hn_operator_register", "op");
  if (given->struct_size < sizeof(HnOperator))
    throw ValueError({.op = "hn_operator_register",
                      .input = "struct_size",
                      .expected = std::to_string(sizeof(HnOperator)),
                      .given = std::to_string(given->struct_size),
                      .fix = "set it to sizeof(HnOperator), and compile with the c_api.h of this version"});
  auto declared = make_ref<Declared>();
  declared->name = text_or(given->name, "");
  if (!is_identifier(declared->name))
    throw ParamError({.op = "hn_operator_register",
                      .input = "name",
                      .expected = "letters, digits and _, no digit first",
                      .given = "'" + declared->name + "'"});
  declared->doc = text_or(given->doc, "");
  if (declared->doc.empty()) declared->doc = "An operator of another library.";
  declared->inputs = names_of(declared->name, "inputs", given->num_inputs, given->input_names, "data");
  declared->outputs = names_of(declared->name, "outputs", given->num_outputs, given->output_names, "output");
  declared->infer = given->infer;
  declared->forward = given->forward;
  declared->backward = given->backward;
  if (!given->forward)
    throw ParamError({.op = declared->name, .input = "forward", .expected = "a function", .given = "NULL"});
  if (given->num_parameters > 0) require(given->parameters, "hn_operator_register", "parameters");
  if (given->num_parameters > 64)
    throw ParamError({.op = declared->name,
                      .input = "num_parameters",
                      .expected = "at most 64",
                      .given = std::to_string(given->num_parameters)});
  return declared;
}

// --------------------------------------------------------------------------------------------------------- inference
Shape shape_of(const Declared& d, const HnTensorSpec& spec, int output) {
  const auto fail = [&](const std::string& given) {
    throw ShapeError({.op = d.name,
                      .input = d.outputs[static_cast<size_t>(output)],
                      .expected = "at most " + std::to_string(HN_MAX_NDIM) + " sizes, none below 0",
                      .given = given,
                      .because = "the infer function of its library returned this"});
  };
  if (spec.ndim < 0 || spec.ndim > HN_MAX_NDIM) fail(std::to_string(spec.ndim) + " axes");
  for (int i = 0; i < spec.ndim; ++i)
    if (spec.shape[i] < 0) fail("size " + std::to_string(spec.shape[i]) + " of axis " + std::to_string(i));
  return Shape(std::span<const int64_t>(spec.shape, static_cast<size_t>(spec.ndim)));
}

DType dtype_of(const Declared& d, int code, int output) {
  switch (code) {
    case HN_FLOAT32:
    case HN_FLOAT64:
    case HN_FLOAT16:
    case HN_UINT8:
    case HN_INT32:
    case HN_INT8:
    case HN_INT64:
    case HN_BOOL:
    case HN_BFLOAT16:
      return static_cast<DType>(code);
    default:
      throw DTypeError({.op = d.name,
                        .input = d.outputs[static_cast<size_t>(output)],
                        .expected = "a value of HnDType",
                        .given = std::to_string(code),
                        .because = "the infer function of its library returned this"});
  }
}

// Calls the library's infer function. Unknown input dtypes are passed as float32; output dtypes and errors are then
// ignored.
void infer(const Declared& d, std::span<const Slot> slots, InferContext& c) {
  std::array<HnTensor, kMaxTensors> in;
  bool knows_dtypes = true;
  for (int i = 0; i < c.num_in(); ++i) {
    if (!c.in_shape(i).known()) return;
    const DType dtype = c.in_dtype(i);
    knows_dtypes = knows_dtypes && dtype != DType::kUnknown;
    in[static_cast<size_t>(i)] = {nullptr, c.in_shape(i).begin(), c.in_shape(i).ndim(),
                                  dtype == DType::kUnknown ? HN_FLOAT32 : static_cast<int>(dtype)};
  }
  std::array<HnTensorSpec, kMaxTensors> specs{};
  const size_t num_out = d.outputs.size();
  for (HnTensorSpec& spec : std::span(specs).first(num_out)) {
    std::copy(c.in_shape(0).begin(), c.in_shape(0).end(), spec.shape);
    spec.ndim = in[0].ndim;
    spec.dtype = in[0].dtype;
  }
  if (d.infer) {
    const std::vector<HnParameterValue> values = values_of(slots);
    if (const char* answer = d.infer(values.data(), d.inputs.size(), in.data(), num_out, specs.data())) {
      if (!knows_dtypes) return;
      throw ShapeError({.op = d.name, .message = answer, .because = "the infer function of its library returned this"});
    }
  }
  for (int i = 0; i < c.num_out(); ++i) {
    const HnTensorSpec& spec = specs[static_cast<size_t>(i)];
    c.set_out_shape(i, shape_of(d, spec, i));
    if (knows_dtypes) c.set_out_dtype(i, dtype_of(d, spec.dtype, i));
  }
}

// ---------------------------------------------------------------------------------------------------------- gradient
const OpRef kZerosLike{"zeros_like"};

Values gradient(const Declared& d, const SlotSchema& schema, const void* params, const GradientContext& g) {
  if (!d.gradient)
    throw GradientError({.op = d.name,
                         .message = "its library declares no gradient",
                         .fix = "give the HnOperator a backward function, or stop the gradient before it"});
  Emitter& emitter = Emitter::current();
  Values inputs;
  for (int i = 0; i < g.num_outputs(); ++i) {
    const Value output = g.output(i);
    inputs.push_back(g.output_grad(i) ? g.output_grad(i)
                                      : emitter.emit(kZerosLike.op(), kZerosLike.op().default_params, {&output, 1})[0]);
  }
  for (int i = 0; i < g.num_inputs(); ++i) inputs.push_back(g.input(i));
  for (int i = 0; i < g.num_outputs(); ++i) inputs.push_back(g.output(i));
  return emitter.emit(*d.gradient, ParamsPtr(schema.boxed(params).get()), inputs);
}

// --------------------------------------------------------------------------------------------------------- operators
std::unique_ptr<Op> make_op(const std::string& name, std::unique_ptr<SlotSchema> schema) {
  auto op = std::make_unique<Op>();
  op->name = name;
  op->schema = std::move(schema);
  op->dtypes = kAllDTypes;
  op->total = false;
  op->gradient_declared_ = true;
  return op;
}

std::unique_ptr<Op> make_gradient_op(const Ref<Declared>& d, std::unique_ptr<SlotSchema> own_schema) {
  const SlotSchema& schema = *own_schema;
  std::unique_ptr<Op> op = make_op("_backward_" + d->name, std::move(own_schema));
  op->doc = "Gradient of " + d->name + ".";
  op->hidden = true;
  for (const std::string& output : d->outputs) op->inputs.push_back({output + "_grad", ""});
  for (const std::string& input : d->inputs) op->inputs.push_back({input, ""});
  for (const std::string& output : d->outputs) op->inputs.push_back({output, ""});
  for (const std::string& input : d->inputs) op->outputs.push_back({input + "_grad", ""});
  const int first = static_cast<int>(d->outputs.size());
  op->infer_ = [first](const void*, InferContext& c) {
    for (int i = 0; i < c.num_out(); ++i) {
      c.set_out_shape(i, c.in_shape(first + i));
      c.set_out_dtype(i, c.in_dtype(first + i));
    }
  };
  op->link_ = [d, &schema](const LinkContext& c) {
    return Ref<Kernel>(new LibraryKernel(d->name, "gradient", d->backward, slots_of(c.params, schema)));
  };
  op->gradient_ = [d](const void*, const GradientContext&) -> Values {
    throw GradientError({.op = d->name, .message = "an operator of a library has no gradient of its gradient"});
  };
  op->saves_ = Saves::nothing();
  return op;
}

std::unique_ptr<Op> make_forward_op(const Ref<Declared>& d, std::unique_ptr<SlotSchema> own_schema) {
  const SlotSchema& schema = *own_schema;
  std::unique_ptr<Op> op = make_op(d->name, std::move(own_schema));
  op->doc = d->doc;
  for (const std::string& input : d->inputs) op->inputs.push_back({input, ""});
  for (const std::string& output : d->outputs) op->outputs.push_back({output, ""});
  op->infer_ = [d, &schema](const void* params, InferContext& c) { infer(*d, slots_of(params, schema), c); };
  op->link_ = [d, &schema](const LinkContext& c) {
    return Ref<Kernel>(new LibraryKernel(d->name, "forward", d->forward, slots_of(c.params, schema)));
  };
  op->gradient_ = [d, &schema](const void* params, const GradientContext& g) {
    return gradient(*d, schema, params, g);
  };
  op->saves_ = Saves::all();
  return op;
}

// Makes the operator and, if it has one, its gradient.
std::vector<std::unique_ptr<Op>> make_ops(const HnOperator* given) {
  const Ref<Declared> d = read_declaration(given);
  const auto schema = [&] {
    return std::make_unique<SlotSchema>(std::span(given->parameters, given->num_parameters), d->name);
  };
  std::vector<std::unique_ptr<Op>> ops;
  if (d->backward) {
    ops.push_back(make_gradient_op(d, schema()));
    d->gradient = ops.back().get();
  }
  ops.push_back(make_forward_op(d, schema()));
  return ops;
}

// ----------------------------------------------------------------------------------------------------------- loading
// Declarations of the library that this thread is loading. One failed declaration fails the whole library, even if the
// library continues.
struct Loading {
  std::vector<std::unique_ptr<Op>> ops;
  std::vector<Rewrite> rules;
  bool failed = false;
  std::set<std::string> op_names() const {
    std::set<std::string> names;
    for (const auto& op : ops) names.insert(op->name);
    return names;
  }
};
thread_local Loading* loading = nullptr;

// Registers a declaration at once; while a library is loaded, with the other declarations of the library.
template <typename Now, typename Later>
void declare(const Now& now, const Later& later) {
  if (!loading) return now();
  try {
    later(*loading);
  } catch (...) {
    loading->failed = true;
    throw;
  }
}

void add(const HnOperator* given) {
  declare([&] { Runtime::get().extend_ops(make_ops(given)); },
          [&](Loading& library) {
            for (auto& op : make_ops(given)) library.ops.push_back(std::move(op));
          });
}

void add(const HnRule* given) {
  declare([&] { RewriteDatabase::add({read_rule(given)}); },
          [&](Loading& library) { library.rules.push_back(read_rule(given, library.op_names())); });
}

struct LoadingScope {
  explicit LoadingScope(Loading* now) : before(std::exchange(loading, now)) {}
  ~LoadingScope() { loading = before; }
  Loading* before;
};

[[noreturn]] void fail_to_load(const std::string& path, std::string message, std::string fix) {
  throw FileError({.input = path, .message = std::move(message), .fix = std::move(fix)});
}

}  // namespace

namespace {

void check_init(const std::string& path, const char* name, int answer, const Loading& now) {
  if (answer == 0 && !now.failed) return;
  const std::string reason = hn_last_error();
  throw ParamError({.input = path,
                    .message = std::string("its ") + name + " returned " + std::to_string(answer) +
                               (reason.empty() ? "" : ": " + reason),
                    .because = "its operators and rules are not registered"});
}

// Registers rules first: they can be removed if an operator turns out to be wrong.
void enter(Loading library) {
  std::vector<std::string> rules;
  for (const Rewrite& rule : library.rules) rules.push_back(rule.name);
  if (!rules.empty()) RewriteDatabase::add(std::move(library.rules));
  try {
    Runtime::get().extend_ops(std::move(library.ops));
  } catch (...) {
    for (const std::string& rule : rules) RewriteDatabase::remove(rule);
    throw;
  }
}

}  // namespace

LibraryContents load_library(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    fail_to_load(path, std::string("cannot load the library: ") + text_or(reason, "no reason is given"),
                 "give the path of a shared object that was built for this machine");
  }
  const auto init = reinterpret_cast<int (*)(HnRegisterOperator)>(dlsym(library, "hn_library_init"));
  const auto init_rules = reinterpret_cast<int (*)(HnRegisterRule)>(dlsym(library, "hn_library_init_rules"));
  if (!init && !init_rules) {
    dlclose(library);
    fail_to_load(
        path, "it has neither hn_library_init nor hn_library_init_rules, so it brings no operators and no rules",
        "export one of them (docs/operator-libraries.md); libraries written for MXNet's lib_api.h have another "
        "interface and must be written anew");
  }
  Loading now;
  {
    const LoadingScope scope(&now);
    set_last_error("", "");
    if (init) check_init(path, "hn_library_init", init(&hn_operator_register), now);
    if (init_rules) check_init(path, "hn_library_init_rules", init_rules(&hn_rule_register), now);
  }
  LibraryContents contents;
  for (const auto& op : now.ops)
    if (!op->hidden) contents.operators.push_back(op->name);
  for (const Rewrite& rule : now.rules) contents.rules.push_back(rule.name);
  enter(std::move(now));
  return contents;
}

}  // namespace hybridnet::c_api

using namespace hybridnet;  // the functions below are C: they have no namespace

int hn_operator_register(const HnOperator* op) {
  return c_api::guarded([&] { c_api::add(op); });
}

int hn_rule_register(const HnRule* rule) {
  return c_api::guarded([&] { c_api::add(rule); });
}

int hn_library_load(const char* path) {
  return c_api::guarded([&] {
    c_api::require(path, "hn_library_load", "path");
    c_api::load_library(path);
  });
}
