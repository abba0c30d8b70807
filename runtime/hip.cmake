# The build of the HIP backend: whether there is one, by which device compiler, and what its files need.
# Included once, by the top folder, because languages are enabled for all folders below it. Leaves
#   CAIRN_HIP_ENABLED, CAIRN_HIP_PLATFORM   what was chosen (amd or nvidia)
#   CAIRN_HIP_PACKAGE                       what a static cairn is linked with: none, amdhip64, cudart
#   CAIRN_HIP_ARCHITECTURES                 what kernels are compiled for
#   CAIRN_HIP_DEVICE_COMMAND                the device compiler, for tests that read its code
#   cairn_hip_runtime                       a target: include folders, definitions, the GPU's runtime
#   cairn_add_hip_kernels(TARGET SOURCE...) compiles kernels and adds their objects to TARGET
# Kernels reach their target as plain objects, so programs are linked by the C++ compiler alone and no
# project that links cairn has to know a device language.
# An engine that adds cairn says so when it wants the backend.
if(PROJECT_IS_TOP_LEVEL)
  set(cairn_hip_default AUTO)
else()
  set(cairn_hip_default OFF)
endif()
set(CAIRN_HIP ${cairn_hip_default}
    CACHE STRING "The HIP backend: AUTO (where a device compiler works), ON or OFF")
set_property(CACHE CAIRN_HIP PROPERTY STRINGS AUTO ON OFF)
set(CAIRN_HIP_PLATFORM "" CACHE STRING "amd or nvidia; empty: amd where it works, else nvidia")
set_property(CACHE CAIRN_HIP_PLATFORM PROPERTY STRINGS "" amd nvidia)
set(CAIRN_HIP_ARCHITECTURES "" CACHE STRING "What kernels are compiled for, such as gfx90a;gfx942 or 90")

if(NOT "${CAIRN_HIP_PLATFORM}" MATCHES "^(amd|nvidia)?$")
  message(FATAL_ERROR "CAIRN_HIP_PLATFORM is '${CAIRN_HIP_PLATFORM}': amd, nvidia or empty")
endif()
string(TOUPPER "${CAIRN_HIP}" CAIRN_HIP_WANTED)
if(NOT CAIRN_HIP_WANTED MATCHES "^(AUTO|ON|OFF|TRUE|FALSE|YES|NO|1|0)$")
  message(FATAL_ERROR "CAIRN_HIP is '${CAIRN_HIP}': AUTO, ON or OFF")
endif()
if(NOT CAIRN_HIP_PLATFORM AND CAIRN_HIP_ARCHITECTURES MATCHES "^gfx")
  set(CAIRN_HIP_PLATFORM amd)
elseif(NOT CAIRN_HIP_PLATFORM AND CAIRN_HIP_ARCHITECTURES)
  set(CAIRN_HIP_PLATFORM nvidia)
endif()
set(CAIRN_HIP_ENABLED OFF)
set(CAIRN_HIP_PACKAGE none)

set(CAIRN_HIP_WARNINGS -Wall -Wextra -Wconversion -Wshadow)
set(CAIRN_HIP_INCLUDES ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)

if(CAIRN_HIP_WANTED STREQUAL AUTO AND CAIRN_SANITIZE)
  # No device runtime is instrumented. The test double of the tests needs none.
  set(CAIRN_HIP_WANTED OFF)
