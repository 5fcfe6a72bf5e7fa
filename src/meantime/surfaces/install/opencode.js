// Written by `meantime install opencode`; `--uninstall` removes it.
// Tells a session when its background tasks have ended: at its next step while it works, with a turn of its
// own while it is idle. A notice that the session already has, by its id, is not told again. Tasks of a
// subagent are told to the session at its root, which is still there when the subagent has ended.
import fs from "node:fs"
import http from "node:http"
import os from "node:os"
import path from "node:path"

const SETTLE = 1 // seconds: endings that come so close together cost the model one turn
const MANY = 200 // active tasks: with more than these the full time is waited, and nobody lists them
const LEASE = 30 // seconds to put a notice into a session; those of an OpenCode that was killed come back then
const MOST = 20 // notices in one turn
const POLL = 60 // seconds that the daemon is asked to wait at once
const AT_ONCE = 32 // waiting requests of this process; with more sessions each has TURN seconds in its turn
const TURN = 5
const RECENT = 500 // messages of a session in which a notice is looked for
const PATIENCE = 600 // seconds that a daemon which went away is waited for: it may be upgraded
const LOOK = 30 // seconds until the next look at a session that another OpenCode has, or that took no notice
const WOKEN = 50 // sessions that are taken up at the start, the newest first
// These end by themselves: a session that they woke would be cut off in the middle of its turn.
const BRIEF = new Set(
  "run mcp debug providers auth agent models stats export import github session plugin plug db".split(" "),
)
const isBrief = process.argv.slice(2).some((word) => BRIEF.has(word))

const COMMON = process.env.MEANTIME_THREAD // where it is set, all sessions have this thread
const threadOf = (root) => COMMON || `mcp-${root}`
const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000).unref())

// ---- The daemon: HTTP on its unix socket.

const HOME = (() => {
  const { MEANTIME_HOME, XDG_STATE_HOME, HOME: user } = process.env
  if (MEANTIME_HOME) return MEANTIME_HOME
  if (path.isAbsolute(XDG_STATE_HOME ?? "")) return path.join(XDG_STATE_HOME, "meantime")
  return path.join(path.isAbsolute(user ?? "") ? user : os.homedir(), ".local/state/meantime")
})()

let folder // open, for a socket whose path is longer than the 107 bytes that the system takes
const socketPath = () => {
  const whole = path.join(HOME, "http.sock")
  if (Buffer.byteLength(whole) <= 107) return whole
  folder ??= fs.openSync(HOME, "r")
  return `/proc/self/fd/${folder}/http.sock`
}

class Gone extends Error {} // the daemon does not answer

// Gives the JSON of the answer, or undefined for an empty one. Fails with Gone, or with the daemon's refusal.
const ask = (method, where, body, seconds = 0) =>
  new Promise((done, failed) => {
    const gone = (problem) => failed(new Gone(String(problem)))
    const data = body && JSON.stringify(body)
    const headers = data ? { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(data) } : {}
    const read = (answer) => {
      let said = ""
      answer.setEncoding("utf8")
      answer.on("data", (piece) => (said += piece))
      answer.on("error", gone)
      answer.on("close", () => gone("cut off")) // after its end this says nothing more
      answer.on("end", () => {
        if (answer.statusCode === 503) return gone(said)
        if (answer.statusCode >= 400) return failed(new Error(said))
        try {
          done(said ? JSON.parse(said) : undefined)
        } catch (problem) {
          gone(problem)
        }
      })
    }
    try {
      const asked = http.request({ socketPath: socketPath(), path: where, method, headers, agent: false }, read)
      asked.setTimeout((seconds + 30) * 1000, () => asked.destroy(new Error("it took too long")))
      asked.on("error", gone)
      asked.end(data)
    } catch (problem) {
      gone(problem)
    }
  })

const look = async (thread) => {
  const { active, unread, leased } = await ask("GET", `/v1/threads/${thread}`)
  return { active, isOver: !(active || unread || leased) }
}

let free = AT_ONCE
const queue = []

// Whether there is something to tell; false after a while.
const wake = async (thread) => {
  if (free > 0) free--
  else await new Promise((next) => queue.push(next))
  const seconds = queue.length ? TURN : POLL
  try {
    return Boolean(await ask("GET", `/v1/threads/${thread}/wake?timeout=${seconds}`, undefined, seconds))
  } finally {
    const next = queue.shift()
    if (next) next()
    else free++
  }
}

const settle = async (thread) => {
  const { active } = await look(thread)
  if (active > MANY) await sleep(SETTLE)
  else if (active) await ask("POST", "/v1/wait", { thread, until: "all", timeout: SETTLE }, SETTLE)
}

