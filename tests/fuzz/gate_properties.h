// What must hold at the coordinator's door whatever strangers send. Shared by the smoke test, which
// mutates a small corpus, and by the libFuzzer targets.

#ifndef TESTS_FUZZ_GATE_PROPERTIES_H_
#define TESTS_FUZZ_GATE_PROPERTIES_H_

#include "absl/strings/string_view.h"

namespace assay::testing {

// A client's bytes of HTTP/2, preface first. How they are cut into pieces changes no verdict, and
// what passes has no header block that is longer, in more frames or more interrupted than allowed.
// The same bytes sent to somebody who is refused get one short answer.
void CheckFrames(absl::string_view bytes);

// What a stranger says after the handshake: at most one question is asked for it, within bounds,
// and whatever comes back is one reply of HTTP/1.1. The visit ends with the connection.
void CheckVisit(absl::string_view bytes);

// A certificate request: refused, or made into a certificate that says what we say.
void CheckCertificateRequest(absl::string_view bytes);

}  // namespace assay::testing

#endif  // TESTS_FUZZ_GATE_PROPERTIES_H_
