// An operator of an update inside a compiled training step. The values that change with the step (learning rate, weight
// decay, the number of the step) are read from an array, so that a schedule needs no new plan.
#include <algorithm>
#include <optional>
#include <vector>

#include "device/memory.h"
#include "hybridnet/declare.h"
#include "ops/optimizer/device_update.h"

namespace hybridnet::ops {
namespace {

constexpr char kName[] = "_update_with_rates";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

struct RatedUpdate {
  std::string update, attributes, rates;
  int32_t row = 0, num_args = 0;
  bool conditional = false;
  // Derived from the texts above.
  const Op* op = nullptr;
  ParamsPtr params;
  bool replaces = false;    // the operator is an update, whose outputs replace inputs
  std::vector<int> fields;  // per column, the field of op's schema; -1: the column is for other operators

  static void describe(ParamSchema<RatedUpdate>& schema) {
    schema.field("update", &RatedUpdate::update)
        .doc("Name of the operator: an update such as sgd_mom_update, an elementwise one, or _full.");
    schema.field("attributes", &RatedUpdate::attributes)
        .default_value("")
        .doc("Constant attributes of the operator: 'momentum=0.9;clip_gradient=1.0'.");
    schema.field("rates", &RatedUpdate::rates)
        .doc(
            "Attributes of the operator in the columns of the table: 'lr;wd;-'; -: the column is for other operators.");
    schema.field("row", &RatedUpdate::row).default_value(0).at_least(0).doc("Row of the table for this weight.");
    schema.field("conditional", &RatedUpdate::conditional)
        .default_value(false)
        .doc("Whether the last input, of one element, is a condition: the update runs if it is not 0.");
    schema.field("num_args", &RatedUpdate::num_args).default_value(0).hidden().doc("Number of inputs.");
  }

  void complete() {
    op = op_registry().find(update);
    // Files contain the name, so the operator must be one that checks its inputs.
    const bool is_plain = op && op->stateless && !op->num_inputs_ && !op->random && !op->opaque && !op->hidden;
    replaces = is_plain && op->name.find("_update") != std::string::npos && !op->inplace.empty();
    if (!replaces && !(is_plain && (op->pointwise || op->fills_with)))
      throw ParamError(
          {.input = "update", .expected = "an update operator, or an elementwise one", .given = "'" + update + "'"});
    std::vector<std::pair<std::string, std::string>> attrs;
    for (const std::string& item : split(attributes, ';')) {
      const size_t equals = item.find('=');
      if (equals == std::string::npos)
        throw ParamError(
            {.input = "attributes", .expected = "items of the form name=value", .given = "'" + item + "'"});
      attrs.emplace_back(item.substr(0, equals), item.substr(equals + 1));
    }
    fields.clear();
    for (const std::string& name : split(rates, ';')) {
      if (name == "-") {
        fields.push_back(-1);
        continue;
      }
      const int field = op->schema->find(name);
      if (field < 0)
        throw ParamError({.input = "rates", .expected = "attributes of " + op->name, .given = "'" + name + "'"});
      fields.push_back(field);
      attrs.emplace_back(name, "1");
    }
    params = op->schema->parse(attrs, op->name, false);
  }
  std::optional<AttrValue> written(const std::string&) const { return std::nullopt; }
  bool operator==(const RatedUpdate& o) const {
    return update == o.update && attributes == o.attributes && rates == o.rates && row == o.row &&
           num_args == o.num_args && conditional == o.conditional;
  }
  uint64_t hash() const {
    return std::hash<std::string>()(update + "(" + attributes + ")" + rates) * 31 + static_cast<uint64_t>(row);
  }

