// A rule set as a file: JSON that holds every rule of a round, for freezing a round and for judging
// by it later, whatever the programs have built in by then.
//
//   {"schema": "assay.rule_pack/v2",
//    "round": {"name": "hpc-3.0.0", ..., "benchmarks": [...], "configs": [...]},
//    "digest": "<SHA-256 of the round's canonical form>",
//    "signature": {"algorithm": "Ed25519", "value": "<base64>"}}
//
// The signature is over PackMessage of the round: its texts are signed too, the digest covers only
// what judges. The built-in rounds are such files, unsigned (common/rules/rounds/).
//
// Version 1 did not have what used to be known by a round's name: how runs count, the package's
// folders, the reference's convergence. Such packs are still read and judge as they did.

#ifndef COMMON_RULES_PACK_H_
#define COMMON_RULES_PACK_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/json_value.h"
#include "common/rules/ruleset.h"

namespace assay::rules {

inline constexpr char kPackSchema[] = "assay.rule_pack/v2";
inline constexpr char kFormerPackSchema[] = "assay.rule_pack/v1";

// The whole of a rule set as JSON.
JsonValue RuleSetToJson(const RuleSetData& data);

// The way back. INVALID_ARGUMENT, with the path of the member, for anything missing, unknown or of
// wrong type, and for operands that a condition cannot work with.
absl::StatusOr<RuleSetData> RuleSetFromJson(const JsonValue& json);

// The canonical form: RuleSetToJson without what does not judge (label, paper, section, remedy,
// reference_values), as one line. Changes exactly if what the rules demand does.
std::string CanonicalText(const RuleSetData& data);

// The same as version 1 had it.
std::string FormerCanonicalText(const RuleSetData& data);

// The same of a single rule.
std::string CanonicalText(const KeyRule& rule);

// A pack file's content as read, its digest checked, its signature not.
struct Pack {
  RuleSetData data;
  std::string digest;     // as the file has it
  std::string message;    // what was signed
  std::string signature;  // raw bytes; empty: not signed
};

// What a signature of `data` is over.
std::string PackMessage(const RuleSetData& data);

// The file's content. `signature` is raw bytes over PackMessage(data).
std::string WritePack(const RuleSetData& data, absl::string_view signature);

// With `source` in the message: INVALID_ARGUMENT if `text` is no pack, DATA_LOSS if its digest is
// not that of its rules.
absl::StatusOr<Pack> ReadPack(absl::string_view text, absl::string_view source);

}  // namespace assay::rules

#endif  // COMMON_RULES_PACK_H_
