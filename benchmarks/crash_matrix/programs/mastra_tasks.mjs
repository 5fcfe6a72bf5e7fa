// Mastra: background tasks with LibSQL storage and memory, as its documentation has it. The tools are Mastra's own
// too, so that a new process can find them again. The first argument says how often a task may be tried again; with
// the second, `durable`, the agent is a durable one that is recovered when the program starts, as its server does it.
import { mkdirSync, existsSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Mastra } from '@mastra/core'
import { Agent } from '@mastra/core/agent'
import { createDurableAgent } from '@mastra/core/agent/durable'
import { createTool } from '@mastra/core/tools'
import { LibSQLStore } from '@mastra/libsql'
import { Memory } from '@mastra/memory'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { z } from 'zod'

const { CRASH_LEDGER: ledger, CRASH_STATE: folder, CRASH_MODEL: url } = process.env
const maxRetries = Number(process.argv[2])
const durable = process.argv[3] === 'durable'
const put = (answer) => process.stdout.write(JSON.stringify(answer) + '\n')

async function work(name) {
  const own = `${ledger}/${name}.${process.pid}.${process.hrtime.bigint()}`
  writeFileSync(`${own}.begun`, '')
  const until = Date.now() + 90_000
  while (!existsSync(`${ledger}/gate`)) {
    if (Date.now() > until) throw new Error(`the gate of ${name} did not open`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  writeFileSync(`${own}.done`, '')
  return { result: `the work of ${name} is finished` }
}

const slow = (name) =>
  createTool({
    id: name,
    description: `Does the work ${name}, which takes long.`,
    inputSchema: z.object({}),
    background: { enabled: true, defaultDisposition: 'deferred', maxRetries },
    execute: () => work(name),
  })

mkdirSync(folder, { recursive: true })
const storage = new LibSQLStore({ id: 'storage', url: `file:${folder}/mastra.db` })
const model = createOpenAICompatible({ name: 'scripted', baseURL: `${url}/v1`, apiKey: 'none' })('m')
const tools = { alpha: slow('alpha'), beta: slow('beta') }
const plain = new Agent({
  id: 'main', name: 'main', instructions: 'You talk.', model, memory: new Memory({ storage, options: { lastMessages: 100 } }),
  tools,
  backgroundTasks: { tools: { alpha: { enabled: true }, beta: { enabled: true } } },
})
const agent = durable ? createDurableAgent({ agent: plain }) : plain
const mastra = new Mastra({
  agents: { main: agent }, tools, storage, backgroundTasks: { enabled: true }, logger: false,
  ...(durable ? { recovery: { durableAgents: 'auto' } } : {}),
})
await mastra.startWorkers() // as its server does
if (durable) mastra.recoverAllDurableAgents().catch((problem) => console.error(problem))
const talking = mastra.getAgent('main')
const memory = { thread: 'main', resource: 'user' }

// `untilIdle` is what continues the conversation when a task ends: it stays open beside the prompts.
async function say(text) {
  const made = await talking.stream(text, { memory, untilIdle: { maxIdleMs: 60_000 } })
  const stream = durable ? made.output : made
  return await new Promise((resolve, reject) => {
    ;(async () => {
      for await (const chunk of stream.fullStream) {
        if (chunk.type === 'finish') resolve('finished')
        if (chunk.type === 'error') reject(new Error(JSON.stringify(chunk.payload).slice(0, 500)))
      }
      resolve('ended')
    })().catch(reject)
  })
}

async function state() {
  const { tasks } = await mastra.backgroundTaskManager.listTasks({})
  return Object.fromEntries(tasks.map((task) => [task.toolName, task.status]))
}

put({ ready: true })
for await (const line of createInterface({ input: process.stdin })) {
  try {
    const asked = JSON.parse(line)
    put('say' in asked ? { said: await say(asked.say) } : { state: await state() })
  } catch (problem) {
    put({ error: String(problem?.stack ?? problem).slice(0, 2000) })
  }
}
