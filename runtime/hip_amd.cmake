# Looks for a compiler of kernels for AMD: CMake's HIP language where it works (a current ROCm), else
# hipcc (Debian's, whose layout CMake does not know). Part of hip.cmake; says in CAIRN_HIP_MISSING what
# was not there.

# An installation that is not on the PATH.
find_program(CAIRN_HIPCC hipcc HINTS ENV HIP_PATH ENV ROCM_PATH PATHS /opt/rocm PATH_SUFFIXES bin
             DOC "AMD's wrapper of clang for HIP")
mark_as_advanced(CAIRN_HIPCC)
# What the search tells CMake through the environment is taken back below: other projects and the other
# platform must not find it there.
set(CAIRN_HIP_ENV_HIPCXX "$ENV{HIPCXX}")
set(CAIRN_HIP_ENV_PREFIX "$ENV{CMAKE_PREFIX_PATH}")
if(CAIRN_HIPCC AND NOT DEFINED CMAKE_HIP_COMPILER AND "$ENV{HIPCXX}" STREQUAL "")
  get_filename_component(CAIRN_HIP_ROOT ${CAIRN_HIPCC} REALPATH)
  get_filename_component(CAIRN_HIP_ROOT ${CAIRN_HIP_ROOT} DIRECTORY)
  get_filename_component(CAIRN_HIP_ROOT ${CAIRN_HIP_ROOT} DIRECTORY)
  foreach(compiler IN ITEMS lib/llvm/bin/clang++ llvm/bin/clang++)
    if(EXISTS ${CAIRN_HIP_ROOT}/${compiler})
      set(ENV{HIPCXX} ${CAIRN_HIP_ROOT}/${compiler})
      set(ENV{CMAKE_PREFIX_PATH} "${CAIRN_HIP_ROOT}:$ENV{CMAKE_PREFIX_PATH}")  # its packages
      break()
    endif()
  endforeach()
endif()

# The architectures of the caller, asked for before CMake puts its own guess in the same place.
if(NOT CAIRN_HIP_ARCHITECTURES AND CMAKE_HIP_ARCHITECTURES AND NOT CAIRN_HIP_KNOWN_ARCHITECTURES)
  set_property(CACHE CAIRN_HIP_ARCHITECTURES PROPERTY VALUE "${CMAKE_HIP_ARCHITECTURES}")
endif()

# Since CMake 3.28 the language is for either platform. On a machine with both, hipconfig may choose the
# other; who has chosen that himself is served by hipcc here.
if(NOT CMAKE_HIP_PLATFORM)
  set(CMAKE_HIP_PLATFORM amd)
endif()
set(CAIRN_HIP_LANGUAGE_FOUND OFF)
if(CMAKE_HIP_PLATFORM STREQUAL "amd")
  include(CheckLanguage)
  check_language(HIP)
  if(CMAKE_HIP_COMPILER)
    set(CAIRN_HIP_LANGUAGE_FOUND ON)
  endif()
endif()
if(CAIRN_HIP_LANGUAGE_FOUND)
  enable_language(HIP)
  find_package(hip CONFIG QUIET HINTS ${CMAKE_HIP_COMPILER_ROCM_ROOT})
  find_library(CAIRN_AMDHIP64 amdhip64 HINTS ${CMAKE_HIP_COMPILER_ROCM_ROOT}/lib
                                             ${hip_LIB_INSTALL_DIR})
  if(hip_FOUND AND CAIRN_AMDHIP64)
    set(CAIRN_HIP_LANGUAGE HIP)
    set(CAIRN_HIP_DEVICE_COMMAND ${CMAKE_HIP_COMPILER} -x hip --rocm-path=${CMAKE_HIP_COMPILER_ROCM_ROOT})
    set(CAIRN_HIP_FOUND "${CMAKE_HIP_COMPILER}")
  else()
    list(APPEND CAIRN_HIP_MISSING "the package hip and libamdhip64 of ${CMAKE_HIP_COMPILER}")
  endif()
elseif(CAIRN_HIPCC)
  find_path(CAIRN_HIP_INCLUDE_DIR hip/hip_runtime.h HINTS ${CAIRN_HIP_ROOT}/include)
  find_library(CAIRN_AMDHIP64 amdhip64 HINTS ${CAIRN_HIP_ROOT}/lib)
  mark_as_advanced(CAIRN_HIP_INCLUDE_DIR)
  if(CAIRN_HIP_INCLUDE_DIR AND CAIRN_AMDHIP64)
    # Without a GPU, hipcc's question which one there is ends in a stack trace on standard error.
    set(CAIRN_HIPCC_COMMAND ${CMAKE_COMMAND} -E env HIP_PLATFORM=amd ${CAIRN_HIPCC})
    set(CAIRN_HIP_DEVICE_COMMAND ${CAIRN_HIPCC_COMMAND} -x hip -Wno-unused-command-line-argument)
    set(CAIRN_HIP_FOUND "${CAIRN_HIPCC}")
  else()
    list(APPEND CAIRN_HIP_MISSING "hip/hip_runtime.h and libamdhip64 beside ${CAIRN_HIPCC}")
  endif()
else()
  list(APPEND CAIRN_HIP_MISSING
       "CMake's HIP language (why not: CMakeError.log or CMakeConfigureLog.yaml in ${CMAKE_BINARY_DIR}/CMakeFiles)"
       " and hipcc (on the PATH, in HIP_PATH, ROCM_PATH and /opt/rocm)")
endif()

