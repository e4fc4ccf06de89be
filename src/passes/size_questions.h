// What rewrites decide by sizes: which order of axes copies fewer bytes, which algorithm pays. They ask here, and the
// answers are remembered, so that the questions can be asked again for other sizes: graphs that were rewritten for some
// sizes serve others where all answers are the same (plan/call_template.h). Whether shapes are equal, and whether sizes
// are 0 or 1, need not be asked: that holds for all sizes which graphs are shared for.
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
  void add(const TensorSpec& spec) { specs_.push_back(&spec); }  // which outlives the count
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
  // Are all answers the same when each shape has become now(shape)? A shape that nobody knows (null): no.
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
  std::set<std::pair<Terms, bool>> comparisons_;  // is the sum negative?
  std::set<int> read_;                            // shapes whose sizes themselves somebody has seen
};

// Of the graph that is rewritten: kFixed says that it is compiled for the sizes that it has, and that no call with
// other sizes is known yet.
enum class GraphSizes : uint8_t { kMayVary, kFixed };

// Remembers what is asked on this thread about the graph itself as long as it lives. Bodies of loops and branches,
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

// What `question` says of these shapes. It depends on them alone, and may be kept.
bool ask_sizes(std::vector<Shape> shapes, SizeQuestions::Question question);
// Somebody who may decide anything by it has seen this shape: the graph serves no others in its place.
void note_shape_read(const Shape& shape);
// May a rewrite that calls note_shape_read() write sizes into the graph? Bodies are compiled anew for other sizes. A
// graph has to be rewritten once more when other sizes come, and then is to serve them all.
bool sizes_are_fixed();
// Is a less than b?
bool ask_fewer_bytes(const ByteCount& a, const ByteCount& b);

}  // namespace hybridnet
