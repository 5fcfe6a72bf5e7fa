// Written by `meantime install opencode`; `--uninstall` removes it.
// Tells a session when its background tasks have ended: at its next step while it works, with a turn of its
// own while it is idle. What a session has already, by the notice's id, is not told again.
import { spawn } from "node:child_process"

const COMMAND = ["meantime"]
const thread = (session) => process.env.MEANTIME_THREAD || `mcp-${session}`

export const Meantime = async ({ client }) => {
  const waiting = new Set()

  const tell = async (session, notices) => {
    const { data: past } = await client.session.messages({ path: { id: session }, throwOnError: true })
    const seen = JSON.stringify(past)
    const fresh = notices.filter(({ id }) => !seen.includes(`<task-notification id=\\"${id}\\"`))
    if (!fresh.length) return
    const last = past.map(({ info }) => info).findLast(({ role }) => role === "user")
    const text = fresh.map(({ message }) => message.parts.map((part) => part.text).join("\n")).join("\n\n")
    await client.session.promptAsync({
      path: { id: session },
      body: { agent: last?.agent, model: last?.model, parts: [{ type: "text", text }] },
      throwOnError: true,
    })
  }

  // Where all sessions have one thread, subagents are not told: the session at their root is.
  const root = async (session) => {
    const { data } = await client.session.get({ path: { id: session }, throwOnError: true })
    return data.parentID ? root(data.parentID) : session
  }

  const wait = (session) => {
    if (!session) return
    if (process.env.MEANTIME_THREAD) root(session).then(begin, () => {}) // one that is gone is not told
    else begin(session)
  }

  // One for each session: it ends at once where nothing runs.
  const begin = (session) => {
    if (waiting.has(session)) return
    waiting.add(session)
    const [program, ...first] = COMMAND
    const words = ["wait", "--tell", "--confirm", "--json", "--no-start", "--thread", thread(session)]
    const child = spawn(program, [...first, ...words], { stdio: ["pipe", "pipe", "ignore"] })
    let said = ""
    child.stdout.setEncoding("utf8")
    child.stdin.on("error", () => {})
    child.stdout.on("data", (data) => {
      said += data
      if (!said.endsWith("\n")) return
      const { notices } = JSON.parse(said)
      tell(session, notices).then(
        () => child.stdin.end("told\n"),
        () => child.stdin.end(), // given back; after five times it is parked, for a person to look at
      )
    })
    child.on("error", () => waiting.delete(session))
    child.on("close", (code) => {
      waiting.delete(session)
      if (code === 0) begin(session)
      if (code === 1) setTimeout(() => begin(session), 30_000).unref()
    })
  }

  return {
    "shell.env": async ({ sessionID }, output) => {
      if (sessionID && !process.env.MEANTIME_THREAD) output.env.MEANTIME_THREAD = thread(sessionID)
    },
    // One MCP server serves all sessions: each call says whose it is, whatever the model put there.
    "tool.execute.before": async ({ tool, sessionID }, output) => {
      if (tool.startsWith("meantime_") && sessionID) output.args.meantime_session = sessionID
    },
    "tool.execute.after": async ({ tool, sessionID }) => {
      if (tool === "bash" || tool.startsWith("meantime")) wait(sessionID)
    },
    event: async ({ event }) => {
      if (event.type === "session.idle") wait(event.properties.sessionID)
    },
  }
}
