#include "common/rules/rcp_tables.h"

namespace assay::rules {
namespace {

using Records = std::vector<ReferenceRecord>;

Records Cosmoflow(bool has_batch_32) {
  Records records;
  if (has_batch_32) {
    records.push_back({"cosmoflow_ref_32", 32, {8, 8, 9, 8, 6, 8, 6, 6, 7, 8, 8, 8, 9, 8, 7, 8, 6,
                                                9, 8, 8, 8, 8, 9, 8, 9, 8, 8, 8, 8, 8, 8, 8, 8}});
  }
  const Records shared = {
      {"cosmoflow_ref_64", 64, {19, 18, 20, 17, 18, 19, 18, 18, 18, 18,
                                18, 18, 18, 19, 18, 18, 18, 18, 18, 20}},
      {"cosmoflow_ref_128", 128, {16, 18, 18, 18, 18, 17, 18, 18, 18, 18,
                                  18, 18, 17, 18, 18, 18, 19, 18, 18, 18}},
      {"cosmoflow_ref_512", 512, {22, 23, 23, 24, 24, 21, 23, 23, 23, 23,
                                  24, 23, 23, 21, 23, 23, 21, 23, 23, 23}},
      {"cosmoflow_ref_1024", 1024, {42, 38, 42, 40, 40, 39, 43, 37, 39, 37,
                                    43, 39, 38, 42, 40, 42, 42, 38, 36, 43}},
  };
  records.insert(records.end(), shared.begin(), shared.end());
  return records;
}

// Round 2.0 measured batch 128 anew.
Records Deepcam(bool has_new_128) {
  Records records;
  if (has_new_128) {
    records.push_back(
        {"deepcam_ref_128", 128, {7, 7, 7, 7, 7, 7, 7, 8, 8, 6, 7, 8, 7, 6, 6, 7, 7, 6, 7, 7}});
  } else {
    records.push_back({"deepcam_ref_128", 128, {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}});
  }
  const Records shared = {
      {"deepcam_ref_256", 256, {9, 9, 9, 9, 9, 9, 9, 9, 9, 9}},
      {"deepcam_ref_512", 512, {11, 11, 11, 11, 11, 10, 16, 12, 11, 11, 11, 10, 11, 11,
                                11, 10, 11, 11, 11, 11, 11, 11, 11, 12, 11, 11, 11, 11,
                                13, 10, 11, 13, 11, 11, 11, 10, 14, 10, 10, 10}},
      {"deepcam_ref_1024", 1024, {13, 13, 12, 13, 13, 13, 14, 13, 13, 13}},
      {"deepcam_ref_2048", 2048, {23, 23, 22, 23, 22, 26, 22, 22, 24, 22}},
  };
  records.insert(records.end(), shared.begin(), shared.end());
  return records;
}

Records Oc20() {
  return {
      {"oc20_ref_256", 256, {20, 18, 20, 20, 22, 18, 19, 19, 21, 21}},
      {"oc20_ref_1024", 1024, {23, 25, 22, 25, 25, 25, 25, 24, 23, 25}},
      {"oc20_ref_2048", 2048, {33, 32, 33, 33, 33, 34, 33, 33, 30, 33}},
  };
}

// In samples, as OpenFold logs them, not epochs.
Records Openfold() {
  return {
      {"openfold_ref_128", 128, {97280, 87040, 81920, 92160, 92160, 87040,  92160,
                                 81920, 81920, 81920, 71680, 92160, 107520, 81920,
                                 92160, 81920, 87040, 81920, 97280, 107520}},
      {"openfold_ref_256", 256, {153600, 153600, 122880, 143360, 133120, 143360, 122880,
                                 122880, 112640, 112640, 133120, 153600, 122880, 133120,
                                 122880, 153600, 143360, 133120, 133120, 112640}},
  };
}

}  // namespace

std::vector<ReferenceRecord> ReferenceRecords(absl::string_view rule_set,
                                              absl::string_view benchmark) {
  const bool is_first = rule_set == "hpc-1.0.0";
  const bool is_last = rule_set == "hpc-3.0.0";
  if (!is_first && !is_last && rule_set != "hpc-2.0.0") return {};
  if (benchmark == "cosmoflow") return Cosmoflow(!is_first);
  if (benchmark == "deepcam") return Deepcam(!is_first);
  if (benchmark == "oc20") return Oc20();
  if (benchmark == "openfold" && is_last) return Openfold();
  return {};
}

}  // namespace assay::rules