  int num_own_inputs() const { return op->num_inputs(params->data()); }
  int table() const { return num_own_inputs(); }
  int condition() const { return table() + 1; }
  int num_outputs() const { return op->num_outputs(params->data()); }
  // The input whose memory an output may reuse; -1: none.
  int reused_input(int output) const {
    for (int i = 0; i < num_own_inputs(); ++i)
      if (op->may_reuse(params->data(), i, output)) return i;
    return -1;
  }
  // The input that an output replaces: a state, or the weight.
  int replaced_input(int output) const {
    if (!replaces) return -1;
    const int state = op->writeback_input(params->data(), output);
    return state >= 0 ? state : reused_input(output);
  }
};

void infer_rated(const RatedUpdate& p, InferContext& c) {
  const auto count = static_cast<size_t>(p.num_own_inputs());
  if (c.num_in() != p.condition() + p.conditional) {
    throw ParamError({.expected = std::to_string(count) + " inputs of " + p.op->name + ", then a table of rates" +
                                  (p.conditional ? " and a condition" : ""),
                      .given = std::to_string(c.num_in()) + " inputs"});
  }
  std::vector<TensorSpec> in, out;
  for (size_t i = 0; i < count; ++i) in.push_back(c.in(static_cast<int>(i)));
  for (int i = 0; i < c.num_out(); ++i) out.push_back(c.out(i));
  InferContext own(*p.op, in, out, c.train());
  p.op->infer(p.params->data(), own);
  for (int i = 0; i < static_cast<int>(count); ++i) {
    c.set_in_shape(i, in[static_cast<size_t>(i)].shape);
    c.set_in_dtype(i, in[static_cast<size_t>(i)].dtype);
  }
  for (int i = 0; i < c.num_out(); ++i) {
    c.set_out_shape(i, out[static_cast<size_t>(i)].shape);
    c.set_out_dtype(i, out[static_cast<size_t>(i)].dtype);
  }
  c.set_in_dtype(p.table(), DType::kFloat64);
  const Shape& table = c.in_shape(p.table());
  const auto columns = static_cast<int64_t>(p.fields.size());
  if (table.known() && (table.ndim() != 2 || table[0] <= p.row || table[1] < columns)) {
    throw ShapeError(
        {.input = "rates",
         .expected = "at least " + std::to_string(p.row + 1) + " rows of " + std::to_string(columns) + " columns",
         .given = table.str()});
  }
  if (!p.conditional) return;
  c.set_in_dtype(p.condition(), DType::kFloat32);
  const Shape& condition = c.in_shape(p.condition());
  if (condition.known() && condition.size() != 1)
    throw ShapeError({.input = "condition", .expected = "one element", .given = condition.str()});
}

class RatedUpdateKernel final : public Kernel {
 public:
  RatedUpdateKernel(const RatedUpdate& p, const LinkContext& c) {
    const auto count = static_cast<size_t>(p.num_own_inputs());
    LinkContext own = c;
    own.params = p.params->data();
    own.in = c.in.first(count);
    if (!c.in_format.empty()) own.in_format = c.in_format.first(count);
    own_ = p.op->link(own);
  }
  int64_t workspace_bytes() const override { return own_->workspace_bytes(); }
  std::string description() const override { return own_->description(); }

  void run(const KernelArgs& a) override {
    const auto& p = *static_cast<const RatedUpdate*>(a.params);
    const TensorRef& table = a.in[static_cast<size_t>(p.table())];
    const double* rates = table.as<double>() + p.row * (*table.shape)[1];
    std::vector<double> read;  // from a device, for an operator that has no form with rates there
    if (device::current()) {
      if (run_on_device(p, rates, a)) return;
      read.resize(p.fields.size());
      if (!read.empty())
        device::current()->copy_out(read.data(), rates, static_cast<int64_t>(read.size() * sizeof(double)));
      rates = read.data();
    }
    if (p.conditional && p.replaces && device::read_value<float>(a.in[static_cast<size_t>(p.condition())].data) == 0)
      return keep(p, a);
    const Ref<Params> now = p.op->schema->copy(*p.params);
    for (size_t i = 0; i < p.fields.size(); ++i)
      if (p.fields[i] >= 0) p.op->schema->set(now->data(), p.fields[i], AttrValue(rates[i]), p.op->name);
    KernelArgs own = a;
    own.params = now->data();
    own.in = a.in.first(static_cast<size_t>(p.num_own_inputs()));
    own_->run(own);
  }

