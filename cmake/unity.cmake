# Unity builds: the files of a folder are compiled several at a time, because three quarters of the time of
# a small file is the standard library and the graph (measured: eight operator files 20 s apart, 7 s together).
# A file's batch depends on its own name and on the size of its folder, so that a new file moves few others.
# Files of one folder therefore share a namespace: give what is file-local a name that tells whose it is.
# For folders of many files that share their headers; a batch of larger files is smaller, so that an edit
# of one is compiled within seconds.
# TOMBOLO_UNITY=OFF (the debug preset) compiles each file alone, which finds a missing #include.
option(TOMBOLO_UNITY "Compile several files at a time" ON)

function(tombolo_unity target batch)
  if(NOT TOMBOLO_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # gcc takes each file of a batch for a header, whose types had better not be made of file-local ones.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  set(folders "")
  foreach(file ${ARGN})
    get_filename_component(folder ${file} DIRECTORY)
    list(APPEND folders ${folder})
    string(MD5 key ${folder})
    list(APPEND files_${key} ${file})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder ${folders})
    string(MD5 key ${folder})
    list(LENGTH files_${key} count)
    math(EXPR batches "(${count} + ${batch} - 1) / ${batch}")
    foreach(file ${files_${key}})
      get_filename_component(name ${file} NAME_WE)
      string(MD5 hash ${name})
      string(SUBSTRING ${hash} 0 7 hash)
      math(EXPR index "0x${hash} % ${batches}")
      file(RELATIVE_PATH group ${PROJECT_SOURCE_DIR} ${folder})
      string(MAKE_C_IDENTIFIER ${group}_${index} group)
      set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${group})
    endforeach()
  endforeach()
endfunction()
