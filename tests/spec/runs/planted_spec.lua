-- tests/spec/runs/planted_spec.lua - folders of runs that others may write to: links, pipes and
-- devices in them are neither read nor followed.

local child = dofile "tests/child.lua"
local gp = require "gpipe"
local run_folder = require "tests.support.run_folder"

local root
before_each(function() root = run_folder.root() end)
after_each(function() run_folder.remove(root) end)

local function shell(format, ...) return child.shell(format:format(...)) end

local PLANTED = {
  ["a link to a file of someone else"] = "ln -s %s/private %s/a/NAME",
  ["a pipe that is never written"] = "mkfifo %s/a/NAME #%s",
  ["a device that never ends"] = "ln -s /dev/zero %s/a/NAME #%s",
  ["a folder"] = "mkdir %s/a/NAME #%s",
}

for what, command in pairs(PLANTED) do
  it(what .. " in place of a file is not read", function()
    shell("echo '<svg>SECRET</svg>' >%s/private", root)
    for _, name in ipairs { "timeline.svg", "state.json", "config.json", "memory.json" } do
      run_folder.make(root, "a", { step = 3 })
      shell("rm -f %s/a/%s", root, name)
      shell((command:gsub("NAME", name)), command:find "^ln %-s %%s" and root or root, root)
      local page = root .. "/page.html"
      local out, err, code = shell("timeout 20 %s plot loss %s --html %s --force; cat %s",
        child.quote(child.program), root, page, page)
      assert.is_true(code == 0 or code == 1, name .. ": " .. err)
      assert.is_nil(out:find "SECRET", name)
      shell("rm -rf %s/a %s", root, page)
    end
  end)
end

it("a timeline that is not an image is left out", function()
  run_folder.make(root, "a", { step = 3 })
  shell("echo 'root:x:0:0 SECRET' >%s/a/timeline.svg", root)
  local page = root .. "/page.html"
  local out = shell("%s plot loss %s --html %s; cat %s", child.quote(child.program), root, page, page)
  assert.is_nil(out:find "SECRET")
end)

it("links to folders are not followed, not in a circle and not through the machine", function()
  run_folder.make(root, "a", { step = 3 })
  for i = 1, 6 do shell("ln -s . %s/circle%d", root, i) end
  shell("ln -s / %s/machine", root)
  local runs = gp.runs(root)
  assert.equal(1, #runs)
end)

it("names of runs turn no terminal around", function()
  local terminal = require "gpipe.draw.terminal"
  assert.equal("a?b?c?", terminal.clean "a\u{202e}b\u{2066}c\u{200f}")
  assert.equal("äöü €", terminal.clean "äöü €")
end)
