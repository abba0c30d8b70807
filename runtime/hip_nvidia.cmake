# Looks for nvcc, through CMake's CUDA language. Part of hip.cmake; says in CAIRN_HIP_MISSING what was
# not there.
set(CAIRN_HIP_ENV_CUDACXX "$ENV{CUDACXX}")  # taken back below
if(NOT DEFINED CMAKE_CUDA_COMPILER AND "$ENV{CUDACXX}" STREQUAL "")
  find_program(CAIRN_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin
               DOC "NVIDIA's compiler")
  mark_as_advanced(CAIRN_NVCC)
  if(CAIRN_NVCC)
    set(ENV{CUDACXX} ${CAIRN_NVCC})
  endif()
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90)  # and through its PTX whatever is newer
endif()

include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  find_package(CUDAToolkit QUIET)
  if(NOT CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA" OR CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12)
    list(APPEND CAIRN_HIP_MISSING
         "nvcc 12 or newer, for C++20 (${CMAKE_CUDA_COMPILER} is ${CMAKE_CUDA_COMPILER_ID}"
         " ${CMAKE_CUDA_COMPILER_VERSION})")
  elseif(NOT TARGET CUDA::cudart_static)
    list(APPEND CAIRN_HIP_MISSING "libcudart_static.a of ${CMAKE_CUDA_COMPILER}")
  else()
    set(CAIRN_HIP_ENABLED ON)
  endif()
else()
  list(APPEND CAIRN_HIP_MISSING
       "CMake's CUDA language: an nvcc that works (on the PATH, in CUDA_PATH, CUDA_HOME and /usr/local/cuda)")
endif()
set(ENV{CUDACXX} ${CAIRN_HIP_ENV_CUDACXX})  # empty: unset

if(CAIRN_HIP_ENABLED)
  set(CAIRN_HIP_PLATFORM nvidia)
  set(CAIRN_HIP_FOUND "${CMAKE_CUDA_COMPILER}")
  set(CAIRN_HIP_LANGUAGE CUDA)
  set(CAIRN_HIP_DEVICE_COMMAND ${CMAKE_CUDA_COMPILER} -x cu -DCAIRN_HIP_NVIDIA)
  if(CMAKE_CUDA_HOST_COMPILER)
    list(APPEND CAIRN_HIP_DEVICE_COMMAND -ccbin ${CMAKE_CUDA_HOST_COMPILER})
  endif()
  set(CAIRN_HIP_PACKAGE cudart)
  if(NOT CAIRN_HIP_ARCHITECTURES)
    set(CAIRN_HIP_ARCHITECTURES ${CMAKE_CUDA_ARCHITECTURES})
  endif()
  set(CAIRN_HIP_KERNEL_DEFINITIONS CAIRN_HIP_NVIDIA)
  # Not -Wpedantic: what nvcc hands to the host's compiler is full of that compiler's extensions.
  list(JOIN CAIRN_HIP_WARNINGS "," CAIRN_HIP_KERNEL_OPTIONS)
  set(CAIRN_HIP_KERNEL_OPTIONS -Xcompiler=${CAIRN_HIP_KERNEL_OPTIONS})
  if(CAIRN_WERROR)
    list(APPEND CAIRN_HIP_KERNEL_OPTIONS -Xcompiler=-Werror "SHELL:--Werror all-warnings")
  endif()
  if(DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    list(APPEND CAIRN_HIP_KERNEL_PROPERTIES CUDA_STANDARD 20 CUDA_EXTENSIONS OFF)
  else()
    list(PREPEND CAIRN_HIP_KERNEL_OPTIONS -std=c++20)  # CMake 3.25 does not know that nvcc has it
  endif()

  add_library(cairn_hip_runtime INTERFACE)
  target_compile_definitions(cairn_hip_runtime INTERFACE CAIRN_HIP_NVIDIA)
  target_link_libraries(cairn_hip_runtime INTERFACE CUDA::cudart_static)
endif()
