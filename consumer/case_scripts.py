"""What the case store does inside Redis, in Lua: each script is one atomic step (the layout: docs/cases.md).

Every script takes the key prefix as its one key, so that a cluster finds the slot (the prefix carries a hash tag).
"""

from __future__ import annotations

_REMOVE = """
local function unindex(p, m)
  local terms = redis.call('HGET', p .. 'terms', m)
  if terms then
    for kind, term in string.gmatch(terms, '(.)([^\\n]*)\\n') do
      if kind == 't' then redis.call('ZREM', p .. 'term:' .. term, m)
      else redis.call('ZREM', p .. 'names', term .. m) end
    end
    redis.call('HDEL', p .. 'terms', m)
    redis.call('HDEL', p .. 'signatures', m)
  end
end
local function remove(p, m)
  unindex(p, m)
  redis.call('DEL', p .. 'case:' .. m)
  redis.call('ZREM', p .. 'term:said:good', m)
  redis.call('ZREM', p .. 'term:said:bad', m)
  redis.call('ZREM', p .. 'time', m)
  return redis.call('ZREM', p .. 'expiry', m)
end
local function oldest(p, most)
  local removed = 0
  for _, m in ipairs(redis.call('ZRANGE', p .. 'expiry', 0, most - 1)) do removed = removed + remove(p, m) end
  return removed
end
"""

PUT = (
    _REMOVE
    + """
local p, m, now, at, expires, cap = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5])
if tonumber(expires) <= now then return {'expired', 0} end
if redis.call('ZSCORE', p .. 'forgotten', m) then return {'forgotten', 0} end
redis.call('HSET', p .. 'case:' .. m, 'body', ARGV[6], 'text', ARGV[7])
unindex(p, m)
redis.call('PEXPIREAT', p .. 'case:' .. m, math.floor(tonumber(expires) * 1000))
redis.call('ZADD', p .. 'time', at, m)
redis.call('ZADD', p .. 'expiry', expires, m)
redis.call('HSET', p .. 'terms', m, ARGV[8])
redis.call('HSET', p .. 'signatures', m, ARGV[9])
for kind, term in string.gmatch(ARGV[8], '(.)([^\\n]*)\\n') do
  if kind == 't' then redis.call('ZADD', p .. 'term:' .. term, at, m)
  else redis.call('ZADD', p .. 'names', 0, term .. m) end
end
local label = redis.call('HGET', p .. 'labelled', string.sub(m, 1, 32))
if label and string.sub(label, 1, 48) == m then
  redis.call('ZADD', p .. 'term:said:' .. string.sub(label, 50), at, m)
end
local over = redis.call('ZCARD', p .. 'expiry') - cap
local dropped = 0
if over > 0 then dropped = oldest(p, math.min(over, 50)) end
return {'stored', dropped}
"""
)
"""ARGV: case, now, its time, expiry (s), cap, body, searched text, terms (`t<term>` and `n<name digest>`, a line
each), signature of the searched text. Returns what became of it, and how many of the oldest went to keep the cap. The
first write is the large one: a Redis that is full refuses it, but would let pass whatever follows another write."""

SWEEP = (
    _REMOVE
    + """
local p, now, cap, most = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', p .. 'forgotten', '-inf', now)
local expired = 0
for _, m in ipairs(redis.call('ZRANGEBYSCORE', p .. 'expiry', '-inf', now, 'LIMIT', 0, most)) do
  expired = expired + remove(p, m)
end
local over = redis.call('ZCARD', p .. 'expiry') - cap
local dropped = 0
if over > 0 then dropped = oldest(p, math.min(over, most)) end
return {expired, dropped}
"""
)
"""ARGV: now, cap, most to remove of each. Returns how many expired, and how many were over the cap."""

DROP = _REMOVE + "return oldest(KEYS[1], tonumber(ARGV[1]))"
"""ARGV: how many of the oldest to remove. Returns how many there were."""

FORGET = (
    _REMOVE
    + """
local p, m = KEYS[1], ARGV[1]
local expires = redis.call('ZSCORE', p .. 'expiry', m)
if not expires then return 0 end
remove(p, m)
redis.call('ZADD', p .. 'forgotten', expires, m)
return 1
"""
)
"""ARGV: case. It is remembered, without text, until it would have expired, so that reading the topic again does not
bring it back."""

LABEL = """
local p, d, m, verdict, time = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[5]
local function take_away(name)
  local old = redis.call('HGET', p .. 'labelled', name)
  if not old then return end
  for _, v in ipairs({'good', 'bad'}) do
    redis.call('ZREM', p .. 'term:said:' .. v, string.sub(old, 1, 48))
    redis.call('ZREM', p .. 'labels:' .. v, name)
  end
  redis.call('HDEL', p .. 'labelled', name)
  redis.call('HDEL', p .. 'label', name)
end
if m == '' then return take_away(d) end
take_away(d)
redis.call('HSET', p .. 'label', d, ARGV[4])
redis.call('HSET', p .. 'labelled', d, m .. ' ' .. verdict)
redis.call('ZADD', p .. 'labels:' .. verdict, time, d)
local at = redis.call('ZSCORE', p .. 'time', m)
if at then redis.call('ZADD', p .. 'term:said:' .. verdict, at, m) end
for _, v in ipairs({'good', 'bad'}) do
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', p .. 'labels:' .. v, '-inf', ARGV[6], 'LIMIT', 0, 100)) do
    take_away(old)
  end
  local over = redis.call('ZCARD', p .. 'labels:' .. v) - tonumber(ARGV[7])
  if over > 0 then
    for _, old in ipairs(redis.call('ZRANGE', p .. 'labels:' .. v, 0, math.min(over, 100) - 1)) do take_away(old) end
  end
end
"""
"""ARGV: digest of the event's id, case (empty: the label is taken away), verdict, label, time of the label, the time
before which labels leave, most labels of one verdict. One label per event; a case that is not there has it from `PUT`
when it comes."""

MATCH = """
local p, needle, groups, at = KEYS[1], ARGV[1], {}, 3
for g = 1, tonumber(ARGV[2]) do
  local group = {}
  for i = at + 1, at + tonumber(ARGV[at]) do group[#group + 1] = p .. 'term:' .. ARGV[i] end
  groups[g] = group
  at = at + #group + 1
end
local none, good, bad = p .. 'term:said:none', p .. 'term:said:good', p .. 'term:said:bad'
local found = {}
for i = at, #ARGV do
  local m, fits = ARGV[i], true
  for _, group in ipairs(groups) do
    local any = false
    for _, key in ipairs(group) do
      if key == none then any = not (redis.call('ZSCORE', good, m) or redis.call('ZSCORE', bad, m))
      else any = redis.call('ZSCORE', key, m) end
      if any then break end
    end
    if not any then fits = false break end
  end
  if fits then
    if needle == '' then fits = redis.call('EXISTS', p .. 'case:' .. m) == 1
    else
      local text = redis.call('HGET', p .. 'case:' .. m, 'text')
      fits = text and string.find(text, needle, 1, true)
    end
  end
  if fits then found[#found + 1] = m end
end
return found
"""
"""ARGV: folded text or empty, number of groups, each group as its size and its terms, then cases. Returns those of the
cases that are there and match. No case stands under the term `said:none`: it is asked for by what is not there."""
