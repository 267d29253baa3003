// Memory over HTTP with nothing but Node: the context window before the model, both turns after it.
//
//     export OPENAI_API_KEY=… MEMORY_API_KEY="$(cat ../../.memory/api-key)"
//     node main.mjs monday "I have a dog called Bruno."
//     node main.mjs friday "What is my dog called?"

import { randomUUID } from "node:crypto";

const { OPENAI_API_KEY, MEMORY_API_KEY } = process.env;
const OPENAI_URL = process.env.OPENAI_BASE_URL ?? "https://api.openai.com/v1";
const MEMORY_URL = process.env.MEMORY_URL ?? "http://127.0.0.1:8321";
const USER = "/v1/agents/ada/users/noa";

async function post(url, key, body) {
  const response = await fetch(url, {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return response.json();
}

const memory = (path, body) => post(`${MEMORY_URL}${USER}${path}`, MEMORY_API_KEY, body);

async function reply(session, text) {
  const window = await memory("/context", { session, query: text });
  const messages = [
    { role: "system", content: window.text },
    { role: "user", content: text },
  ];
  const completion = await post(`${OPENAI_URL}/chat/completions`, OPENAI_API_KEY, { model: "gpt-5-mini", messages });
  const answer = completion.choices[0].message.content;
  // A key of each turn makes it harmless to send this again after a lost answer.
  const key = randomUUID();
  await memory(`/sessions/${encodeURIComponent(session)}/turns`, {
    turns: [
      { role: "user", content: text, idempotency_key: `${key}-question` },
      { role: "assistant", content: answer, idempotency_key: `${key}-answer` },
    ],
  });
  return answer;
}

const [session, text] = process.argv.slice(2);
console.log(await reply(session, text));
