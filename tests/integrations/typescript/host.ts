// A host in TypeScript: it starts a command, takes a turn, keeps the notices in its transcript, and acknowledges.
import createClient from "openapi-fetch";
import type { components, paths } from "./meantime.js";

type Notice = components["schemas"]["Notice"];

const [url, token, thread] = process.argv.slice(2);
if (!url || !token || !thread) throw new Error("usage: host URL TOKEN THREAD");
const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });
const transcript = new Map<string, Notice["message"]>();

function given<T>(answer: { data?: T; error?: { code: string; error: string } }): T {
  if (answer.data === undefined) throw new Error(`${answer.error?.code}: ${answer.error?.error}`);
  return answer.data;
}

const started = given(
  await client.POST("/v1/tasks", { body: { command: "echo hello; exit 3", thread, toolCallID: "call-1" } }),
);
const again = await client.POST("/v1/tasks", { body: { command: "true", thread, toolCallID: "call-1" } });
const task = given(
  await client.GET("/v1/tasks/{id}/wait", { params: { path: { id: started.id }, query: { timeout: 60 } } }),
);
const turn = given(
  await client.POST("/v1/threads/{id}/turns", { params: { path: { id: thread } }, body: { lease: 60 } }),
);
for (const notice of turn.notices) if (!transcript.has(notice.id)) transcript.set(notice.id, notice.message);
const path = { turn: turn.turn };
const acknowledged = given(
  await client.POST("/v1/turns/{turn}/ack", { params: { path }, body: { notices: [...transcript.keys()] } }),
);
await client.POST("/v1/turns/{turn}/release", { params: { path }, body: {} });
const output = given(
  await client.GET("/v1/tasks/{id}/output", { params: { path: { id: task.id }, query: { tail: 1 } } }),
);
console.log(
  JSON.stringify({
    id: task.id,
    status: task.status,
    exitCode: task.exitCode,
    toolCallID: task.toolCallID,
    existing: again.error?.existing,
    told: acknowledged.told,
    said: typeof output === "string" ? output : output.data,
  }),
);
