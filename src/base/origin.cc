#include "base/origin.h"

namespace hybridnet {

thread_local const OriginScope* OriginScope::innermost_ = nullptr;

ErrorFields OriginScope::current() {
  ErrorFields fields;
  if (innermost_ != nullptr) fields = innermost_->describe_(innermost_->plan_, *innermost_->instruction_);
  if (!fields.where.known()) fields.where = current_location();
  return fields;
}

OriginScope::Place OriginScope::current_graph_position() {
  Place place;
  if (innermost_ != nullptr) place = innermost_->locate_(innermost_->plan_, *innermost_->instruction_);
  if (!place.where.known()) place.where = current_location();
  return place;
}

}  // namespace hybridnet
