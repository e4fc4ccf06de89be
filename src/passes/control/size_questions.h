// Decisions of rewrites that depend on sizes: the order of axes that copies fewer bytes, the algorithm that pays.
// Rewrites ask here, and the answers are remembered, so that the questions can be asked again for other sizes: graphs
// that were rewritten for some sizes serve others if all answers are the same (plan/compilation_template.h). No
// question is needed for equality of shapes, and for sizes of 0 or 1: these agree for all sizes that share a graph.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hybridnet/base.h"

namespace hybridnet {

struct ShapeHash {
  size_t operator()(const Shape& shape) const {
    size_t hash = static_cast<size_t>(shape.ndim());
    for (const int64_t dim : shape) hash = (hash ^ static_cast<size_t>(dim)) * 0x100000001b3u;
    return hash;
  }
};

// A number of bytes as a sum over tensors.
class ByteCount {
 public:
  void add(const TensorSpec& spec) { specs_.push_back(&spec); }  // must outlive the count
  int64_t total() const;
  std::span<const TensorSpec* const> specs() const { return specs_; }

 private:
  std::vector<const TensorSpec*> specs_;
};

class SizeQuestions {
 public:
  using Question = std::function<bool(std::span<const Shape>)>;
  void add(std::vector<Shape> shapes, Question question, bool answer);
  void add_fewer(const ByteCount& a, const ByteCount& b);
  void add_read(const Shape& shape);
  // True if all answers are the same when each shape becomes now(shape). False if now() returns null for a shape.
  bool same_answers(const std::function<const Shape*(const Shape&)>& now) const;
  size_t size() const { return asked_.size() + comparisons_.size() + read_.size(); }

 private:
  struct Asked {
    std::vector<int> shapes;
    Question question;
    bool answer;
  };
  using Terms = std::vector<std::pair<int, int64_t>>;  // number of a shape, bytes per element, negative on the right
  int number_of(const Shape& shape);

  std::vector<Shape> shapes_;
  std::unordered_map<Shape, int, ShapeHash> numbers_;
  std::vector<Asked> asked_;
  std::set<std::pair<Terms, bool>> comparisons_;  // flag: the sum is negative
  std::set<int> read_;                            // shapes that note_shape_read() was called for
};

// Sizes of the graph that is rewritten. kFixed: it is compiled for its present sizes, and no call with other sizes is
// known yet.
enum class GraphSizes : uint8_t { kMayVary, kFixed };

// While it lives, remembers the questions that this thread asks about the graph itself. Bodies of loops and branches,
// which keep their sizes, do not count.
class SizeQuestionScope {
 public:
  explicit SizeQuestionScope(SizeQuestions* questions, GraphSizes sizes = GraphSizes::kMayVary);
  ~SizeQuestionScope();
  SizeQuestionScope(const SizeQuestionScope&) = delete;
  SizeQuestionScope& operator=(const SizeQuestionScope&) = delete;

 private:
  SizeQuestions* const before_;
  const GraphSizes sizes_before_;
};

// Returns the answer of `question` for these shapes. It must depend on them alone, and may be kept.
bool ask_sizes(std::vector<Shape> shapes, SizeQuestions::Question question);
// Records that this shape was read by code that may base any decision on it: the graph serves no other shape instead.
void note_shape_read(const Shape& shape);
// True if a rewrite that calls note_shape_read() may write sizes into the graph: in bodies, which are compiled again
// for other sizes, and in graphs of GraphSizes::kFixed. A graph that meets a second size is rewritten once more,
// without fixed sizes.
bool sizes_are_fixed();
// True if a is less than b.
bool ask_fewer_bytes(const ByteCount& a, const ByteCount& b);

}  // namespace hybridnet
