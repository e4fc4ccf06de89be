#include "plan/control/native_loop.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <unordered_map>

#include "hybridnet/ndarray.h"
#include "op/c_forms.h"
#include "op/pointwise_program.h"

namespace hybridnet {
namespace {

constexpr int64_t kMaxSize = 32;        // elements of a value
constexpr int kMaxSteps = 96;           // steps of condition and body
constexpr int64_t kWorthCode = 10'000;  // iterations that the interpreter runs before code is made
constexpr char kEntry[] = "hn_loop";

const OpRef kFused{"_fused_elementwise"};

// The argument of the C function, as the source declares it.
struct CallOfLoop {
  const void* const* in;
  void* const* rows;
  void* const* carries;
  int64_t done, end, count;
  const void* steps;
  int64_t ended;
};
using LoopFunction = void (*)(CallOfLoop*);

constexpr char kDeclarations[] =
    R"(typedef struct { const void* const* in; void* const* rows; void* const* carries; i64 done, end, count; const Step* steps;
                 i64 ended; } Loop;
)";

// Returns the index of the element of the operand that element `element` of the result reads.
int64_t element_of(const Shape& operand, const Shape& result, int64_t element) {
  int64_t at = 0, stride = 1;
  for (int from_end = 1; from_end <= result.ndim(); ++from_end) {
    const int64_t size = result[result.ndim() - from_end], place = element % size;
    element /= size;
    if (from_end > operand.ndim()) continue;
    const int64_t own = operand[operand.ndim() - from_end];
    if (own != 1) at += place * stride;
    stride *= own;
  }
  return at;
}

}  // namespace

// Writes the C function.
class NativeLoopWriter {
 public:
  explicit NativeLoopWriter(const LoopSpec& loop) : loop_(loop) {}

  std::unique_ptr<NativeLoop> write(const Graph* condition, const Graph& body) {
    if (!declare_slots(body)) return nullptr;
    text_ += "  for (; done < loop->end; ++done) {\n";
    text_ += loop_.reverse ? "    const i64 row = loop->count - 1 - done;\n" : "    const i64 row = done;\n";
    for (size_t slot = 0; slot < loop_.seqs(); ++slot) {
      const std::string type = "const " + std::string(c_forms::type_of(slots_[slot].spec.dtype)) + "*";
      text_ += "    " + type + " const " + slots_[slot].name + " = (" + type + ")loop->in[" + std::to_string(slot) +
               "] + row * " + std::to_string(slots_[slot].size()) + ";\n";
    }
    if (condition != nullptr) {
      if (!write_graph(*condition)) return nullptr;
      const Value& test = values_.at(condition->outputs()[0]);
      if (test.size() != 1) return nullptr;
      text_ += "    if (!(" + test.name + "[0] != 0)) { loop->ended = 1; break; }\n";
    }
    if (!write_graph(body) || !write_outputs(body)) return nullptr;
    text_ += "  }\n" + behind_ + "  loop->done = done;\n}\n";
    made_->function_ = std::make_shared<NativeFunction>(c_forms::kTypes + (kDeclarations + text_), kEntry);
    return std::move(made_);
  }

 private:
  struct Value {
    std::string name;  // an array in C
    TensorSpec spec;
    int64_t size() const { return spec.shape.size(); }
  };

  std::string new_name() { return "v" + std::to_string(next_name_++); }