// Not for ever: a notice that is not acknowledged comes again, and is found in the session.
const acknowledge = async (turn, notices) => {
  for (let tries = 3; tries > 0; tries--) {
    try {
      return await ask("POST", `/v1/turns/${turn}/ack`, { notices: notices.map(({ id }) => id) })
    } catch (problem) {
      if (!(problem instanceof Gone)) return
      await sleep(1)
    }
  }
}

// ---- Two OpenCodes in one project see the same sessions. The one that used a session last tells it, and
// says so in a file; when that one is gone, another does.

const startOf = (pid) => {
  try {
    return fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").pop().split(" ")[19]
  } catch {
    return ""
  }
}
const OURS = `${process.pid} ${startOf(process.pid)}`
const claimOf = (root) => path.join(HOME, "opencode", root)

const ownerOf = (root) => {
  try {
    return fs.readFileSync(claimOf(root), "utf8")
  } catch {
    return ""
  }
}

const isElsewhere = (root) => {
  const owner = ownerOf(root)
  const [pid, start] = owner.split(" ")
  if (!pid || owner === OURS) return false
  try {
    process.kill(Number(pid), 0)
  } catch (problem) {
    if (problem.code !== "EPERM") return false
  }
  return startOf(pid) === start // otherwise the number is another process's by now
}

const claim = (root) => {
  if (ownerOf(root) === OURS) return
  try {
    fs.mkdirSync(path.dirname(claimOf(root)), { mode: 0o700, recursive: true })
    fs.writeFileSync(claimOf(root), OURS, { mode: 0o600 })
  } catch {} // a full disk: the lease still lets only one of them tell
}

const unclaim = (root) => {
  try {
    if (!isElsewhere(root)) fs.rmSync(claimOf(root), { force: true })
  } catch {}
}

const claimed = () => {
  try {
    return fs.readdirSync(path.dirname(claimOf("-")))
  } catch {
    return []
  }
}

// ---- Tools that take the session of a call among its arguments: ours, and those of a server that is behind
// `meantime mcp --wrap --by-session`. Any other server would get an argument that it does not know.

const takesSession = ({ command }) => {
  if (!Array.isArray(command)) return false
  const own = command.includes("--") ? command.slice(0, command.indexOf("--")) : command
  return own.includes("--wrap") && own.includes("--by-session")
}

// Where two servers could have the tool, as "a" and "a_b" could have "a_b_c", both must take it.
const isOurs = (tool, servers) => {
  const begins = (name) => tool.startsWith(`${name.replace(/[^a-zA-Z0-9_-]/g, "_")}_`) // as OpenCode names it
  const could = Object.keys(servers).filter(begins)
  return tool.startsWith("meantime_") || (could.length > 0 && could.every((name) => takesSession(servers[name])))
}

// ---- The plugin.

