// Values that nobody can guess, from the kernel's generator. For tokens, request ids and the seeds
// that a run starts from; everything else uses the reproducible streams of common/random.h.

#ifndef COMMON_SECRET_H_
#define COMMON_SECRET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay {

// `count` bytes of getrandom(2). Thread-safe; may block only during the first seconds after boot.
std::string RandomBytes(size_t count);

// A bearer token: "assay_" and 32 characters of a-z2-7 (RFC 4648 base32, lower case), 160 bits.
// The prefix lets scanners of secrets recognise one that leaked.
std::string MakeToken();

// What is stored of a token: SHA-256 as 64 hexadecimal digits. Tokens have 160 random bits, so
// neither salt nor a slow hash is needed.
std::string TokenHash(const std::string& token);

// A random UUID (RFC 9562, version 4), for request_id and incarnation.
std::string MakeUuid();

// `count` distinct seeds above 0 and below 2^31, which trainers and the logs of others hold in an
// int; in no order.
std::vector<int64_t> MakeSeeds(int count);

}  // namespace assay

#endif  // COMMON_SECRET_H_
