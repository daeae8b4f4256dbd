-- .luacheckrc - lint of all Lua in the checkout.
std = "lua54"
max_line_length = 120
codes = true
cache = false
ignore = { "2[13][12]/_.*" } -- guards and arguments named _x are meant to be unused
include_files = { "**/*.lua", ".luacheckrc", ".busted" }
exclude_files = { "build*", "out" }

files["tests/**/*.lua"].std = "+busted"
files["lua/gpipe/shell/repl.lua"].globals = { "_G" }