  // Carries become arrays of the function, invariants copies of its inputs, slices pointers into the rows.
  bool declare_slots(const Graph& body) {
    text_ = "void " + std::string(kEntry) + "(Loop* loop) {\n  i64 done = loop->done;\n";
    const std::vector<NodePtr>& inputs = body.inputs();
    for (size_t slot = 0; slot < inputs.size(); ++slot) {
      const TensorSpec& spec = inputs[slot]->specs[0];
      const char* type = c_forms::type_of(spec.dtype);
      if (type == nullptr || spec.shape.size() < 1 || spec.shape.size() > kMaxSize) return false;
      Value value{"s" + std::to_string(slot), spec};
      if (slot >= loop_.seqs()) {
        const bool carry = slot < loop_.first_invariant();
        const std::string memory = carry ? "loop->carries[" + std::to_string(slot - loop_.seqs()) + "]"
                                         : "loop->in[" + std::to_string(slot) + "]";
        text_ += "  " + std::string(type) + " " + value.name + "[" + std::to_string(value.size()) + "];\n";
        text_ += copy(value, value.name, "((const " + std::string(type) + "*)" + memory + ")", "  ");
        if (carry) behind_ += copy(value, "((" + std::string(type) + "*)" + memory + ")", value.name, "  ");
      }
      slots_.push_back(std::move(value));
    }
    return true;
  }

  static std::string copy(const Value& value, const std::string& to, const std::string& from, const char* indent) {
    return indent +
           ("for (int e = 0; e < " + std::to_string(value.size()) + "; ++e) " + to + "[e] = " + from + "[e];\n");
  }

  bool write_graph(const Graph& graph) {
    for (size_t slot = 0; slot < graph.inputs().size() && slot < slots_.size(); ++slot) {
      const Value& value = slots_[slot];
      values_[{graph.inputs()[slot], 0}] = value;
    }
    for (const Node* node : graph.order()) {
      if (graph.input_index(node) >= 0) continue;
      if (!write_node(graph, *node)) return false;
    }
    return true;
  }

  bool write_node(const Graph& graph, const Node& node) {
    const NodePtr self(const_cast<Node*>(&node));
    for (const TensorSpec& spec : node.specs)
      if (c_forms::type_of(spec.dtype) == nullptr || spec.shape.size() < 1 || spec.shape.size() > kMaxSize)
        return false;
    if (node.is_variable()) return write_constant(self);
    std::vector<const Value*> in;
    for (const NodeEntry& input : node.inputs) {
      if (graph.format(input) != Format::kPlain) return false;
      in.push_back(&values_.at(input));
    }
    if (node.op == &kFused.op()) return write_program(self, in);
    if (node.specs.size() != 1) return false;
    if (node.op->is_view && in.size() == 1 && in[0]->spec.dtype == node.specs[0].dtype) {
      values_[{self, 0}] = {in[0]->name, node.specs[0]};
      return true;
    }
    if (node.op->fills_with) {
      const std::optional<double> number = node.op->fills_with(node.params->data());
      if (!number || !in.empty()) return false;
      return write_number({self, 0}, node.specs[0], *number);
    }
    std::optional<Value> made = write_step(*node.op, node.params, in, node.specs[0]);
    if (made) values_[{self, 0}] = std::move(*made);
    return made.has_value();
  }

  bool write_number(const NodeEntry& entry, const TensorSpec& spec, double number) {
    const std::optional<std::string> text = c_forms::literal(spec.dtype, number);
    if (!text) return false;
    Value value{new_name(), spec};
    const std::string type = c_forms::type_of(spec.dtype);
    text_ += "    " + type + " " + value.name + "[" + std::to_string(value.size()) + "];\n";
    text_ +=
        "    for (int e = 0; e < " + std::to_string(value.size()) + "; ++e) " + value.name + "[e] = " + *text + ";\n";
    values_[entry] = std::move(value);
    return true;
  }

