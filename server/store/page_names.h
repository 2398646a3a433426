// Which table or index a page of a database belongs to, as far as it can still be told. Private to
// the store.

#ifndef SERVER_STORE_PAGE_NAMES_H_
#define SERVER_STORE_PAGE_NAMES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "server/store/sqlite.h"

namespace assay::store {

// The names of `pages`, by number; a page that no tree leads to is missing. Reads the whole
// database once. `db` is OpenMode::kUnchecked: a page with wrong bytes mostly still has its place.
std::map<uint32_t, std::string> NamesOfPages(Db* db, const std::set<uint32_t>& pages);

}  // namespace assay::store

#endif  // SERVER_STORE_PAGE_NAMES_H_
