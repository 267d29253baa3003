// A client of the types that openapi-typescript makes of the API's own description.
//
//     npm ci
//     npm run generate -- http://127.0.0.1:8321/openapi.json
//     npm run build
//     export MEMORY_API_KEY="$(cat ../../.memory/api-key)"
//     node dist/main.js monday "I have a dog called Bruno."
//     node dist/main.js friday "What is my dog called?"

import { randomUUID } from "node:crypto";

import { Memory } from "./memory.js";

const memory = new Memory(process.env["MEMORY_URL"] ?? "http://127.0.0.1:8321", process.env["MEMORY_API_KEY"] ?? "");
const [session = "monday", text = ""] = process.argv.slice(2);
const person = { agent: "ada", user: "noa" };

const { tickets } = await memory.call("post", "/v1/agents/{agent}/users/{user}/sessions/{session}/turns", {
  path: { ...person, session },
  body: { role: "user", content: text, idempotency_key: randomUUID() },
});

// The worker tells when it has read the message.
for await (const event of memory.events("oldest", "turn.extracted,turn.failed")) {
  if (event.target === tickets[0]?.id) {
    console.log(event.type);
    break;
  }
}

const hits = await memory.call("post", "/v1/agents/{agent}/users/{user}/recall", {
  path: person,
  body: { query: text, limit: 3 },
});
for (const hit of hits.memories) console.log(`${hit.score.toFixed(2)} ${hit.text}`);
