-- tests/spec/runs/watch_spec.lua - `gpipe-lua watch`: a page that follows its runs.

local browser = require "tests.support.browser"
local child = dofile "tests/child.lua"
local gp = require "gpipe"
local json = require "tests.support.json"
local run_folder = require "tests.support.run_folder"

local root
before_each(function() root = run_folder.root() end)
after_each(function() run_folder.remove(root) end)

-- Runs bash text while the server runs, whose port is $port; Ctrl-C ends the server. Returns what
-- the text printed, what the server printed and its exit code.
local function while_watching(text)
  local script = child.file(([[
    env --default-signal=INT %s watch %s --port 0 >%s/out 2>&1 & server=$!
    ask() { exec 3<>/dev/tcp/127.0.0.1/$port
      printf 'GET %%s HTTP/1.1\r\nHost: 127.0.0.1:%%d\r\n\r\n' $1 $port >&3; cat <&3; exec 3>&-; }
    for i in $(seq 100); do grep -q '^http' %s/out && break; sleep 0.1; done
    port=$(sed -n 's,^http://127.0.0.1:\([0-9]*\)/.*,\1,p' %s/out)
    token=$(sed -n 's,^http://[^/]*\(/[0-9a-f]*\)/ .*,\1,p' %s/out)
    %s
    kill -INT $server; wait $server; echo "code $?"
  ]]):format(child.quote(child.program), root, root, root, root, root, text))
  local out, err = child.shell("bash " .. script)
  os.remove(script)
  local printed, code = out:match "^(.*)code (%d+)\n$"
  assert(printed, out .. err)
  local file <close> = assert(io.open(root .. "/out"))
  return printed, file:read "a", tonumber(code)
end

describe("gpipe-lua watch", function()
  it("serves the page and its data to this machine, until Ctrl-C", function()
    run_folder.make(root, "a", { step = 20 })
    local out, printed, code = while_watching "ask $token/; ask $token/data.json; ask /etc/passwd"
    assert.equal(0, code)
    assert.equal(1, select(2, printed:gsub("\n", "")))
    local page, data, none = out:match "^(HTTP.-)(HTTP/1.1 200 OK\r\n.-)(HTTP/1.1 404.*)$"
    assert.matches("\r\n\r\n<!DOCTYPE html>", page)
    assert.is_truthy(page:find('"live":true', 1, true))
    assert.equal("a", json.read(data:match "\r\n\r\n(.*)$").runs[1].name)
    assert.is_nil(none:find "root")
  end)

  it("shows nothing without the secret part of the address", function()
    run_folder.make(root, "a", { step = 20 })
    local out = while_watching "ask /; ask /data.json; ask /00000000000000000000ffff/data.json"
    assert.equal(3, select(2, out:gsub("HTTP/1.1 404", "")))
    assert.is_nil(out:find('"runs"', 1, true))
  end)

  it("shows what was written meanwhile, and new runs", function()
    run_folder.make(root, "a", { step = 5 })
    run_folder.make(root .. "/later", "a", { step = 9 })
    run_folder.make(root .. "/later", "b", { step = 3 })
    run_folder.make(root, "kept", { step = 1 })
    os.execute(("mv %s/later %s.later"):format(root, root))
    local out = while_watching(("ask $token/; cp -r %s.later/* %s; rm -r %s.later; sleep 1.1; "
      .. "ask $token/data.json"):format(root, root, root))
    local data = json.read(out:match '\r\n\r\n({".*)$')
    local steps = {}
    for _, run in ipairs(data.runs) do steps[run.name] = run.step end
    assert.same({ a = 9, b = 3, kept = 1 }, steps)
    assert.equal(9, #data.charts[1].curves[1].x + #data.charts[1].curves[2].x
      + #data.charts[1].curves[3].x - 4)
  end)

  it("is followed by a browser", function()
    if not browser.find() then return pending "no chromium" end
    run_folder.make(root, "a", { step = 5 })
    local out = while_watching(([[
      %s --headless --no-sandbox --disable-gpu --no-proxy-server --user-data-dir=%s/profile \
        --virtual-time-budget=3000 --dump-dom http://127.0.0.1:$port$token/ 2>/dev/null]])
      :format(browser.find(), root))
    assert.equal(4, select(2, out:gsub("<figure>", ""))) -- loss, rate, memory of two devices
    assert.is_truthy(out:find "1 run, ")
  end)

  it("refuses wrong arguments", function()
    local cases = {
      { { root, "--port", "70000" }, 2, "70000" }, { { root, "--port", "x" }, 2, "--port" },
      { { "/nowhere/at/all" }, 2, "/nowhere/at/all" }, { { root, "--prt", "1" }, 2, "--port" },
    }
    for _, case in ipairs(cases) do
      local out, err, code = child.run { "watch", table.unpack(case[1]) }
      assert.same({ "", case[2] }, { out, code })
      assert.is_truthy(err:find(case[3], 1, true), err)
    end
    local taken = while_watching(("%s watch %s --port $port 2>&1; echo $?"):format(
      child.quote(child.program), root))
    assert.matches("%d+.*\n1\n$", taken)
  end)
end)

it("a list of runs is updated without reading again what was read before", function()
  run_folder.make(root, "a", { step = 5 })
  local list = gp.runs(root)
  local first = list[1]
  run_folder.make(root, "b", { step = 2, updated = 2e9 })
  run_folder.make(root, "a", { step = 7 })
  assert.equal(list, list:update())
  assert.equal("b", list[1].name)
  assert.is_true(rawequal(first, list[2]))
  assert.equal(7, first:column "loss".shape[1])
  os.execute("rm -r " .. root .. "/b")
  assert.equal(1, #list:update())
end)
