# libpoolgrad, shared and static, with its header, a pkg-config file and a CMake package. CMakeLists.txt includes this file.
#
#     cmake -S . -B build/library -DPOOLGRAD_LIBRARY=ON && cmake --build build/library && cmake --install build/library --prefix /usr/local
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
find_package(Threads REQUIRED)
file(STRINGS src/core/api/poolgrad.h PG_ABI REGEX "^#define PG_ABI ")
string(REGEX REPLACE "[^0-9]" "" PG_ABI "${PG_ABI}")

add_library(pg_core OBJECT ${PG_CORE})
target_include_directories(pg_core PRIVATE src/core)
target_compile_options(pg_core PRIVATE ${PG_WARNINGS} -O2)
target_compile_definitions(pg_core PRIVATE $<$<TARGET_EXISTS:pg_v40>:PG_X86> PG_VERSION="${PG_VERSION}")
foreach(level IN LISTS PG_LEVELS)
  list(APPEND PG_OBJECTS $<TARGET_OBJECTS:${level}>)
endforeach()
foreach(kind SHARED STATIC)
  string(TOLOWER poolgrad_${kind} target)
  add_library(${target} ${kind} $<TARGET_OBJECTS:pg_core> ${PG_OBJECTS})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME poolgrad VERSION ${PG_VERSION} SOVERSION ${PG_ABI} LINKER_LANGUAGE CXX)
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
endforeach()
if(APPLE)
  target_link_options(poolgrad_shared PRIVATE -Wl,-exported_symbol,_pg_*)
elseif(WIN32)
  target_link_options(poolgrad_shared PRIVATE --rtlib=compiler-rt)
else()
  target_link_options(poolgrad_shared PRIVATE -Wl,-z,relro,-z,now -Wl,--version-script=${CMAKE_SOURCE_DIR}/src/core/api/library.map)
endif()

install(TARGETS poolgrad_shared poolgrad_static EXPORT poolgrad
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES src/core/api/poolgrad.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT poolgrad FILE poolgrad-targets.cmake NAMESPACE poolgrad:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/poolgrad)
file(WRITE ${CMAKE_BINARY_DIR}/poolgrad-config.cmake
  "include(CMakeFindDependencyMacro)\nfind_dependency(Threads)\ninclude(\"\${CMAKE_CURRENT_LIST_DIR}/poolgrad-targets.cmake\")\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/poolgrad-config-version.cmake VERSION ${PG_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/poolgrad-config.cmake ${CMAKE_BINARY_DIR}/poolgrad-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/poolgrad)
file(WRITE ${CMAKE_BINARY_DIR}/poolgrad.pc
  "prefix=\${pcfiledir}/../..\nName: poolgrad\nDescription: Pooling operators and their derivatives\nVersion: ${PG_VERSION}\n"
  "Cflags: -I\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}\nLibs: -L\${prefix}/${CMAKE_INSTALL_LIBDIR} -lpoolgrad\nLibs.private: -lstdc++ -lm -ldl -lpthread\n")
install(FILES ${CMAKE_BINARY_DIR}/poolgrad.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
