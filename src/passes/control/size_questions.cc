#include "passes/control/size_questions.h"

#include <algorithm>
#include <map>

#include "hybridnet/pass.h"

namespace hybridnet {
namespace {

thread_local SizeQuestions* remembered = nullptr;
thread_local GraphSizes sizes_of_graph = GraphSizes::kMayVary;

bool is_in_body() { return !PipelineScope::current().place.empty(); }

SizeQuestions* remembering() { return is_in_body() ? nullptr : remembered; }

}  // namespace

int64_t ByteCount::total() const {
  int64_t bytes = 0;
  for (const TensorSpec* spec : specs_) bytes += spec->bytes();
  return bytes;
}

int SizeQuestions::number_of(const Shape& shape) {
  const auto [found, is_new] = numbers_.try_emplace(shape, static_cast<int>(shapes_.size()));
  if (is_new) shapes_.push_back(shape);
  return found->second;
}

void SizeQuestions::add(std::vector<Shape> shapes, Question question, bool answer) {
  Asked asked{{}, std::move(question), answer};
  for (const Shape& shape : shapes) asked.shapes.push_back(number_of(shape));
  asked_.push_back(std::move(asked));
}

void SizeQuestions::add_fewer(const ByteCount& a, const ByteCount& b) {
  std::map<int, int64_t> factors;
  for (const TensorSpec* spec : a.specs()) factors[number_of(spec->shape)] += dtype_size(spec->dtype);
  for (const TensorSpec* spec : b.specs()) factors[number_of(spec->shape)] -= dtype_size(spec->dtype);
  Terms terms;
  for (const auto& [shape, factor] : factors)
    if (factor != 0) terms.emplace_back(shape, factor);
  if (!terms.empty()) comparisons_.emplace(std::move(terms), a.total() < b.total());
}

void SizeQuestions::add_read(const Shape& shape) { read_.insert(number_of(shape)); }

bool SizeQuestions::same_answers(const std::function<const Shape*(const Shape&)>& now) const {
  std::vector<Shape> shapes;
  for (const Shape& shape : shapes_) {
    const Shape* found = now(shape);
    if (!found) return false;
    shapes.push_back(*found);
  }
  for (const int shape : read_)
    if (!(shapes[static_cast<size_t>(shape)] == shapes_[static_cast<size_t>(shape)])) return false;
  const auto same_order = [&](const auto& comparison) {
    int64_t difference = 0;
    for (const auto& [shape, factor] : comparison.first)
      difference += factor * shapes[static_cast<size_t>(shape)].size();
    return (difference < 0) == comparison.second;
  };
  const auto same_answer = [&](const Asked& asked) {
    std::vector<Shape> given;
    for (const int shape : asked.shapes) given.push_back(shapes[static_cast<size_t>(shape)]);
    return asked.question(given) == asked.answer;
  };
  return std::all_of(comparisons_.begin(), comparisons_.end(), same_order) &&
         std::all_of(asked_.begin(), asked_.end(), same_answer);
}

SizeQuestionScope::SizeQuestionScope(SizeQuestions* questions, GraphSizes sizes)
    : before_(std::exchange(remembered, questions)), sizes_before_(std::exchange(sizes_of_graph, sizes)) {}

SizeQuestionScope::~SizeQuestionScope() {
  remembered = before_;
  sizes_of_graph = sizes_before_;
}

bool ask_sizes(std::vector<Shape> shapes, SizeQuestions::Question question) {
  const bool answer = question(shapes);
  if (SizeQuestions* questions = remembering()) questions->add(std::move(shapes), std::move(question), answer);
  return answer;
}

void note_shape_read(const Shape& shape) {
  if (SizeQuestions* questions = remembering()) questions->add_read(shape);
}

bool sizes_are_fixed() { return is_in_body() || sizes_of_graph == GraphSizes::kFixed; }

bool ask_fewer_bytes(const ByteCount& a, const ByteCount& b) {
  if (SizeQuestions* questions = remembering()) questions->add_fewer(a, b);
  return a.total() < b.total();
}

}  // namespace hybridnet
