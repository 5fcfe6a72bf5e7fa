// Mastra's background tasks with LibSQL storage, in one process. The commands are those of facts.py beside this file.
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Mastra } from '@mastra/core'
import { createTool } from '@mastra/core/tools'
import { LibSQLStore } from '@mastra/libsql'
import { z } from 'zod'

const { QUEUE_FACTS: facts, QUEUE_FOLDER: folder } = process.env
const now = () => Number(process.hrtime.bigint()) / 1e9
const say = (what, id) => appendFileSync(facts, `${(Date.now() / 1e3).toFixed(4)} ${what} ${id}\n`)
const started = new Map()
let number = 0

async function work({ id, seconds }) {
  if (seconds) {
    say('began', id)
    await new Promise((resolve) => setTimeout(resolve, seconds * 1e3))
    say('ended', id)
  }
  return { ended: now() }
}

const tool = createTool({
  id: 'work', description: 'Works.', inputSchema: z.object({ id: z.string(), seconds: z.number() }),
  background: { enabled: true }, execute: work,
})
const storage = new LibSQLStore({ id: 'storage', url: `file:${folder}/mastra.db` })
const mastra = new Mastra({
  tools: { work: tool }, storage, logger: false,
  backgroundTasks: { enabled: true, globalConcurrency: 100, perAgentConcurrency: 100 },
})
await mastra.startWorkers() // as its server does
const manager = mastra.backgroundTaskManager

async function submit(id, seconds) {
  const given = { runId: id, toolName: 'work', toolCallId: id, agentId: 'bench', args: { id, seconds }, maxRetries: 1 }
  const { task } = await manager.enqueue({ ...given, timeoutMs: 3_600_000 }, { executor: { execute: work } })
  started.set(id, task.id)
}

async function result(id) {
  const known = started.get(id) ?? (await manager.listTasks({ toolCallId: id })).tasks[0]?.id
  const task = await manager.waitForNextTask([known], { timeoutMs: 120_000 })
  started.delete(id)
  if (task.status !== 'completed') throw new Error(task.status)
  return task.result.ended
}

const commands = {
  async start({ ids, seconds }) {
    for (let at = 0; at < ids.length; at += 100) {
      await Promise.all(ids.slice(at, at + 100).map((id) => submit(id, seconds)))
    }
    return {}
  },
  async noops({ count }) {
    const ids = Array.from({ length: count }, () => `noop-${process.pid}-${number++}`)
    await commands.start({ ids, seconds: 0 })
    await Promise.all(ids.map(result))
    return {}
  },
  async one_by_one({ count }) {
    const submits = [], tellings = []
    for (let at = 0; at < count; at++) {
      const id = `one-${process.pid}-${number++}`, began = now()
      await submit(id, 0)
      submits.push(now() - began)
      const ended = await result(id)
      tellings.push(now() - ended)
    }
    return { submits, tellings }
  },
  async told({ ids }) {
    const found = {}
    const one = (id) => result(id).then(() => (found[id] = 'a result'), (problem) => (found[id] = String(problem)))
    await Promise.race([Promise.all(ids.map(one)), new Promise((resolve) => setTimeout(resolve, 5_000))])
    return found
  },
}

process.stdout.write('ready\n')
for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, ...given } = JSON.parse(line)
  const answer = await commands[name](given).catch((problem) => ({ problem: String(problem?.stack ?? problem).slice(0, 500) }))
  process.stdout.write(JSON.stringify(answer) + '\n')
}