 private:
  // False if the operator has no form for devices whose numbers are elements of an array.
  static bool run_on_device(const RatedUpdate& p, const double* rates, const KernelArgs& a) {
    const on_device::RatedUpdateFn update = p.replaces ? on_device::rated_update(p.op->name) : nullptr;
    std::optional<on_device::Rates> with = update ? rates_of(p, rates) : std::nullopt;
    if (!with) return false;
    if (p.conditional) {
      with->condition = a.in[static_cast<size_t>(p.condition())].as<float>();
      keep(p, a);
    }
    KernelArgs own = a;
    own.in = a.in.first(static_cast<size_t>(p.num_own_inputs()));
    update(p.params->data(), *with, own);
    return true;
  }

  // Nothing if a column is no number of the parameters.
  static std::optional<on_device::Rates> rates_of(const RatedUpdate& p, const double* rates) {
    on_device::Rates with{.values = rates};
    for (const int field : p.fields) {
      if (field < 0) {
        with.fields.push_back({-1, 0});
        continue;
      }
      const FieldInfo& info = p.op->schema->fields()[static_cast<size_t>(field)];
      if (info.kind != FieldKind::kDouble && info.kind != FieldKind::kInt32) return std::nullopt;
      with.fields.push_back({static_cast<int32_t>(info.offset), info.kind == FieldKind::kInt32});
    }
    if (with.fields.size() > device::kMaxRates) return std::nullopt;
    return with;
  }

  static void keep(const RatedUpdate& p, const KernelArgs& a) {
    for (int i = 0; i < static_cast<int>(a.out.size()); ++i) {
      const TensorRef& out = a.out[static_cast<size_t>(i)];
      const int input = p.replaced_input(i);
      const int64_t bytes = out.size() * dtype_size(out.dtype);
      const void* from = input < 0 ? nullptr : a.in[static_cast<size_t>(input)].data;
      if (from == nullptr)
        device::zero_memory(out.data, bytes);  // the output of a skipped step
      else
        device::copy_memory(out.data, from, bytes);
    }
  }

  Ref<Kernel> own_;
};

}  // namespace

void register_update_with_rates(OpRegistry& ops) {
  Sample one;
  one.inputs = {{3, 4}, {3, 4}, {3, 4}, {2, 3}};
  one.dtypes = {DType::kUnknown, DType::kUnknown, DType::kUnknown, DType::kFloat64};
  one.attrs = {
      {"update", "sgd_mom_update"}, {"attributes", "momentum=0.9"}, {"rates", "lr;wd;rescale_grad"}, {"row", "1"}};
  one.low = 0.1;
  Sample conditional = one;
  conditional.inputs.push_back({1});
  conditional.dtypes.push_back(DType::kFloat32);
  conditional.attrs.emplace_back("conditional", "True");
  Sample scaled;
  scaled.inputs = {{3, 4}, {2, 3}};
  scaled.dtypes = {DType::kUnknown, DType::kFloat64};
  scaled.attrs = {{"update", "_mul_scalar"}, {"rates", "-;scalar;-"}, {"row", "1"}};
  ops.declare<RatedUpdate>(kName)
      .any_device()
      .doc(
          "The operator `update` with some attributes read from a row of an array. An update replaces weight and "
          "states.")
      .variadic_input("data", "num_args",
                      "the inputs of `update`; rates (rows, columns) float64; with `conditional` one element")
      .output("weight_out", "the outputs of `update`")
      .num_inputs([](const RatedUpdate& p) { return p.condition() + p.conditional; })
      .num_outputs([](const RatedUpdate& p) { return p.num_outputs(); })
      .num_visible_outputs([](const RatedUpdate& p) { return p.op->num_visible_outputs(p.params->data()); })
      .variadic_inplace([](const RatedUpdate& p, int output) { return p.reused_input(output); })
      .variadic_writeback([](const RatedUpdate& p, int output) { return p.replaced_input(output); })
      .infer(infer_rated)
      .link([](const RatedUpdate& p, const LinkContext& c) { return Ref<Kernel>(new RatedUpdateKernel(p, c)); },
            kFloating)
      .cost([](const RatedUpdate& p, auto in, auto out) {
        return static_cast<double>(
            p.op->cost_ns(p.params->data(), in.first(static_cast<size_t>(p.num_own_inputs())), out));
      })
      .gradient(kNotDifferentiable)
      .internal()
      .allowed_in_files()
      .sample(one)
      .sample(conditional)
      .sample(scaled);
}

}  // namespace hybridnet::ops
