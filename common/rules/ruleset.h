// A rule set: everything a round demands of a log, as plain data.
//
// It has the shape of the reference checker: a queue of configs, each a table of rules by key,
// begins with "common" and grows as records name a division, a benchmark, an optimizer. Nothing
// here decides anything; check.h does. (Rules specification, sections 2 and 3.)

#ifndef COMMON_RULES_RULESET_H_
#define COMMON_RULES_RULESET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "common/json_value.h"

namespace assay::rules {

// How often a key must occur.
enum class Occurrence {
  kOptional,
  kExactlyOne,    // once; more often with equal values is a warning
  kAtLeastOne,    //
  kAtLeastOneOr,  // the key or one of the rule's alternatives
};

// What a config remembers from one record to the next.
enum class Flag { kInitStarted, kInitStopped, kRunStarted, kRunStopped, kStagingStarted };
inline constexpr int kFlagCount = 5;

// One test of one record, with Python's meaning: a wrong type is an error, which fails it too.
struct Condition {
  enum class Kind {
    kNotEqual,         // value != operands[0]; never an error
    kOneOf,            // value equals one of operands; never an error
    kOneOfSet,         // the same, but a list or object as value is an error
    kGreater,          // value > operands[0], numbers only; likewise the next three
    kAtLeast,          //
    kLess,             //
    kAtMost,           //
    kClose,            // value within a relative 1e-9 of operands[0]
    kLength,           // len(value) == operands[0]
    kHasLength,        // len(value) exists
    kEachGreater,      // the value, or each element of it, > operands[0]
    kEachAtMost,       // likewise
    kEachLess,         // likewise
    kTrue,             // bool(value)
    kMetadataHas,      // metadata has `member`
    kMetadataGreater,  // metadata[member] > operands[0]
    kFlagSet,          // an error while the flag has never been touched
    kFlagClear,        // the same
    kInitWithin,       // time - first init_start < operands[0] ms
  };
  Kind kind = Kind::kNotEqual;
  std::vector<JsonValue> operands;
  std::string member;
  Flag flag = Flag::kInitStarted;
};

// What a record of a key does after its tests, whether they held or not.
struct Effect {
  enum class Kind {
    kSetFlag,
    kNoteInitStart,  // remember the earliest time
    kEnqueue,        // check config `prefix` + str(value) + `suffix` too
  };
  Kind kind = Kind::kSetFlag;
  Flag flag = Flag::kInitStarted;
  std::string prefix, suffix;
  bool lower_case = false;           // value.lower(): an error for what is no string
  std::optional<JsonValue> only_if;  // enqueue only if the value equals this
};

// What a rule is about; decides which rules a submission can be judged by before it runs.
enum class Topic { kRecord, kTiming, kHyperparameter, kQuality, kSystem, kData };

struct KeyRule {
  std::string id;  // stable over all rounds, as in "R-HP-004"
  std::string key;
  Occurrence occurrence = Occurrence::kOptional;
  std::vector<std::string> alternatives;
  std::vector<Condition> checks;     // every record must pass all
  std::vector<Condition> some_line;  // at least one record must pass all; empty: no such demand
  std::vector<Effect> effects;
  Topic topic = Topic::kRecord;
  std::string section;  // of the rules document
  std::string remedy;   // what to do about a violation
};

struct Config {
  std::string name;        // as in "closed_cosmoflow"
  bool has_flags = false;  // starts with all flags but kStagingStarted known and clear
  std::vector<KeyRule> rules;
};

// In what the reference's way to the target is counted: what a log's epoch_num says.
enum class ReferenceUnit { kEpochs, kSamples };

// What the reference did with one batch size, as published with the round (rules specification,
// appendix B). rcp.h derives what is compared with.
struct ReferenceRecord {
  std::string name;            // "cosmoflow_ref_64"
  int64_t batch_size = 0;      // global
  std::vector<double> epochs;  // to convergence, one for each run; in the benchmark's unit

