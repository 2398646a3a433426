# The three ways to declare a target, and the flags for code that we write.

# Generated code links none of this and so gets no warnings.
add_library(assay_flags INTERFACE)
target_include_directories(assay_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(assay_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast
  # Designated initialisers name what differs from the default, and nothing else.
  -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  # Log records name the source file below the repository, whatever machine built it.
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=
  $<$<BOOL:${ASSAY_COVERAGE}>:--coverage>)
target_link_options(assay_flags INTERFACE $<$<BOOL:${ASSAY_COVERAGE}>:--coverage>)

option(ASSAY_TOGETHER "Compile several sources as one where a target allows it" OFF)
function(assay_compile_together name is_allowed)
  if(ASSAY_TOGETHER AND is_allowed)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

# Of the headers of `name`, preset clang compiles alone those that no source of their own name includes
# first: tests/tidy demands that of such sources, so compiling these proves that their headers stand alone.
function(assay_verify_headers name)
  get_target_property(headers ${name} HEADER_SET)
  set(alone "")
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "\\.h$" ".cc" source ${header})
    if(NOT EXISTS ${source})
      list(APPEND alone ${header})
    endif()
  endforeach()
  if(NOT alone)
    set_target_properties(${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS OFF)
    return()
  endif()
  target_sources(${name} PUBLIC FILE_SET alone TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${alone})
  set_target_properties(${name} PROPERTIES INTERFACE_HEADER_SETS_TO_VERIFY alone)
endfunction()

# assay_library(<name> SOURCES <.cc> HEADERS <.h> DEPS <targets> PRIVATE_DEPS <targets> [TOGETHER])
#   DEPS: what the headers include; PRIVATE_DEPS: what only the sources include.
#   TOGETHER: with ASSAY_TOGETHER, eight sources are compiled as one, because their headers cost more
#   than themselves; so no two sources may give one name to different things (ADR 0103).
function(assay_library name)
  cmake_parse_arguments(ARG "TOGETHER" "" "SOURCES;HEADERS;DEPS;PRIVATE_DEPS" ${ARGN})
  list(TRANSFORM ARG_HEADERS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  add_library(${name} STATIC)
  target_sources(${name} PRIVATE ${ARG_SOURCES}
    PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
  # At the end of this folder, when the folders below it have added their headers.
  cmake_language(EVAL CODE "cmake_language(DEFER CALL assay_verify_headers ${name})")
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} assay_flags PRIVATE ${ARG_PRIVATE_DEPS})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  assay_compile_together(${name} ${ARG_TOGETHER})
endfunction()

# Sets `out` to rows {"name", "content"} of the files that `pattern` names, in order of their names,
# for an array of C++ in a configured source. A new file is a new row at the next build.
function(assay_embed out pattern)
  file(GLOB paths CONFIGURE_DEPENDS ${pattern})
  list(SORT paths)
  set(rows "")
  foreach(path IN LISTS paths)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    get_filename_component(name ${path} NAME)
    file(READ ${path} content)
    string(APPEND rows "    {\"${name}\", R\"text(${content})text\"},\n")
  endforeach()
  set(${out} "${rows}" PARENT_SCOPE)
endfunction()

# assay_binary(<name> SOURCES <.cc> DEPS <targets>): a program in build/<preset>/bin.
function(assay_binary name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} assay_flags)
endfunction()

# The tests that ThreadSanitizer watches: `cmake --build --preset tsan` builds these and no others.
add_custom_target(threaded_tests)

# assay_test(<name> SOURCES <.cc> DEPS <targets> [LABELS <unit|slow|...>] [TIMEOUT <s>] [THREADED]
#            [ALONE])
#   THREADED: has threads of ours and links no gRPC, so ThreadSanitizer sees all of it (ADR 0100).
#   ALONE: its sources are not compiled together, as those of other tests are (see assay_library).
function(assay_test name)
  cmake_parse_arguments(ARG "THREADED;ALONE" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} assay_flags GTest::gmock GTest::gtest_main)
  # What tests is not what is timed: a third less to compile (ADR 0104).
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(NOT ARG_ALONE)
    assay_compile_together(${name} ON)
  endif()
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 900)  # for a hang: a busy machine and sanitizers are several times slower
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(ARG_THREADED)
    list(APPEND ARG_LABELS threaded)
    add_dependencies(threaded_tests ${name})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
    ENVIRONMENT "ASSAY_BIN_DIR=${PROJECT_BINARY_DIR}/bin")
endfunction()
