# cairn_bench and the packages that only it needs.
if(CAIRN_BUILD_PEERS STREQUAL "AUTO")
  set(needed QUIET)
else()
  set(needed REQUIRED)
endif()
find_package(RocksDB ${needed})
find_package(libcuckoo ${needed})
find_package(benchmark ${needed})
find_path(CAIRN_XENIUM_INCLUDE xenium/vyukov_hash_map.hpp ${needed})
if(NOT (RocksDB_FOUND AND libcuckoo_FOUND AND benchmark_FOUND AND CAIRN_XENIUM_INCLUDE))
  return()
endif()

add_executable(
  cairn_bench
  cairn_bench.cpp
  device/rows.cpp
  harness/callgrind.cpp
  harness/contest.cpp
  harness/hollow_device.cpp
  harness/huge_pages.cpp
  harness/keys.cpp
  harness/single.cpp
  harness/table.cpp
  harness/team.cpp
  harness/wakes.cpp
  suite_catalog.cpp
  suite_copy.cpp
  suite_eviction.cpp
  suite_floors.cpp
  suite_index.cpp
  suite_plan.cpp
  suite_pool.cpp
  suite_queue.cpp
  suite_replay.cpp)
cairn_configure_target(cairn_bench)
target_include_directories(cairn_bench PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(cairn_bench PRIVATE cairn_replay_parts RocksDB::rocksdb-shared
                                          libcuckoo::libcuckoo benchmark::benchmark TBB::tbb)
# GCC 12 takes a null block of moodycamel's queue for one that is read.
set_source_files_properties(
  suite_floors.cpp suite_pool.cpp
  PROPERTIES COMPILE_OPTIONS "$<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>")
# What waking other threads costs is counted apart: see harness/wakes.hpp.
target_link_options(cairn_bench PRIVATE -Wl,--wrap=_ZN5cairn4sync8wake_allERKSt6atomicIjE)

# Each suite in a small size: what it finds means nothing, but it runs, and its rows are whole. And
# what is drawn of such rows.
if(CAIRN_BUILD_TESTS)
  enable_testing()
  foreach(suite IN ITEMS index pool eviction catalog queue plan copy replay floors)
    add_test(NAME Bench.${suite} COMMAND ${PROJECT_SOURCE_DIR}/tests/bench_rows
                                         $<TARGET_FILE:cairn_bench> ${suite})
    set_tests_properties(Bench.${suite} PROPERTIES LABELS bench TIMEOUT 120)
  endforeach()
  add_test(NAME Bench.plot COMMAND ${PROJECT_SOURCE_DIR}/tests/bench_plot
                                   ${CMAKE_CURRENT_SOURCE_DIR}/harness/plot.py)
  set_tests_properties(Bench.plot PROPERTIES LABELS bench TIMEOUT 60)
endif()
