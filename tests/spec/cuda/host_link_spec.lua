-- tests/spec/cuda/host_link_spec.lua - gp.profile measures how fast a GPU reaches the host's memory,
-- and gp.plan offloads with that rate.

local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local nn = gp.nn

local on_gpu = gpu.spec(it)

local function model() return nn.Sequential { nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 32) } end

local function profile(device)
  return gp.profile(model(), { gp.ones { 16, 32 } }, { device = device, repeats = 1 })
end

local function plan(device, opts)
  opts.devices, opts.chunks, opts.schedules, opts.repeats = { device }, 8, "gpipe", 1
  return assert(gp.plan(model(), { gp.ones { 64, 32 } }, opts))
end

describe("the way from a GPU to the host's memory", function()
  on_gpu("is measured by gp.profile, saved and restored", function()
    local p = profile "cuda:0"
    assert.is_true(p.host_link.bandwidth > 1e6 and p.host_link.latency >= 0)
    assert.is_truthy(tostring(p):find("copies to the host's memory and back", 1, true))
    local path = os.tmpname()
    assert(p:save(path))
    local again = assert(gp.profile { path = path })
    os.remove(path)
    assert.are.same(p.host_link, again.host_link)
  end)

  on_gpu("is none of a device that computes in the host's memory", function()
    assert.is_nil(profile("cpu:0").host_link)
  end)

  on_gpu("lets gp.plan offload to a host whose link nobody has described", function()
    local made = plan("cuda:0", { checkpoint = "offload" })
    assert.are.equal("offload", made.best.checkpoint)
    local link = made:options().devices[1].host_link
    assert.is_true(link.bandwidth > 1e6)
    local pipe <close> = gp.pipeline(model(), made)
    assert.are.same({ 64, 32 }, pipe:forward(gp.ones { 64, 32 }).shape)
  end)

  on_gpu("is taken from a profile that is given", function()
    local given = profile "cuda:0"
    local made = plan("cuda:0", { checkpoint = "offload", profile = given })
    assert.are.same(given.host_link, made:options().devices[1].host_link)
  end)

  on_gpu("is the one that the script describes, where it does", function()
    local link = { bandwidth = 25e9, latency = 0 }
    local made = plan({ "cuda:0", host_link = link }, { checkpoint = "offload" })
    assert.are.same(link, made:options().devices[1].host_link)
  end)
end)