  bool write_constant(const NodePtr& node) {
    if (!node->constant) return false;
    const NDArray array(Ref<ArrayImpl>(static_cast<ArrayImpl*>(node->constant.get())));
    array.wait_to_read();
    Value value{new_name(), node->specs[0]};
    std::string numbers;
    for (int64_t e = 0; e < value.size(); ++e) {
      std::optional<std::string> number;
      const DType dtype = value.spec.dtype;
      if (dtype == DType::kFloat32)
        number = c_forms::literal(dtype, static_cast<const float*>(array.data())[e]);
      else if (dtype == DType::kFloat64)
        number = c_forms::literal(dtype, static_cast<const double*>(array.data())[e]);
      else if (dtype == DType::kInt32)
        number = c_forms::literal(dtype, static_cast<const int32_t*>(array.data())[e]);
      else if (dtype == DType::kInt64)
        number = c_forms::literal(dtype, static_cast<double>(static_cast<const int64_t*>(array.data())[e]));
      if (!number) return false;
      numbers += (e == 0 ? "" : ", ") + *number;
    }
    text_ += "    " + std::string(c_forms::type_of(value.spec.dtype)) + " " + value.name + "[] = {" + numbers + "};\n";
    values_[{node, 0}] = std::move(value);
    return true;
  }

  bool write_program(const NodePtr& node, const std::vector<const Value*>& in) {
    const auto& program = node->params->as<PointwiseProgram>();
    std::vector<Value> slots;
    for (const Value* value : in) slots.push_back(*value);
    for (const PointwiseProgram::Step& step : program.steps) {
      std::vector<const Value*> operands;
      for (const int slot : step.in) operands.push_back(&slots[static_cast<size_t>(slot)]);
      std::optional<Value> made = write_step(*step.op, step.params, operands, node->specs[0]);
      if (!made) return false;
      slots.push_back(std::move(*made));
    }
    for (uint32_t i = 0; i < program.outputs.size(); ++i)
      values_[{node, i}] = slots[static_cast<size_t>(program.outputs[i])];
    return true;
  }

  std::optional<Value> write_step(const Op& op, const ParamsPtr& params, const std::vector<const Value*>& in,
                                  const TensorSpec& spec) {
    if (!op.pointwise || op.random || op.opaque || !op.total || in.empty() || in.size() > kMaxOperands ||
        ++num_steps_ > kMaxSteps)
      return std::nullopt;
    for (const Value* value : in)
      if (value->spec.dtype != spec.dtype) return std::nullopt;
    Value made{new_name(), spec};
    text_ += "    " + std::string(c_forms::type_of(spec.dtype)) + " " + made.name + "[" + std::to_string(made.size()) +
             "];\n";
    if (const std::optional<std::string> form = c_forms::expression(op, params, spec.dtype))
      write_form(*form, in, made);
    else
      write_call(op, params, in, made);
    return made;
  }

  // Returns the index of an operand in a loop over elements `e`; nullopt if each element needs its own number.
  static std::optional<std::string> index_of(const Value& operand, const Value& result) {
    bool same = true, first = true;
    for (int64_t e = 0; e < result.size(); ++e) {
      const int64_t at = element_of(operand.spec.shape, result.spec.shape, e);
      same = same && at == e;
      first = first && at == 0;
    }
    if (first) return "0";
    return same ? std::optional<std::string>("e") : std::nullopt;
  }

  void write_form(const std::string& form, const std::vector<const Value*>& in, const Value& made) {
    std::vector<std::string> names{"$a", "$b"};
    std::string looped = form;
    bool plain = true;
    for (size_t i = 0; i < in.size(); ++i) {
      const std::optional<std::string> index = index_of(*in[i], made);
      plain = plain && index;
      if (plain) looped = c_forms::replaced(looped, names[i], in[i]->name + "[" + *index + "]");
    }
    if (plain) {
      text_ +=
          "    for (int e = 0; e < " + std::to_string(made.size()) + "; ++e) " + made.name + "[e] = " + looped + ";\n";
      return;
    }
    for (int64_t e = 0; e < made.size(); ++e) {
      std::string one = form;
      for (size_t i = 0; i < in.size(); ++i)
        one = c_forms::replaced(
            one, names[i], in[i]->name + "[" + std::to_string(element_of(in[i]->spec.shape, made.spec.shape, e)) + "]");
      text_ += "    " + made.name + "[" + std::to_string(e) + "] = " + one + ";\n";
    }
  }

