// Who asks, by which token, and what he was answered: tokens, and requests that may be repeated.

#ifndef SERVER_CORE_REQUEST_H_
#define SERVER_CORE_REQUEST_H_

#include <cstdint>
#include <string>
#include <tuple>

#include "absl/strings/string_view.h"

#include "server/core/id.h"

namespace assay::core {

enum class TokenKind { kAccess, kEnrol };

// The secret itself is never here, only its hash.
struct Token {
  TokenId id;
  TokenKind kind = TokenKind::kAccess;
  std::string role;
  std::string principal;  // whom it stands for; the worker's name for kEnrol, empty: any worker
  std::string organization;
  std::string secret_sha256;  // hexadecimal
  int64_t created_at_us = 0;
  int64_t expires_at_us = 0;
  bool is_revoked = false;  // or used, for kEnrol
  int64_t revoked_at_us = 0;
  TokenId made_by;            // of a browser's session: by whose bearer; revoked with it
  bool is_forgotten = false;  // lives in the store alone from the next commit on
  bool operator==(const Token&) const = default;
};

// As what a principal acts. Two of the same name in different organisations are different people.
struct Standing {
  std::string role;          // submitter
  std::string organization;  // of a submitter; empty otherwise
  bool operator==(const Standing&) const = default;
};

// Names a request of a principal.
struct RequestKey {
  Standing standing;
  std::string principal;
  std::string request_id;

  // Distinct for distinct keys: the order of a map.
  auto Parts() const {
    return std::tie(standing.role, standing.organization, principal, request_id);
  }
  bool operator==(const RequestKey&) const = default;
  bool operator<(const RequestKey& other) const { return Parts() < other.Parts(); }
};

// Where history comes from. Each source is imported once, whoever asks.
struct ImportSource {
  std::string round;
  std::string path;

  auto operator<=>(const ImportSource&) const = default;
};

// What a request has made, for who asks again.
struct AnsweredRequest {
  std::string made;   // e-42, t-7
  int64_t at_us = 0;  // when
  bool operator==(const AnsweredRequest&) const = default;
};

absl::string_view ToString(TokenKind kind);

}  // namespace assay::core

#endif  // SERVER_CORE_REQUEST_H_
