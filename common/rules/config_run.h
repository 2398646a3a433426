// One config walking over the records of a log (rules specification, section 2.2, steps 2 to 7).

#ifndef COMMON_RULES_CONFIG_RUN_H_
#define COMMON_RULES_CONFIG_RUN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/rules/condition.h"
#include "common/rules/finding.h"
#include "common/rules/ruleset.h"

namespace assay::rules {

// Not thread-safe. The rule set must outlive it.
class ConfigRun {
 public:
  ConfigRun(const RuleSet* rules, int config);

  // Takes the next record; the result is what it violates for certain.
  std::vector<Finding> Add(const Record& record);

  // What the config says of the records so far.
  struct Outcome {
    std::vector<Finding> by_key;          // at most one per key; a later config may replace them
    std::vector<Finding> final_findings;  // no later config replaces them
    std::vector<Finding> warnings;        // at most one per key
    bool crashed = false;                 // the reference tool died; nothing after counts
  };
  Outcome Finish() const;

  int config() const { return config_; }
  // Names of further configs to check, each once, in the order in which they were asked for last.
  // An unknown one is the last: the reference dies on it, so what follows never counts.
  const std::vector<std::string>& enqueued() const { return enqueued_; }

 private:
  struct KeyState {
    int64_t count = 0;
    std::optional<std::string> first;   // value of the first record, as JSON
    std::optional<Finding> difference;  // set once a value differs from the first
    std::optional<Finding> failure;     // the latest failed check
    int64_t successes = 0;              // records that meet some_line
    int64_t last_line = 0;              // of the last record
    JsonValue last;                     // and its value, where there is a some_line
    bool closed = false;                // no checks any more
  };

  const std::vector<KeyRule>& rules() const;
  void CheckRecord(const KeyRule& rule, const Record& record, KeyState* state,
                   std::vector<Finding>* found);
  bool CheckSomeLine(const KeyRule& rule, const Record& record, KeyState* state,
                     std::vector<Finding>* found);
  // False: Python raises an exception.
  bool Apply(const Effect& effect, const Record& record);
  void CountValue(const KeyRule& rule, const Record& record, KeyState* state,
                  std::vector<Finding>* found);
  void FinishRule(const KeyRule& rule, const KeyState& state, Outcome* outcome) const;
  void FinishAlternatives(const KeyRule& rule, Outcome* outcome) const;
  void Enqueue(std::string name);
  bool Occurred(const std::string& key) const;

  const RuleSet* rule_set_;
  int config_;
  State state_;
  std::vector<KeyState> keys_;  // by position of the rule in the config
  std::vector<std::string> enqueued_;
  bool asked_for_unknown_ = false;
  std::optional<Finding> crash_;
};

}  // namespace assay::rules

#endif  // COMMON_RULES_CONFIG_RUN_H_
