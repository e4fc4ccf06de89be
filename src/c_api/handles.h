// The objects behind the handles of c_api.h. A handle is no pointer but a kind, a place in a table and a generation:
// a handle that was freed, belongs to another kind of object or was never given out is an error, not a crash.
#pragma once

#include <memory>
#include <utility>

namespace hybridnet::c_api {

enum class HandleKind : unsigned char { kNone, kArray, kModel, kOp, kSession, kBatcher, kTrainer };

// What a handle stands for. A class derived from it has a member `static constexpr HandleKind kKind`.
class Handled {
 public:
  virtual ~Handled() = default;
};

namespace detail {
struct Slot;
void* add(HandleKind kind, std::unique_ptr<Handled> object);
// Keeps the object alive until unpin(), whoever frees the handle. Throws ValueError for handles that are none.
Slot* pin(const void* handle, HandleKind kind, const char* function, const char* argument);
void unpin(Slot* slot) noexcept;
Handled* object_of(const Slot* slot);
void free(const void* handle, HandleKind kind, const char* function);
}  // namespace detail

// A new handle, which the caller of the C function frees.
template <typename T>
void* make_handle(std::unique_ptr<T> object) {
  return detail::add(T::kKind, std::move(object));
}

// Frees the handle; the object dies when no call uses it any more. NULL is allowed; throws ValueError for others that
// are no handles.
template <typename T>
void free_handle(const void* handle, const char* function) {
  detail::free(handle, T::kKind, function);
}

// The object of a handle, alive as long as this is. Throws ValueError naming function and argument.
template <typename T>
class Pinned {
 public:
  Pinned(const void* handle, const char* function, const char* argument)
      : slot_(detail::pin(handle, T::kKind, function, argument)) {}
  ~Pinned() { detail::unpin(slot_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  T* operator->() const { return static_cast<T*>(detail::object_of(slot_)); }
  T& operator*() const { return *operator->(); }

 private:
  detail::Slot* slot_;
};

}  // namespace hybridnet::c_api