  bool operator==(const ReferenceRecord&) const = default;
};

struct Benchmark {
  std::string name;
  int runs_required = 0;
  std::string quality_key;
  bool lower_is_better = true;
  double target = 0;
  // What the round fixes of its runs beyond the logged hyperparameters, in the trainer's names.
  JsonObject fixed;
  JsonObject reference_values;  // the reference's hyperparameters; no rule judges by them
  ReferenceUnit reference_unit = ReferenceUnit::kEpochs;
  std::vector<ReferenceRecord> reference_points;  // by rising batch size; may be empty
  // Demands of the document that no log shows or the checker skips; judged on submission only.
  std::vector<KeyRule> document_rules;
};

// How well a first touch of the data was seen, the weakest first (docs/reviewer.md has what each
// means).
enum class Assurance { kSelfReported, kObserved, kProven };

// Which runs have a time to solution; the others rank behind the slowest.
enum class Counts {
  kCompliant,      // whose log passes the check
  kReachedTarget,  // that reached the target, whether or not the log passes
};

// How the runs of a set become its score.
struct Scoring {
  Counts counts = Counts::kCompliant;
  int failed_runs_allowed = 1;  // of a set, by olympic scoring
  bool operator==(const Scoring&) const = default;
};

struct RuleSetData {
  std::string name;            // "hpc-3.0.0"
  std::string label;           // one line for people
  std::string paper;           // where its results are analysed; empty: nowhere
  bool is_mlperf = true;       // false: results must not be called MLPerf results
  std::string official_round;  // by which the official tools judge it; empty: by none
  // A package has SYSTEM/strong|weak/BENCHMARK, and its sets are judged for seeds and convergence.
  bool scaling_folders = true;
  bool staging_on_the_clock = true;  // staging_start must come after run_start
  int64_t init_limit_ms = 0;
  // A first pass over the training data that did not come from storage is a violation (R-IOB-001)
  // where nothing explains it; else a warning.
  bool first_pass_from_storage = false;
  // Data in memory when the clock starts, or after the caches were reset, is a violation
  // (R-TIM-004, R-TIM-005, R-TIM-007); else a warning.
  bool data_cold_at_start = false;
  // What the first touch on every node has to be, at least (R-TIM-008).
  Assurance first_touch_assurance = Assurance::kSelfReported;
  Scoring scoring;
  std::vector<Benchmark> benchmarks;
  std::vector<Config> configs;  // the first is where checking starts
};

// A rule set that can be looked up by key. Immutable, so safe to share between threads.
class RuleSet {
 public:
  explicit RuleSet(RuleSetData data);
  // Lookups hold pointers into the data.
  RuleSet(const RuleSet&) = delete;
  RuleSet& operator=(const RuleSet&) = delete;

  const RuleSetData& data() const { return data_; }
  const std::string& name() const { return data_.name; }
  const Scoring& scoring() const { return data_.scoring; }
  // SHA-256 over CanonicalText (pack.h): two sets with equal digests judge alike.
  const std::string& digest() const { return digest_; }
  // True for digest(), and for the one that entries accepted before packs of version 2 have.
  bool IsKnownAs(absl::string_view digest) const {
    return digest == digest_ || digest == former_digest_;
  }

  // The number of a key that some rule or fact is about, from 0; -1 for others.
  int KeyNumber(absl::string_view key) const {
    const auto found = key_numbers_.find(key);
    return found == key_numbers_.end() ? -1 : found->second;
  }
  int key_count() const { return static_cast<int>(key_numbers_.size()); }

  // A config's position in data().configs, or -1.
  int ConfigNumber(absl::string_view name) const;
  // The rule of a config for a key number, or null.
  const KeyRule* FindRule(int config, int key) const {
    return rules_[static_cast<size_t>(config)][static_cast<size_t>(key)];
  }
  // The configs that have a rule for a key number, in order.
  const std::vector<int>& ConfigsWith(int key) const {
    return configs_with_[static_cast<size_t>(key)];
  }
  // True if a rule or a fact looks into the metadata of the key's records.
  bool UsesMetadata(int key) const { return uses_metadata_[static_cast<size_t>(key)]; }
  // Null if the round does not have the benchmark.
  const Benchmark* FindBenchmark(absl::string_view name) const;
  // The rule with this id, or null.
  const KeyRule* FindRuleById(absl::string_view id) const;

 private:
  void Index();

  RuleSetData data_;
  std::string digest_, former_digest_;
  absl::flat_hash_map<std::string, int> key_numbers_;
  std::vector<std::vector<const KeyRule*>> rules_;  // [config][key]
  std::vector<std::vector<int>> configs_with_;      // [key]
  std::vector<bool> uses_metadata_;                 // [key]
};

// The condition in words: "one of "sgd", "SGD"", "more than 0".
std::string Describe(const Condition& condition);
// All of them, joined by "and".
std::string DescribeAll(const std::vector<Condition>& conditions);

// What `rule` wants of a line, in words; "present" if only that there is one.
std::string Expectation(const KeyRule& rule);

// What `rule` wants of the log: how often the key must occur, and Expectation.
std::string Demand(const KeyRule& rule);

}  // namespace assay::rules

#endif  // COMMON_RULES_RULESET_H_