mark_as_advanced(CAIRN_AMDHIP64)
set(ENV{HIPCXX} ${CAIRN_HIP_ENV_HIPCXX})  # empty: unset
set(ENV{CMAKE_PREFIX_PATH} ${CAIRN_HIP_ENV_PREFIX})

# Which architectures the compiler knows, and whether it compiles at all: asked once per compiler.
if(CAIRN_HIP_FOUND)
  set(CAIRN_HIP_PROBES ${PROJECT_BINARY_DIR}/CMakeFiles/cairn_hip)
  set(CAIRN_HIP_CHOSEN ${CAIRN_HIP_ARCHITECTURES})
  if(NOT CAIRN_HIP_CHOSEN)
    if(NOT CAIRN_HIP_KNOWN_ARCHITECTURES OR NOT "${CAIRN_HIP_KNOWN_BY}" STREQUAL "${CAIRN_HIP_FOUND}")
      set(CAIRN_HIP_KNOWN_ARCHITECTURES "")
      file(WRITE ${CAIRN_HIP_PROBES}/known.hip "__attribute__((global)) void known() {}\n")
      foreach(architecture IN ITEMS gfx90a gfx940 gfx942 gfx950)
        execute_process(
          COMMAND ${CAIRN_HIP_DEVICE_COMMAND} --cuda-device-only -nogpuinc -nogpulib
                  --offload-arch=${architecture} -c known.hip -o known.${architecture}.o
          WORKING_DIRECTORY ${CAIRN_HIP_PROBES} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
        if(NOT failed)
          list(APPEND CAIRN_HIP_KNOWN_ARCHITECTURES ${architecture})
        endif()
      endforeach()
      # What gfx940 became; a compiler that knows the one may have dropped the other.
      if("gfx942" IN_LIST CAIRN_HIP_KNOWN_ARCHITECTURES)
        list(REMOVE_ITEM CAIRN_HIP_KNOWN_ARCHITECTURES gfx940)
      endif()
      set(CAIRN_HIP_KNOWN_ARCHITECTURES "${CAIRN_HIP_KNOWN_ARCHITECTURES}" CACHE INTERNAL "")
      set(CAIRN_HIP_KNOWN_BY "${CAIRN_HIP_FOUND}" CACHE INTERNAL "")
    endif()
    set(CAIRN_HIP_CHOSEN ${CAIRN_HIP_KNOWN_ARCHITECTURES})
  endif()
  set(CAIRN_HIP_FOR_AMD ${CAIRN_HIP_CHOSEN})

  set(CAIRN_HIP_KERNEL_OPTIONS -O3 ${CAIRN_HIP_WARNINGS} -Wpedantic $<$<BOOL:${CAIRN_WERROR}>:-Werror>)
  if(CAIRN_HIP_LANGUAGE)
    set(CAIRN_HIP_KERNEL_PROPERTIES HIP_STANDARD 20 HIP_EXTENSIONS OFF)
  else()
    list(TRANSFORM CAIRN_HIP_CHOSEN PREPEND --offload-arch=)
    list(PREPEND CAIRN_HIP_KERNEL_OPTIONS -x hip -std=c++20 ${CAIRN_HIP_CHOSEN})
    if(NOT "${CAIRN_HIP_PROBED}" STREQUAL "${CAIRN_HIPCC} ${CAIRN_HIP_CHOSEN}")
      file(WRITE ${CAIRN_HIP_PROBES}/works.hip
           "#include <hip/hip_runtime.h>\n__global__ void works(int* to) { *to = 1; }\n")
      execute_process(
        COMMAND ${CAIRN_HIPCC_COMMAND} -x hip -std=c++20 ${CAIRN_HIP_CHOSEN} -c works.hip -o works.o
        WORKING_DIRECTORY ${CAIRN_HIP_PROBES} RESULT_VARIABLE failed OUTPUT_QUIET
        ERROR_FILE works.err)
      if(NOT failed)
        set(CAIRN_HIP_PROBED "${CAIRN_HIPCC} ${CAIRN_HIP_CHOSEN}" CACHE INTERNAL "")
      endif()
    endif()
    if(NOT "${CAIRN_HIP_PROBED}" STREQUAL "${CAIRN_HIPCC} ${CAIRN_HIP_CHOSEN}")
      list(APPEND CAIRN_HIP_MISSING
           "a ${CAIRN_HIPCC} that compiles ${CAIRN_HIP_PROBES}/works.hip (see works.err beside it)")
      unset(CAIRN_HIP_FOUND)
    endif()
  endif()
endif()

if(CAIRN_HIP_FOUND)
  set(CAIRN_HIP_ENABLED ON)
  set(CAIRN_HIP_PLATFORM amd)
  set(CAIRN_HIP_PACKAGE amdhip64)
  set(CAIRN_HIP_ARCHITECTURES ${CAIRN_HIP_FOR_AMD})  # not before: NVIDIA has others
  get_filename_component(CAIRN_AMDHIP64_DIR ${CAIRN_AMDHIP64} DIRECTORY)  # for the package's file
  add_library(cairn_hip_runtime INTERFACE)
  if(CAIRN_HIP_LANGUAGE)
    target_link_libraries(cairn_hip_runtime INTERFACE hip::host)
  else()
    target_include_directories(cairn_hip_runtime SYSTEM INTERFACE ${CAIRN_HIP_INCLUDE_DIR})
    target_compile_definitions(cairn_hip_runtime INTERFACE __HIP_PLATFORM_AMD__=1)
    target_link_libraries(cairn_hip_runtime INTERFACE ${CAIRN_AMDHIP64})
  endif()
endif()
