#include "cudnn_parts.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "library_objects.h"
#include "reports.h"

namespace standin {
namespace {

// cudnnBackendAttributeType_t.
enum Type : int {
  kHandle = 0,
  kDataType = 1,
  kInt64 = 3,
  kFloat = 4,
  kDouble = 5,
  kPointer = 6,
  kMode = 7,
  kHeuristicsMode = 8,
  kDescriptor = 15,
};

constexpr int kMostDimensions = 8;

// An attribute that may be set: `kinds` of descriptors, or none; required unless `least` is 0.
struct Rule {
  PartKind part;
  int attribute;
  std::vector<int> types;
  int64_t least, most;
  std::vector<PartKind> kinds = {};
};

void add_operation_rules(std::vector<Rule>& rules, PartKind kind) {
  const int first = operation_of(kind).first;
  for (const int factor : {0, 1}) rules.push_back({kind, first + factor, {kFloat, kDouble}, 1, 1});
  rules.push_back({kind, first + 2, {kDescriptor}, 1, 1, {PartKind::kConvolution}});
  for (const int tensor : {3, 4, 5}) rules.push_back({kind, first + tensor, {kDescriptor}, 1, 1, {PartKind::kTensor}});
}

const std::vector<Rule>& rules() {
  static const auto& it = *new std::vector<Rule>([] {
    std::vector<Rule> all = {
        {PartKind::kTensor, 900, {kInt64}, 1, 1},
        {PartKind::kTensor, 901, {kDataType}, 1, 1},
        {PartKind::kTensor, 902, {kInt64}, 1, kMostDimensions},
        {PartKind::kTensor, 903, {kInt64}, 1, kMostDimensions},
        {PartKind::kTensor, 906, {kInt64}, 1, 1},
        {PartKind::kConvolution, 100, {kDataType}, 1, 1},
        {PartKind::kConvolution, 101, {kMode}, 1, 1},
        {PartKind::kConvolution, 102, {kInt64}, 1, kMostDimensions},
        {PartKind::kConvolution, 103, {kInt64}, 1, kMostDimensions},
        {PartKind::kConvolution, 104, {kInt64}, 1, kMostDimensions},
        {PartKind::kConvolution, 105, {kInt64}, 1, kMostDimensions},
        {PartKind::kConvolution, 106, {kInt64}, 1, 1},
        {PartKind::kGraph, 800, {kHandle}, 1, 1},
        {PartKind::kGraph,
         801,
         {kDescriptor},
         1,
         100,
         {PartKind::kForward, PartKind::kDataGradient, PartKind::kFilterGradient}},
        {PartKind::kHeuristics, 200, {kHeuristicsMode}, 1, 1},
        {PartKind::kHeuristics, 201, {kDescriptor}, 1, 1, {PartKind::kGraph}},
        {PartKind::kPlan, 400, {kHandle}, 1, 1},
        {PartKind::kPlan, 401, {kDescriptor}, 1, 1, {PartKind::kConfig}},
        {PartKind::kPack, 1000, {kInt64}, 1, 100},
        {PartKind::kPack, 1001, {kPointer}, 1, 100},
        {PartKind::kPack, 1003, {kPointer}, 1, 1},
    };
    for (const PartKind kind : {PartKind::kForward, PartKind::kDataGradient, PartKind::kFilterGradient})
      add_operation_rules(all, kind);
    return all;
  }());
  return it;
}

size_t bytes_of_type(int type) {
  return type == kHandle || type == kInt64 || type == kDouble || type == kPointer || type == kDescriptor ? 8 : 4;
}

int wrong(int status, const std::string& what) {
  report("descriptor: cudnnBackendSetAttribute " + what);
  return status;
}

std::string named(int attribute) { return "attribute " + std::to_string(attribute); }

std::string why_wrong_tensor(const Part& tensor) {
  const std::vector<int64_t> sizes = tensor.integers(902), steps = tensor.integers(903);
  bool known = false;
  const auto bytes = static_cast<int64_t>(bytes_of(element_of(tensor.number(901), &known)));
  if (!known) return "the data type is " + std::to_string(tensor.number(901));
  if (sizes.size() != steps.size()) return "there are " + std::to_string(steps.size()) + " strides";
  if (tensor.integer(900) < 1 || tensor.integer(900) % bytes != 0) return "the alignment does not fit the data type";
  for (const auto* numbers : {&sizes, &steps})
    if (*std::min_element(numbers->begin(), numbers->end()) < 1) return "a size or a stride is not positive";
  return "";
}

std::string why_wrong_convolution(const Part& convolution) {
  const int64_t axes = convolution.integer(106);
  for (const int attribute : {102, 103, 104, 105}) {
    const std::vector<int64_t> numbers = convolution.integers(attribute);
    if (static_cast<int64_t>(numbers.size()) != axes) return named(attribute) + " has not one number for each axis";
    const int64_t least = attribute < 104 ? 1 : 0;
    if (*std::min_element(numbers.begin(), numbers.end()) < least) return named(attribute) + " is too small";
  }
  return "";
}

std::string why_wrong_axis(const Part& c, const std::vector<int64_t>& w, const std::vector<int64_t>& x,
                           const std::vector<int64_t>& y, size_t axis) {
  const size_t i = axis + 2;
  const int64_t reach = (w[i] - 1) * c.integers(102)[axis] + 1;
  const int64_t room = x[i] + c.integers(105)[axis] + c.integers(104)[axis] - reach;
  const bool agrees = room >= 0 && room / c.integers(103)[axis] + 1 == y[i];
  return agrees ? "" : "sizes disagree along spatial axis " + std::to_string(axis);
}

std::string why_wrong_types(const Part& part, const Part& convolution) {
  const Operation operation = operation_of(part.kind);
  std::set<int> types;
  std::set<int64_t> ids;
  for (int i = 0; i < 3; ++i) {
    types.insert(operation.tensor(part, i)->number(901));
    ids.insert(operation.tensor(part, i)->integer(906));
  }
  if (types.size() != 1) return "types of tensors differ";
  if (ids.size() != 3) return "two tensors have one id";
  const bool wide = *types.begin() == 1;
  if (convolution.number(100) != (wide ? 1 : 0)) return "sums are not in float32, or float64 for float64";
  for (const int factor : {0, 1})
    if ((part.set.at(operation.first + factor).bytes.size() == 8) != wide) return "a factor has the wrong type";
  return "";
}

std::string why_wrong_operation(const Part& part) {
  const Operation operation = operation_of(part.kind);
  const Part* const convolution = operation.convolution(part);
  const Part* tensors[3];
  for (int i = 0; i < 3; ++i) tensors[i] = operation.tensor(part, i);
  for (const Part* needed : {convolution, tensors[0], tensors[1], tensors[2]})
    if (!needed->finalized) return "it refers to a descriptor that is not finalized";
  if (std::string text = why_wrong_types(part, *convolution); !text.empty()) return text;
  const std::vector<int64_t> w = tensors[0]->integers(902), x = tensors[1]->integers(902),
                             y = tensors[2]->integers(902);
  const auto axes = static_cast<size_t>(convolution->integer(106));
  for (const auto* sizes : {&w, &x, &y})
    if (sizes->size() != axes + 2) return "a tensor has not two axes more than the convolution";
  if (x[0] != y[0] || w[0] != y[1]) return "batches or filters disagree";
  if (x[1] % w[1] != 0 || y[1] % (x[1] / w[1]) != 0) return "channels are not divided by groups";
  for (size_t axis = 0; axis < axes; ++axis)
    if (std::string text = why_wrong_axis(*convolution, w, x, y, axis); !text.empty()) return text;
  return "";
}

std::string why_wrong_pack(const Part& pack) {
  const std::vector<int64_t> ids = pack.integers(1000);
  if (pack.set.at(1001).count != static_cast<int64_t>(ids.size())) return "there is not one pointer for each id";
  return std::set<int64_t>(ids.begin(), ids.end()).size() == ids.size() ? "" : "an id is there twice";
}

std::string why_wrong(const Part& part) {
  switch (part.kind) {
    case PartKind::kTensor:
      return why_wrong_tensor(part);
    case PartKind::kConvolution:
      return why_wrong_convolution(part);
    case PartKind::kForward:
    case PartKind::kDataGradient:
    case PartKind::kFilterGradient:
      return why_wrong_operation(part);
    case PartKind::kGraph:
      if (part.set.at(801).count != 1) return "this library has graphs of one operation only";
      if (!exists(static_cast<const DnnHandle*>(part.pointer(800)), "cudnnBackendFinalize"))
        return "its handle is stale";
      return part.part(801)->finalized ? "" : "its operation is not finalized";
    case PartKind::kHeuristics:
      if (part.number(200) != 2 && part.number(200) != 3) return "this library has the modes 2 and 3 only";
      return part.part(201)->finalized ? "" : "its graph is not finalized";
    case PartKind::kPlan:
      if (!exists(static_cast<const DnnHandle*>(part.pointer(400)), "cudnnBackendFinalize"))
        return "its handle is stale";
      return part.part(401)->finalized ? "" : "its configuration is not finalized";
    case PartKind::kPack:
      return why_wrong_pack(part);
    default:
      return "engines and configurations come from the heuristics here";
  }
}

}  // namespace

bool Engine::has(int note) const { return std::find(notes.begin(), notes.end(), note) != notes.end(); }

std::vector<int64_t> Part::integers(int attribute) const {
  const Attribute& found = set.at(attribute);
  std::vector<int64_t> numbers(static_cast<size_t>(found.count));
  std::memcpy(numbers.data(), found.bytes.data(), found.bytes.size());
  return numbers;
}

int Part::number(int attribute) const {
  int value = 0;
  std::memcpy(&value, set.at(attribute).bytes.data(), sizeof(value));
  return value;
}

void* Part::pointer(int attribute) const {
  void* value = nullptr;
  std::memcpy(&value, set.at(attribute).bytes.data(), sizeof(value));
  return value;
}

const Part* Part::part(int attribute) const { return static_cast<const Part*>(pointer(attribute)); }

Element element_of(int data_type, bool* known) {
  *known = data_type == 0 || data_type == 1 || data_type == 2 || data_type == 9;
  return data_type == 1   ? Element::kFloat64
         : data_type == 2 ? Element::kFloat16
         : data_type == 9 ? Element::kBFloat16
                          : Element::kFloat32;
}

Operation operation_of(PartKind kind) {
  return {kind, kind == PartKind::kForward ? 700 : kind == PartKind::kDataGradient ? 706 : 712};
}

Problem problem_of(const Part& graph) {
  const Part& part = *graph.part(801);
  const Operation operation = operation_of(part.kind);
  const Part& convolution = *operation.convolution(part);
  Problem problem;
  problem.kind = part.kind;
  problem.data_type = operation.tensor(part, 0)->number(901);
  Problem::Tensor* const tensors[] = {&problem.w, &problem.x, &problem.y};
  for (int i = 0; i < 3; ++i) {
    const Part& from = *operation.tensor(part, i);
    *tensors[i] = {from.integer(906), from.integer(900), from.integers(902), from.integers(903)};
  }
  problem.stride = convolution.integers(103);
  problem.dilate = convolution.integers(102);
  problem.pad = convolution.integers(105);
  const auto factor = [&](int attribute) {
    const std::vector<char>& bytes = part.set.at(attribute).bytes;
    const Element element = bytes.size() == 8 ? Element::kFloat64 : Element::kFloat32;
    return load(element, reinterpret_cast<uintptr_t>(bytes.data()), 0);
  };
  problem.alpha = factor(operation.first);
  problem.beta = factor(operation.first + 1);
  return problem;
}

int set_attribute(Part& part, int attribute, int type, int64_t count, const void* values) {
  const auto rule = std::find_if(rules().begin(), rules().end(), [&](const Rule& each) {
    return each.part == part.kind && each.attribute == attribute;
  });
  const std::string name = named(attribute);
  if (part.finalized) return wrong(kDnnBadParameter, "sets " + name + " of a finalized descriptor");
  if (rule == rules().end()) return wrong(kDnnBadParameter, "sets " + name + " of a descriptor that has none");
  if (std::find(rule->types.begin(), rule->types.end(), type) == rule->types.end())
    return wrong(kDnnBadType, "gets type " + std::to_string(type) + " for " + name);
  if (count < rule->least || count > rule->most)
    return wrong(kDnnBadParameter, "gets " + std::to_string(count) + " elements for " + name);
  if (!values) return wrong(kDnnNull, "gets no elements for " + name);
  Attribute copy;
  copy.count = count;
  copy.bytes.resize(static_cast<size_t>(count) * bytes_of_type(type));
  std::memcpy(copy.bytes.data(), values, copy.bytes.size());
  for (int64_t i = 0; type == kDescriptor && i < count; ++i) {
    const Part* const given = static_cast<Part* const*>(values)[i];
    if (!exists(given, "cudnnBackendSetAttribute")) return kDnnBadParameter;
    if (std::find(rule->kinds.begin(), rule->kinds.end(), given->kind) == rule->kinds.end())
      return wrong(kDnnBadParameter, "gets a descriptor of another kind for " + name);
  }
  part.set[attribute] = std::move(copy);
  return kDnnDone;
}

std::string why_incomplete(const Part& part) {
  if (part.finalized) return "it is finalized";
  for (const Rule& rule : rules()) {
    if (rule.part != part.kind || rule.least == 0) continue;
    const auto found = part.set.find(rule.attribute);
    if (found == part.set.end()) return named(rule.attribute) + " is missing";
    for (int64_t i = 0; !rule.kinds.empty() && i < found->second.count; ++i)
      if (!exists(part.part(rule.attribute), "cudnnBackendFinalize")) return "it refers to a destroyed descriptor";
  }
  return why_wrong(part);
}

}  // namespace standin
