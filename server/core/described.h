// How a list of a record's members (description.h) is written, and the proof that it is complete.

#ifndef SERVER_CORE_DESCRIBED_H_
#define SERVER_CORE_DESCRIBED_H_

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace assay::core {

template <typename T, typename U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

// How the API has a member.
struct Shown {
  enum class How {
    kAsMember,  // as a field
    kNot,       // not, or as convert.h alone makes it
    kInPlace,   // its own members are fields of the message
  };
  How how = How::kAsMember;
  const char* name = nullptr;   // the field's; nullptr: as in databases
  const char* collection = "";  // "workers/": of which the field is a resource name
};
inline constexpr Shown kNotShown = {.how = Shown::How::kNot};
inline constexpr Shown kInPlace = {.how = Shown::How::kInPlace};
constexpr Shown ShownAs(const char* name, const char* collection = "") {
  return {.name = name, .collection = collection};
}

// Counts what a list names.
struct MemberCounter {
  size_t count = 0;

  template <typename T>
  constexpr void operator()(const char*, T&, Shown = {}) {
    ++count;
  }
  template <typename T>
  constexpr void Added(const char*, T&, Shown = {}) {
    ++count;
  }
  template <typename T>
  constexpr void Elsewhere(T&) {
    ++count;
  }
  template <typename T>
  constexpr void Former(T&) {}
};

// Stands for a value of any type where a struct is filled in.
struct AnyMember {
  template <typename T>
  requires(!std::same_as<T, AnyMember>) operator T() const;
};

template <typename T, size_t... kIndices>
consteval bool HasMembers(std::index_sequence<kIndices...>) {
  return requires {
    T{(static_cast<void>(kIndices), AnyMember())...};
  };
}

// The members of a struct without constructors.
template <typename T, size_t kCount = 0>
consteval size_t MemberCount() {
  if constexpr (HasMembers<T>(std::make_index_sequence<kCount + 1>())) {
    return MemberCount<T, kCount + 1>();
  } else {
    return kCount;
  }
}

// Is never made: only its members are named.
template <typename T>
extern T unmade;

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#endif
// True if the list of T's members leaves none out.
template <typename T>
consteval bool IsDescribed() {
  MemberCounter counter;
  Fields(counter, unmade<T>);
  return counter.count == MemberCount<T>();
}
#ifdef __clang__
#pragma clang diagnostic pop
#endif

}  // namespace assay::core

#endif  // SERVER_CORE_DESCRIBED_H_
