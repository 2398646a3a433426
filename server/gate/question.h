// What somebody without a certificate may ask over HTTPS, and what is said in reply.

#ifndef SERVER_GATE_QUESTION_H_
#define SERVER_GATE_QUESTION_H_

#include <functional>
#include <string>

#include "absl/functional/any_invocable.h"

namespace assay::gate {

struct Question {
  std::string method;  // "POST"
  std::string target;  // "/v1/access-certificate"
  std::string token;   // of the header "authorization: Bearer <token>"; empty if there is none
  std::string body;
  std::string peer;  // the caller's address, for the log
};

struct Answer {
  int http_status = 200;
  std::string body;  // text
};

// Called once, from any thread.
using OnAnswer = absl::AnyInvocable<void(Answer)>;
// Thread-safe; must not block.
using OnQuestion = std::function<void(Question, OnAnswer)>;

}  // namespace assay::gate

#endif  // SERVER_GATE_QUESTION_H_
