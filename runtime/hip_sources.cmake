# What the HIP backend is made of: host code for any compiler, and kernels for the device compiler.
set(CAIRN_HIP_HOST_SOURCES ${PROJECT_SOURCE_DIR}/runtime/backend_hip.cpp
                           ${PROJECT_SOURCE_DIR}/runtime/backend_hip_open.cpp
                           ${PROJECT_SOURCE_DIR}/runtime/hip_call.cpp
                           ${PROJECT_SOURCE_DIR}/runtime/hip_plan.cpp
                           ${PROJECT_SOURCE_DIR}/runtime/hip_staging.cpp)
set(CAIRN_HIP_KERNEL_SOURCES ${PROJECT_SOURCE_DIR}/kernels/scatter_gather_hip.cpp)
