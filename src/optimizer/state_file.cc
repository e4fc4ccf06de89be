// The files of Trainer.save_states, which Python writes and reads, too (python/hybridnet/optimizer/_updater.py): a
// magic mark, the length of a JSON header, the header, then the values of the arrays, one after the other.
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/checked_size.h"
#include "optimizer/trainer.h"
#include "optimizer/update.h"

namespace hybridnet::optimizer {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMark = "HNSTATE1";
// Beyond this limit doubles do not represent all integers, and sums of two could exceed int64.
constexpr int64_t kMaxInteger = int64_t{1} << 53;
static_assert(std::endian::native == std::endian::little, "files are little-endian");

// ------------------------------------------------------------------------------------------------------------- writing

Json to_json(const AttrValue& value) {
  struct Visitor {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(bool v) const { return v; }
    Json operator()(int64_t v) const { return v; }
    Json operator()(double v) const {
      if (std::isfinite(v)) return v;
      return {{"number", std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf"}};
    }
    Json operator()(const std::string& v) const { return v; }
    Json operator()(const AttrValue::List& v) const {
      Json list = Json::array();
      for (const AttrValue& item : v) list.push_back(to_json(item));
      return list;
    }
  };
  return std::visit(Visitor{}, value.value);
}

class Writer {
 public:
  Json describe(const NDArray& array) {
    if (!array) return {{"value", nullptr}};
    array.wait_for_values();
    const size_t begin = values_.size();
    values_.resize(begin + static_cast<size_t>(array.bytes()));
    if (array.bytes() > 0) array.copy_to(values_.data() + begin);
    return {{"shape", std::vector<int64_t>(array.shape().begin(), array.shape().end())},
            {"dtype", dtype_name(array.dtype())}};
  }
  static Json tuple(std::vector<Json> items) { return {{"tuple", Json(std::move(items))}}; }
  const std::string& values() const { return values_; }

 private:
  std::string values_;
};

Json describe(Writer& writer, const TrainingState& state, const WeightState& weight) {
  const StateLayout layout = state.rule->states(state.settings);
  const bool native = state.rule->native_master;
  const auto own = [&] {
    if (!layout.is_tuple) return writer.describe(weight.arrays[0]);
    std::vector<Json> items;
    for (const NDArray& array : weight.arrays) items.push_back(writer.describe(array));
    return Writer::tuple(std::move(items));
  };
  if (!weight.master) return own();
  std::vector<Json> both;
  if (native) both.push_back(own());
  both.push_back(writer.describe(weight.master));
  if (!native) both.push_back(own());
  return Writer::tuple(std::move(both));
}

Json pairs(const std::map<size_t, int64_t>& counts) {
  Json list = Json::array();
  for (const auto& [index, count] : counts) list.push_back({index, count});
  return {{"pairs", std::move(list)}};
}

Json describe_optimizer(const TrainingState& state) {
  const Rule& rule = *state.rule;
  Json settings = Json::object();
  const auto& fields = rule.schema.fields();
  for (size_t i = 0; i < fields.size(); ++i)
    settings[rule.attribute_of(fields[i].name)] = to_json(rule.schema.get(&state.settings, static_cast<int>(i)));
  settings["num_update"] = state.num_update;
  settings["_all_index_update_counts"] = {{"pairs", Json::array({Json::array({0, pairs(state.counts)})})}};
  Json schedule = nullptr;
  if (state.schedule) {
    Json attributes = Json::object();
    for (const auto& [name, value] : state.schedule->attributes()) attributes[name] = to_json(value);
    schedule = {{"class", state.schedule->name()}, {"settings", std::move(attributes)}};
  }
  return {{"class", rule.name}, {"settings", std::move(settings)}, {"scheduler", std::move(schedule)}};
}

// ------------------------------------------------------------------------------------------------------------- reading

class Reader {
 public:
  Reader(std::string_view bytes, std::string what) : bytes_(bytes), what_(std::move(what)) {}

  [[noreturn]] void fail(const std::string& message, std::string fix = "") const {
    throw FormatError({.input = what_, .message = "optimizer states: " + message, .fix = std::move(fix)});
  }

  Json header() {
    if (!bytes_.starts_with(kMark))
      fail("the file does not start with their mark", "name a file that save_states wrote, in any language");
    const size_t begin = kMark.size() + sizeof(uint64_t);
    if (bytes_.size() < begin) fail("the file ends inside the length of the header");
    uint64_t size = 0;
    std::memcpy(&size, bytes_.data() + kMark.size(), sizeof size);
    if (size > bytes_.size() - begin) fail("the file ends inside the header");
    position_ = begin + size;
    Json read = Json::parse(bytes_.substr(begin, size), nullptr, false);
    if (!read.is_object()) fail("the header is no JSON object");
    return read;
  }

  const Json& member(const Json& object, const char* name) const {
    const auto it = object.is_object() ? object.find(name) : object.end();
    if (!object.is_object() || it == object.end()) fail(std::string("'") + name + "' is missing");
    return *it;
  }
  const Json& list(const Json& value, const char* what) const {
    if (!value.is_array()) fail(std::string("'") + what + "' is no list");
    return value;
  }
  int64_t integer(const Json& value, const char* what) const {
    const bool fits = value.is_number_integer() && value <= kMaxInteger && value >= -kMaxInteger;
    if (!fits) fail(std::string("'") + what + "' is not an integer of reasonable size");
    return value.get<int64_t>();
  }
  std::string text(const Json& value, const char* what) const {
    if (!value.is_string()) fail(std::string("'") + what + "' is no text");
    return value.get<std::string>();
  }
  std::optional<AttrValue> attribute(const Json& value) const {
    if (value.is_null()) return AttrValue();
    if (value.is_boolean()) return AttrValue(value.get<bool>());
    if (value.is_number_integer()) return AttrValue(integer(value, "a number"));
    if (value.is_number()) return AttrValue(value.get<double>());
    if (value.is_string()) return AttrValue(value.get<std::string>());
    if (value.is_object() && value.contains("number")) return AttrValue(text(value["number"], "number"));
    if (!value.is_array()) return std::nullopt;
    AttrValue::List list;
    for (const Json& item : value) {
      std::optional<AttrValue> each = item.is_array() ? std::nullopt : attribute(item);
      if (!each) return std::nullopt;
      list.push_back(std::move(*each));
    }
    return AttrValue(std::move(list));
  }

  // Reads an array of this shape and dtype. name: the parameter and the array, for errors.
  NDArray array(const Json& description, const Shape& shape, DType dtype, const std::string& name) {
    if (!description.is_object() || !description.contains("shape")) fail(name + ": there is no array");
    Shape given = Shape::scalar();
    const Json& sizes = list(description["shape"], "shape");
    if (sizes.size() > static_cast<size_t>(kMaxDims)) fail(name + ": more axes than arrays have");
    for (const Json& size : sizes) given.push_back(integer(size, "shape"));
    const std::string type = text(member(description, "dtype"), "dtype");
    if (given != shape || type != dtype_name(dtype))
      fail(name + ": expected " + dtype_name(dtype) + " " + shape.str() + ", got " + type + " " + given.str(),
           "load the states of a trainer of the same model, optimizer and settings");
    const NDArray made = NDArray::empty(shape, dtype);
    const auto size = static_cast<size_t>(made.bytes());
    if (size > bytes_.size() - position_) fail(name + ": the file ends inside the values");
    if (size > 0) made.copy_from(bytes_.data() + position_);
    position_ += size;
    return made;
  }
  void skip_array(const Shape& shape, DType dtype) {
    int64_t size = dtype_size(dtype);
    for (const int64_t each : shape) {
      if (each < 0) fail("a size is negative");
      size = checked_times(size, each, "shape");
    }
    if (static_cast<uint64_t>(size) > bytes_.size() - position_) fail("the file ends inside the values");
    position_ += static_cast<size_t>(size);
  }
  void end() const {
    if (position_ != bytes_.size())
      fail(std::to_string(bytes_.size() - position_) + " bytes are left behind the last array");
  }

 private:
  std::string_view bytes_;
  std::string what_;
  size_t position_ = 0;
};

// Maps parameter numbers of the file to parameters of this trainer: by name if the file has the names of all of them.
class Numbering {
 public:
  Numbering(const Reader& reader, const Json& header, std::span<const TrainedParameter> parameters)
      : reader_(reader), count_(parameters.size()) {
    if (!header.contains("parameters")) return;
    std::map<std::string, size_t> own;
    for (size_t i = 0; i < parameters.size(); ++i) own[parameters[i].name] = i;
    std::map<int64_t, size_t> found;
    const Json& list = reader.list(header["parameters"], "parameters");
    for (const Json& pair : list) {
      if (!pair.is_array() || pair.size() != 2) reader.fail("'parameters' holds no pairs");
      const int64_t number = reader.integer(pair[0], "parameters");
      const auto it = own.find(reader.text(pair[1], "parameters"));
      if (it != own.end()) found[number] = it->second;
    }
    if (found.size() == count_) {
      by_number_ = std::move(found);
      is_by_name_ = true;
    } else if (list.size() != count_) {
      reader.fail("they belong to " + std::to_string(list.size()) + " parameters, and the trainer has " +
                      std::to_string(count_) + "; " + std::to_string(found.size()) + " names are equal",
                  "make the trainer over the same parameters");
    }
  }
  // nullopt: a parameter that is not trained here.
  std::optional<size_t> find(const Json& number) const {
    const int64_t i = reader_.integer(number, "index");
    if (is_by_name_) {
      const auto it = by_number_.find(i);
      return it == by_number_.end() ? std::nullopt : std::optional(it->second);
    }
    if (i < 0 || i >= static_cast<int64_t>(count_))
      reader_.fail("they hold parameter number " + std::to_string(i) + ", the trainer has " + std::to_string(count_),
                   "make the trainer over the same parameters");
    return static_cast<size_t>(i);
  }

 private:
  const Reader& reader_;
  size_t count_;
  std::map<int64_t, size_t> by_number_;
  bool is_by_name_ = false;
};

void read_counts(const Reader& reader, const Json& settings, const Numbering& numbering, TrainingState& state) {
  state.num_update = reader.integer(reader.member(settings, "num_update"), "num_update");
  const Json& devices =
      reader.list(reader.member(reader.member(settings, "_all_index_update_counts"), "pairs"), "counts");
  state.counts.clear();
  for (const Json& device : devices) {
    if (!device.is_array() || device.size() != 2) reader.fail("the numbers of updates are no tables");
    if (device[0] != 0) continue;
    for (const Json& pair : reader.list(reader.member(device[1], "pairs"), "counts")) {
      if (!pair.is_array() || pair.size() != 2) reader.fail("the numbers of updates are no tables");
      const int64_t count = reader.integer(pair[1], "number of updates");
      if (count < 0 || state.num_update < 0) reader.fail("a number of updates is negative");
      if (const auto index = numbering.find(pair[0])) state.counts[*index] = count;
    }
  }
}

void read_settings(const Reader& reader, const Json& settings, TrainingState& state) {
  const Rule& rule = *state.rule;
  const auto& fields = rule.schema.fields();
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto it = settings.find(rule.attribute_of(fields[i].name));
    // In Python, rescale_grad belongs to a single step.
    if (it == settings.end() || fields[i].name == "rescale_grad") continue;
    if (it->is_null() && fields[i].name == "learning_rate") continue;  // a schedule defines it
    const std::optional<AttrValue> value = reader.attribute(*it);
    if (!value) reader.fail("setting '" + fields[i].name + "' is none");
    rule.schema.set(&state.settings, static_cast<int>(i), *value, rule.name);
  }
}

void read_schedule(const Reader& reader, const Json& optimizer, TrainingState& state) {
  state.schedule.reset();
  const auto it = optimizer.find("scheduler");
  if (it == optimizer.end() || it->is_null()) return;
  std::vector<std::pair<std::string, AttrValue>> attributes;
  const Json& settings = reader.member(*it, "settings");
  if (!settings.is_object()) reader.fail("the schedule's settings are no table");
  for (const auto& [name, item] : settings.items())
    if (auto value = reader.attribute(item)) attributes.emplace_back(name, std::move(*value));
  state.schedule = Schedule::restore(reader.text(reader.member(*it, "class"), "class"), attributes, state.num_update);
}

void read_optimizer(const Reader& reader, const Json& optimizer, const Numbering& numbering, TrainingState& state) {
  const std::string name = reader.text(reader.member(optimizer, "class"), "class");
  const Rule* found = nullptr;
  for (const auto& each : rules())
    if (each->name == name) found = each.get();
  if (found == nullptr)
    reader.fail("they are of optimizer " + name + ", which the library does not have",
                "optimizers that are written in Python go on in Python");
  if (found != state.rule) {
    state.rule = found;
    state.settings = found->parse({});
  }
  const Json& settings = reader.member(optimizer, "settings");
  if (!settings.is_object()) reader.fail("the optimizer's settings are no table");
  read_settings(reader, settings, state);
  read_counts(reader, settings, numbering, state);
  read_schedule(reader, optimizer, state);
}

const Json& item_of(const Reader& reader, const Json& nest, size_t i, size_t size, const std::string& name) {
  if (!nest.is_object() || !nest.contains("tuple") || !nest["tuple"].is_array() || nest["tuple"].size() != size)
    reader.fail(name + ": expected a tuple of " + std::to_string(size),
                "load the states of a trainer of the same model, optimizer and settings");
  return nest["tuple"][i];
}

WeightState read_weight(Reader& reader, const Json& description, const TrainingState& state,
                        const TrainedParameter& parameter) {
  const std::string& name = parameter.name;
  const Rule& rule = *state.rule;
  const StateLayout layout = rule.states(state.settings);
  WeightState made;
  const bool has_master = needs_master(state.settings, parameter.weight);
  const DType dtype = has_master ? DType::kFloat32 : parameter.weight.dtype();
  const auto read_master = [&](size_t place) {
    made.master = reader.array(item_of(reader, description, place, 2, name), parameter.weight.shape(), dtype, name);
  };
  if (has_master && !rule.native_master) read_master(0);
  const Json& own = has_master ? item_of(reader, description, rule.native_master ? 0 : 1, 2, name) : description;
  for (size_t i = 0; i < layout.items.size(); ++i) {
    const Json& each = layout.is_tuple ? item_of(reader, own, i, layout.items.size(), name) : own;
    const std::optional<StateSpec>& spec = layout.items[i];
    if (!spec) {
      if (!each.is_object() || !each.contains("value")) reader.fail(name + ": there is an array where none belongs");
      made.arrays.emplace_back();
      continue;
    }
    Shape shape = parameter.weight.shape();
    if (spec->one_per_row) {
      if (shape.ndim() != 2) reader.fail(name + ": the optimizer takes matrices alone");
      shape = Shape({shape[0], 1});
    }
    made.arrays.push_back(reader.array(each, shape, dtype, name + ", " + spec->name));
  }
  if (has_master && rule.native_master) read_master(1);
  return made;
}

// Skips the states of a parameter that is not trained here.
void skip(Reader& reader, const Json& nest, int depth) {
  if (!nest.is_object() || depth > 3) reader.fail("a state is no array and no tuple");
  if (nest.contains("tuple")) {
    for (const Json& item : reader.list(nest["tuple"], "tuple")) skip(reader, item, depth + 1);
  } else if (nest.contains("shape")) {
    Shape shape = Shape::scalar();
    const Json& sizes = reader.list(nest["shape"], "shape");
    if (sizes.size() > static_cast<size_t>(kMaxDims)) reader.fail("more axes than arrays have");
    for (const Json& size : sizes) shape.push_back(reader.integer(size, "shape"));
    reader.skip_array(shape, dtype_from_name(reader.text(reader.member(nest, "dtype"), "dtype")));
  } else if (!nest.contains("value")) {
    reader.fail("a state is no array and no tuple");
  }
}

}  // namespace

std::string write_states(const TrainingState& state, std::span<const TrainedParameter> parameters) {
  Writer writer;
  Json states = Json::array(), names = Json::array();
  for (const auto& [index, weight] : state.weights) states.push_back({index, describe(writer, state, weight)});
  for (size_t i = 0; i < parameters.size(); ++i) names.push_back({i, parameters[i].name});
  const Json header = {
      {"states", std::move(states)}, {"parameters", std::move(names)}, {"optimizer", describe_optimizer(state)}};
  const std::string text = header.dump();
  const uint64_t size = text.size();
  std::string bytes(kMark);
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  return bytes + text + writer.values();
}

TrainingState read_states(std::string_view bytes, const std::string& what, const TrainingState& current,
                          std::span<const TrainedParameter> parameters) {
  Reader reader(bytes, what);
  const Json header = reader.header();
  TrainingState made = current;
  made.weights.clear();
  try {
    const Numbering numbering(reader, header, parameters);
    const auto optimizer = header.find("optimizer");
    if (optimizer != header.end() && !optimizer->is_null()) read_optimizer(reader, *optimizer, numbering, made);
    for (const Json& pair : reader.list(reader.member(header, "states"), "states")) {
      if (!pair.is_array() || pair.size() != 2) reader.fail("'states' holds no pairs");
      if (const auto index = numbering.find(pair[0]))
        made.weights[*index] = read_weight(reader, pair[1], made, parameters[*index]);
      else
        skip(reader, pair[1], 0);
    }
    reader.end();
  } catch (const FormatError&) {
    throw;
  } catch (const Error& error) {  // a setting out of its range, an unknown dtype
    reader.fail(error.what());
  } catch (const nlohmann::json::exception& error) {
    reader.fail(error.what());
  }
  return made;
}

}  // namespace hybridnet::optimizer