  // Writes a call of the operator's own function, on operands of the size of the result.
  void write_call(const Op& op, const ParamsPtr& params, const std::vector<const Value*>& in, const Value& made) {
    std::string list;
    for (const Value* operand : in) {
      std::string name = operand->name;
      if (operand->size() != made.size()) {
        name = new_name();
        text_ += "    " + std::string(c_forms::type_of(made.spec.dtype)) + " " + name + "[" +
                 std::to_string(made.size()) + "];\n";
        for (int64_t e = 0; e < made.size(); ++e)
          text_ += "    " + name + "[" + std::to_string(e) + "] = " + operand->name + "[" +
                   std::to_string(element_of(operand->spec.shape, made.spec.shape, e)) + "];\n";
      }
      list += (list.empty() ? "" : ", ") + name;
    }
    const std::string step = "loop->steps[" + std::to_string(made_->steps_.size()) + "]";
    text_ += "    " + c_forms::call(step, made.spec.dtype, list, made.name, std::to_string(made.size())) + "\n";
    made_->steps_.push_back({op.pointwise, params->data()});
    made_->params_.push_back(params);
  }

  bool write_outputs(const Graph& body) {
    for (size_t i = 0; i < body.outputs().size(); ++i) {
      const auto found = values_.find(body.outputs()[i]);
      if (found == values_.end()) return false;
      const Value& value = found->second;
      const std::string type = c_forms::type_of(value.spec.dtype);
      if (i < loop_.outs()) {
        const std::string rows = "r" + std::to_string(i);
        text_ += "    " + type + "* const " + rows + " = (" + type + "*)loop->rows[" + std::to_string(i) +
                 "] + row * " + std::to_string(value.size()) + ";\n";
        text_ += copy(value, rows, value.name, "    ");
        continue;
      }
      const std::string next = "n" + std::to_string(i);
      text_ += "    " + type + " " + next + "[" + std::to_string(value.size()) + "];\n";
      text_ += copy(value, next, value.name, "    ");
    }
    for (size_t i = 0; i < loop_.carries(); ++i) {
      const size_t output = loop_.final_carry(i);
      const Value& slot = slots_[loop_.carry(i)];
      if (!(values_.at(body.outputs()[output]).spec == slot.spec)) return false;
      text_ += copy(slot, slot.name, "n" + std::to_string(output), "    ");
    }
    return true;
  }

  static constexpr size_t kMaxOperands = PointwiseProgram::kMaxOperands;

  const LoopSpec& loop_;
  std::unique_ptr<NativeLoop> made_ = std::make_unique<NativeLoop>();
  std::string text_, behind_;
  std::vector<Value> slots_;
  std::unordered_map<NodeEntry, Value, NodeEntryHash> values_;
  int next_name_ = 0, num_steps_ = 0;
};

std::unique_ptr<NativeLoop> NativeLoop::make(const LoopSpec& loop, const Graph* condition, const Graph& body) {
  if (!body.writebacks().empty() || (condition && !condition->writebacks().empty())) return nullptr;
  std::unique_ptr<NativeLoop> made = NativeLoopWriter(loop).write(condition, body);
  if (made && native_code_is_awaited()) make_native(made->function_);
  return made;
}

void NativeLoop::run(Run& run) const {
  CallOfLoop call{run.inputs.data(), run.rows.data(), run.carries.data(), run.done,
                  run.end,           run.count,       steps_.data(),      0};
  reinterpret_cast<LoopFunction>(function_->get())(&call);
  run.done = call.done;
  run.ended = call.ended != 0;
}

void NativeLoop::note_iterations(int64_t count) {
  const int64_t before = interpreted_.fetch_add(count, std::memory_order_relaxed);
  if (before < kWorthCode && before + count >= kWorthCode && !native_code_is_awaited()) make_native(function_);
}

}  // namespace hybridnet