export const Meantime = async ({ client, directory }) => {
  const attended = new Set()
  const roots = new Map()
  let closed = false
  let servers = {}

  const sessionOf = async (id) => (await client.session.get({ path: { id }, throwOnError: true })).data

  const rootOf = (session) => {
    if (roots.size > 1_000) roots.clear()
    if (!roots.has(session)) {
      const finding = sessionOf(session).then(({ parentID }) => (parentID ? rootOf(parentID) : session))
      roots.set(session, finding)
      finding.catch(() => roots.delete(session))
    }
    return roots.get(session)
  }

  const isDeleted = async (session) => {
    const { response } = await client.session.get({ path: { id: session } })
    return response.status === 404
  }

  // Puts notices into the session and lets it take a turn. A prompt alone is accepted before it is stored, and
  // would be lost with a kill: so the message is stored first, and then sent as a prompt under the same ids. If
  // OpenCode was killed in between, only the second is done; it stays one message.
  const tell = async (session, notices) => {
    const query = { limit: RECENT }
    const { data: past } = await client.session.messages({ path: { id: session }, query, throwOnError: true })
    const texts = past.map(({ parts }) => JSON.stringify(parts))
    const placeOf = ({ id }) => texts.findLastIndex((text) => text.includes(`<task-notification id=\\"${id}\\"`))
    const fresh = notices.filter((notice) => placeOf(notice) < 0)
    const place = Math.max(...notices.map(placeOf))
    const wasAsked = past.slice(place).some(({ info }) => info.role === "assistant")
    if (fresh.length) await start(session, await store(session, past, fresh))
    else if (past[place].info.role === "user" && !wasAsked) await start(session, past[place])
  }

  const store = async (session, past, notices) => {
    const last = past.map(({ info }) => info).findLast(({ role }) => role === "user")
    const text = notices.map(({ message }) => message.parts.map((part) => part.text).join("\n")).join("\n\n")
    const body = { noReply: true, agent: last?.agent, model: last?.model, parts: [{ type: "text", text }] }
    return (await client.session.prompt({ path: { id: session }, body, throwOnError: true })).data
  }

  const start = async (session, { info, parts }) => {
    const same = parts.filter(({ type }) => type === "text").map(({ id, type, text }) => ({ id, type, text }))
    const body = { messageID: info.id, agent: info.agent, model: info.model, parts: same }
    await client.session.promptAsync({ path: { id: session }, body, throwOnError: true })
  }

  const takeTurn = async (session, thread) => {
    const { turn, notices } = await ask("POST", `/v1/threads/${thread}/turns`, { lease: LEASE, limit: MOST })
    let failed = true // after five times a notice is parked, for a person to look at
    try {
      if (notices.length) await tell(session, notices)
      failed = false
      await acknowledge(turn, notices)
    } finally {
      await ask("POST", `/v1/turns/${turn}/release`, { failed }).catch(() => {})
    }
  }

  // Until nothing runs and everything is told. A daemon that never answered does not run.
  const attend = async (root) => {
    const thread = threadOf(root)
    let answered = 0
    while (!closed) {
      try {
        if ((await look(thread)).isOver) return
        answered = Date.now()
        if (isElsewhere(root)) {
          await sleep(LOOK)
          continue
        }
        claim(root)
        if (!(await wake(thread))) continue
        await settle(thread)
        if (!closed && !isElsewhere(root)) await takeTurn(root, thread)
      } catch (problem) {
        if (problem instanceof Gone && Date.now() - answered > PATIENCE * 1000) return
        if (!(problem instanceof Gone) && (await isDeleted(root).catch(() => false))) return
        await sleep(problem instanceof Gone ? 1 : LOOK)
      }
    }
  }

  const begin = async (root) => {
    if (closed || attended.has(root)) return
    attended.add(root)
    try {
      await attend(root)
      unclaim(root)
    } finally {
      attended.delete(root)
    }
  }

  // Here, by a person or by its model.
  const used = (session) => {
    const here = (root) => {
      if (isElsewhere(root)) claim(root)
      return begin(root)
    }
    if (session) rootOf(session).then(here).catch(() => {}) // a session that is gone is not told
  }

  // Sessions of an OpenCode that has ended. The daemon may be started by the MCP server, just now.
  const takeUp = async () => {
    let threads
    for (const pause of [1, 2, 4, 8, 15, 30]) {
      if (threads || closed) break
      await sleep(pause)
      threads = (await ask("GET", "/v1/threads?limit=1000").catch(() => undefined))?.threads
    }
    const owed = (threads ?? []).filter((one) => one.active || one.unread || one.leased)
    const sessions = owed.map(({ id }) => id.slice("mcp-".length)).filter((id) => id.startsWith("ses_"))
    if (threads) claimed().filter((id) => !sessions.includes(id)).forEach(unclaim)
    for (const id of sessions.slice(0, 4 * WOKEN)) {
      if (attended.size >= WOKEN) return
      const found = await sessionOf(id).catch(() => undefined)
      if (found?.directory === directory && !found.parentID) begin(id).catch(() => {})
    }
  }

  if (!isBrief && !COMMON) takeUp().catch(() => {})

  return {
    dispose: async () => {
      closed = true
      attended.forEach(unclaim)
    },
    "shell.env": async ({ sessionID }, output) => {
      if (!sessionID || COMMON) return
      output.env.MEANTIME_THREAD = threadOf(await rootOf(sessionID).catch(() => sessionID))
    },
    config: async ({ mcp }) => {
      servers = mcp ?? {}
    },
    // One MCP server serves all sessions: each call says whose it is, whatever the model put there.
    "tool.execute.before": async ({ tool, sessionID }, output) => {
      if (!isOurs(tool, servers) || !sessionID) return
      output.args.meantime_session = await rootOf(sessionID).catch(() => sessionID)
    },
    "tool.execute.after": async ({ tool, sessionID }) => {
      if (tool === "bash" || isOurs(tool, servers)) used(sessionID)
    },
    "chat.message": async ({ sessionID }) => used(sessionID),
    event: async ({ event }) => {
      if (event.type === "session.idle" && !isBrief) used(event.properties.sessionID)
    },
  }
}
