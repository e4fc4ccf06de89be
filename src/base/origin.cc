#include "base/origin.h"

namespace hybridnet {

thread_local const OriginScope* OriginScope::innermost_ = nullptr;

ErrorFields OriginScope::current() {
  ErrorFields fields;
  if (innermost_ != nullptr) fields = innermost_->describe_(innermost_->plan_, *innermost_->instruction_);
  if (!fields.where.known()) fields.where = current_location();
  return fields;
}

SourceLocation OriginScope::current_line() {
  SourceLocation where;
  if (innermost_ != nullptr) where = innermost_->locate_(innermost_->plan_, *innermost_->instruction_);
  return where.known() ? where : current_location();
}

}  // namespace hybridnet