endif()
if(CAIRN_HIP_WANTED STREQUAL AUTO OR CAIRN_HIP_WANTED)
  set(CAIRN_HIP_MISSING "")
  if(NOT CAIRN_HIP_PLATFORM STREQUAL "nvidia")
    include(${CMAKE_CURRENT_LIST_DIR}/hip_amd.cmake)
  endif()
  if(NOT CAIRN_HIP_ENABLED AND NOT CAIRN_HIP_PLATFORM STREQUAL "amd")
    include(${CMAKE_CURRENT_LIST_DIR}/hip_nvidia.cmake)
  endif()
  list(JOIN CAIRN_HIP_MISSING "; " CAIRN_HIP_MISSING)
  if(CAIRN_HIP_ENABLED)
    list(JOIN CAIRN_HIP_ARCHITECTURES " " CAIRN_HIP_FOR)
    if(CAIRN_HIP_MISSING)
      message(STATUS "cairn: not there: ${CAIRN_HIP_MISSING}")
    endif()
    message(STATUS "cairn: HIP backend for ${CAIRN_HIP_PLATFORM}, ${CAIRN_HIP_FOR} (${CAIRN_HIP_FOUND})")
  else()
    if(NOT CAIRN_HIP_WANTED STREQUAL AUTO)
      message(FATAL_ERROR "CAIRN_HIP is ${CAIRN_HIP}, but there is no device compiler that works. "
                          "Looked for ${CAIRN_HIP_MISSING}")
    endif()
    message(STATUS "cairn: no HIP backend (looked for ${CAIRN_HIP_MISSING})")
  endif()
endif()

# Compiled by an enabled language, and merged into one object, so that CMake does not ask every program
# that contains the objects to be linked by that language's compiler.
function(cairn_add_language_kernels target language)
  set(kernels ${target}_hip_kernels)
  add_library(${kernels} OBJECT ${ARGN})
  set_source_files_properties(${ARGN} PROPERTIES LANGUAGE ${language})
  set_target_properties(${kernels} PROPERTIES POSITION_INDEPENDENT_CODE ON ${language}_ARCHITECTURES
                                              "${CAIRN_HIP_ARCHITECTURES}" ${CAIRN_HIP_KERNEL_PROPERTIES})
  target_include_directories(${kernels} PRIVATE ${CAIRN_HIP_INCLUDES})
  target_compile_options(${kernels} PRIVATE ${CAIRN_HIP_KERNEL_OPTIONS})
  target_compile_definitions(${kernels} PRIVATE ${CAIRN_HIP_KERNEL_DEFINITIONS})
  set(merged ${CMAKE_CURRENT_BINARY_DIR}/${kernels}.o)
  add_custom_command(
    OUTPUT ${merged}
    COMMAND ${CMAKE_LINKER} -r -o ${merged} $<TARGET_OBJECTS:${kernels}>
    DEPENDS ${kernels} $<TARGET_OBJECTS:${kernels}>
    COMMENT "Merging the kernels of ${target}"
    COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties(${merged} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_sources(${target} PRIVATE ${merged})
endfunction()

# Compiled by hipcc, as it is: CMake knows no language for it.
function(cairn_add_hipcc_kernels target)
  set(includes ${CAIRN_HIP_INCLUDES})
  list(TRANSFORM includes PREPEND -I)
  foreach(source IN LISTS ARGN)
    get_filename_component(source ${source} ABSOLUTE)
    get_filename_component(name ${source} NAME_WE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}_hip_kernels/${name}.o)
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${target}_hip_kernels)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CAIRN_HIPCC_COMMAND} ${CAIRN_HIP_KERNEL_OPTIONS} ${includes} -fPIC
              "$<$<NOT:$<CONFIG:Debug>>:-DNDEBUG>" -MD -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source}
      DEPFILE ${object}.d
      COMMENT "Compiling kernels ${name}"
      COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    target_sources(${target} PRIVATE ${object})
  endforeach()
endfunction()

# cairn_add_hip_kernels(TARGET SOURCE...): in the folder in which TARGET was added; once per target.
# Sources read headers from the top folder and include/, and are linked with cairn_hip_runtime.
function(cairn_add_hip_kernels target)
  if(CAIRN_HIP_LANGUAGE)
    cairn_add_language_kernels(${target} ${CAIRN_HIP_LANGUAGE} ${ARGN})
  else()
    cairn_add_hipcc_kernels(${target} ${ARGN})
  endif()
endfunction()
