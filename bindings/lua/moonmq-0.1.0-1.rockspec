-- `luarocks make bindings/lua/moonmq-0.1.0-1.rockspec`, in the root of the repository. Needs libmoonmq where the compiler
-- looks, or MOONMQ_DIR=PREFIX of an installed one.
rockspec_format = "3.0"
package = "moonmq"
version = "0.1.0-1"
source = { url = "file://." }
description = {
   summary = "Client of MoonMQ, a replicated message broker",
   license = "MIT",
}
dependencies = { "lua >= 5.1, < 5.5" }
external_dependencies = {
   MOONMQ = { header = "moonmq.h", library = "moonmq" },
}
build = {
   type = "builtin",
   modules = {
      moonmq = {
         sources = {
            "bindings/lua/moonmq.c", "bindings/lua/options.c", "bindings/lua/values.c", "bindings/lua/produce.c",
            "bindings/lua/consume.c", "bindings/lua/groups.c", "bindings/lua/topics.c",
         },
         defines = { "_GNU_SOURCE" },
         incdirs = { "$(MOONMQ_INCDIR)" },
         libdirs = { "$(MOONMQ_LIBDIR)" },
         libraries = { "moonmq" },
      },
   },
}
