// The descriptors of cuDNN's graph interface: their attributes, and what makes each kind complete.
// Threads: world().mutex.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "elements.h"
#include "world.h"

namespace standin {

// cudnnStatus_t.
constexpr int kDnnDone = 0, kDnnNotReady = 1001, kDnnBadParameter = 2000, kDnnNull = 2002, kDnnNotFinalized = 2004,
              kDnnBadType = 2010, kDnnUnsupported = 3000, kDnnInternal = 4000, kDnnFailed = 5000;

// cudnnBackendDescriptorType_t.
enum class PartKind : int {
  kConvolution = 1,
  kEngine = 2,
  kConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kForward = 10,
  kFilterGradient = 11,
  kDataGradient = 12,
  kGraph = 15,
  kPack = 16,
  kTensor = 17,
};

struct DnnHandle {
  Context* context = nullptr;
  void* stream = nullptr;
  const void* set_by = nullptr;  // the thread that set the stream
};

// An engine of this library, which does all that its notes announce.
struct Engine {
  std::vector<int> notes;
  int64_t workspace_bytes = 0;
  bool finalizes = true;
  bool has(int note) const;
};

struct Attribute {
  int64_t count = 0;
  std::vector<char> bytes;
};

// The content of an operation graph, copied when its engines are asked for.
struct Problem {
  PartKind kind = PartKind::kForward;
  int data_type = 0;
  struct Tensor {
    int64_t id = 0, alignment = 0;
    std::vector<int64_t> sizes, strides;
  };
  Tensor w, x, y;
  std::vector<int64_t> stride, dilate, pad;
  double alpha = 1, beta = 0;
};

struct Part {
  PartKind kind = PartKind::kTensor;
  bool finalized = false;
  std::map<int, Attribute> set;
  Engine engine;                   // in engines, configurations and plans
  Problem problem;                 // in configurations and plans
  const Stream* stream = nullptr;  // of a plan: its last convolution
  uint64_t ticket = 0;

  // The values of an attribute that is set.
  int64_t integer(int attribute) const { return integers(attribute).at(0); }
  std::vector<int64_t> integers(int attribute) const;
  int number(int attribute) const;
  const Part* part(int attribute) const;
  void* pointer(int attribute) const;
};

// cudnnDataType_t; `known` is false for types that convolutions of this library do not have.
Element element_of(int data_type, bool* known);

// Sets an attribute; the status that the library returns, with a report of what is wrong.
int set_attribute(Part& part, int attribute, int type, int64_t count, const void* values);
// The fault of the attributes that are set; empty: the descriptor can be finalized.
std::string why_incomplete(const Part& part);

// The descriptors and the first attribute of an operation.
struct Operation {
  PartKind kind;
  int first;  // ALPHA; then BETA, CONV_DESC, W, X, Y
  const Part* convolution(const Part& operation) const { return operation.part(first + 2); }
  const Part* tensor(const Part& operation, int i) const { return operation.part(first + 3 + i); }  // W, X, Y
};
Operation operation_of(PartKind kind);
// The graph is finalized.
Problem problem_of(const Part& graph);

}  // namespace standin
